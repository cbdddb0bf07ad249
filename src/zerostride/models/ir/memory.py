"""Pause the garbage collector while a large model is processed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: Number of new objects above which one collection takes a tenth of a second, too long to pay.
_MANY = 500_000


@contextmanager
def uncollected() -> Iterator[None]:
    """Disables the garbage collector within the context.

    A model of 100,000 nodes becomes a million objects that stay alive and form no cycles. Repeated
    collections of them take a third of an audit's time (benchmarks/audit_scale.py).
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_count()[0] > _MANY and not gc.get_freeze_count():
                # Moves new objects to the oldest generation; otherwise the next allocation starts
                # a collection of all of them. Not done if other code has frozen objects, which
                # `unfreeze` would release. Not done after small models: cycles among objects of
                # the oldest generation may never be collected.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
