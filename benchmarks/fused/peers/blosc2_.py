"""blosc2: the expression as text, computed in blocks of arrays that are not compressed."""

from __future__ import annotations

import functools
import importlib
import re
from typing import Any

import numpy as np

from ...peers.peer import Call, LeftOut, Prepared
from ...rows import Array, Task
from .texts import NAMES, NUMBERS, SOURCES

blosc2: Any = importlib.import_module("blosc2")

_PLAIN = {"clevel": 0}
_LACKS = {
    "residual_rms_norm": "no bfloat16",
    "dequantized_int4": "its shifts are of int64 alone",
    "model_affine_hard_swish": "blosc2 4.14.1 writes past its memory and ends the process",
    "normalised_image": "a number beside uint8 gives float64",
}


def prepare(task: Task) -> Prepared:
    """The lazy expression, made once; a call computes it into an array that it allocates."""
    name = task.row.name
    if name in _LACKS:
        raise LeftOut(_LACKS[name])
    if name not in SOURCES:
        raise LeftOut("one text has no reduction between")
    blosc2.set_nthreads(task.threads)
    operands = dict(zip(NAMES[name].split(), map(_stored, task.inputs), strict=True))
    numbers = NUMBERS.get(name, {})
    # As text: blosc2 4.14.1 looks for an operand of the name c8 in vain.
    text = re.sub(r"\b\w+\b", lambda word: str(numbers.get(word[0], word[0])), SOURCES[name])
    lazy = blosc2.lazyexpr(text, operands)
    compute = functools.partial(lazy.compute, cparams=_PLAIN)
    return Prepared((Call(compute),), result=lambda found: np.asarray(found[:]))


def _stored(array: Array) -> Any:
    return blosc2.asarray(np.ascontiguousarray(array), cparams=_PLAIN)
