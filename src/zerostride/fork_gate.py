"""Floor 0: no fork happens while a thread imports or compiles on its first call.

A child of a fork has one thread, but the locks of all: one that another thread held is never
released there, and who needs it waits for ever. So the first call goes through the gate, and a fork
waits until all threads have left it.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from types import TracebackType

#: A fork waits no longer than this: a first call may itself wait for the thread that forks.
SECONDS = 30.0


class _Gate:
    """A context that any number of threads may be in, except while one of them forks."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside: Counter[int] = Counter()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self.shut, after_in_parent=self.open, after_in_child=self._child
            )

    def __enter__(self) -> None:
        with self._condition:
            self._inside[threading.get_ident()] += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        me = threading.get_ident()
        with self._condition:
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
                self._condition.notify_all()

    def shut(self) -> None:
        """Waits until no other thread is inside, and lets none in until it is opened."""
        me = {threading.get_ident()}
        self._condition.acquire()
        self._condition.wait_for(lambda: self._inside.keys() <= me, SECONDS)

    def open(self) -> None:
        """Lets threads in again."""
        self._condition.release()

    def _child(self) -> None:
        me = threading.get_ident()
        self._condition = threading.Condition()
        self._inside = Counter({me: self._inside[me]} if self._inside[me] else {})


first_call = _Gate()

__all__ = ["first_call"]
