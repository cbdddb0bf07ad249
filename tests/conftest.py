"""The whole suite judges by the newest measured rows, whichever releases are installed."""

from __future__ import annotations

import gc
import os

os.environ.setdefault("ZEROSTRIDE_RELEASES", "newest")


def pytest_collection_finish() -> None:
    """Twelve thousand tests are objects that no later collection of garbage need look at."""
    gc.collect()
    gc.freeze()
