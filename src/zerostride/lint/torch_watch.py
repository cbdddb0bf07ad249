"""The watch of PyTorch's operations while strict mode is in force.

PyTorch has a stack of modes in each thread. The mode of `torch_mode` lies on a thread's stack as
long as a context that was opened in this thread may be in force: in the thread itself, or in a task
that was started inside. When the mode sees an accident it asks `strict_mode` whether a context is
in force here and now. So tasks and generators need no care. This module imports PyTorch only after
somebody else did.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from ..system.imports import when_imported

if TYPE_CHECKING:
    from ..core.strict_mode import Strict


#: The module that may import PyTorch.
_MODE = f"{__package__}.torch_mode"


class Thread(threading.local):
    """The watches of this thread.

    Attributes:
        watches: one object for each open watch. Another thread may remove one, if it is the last to
            drop a context.
        suspended: whether an optimiser's step runs, which is not watched.
    """

    def __init__(self) -> None:
        self.watches: set[object] = set()
        self.suspended = False

    def follow(self) -> None:
        """Puts the mode on this thread's stack, or takes it off."""
        mode = sys.modules.get(_MODE)
        if mode is not None:
            mode.put(bool(self.watches) and not self.suspended)


THREAD = Thread()
#: Open watches whose limits have `max_growth`, which also holds of operands of one rank.
GROWING: set[object] = set()


def opened(limits: Strict | None = None) -> Callable[[], None]:
    """Watches PyTorch's operations in this thread, also if PyTorch is imported later.

    Args:
        limits: those of the context; None for a watched test.

    Returns:
        A function that ends the watch. If another thread calls it, the mode stays on the stack of
        the first, without effect, until the next watch begins or ends there.
    """
    _wait_for_torch()
    watch, watches = object(), THREAD.watches
    watches.add(watch)
    if limits is not None and limits.max_growth is not None:
        GROWING.add(watch)
    THREAD.suspended = False  # an optimiser's step may have raised
    THREAD.follow()
    mode = sys.modules.get(_MODE)
    if mode is not None:
        mode.COMPILER.listen()

    def close() -> None:
        if sys is None or sys.is_finalizing():  # type: ignore[redundant-expr]
            return
        watches.discard(watch)
        GROWING.discard(watch)
        THREAD.suspended = False
        THREAD.follow()

    return close


def _wait_for_torch() -> None:
    """Loads the mode if PyTorch is there, or when it comes."""
    if hasattr(sys.modules.get(_MODE), "__all__"):  # its last name: it is there
        return
    torch = sys.modules.get("torch")
    if torch is None:
        when_imported("torch", _load)
    elif not getattr(torch.__spec__, "_initializing", False):
        import_module(_MODE)


def _load() -> None:
    import_module(_MODE)
    THREAD.follow()


__all__ = ["GROWING", "THREAD", "opened"]
