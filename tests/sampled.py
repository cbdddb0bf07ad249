"""Test parameters: the first ones are for the light suite, the others for `pytest -m slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(count: int, values: Iterable[Any], *, unpack: bool = False) -> list[Any]:
    """Parameters; those after the first `count` are marked as slow.

    Args:
        count: how many stay in the light suite.
        values: one for each case.
        unpack: each value has one part for every name of the parameters.
    """
    return [
        pytest.param(
            *(value if unpack else (value,)), marks=[pytest.mark.slow] if place >= count else []
        )
        for place, value in enumerate(values)
    ]
