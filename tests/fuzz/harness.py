"""Runs generated cases in child processes and reports crashes, hangs and excessive memory.

A fuzzer is a script with a function that runs one case and says how it ended: a short word, or a
line that starts with BAD. Cases are numbered; a seed and a number make the same case everywhere.
"""

from __future__ import annotations

import argparse
import os
import selectors
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

# The fuzzers are scripts. They import this module first, then the writers of models.
_TESTS = Path(__file__).parents[1]
for _folder in (_TESTS.parent, _TESTS, _TESTS / "models"):
    sys.path.insert(0, str(_folder))

BAD = "BAD"
#: No case may take more seconds of CPU, nor a process grow by more: files of some KiB need neither.
CASE_SECONDS = 10.0
#: Seconds by the clock for a second of CPU: a machine that is busy, a case that sleeps.
BY_THE_CLOCK = 30
GROWTH_BYTES = 1 << 30
#: A worker imports onnx and NumPy, on a machine that is busy with other workers.
START_SECONDS = 60.0

RunCase = Callable[[int, int], str]


@dataclass
class Tally:
    """How cases ended.

    Attributes:
        words: number of cases for each way that is fine.
        bad: number and description of every case that is not.
        slowest: seconds and number of the slowest case.
    """

    words: Counter[str] = field(default_factory=Counter)
    bad: list[tuple[int, str]] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)

    @property
    def cases(self) -> int:
        return self.words.total() + len(self.bad)

    def add(self, number: int, seconds: float, said: str) -> None:
        if said.startswith(BAD):
            self.bad.append((number, said))
        else:
            self.words[said] += 1
        self.slowest = max(self.slowest, (seconds, number))


def slipped(error: BaseException) -> str:
    """A line on what slipped through, and where; one case alone shows its traceback, too."""
    if "--case" in sys.argv:
        traceback.print_exception(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.lineno}"
    return f"{BAD} {type(error).__name__} at {where}: {str(error)[:200]!r}"


def limit_memory() -> None:
    """Lets this process grow by no more than a fuzzed case may use, where the system can."""
    try:
        import resource
    except ImportError:
        return
    grown = Path("/proc/self/statm")
    now = int(grown.read_text().split()[0]) * resource.getpagesize() if grown.exists() else 1 << 31
    resource.setrlimit(resource.RLIMIT_AS, (now + GROWTH_BYTES, now + GROWTH_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve(run_case: RunCase, seed: int, numbers: range, seconds: float) -> None:
    """A worker's life: each case's number, seconds of CPU and outcome as a line."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    # What a library prints would be taken for an outcome.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    limit_memory()
    out.write("ready\n")
    out.flush()
    for number in numbers:
        began = time.process_time()
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, seconds)  # which ends the process
        said = " ".join(run_case(seed, number).split())
        out.write(f"{number} {time.process_time() - began:.4f} {said}\n")
        out.flush()


class Worker:
    """A child process that runs every `step`-th case, started again after each that kills it."""

    def __init__(self, script: str, seed: int, numbers: range, seconds: float) -> None:
        self.seconds = seconds
        self.script = script
        self.seed = seed
        self.left = numbers
        self.start()

    def start(self) -> None:
        command = [sys.executable, self.script, "--seed", str(self.seed), "--worker"]
        command += [str(bound) for bound in (self.left.start, self.left.stop, self.left.step)]
        command += ["--seconds", str(self.seconds)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "error"}
        self.child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self.buffer = b""
        self.deadline = time.monotonic() + START_SECONDS

    def lines(self) -> Iterator[str]:
        """The whole lines that have arrived."""
        assert self.child.stdout is not None
        data = os.read(self.child.stdout.fileno(), 1 << 16)
        *whole, self.buffer = (self.buffer + data).split(b"\n")
        if whole:
            self.deadline = time.monotonic() + BY_THE_CLOCK * self.seconds
        for line in whole:
            yield line.decode("utf-8", "replace")
        if not data:
            self.child.wait()

    def lost(self, tally: Tally, said: str) -> None:
        """The case at hand ended the worker; the next worker goes on after it."""
        self.child.kill()
        self.child.wait()
        tally.add(self.left.start, 0.0, f"{BAD} {said}")
        self.left = self.left[1:]


def hunt(
    script: str,
    seed: int,
    cases: int,
    jobs: int = 1,
    first: int = 0,
    seconds: float = CASE_SECONDS,
) -> Tally:
    """Runs `cases` cases of a fuzzer's script, `jobs` at a time."""
    tally = Tally()
    shares = [range(first + k, first + cases, jobs) for k in range(jobs)]
    workers = [Worker(script, seed, share, seconds) for share in shares]
    progress = _Progress(cases)
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker.child.stdout, selectors.EVENT_READ, worker)
        try:
            while selector.get_map():
                ready = {key.data for key, _ in selector.select(timeout=0.5)}
                for worker in {key.data for key in selector.get_map().values()}:
                    _attend(worker, worker in ready, tally, selector)
                progress.show(tally)
        finally:
            for worker in workers:
                worker.child.kill()
                worker.child.wait()
    progress.close()
    return tally


def _attend(worker: Worker, ready: bool, tally: Tally, selector: selectors.BaseSelector) -> None:
    before = worker.child.stdout
    if ready:
        for line in worker.lines():
            if line == "ready":
                continue
            number, seconds, said = line.split(" ", 2)
            tally.add(int(number), float(seconds), said)
            worker.left = worker.left[1:]
    status = worker.child.returncode
    if status is None and time.monotonic() < worker.deadline:
        return
    selector.unregister(before)
    if worker.left:
        worker.lost(tally, _death(status, worker.seconds))
    before.close()
    if worker.left:
        worker.start()
        selector.register(worker.child.stdout, selectors.EVENT_READ, worker)
    else:
        worker.child.kill()


def _death(status: int | None, seconds: float) -> str:
    if status is None:
        return f"took longer than {BY_THE_CLOCK * seconds:.0f} s by the clock"
    if status == -getattr(signal, "SIGPROF", 0):
        return f"took longer than {seconds:g} s of CPU"
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"the process ended with status {status}"


class _Progress:
    """A line that counts, on a terminal."""

    def __init__(self, cases: int) -> None:
        self.cases = cases
        self.shown = 0.0
        self.terminal = sys.stderr.isatty()

    def show(self, tally: Tally) -> None:
        if not self.terminal or time.monotonic() < self.shown + 0.2:
            return
        self.shown = time.monotonic()
        filled = 30 * tally.cases // max(self.cases, 1)
        bar = "#" * filled + "-" * (30 - filled)
        print(
            f"\r[{bar}] {tally.cases}/{self.cases}, {len(tally.bad)} bad ",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        if self.terminal:
            print(file=sys.stderr)


def main(script: str, run_case: RunCase, description: str) -> int:
    """The command line that every fuzzer has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cases", type=int, default=1000, help="how many cases (1000)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed, the same cases (0)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--case", type=int, help="run this case alone, here, with its traceback")
    parser.add_argument("--worker", type=int, nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=CASE_SECONDS, help="of CPU, a case (10)")
    given = parser.parse_args()
    if given.worker:
        serve(run_case, given.seed, range(*given.worker), given.seconds)
        return 0
    if given.case is not None:
        print(run_case(given.seed, given.case))
        return 0
    began = time.monotonic()
    tally = hunt(script, given.seed, given.cases, max(1, given.jobs), given.first, given.seconds)
    report(tally, given.seed, time.monotonic() - began)
    return 1 if tally.bad else 0


def report(tally: Tally, seed: int, seconds: float) -> None:
    """What a person reads after a run."""
    print(f"{tally.cases} cases of seed {seed} in {seconds:.0f} s, {len(tally.bad)} bad")
    for word, count in tally.words.most_common():
        print(f"  {count:8} {word}")
    print(f"  slowest: case {tally.slowest[1]}, {tally.slowest[0]:.2f} s")
    alike: dict[str, list[int]] = {}
    for number, said in sorted(tally.bad):
        alike.setdefault(said[:400], []).append(number)
    for said, numbers in alike.items():
        print(f"  {len(numbers)} x {said}: case {', '.join(map(str, numbers[:5]))}")
