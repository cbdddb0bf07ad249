"""What the tests of strict mode with PyTorch share: their marks, and an accident."""

from __future__ import annotations

from typing import Any

import pytest

from zerostride.core.strict_mode import FAULTS

torch = pytest.importorskip("torch", reason="the watch is PyTorch's own mode")

#: Each module of such tests has these as its `pytestmark`.
MARKS = [
    pytest.mark.conformance,
    pytest.mark.usefixtures("empty_stack"),
    pytest.mark.skipif(bool(FAULTS), reason="".join(FAULTS)),
]
COLUMN, VECTOR = torch.rand(6, 1), torch.rand(6)


def subtract() -> Any:
    """An accident: every number of the column less every number of the vector."""
    return COLUMN - VECTOR
