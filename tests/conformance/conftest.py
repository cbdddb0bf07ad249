"""Engines are started once for all verifications of a run: loading them takes most of the time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from zerostride.verification.process import engines_kept


@pytest.fixture(scope="session", autouse=True)
def engines() -> Iterator[None]:
    with engines_kept():
        yield
