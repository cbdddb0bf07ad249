"""PIR programs (.json), Paddle's format since release 3.0, as neutral graphs.

The file is JSON: `base_code` names the format, `program` has regions of blocks of ops. Keys: "#" a
type, with the number of its dialect ("1.add": 1 is pd_op); "%" the number of a value; "A" the
attributes, "N" their names and "AT" their values; "I" the operands, "O" the results, "TT" their
types, "D" the data of a type or an attribute. An op of type "p" is a weight.
Source: PaddlePaddle/Paddle 3.3, paddle/fluid/pir/serialize_deserialize, and files that it wrote.

- `builtin.combine`, `split` and `slice` make lists of tensors and take them apart: no nodes.
- A value has no name in the file: it is named after its number, as Paddle prints it, but from 1.
"""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ....errors import ModelError, printable
from ...ir.files import content
from ...ir.graph import Body, FileShape, Graph, Node, Place, Value
from ..wire import Malformed
from .builder import MAX_DEPTH, Builder
from .schema import DOMAIN, PIR, PIR_TYPES
from .weights import Weights

#: A network of 10,000 ops has 4 MB. Python's objects take up to 30 times the memory of their text.
MAX_FILE_BYTES = 1 << 25
#: Numbers of dialects: builtin, pd_op, cf.
_BUILTIN, _OPERATOR, _CONTROL = "0", "1", "2"
#: The domain of ops of other dialects: custom ops.
CUSTOM_DOMAIN = "paddle custom"
#: Operands that are lists stay several operands.
VARIADIC = frozenset(
    {
        *("concat", "stack", "add_n", "meshgrid", "broadcast_tensors", "einsum", "multi_dot"),
        *("rnn", "coalesce_tensor", "check_numerics", "multiplex"),
    }
)
#: Ops whose results after the first are statistics for training; they are left out if unread.
_NORMS = frozenset({"batch_norm", "layer_norm", "instance_norm", "group_norm"})
#: The bodies of ops with regions.
_BODIES: Mapping[str, tuple[str, ...]] = {"if": ("then_branch", "else_branch"), "while": ("body",)}


def read(path: Path, input_shapes: Mapping[str, FileShape]) -> Graph:
    """The graph of a .json file.

    Raises:
        ModelError: the file is not a PIR program of Paddle; gives the reason.
    """
    beyond = "a program of Paddle has at most 32 MiB; its weights are in .pdiparams"
    data = content(path, ".json", MAX_FILE_BYTES, beyond)
    try:
        program = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not readable JSON: {printable(str(error))[:200]}") from None
    if not isinstance(program, dict) or _magic(program) != "pir":
        raise ModelError(f'{path}: not a program of Paddle: its base_code has no magic "pir"')
    try:
        return _PirReader(path, input_shapes).graph(program)
    except Malformed as error:
        raise ModelError(f"{path}: a malformed program: {printable(str(error))}") from None


def _magic(program: Mapping[str, Any]) -> Any:
    code = program.get("base_code")
    return code.get("magic") if isinstance(code, dict) else None


# Parts of JSON, each checked for its type.


def _list(entry: Mapping[str, Any], key: str) -> list[Any]:
    value = entry.get(key, [])
    if not isinstance(value, list):
        raise Malformed(f"{key!r} is no list")
    return value


def _objects(entry: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    values = _list(entry, key)
    if not all(isinstance(value, dict) for value in values):
        raise Malformed(f"{key!r} is no list of objects")
    return values


def _number(entry: object, key: str) -> int:
    value = entry.get(key) if isinstance(entry, dict) else None
    if type(value) is not int or abs(value) >= 1 << 63:
        raise Malformed(f"{key!r} is no number: {printable(str(value))[:60]}")
    return value


class _Tensor(NamedTuple):
    """The type of a tensor; None for a part that is unknown."""

    shape: tuple[int, ...] | None = None
    dtype: str | None = None


def _types(entry: object) -> _Tensor | tuple[_Tensor, ...]:
    """The type of a value: a tensor, or a list of tensors."""
    kind, data = _kind(entry)
    if kind == "t_vec":
        if not isinstance(data, list):
            raise Malformed("a list of types is no list")
        return tuple(_tensor(part) for part in data)
    return _tensor(entry)


def _tensor(entry: object) -> _Tensor:
    kind, data = _kind(entry)
    if kind not in ("t_dtensor", "t_dense_tensor") or not isinstance(data, list) or len(data) < 2:
        return _Tensor()
    sizes = data[1]
    if not isinstance(sizes, list) or not all(type(size) is int for size in sizes):
        raise Malformed("the sizes of a tensor are no list of numbers")
    if any(abs(size) >= 1 << 63 for size in sizes):
        raise Malformed("a size of a tensor is too large")
    # Paddle multiplies open sizes, too: -4 is 4 times an unknown one.
    return _Tensor(tuple(max(size, -1) for size in sizes), PIR_TYPES.get(_kind(data[0])[0]))


def _kind(entry: object) -> tuple[str, Any]:
    """The name of a type or an attribute without its dialect, and its data."""
    if not isinstance(entry, dict):
        return "", None
    return str(entry.get("#", "")).rpartition(".")[2], entry.get("D")


def _attribute(entry: object, depth: int = 0) -> Any:
    """An attribute as Python's value."""
    kind, data = _kind(entry)
    if isinstance(data, list):
        if depth > 2:
            raise Malformed("lists within lists in an attribute")
        if kind == "a_array":
            return tuple(_attribute(item, depth + 1) for item in data)
        return tuple(item for item in data if isinstance(item, (int, float, str)))
    return data if isinstance(data, (int, float, str)) else None


def _attributes(op: Mapping[str, Any]) -> dict[str, Any]:
    pairs = {str(entry.get("N")): _attribute(entry.get("AT")) for entry in _objects(op, "A")}
    return {name: value for name, value in pairs.items() if value is not None}


#: A value by its number: a tensor, a list of tensors; None: an operand that is left out.
_Scope = MutableMapping[int, "Value | tuple[Value, ...] | None"]


class _PirReader:
    """Reads one program."""

    def __init__(self, path: Path, input_shapes: Mapping[str, FileShape]) -> None:
        self.builder = Builder(path, PIR, input_shapes)
        self.weights: Weights | None = None
        #: The numbers of values that an op reads.
        self.read: set[int] = set()

    def graph(self, program: Mapping[str, Any]) -> Graph:
        """The graph."""
        inner = program.get("program")
        blocks = self._blocks(inner if isinstance(inner, dict) else {})
        if len(blocks) != 1:
            raise Malformed(f"it has {len(blocks)} main blocks")
        ops = _objects(blocks[0], "ops")
        names = [name for op in ops if (name := _weight(op)) is not None]
        self.weights = Weights(self.builder.file, names, self.builder.notes)
        self._read_by(ops)
        nodes, _ = self._nodes(ops, {}, (), ())
        code = program["base_code"].get("version", 0)
        return self.builder.graph(nodes, code if isinstance(code, int) and code >= 0 else 0)

    def _read_by(self, ops: Sequence[Mapping[str, Any]], depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise Malformed(f"blocks within blocks are deeper than {MAX_DEPTH}")
        for op in ops:
            self.read.update(_number(entry, "%") for entry in _objects(op, "I"))
            for block in self._blocks(op):
                self._read_by(_objects(block, "ops"), depth + 1)

    def _blocks(self, op: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [block for region in _objects(op, "regions") for block in _objects(region, "blocks")]

    def _nodes(
        self,
        ops: Sequence[Mapping[str, Any]],
        scope: _Scope,
        path: tuple[str, ...],
        place: Place,
    ) -> tuple[list[Node], tuple[Value | None, ...]]:
        """The nodes of a block, and the values that it yields."""
        nodes: list[Node] = []
        yields: tuple[Value | None, ...] = ()
        parts = _parts(ops)
        for position, op in enumerate(ops):
            self.builder.count()
            dialect, _, kind = str(op.get("#", "")).rpartition(".")
            if (weight := _weight(op)) is not None:
                self._put_weight(op, weight, scope)
            elif dialect == _BUILTIN and kind in ("combine", "split", "slice"):
                self._list_op(kind, op, scope)
            elif dialect == _CONTROL and kind == "yield":
                yields = tuple(value for value in self._operands(op, scope, nodes, "", path, True))
            else:
                here = (*place, position)
                nodes += self._node(kind, dialect, op, scope, parts, path, here)
        return nodes, yields

    # Values.

    def _put_weight(self, op: Mapping[str, Any], name: str, scope: _Scope) -> None:
        assert self.weights is not None
        result = op.get("O")
        result = result[0] if isinstance(result, list) and result else result
        kind = _types(result.get("TT") if isinstance(result, dict) else None)
        if not isinstance(kind, _Tensor):
            raise Malformed(f"the weight {name!r} is a list")
        value = self.weights.value(self.builder.unique(name), kind.shape, kind.dtype)
        scope[_number(result, "%")] = value

    def _list_op(self, kind: str, op: Mapping[str, Any], scope: _Scope) -> None:
        """Makes a list of tensors, or takes one apart."""
        operands = [scope.get(_number(entry, "%")) for entry in _objects(op, "I")]
        results = [_number(entry, "%") for entry in _objects(op, "O")]
        if kind == "combine":
            if not all(isinstance(value, Value) for value in operands) or len(results) != 1:
                raise Malformed("a list of other things than tensors")
            scope[results[0]] = tuple(value for value in operands if isinstance(value, Value))
            return
        parts = operands[0] if len(operands) == 1 else None
        if not isinstance(parts, tuple):
            raise Malformed(f"{kind} of something that is no list")
        if kind == "slice":
            index = _attributes(op).get("index")
            if type(index) is not int or not 0 <= index < len(parts):
                raise Malformed(f"a list of {len(parts)} has no part {index}")
            parts = (parts[index],)
        if len(results) != len(parts):
            raise Malformed(f"a list of {len(parts)} is split into {len(results)}")
        scope.update(zip(results, parts, strict=True))

    def _operands(
        self,
        op: Mapping[str, Any],
        scope: _Scope,
        nodes: list[Node],
        name: str,
        path: tuple[str, ...],
        several: bool,
    ) -> list[Value | None]:
        """The operands; a list of tensors is several of them, or one list of numbers."""
        operands: list[Value | None] = []
        for entry in _objects(op, "I"):
            number = _number(entry, "%")
            if number and number not in scope:
                raise Malformed(f"an operand is the value {number}, which is not there")
            value = scope.get(number)
            if not isinstance(value, tuple):
                operands.append(value)
            elif several or not value:
                operands += value
            else:
                more, joined = self.builder.joined(name, value, path)
                nodes += more
                operands.append(joined)
        return operands

    def _results(
        self, op: Mapping[str, Any], scope: _Scope, parts: Mapping[int, Sequence[int]]
    ) -> list[tuple[int, _Tensor | tuple[_Tensor, ...], list[Value]]]:
        """The results: the number in the file, the type and the tensors of each."""
        results = []
        statistics = str(op.get("#")).rpartition(".")[2].rstrip("_") in _NORMS
        for position, entry in enumerate(_objects(op, "O")):
            number, kind = _number(entry, "%"), _types(entry.get("TT"))
            if statistics and position and number not in self.read:
                continue
            if isinstance(kind, _Tensor):
                values = [self.builder.result(f"%{number}", kind.shape, kind.dtype)]
            else:
                names = parts.get(number, ())
                if len(names) != len(kind):
                    names = ()
                values = [
                    self.builder.result(
                        f"%{names[k]}" if names else f"%{number}.{k}", part.shape, part.dtype
                    )
                    for k, part in enumerate(kind)
                ]
            results.append((number, kind, values))
        return results

    # Nodes.

    def _node(
        self,
        kind: str,
        dialect: str,
        op: Mapping[str, Any],
        scope: _Scope,
        parts: Mapping[int, Sequence[int]],
        path: tuple[str, ...],
        place: Place,
    ) -> list[Node]:
        """The node of an op, after nodes that make its operands; none for a constant."""
        attributes = _attributes(op)
        numbers = [_number(entry, "%") for entry in _objects(op, "O")]
        if dialect == _OPERATOR and kind in ("data", "feed"):
            self._input(op, attributes, scope)
            return []
        constant = None
        if dialect == _OPERATOR and len(numbers) == 1:
            constant = self._constant(kind, f"%{numbers[0]}", attributes)
        if constant is not None:
            scope[numbers[0]] = constant
            return []
        nodes: list[Node] = []
        module = str(attributes.pop("struct_name", "")).strip("/")
        name = f"{kind.rstrip('_')}_{numbers[0] if numbers else place[-1]}"
        name = f"{module}/{name}" if module else name
        domain = DOMAIN if dialect == _OPERATOR else CUSTOM_DOMAIN
        several = domain != DOMAIN or kind.rstrip("_") in VARIADIC
        operands = self._operands(op, scope, nodes, name, path, several)
        if domain == DOMAIN and kind == "fetch":
            self.builder.outputs += [value for value in operands if value is not None]
            return nodes
        results = self._results(op, scope, parts)
        node = self.builder.node(
            kind,
            name,
            operands,
            [value for _, _, values in results for value in values],
            attributes,
            path=path,
            place=place,
            domain=domain,
        )
        left = list(node.outputs)
        for number, type_, values in results:
            mine, left = left[: len(values)], left[len(values) :]
            scope[number] = mine[0] if isinstance(type_, _Tensor) else tuple(mine)
        bodies = tuple(self._bodies(kind, op, scope, (*path, name), place))
        return [*nodes, replace(node, bodies=bodies) if bodies else node]

    def _input(self, op: Mapping[str, Any], attributes: Mapping[str, Any], scope: _Scope) -> None:
        for entry in _objects(op, "O"):
            number, kind = _number(entry, "%"), _types(entry.get("TT"))
            tensor = kind if isinstance(kind, _Tensor) else _Tensor()
            name = str(attributes.get("name", f"%{number}"))
            scope[number] = self.builder.input(name, tensor.shape, tensor.dtype)

    def _constant(self, kind: str, name: str, attributes: Mapping[str, Any]) -> Value | None:
        """The constant of an op that only makes numbers of the program; None for other ops."""
        dtype = attributes.get("dtype")
        if dtype not in PIR_TYPES.values():
            return None
        if kind == "full_int_array":
            numbers = attributes.get("value")
            if isinstance(numbers, tuple):
                return self.builder.literal(name, (len(numbers),), str(dtype), numbers)
        if kind in ("full", "assign_value_", "assign_value"):
            numbers = attributes.get("value" if kind == "full" else "values")
            shape = attributes.get("shape")
            whole = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
            if whole and isinstance(numbers, (int, float) if kind == "full" else tuple):
                return self.builder.literal(name, shape or (), str(dtype), numbers)
        return None

    def _bodies(
        self,
        kind: str,
        op: Mapping[str, Any],
        scope: _Scope,
        path: tuple[str, ...],
        place: Place,
    ) -> list[Body]:
        """The blocks that an op runs."""
        blocks = self._blocks(op)
        if blocks and len(path) > 2 * MAX_DEPTH:
            raise Malformed(f"blocks within blocks are deeper than {MAX_DEPTH}")
        keys = _BODIES.get(kind, ())
        bodies = []
        for k, block in enumerate(blocks):
            key = keys[k] if k < len(keys) else f"body_{k}"
            inner: _Scope = ChainMap({}, scope)
            inputs = []
            for entry in _objects(block, "args"):
                number, type_ = _number(entry, "#"), _types(entry.get("TT"))
                tensor = type_ if isinstance(type_, _Tensor) else _Tensor()
                value = self.builder.result(f"{path[-1]}%{-number}", tensor.shape, tensor.dtype)
                inner[number] = value
                inputs.append(value)
            ops = _objects(block, "ops")
            nodes, yields = self._nodes(ops, inner, (*path, key), (*place, key))
            bodies.append(Body(key, tuple(inputs), yields, tuple(nodes)))
        return bodies


def _weight(op: Mapping[str, Any]) -> str | None:
    """The name of the weight that an op declares; None for other ops."""
    if op.get("#") == "p":
        words = [word for word in _list(op, "A") if isinstance(word, str)]
        return words[-1] if words else ""
    if op.get("#") == "0.parameter":
        return str(_attributes(op).get("parameter_name", ""))
    return None


def _parts(ops: Sequence[Mapping[str, Any]]) -> dict[int, list[int]]:
    """The numbers of the tensors into which lists are split, by the list's number."""
    parts: dict[int, list[int]] = {}
    for op in ops:
        if op.get("#") == f"{_BUILTIN}.split":
            for entry in _objects(op, "I")[:1]:
                parts.setdefault(
                    _number(entry, "%"), [_number(result, "%") for result in _objects(op, "O")]
                )
    return parts


__all__ = ["CUSTOM_DOMAIN", "read"]
