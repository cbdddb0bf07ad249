"""Computing by a library's own functions, over the shapes that a Plan aligned.

It serves arrays that the engine cannot read: on another device, or traced. A namespace is defined
by the array API standard. Operands are laid out and converted before it gets them, so every rule
holds and dtypes are NumPy's. 16-bit floats are computed in float32 and rounded once.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compute.native import promote
from ..compute.semantics import WEAK, values_of
from ..compute.special import HALVES, is_float
from ..ops import OPS, Op
from . import functions

_EXACT_IN_16_BITS = frozenset({"bool", "int8", "uint8"})


@dataclass(frozen=True, slots=True)
class Space:
    """A library's functions, and where its arrays lie.

    Attributes:
        xp: the namespace.
        name: the library's, for messages.
        device: where new arrays are made.
        own: functions of the library for ops that the namespace lacks.
    """

    xp: Any
    name: str
    device: Any
    own: Any = None

    def dtype(self, name: str, what: str) -> Any:
        """The library's dtype of NumPy's name.

        Raises:
            TypeError: the library lacks it.
        """
        dtype = getattr(self.xp, "bool" if name == "bool" else name, None)
        if dtype is None:
            raise TypeError(
                f"{what} is {name} by NumPy's promotion, and {self.name} has no {name} here; "
                "convert the operands, or ask for another dtype"
            )
        return dtype

    def number(self, value: Any, dtype: Any) -> Any:
        """A number as an array of rank 0."""
        return self.xp.asarray(value, dtype=dtype, device=self.device)

    def function(self, name: str) -> Any:
        """The function that computes an op.

        Raises:
            TypeError: the namespace lacks the op, and functions to compose it of.
        """
        if self.own and name in self.own:
            return self.own[name]
        for needed in functions.NEEDS.get(name, ()):
            self.function(needed)
        if name in (compositions := self._compositions()):
            return compositions[name]
        function = getattr(self.xp, name, None)
        if function is None or name not in functions.NAMED:
            raise TypeError(
                f"{self.name}'s namespace has no {name}; move the arrays to this processor's memory"
            )
        return function

    def _compositions(self) -> Mapping[str, functions.Composition]:
        if self.own or not isinstance(self.xp, Hashable):
            return functions.compositions(self.xp, self.own or {})
        return _compositions(self.xp)


_compositions = functools.lru_cache(16)(functions.compositions)


@functools.lru_cache(4096)
def _dtypes(name: str, kinds: tuple[str, ...], dtype: str | None) -> tuple[str, ...] | None:
    """The dtypes in which an op computes operands of these kinds, the result's last.

    Returns:
        Names of dtypes; None where the operands become `dtype` and the result has another dtype.

    Raises:
        TypeError: the op has no meaning for them.
    """
    try:
        return promote(OPS[name], kinds, dtype)
    except TypeError as error:
        raise TypeError(f"{name} of {' and '.join(kinds)}: {error}") from error


def kind_of(operand: Any, dtype: np.dtype[Any] | None) -> str:
    """An operand's kind for promotion: its dtype, or the type of a Python number."""
    return type(operand).__name__ if dtype is None else dtype.name


def apply(
    space: Space,
    op: Op,
    operands: Sequence[Any],
    dtypes: Sequence[np.dtype[Any] | None],
    asked: np.dtype[Any] | None = None,
) -> Any:
    """An op on arrays whose shapes the namespace broadcasts.

    Args:
        space: the library's functions.
        op: a row of the op table.
        operands: arrays, and Python numbers.
        dtypes: NumPy's dtypes of the arrays, None for numbers.
        asked: the dtype to compute in.
    """
    if op.name == "cast":
        assert asked is not None
        return converted(space, operands[0], dtypes[0] or np.dtype(type(operands[0])), asked)
    kinds = tuple(map(kind_of, operands, dtypes))
    names = _dtypes(op.name, kinds, None if asked is None else asked.name)
    if names is None:
        assert asked is not None
        first = op.operands - len(values_of(op, operands))
        operands = [
            *operands[:first],
            *(
                converted(space, value, dtype, asked)
                if dtype is not None
                else space.number(
                    _fitting(value, asked.name, op.name), space.dtype(asked.name, op.name)
                )
                for value, dtype in zip(operands[first:], dtypes[first:], strict=True)
            ),
        ]
        return apply(space, op, operands, [*dtypes[:first], *[asked] * (len(operands) - first)])
    decided = _beyond(space, op, operands, names)
    if decided is not None:
        return decided
    return computed(space, op.name, operands, dtypes, names)


def computed(
    space: Space,
    name: str,
    operands: Sequence[Any],
    dtypes: Sequence[np.dtype[Any] | None],
    names: Sequence[str],
) -> Any:
    """An op with each operand in its dtype of `names`, and the result in the last one."""
    inner = [_inner(name, dtype_name) for dtype_name in names[: len(operands)]]
    values = [
        _as(space, operand, dtype, rounded, to, name)
        for operand, dtype, rounded, to in zip(operands, dtypes, names, inner, strict=False)
    ]
    try:
        result = space.function(name)(*values)
    except TypeError as error:
        of = " and ".join(dict.fromkeys(inner))
        raise TypeError(f"{space.name} has no {name} of {of} of its own: {error}") from error
    wanted = space.dtype(names[-1], f"{name} of these operands")
    return result if result.dtype == wanted else space.xp.astype(result, wanted)


def _inner(name: str, dtype: str) -> str:
    """The dtype in which the namespace computes."""
    if name in functions.LOGICAL:
        return "bool"
    if dtype in HALVES and name not in functions.OF_BITS:
        return "float32"
    return "uint8" if dtype == "bool" and name not in functions.OF_BOOLS else dtype


def _as(
    space: Space, value: Any, source: np.dtype[Any] | None, rounded: str, to: str, what: str
) -> Any:
    """An operand in dtype `to`; for an op of 16-bit floats it is rounded to these first."""
    if source is None:
        if rounded in HALVES and type(value) is not bool:
            value = float(np.asarray(value, np.dtype(rounded)))
        return space.number(_fitting(value, to, what), space.dtype(to, what))
    steps = [source.name]
    if rounded in HALVES and source.name not in (rounded, *_EXACT_IN_16_BITS):
        steps.append(rounded)
    if steps[-1] != to:
        steps.append(to)
    for name in steps[1:]:
        if name == "bool":  # the standard does not cast complex numbers to bool
            return value != 0
        value = space.xp.astype(value, space.dtype(name, what))
    return value


def _fitting(value: Any, to: str, what: str) -> Any:
    """A Python number that a dtype holds."""
    if to == "bool":
        return bool(value)
    if np.dtype(to).kind in "iu" and isinstance(value, int):
        info = np.iinfo(to)
        if what == "where" and abs(value) < 1 << 63:  # numpy.where is not a ufunc: it wraps around
            return int(np.asarray(value).astype(to))
        if not info.min <= value <= info.max:
            raise OverflowError(f"{what}: Python integer {value} out of bounds for {to}")
        return int(value)
    return complex(value) if np.dtype(to).kind == "c" else float(value) if to[0] == "f" else value


def _beyond(space: Space, op: Op, operands: Sequence[Any], names: Sequence[str]) -> Any:
    """A comparison with a Python integer that the other operand's dtype does not hold, or None."""
    if op.name not in functions.COMPARISONS:
        return None
    for k, operand in enumerate(operands):
        dtype = np.dtype(names[k])
        if type(operand) is not int or dtype.kind not in "iu":
            continue
        info = np.iinfo(dtype)
        if info.min <= operand <= info.max:
            continue
        pair: list[Any] = [0, 0]
        pair[k] = 1 if operand > info.max else -1
        answer = bool(getattr(np, op.numpy)(*pair))
        other = operands[1 - k]
        if type(other) in WEAK:
            return None
        return space.xp.full_like(other, answer, dtype=space.xp.bool)
    return None


def converted(space: Space, x: Any, source: np.dtype[Any], to: np.dtype[Any]) -> Any:
    """A cast with a defined result for every value, as `zerostride.cast`."""
    if source.kind == "c" and to.kind != "c":
        raise TypeError(f"complex numbers have no value in {to}; cast their real part")
    wanted = space.dtype(to.name, "the cast")
    if source == to:
        return x
    if to.kind not in "iu" or not is_float(source):
        return space.xp.astype(x, wanted)
    if source.itemsize < 4:
        x = space.xp.astype(x, space.xp.float32)
    return functions.saturated(space.xp, x, wanted)


def laid(space: Space, array: Any, aligned: Sequence[int]) -> Any:
    """An operand in its aligned shape."""
    shape = tuple(aligned)
    return array if tuple(array.shape) == shape else space.xp.reshape(array, shape)


def over(space: Space, array: Any, shape: Sequence[int]) -> Any:
    """An array broadcast to a shape."""
    wanted = tuple(shape)
    return array if tuple(array.shape) == wanted else space.xp.broadcast_to(array, wanted)
