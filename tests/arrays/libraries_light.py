"""Arrays for the tests of this folder: NumPy's, and array_api_strict's on two devices."""

import numpy as np
import pytest


def of_numpy(values, dtype=None):
    return np.asarray(values, dtype)


def of_strict(values, dtype=None):
    strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed")
    return strict.asarray(np.asarray(values, dtype))


def of_strict_elsewhere(values, dtype=None):
    strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed")
    return strict.asarray(np.asarray(values, dtype), device=strict.Device("device1"))


#: What makes an array, by what the tests call it.
MAKERS = {"numpy": of_numpy, "strict": of_strict, "elsewhere": of_strict_elsewhere}


def values_of(array):
    """NumPy's array of what one of these functions made."""
    return np.from_dlpack(array) if hasattr(array, "__dlpack__") else np.asarray(array)
