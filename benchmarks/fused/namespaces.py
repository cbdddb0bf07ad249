"""NumPy as `xp`: in float32, and in float64 for the expected values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..rows import Array, dtype_of


def erf(x: Array, out: Array | None = None) -> Any:
    """SciPy's, since NumPy has none; one number after another without it."""
    try:
        from scipy.special import erf as of
    except ImportError:
        made = np.empty_like(x) if out is None else out
        made[...] = np.vectorize(math.erf, otypes=[np.float64])(x)
        return made
    return of(x, out=out)


@dataclass(frozen=True)
class Functions:
    """A library's functions, by the names that `functions` calls them by."""

    #: dtypes, as `cast` takes them.
    real: Any
    bfloat16: Any
    cast: Callable[[Any, Any], Any]
    where: Callable[[Any, Any, Any], Any]
    maximum: Callable[[Any, Any], Any]
    minimum: Callable[[Any, Any], Any]
    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    sqrt: Callable[[Any], Any]
    tanh: Callable[[Any], Any]
    erf: Callable[[Any], Any]
    sigmoid: Callable[[Any], Any]
    sum: Callable[..., Any]
    mean: Callable[..., Any]
    max: Callable[..., Any]


def _cast(x: Array, dtype: np.dtype[Any]) -> Array:
    return x.astype(dtype)


def numpy_functions(real: str, bfloat16: str) -> Functions:
    """NumPy's functions; `real` and `bfloat16` name the dtypes that are taken for these."""
    return Functions(
        real=dtype_of(real),
        bfloat16=dtype_of(bfloat16),
        cast=_cast,
        where=np.where,
        maximum=np.maximum,
        minimum=np.minimum,
        exp=np.exp,
        log=np.log,
        sqrt=np.sqrt,
        tanh=np.tanh,
        erf=erf,
        sigmoid=lambda x: 1 / (1 + np.exp(-x)),
        sum=np.sum,
        mean=np.mean,
        max=np.max,
    )


float32 = numpy_functions("float32", "bfloat16")
#: What is right is computed with these.
float64 = numpy_functions("float64", "float64")
