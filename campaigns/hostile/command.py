"""``python -m campaigns hostile``: files that ask for much work, each within seconds and a GiB."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

import zerostride as zs
from zerostride.errors import EngineVersionWarning
from zerostride.models.execute import execute
from zerostride.models.execute.random_inputs import random_inputs
from zerostride.models.formats import read_model

#: What SECURITY.md promises of a file: seconds of CPU and bytes of memory.
SECONDS, BYTES = 10.0, 2**30
#: Seconds of CPU after which a file is given up.
_MOST_SECONDS = 60


def _audit(file: Path, target: str) -> None:
    report = zs.audit(file, target)
    str(report)
    report.to_json()
    report.to_html()


def _port(file: Path, target: str) -> None:
    zs.port(file, target, file.with_name(f"ported{file.suffix}")).to_json()


def _shapes(file: Path, target: str) -> None:
    zs.shapes(file).as_dict()


def _run(file: Path, target: str) -> None:
    graph = read_model(file)
    execute(graph, random_inputs(graph, 0, {}))


def _equivalent(file: Path, target: str) -> None:
    str(zs.equivalent(file, file))


USES: dict[str, Callable[[Path, str], None]] = {
    "audit": _audit, "port": _port, "shapes": _shapes, "run": _run, "equivalent": _equivalent,
}  # fmt: skip


def files(folder: Path, size: int) -> dict[str, Callable[[], Path]]:
    """Writers of all files, by format and kind."""
    # Only this campaign needs the packages that write these files.
    from . import onnx_kinds, other_kinds

    def onnx(data: Callable[[int], Any]) -> Callable[[], Path]:
        def write() -> Path:
            path = folder / "model.onnx"
            path.write_bytes(data(size).SerializeToString())
            return path

        return write

    written = {f"onnx: {name}": onnx(kind) for name, kind in onnx_kinds.KINDS.items()}
    for name, kind in other_kinds.KINDS.items():
        written[name] = lambda kind=kind: kind(folder, size)  # type: ignore[misc]
    return written


@click.command("hostile")
@click.option("--size", type=click.IntRange(1), default=2000, show_default=True)
@click.option("--use", "uses", type=click.Choice(list(USES)), multiple=True, help="Default: all.")
@click.option("--target", "targets", multiple=True, default=("ncnn",), show_default=True)
@click.option("--only", default="", help="Kinds that contain this text.")
def hostile(size: int, uses: Sequence[str], targets: Sequence[str], only: str) -> None:
    """Use files that ask for much work, each in a process of its own.

    Exit status 1: a file took over 10 s of CPU or a GiB, or raised another exception than the
    package's own.
    """
    bad = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, write in files(Path(folder), size).items():
            if only not in name:
                continue
            file = write()
            for use in uses or USES:
                for target in targets if use in ("audit", "port") else targets[:1]:
                    row = measured(file, use, target)
                    wrong = row["seconds"] > SECONDS or row["bytes"] > BYTES or row["slipped"]
                    bad, count = bad + bool(wrong), count + 1
                    click.echo(
                        f"{'BAD ' if wrong else ''}{name:34} {file.stat().st_size:>9,} B  {use:10} "
                        f"{target if use in ('audit', 'port') else '':12} {row['seconds']:5.1f} s "
                        f"{row['bytes'] / 2**20:5.0f} MiB  {row['slipped'] or row['refused'][:90]}"
                    )
    click.echo(f"{count} uses, {bad} bad")
    sys.exit(bool(bad))


def measured(file: Path, use: str, target: str) -> dict[str, Any]:
    """One use in a process of its own: CPU, memory, and the error, its children's included."""
    reader, writer = os.pipe()
    number = os.fork()
    if not number:
        resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
        os.close(reader)
        with os.fdopen(writer, "w") as pipe:
            json.dump(_used(file, use, target), pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    status = os.waitpid(number, 0)[1]
    if answer:
        return dict(json.loads(answer))
    return {"seconds": _MOST_SECONDS, "bytes": 0, "refused": "", "slipped": f"died: {status}"}


def _used(file: Path, use: str, target: str) -> dict[str, Any]:
    warnings.simplefilter("ignore", EngineVersionWarning)
    start = time.process_time()
    refused = slipped = ""
    try:
        USES[use](file, target)
    except (zs.ZerostrideError, zs.BroadcastError) as error:
        refused = str(error).splitlines()[0]
    except BaseException as error:  # noqa: BLE001 - other exceptions are what this looks for
        slipped = f"{type(error).__name__}: {error}"[:200]
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "seconds": time.process_time() - start + children.ru_utime + children.ru_stime,
        "bytes": max(own.ru_maxrss, children.ru_maxrss) * 1024,
        "refused": refused,
        "slipped": slipped,
    }
