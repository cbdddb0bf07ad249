"""Measures engines' newest releases that have no row yet: python tools/new_releases.py

Asks pip for the newest release of each engine that runs, or of those named, for this Python. A
release without a row is installed into an environment of its own and runs generated cases. What it
does otherwise than the row before it is a patch of the engine table in --out, for `git apply`.

A release of a learnt engine is learnt by its runner in examples/runners. The row is a file in --out
that replaces the one in src/zerostride/engines/learnt/rows.

Exit status 0: no release is new; 1: some are, and the folder has their patches; 2: one could not be
measured.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from zerostride.engines.learnt.file import learnt_files
from zerostride.engines.model import Engine
from zerostride.engines.table import ENGINES, find_engine
from zerostride.engines.versions import has_row
from zerostride.runtimes.learn.writing import RunnerFile

#: The runners of engines that are learnt.
RUNNERS = Path(__file__).parents[1] / "examples" / "runners"


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("engine", nargs="*", help="default: every engine that runs")
    parser.add_argument("--cases", type=int, default=4000, help="generated cases of a release")
    parser.add_argument("--out", type=Path, default=Path("patches"), help="folder of the patches")
    parser.add_argument("--list", action="store_true", help="measure nothing")
    options = parser.parse_args(arguments)
    learnt = {file.name for file in learnt_files() if file.own}
    names = options.engine or [row.name for row in ENGINES.own.values() if row.run] + sorted(learnt)
    status = 0
    for row in map(find_engine, names):
        if not row.distribution:
            print(f"{row.name} {row.release}: no package of pip, so it is not looked for")
            continue
        release = newest(row.distribution)
        if release is None:
            print(f"{row.name}: pip finds no release of {row.distribution} for this Python")
            status = 2
        elif has_row(row, release):
            print(f"{row.name} {release}: has a row")
        elif options.list:
            print(f"{row.name} {release}: new; the newest row is {row.release}")
            status = status or 1
        elif row.name in learnt:
            status = max(status, 1 if learnt_again(row, release, options.out) else 2)
        else:
            status = max(status, 1 if measured(row, release, options.cases, options.out) else 2)
    return status


def newest(distribution: str) -> str | None:
    """The newest release of a package that pip would install here; None if there is none."""
    words = [sys.executable, "-m", "pip", "index", "versions", "--only-binary", ":all:"]
    answer = subprocess.run([*words, distribution], capture_output=True, text=True).stdout
    first = re.match(r"\S+ \((?P<release>[^)]+)\)", answer)
    return first and first["release"]


def measured(row: Engine, release: str, cases: int, folder: Path) -> bool:
    """Measures a release, prints a line, and writes its patch; whether it could be measured."""
    words = ["engines", f"{row.name}=={release}", "--measure", "--cases", str(cases), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "zerostride", *words], stdout=subprocess.PIPE, text=True
    )
    if done.returncode not in (0, 1):
        print(f"{row.name} {release}: new, and could not be measured")
        return False
    print(patched(row, release, done.stdout, folder))
    return True


def learnt_again(row: Engine, release: str, folder: Path) -> bool:
    """Learns a release, and prints a line; whether it could be learnt."""
    (runner,) = (path for path in RUNNERS.glob("*.py") if RunnerFile.read(path).name == row.name)
    words = ["engines", "learn", str(runner), release, "--seconds", "600", "--check", "5000"]
    done = subprocess.run(
        [sys.executable, "-m", "zerostride", *words, "-o", str(folder), "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        print(f"{row.name} {release}: new, and could not be learnt")
        return False
    answer = json.loads(done.stdout)
    wrong, asked = len(answer["checked"]["wrong"]), answer["checked"]["asked"]
    print(
        f"{row.name} {release}: new, learnt, {wrong} of {asked} cases otherwise; {answer['file']}"
    )
    return True


def patched(row: Engine, release: str, answer: str, folder: Path) -> str:
    """Writes the patch in the JSON of a measurement; returns the line that says so."""
    (report,) = json.loads(answer)["engines"]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{row.name}-{release}.patch"
    path.write_text(report["patch"], "utf-8")
    wrong = len(report["disagreements"])
    return f"{row.name} {release}: new, {wrong} of {report['cases']} cases otherwise; {path}"


if __name__ == "__main__":
    sys.exit(main())
