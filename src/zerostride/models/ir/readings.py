"""The readings of a model file, kept for the later steps of a command.

A port reads the model for the audit and for each editor, and reads what it wrote to check it.
Inside :func:`readings_kept`, a function under :func:`once_per_file` works once on the same bytes of
a file. The bytes are read every time, so a file that has changed is parsed again.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from .graph import Graph

_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")
#: Files whose readings are kept: the model, and what was written of it last.
_MOST_FILES = 2


@dataclass(frozen=True, slots=True)
class _Readings:
    """The results of functions on one file's bytes; keys with identities keep their objects."""

    data: bytes
    results: dict[Hashable, tuple[Any, object]] = field(default_factory=dict)


_kept: ContextVar[OrderedDict[str, _Readings] | None] = ContextVar("readings", default=None)


@contextmanager
def readings_kept() -> Iterator[None]:
    """Keeps readings until the block ends."""
    token = _kept.set(OrderedDict())
    try:
        yield
    finally:
        _kept.reset(token)


def once_per_file(read: Callable[[Path, bytes], _T]) -> Callable[[Path, bytes], _T]:
    """Decorates a function of a file and its bytes, whose result nobody changes."""

    @functools.wraps(read)
    def kept(file: Path, data: bytes) -> _T:
        files = _kept.get()
        if files is None:
            return read(file, data)
        readings = files.get(str(file))
        if readings is None or readings.data != data:
            readings = files[str(file)] = _Readings(data)
        files.move_to_end(str(file))
        while len(files) > _MOST_FILES:
            files.popitem(last=False)
        if read not in readings.results:
            readings.results[read] = read(file, data), None
        result: _T = readings.results[read][0]
        return result

    return kept


def once_per_graph(work: Callable[[Graph, _K], _T]) -> Callable[[Graph, _K], _T]:
    """Decorates a function of a graph and of a question, whose result nobody changes."""

    @functools.wraps(work)
    def kept(graph: Graph, question: _K) -> _T:
        files = _kept.get()
        readings = None if files is None else files.get(graph.path)
        if readings is None:
            return work(graph, question)
        key = work, id(graph), question
        if key not in readings.results:
            readings.results[key] = work(graph, question), graph
        result: _T = readings.results[key][0]
        return result

    return kept
