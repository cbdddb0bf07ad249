"""Element types by name, as NumPy's dtypes."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ...errors import ModelError


def numpy_type(name: str) -> np.dtype[Any]:
    """NumPy's dtype of an element type; ml_dtypes adds bfloat16 and floats of 8 bits.

    Raises:
        ModelError: NumPy lacks it, and ml_dtypes is not installed or lacks it, too.

    >>> numpy_type("bfloat16").itemsize, numpy_type("int8")
    (2, dtype('int8'))
    """
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        importlib.import_module("ml_dtypes")
        return np.dtype(name)
    except ImportError:
        raise ModelError(f"NumPy has no {name} without ml_dtypes: pip install ml_dtypes") from None
    except TypeError:
        raise ModelError(f"neither NumPy nor ml_dtypes has the element type {name}") from None
