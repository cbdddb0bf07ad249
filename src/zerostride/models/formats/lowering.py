"""Writes a format's ops as ONNX nodes of exactly the same meaning: one mechanism for all formats.

A format has a table with a row for each op type that ONNX can express, and calls :func:`lower_by`.
A row is the name of an ONNX op of one operand, the name of a formula of :data:`FORMULAS`,
:func:`becomes` (an op, its operands and attributes), or a function that writes several nodes with a
:class:`NodeWriter`. A row raises :class:`NoEquivalent` where ONNX has no exact equivalent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ...errors import BroadcastError, ModelError
from ...ops.floats import in_single
from ..ir.element_types import numpy_type
from ..ir.graph import Array, FileShape, Node, Value

#: The op set of the nodes: axes are operands in it, and GroupNormalization is by channel.
VERSION = 21
#: An end beyond every size, for a slice to the last index.
FAR = 2**31 - 1
#: ONNX, TensorProto.DataType, by NumPy's names.
ELEMENT_TYPES: Mapping[str, int] = MappingProxyType(
    {
        "float32": 1,
        "uint8": 2,
        "int8": 3,
        "uint16": 4,
        "int16": 5,
        "int32": 6,
        "int64": 7,
        "bool": 9,
        "float16": 10,
        "float64": 11,
        "uint32": 12,
        "uint64": 13,
        "bfloat16": 16,
    }
)
_NAMES = {number: name for name, number in ELEMENT_TYPES.items()}
#: Ops whose result has another type than their operands.
_RESULT_TYPES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("Shape", "Size", "ArgMax", "ArgMin", "NonZero"), "int64"),
        **dict.fromkeys(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"), "bool"),
        **dict.fromkeys(("And", "Or", "Xor", "Not", "IsNaN", "IsInf"), "bool"),
    }
)


class NoEquivalent(Exception):  # noqa: N818 - an answer, not a fault
    """ONNX has no exact equivalent of a node."""


class NodeWriter:
    """Writes the ONNX nodes that replace one node of a format.

    Attributes:
        node: the format's node.
        nodes: the ONNX nodes so far.
    """

    #: Exceptions that mean "no equivalent" in rows.
    refusals: tuple[type[Exception], ...] = (NoEquivalent, ModelError, BroadcastError)

    def __init__(self, node: Node) -> None:
        self.node = node
        self.nodes: list[Node] = []

    # Operands.

    def optional(self, position: int) -> Value | None:
        """An operand; None if it is left out."""
        inputs = self.node.inputs
        return inputs[position] if 0 <= position < len(inputs) else None

    def input(self, position: int = 0) -> Value:
        """An operand that must be present."""
        value = self.optional(position)
        if value is None:
            raise NoEquivalent
        return value

    def inputs(self) -> list[Value]:
        """All operands, which must be present."""
        return [self.input(position) for position in range(len(self.node.inputs))]

    def sizes(self, value: Value) -> tuple[Any, ...]:
        """A value's sizes; its rank must be known."""
        if value.shape is None:
            raise NoEquivalent
        return value.shape

    def numbers(self, value: Value) -> tuple[int, ...]:
        """A value's sizes, which must be numbers."""
        sizes = self.sizes(value)
        if not value.known:
            raise NoEquivalent
        return sizes

    def rank(self, position: int = 0) -> int:
        """The rank of an operand, which must be known."""
        return len(self.sizes(self.input(position)))

    def content(self, position: int) -> tuple[int, ...]:
        """The whole numbers of a constant operand."""
        content = self.input(position).content
        if content is None or not all(isinstance(number, int) for number in content):
            raise NoEquivalent
        return tuple(number for number in content if isinstance(number, int))

    def one(self, position: int) -> int:
        """The only number of a constant operand."""
        numbers = self.content(position)
        if len(numbers) != 1:
            raise NoEquivalent
        return numbers[0]

    def dtype(self, position: int = 0) -> str:
        """The element type of an operand, which must be known."""
        dtype = self.input(position).dtype
        if dtype is None:
            raise NoEquivalent
        return dtype

    # Attributes.

    def _attribute(self, key: str | int, default: Any, kind: Any) -> Any:
        value = self.node.attributes.get(str(key), default)
        if not isinstance(value, kind):
            raise NoEquivalent
        return value

    def whole(self, key: str | int, default: int | None = None) -> int:
        """An attribute that is a whole number; without a default it must be present."""
        return int(self._attribute(key, default, int))

    def real(self, key: str | int, default: float | None = None) -> float:
        """An attribute that is a number; without a default it must be present."""
        return float(self._attribute(key, default, int | float))

    def flag(self, key: str | int) -> bool:
        """An attribute that is a truth value, false by default."""
        return bool(self.node.attributes.get(str(key), False))

    def text(self, key: str | int, default: str = "") -> str:
        """An attribute that is a word, in lower case."""
        return str(self.node.attributes.get(str(key), default)).lower()

    def listed(self, key: str | int, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """An attribute that is a list of whole numbers; one number is a list of one."""
        value = self._attribute(key, default, tuple | int | str)
        values = () if value == "" else value if isinstance(value, tuple) else (value,)
        if not all(isinstance(item, int) for item in values):
            raise NoEquivalent
        return tuple(map(int, values))

    # Constants.

    def _constant(self, shape: tuple[int, ...], dtype: str, numbers: tuple[Any, ...]) -> Value:
        name = f"{self.node.name}~{len(self.nodes)}"
        if dtype.startswith(("int", "uint", "bool")):
            return Value(name, shape, True, numbers, declared=shape, dtype=dtype)

        def source() -> Array:
            return np.array(numbers, numpy_type(dtype)).reshape(shape)

        return Value(name, shape, True, declared=shape, reals=numbers, dtype=dtype, source=source)

    def ints(self, *numbers: int, dtype: str = "int64") -> Value:
        """A constant vector of whole numbers: axes, sizes."""
        return self._constant((len(numbers),), dtype, numbers)

    def reals(self, *numbers: float) -> Value:
        """A constant vector of 32-bit floats."""
        return self._constant((len(numbers),), "float32", tuple(map(float, numbers)))

    def number(self, number: float, dtype: str = "float32") -> Value:
        """A constant that is one number of a type.

        Raises:
            NoEquivalent: an integer type has no such number.
        """
        if dtype.startswith(("int", "uint")):
            if not math.isfinite(number):
                raise NoEquivalent
            return self._constant((), dtype, (int(number),))
        rounded = in_single(number) if dtype == "float32" else float(number)
        return self._constant((), dtype, (rounded,))

    # Nodes.

    def op(
        self,
        op: str,
        *operands: Value | None,
        shape: FileShape = None,
        dtype: str | None = None,
        **attributes: Any,
    ) -> Value:
        """Writes a node; returns its result."""
        return self.several(op, 1, *operands, shape=shape, dtype=dtype, **attributes)[0]

    def several(
        self,
        op: str,
        count: int,
        *operands: Value | None,
        shape: FileShape = None,
        dtype: str | None = None,
        **attributes: Any,
    ) -> tuple[Value, ...]:
        """Writes a node of several results, all of one type."""
        constant = all(value is None or value.constant for value in operands)
        kind = dtype or _result_type(op, operands, attributes)
        name = f"{self.node.name}~{len(self.nodes)}"
        results = tuple(
            Value(f"{name}.{k}" if k else name, shape, constant, dtype=kind) for k in range(count)
        )
        self._write(op, operands, results, attributes)
        return results

    def last(self, op: str, *operands: Value | None, **attributes: Any) -> None:
        """Writes the last node: its results and bodies are those of the node that is translated."""
        self._write(op, operands, self.node.outputs, attributes)

    def result(self, position: int, op: str, *operands: Value | None, **attributes: Any) -> None:
        """Writes the node whose result is this one of the node that is translated."""
        if position >= len(self.node.outputs):
            raise NoEquivalent
        self._write(op, operands, (self.node.outputs[position],), attributes)

    def finish(self, value: Value) -> None:
        """Makes a value, of the newest node or an operand, the result of the translated node."""
        if not self.nodes or self.nodes[-1].outputs[0] is not value:
            self.last("Identity", value)
            return
        newest = self.nodes.pop()
        self.last(newest.op, *newest.inputs, **newest.attributes)

    def _write(
        self,
        op: str,
        operands: Sequence[Value | None],
        outputs: tuple[Value, ...],
        attributes: Mapping[str, Any],
    ) -> None:
        own = self.node
        kept = {key: value for key, value in attributes.items() if value is not None}
        bodies = own.bodies if outputs is own.outputs else ()
        # Messages name the file's node, so every node has its name and place.
        self.nodes.append(
            Node(
                own.name, op, "", VERSION, tuple(operands), outputs, MappingProxyType(kept),
                own.scope, bodies, own.place,
            )
        )  # fmt: skip

    # Operands in another form.

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """A value in a shape of numbers; itself if it has that shape."""
        sizes = tuple(shape)
        if value.shape == sizes:
            return value
        literal = 1 if 0 in sizes else None
        return self.op("Reshape", value, self.ints(*sizes), shape=sizes, allowzero=literal)

    def block(self, value: Value, axis: int, size: int, k: int) -> Value:
        """The k-th of the blocks of `size` elements along an axis."""
        bounds = self.ints(k * size), self.ints((k + 1) * size)
        return self.op("Slice", value, *bounds, self.ints(axis))

    def blocks(self, value: Value, axis: int, size: int, order: Sequence[int]) -> Value:
        """The blocks of `size` elements along an axis, in another order."""
        parts = [self.block(value, axis, size, k) for k in order]
        return self.op("Concat", *parts, axis=axis)

    def transposed(self, value: Value) -> Value:
        """A value with its last two axes exchanged."""
        sizes = self.sizes(value)
        rank = len(sizes)
        order = (*range(rank - 2), rank - 1, rank - 2)
        return self.op("Transpose", value, shape=tuple(sizes[k] for k in order), perm=order)


def _result_type(
    op: str, operands: Sequence[Value | None], attributes: Mapping[str, Any]
) -> str | None:
    """The element type of a node's results, from its operands."""
    if op == "Cast":
        return _NAMES.get(attributes["to"])
    if op in _RESULT_TYPES:
        return _RESULT_TYPES[op]
    typed = operands[1:] if op == "Where" else operands
    return next((value.dtype for value in typed if value is not None), None)


Writer = TypeVar("Writer", bound=NodeWriter)
#: Writes the nodes of one op type.
Function: TypeAlias = Callable[[Writer], None]
#: A row of a format's table.
Row: TypeAlias = "Function[Writer] | str"


#: Reads one fact of the format's node for a row.
Getter: TypeAlias = Callable[[Any], Any]


def whole(key: str | int, default: int | None = None) -> Getter:
    """The format's attribute `key`, a whole number."""
    return methodcaller("whole", key, default)


def real(key: str | int, default: float | None = None) -> Getter:
    """The format's attribute `key`, a real number."""
    return methodcaller("real", key, default)


def flag(key: str | int) -> Getter:
    """The format's attribute `key`, a truth value, as 0 or 1."""
    return lambda w: int(w.flag(key))


def one(position: int) -> Getter:
    """The only number of a constant operand."""
    return methodcaller("one", position)


def if_given(position: int) -> Getter:
    """An operand that may be left out."""
    return methodcaller("optional", position)


def choice(key: str | int, words: Mapping[str, Any], default: str = "") -> Getter:
    """The value of `words` for the format's attribute `key`; no equivalent for another word."""

    def read(w: NodeWriter) -> Any:
        word = w.text(key, default)
        if word not in words:
            raise NoEquivalent
        return words[word]

    return read


#: Stands for all operands in `becomes`.
EVERY = -1


def becomes(op: str, *operands: int | Getter, **attributes: Any) -> Function[Any]:
    """A row: one ONNX op.

    Args:
        op: the ONNX op.
        operands: positions of required operands (EVERY: all), or functions that make operands; the
            first operand by default.
        attributes: numbers and words, or functions that read them.
    """

    def write(w: Any) -> None:
        values: list[Value | None] = []
        for operand in operands or (0,):
            if operand == EVERY:
                values += w.inputs()
            else:
                values.append(w.input(operand) if isinstance(operand, int) else operand(w))
        given = {key: item(w) if callable(item) else item for key, item in attributes.items()}
        w.last(op, *values, **given)

    return write


def checked(check: Callable[[Any], None], row: Row[Any]) -> Function[Any]:
    """A row with a check before it, which raises NoEquivalent."""

    def write(w: Any) -> None:
        check(w)
        written_by(row)(w)

    return write


def written_by(row: Row[Any]) -> Function[Any]:
    """The function of a row."""
    if not isinstance(row, str):
        return row
    formula = FORMULAS.get(row)
    return becomes(row) if formula is None else lambda w: formula(w, w.input())


def table(*rows: Mapping[str, Row[Any]] | tuple[str, Row[Any]]) -> Mapping[str, Row[Any]]:
    """A table from rows by op type, and pairs of several op types and their row."""
    entries: dict[str, Row[Any]] = {}
    for part in rows:
        entries.update(
            part if isinstance(part, Mapping) else dict.fromkeys(part[0].split(), part[1])
        )
    return MappingProxyType(entries)


def lower_by(row: Row[Writer] | None, writer: Writer) -> tuple[Node, ...] | None:
    """A node as ONNX nodes by its op's row; None without an equivalent."""
    if row is None or not writer.node.outputs:
        return None
    try:
        written_by(row)(writer)
    except writer.refusals:
        return None
    return tuple(writer.nodes)


# Formulas of one operand.


def _squared(w: NodeWriter, x: Value) -> None:
    w.last("Mul", x, x)


def _logarithm(base: float) -> Callable[[NodeWriter, Value], None]:
    return lambda w, x: w.last("Div", w.op("Log", x), w.number(math.log(base)))


def _truncated(w: NodeWriter, x: Value) -> None:
    w.last("Mul", w.op("Sign", x), w.op("Floor", w.op("Abs", x)))


#: Functions of one operand that ONNX writes with several ops.
FORMULAS: Mapping[str, Callable[[NodeWriter, Value], None]] = MappingProxyType(
    {
        "square": _squared,
        "rsqrt": lambda w, x: w.last("Reciprocal", w.op("Sqrt", x)),
        "log10": _logarithm(10),
        "log1p": lambda w, x: w.last("Log", w.op("Add", x, w.number(1.0))),
        "expm1": lambda w, x: w.last("Sub", w.op("Exp", x), w.number(1.0)),
        "erfc": lambda w, x: w.last("Sub", w.number(1.0), w.op("Erf", x)),
        "silu": lambda w, x: w.last("Mul", x, w.op("Sigmoid", x)),
        "trunc": _truncated,
        "gelu_tanh": lambda w, x: w.last("Gelu", x, approximate="tanh"),
    }
)


# Formulas that several formats share.


def squared_difference(w: NodeWriter, a: Value, b: Value, shape: FileShape = None) -> None:
    """(a − b)²."""
    difference = w.op("Sub", a, b, shape=shape)
    w.last("Mul", difference, difference)


def stacked(w: NodeWriter) -> None:
    """Stacking along `axis`: adds an axis to each operand and joins along it."""
    axis = w.whole("axis", 0)
    parts = [w.op("Unsqueeze", value, w.ints(axis)) for value in w.inputs()]
    w.last("Concat", *parts, axis=axis)
