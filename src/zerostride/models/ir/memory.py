"""Working on large models without the collector of cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: New objects whose search takes longer than is worth it, a tenth of a second.
_MANY = 500_000


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for cycles as long as the context lasts.

    A model of 100,000 nodes becomes a million objects that all stay, none of them in a cycle.
    Looking through them again and again takes Python a third of an audit's time
    (benchmarks/audit_scale.py).
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_count()[0] > _MANY and not gc.get_freeze_count():
                # What is new is made old. Else the next object that is made starts a search through
                # all of it; what others have frozen is not ours to thaw. After small models the
                # search is due: what is made old may never be looked through, cycles in it stay.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
