"""Normalisations written out, for libraries without such a function.

NumPy standardises the data, which broadcasts no operand. The library multiplies by the scale and
adds the bias, and places both by its own rule.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import Attrs, epsilon_of


def batch_normalisation(attrs: Attrs, x: Sequence[Any]) -> Any:
    """A batch normalisation; the library's rule places the vectors."""
    data, scale, bias, mean, variance = x
    return (data - mean) / (variance + epsilon_of(attrs)) ** 0.5 * scale + bias


def normalisations(
    enter: Callable[[Any], Any],
    multiply: Callable[[Any, Any], Any] = operator.mul,
    add: Callable[[Any, Any], Any] = operator.add,
) -> dict[str, Callable[[Attrs, Sequence[Any]], Any]]:
    """Functions of attributes and operands, by op.

    Args:
        enter: makes the library's array from NumPy's.
        multiply, add: the library's own.
    """

    def written(standardise: Callable[[Attrs, Any], Any]) -> Callable[..., Any]:
        def function(attrs: Attrs, x: Sequence[Any]) -> Any:
            result = multiply(enter(standardise(attrs, np.asarray(x[0]))), x[1])
            return result if len(x) < 3 else add(result, x[2])

        return function

    return {
        "LayerNormalization": written(_trailing),
        "RMSNormalization": written(_root_mean_square),
        "InstanceNormalization": written(_by_channel),
        "GroupNormalization": written(_by_group),
    }


def _standard(attrs: Attrs, data: Any, axes: tuple[int, ...]) -> Any:
    centred = data - data.mean(axes, keepdims=True)
    return _scaled(attrs, centred, axes)


def _scaled(attrs: Attrs, data: Any, axes: tuple[int, ...]) -> Any:
    return data / np.sqrt((data * data).mean(axes, keepdims=True) + epsilon_of(attrs))


def _axes(attrs: Attrs, data: Any) -> tuple[int, ...]:
    axis = attrs.get("axis", -1)
    return tuple(range(axis if axis >= 0 else axis + data.ndim, data.ndim))


def _trailing(attrs: Attrs, data: Any) -> Any:
    return _standard(attrs, data, _axes(attrs, data))


def _root_mean_square(attrs: Attrs, data: Any) -> Any:
    return _scaled(attrs, data, _axes(attrs, data))


def _by_channel(attrs: Attrs, data: Any) -> Any:
    return _standard(attrs, data, tuple(range(2, data.ndim)))


def _by_group(attrs: Attrs, data: Any) -> Any:
    grouped = data.reshape(data.shape[0], attrs["num_groups"], -1)
    return _standard(attrs, grouped, (2,)).reshape(data.shape)
