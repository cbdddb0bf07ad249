"""Test parameters: the first ones are for the light suite, the others for `pytest -m slow`."""

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
