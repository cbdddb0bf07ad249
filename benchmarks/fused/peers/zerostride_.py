"""This package."""

from __future__ import annotations

import time
from typing import Any

import zerostride

from ...peers.peer import Call, LeftOut, Prepared
from ...rows import Task
from ..namespaces import Functions
from ..rows import FusedRow

#: The smallest row is hot after some 30,000 calls of a microsecond or two.
_HOT_SECONDS = 0.4


def functions() -> Functions:
    """Its functions, traced inside of `zerostride.fuse`.

    Raises:
        LeftOut: this release has no fused expressions.
    """
    if not hasattr(zerostride, "fuse"):
        raise LeftOut("there is no zerostride.fuse")
    return Functions(
        real="float32",
        bfloat16="bfloat16",
        cast=zerostride.cast,
        where=zerostride.where,
        maximum=zerostride.maximum,
        minimum=zerostride.minimum,
        exp=zerostride.exp,
        log=zerostride.log,
        sqrt=zerostride.sqrt,
        tanh=zerostride.tanh,
        erf=zerostride.erf,
        sigmoid=zerostride.sigmoid,
        sum=zerostride.sum,
        mean=zerostride.mean,
        max=zerostride.max,
    )


def fused_function(row: FusedRow) -> Any:
    """The row's function, fused."""
    function, own = row.function, functions()

    def traced(*arrays: Any) -> Any:
        return function(own, *arrays)

    return zerostride.fuse(traced)


def prepare(task: Task) -> Prepared:
    """The fused function, or the public one; it writes into `out=`."""
    zerostride.set_num_threads(task.threads)
    packed = task.row.name == "dequantized_int4"
    call = (
        _dequantize(task)
        if packed
        else Call(fused_function(task.row), task.inputs, {"out": task.out})
    )
    return Prepared(
        (call,), lambda result: result.reshape(task.row.shape), lambda: _until_hot(call)
    )


def _dequantize(task: Task) -> Call:
    """The public function, of the arrays as a user has them."""
    q, scale, _ = task.inputs
    assert task.out is not None
    keywords = {"block": 32, "packed": "int4", "out": task.out.reshape(len(q), -1)}
    return Call(zerostride.dequantize, (q.reshape(len(q), -1), scale[..., 0, 0]), keywords)


def _until_hot(call: Call) -> None:
    """Calls until the compiled tier, where there is one, has done what it will do."""
    from zerostride.fusion.jit import tier as jit

    if jit.mode() == "0":
        return
    end = time.perf_counter() + _HOT_SECONDS
    while time.perf_counter() < end:
        call()
    jit.WORKER.wait()
