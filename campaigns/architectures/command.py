"""``python -m campaigns architectures``: exports, converts, and writes the page."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import click
from rich.progress import track

from ..real_models.collect import read_rows
from .convert import ENGINES, Conversion, conversion
from .page import write_page
from .zoo import ARCHITECTURES

_EXPORT_SECONDS = 300


@click.command("architectures")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("build/architectures"),
    show_default=True,
    help="The folder of the exported models and of the results; a run goes on where it stopped.",
)
@click.option(
    "--real",
    type=click.Path(path_type=Path),
    default=Path("build/real-models"),
    show_default=True,
    help="The folder of real models, as `real-models` fetches them.",
)
@click.option("--only", multiple=True, metavar="WORD", help="Models with this in their name.")
@click.option("--engine", multiple=True, type=click.Choice(ENGINES), help="Default: all.")
@click.option("--write", is_flag=True, help="Write docs/conversions.md.")
def architectures(
    folder: Path, real: Path, only: tuple[str, ...], engine: tuple[str, ...], write: bool
) -> int:
    """Convert real files and architectures with random weights, with no option at all."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = _exported(folder)
    known = {row.file for row in read_rows()}
    files = [*sorted(real.glob("*.onnx")), *sorted(folder.glob("*.onnx"))]
    files = [f for f in files if not only or any(word in f.name for word in only)]
    store = folder / "conversions.jsonl"
    lines = store.read_text().splitlines() if store.exists() else []
    rows = {(row.model, row.engine): row for row in (Conversion(**json.loads(x)) for x in lines)}
    asked = [(file, name) for file in files for name in engine or ENGINES]
    for file, name in track([a for a in asked if (a[0].name, a[1]) not in rows], "converting"):
        row = conversion(file, name)
        rows[row.model, row.engine] = row
        with store.open("a") as out:
            print(json.dumps(asdict(row)), file=out)
        click.echo(f"{row.model} {row.engine}: {row.end} {row.seconds} s {row.reason[:80]}")
    proven = sum(row.end == "proven" for row in rows.values())
    click.echo(f"{proven} of {len(rows)} conversions proven")
    if write:
        write_page(list(rows.values()), failed, frozenset(known))
    return 0


def _exported(folder: Path) -> dict[str, str]:
    """Exports what is not yet there; why PyTorch does not, by name."""
    failed: dict[str, str] = {}
    for name in track(ARCHITECTURES, "exporting"):
        file, reason = folder / f"{name}.onnx", folder / f"{name}.failed"
        if not file.exists() and not reason.exists():
            words = [sys.executable, "-m", "campaigns.architectures.export", name, str(file)]
            try:
                done = subprocess.run(
                    words, capture_output=True, text=True, timeout=_EXPORT_SECONDS, check=False
                )
                last = done.stderr.strip().splitlines()[-1:] if done.returncode else []
            except subprocess.TimeoutExpired:
                last = [f"it took longer than {_EXPORT_SECONDS} s"]
            if not file.exists():
                reason.write_text("".join(last) or "nothing was written")
        if reason.exists():
            failed[name] = reason.read_text()
    return failed
