"""numexpr: expressions, compiled to a program that runs block by block."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ..rows import Task
from .peer import Call, LeftOut, Prepared

_SOURCES = {
    "add": "a + b",
    "less": "a < b",
    "pow": "a ** b",
    "exp": "exp(a)",
    "tanh": "tanh(a)",
    "where": "where(a, b, c)",
    "multiply": "a * b",
    "divide": "a / b",
    "clip": "where(a < b, b, where(a > c, c, a))",
    "relu": "where(a > 0, a, 0)",
    "leaky_relu": "where(a > 0, a, a * alpha)",
    "prelu": "where(a > 0, a, a * b)",
    "sigmoid": "1 / (1 + exp(-a))",
}
_DTYPES = ("bool", "int32", "int64", "float32", "float64")

numexpr: Any = importlib.import_module("numexpr")
necompiler: Any = importlib.import_module("numexpr.necompiler")


def prepare(task: Task) -> Prepared:
    """The compiled expression."""
    row = task.row
    if row.op not in _SOURCES:
        raise LeftOut("an expression's shape is that of its operands")
    if row.dtype not in _DTYPES:
        raise LeftOut(f"no {row.dtype}")
    numexpr.set_num_threads(task.threads)
    # A parameter is an operand: a number of the text would be a double.
    parameters = {name: np.asarray(value, np.float32) for name, value in row.keywords.items()}
    operands = dict(zip("abc", task.inputs, strict=False)) | parameters
    signature = [(name, necompiler.getType(array)) for name, array in operands.items()]
    program = numexpr.NumExpr(_SOURCES[row.op], signature)
    keywords = {"ex_uses_vml": False} | ({} if task.out is None else {"out": task.out})
    return Prepared((Call(program, tuple(operands.values()), keywords),))
