"""Shared parts of seeded campaigns: results, judging processes, printing.

A run is processes of their own, so that an instruction set can be forced and a crash be told: the
number of the case is kept where the process that waits can read it.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import selectors
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Generic, Protocol, Self, TypeVar

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from zerostride.compute import native
from zerostride.errors import BadInput
from zerostride.system import children

#: Cases of a block: what is drawn in one does not depend on others.
BLOCK = 500
#: Differences that are shrunk and printed; more than these are counted.
SHOWN = 20
_ISA = "ZEROSTRIDE_ISA"


class Counts(Protocol):
    """The results of the cases of one family; without arguments, of no cases."""

    cases: int

    def add(self, other: Self, /) -> None:
        """Counts another one's, too."""
        ...


CountsT = TypeVar("CountsT", bound=Counts)


@dataclass(frozen=True, slots=True)
class Difference:
    """A case on which the backends differ, and code that shows it."""

    case: int
    text: str
    code: str


@dataclass(slots=True)
class Result(Generic[CountsT]):
    """The results of a run: of one instruction set, or of a part of its cases."""

    isa: str
    tallies: dict[str, CountsT] = field(default_factory=dict)
    handed_over: int = 0  # calls that the engine left to the reference
    differing: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """The number of judged cases."""
        return sum(tally.cases for tally in self.tallies.values())

    def count(self, family: str, tally: CountsT) -> None:
        """Counts cases of one family."""
        self.tallies.setdefault(family, type(tally)()).add(tally)

    def add(self, other: Result[CountsT]) -> None:
        """Takes another part's."""
        for family, tally in other.tallies.items():
            self.count(family, tally)
        self.handed_over += other.handed_over
        self.differing += other.differing
        self.differences += other.differences[: SHOWN - len(self.differences)]


@contextmanager
def counting(result: Result[CountsT], module: Any, name: str) -> Iterator[None]:
    """Counts calls of a module's function as handed over, while it lasts."""
    function = getattr(module, name)

    def counted(*args: Any, **kwargs: Any) -> Any:
        result.handed_over += 1
        return function(*args, **kwargs)

    setattr(module, name, counted)
    try:
        yield
    finally:
        setattr(module, name, function)


# The process that judges


def judging(judge_range: Callable[..., Any], arguments: Sequence[str] | None = None) -> int:
    """Judges a range of cases; prints "done N" for each block, then the result as JSON.

    Args:
        judge_range: takes the first case, how many, the seed, what is told the number of each case
            before it is run, and the time from which none is begun; gives a result.
        arguments: of the process, as `run_parts` has them.
    """
    parser = argparse.ArgumentParser()
    for name in ("first", "count", "seed", "threads"):
        parser.add_argument(name, type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("mark")
    options = parser.parse_args(arguments)
    if options.threads:
        native.set_num_threads(options.threads)
    with open(options.mark, "r+b") as file, mmap.mmap(file.fileno(), 8) as mark:
        done = 0

        def seen(k: int) -> None:
            nonlocal done
            struct.pack_into("<q", mark, 0, k)
            if done % BLOCK == 0 and done:
                print(f"done {BLOCK}", flush=True)
            done += 1

        until = time.monotonic() + options.seconds
        result = judge_range(options.first, options.count, options.seed, seen, until)
        struct.pack_into("<q", mark, 0, -1)
    print(json.dumps(asdict(result)))
    return 0


# The process that waits


@dataclass(slots=True)
class Part:
    """A child and what it has said."""

    isa: str
    process: subprocess.Popen[str]
    mark: Path
    last: str = ""


def campaign(
    options: SimpleNamespace,
    run_isa: Callable[[str, SimpleNamespace], Any],
    show: Callable[[Sequence[Any], int], None],
) -> int:
    """Runs each instruction set that is asked for, and shows the results; the exit status."""

    def results() -> Iterator[Any]:
        if not native.backend().startswith("native"):
            raise BadInput("the native engine is not in use here: there is nothing to compare")
        for isa in isas(options.isa):
            yield run_isa(isa, options)

    return conclude(options, results, show)


def conclude(
    options: SimpleNamespace,
    results_of: Callable[[], Iterator[Any]],
    show: Callable[[Sequence[Any], int], None],
) -> int:
    """Takes all results and shows them, or writes them as JSON; the exit status."""
    try:
        results = list(results_of())
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    if options.as_json:
        print(json.dumps([asdict(result) for result in results], indent=1))
    else:
        show(results, options.seed)
    return 1 if any(result.differing for result in results) else 0


def isas(wanted: str | None) -> list[str]:
    """The instruction sets that the command names: one, all, or the one in use."""
    from zerostride.compute import _native

    available = _native.available_isas()
    if wanted == "all":
        return available
    if wanted is None:
        return [native.backend().removeprefix("native ")]
    if wanted not in available:
        raise BadInput(f"no instruction set {wanted!r} here; there are {', '.join(available)}")
    return [wanted]


def run_parts(
    module: str, isa: str, options: SimpleNamespace, collect: Callable[[Part], None]
) -> None:
    """Runs a module's `judging` on all cases, in so many processes at a time as are asked for.

    Args:
        module: what is run; its `child` is.
        isa: the instruction set to force.
        options: of the command.
        collect: is given each process that has ended.
    """
    bar = progress(isa, options.cases, options.as_json)
    with tempfile.TemporaryDirectory() as folder, bar as advance:
        parts = list(_start(module, isa, options, Path(folder)))
        try:
            for part in _ended(parts, advance):
                collect(part)
        finally:
            for part in parts:
                part.process.kill()
                part.process.wait()
                _pipe(part).close()


def _start(module: str, isa: str, options: SimpleNamespace, folder: Path) -> Iterator[Part]:
    blocks = -(-options.cases // BLOCK)
    share = -(-blocks // options.jobs) * BLOCK
    for first in range(options.first, options.first + options.cases, share):
        count = min(share, options.first + options.cases - first)
        mark = folder / str(first)
        mark.write_bytes(struct.pack("<q", -1))
        numbers = (first, count, options.seed, options.threads, options.seconds)
        process = subprocess.Popen(
            children.module(module, *map(str, numbers), str(mark)),
            env={**os.environ, _ISA: isa},
            stdout=subprocess.PIPE,
            text=True,
        )
        yield Part(isa, process, mark)


def _ended(parts: list[Part], advance: Callable[[int], None]) -> Iterator[Part]:
    """The parts as they end; their progress is told meanwhile."""
    with selectors.DefaultSelector() as selector:
        for part in parts:
            selector.register(_pipe(part), selectors.EVENT_READ, part)
        while selector.get_map():
            for key, _ in selector.select():
                part = key.data
                line = _pipe(part).readline()
                if line.startswith("done "):
                    advance(int(line.split()[1]))
                elif line:
                    part.last = line
                else:
                    selector.unregister(_pipe(part))
                    part.process.wait()
                    yield part


def _pipe(part: Part) -> Any:
    return part.process.stdout


def result_of(
    part: Part, counts: type[CountsT], told: Callable[[int], tuple[str, str]]
) -> Result[CountsT]:
    """The results of an ended process.

    Args:
        part: the process.
        counts: the class of its tallies.
        told: for the number of a case at which it ended before its time, what comes before the
            words on that, and the case as code.
    """
    if part.process.returncode == 0 and part.last:
        data = json.loads(part.last)
        tallies = {family: counts(**tally) for family, tally in data["tallies"].items()}
        differences = [Difference(**difference) for difference in data["differences"]]
        return Result(**{**data, "tallies": tallies, "differences": differences})
    (case,) = struct.unpack("<q", part.mark.read_bytes())
    before, code = told(case) if case >= 0 else ("", "")
    text = f"{before}the process ended with status {part.process.returncode}"
    return Result(part.isa, differing=1, differences=[Difference(case, text, code)])


@contextmanager
def progress(what: str, total: int, quiet: bool) -> Iterator[Callable[..., None]]:
    """A bar on a terminal, nothing elsewhere; what moves it on by one, or by so many."""
    console = Console(stderr=True)
    with Progress(console=console, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count=1: bar.advance(task, count)


def print_differences(result: Result[CountsT], seed: int, bound: str = "") -> None:
    """The differences of an instruction set, and how many there are among how many cases."""
    for difference in result.differences:
        print(f"\n# {result.isa}, seed {seed}, case {difference.case}: {difference.text}")
        print(difference.code)
    share = 1 - result.handed_over / max(result.cases, 1)
    print(
        f"{result.isa}: {result.differing} differences in {result.cases:,} cases "
        f"({bound}{share:.0%} computed natively)"
    )


def print_wide(table: Table) -> None:
    """A table, at the terminal's width or at one that fits it."""
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)
