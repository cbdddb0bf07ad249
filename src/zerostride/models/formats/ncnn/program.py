"""Translates a rewrite's steps to lines of layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from ....core.rules import NCNN_RANK
from ....engines.planning import engine_plan
from ....errors import BroadcastError, ModelError
from ....ops import find_op
from ...ir.graph import Node
from ...ir.moves import at_rank, moved, repeats
from ...ir.rewrite import Input, Ref, Rewrite, RewriteStep
from .text import ARRAY, Layer

if TYPE_CHECKING:
    from .editor import NcnnEditor

Shape: TypeAlias = tuple[int, ...]
#: Steps that only change the shape.
_LAYOUT = frozenset({"reshape", "unsqueeze", "squeeze"})


def parameter(number: int, value: Any) -> str:
    """A parameter as text of the file: a real number has a point or an exponent.

    >>> parameter(0, 3), parameter(2, 0.5), parameter(3, (0, 1))
    ('0=3', '2=5.000000e-01', '-23303=2,0,1')
    """
    if isinstance(value, tuple | list):
        items = ",".join(_number(item) for item in value)
        return f"-{ARRAY + number}={len(value)},{items}"
    if isinstance(value, str):
        return f'{number}="{value}"'
    return f"{number}={_number(value)}"


def _number(value: Any) -> str:
    return f"{value:e}" if isinstance(value, float) else str(int(value))


@dataclass(frozen=True, slots=True)
class _Constant:
    """The data of a MemoryData in some shape; it becomes a blob when a layer reads it."""

    layer: Layer
    shape: Shape


@dataclass(frozen=True, slots=True)
class _Blob:
    """A blob, with its shape if known."""

    name: str
    shape: Shape | None


@dataclass
class _NewLayer:
    """A layer that the program writes.

    Attributes:
        kind: its type; "" for the node's own layer.
        operands: the operands that it reads.
        result: the blob that it makes.
        params: its parameters.
    """

    kind: str
    operands: list[_Constant | _Blob]
    result: _Blob
    params: dict[int, Any] = field(default_factory=dict)


class LayerProgram:
    """The lines that replace a layer."""

    def __init__(self, editor: NcnnEditor, layer: Layer, node: Node, rewrite: Rewrite) -> None:
        self.editor = editor
        self.layer = layer
        self.node = node
        self.steps = rewrite.steps
        self.layers: list[_NewLayer] = []

    def write(self) -> None:
        """Plans all layers, then names their operands and adds Splits."""
        results: list[_Constant | _Blob] = []
        for k, step in enumerate(self.steps):
            operands = [self._operand(ref, results) for ref in step.operands]
            results.append(self._step(step, operands, last=k == len(self.steps) - 1))
        if not self.layers:
            raise self._refusal("nothing would make its result")
        alone = self._lone_constants()
        rows = [
            (layer, [self._name(operand, alone) for operand in layer.operands])
            for layer in self.layers
        ]
        self._check_read(rows)
        self._put(rows)

    def _refusal(self, message: str) -> ModelError:
        return self.editor.refusal(self.layer, message)

    def _operand(self, ref: Ref, results: Sequence[_Constant | _Blob]) -> _Constant | _Blob:
        if not isinstance(ref, Input):
            if not 0 <= ref.step < len(results):
                raise self._refusal(f"a step reads step {ref.step}, which is not before it")
            return results[ref.step]
        if not 0 <= ref.position < len(self.node.inputs):
            raise self._refusal(f"it has no operand {ref.position}")
        if ref.position >= len(self.layer.bottoms):
            value = self.node.inputs[ref.position]
            name = value.name if value is not None else ""
            raise self._refusal(
                f"operand {ref.position} ({name}) is a weight inside the layer, which has the form "
                "that the layer wants"
            )
        name = self.layer.bottoms[ref.position]
        shape = _known(self.node, ref.position)
        maker = self.editor.maker[name]
        if maker.type == "MemoryData" and shape is not None:
            return _Constant(maker, shape)
        return _Blob(name, shape)

    # Steps.

    def _step(
        self, step: RewriteStep, operands: list[_Constant | _Blob], *, last: bool
    ) -> _Constant | _Blob:
        if step.op == "self":
            return self._self(step, operands, last=last)
        if step.op == "number":
            # Rewrites use one to compare and select, and ncnn lacks layers for that too.
            raise self._refusal("no layer is added for a constant; its numbers are in the .bin")
        if step.op in _LAYOUT or step.op == "expand":
            (operand,) = operands
            shape = self._layout(step, operand.shape)
            if step.op == "expand" and operand.shape and shape and len(shape) > len(operand.shape):
                # Tile does not count axes from the last.
                padded = at_rank(operand.shape, len(shape))
                axes = tuple(range(len(shape) - len(operand.shape)))
                operands = [self._emit("ExpandDims", {3: axes}, operands, padded, last=False)]
                (operand,) = operands
            if not last and isinstance(operand, _Constant) and step.op != "expand":
                if shape is None:
                    raise self._refusal(f"the shape of {step.describe()} is not known")
                return _Constant(operand.layer, shape)
            return self._emit(*self._layer_of(step, operand, shape), operands, shape, last=last)
        return self._op(step, operands, last=last)

    def _self(
        self, step: RewriteStep, operands: list[_Constant | _Blob], *, last: bool
    ) -> _Constant | _Blob:
        if any(not layer.kind for layer in self.layers):
            raise self._refusal("it would be there twice")
        if len(self.layer.tops) != 1 and not last:
            raise self._refusal("it has several results, which cannot be reshaped")
        if len(operands) != len(self.layer.bottoms):
            raise self._refusal(f"it reads {len(self.layer.bottoms)} blobs, not {len(operands)}")
        changes: dict[int, Any] = {}
        for key, value in step.attributes.items():
            if not key.isdecimal() or int(key) > 31:
                raise self._refusal(f"{key!r} is no parameter; they are numbered 0 to 31")
            changes[int(key)] = value
        output = self.node.outputs[0] if self.node.outputs else None
        shape = _numbers(output.shape) if output is not None else None
        return self._emit("", changes, operands, shape, last=last)

    def _op(self, step: RewriteStep, operands: list[_Constant | _Blob], *, last: bool) -> _Blob:
        try:
            op = find_op(step.op)
        except BroadcastError:
            raise self._refusal(f"there is no op {step.op!r}") from None
        numbers = [name for name in op.names.get("ncnn", ()) if isinstance(name, int)]
        if not numbers or len(operands) != 2:
            raise self._refusal(f"ncnn's BinaryOp has no {step.op} of {len(operands)} operands")
        shapes = [operand.shape for operand in operands if operand.shape is not None]
        shape = None
        if len(shapes) == len(operands):
            try:
                shape = engine_plan(*shapes, engine="ncnn", op=op.name).shape
            except BroadcastError as error:
                raise self._refusal(f"{step.op} would not work: {error.detail}") from None
        return self._emit("BinaryOp", {0: numbers[0]}, operands, shape, last=last)

    def _emit(
        self,
        kind: str,
        params: dict[int, Any],
        operands: list[_Constant | _Blob],
        shape: Shape | None,
        *,
        last: bool,
    ) -> _Blob:
        name = self.layer.tops[0] if last else ""
        if not name:
            name = self.editor.fresh(f"{self.layer.name}_{kind.lower() or 'own'}")
        result = _Blob(name, shape)
        self.layers.append(_NewLayer(kind, operands, result, params))
        return result

    def _layout(self, step: RewriteStep, before: Shape | None) -> Shape | None:
        """The result shape of a step; a refusal if ncnn has no such blob."""
        try:
            shape = moved(step, before)
        except ValueError as error:
            raise self._refusal(str(error)) from None
        if shape is not None and not 1 <= len(shape) <= NCNN_RANK:
            message = f"a blob of {len(shape)} axes, {shape}; ncnn has 1 to {NCNN_RANK}"
            raise self._refusal(message)
        return None if shape is None or None in shape else shape

    def _layer_of(
        self, step: RewriteStep, operand: _Constant | _Blob, shape: Shape | None
    ) -> tuple[str, dict[int, Any]]:
        """The layer for a step that changes the shape."""
        if step.op == "unsqueeze":
            return "ExpandDims", {3: step.axes}
        if step.op == "squeeze":
            return "Squeeze", {3: step.axes}
        if step.op == "reshape":
            sizes = step.shape if shape is None else shape
            assert sizes is not None
            keys = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (2, 11, 1, 0)}[len(sizes)]
            return "Reshape", dict(sorted(zip(keys, sizes, strict=True)))
        before = operand.shape
        if before is None or shape is None:
            raise self._refusal("an expand needs the sizes of what it expands; they are not known")
        counts = repeats(at_rank(before, len(shape)), shape)
        if counts is None:
            raise self._refusal(f"{before} does not expand to {shape}")
        return "Tile", {2: counts}

    # Names.

    def _lone_constants(self) -> set[int]:
        """MemoryData layers that the program reads in only one shape."""
        shapes: dict[int, set[Shape]] = {}
        for layer in self.layers:
            for operand in layer.operands:
                if isinstance(operand, _Constant):
                    shapes.setdefault(operand.layer.index, set()).add(operand.shape)
        return {index for index, used in shapes.items() if len(used) == 1}

    def _name(self, operand: _Constant | _Blob, alone: set[int]) -> str:
        if isinstance(operand, _Blob):
            return operand.name
        memory = operand.layer
        own = self.editor.nodes[memory.index].outputs[0].shape
        if own == operand.shape:
            return memory.tops[0]
        return self.editor.resized(memory, operand.shape, alone=memory.index in alone)

    def _check_read(self, rows: Sequence[tuple[_NewLayer, list[str]]]) -> None:
        """Checks that every operand of the layer is still read: else it becomes a result."""
        read = {name for _, names in rows for name in names}
        for position, name in enumerate(self.layer.bottoms):
            others = self.editor.readers[name] - Counter(self.layer.bottoms)[name]
            if name not in read and not others:
                raise self._refusal(
                    f"operand {position} would be read by nobody, and so be a result of the model"
                )

    def _put(self, rows: Sequence[tuple[_NewLayer, list[str]]]) -> None:
        """Adds Splits for blobs that several layers read, then the lines."""
        editor = self.editor
        counts = Counter(name for _, names in rows for name in set(names))
        parts: dict[str, list[str]] = {}
        lines = []
        for layer, names in rows:
            for name in sorted(set(names)):
                if counts[name] > 1 and name not in parts:
                    fresh = [editor.fresh(f"{name}_part") for _ in range(counts[name])]
                    split = editor.fresh(f"{name}_split")
                    lines.append(editor.line("Split", split, (name,), tuple(fresh)))
                    parts[name] = fresh
            mine = {name: parts[name].pop() for name in set(names) if name in parts}
            bottoms = [mine.get(name, name) for name in names]
            if layer.kind:
                text = "".join(f" {parameter(key, value)}" for key, value in layer.params.items())
                called = layer.result.name if layer.result.name != self.layer.tops[0] else ""
                called = called or editor.fresh(f"{self.layer.name}_{layer.kind.lower()}")
                lines.append(editor.line(layer.kind, called, bottoms, (layer.result.name,), text))
            else:
                tops = (layer.result.name, *self.layer.tops[1:])
                text = editor.changed(self.layer, layer.params)
                row = editor.line(self.layer.type, self.layer.name, bottoms, tops, text)
                lines.append(row)
        editor.put(self.layer, lines)


def _known(node: Node, position: int) -> Shape | None:
    value = node.inputs[position]
    return None if value is None else _numbers(value.shape)


def _numbers(shape: Any) -> Shape | None:
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    return tuple(shape)
