"""Stands in for NumPy in the browser, where the page has none: `numpy` in the page's zip file.

An audit of ncnn's text computes with no array, but the library's modules read NumPy's names when
they are imported: in tables, and as types. Each name is a class here, so tables can hold it and
`isinstance` is false. A call of one raises `NeedsNumPy`. The library does not know that error, so
no part of an audit takes it for an answer.
"""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import Any

__all__ = ["ERRORS", "NeedsNumPy", "e", "inf", "nan", "newaxis", "pi"]
__version__ = "0 (absent)"
newaxis = None


class NeedsNumPy(Exception):  # noqa: N818 - says what is needed
    """A computation with arrays, which the page cannot do."""


#: The errors that the page shows as they are.
ERRORS = (NeedsNumPy,)


class _Name(type):
    """The type of NumPy's names: they may be read and indexed (`NDArray[Any]`), not called."""

    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise NeedsNumPy(
            f"this needs NumPy ({cls.__name__}), which this page does not have: "
            "pip install zerostride, and run the command zerostride audit"
        )

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _name(f"{cls.__name__}.{name}")

    def __getitem__(cls, _: Any) -> Any:
        return cls


def _name(name: str) -> Any:
    return _Name(name, (), {})


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = globals()[name] = _name(name)
    return value
