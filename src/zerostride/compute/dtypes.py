"""The dtype that a caller asks for, as NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..sizes import brief


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """NumPy's dtype for anything that NumPy understands as one.

    Raises:
        TypeError: NumPy does not understand it.

    >>> as_dtype("float32"), as_dtype(int)
    (dtype('float32'), dtype('int64'))
    """
    try:
        result: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError):  # NumPy's own words name its internals
        words = f"{brief(dtype)} is no dtype; write one as 'float32' or np.float32"
        raise TypeError(words) from None
    return result
