"""numexpr: expressions, compiled to a program that runs block by block."""

from __future__ import annotations

import importlib
from typing import Any

from ..rows import Task
from .peer import Call, LeftOut, Prepared

_SOURCES = {
    "add": "a + b",
    "less": "a < b",
    "pow": "a ** b",
    "exp": "exp(a)",
    "tanh": "tanh(a)",
    "where": "where(a, b, c)",
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
    signature = [
        (name, necompiler.getType(array)) for name, array in zip("abc", task.inputs, strict=False)
    ]
    program = numexpr.NumExpr(_SOURCES[row.op], signature)
    keywords = {"ex_uses_vml": False} | ({} if task.out is None else {"out": task.out})
    return Prepared((Call(program, task.inputs, keywords),))
