"""Delay a fork while a thread imports, or compiles on its first call.

A forked child has one thread, but copies of all locks. A lock that another thread held is never
released in the child, and the child waits for it forever. So a first call enters the gate, and a
fork waits until all threads have left the gate. A fork also waits for threads that import for this
package: Python has a lock for each module, and many functions import modules late.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType, TracebackType

#: A fork waits at most this long: a first call may itself wait for the thread that forks.
SECONDS = 30.0
#: Seconds between two looks at importing threads; no event reports the end of an import.
_BEAT = 0.001
_IMPORT = "<frozen importlib._bootstrap>"
#: A weak reference to the lock of each module that is imported now; `owner` is the thread.
_MODULE_LOCKS: dict[str, Callable[[], object]] = sys.modules["_frozen_importlib"]._module_locks
_PACKAGE = __name__.partition(".")[0]


class _Gate:
    """A context that any number of threads may be in, except while one of them forks."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside: Counter[int] = Counter()
        self._shut = 0
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
        """Waits until no other thread is inside, and lets none in until the gate is opened.

        Calls nest: each `shut` needs an `open`. Only the outermost call waits.
        """
        self._condition.acquire()
        try:
            if not self._shut:
                self._wait(time.monotonic() + SECONDS)
        finally:  # an interrupt is printed here, and the fork goes on to `open`
            self._shut += 1

    def _wait(self, end: float) -> None:
        me = {threading.get_ident()}
        # The wait releases Python's global lock. Afterwards other threads wait for that lock for
        # some time (sys.getswitchinterval), so none can begin an import between the last look and
        # the fork.
        while sys._current_frames().keys() != me and time.monotonic() < end:
            notified = self._condition.wait(_BEAT)
            if not notified and self._inside.keys() <= me and not _imports(me):
                return

    def open(self) -> None:
        """Lets threads in again."""
        self._shut -= 1
        self._condition.release()

    def _child(self) -> None:
        me = threading.get_ident()
        self._condition = threading.Condition()
        self._shut = 0
        self._inside = Counter({me: self._inside[me]} if self._inside[me] else {})


def _imports(but: set[int]) -> bool:
    """Whether a thread outside `but` imports a module, in this package or for it.

    Only the frames of threads that hold a module's lock are read: before Python 3.12, to read the
    frames of a thread that runs on can give objects that it has already freed.
    """
    owners = [getattr(lock(), "owner", None) for lock in list(_MODULE_LOCKS.values())]
    threads = {owner for owner in owners if isinstance(owner, int)} - but
    if not threads:
        return False
    frames = sys._current_frames()
    return any(_importing(frames.get(thread)) for thread in threads)


def _importing(frame: FrameType | None) -> bool:
    imports = in_package = False
    while frame is not None and not (imports and in_package):
        imports = imports or frame.f_code.co_filename == _IMPORT
        in_package = (
            in_package or str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE
        )
        frame = frame.f_back
    return imports and in_package


first_call = _Gate()

__all__ = ["first_call"]
