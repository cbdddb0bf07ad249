"""The native engine against the reference: ``python -m zerostride.measure native``.

Seeded calls of the public functions (`native_draw`) are computed by both and compared
(`native_judge`). Every run is a process of its own, so that an instruction set can be forced and a
crash be told: the number of the case is kept where the process that waits can read it.

Exit status 0: no difference; 1: at least one; 2: no native engine, or bad input.
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
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ..compute import functions, native, reference, unary
from .case import BadInput
from .native_cases import Call, source
from .native_draw import BLOCK, calls
from .native_judge import BOUND, FAMILIES, judge
from .native_shrink import shrink

#: Differences that are shrunk and printed; more than these are counted.
SHOWN = 20
_ISA = "ZEROSTRIDE_ISA"


@dataclass(slots=True)
class Tally:
    """What came of the cases of one family of ops."""

    cases: int = 0
    refused: int = 0
    ulp: float = 0.0

    def add(self, other: Tally) -> None:
        """Counts another one's cases, too."""
        self.cases += other.cases
        self.refused += other.refused
        self.ulp = max(self.ulp, other.ulp)


@dataclass(frozen=True, slots=True)
class Difference:
    """A case on which the backends differ, and code that shows it."""

    case: int
    text: str
    code: str


@dataclass(slots=True)
class Result:
    """What came of a run: of one instruction set, or of a part of its cases."""

    isa: str
    tallies: dict[str, Tally] = field(default_factory=dict)
    handed_over: int = 0  # calls that the native backend left to the reference
    differing: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """How many were judged."""
        return sum(tally.cases for tally in self.tallies.values())

    def add(self, other: Result) -> None:
        """Takes another part's."""
        for family, tally in other.tallies.items():
            self.tallies.setdefault(family, Tally()).add(tally)
        self.handed_over += other.handed_over
        self.differing += other.differing
        self.differences += other.differences[: SHOWN - len(self.differences)]


Functions = Callable[[str], Callable[..., Any]]


def public(op: str) -> Callable[..., Any]:
    """The public function of an op."""
    found: Callable[..., Any] = getattr(functions, op, None) or getattr(unary, op)
    return found


def judge_all(
    cases: Iterator[tuple[int, Call]],
    function_of: Functions = public,
    seen: Callable[[int], None] = lambda case: None,
    until: float = float("inf"),
) -> Result:
    """Judges cases one after the other, in this process.

    Args:
        cases: calls and their numbers.
        function_of: what is held against the reference.
        seen: is told the number of each case before it is run.
        until: the time (of `time.monotonic`) from which no case is begun.
    """
    result = Result(native.backend().removeprefix("native "))
    with _counting(result), warnings.catch_warnings():
        warnings.simplefilter("error")
        for k, call in cases:
            if time.monotonic() > until:
                break
            seen(k)
            function = function_of(call.op)
            verdict = judge(call, function)
            tally = result.tallies.setdefault(FAMILIES[call.op], Tally())
            tally.add(Tally(1, int(verdict.refused), verdict.ulp if not verdict.difference else 0))
            if verdict.difference:
                result.differing += 1
                if len(result.differences) < SHOWN:
                    result.differences.append(_explained(k, call, function, verdict.difference))
    return result


def _explained(k: int, call: Call, function: Callable[..., Any], text: str) -> Difference:
    small = shrink(call, lambda simpler: bool(judge(simpler, function).difference))
    # A call that fails by chance (threads) may not fail again.
    text = judge(small, function).difference or f"{text} (the first time only)"
    return Difference(k, f"{call.op}: {text}", source(small))


@contextmanager
def _counting(result: Result) -> Iterator[None]:
    """Counts the calls that the native backend hands to the reference."""
    computed = reference.compute

    def counted(*args: Any, **kwargs: Any) -> Any:
        result.handed_over += 1
        return computed(*args, **kwargs)

    reference.compute = counted
    try:
        yield
    finally:
        reference.compute = computed


# The process that judges


def child(arguments: Sequence[str] | None = None) -> int:
    """Judges a range of cases; see `judging`."""
    return judging(
        lambda first, count, seed, seen, until: judge_all(
            calls(first, count, seed), seen=seen, until=until
        ),
        arguments,
    )


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


def run(options: argparse.Namespace) -> int:
    """The subcommand; returns the exit status."""
    return campaign(options, _run_isa, _print)


def campaign(
    options: argparse.Namespace,
    run_isa: Callable[[str, argparse.Namespace], Any],
    show: Callable[[Sequence[Any], int], None],
) -> int:
    """Runs each instruction set that is asked for, and shows the results; the exit status."""
    try:
        if not native.backend().startswith("native"):
            raise BadInput("the native engine is not in use here: there is nothing to compare")
        results = [run_isa(isa, options) for isa in isas(options.isa)]
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    if options.json:
        print(json.dumps([asdict(result) for result in results], indent=1))
    else:
        show(results, options.seed)
    return 1 if any(result.differing for result in results) else 0


def isas(wanted: str | None) -> list[str]:
    """The instruction sets that the command names: one, all, or the one in use."""
    from ..compute import _native

    available = _native.available_isas()
    if wanted == "all":
        return available
    if wanted is None:
        return [native.backend().removeprefix("native ")]
    if wanted not in available:
        raise BadInput(f"no instruction set {wanted!r} here; there are {', '.join(available)}")
    return [wanted]


def _run_isa(isa: str, options: argparse.Namespace) -> Result:
    total = Result(isa)
    run_parts(__name__, isa, options, lambda part: total.add(_result_of(part, options.seed)))
    return total


def run_parts(
    module: str, isa: str, options: argparse.Namespace, collect: Callable[[Part], None]
) -> None:
    """Runs a module's `judging` on all cases, in so many processes at a time as are asked for.

    Args:
        module: what is run; its `child` is.
        isa: the instruction set to force.
        options: of the command.
        collect: is given each process that has ended.
    """
    with tempfile.TemporaryDirectory() as folder, _progress(isa, options) as advance:
        parts = list(_start(module, isa, options, Path(folder)))
        try:
            for part in _ended(parts, advance):
                collect(part)
        finally:
            for part in parts:
                part.process.kill()
                part.process.wait()
                _pipe(part).close()


def _start(module: str, isa: str, options: argparse.Namespace, folder: Path) -> Iterator[Part]:
    blocks = -(-options.cases // BLOCK)
    share = -(-blocks // options.jobs) * BLOCK
    for first in range(options.first, options.first + options.cases, share):
        count = min(share, options.first + options.cases - first)
        mark = folder / str(first)
        mark.write_bytes(struct.pack("<q", -1))
        numbers = (first, count, options.seed, options.threads, options.seconds)
        process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, numbers), str(mark)],
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


def _result_of(part: Part, seed: int) -> Result:
    if part.process.returncode == 0 and part.last:
        return _from_json(json.loads(part.last))
    case, text = ended_at(part)
    code = ""
    if case >= 0:
        ((_, call),) = calls(case, 1, seed)
        text, code = f"{call.op}: {text}", source(call)
    return Result(part.isa, differing=1, differences=[Difference(case, text, code)])


def ended_at(part: Part) -> tuple[int, str]:
    """The case at which a process ended, or -1; and how, in words."""
    (case,) = struct.unpack("<q", part.mark.read_bytes())
    return case, f"the process ended with status {part.process.returncode}"


def _from_json(data: dict[str, Any]) -> Result:
    tallies = {family: Tally(**tally) for family, tally in data["tallies"].items()}
    differences = [Difference(**difference) for difference in data["differences"]]
    return Result(**{**data, "tallies": tallies, "differences": differences})


@contextmanager
def _progress(isa: str, options: argparse.Namespace) -> Iterator[Callable[[int], None]]:
    console = Console(stderr=True)
    quiet = options.json or not console.is_terminal
    with Progress(console=console, disable=quiet) as progress:
        task = progress.add_task(isa, total=options.cases)
        yield lambda count: progress.advance(task, count)


def _print(results: Sequence[Result], seed: int) -> None:
    table = Table("instruction set", "ops", "cases", "refused by both", "worst ulp")
    for result in results:
        for family, tally in sorted(result.tallies.items()):
            worst = f"{tally.ulp:.3g}" if family == "functions" else "exact"
            table.add_row(result.isa, family, f"{tally.cases:,}", f"{tally.refused:,}", worst)
    print_wide(table)
    for result in results:
        for difference in result.differences:
            print(f"\n# {result.isa}, seed {seed}, case {difference.case}: {difference.text}")
            print(difference.code)
        share = 1 - result.handed_over / max(result.cases, 1)
        print(
            f"{result.isa}: {result.differing} differences in {result.cases:,} cases "
            f"(bound {BOUND:g} ulp; {share:.0%} computed natively)"
        )


def print_wide(table: Table) -> None:
    """A table, at the terminal's width or at one that fits it."""
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)


if __name__ == "__main__":
    sys.exit(child())
