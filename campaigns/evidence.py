"""The rows of docs/evidence.md: results, and whether the code that they prove has changed.

A row is a campaign or a step of continuous integration. It keeps the paths that it proves and a
digest of their files. A row whose digest differs today is stale; the page marks it.

    python3 -m campaigns.evidence current NAME PATH...   status 0: the row holds of these files
    python3 -m campaigns.evidence record NAME --result TEXT ... PATH...
    python3 -m campaigns.evidence write | check          docs/evidence.md

Only the standard library and git are needed: `.ci/run` asks before it has made an environment.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROWS, PAGE = ROOT / "docs" / "evidence.json", ROOT / "docs" / "evidence.md"

_HEAD = """# Evidence

<!-- Made by campaigns/evidence.py from docs/evidence.json. -->

Each row is a measurement that you can repeat: a campaign, or a step of continuous integration.
`python -m campaigns all --write` runs the campaigns at their full size and goes on where it was
stopped. `bash .ci/run --full` runs the steps. A row proves something about the files that it names.
It is *stale* if one of them has changed since.
"""
_KINDS = {"campaign": "Campaigns", "step": "Steps of continuous integration"}
_HEADINGS = ("what", "result", "repeat it", "commit", "date", "time", "processor", "of these files")


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: its result, and the code that it holds of."""

    kind: str
    name: str
    command: str
    result: str
    paths: tuple[str, ...]
    digest: str
    commit: str
    date: str
    processor: str
    seconds: int

    @property
    def current(self) -> bool:
        """Whether no file of the row has changed since."""
        return self.digest == digest(self.paths)


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True
    ).stdout


def digest(paths: Sequence[str]) -> str:
    """A digest of the tracked files under paths, as they are now, without the page itself.

    Raises:
        ValueError: a path has no tracked file.
    """
    whole = hashlib.sha256()
    for path in paths:
        names = sorted(filter(None, _git("ls-files", "-z", "--", path).split("\0")))
        if not names:
            raise ValueError(f"{path} has no file that git tracks")
        for name in names:
            file = ROOT / name
            if file in (ROWS, PAGE):
                continue
            content = file.read_bytes() if file.is_file() else b"deleted"
            whole.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return whole.hexdigest()[:16]


def processor() -> str:
    """The name of the processor, with its number of cores for this process."""
    names = [
        line.partition(":")[2].strip()
        for line in _lines(Path("/proc/cpuinfo"))
        if line.startswith("model name")
    ]
    return f"{names[0] if names else platform.machine()}, {len(names) or 1} cores"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def read() -> dict[str, Row]:
    """The rows of docs/evidence.json by name."""
    rows = json.loads(ROWS.read_text("utf-8")) if ROWS.exists() else []
    return {row["name"]: Row(**{**row, "paths": tuple(row["paths"])}) for row in rows}


def holds(name: str, paths: Sequence[str]) -> bool:
    """Whether a row of that name was measured on these files as they are."""
    row = read().get(name)
    return row is not None and row.paths == tuple(paths) and row.current


def record(
    kind: str, name: str, command: str, result: str, paths: Sequence[str], seconds: float
) -> None:
    """Writes a row, in place of the older one of its name."""
    commit = _git("rev-parse", "--short=8", "HEAD").strip()
    if _git("status", "--porcelain", "--untracked-files=no", "--", *paths).strip():
        commit += " and changes"
    row = Row(
        kind,
        name,
        command,
        " ".join(result.split()),
        tuple(paths),
        digest(paths),
        commit,
        datetime.now(UTC).strftime("%Y-%m-%d"),
        processor(),
        round(seconds),
    )
    rows = {**read(), name: row}
    text = json.dumps([asdict(rows[key]) for key in sorted(rows)], indent=1, ensure_ascii=False)
    ROWS.write_text(text + "\n", "utf-8")


def page(rows: Mapping[str, Row]) -> str:
    """docs/evidence.md."""
    parts = [_HEAD]
    for kind, title in _KINDS.items():
        chosen = [row for row in rows.values() if row.kind == kind]
        stale = [row.name for row in chosen if not row.current]
        parts.append(f"\n## {title}\n\n")
        parts.append(f"Stale: {', '.join(stale)}.\n\n" if stale else "")
        parts.append(f"| {' | '.join(_HEADINGS)} |\n|{'---|' * len(_HEADINGS)}\n")
        for row in chosen:
            cells = (
                row.name if row.current else f"{row.name}, *stale*",
                row.result.replace("|", "\\|"),
                f"`{row.command}`",
                *(row.commit, row.date, f"{row.seconds:,} s", row.processor),
                " ".join(f"`{path}`" for path in row.paths),
            )
            parts.append(f"| {' | '.join(cells)} |\n")
    return "".join(parts)


def write() -> None:
    """Writes docs/evidence.md."""
    PAGE.write_text(page(read()), "utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m campaigns.evidence")
    commands = parser.add_subparsers(dest="command", required=True)
    current = commands.add_parser("current")
    recorded = commands.add_parser("record")
    for command in (current, recorded):
        command.add_argument("name")
        command.add_argument("paths", nargs="+")
    recorded.add_argument("--result", required=True)
    recorded.add_argument("--seconds", type=float, required=True)
    commands.add_parser("write")
    commands.add_parser("check")
    arguments = parser.parse_args(words)
    if arguments.command == "current":
        return 0 if holds(arguments.name, arguments.paths) else 1
    if arguments.command == "record":
        run = f"bash .ci/run {arguments.name}"
        record("step", arguments.name, run, arguments.result, arguments.paths, arguments.seconds)
    if arguments.command == "check":
        if PAGE.exists() and PAGE.read_text("utf-8") == page(read()):
            return 0
        print("docs/evidence.md is not up to date: python3 -m campaigns.evidence write")
        return 1
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
