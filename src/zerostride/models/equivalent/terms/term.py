"""Terms: what a tensor of a model is, in one form for both models.

A term is an input, a constant, a view of another term, or an op of terms. Equal terms are one
object, whichever model they come from: :class:`Terms` keeps each once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....sizes.atoms import Symbol
from ....sizes.dim import Number, plain
from ...ir.graph import Array
from .places import Places, evaluated, index, lone_axis

Shape = tuple[Number, ...]
#: Elements of a constant that is computed here.
MOST_ELEMENTS = 1 << 24
#: The ops that terms have beside those of ONNX.
_UNRANKED = "unranked"
INPUT, CONSTANT, VIEW, SIZES = "input", "constant", "view", "sizes"
SUM, PRODUCT, DOT, REDUCE, CONCAT = "sum", "product", "dot", "reduce", "concat"
#: Element-wise ops, beside sums and products, whose operands may come in any order.
COMMUTATIVE = frozenset(
    ["Max", "Min", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor"]
)
UNORDERED = COMMUTATIVE | {SUM, PRODUCT, DOT}


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A tensor.

    Attributes:
        number: its place in the table; a term comes after its arguments.
        op: what computes it.
        args: the terms that it is computed of.
        shape: its sizes.
        attributes: what else it depends on.
        places: of a view.
        dtype: its element type, as far as it is known.
        data: the numbers of a constant.
        computed: whether a constant is computed here, so that it may be off by many roundings.
    """

    number: int
    op: str
    args: tuple[Term, ...]
    shape: Shape
    attributes: tuple[Any, ...] = ()
    places: Places = ()
    dtype: str | None = None
    data: Array | None = field(default=None, repr=False)
    computed: bool = False

    @property
    def base(self) -> Term:
        """The term that a view reads; the term itself if it is no view."""
        return self.args[0] if self.op == VIEW else self

    @property
    def ranked(self) -> bool:
        """Whether its rank is known."""
        return not (self.attributes and self.attributes[-1] == _UNRANKED)

    @property
    def constant(self) -> bool:
        """Whether it is a view of a constant, or one."""
        return self.base.op == CONSTANT

    @property
    def number_of(self) -> Any:
        """The one number of a constant that has it everywhere; None for other terms."""
        base = self.base
        return base.data[()] if base.data is not None and base.data.ndim == 0 else None


class Terms:
    """All terms of two models, each once."""

    def __init__(self) -> None:
        self.every: list[Term] = []
        self._numbers: dict[Any, Term] = {}

    def get(
        self,
        op: str,
        args: Sequence[Term] = (),
        shape: Sequence[Number] | None = (),
        attributes: tuple[Any, ...] = (),
        *,
        places: Places = (),
        dtype: str | None = None,
        data: Array | None = None,
        computed: bool = False,
    ) -> Term:
        """The term; the same object for the same arguments. A shape of None: of unknown rank."""
        if shape is None:
            shape, attributes = (), (*attributes, _UNRANKED)
        sizes = tuple(map(plain, shape))
        digest = None if data is None else (str(data.dtype), data.shape, digest_of(data))
        key = (op, tuple(arg.number for arg in args), sizes, attributes, places, digest)
        term = self._numbers.get(key)
        if term is None:
            rest = sizes, attributes, places, dtype, data, computed
            term = Term(len(self.every), op, tuple(args), *rest)
            self.every.append(term)
            self._numbers[key] = term
        return term

    def constant(self, array: Array, *, computed: bool = False) -> Term:
        """A constant: a view of its numbers without the axes along which they are all alike.

        Args:
            array: the numbers.
            computed: whether they are computed here.
        """
        kept = [axis for axis in range(array.ndim) if _varies(array, axis)]
        first = tuple(slice(None) if axis in kept else 0 for axis in range(array.ndim))
        base = np.array(array[first], order="C") if array.size else array
        if not array.size:
            kept = list(range(array.ndim))
        kind = str(base.dtype)
        term = self.get(CONSTANT, (), base.shape, dtype=kind, data=base, computed=computed)
        if base.shape == array.shape:
            return term
        places = tuple(index(axis) for axis in kept)
        return self.get(VIEW, (term,), array.shape, places=places, dtype=term.dtype)


def digest_of(array: Array) -> bytes:
    """A digest of an array's numbers: 0 and -0 are alike."""
    if array.dtype.kind in "OSU":
        return hashlib.sha256(repr(array.tolist()).encode()).digest()
    if array.dtype.kind in "fc":
        array = array + array.dtype.type(0)  # -0 + 0 is 0
    return hashlib.sha256(array.tobytes()).digest()


def _varies(array: Array, axis: int) -> bool:
    """Whether an array has different numbers along an axis."""
    if array.shape[axis] < 2 or not array.size:
        return False
    first, second = array.take(0, axis), array.take(1, axis)
    if not np.array_equal(first, second, equal_nan=array.dtype.kind in "fc"):
        return True
    every = np.broadcast_to(np.expand_dims(first, axis), array.shape)
    return not np.array_equal(array, every, equal_nan=array.dtype.kind in "fc")


def numbers_of(term: Term, most: int = MOST_ELEMENTS) -> Array | None:
    """The numbers of a constant or of a view of one; None where sizes are open, or it is large."""
    base = term.base
    if base.data is None or not all(isinstance(size, int) for size in term.shape):
        return None
    shape = tuple(int(size) for size in term.shape if isinstance(size, int))
    if np.prod(shape, dtype=object) > most:
        return None
    if term is base:
        return base.data
    return np.array(_read(base.data, term.places, shape))


def _read(data: Array, places: Places, shape: tuple[int, ...]) -> Array:
    """The numbers that a view of this shape reads."""
    if not places:
        return np.broadcast_to(data, shape)
    values: dict[Symbol, Any] = {}
    for axis, size in enumerate(shape):
        along = [-1 if k == axis else 1 for k in range(len(shape))]
        values[index(axis).symbols[0]] = np.arange(size).reshape(along)
    where = (evaluated(place, values) for place in places)
    return np.broadcast_to(data[tuple(np.broadcast_arrays(*where))], shape)


def plain_axes(term: Term) -> tuple[int, ...] | None:
    """The axes of a view along which its base's axes lie, one each; None for another view."""
    if term.op != VIEW:
        return tuple(range(len(term.shape)))
    axes = []
    for place, size in zip(term.places, term.base.shape, strict=True):
        axis = lone_axis(place)
        if axis is None or size != term.shape[axis]:
            return None
        axes.append(axis)
    return tuple(axes) if len(set(axes)) == len(axes) else None


__all__ = [
    "COMMUTATIVE",
    "CONCAT",
    "CONSTANT",
    "DOT",
    "INPUT",
    "MOST_ELEMENTS",
    "PRODUCT",
    "REDUCE",
    "SIZES",
    "SUM",
    "UNORDERED",
    "VIEW",
    "Shape",
    "Term",
    "Terms",
    "numbers_of",
    "plain_axes",
]
