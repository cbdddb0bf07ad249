"""Timing in turns: every library once in each round, in random order, and pairs of one round.

The machine is never quiet, so single figures mean little: what is compared are the times of one
round, which were measured within a fraction of a second of each other.
"""

from __future__ import annotations

import contextlib
import threading
import time
import timeit
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .peers import Call

#: Shorter samples are repeated calls. Far above the clock's own cost and a thread's waking.
SAMPLE_SECONDS = 1e-3
#: And so many calls at least: what a peer's first call finds in the caches is another's doing.
_LEAST_CALLS = 3
#: Threads of a peer may spin on after its call: whoever comes next waits so long for them, at most.
_SETTLE_SECONDS = 0.1
#: Steps of that wait, and how many one after the other find every thread asleep.
_SETTLE_STEP = 5e-4
_STILL = 3
#: Of the calls of a sample so many come before the clock starts: threads and caches are warm then.
_WARM = 0.25
_LEAST_WARM = 2

#: Where Linux tells of this process's threads; elsewhere nobody does, and the wait is a short one.
_TASKS = Path("/proc/self/task")

#: Seconds of one call.
Sampler = Callable[[], float]


def settle() -> None:
    """Waits until this process's other threads sleep."""
    deadline = time.perf_counter() + _SETTLE_SECONDS
    still = 0
    while still < _STILL and time.perf_counter() < deadline:
        time.sleep(_SETTLE_STEP)
        still = 0 if _others_run() else still + 1


def _others_run() -> bool:
    """Whether a thread beside this one runs or waits for a processor, as Linux tells it.

    The time that the process has used would not do: of threads that run elsewhere the system counts
    it at its ticks, 4 ms apart, and one that spins looks still in between.
    """
    self = threading.get_native_id()
    for task in _TASKS.iterdir() if _TASKS.is_dir() else ():
        with contextlib.suppress(OSError):  # a thread that has ended
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            if state == "R" and task.name != str(self):
                return True
    return False


def loop(call: Call) -> timeit.Timer:
    """The call in timeit's loop: names are local, and nothing is between loop and function."""
    names = {"_f": call.function}
    names |= {f"_x{k}": value for k, value in enumerate(call.args)}
    names |= {f"_{key}": value for key, value in call.keywords.items()}
    arguments = [f"x{k}" for k in range(len(call.args))]
    arguments += [f"{key}={key}" for key in call.keywords]
    setup = "; ".join(f"{name[1:]} = {name}" for name in names)
    return timeit.Timer(f"f({', '.join(arguments)}){call.then}", setup, globals=names)


def sampler(calls: tuple[Call, ...]) -> Sampler:
    """Times the fastest of the calls, as often in one sample as SAMPLE_SECONDS take."""
    settle()
    timers = [loop(call) for call in calls]
    counts = [_count(timer) for timer in timers]
    if len(timers) > 1:
        seconds = [
            min(timer.timeit(count) / count for _ in range(5))
            for timer, count in zip(timers, counts, strict=True)
        ]
        best = seconds.index(min(seconds))
    else:
        best = 0
    timer, count = timers[best], counts[best]
    warm = max(_LEAST_WARM, int(count * _WARM))

    def sample() -> float:
        timer.timeit(warm)
        return timer.timeit(count) / count

    return sample


def _count(timer: timeit.Timer) -> int:
    """How many calls a sample needs."""
    timer.timeit(2)
    count = _LEAST_CALLS
    while (seconds := timer.timeit(count)) < SAMPLE_SECONDS:
        # At most tenfold, since the first calls are slow.
        count = max(count + 1, min(10 * count, int(1.1 * count * SAMPLE_SECONDS / seconds)))
    return count


@dataclass(frozen=True)
class Rounds:
    """How many rounds: so many, and within so many seconds, but not fewer than the least."""

    most: int = 60
    seconds: float = 12.0
    least: int = 12


def in_turns(samplers: Mapping[str, Sampler], rounds: Rounds) -> dict[str, np.ndarray]:
    """Seconds of each, round by round."""
    times: dict[str, list[float]] = {name: [] for name in samplers}
    # Not rotated: each would come after the same other in every round, and find the output where
    # that one left it, in the caches or in memory.
    rng = np.random.default_rng(rounds.most)
    names = list(samplers)
    began = time.perf_counter()
    for k in range(rounds.most):
        if k >= rounds.least and time.perf_counter() - began > rounds.seconds:
            break
        for name in rng.permutation(names).tolist():
            settle()
            times[name].append(samplers[name]())
    return {name: np.array(values) for name, values in times.items()}
