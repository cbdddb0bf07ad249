"""Delay a fork while a thread imports, or compiles on its first call.

A forked child has one thread, but copies of all locks. A lock that another thread held is never
released in the child, and the child waits for it forever. So a first call enters the gate, and a
fork waits until all threads have left the gate. A fork also waits for threads that import: Python
has a lock for each module, and many functions import modules late.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from weakref import WeakSet

#: A fork waits at most this long: a first call may itself wait for the thread that forks.
SECONDS = 30.0
#: A fork waits at most this long for imports of other packages: a program may run inside one.
FOREIGN_SECONDS = 5.0
#: Seconds between two looks at importing threads; no event reports the end of an import.
_BEAT = 0.001
#: Weak references to the locks of modules that are imported now, or were; `owner` is the thread
#: that imports, or None.
_MODULE_LOCKS: dict[str, Callable[[], object]] = sys.modules["_frozen_importlib"]._module_locks
_PACKAGE = __name__.partition(".")[0]


class _Gate:
    """A context that any number of threads may be in, except while one of them forks."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside: Counter[int] = Counter()
        self._shut = 0
        #: Locks of imports that outlasted a fork's patience: the next forks do not wait for them.
        self._endless: WeakSet[object] = WeakSet()
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
                self._wait(time.monotonic())
        finally:  # an interrupt is printed here, and the fork goes on to `open`
            self._shut += 1

    def _wait(self, begin: float) -> None:
        me = threading.get_ident()
        # The wait releases Python's global lock. Afterwards other threads wait for that lock for
        # some time (sys.getswitchinterval), so none can begin an import between the last look and
        # the fork.
        while _has_others(me) and (waited := time.monotonic() - begin) < SECONDS:
            if self._condition.wait(_BEAT) or self._inside.keys() - {me}:
                continue
            imports = _imports(me)
            foreign = [lock for name, lock in imports if name.partition(".")[0] != _PACKAGE]
            if waited > FOREIGN_SECONDS:
                self._endless.update(foreign)
            if len(foreign) == len(imports) and self._endless.issuperset(foreign):
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


def _has_others(me: int) -> bool:
    """Whether Python knows another thread; threads of C that call Python count, too."""
    return sys._current_exceptions().keys() != {me}


def _imports(me: int) -> list[tuple[str, object]]:
    """The modules that other threads import now, with their locks.

    The frames of the threads would tell which of them import for this package, but before Python
    3.12 they cannot be read: a frame that is being left gives an object of freed memory.
    """
    locks = [(name, lock()) for name, lock in list(_MODULE_LOCKS.items())]
    return [(name, lock) for name, lock in locks if getattr(lock, "owner", None) not in (None, me)]


first_call = _Gate()

__all__ = ["first_call"]
