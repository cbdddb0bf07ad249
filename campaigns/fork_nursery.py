"""A process that forks many children; each forks during its threads' first calls.

Run as ``python -m campaigns.fork_nursery FORKS THREADS SEED``; prints a line of JSON when all have
ended. It has imported zerostride and called nothing of it, so each process forked from it has its
first fused calls before it, as a fresh one has, without the time of starting one.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np

import zerostride as zs

#: A fused call takes milliseconds, its first one tenths of a second; on a busy machine seconds.
SECONDS = 30
#: Calls of each function: a program that is called often is compiled in the background.
_CALLS = 12
#: What a process says by its exit status.
_ENDS = {
    0: "right",
    1: "the child hangs",
    2: "the child is wrong",
    3: "a thread hangs",
    4: "a thread is wrong",
}
#: Added to the status where a thread was in its first call when the fork began.
_INSIDE = 8
_X = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) / 64
_Y = np.ones(64, np.float32)


def right(k: int) -> bool:
    """Whether a function that is fused here, and nowhere before, gives what NumPy gives."""
    function = zs.fuse(lambda a, b: zs.maximum(a * b + a, k + 0.5) - b * k)
    expected = np.maximum(_X * _Y + _X, np.float32(k + 0.5)) - _Y * np.float32(k)
    return all(bool((function(_X, _Y) == expected).all()) for _ in range(_CALLS))


def _in_child(k: int) -> None:
    """Ends the process with a status of its own."""
    signal.alarm(SECONDS)  # ends a process that hangs
    faulthandler.dump_traceback_later(SECONDS - 5)
    os._exit(0 if right(k) and right(k + 1) else 2)


def subject(threads: int, delay: float | None) -> int:
    """One fork, `delay` seconds after the threads have begun; None: no fork. The exit status."""
    answers: list[bool] = []
    barrier = threading.Barrier(threads + 1)

    def work(k: int) -> None:
        barrier.wait(SECONDS)
        answers.append(right(k))

    working = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(threads)]
    for thread in working:
        thread.start()
    barrier.wait(SECONDS)
    end = 0
    if delay is not None:
        time.sleep(delay)
        inside = len(answers) < threads
        child = os.fork()
        if child == 0:
            _in_child(threads)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        end = (status if status in (0, 2) else 1) + inside * _INSIDE
    for thread in working:
        thread.join(SECONDS)
    if any(thread.is_alive() for thread in working):
        return 3 + (end & _INSIDE)
    return end if len(answers) == threads and all(answers) else 4 + (end & _INSIDE)


def _apart(work: Callable[[], int]) -> int:
    """The status of a process that is forked for some work."""
    process = os.fork()
    if process == 0:
        signal.alarm(4 * SECONDS)
        os._exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def main(forks: int, threads: int, seed: int) -> Counter[str]:
    """Counts forks by their end, and those during a thread's first call."""
    warnings.simplefilter("ignore")  # that a fork of several threads is dangerous
    draw = random.Random(seed)
    begin = time.monotonic()
    _apart(lambda: subject(threads, None))
    longest = time.monotonic() - begin
    counts: Counter[str] = Counter()
    for _ in range(forks):
        delay = draw.uniform(0, longest)
        status = _apart(lambda: subject(threads, delay))  # noqa: B023 - called at once
        inside, end = divmod(max(status, 0), _INSIDE)
        counts[_ENDS[end] if status >= 0 else f"ended by {signal.Signals(-status).name}"] += 1
        counts["inside"] += inside
    return counts


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:4]))))
