"""Programs of Paddle before release 3.0 (.pdmodel) as neutral graphs.

The file is a ProgramDesc in the format of Protocol Buffers (framework.proto): blocks of variables
and ops; an op has named slots of variables, and attributes. The first block is the main one.

- `feed` and `fetch` are the inputs and outputs, `fill_constant` and `assign_value` constants.
- A variable that is written again is a new tensor with a number: "x@2".
- Where the file has the stack of Python's calls (`op_callstack`), a node's origin is the line.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ....errors import ModelError, printable
from ...ir.files import content
from ...ir.graph import Body, FileShape, Graph, Node, Place, Value
from ...ir.origin import Origin
from ..wire import Malformed, Message
from .builder import MAX_DEPTH, Builder, checked
from .schema import DTYPES, OLD, PROGRAM, Old
from .weights import Weights

#: A network of 10,000 ops with the stacks of their calls has 30 MB.
MAX_FILE_BYTES = 1 << 26
#: Most variables of a file.
MAX_VARIABLES = 400_000
#: VarType.Type of a tensor.
_DENSE = 7
#: AttrType: the field of OpDesc.Attr, and whether it is a list.
_INT, _FLOAT, _STRING, _INTS, _FLOATS, _STRINGS, _BOOL, _BOOLS, _BLOCK, _LONG = range(10)
_LONGS, _FLOAT64S, _FLOAT64, _SCALAR, _SCALARS = 11, 12, 15, 16, 17
#: Attributes of every op that say nothing about its results.
_ADMINISTRATIVE = frozenset(
    {"op_callstack", "op_device", "op_namescope", "op_role", "op_role_var", "with_quant_attr"}
)
#: The operands of a constant that are not in the program, but computed.
_COMPUTED = ("ValueTensor", "ShapeTensor", "ShapeTensorList")
_FRAME = re.compile(r'^ {0,8}File "([^"\n]{1,4096})", line (\d{1,9}), in ')
#: Files of Paddle itself: a user does not edit them.
_LIBRARY = re.compile(r"[/\\]paddle[/\\]")


def read(path: Path, input_shapes: Mapping[str, FileShape]) -> Graph:
    """The graph of a .pdmodel file.

    Raises:
        ModelError: the file is not a program of Paddle; gives the reason.
    """
    beyond = "a program of Paddle has at most 64 MiB; its weights are in .pdiparams"
    data = content(path, ".pdmodel", MAX_FILE_BYTES, beyond)
    try:
        return _ProgramReader(path, input_shapes).graph(Message(memoryview(data)))
    except Malformed as error:
        raise ModelError(
            f"{path}: not a readable program of Paddle; truncated, or another format? "
            f"({printable(str(error))})"
        ) from None


@dataclass(frozen=True, slots=True)
class _Variable:
    shape: tuple[int, ...] | None
    dtype: str | None
    weight: bool


@dataclass(frozen=True, slots=True)
class _Op:
    kind: str
    inputs: Mapping[str, tuple[str, ...]]
    outputs: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, Any]
    block: int | None
    origin: Origin | None


_Scope = MutableMapping[str, Value]


class _ProgramReader:
    """Reads one program."""

    def __init__(self, path: Path, input_shapes: Mapping[str, FileShape]) -> None:
        self.builder = Builder(path, PROGRAM, input_shapes)
        self.blocks: list[Message] = []
        self.variables: dict[str, _Variable] = {}
        self.weights: Weights | None = None

    def graph(self, program: Message) -> Graph:
        """The graph."""
        self.blocks = program.messages(1)
        if not self.blocks:
            raise Malformed("it has no block")
        self._read_variables()
        names = [name for name, variable in self.variables.items() if variable.weight]
        self.weights = Weights(self.builder.file, names, self.builder.notes)
        nodes = self._nodes(0, {}, (), ())
        version = program.message(4)
        release = 0 if version is None else max(0, version.whole(1)) // 1_000_000
        return self.builder.graph(nodes, release)

    def _read_variables(self) -> None:
        for block in self.blocks:
            for message in block.messages(3):
                name = message.text(1)
                kind = message.message(2)
                if len(self.variables) >= MAX_VARIABLES:
                    raise Malformed(f"it has more than {MAX_VARIABLES:,} variables")
                if kind is None or kind.whole(1) != _DENSE:
                    continue
                outer = kind.message(3)
                tensor = None if outer is None else outer.message(1)
                if tensor is None:
                    continue
                shape = checked(tensor.wholes(2), name)
                sizes = tuple(max(size, -1) for size in shape)
                dtype = DTYPES.get(tensor.whole(1))
                self.variables.setdefault(name, _Variable(sizes, dtype, bool(message.whole(3))))

    # Values.

    def _get(self, name: str, scope: _Scope) -> Value | None:
        """A variable that an op reads."""
        if not name or name == "@EMPTY@":
            return None
        if name not in scope:
            assert self.weights is not None
            variable = self.variables.get(name, _Variable(None, None, False))
            title = self.builder.unique(name)
            if variable.weight:
                value = self.weights.value(title, variable.shape, variable.dtype)
            else:
                value = self.builder.result(title, variable.shape, variable.dtype)
            scope[name] = value
        return scope[name]

    def _result(self, name: str) -> Value:
        variable = self.variables.get(name, _Variable(None, None, False))
        return self.builder.result(name, variable.shape, variable.dtype)

    # Ops.

    def _ops(self, number: int) -> Iterator[_Op]:
        for message in self.blocks[number].messages(4):
            self.builder.count()
            kind = message.text(3)
            if not kind:
                raise Malformed("an op has no type")
            attributes, block, stack = _attributes(message.messages(4))
            yield _Op(
                kind,
                _slots(message.messages(1)),
                _slots(message.messages(2)),
                attributes,
                block,
                _origin(kind, stack),
            )

    def _nodes(self, number: int, scope: _Scope, path: tuple[str, ...], place: Place) -> list[Node]:
        nodes: list[Node] = []
        for position, op in enumerate(self._ops(number)):
            if op.kind == "feed":
                for name in _every(op.outputs):
                    variable = self.variables.get(name, _Variable(None, None, False))
                    scope[name] = self.builder.input(name, variable.shape, variable.dtype)
            elif op.kind == "fetch":
                values = [self._get(name, scope) for name in _every(op.inputs)]
                self.builder.outputs += [value for value in values if value is not None]
            elif not self._constant(op, scope):
                nodes += self._node(op, scope, path, (*place, position))
        return nodes

    def _constant(self, op: _Op, scope: _Scope) -> bool:
        """Whether the op only makes numbers of the program; if so, its result is a constant."""
        attributes = op.attributes
        shape = attributes.get("shape")
        dtype = DTYPES.get(attributes.get("dtype", -1))
        names = _every(op.outputs)
        whole = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
        computed = any(op.inputs.get(slot) for slot in _COMPUTED)
        if not whole or computed or dtype is None or len(names) != 1:
            return False
        numbers: Any = None
        if op.kind == "fill_constant":
            numbers = _filler(attributes)
        elif op.kind == "assign_value":
            keys = ("values", f"{dtype.replace('float', 'fp')}_values")
            numbers = next((attributes[key] for key in keys if attributes.get(key)), None)
        if numbers is None:
            return False
        scope[names[0]] = self.builder.literal(names[0], shape or (), dtype, numbers)
        return True

    def _node(self, op: _Op, scope: _Scope, path: tuple[str, ...], place: Place) -> list[Node]:
        row = OLD.get(op.kind)
        written = _every(op.outputs)
        name = f"{op.kind}/{written[0]}" if written else f"{op.kind}_{place[-1]}"
        nodes: list[Node] = []
        attributes = dict(op.attributes)
        if row is None or op.block is not None:
            operands = [self._get(argument, scope) for argument in _every(op.inputs)]
        else:
            operands = list(self._operands(op, row, name, scope, nodes, path))
            written = [argument for slot in row.outputs for argument in op.outputs.get(slot, ())]
            attributes |= {
                new: attributes.pop(old) for new, old in row.renamed.items() if old in attributes
            }
        if type(attributes.get("dtype")) is int:
            attributes["dtype"] = DTYPES.get(attributes["dtype"])
        bodies = tuple(self._bodies(op, name, scope, path, place))
        node = self.builder.node(
            op.kind,
            name,
            operands,
            [self._result(argument) for argument in written],
            attributes,
            path=path,
            place=place,
            origin=op.origin,
        )
        scope.update(zip(written, node.outputs, strict=True))
        return [*nodes, replace(node, bodies=bodies) if bodies else node]

    def _bodies(
        self, op: _Op, name: str, scope: _Scope, path: tuple[str, ...], place: Place
    ) -> Iterator[Body]:
        """The block that an op runs."""
        if op.block is None:
            return
        if len(path) > 2 * MAX_DEPTH:
            raise Malformed(f"blocks within blocks are deeper than {MAX_DEPTH}")
        if not 0 < op.block < len(self.blocks):
            raise Malformed(f"{name} runs the block {op.block}, which is not there")
        inner: _Scope = ChainMap({}, scope)
        nodes = self._nodes(op.block, inner, (*path, name, "body"), (*place, "body"))
        yield Body("body", (), (), tuple(nodes))

    def _operands(
        self,
        op: _Op,
        row: Old,
        name: str,
        scope: _Scope,
        nodes: list[Node],
        path: tuple[str, ...],
    ) -> Iterator[Value | None]:
        """The operands in PIR's order."""
        for alternatives in row.operands:
            if alternatives[0].endswith("*"):
                for argument in op.inputs.get(alternatives[0][:-1], ()):
                    yield self._get(argument, scope)
                continue
            for word in alternatives:
                value = self._operand(op, word, name, scope, nodes, path)
                if value is not None:
                    break
            else:
                value = None
            yield value

    def _operand(
        self,
        op: _Op,
        word: str,
        name: str,
        scope: _Scope,
        nodes: list[Node],
        path: tuple[str, ...],
    ) -> Value | None:
        """One source of an operand; None if it is not filled."""
        if not word:
            return None
        if word.startswith("@"):
            numbers = op.attributes.get(word[1:])
            many = numbers if isinstance(numbers, tuple) else (numbers,)
            if not many or not all(isinstance(item, (int, float)) for item in many):
                return None
            title = f"{name}~{word[1:]}"
            real = any(isinstance(item, float) for item in many)
            dtype = "float32" if real else "int64"
            shape = (len(many),) if isinstance(numbers, tuple) or real else ()
            return self.builder.literal(title, shape, dtype, many)
        arguments = op.inputs.get(word.rstrip("+"), ())
        if not arguments:
            return None
        values = [value for item in arguments if (value := self._get(item, scope)) is not None]
        if word.endswith("+") and values:
            more, joined = self.builder.joined(f"{name}~{word[:-1]}", values, path)
            nodes += more
            return joined
        return values[0] if values else None


def _slots(messages: Sequence[Message]) -> dict[str, tuple[str, ...]]:
    return {message.text(1): tuple(message.texts(2)) for message in messages}


def _every(slots: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [argument for arguments in slots.values() for argument in arguments]


def _filler(attributes: Mapping[str, Any]) -> float | None:
    """The number of a fill_constant; as a text where a float cannot hold it."""
    text = attributes.get("str_value")
    if isinstance(text, str) and text:
        try:
            return int(text) if re.fullmatch(r"-?\d{1,19}", text) else float(text)
        except ValueError:
            return None
    number = attributes.get("value", 0.0)
    return number if isinstance(number, (int, float)) else None


def _attributes(
    messages: Sequence[Message],
) -> tuple[dict[str, Any], int | None, tuple[str, ...]]:
    """An op's attributes, the block that it runs, and the stack of calls."""
    attributes: dict[str, Any] = {}
    block: int | None = None
    stack: tuple[str, ...] = ()
    for message in messages:
        name, kind = message.text(1), message.whole(2)
        if name == "op_callstack":
            stack = tuple(message.texts(8))
        elif kind == _BLOCK:
            block = message.whole(12)
        elif name not in _ADMINISTRATIVE:
            read = _READ.get(kind)
            if read is not None:
                attributes[name] = read(message)
    return attributes, block, stack


def _scalar(message: Message | None) -> Any:
    """A Scalar: a truth value, a whole number or a double."""
    if message is None:
        return None
    kind = message.whole(1)
    if kind == 3:
        return message.real(4, 8)
    return {1: bool(message.whole(2)), 2: message.whole(3)}.get(kind)


#: By AttrType: reads the value of an OpDesc.Attr.
_READ: Mapping[int, Any] = {
    _INT: lambda m: m.whole(3),
    _FLOAT: lambda m: m.real(4),
    _STRING: lambda m: m.text(5),
    _INTS: lambda m: m.wholes(6),
    _FLOATS: lambda m: m.reals(7),
    _STRINGS: lambda m: tuple(m.texts(8)),
    _BOOL: lambda m: bool(m.whole(10)),
    _BOOLS: lambda m: tuple(map(bool, m.wholes(11))),
    _LONG: lambda m: m.whole(13),
    _LONGS: lambda m: m.wholes(15),
    _FLOAT64S: lambda m: m.reals(16, 8),
    _FLOAT64: lambda m: m.real(19, 8),
    _SCALAR: lambda m: _scalar(m.message(20)),
    _SCALARS: lambda m: tuple(map(_scalar, m.messages(21))),
}


def _origin(kind: str, stack: Sequence[str]) -> Origin | None:
    """The user's line: the innermost frame outside of Paddle."""
    lines = "\n".join(stack[:200]).split("\n")
    place: Origin | None = None
    for line, code in zip(lines, [*lines[1:], ""], strict=True):
        frame = _FRAME.match(line)
        if frame and not _LIBRARY.search(frame[1]):
            place = Origin("", kind, frame[1], int(frame[2]), code.strip()[:200])
    return place


__all__ = ["read"]
