"""A progress bar on a terminal, for tasks that take long enough."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..report import shown

#: Fewer nodes than this are judged before a user could read a progress bar.
MANY_NODES = 2000

Progress = Callable[[int, int], None]


def bar(title: str, least: int = 1, every: int = 1) -> AbstractContextManager[Progress | None]:
    """A bar on the error output; no bar if that is not a terminal, or escapes are not wanted.

    Args:
        title: the things that are counted.
        least: for fewer things there is no bar.
        every: the bar moves once for so many things.
    """
    escapes = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return _Bar(title, least, every) if sys.stderr.isatty() and escapes else nullcontext()


def of_nodes(title: str) -> AbstractContextManager[Progress | None]:
    """A bar for nodes, of which thousands are judged in a second."""
    return bar(title, MANY_NODES, 256)


class _Bar(AbstractContextManager["Progress | None"]):
    def __init__(self, title: str, least: int, every: int) -> None:
        self.title = title
        self.least = least
        self.every = every
        self.bar: Any = None

    def __enter__(self) -> Progress:
        return self.update

    def update(self, done: int, total: int) -> None:
        """Shows that `done` of `total` are done."""
        if total < self.least or (done % self.every and done != total):
            return
        if self.bar is None:
            from rich.console import Console
            from rich.markup import escape
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )

            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self.bar.start()
            self.task = self.bar.add_task(escape(shown(self.title, 60)), total=total)
        self.bar.update(self.task, completed=done)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
