"""Shared parts of the tests of strict mode with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import zerostride as zs


def refused(call: Callable[[], Any]) -> zs.BroadcastError | None:
    """The refusal of a call, or None."""
    try:
        call()
    except zs.BroadcastError as error:
        return error
    return None


def modes() -> int:
    """How many modes lie on this thread's stack."""
    import torch

    count: int = torch._C._len_torch_function_stack()
    return count
