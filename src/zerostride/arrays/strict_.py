"""array_api_strict: the generic adapter, with devices that are simulated in this memory."""

from __future__ import annotations

from typing import Any

from .generic import Generic


class Strict(Generic):
    """The adapter: other devices are in this memory too, but their arrays must not be mixed."""

    def is_here(self, array: Any) -> bool:
        """Whether an array is on the first device."""
        return str(array.device) == "array_api_strict.Device('CPU_DEVICE')"


ADAPTER = Strict()
