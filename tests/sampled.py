"""Parameters of which the light suite takes the first ones, and `pytest -m slow` the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(count: int, values: Iterable[Any]) -> list[Any]:
    """Parameters; those after the first `count` are marked as slow."""
    return [
        pytest.param(value, marks=[pytest.mark.slow] if place >= count else [])
        for place, value in enumerate(values)
    ]
