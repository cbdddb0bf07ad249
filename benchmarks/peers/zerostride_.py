"""This package."""

from __future__ import annotations

import inspect
from typing import Any

import zerostride

from ..rows import Task
from .peer import Call, LeftOut, Prepared


def prepare(task: Task) -> Prepared:
    """The public function of the row's op."""
    zerostride.set_num_threads(task.threads)
    if task.row.op == "broadcast":
        return _materialised(task)
    function = getattr(zerostride, task.row.op, None)
    if function is None:
        raise LeftOut(f"there is no zerostride.{task.row.op}")
    keywords = {} if task.out is None else {"out": task.out}
    return Prepared((Call(function, task.inputs, keywords | task.row.keywords),))


def _materialised(task: Task) -> Prepared:
    keywords: dict[str, Any] = {"copy": True}
    if "out" in inspect.signature(zerostride.broadcast).parameters:
        keywords = {"out": task.out}
    return Prepared((Call(zerostride.broadcast, (*task.inputs, task.shape), keywords),))
