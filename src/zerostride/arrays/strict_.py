"""array_api_strict: the generic adapter, and devices that are only said to be elsewhere."""

from __future__ import annotations

from typing import Any

from .generic import Generic


class Strict(Generic):
    """Its other devices are in this memory, too, but arrays there have to stay among themselves."""

    def is_here(self, array: Any) -> bool:
        """Whether it is on the first device."""
        return str(array.device) == "array_api_strict.Device('CPU_DEVICE')"


ADAPTER = Strict()
