"""MNN in a process of its own, which may die: `quant` and `dequant` of its expressions.

As a script it is that process. On x86-64 the bytes of MNN's int8 have the top bit exchanged, which
a program sees that reads them; here they are exchanged back.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
#: How the child's answers begin.
_READY = b"ready"


def answer(question: tuple[str, Array, Array]) -> Array | None:
    """The result of an op; None if the process ended."""
    child = _child()
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        pickle.dump(question, child.stdin)
        child.stdin.flush()
        result: Array = pickle.load(child.stdout)
    except (EOFError, BrokenPipeError, pickle.UnpicklingError):
        _end(child)
        _child.cache_clear()
        return None
    return result


@cache
def _child() -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    if child.stdout.read(len(_READY)) != _READY:
        raise RuntimeError("MNN does not start")
    atexit.register(_end, child)
    return child


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def compute(question: tuple[str, Array, Array]) -> Array:
    """One op: numbers that are quantised, or whole numbers that are dequantised."""
    from MNN import expr

    op, x, scale = question
    data = expr.const(np.ascontiguousarray(x, np.float32), list(x.shape), expr.NCHW, expr.float)

    def vector(numbers: Array) -> Any:
        return expr.const(np.ascontiguousarray(numbers), [len(numbers)], expr.NCHW, expr.float)

    if op == "quantize":
        read = np.array(expr.quant(data, vector(np.float32(1) / scale), -128, 127).read())
        return np.asarray(read.view(np.uint8) ^ 128).view(np.int8)
    stored = expr.quant(data, vector(np.ones_like(scale)), -128, 127)
    return np.array(expr.dequant(stored, vector(scale), 0).read())


def serve() -> None:
    """Answers one question a line; what MNN prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    import MNN.expr  # noqa: F401

    answers.write(_READY)
    answers.flush()
    while True:
        try:
            question = pickle.load(sys.stdin.buffer)
        except EOFError:
            os._exit(0)  # MNN's own clean-up is slow
        pickle.dump(compute(question), answers)
        answers.flush()


if __name__ == "__main__":
    serve()
