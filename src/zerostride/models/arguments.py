"""The arguments that the functions on models share: their types, checked before anything runs."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar

from ..errors import ArgumentError
from ..sizes import brief

Function = TypeVar("Function", bound=Callable[..., Any])


class Kind(NamedTuple):
    """The types of an argument, besides None where that is its default."""

    types: tuple[type, ...]
    words: str
    least: int | None = None


_PATH = Kind((str, os.PathLike), "the path of a file, such as 'model.onnx'")

KINDS = {
    "via": Kind((str,), "the name of a converter, such as 'pnnx', or 'none'"),
    "layout": Kind((str,), "the name of a layout, such as 'nhwc'"),
    "node": Kind((str,), "the name of a node"),
    "output": _PATH,
    "args": Kind((tuple, list), "the module's example inputs in a tuple, such as (x,)"),
    "kwargs": Kind((Mapping,), "the module's example inputs by name, such as {'x': x}"),
    "inputs": Kind((Mapping,), "arrays by the names of the inputs, such as {'x': x}"),
    "sizes": Kind((Mapping,), "numbers by name, such as {'N': 4}"),
    "input_shapes": Kind((Mapping, tuple, list), "shapes by name, such as {'x': (1, 3, 224, 224)}"),
    "seed": Kind((Integral,), "a whole number from 0", 0),
    "cases": Kind((Integral,), "a whole number from 1", 1),
    "timeout": Kind((Real,), "a number of seconds, such as 60"),
    "pythons": Kind((Mapping,), "interpreters by engine, such as {'ncnn': 'venv/bin/python'}"),
    "progress": Kind((Callable,), "a function"),  # type: ignore[arg-type]
}


def checked(function: Function) -> Function:
    """The function; its arguments that KINDS knows are of their kind, or an ArgumentError says so.

    >>> @checked
    ... def sized(sizes=None):
    ...     return sizes
    >>> sized(3)
    Traceback (most recent call last):
    ...
    zerostride.errors.ArgumentError: sizes is 3; it is numbers by name, such as {'N': 4}
    """
    signature = inspect.signature(function)
    defaults = {name: row.default for name, row in signature.parameters.items() if name in KINDS}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            if len(args) > 1 and "multiple values" in str(error):
                raise ArgumentError(f"{error}: a module's example inputs are args=(x,)") from None
            return function(*args, **kwargs)  # raises the error that says so
        for name, default in defaults.items():
            _check(name, given.get(name, default), default)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def _check(name: str, value: Any, default: Any) -> None:
    kind = KINDS[name]
    if value is default:
        return
    fits = isinstance(value, kind.types) and not isinstance(value, bool)
    if not fits or (kind.least is not None and value < kind.least):
        raise ArgumentError(f"{name} is {brief(value)}; it is {kind.words}")
