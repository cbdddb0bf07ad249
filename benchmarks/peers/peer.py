"""A peer: a library that turns a task into a call that can be timed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..rows import Array, Task


class LeftOut(Exception):  # noqa: N818 - nothing went wrong
    """The peer cannot take the row; the text says why."""


@dataclass(frozen=True)
class Call:
    """`function(*args, **keywords)`, written out where it is timed, so that no wrapper is."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    #: Python source that follows the call, such as ".block_until_ready()".
    then: str = ""

    def __call__(self) -> Any:
        """Calls it once."""
        returned = self.function(*self.args, **self.keywords)
        return eval(f"returned{self.then}", {"returned": returned}) if self.then else returned


@dataclass(frozen=True)
class Prepared:
    """A task in a peer's own terms. Of several ways to call it the fastest is timed."""

    calls: tuple[Call, ...]
    #: What a call returned -> the result as NumPy's array.
    result: Callable[[Any], Array] = np.asarray
    #: Done before calls are timed, by who compiles what is called often.
    warm: Callable[[], object] | None = None


@dataclass(frozen=True)
class Peer:
    """A row of the table of peers."""

    name: str
    #: Distribution whose version is printed.
    package: str
    prepare: Callable[[Task], Prepared]
    #: What a reader of its figures has to know.
    note: str


def peer_in(folder: str, name: str, package: str, note: str) -> Peer:
    """A row whose module, of its name and `_`, is imported from a package when it prepares."""

    def prepare(task: Task) -> Prepared:
        module = importlib.import_module(f".{name}_", folder)
        made = module.prepare(task)
        assert isinstance(made, Prepared)
        return made

    return Peer(name, package, prepare, note)


def in_order(task: Task, who: str) -> None:
    """Leaves out a row whose operands are views, for peers whose tensors lie in C order alone."""
    if any(operand.view for operand in task.row.operands):
        raise LeftOut(f"{who} has no strides")


def no_in_place(task: Task, who: str) -> None:
    """Leaves out a row that is computed in place."""
    if task.row.in_place:
        raise LeftOut(f"{who} computes nothing in place")


def prepared_out(task: Task, who: str) -> Array:
    """The task's output, for peers that write into one that they were given before."""
    if task.out is None:
        raise LeftOut(f"{who} writes into an output that was bound before")
    return task.out
