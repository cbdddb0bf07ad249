"""Numba: hand-written loops, compiled for all processors."""

from __future__ import annotations

from typing import Any

import numba

from ...peers.peer import Call, Prepared
from ...rows import Task
from .. import loops


def prepare(task: Task) -> Prepared:
    """The compiled loops, with threads (started by each call) and, for a small result, without."""
    numba.set_num_threads(task.threads)
    assert task.out is not None
    arguments = loops.arguments(task)
    function = getattr(loops, task.row.name)
    ways = [_compiled(function, parallel=True)]
    if task.out.size < _SMALL:
        ways.append(_compiled(function, parallel=False))
    return Prepared(tuple(Call(way, arguments) for way in ways), lambda _: task.out)


#: Elements that threads are not worth waking for.
_SMALL = 1 << 15


def _compiled(function: Any, parallel: bool) -> Any:
    # NumPy's division: Python's, which raises, keeps loops from being made into vectors.
    return numba.njit(function, parallel=parallel, fastmath=False, error_model="numpy")
