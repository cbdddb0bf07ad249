"""The functions that rewritten code calls: they check operands and return them.

`a - b` becomes `a - against(a, b)`, or `operator.sub(*pair(f(a), b))` if the left operand is more
than a name. The operation itself still runs in the user's own frame, so results are the same, and
warnings and tracebacks name the user's line.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from operator import (
    add,
    and_,
    eq,
    floordiv,
    ge,
    gt,
    le,
    lshift,
    lt,
    mod,
    mul,
    ne,
    or_,
    pow,
    rshift,
    sub,
    truediv,
    xor,
)
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from ..core.accidental import is_accident
from .accident import ALLOWED, WATCH, Accident, Shape, Watch, allowed
from .source import expression

#: Types without axes; most operands of most programs.
_PLAIN = frozenset({int, float, bool, complex, str, bytes, type(None), dict, set, frozenset})
#: Libraries whose arrays broadcast like NumPy's.
_LIBRARIES = frozenset({"numpy", "torch", "jax", "jaxlib", "cupy"})
#: Functions of NumPy that broadcast and are not ufuncs, with the number of operands that do.
_FUNCTIONS: dict[Any, int] = {np.where: 3, np.isclose: 2, np.allclose: 2}
#: Functions of PyTorch, by name.
_OF_TORCH = {
    **dict.fromkeys(
        (
            *("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "pow"),
            *("maximum", "minimum", "fmax", "fmin", "fmod", "remainder", "floor_divide", "atan2"),
            *("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"),
            *("hypot", "isclose", "allclose"),
        ),
        2,
    ),
    "where": 3,
}

# Called by rewritten code.


def against(left: Any, right: Any) -> Any:
    """Checks two operands and returns the right one."""
    __tracebackhide__ = True
    if type(left) is np.ndarray and type(right) is np.ndarray:
        if left.ndim != right.ndim and not _lies_on(left.shape, right.shape):
            _judge((left.shape, right.shape))
        return right
    try:
        plain = type(left) in _PLAIN or type(right) in _PLAIN
    except Exception:  # noqa: BLE001 - a metaclass may define its own hash
        return right
    if not plain:
        _look((left, right))
    return right


def pair(left: Any, right: Any) -> tuple[Any, Any]:
    """Checks two operands and returns both."""
    __tracebackhide__ = True
    against(left, right)
    return left, right


def _lies_on(left: Shape, right: Shape) -> bool:
    """Whether one shape is the end of the other: the fast path for the most frequent case."""
    if len(left) > len(right):
        return left[len(left) - len(right) :] == right
    return right[len(right) - len(left) :] == left


def args(function: Any, /, *arguments: Any) -> tuple[Any, ...]:
    """The operands of a function's call; checked if the function broadcasts."""
    __tracebackhide__ = True
    if not _are_one(arguments):
        count = _broadcasting(function)
        if count > 1:
            _look(arguments[:count])
    return arguments


def args_of(root: Any, path: str, /, *arguments: Any) -> tuple[Any, ...]:
    """The operands of a call of `root.path`; checked if that is a module's function that
    broadcasts. Attributes of other objects are not read, because they may compute.
    """
    __tracebackhide__ = True
    if not _are_one(arguments):
        for name in path.split("."):
            if type(root) is not ModuleType:
                return arguments
            root = vars(root).get(name)
        count = _broadcasting(root)
        if count > 1:
            _look(arguments[:count])
    return arguments


def _are_one(arguments: Sequence[Any]) -> bool:
    """Whether there are two arrays, and one lies on the other or both have one rank."""
    if len(arguments) != 2 or not type(arguments[0]) is type(arguments[1]) is np.ndarray:
        return False
    left, right = arguments
    return left.ndim == right.ndim or _lies_on(left.shape, right.shape)


def _broadcasting(function: Any) -> int:
    """The number of a function's operands that broadcast against each other."""
    if type(function) is np.ufunc:
        return int(function.nin) if function.signature is None else 0
    try:
        count = _FUNCTIONS.get(function, 0)
        name = getattr(function, "__name__", None)
        torch = sys.modules.get("torch")
        if not count and torch is not None and type(name) is str and name in _OF_TORCH:
            count = _OF_TORCH[name] if function is getattr(torch, name, None) else 0
    except Exception:  # noqa: BLE001 - it has no hash, or its name raises: not a known function
        return 0
    return count


def _look(operands: Sequence[Any]) -> None:
    __tracebackhide__ = True
    shapes = [_shape(operand) for operand in operands]
    if all(shape is None for shape in shapes):
        return
    listed = [_listed(o) if s is None else s for o, s in zip(operands, shapes, strict=True)]
    complete = tuple(shape for shape in listed if shape is not None)
    if len(complete) == len(listed):
        _judge(complete)


def _shape(operand: Any) -> Shape | None:
    """An array's shape; None if it is no array, or does not broadcast as NumPy's arrays do."""
    kind: Any = type(operand)
    try:
        # Reading the type or shape of an operand may raise: a metaclass may have no hash, a nested
        # tensor no shape. The user's operation must run nevertheless.
        shape = operand.shape if _is_array(kind) else None
        return tuple(shape) if isinstance(shape, tuple) else None
    except Exception:  # noqa: BLE001 - see above
        return None


@functools.lru_cache(1024)
def _is_array(kind: Any) -> bool:
    """Whether a type is an array type; dtypes and structures of shapes have a shape too."""
    bases = kind.__mro__[:-1]
    roots = {str(base.__module__).partition(".")[0] for base in bases}
    if roots.isdisjoint(_LIBRARIES) or issubclass(kind, np.matrix):
        return False
    tensor = getattr(sys.modules.get("torch"), "Tensor", np.ndarray)
    return issubclass(kind, (np.ndarray, np.generic, tensor)) or any(
        "__array_namespace__" in vars(base) for base in bases
    )


def _listed(operand: Any) -> Shape | None:
    """The shape that NumPy makes of numbers and lists beside an array."""
    kind = type(operand)
    if kind is int or kind is float or kind is bool or kind is complex:
        return ()
    if kind is not list and kind is not tuple:
        return None
    try:
        return tuple(np.shape(operand))
    except Exception:  # noqa: BLE001 - ragged, or an item refuses: the operation raises
        return None


# Reporting.


def _judge(shapes: tuple[Shape, ...]) -> None:
    __tracebackhide__ = True
    if WATCH.enabled and WATCH.report and is_accident(shapes) and not ALLOWED.get():
        place = expression(_caller())
        names = place.names(len(shapes))
        WATCH.report(Accident(place.path, place.line, place.text, names, shapes))


def _caller() -> FrameType:
    """The frame of the code under test."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    assert frame is not None
    return frame


__all__ = [
    "WATCH",
    "Accident",
    "Watch",
    "add",
    "against",
    "allowed",
    "and_",
    "args",
    "args_of",
    "eq",
    "floordiv",
    "ge",
    "gt",
    "is_accident",
    "le",
    "lshift",
    "lt",
    "mod",
    "mul",
    "ne",
    "or_",
    "pair",
    "pow",
    "rshift",
    "sub",
    "truediv",
    "xor",
]
