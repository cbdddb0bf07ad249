"""The streaming limit: the time in which this machine reads and writes a row's memory.

For each row the bytes of its operands are read once and those of its result written once, by as
many threads, from memory of the same sizes, so that the limit is that of the cache (or the memory)
in which the row's working set lies. The loop is compiled (`stream.c`); of ordinary stores and
stores that go around the caches, and of several lengths of the turns, the fastest is the limit. It
is measured in turns with the peers. A thread makes many passes over its part: the limit has no cost
of a call.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from . import compiled
from .rows import Task, aligned
from .timing import SAMPLE_SECONDS, Sampler

#: Working sets below this are all overhead, and a share of the limit says nothing.
LEAST_BYTES = 1 << 16
#: Bytes of output between two turns of reading: few, so that the first cache holds a turn.
_BLOCKS = (256, 512, 4096, 16384)
_PROBES = 5
#: As in stream.c.
_MOST_INPUTS = 8
_SAMPLE_SECONDS = 4 * SAMPLE_SECONDS
#: Bytes a second, to choose a number of passes without a trial.
_GUESS = 1e10


@functools.cache
def library() -> Any | None:
    """The compiled loop; None without a C compiler."""
    loaded = compiled.library("stream.c")
    if loaded is not None:
        loaded.stream_seconds.restype = ctypes.c_double
    return loaded


def how() -> str:
    """What the limit is measured with."""
    return "a compiled loop" if library() is not None else "np.copyto, for want of a C compiler"


def sampler(task: Task) -> Sampler | None:
    """Seconds in which the task's bytes can be read and written; None where they are too few."""
    if task.input_bytes + task.output_bytes < LEAST_BYTES:
        return None
    # Whole vectors alone: what is left out is less than a line of each array.
    sizes = [base.nbytes // 64 * 64 for base in task.bases if base.nbytes >= 64]
    inputs = [_varied(size) for size in sizes]
    if task.row.in_place:
        output = inputs[0]
    else:
        output = aligned((task.output_bytes // 64 * 64,), np.dtype(np.uint8))
    loop = library()
    if loop is None:
        return _copies(inputs, output, task)
    return _compiled(loop, inputs, output, task.threads)


def _varied(size: int) -> np.ndarray:
    """An array of bytes that repeat nowhere near: memory may be faster with lines of one number."""
    array = aligned((size,), np.dtype(np.uint8))
    array[:] = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    return array


def _compiled(loop: Any, inputs: list[np.ndarray], output: np.ndarray, threads: int) -> Sampler:
    pointers = (ctypes.c_void_p * _MOST_INPUTS)(*(array.ctypes.data for array in inputs))
    sizes = (ctypes.c_int64 * _MOST_INPUTS)(*(array.nbytes for array in inputs))

    def run(passes: int, block: int, around: int) -> float:
        seconds: float = loop.stream_seconds(
            pointers,
            sizes,
            len(inputs),
            ctypes.c_void_p(output.ctypes.data),
            ctypes.c_int64(output.nbytes),
            threads,
            ctypes.c_int64(passes),
            ctypes.c_int64(block),
            around,
        )
        if seconds < 0:
            raise OSError(f"{threads} threads cannot be started")
        return seconds

    def fastest(passes: int, block: int, around: int) -> float:
        return min(run(passes, block, around) for _ in range(_PROBES))

    # So many that the end of the last thread, for which the first waits, weighs nothing.
    passes = 1
    while fastest(passes, _BLOCKS[0], 0) * passes < _SAMPLE_SECONDS:
        passes *= 2
    best = min(itertools.product(_BLOCKS, (0, 1)), key=lambda way: fastest(passes, *way))

    def sample() -> float:
        run(1, *best)
        return run(passes, *best)

    return sample


def _copies(inputs: list[np.ndarray], output: np.ndarray, task: Task) -> Sampler:
    """Threads of Python that copy as many bytes: half of them are read, half written."""
    size = (task.input_bytes + task.output_bytes) // 2 // task.threads
    pairs = [
        (aligned((size,), np.dtype(np.uint8)), aligned((size,), np.dtype(np.uint8)))
        for _ in range(task.threads)
    ]
    pool = ThreadPoolExecutor(task.threads)
    passes = max(1, int(_SAMPLE_SECONDS * _GUESS / (2 * size * task.threads)))

    def copy(pair: tuple[np.ndarray, np.ndarray]) -> None:
        for _ in range(passes):
            np.copyto(*pair)

    def sample() -> float:
        began = time.perf_counter()
        list(pool.map(copy, pairs))
        return (time.perf_counter() - began) / passes

    return sample
