"""Translates one rewrite of a .tflite file to operators and tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ....core.alignment import apply
from ....core.rules import RULES
from ....errors import BroadcastError
from ....ops import TRUTHS, find_op
from ...ir.graph import Node
from ...ir.moves import moved
from ...ir.rewrite import Input, Ref, Rewrite, RewriteStep
from ...ir.site import Kind
from ..flatbuffer import Table
from ..onnx.rewrites import constant_steps, last_shapes
from .parts import NewOp, NewTensor, Sizes, Tensor, open_sizes
from .schema import DTYPES, NUMBERS, code_of
from .sites import find_site
from .tensors import shape_of

if TYPE_CHECKING:
    from .editor import Editor

#: Kinds whose plan has the result's shape.
_WHOLE = (Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU, Kind.EXPAND)
_BOOL, _INT32 = 6, 2


def _scales(table: Table | None) -> tuple[float, ...]:
    """The scales of a quantised tensor; () for other tensors."""
    quantised = None if table is None else table.table(4)
    return () if quantised is None else quantised.numbers(2, "float32")


class Task:
    """One rewrite of one operator."""

    def __init__(self, editor: Editor, node: Node, subgraph: int, position: int) -> None:
        self.editor = editor
        self.node = node
        self.subgraph = editor.subgraphs[subgraph]
        self.position = position
        self.op = self.subgraph.old_ops[position]
        self.inputs = self.op.numbers(1, "int32")
        self.outputs = self.op.numbers(2, "int32")
        self.ops: list[NewOp] = []

    def rewrite(self, rewrite: Rewrite) -> None:
        """Translates the steps; the last makes the operator's own result."""
        if len(self.outputs) != 1:
            self._refuse(f"it has {len(self.outputs)} results")
        shapes = last_shapes(rewrite, self._constant_shape)
        skipped = constant_steps(rewrite, shapes)
        results: list[Tensor] = []
        for k, step in enumerate(rewrite.steps):
            last = k == len(rewrite.steps) - 1
            if k in skipped:
                results.append(self._reshaped(skipped[k], shapes[skipped[k]]))
                continue
            operands = [self._operand(ref, results) for ref in step.operands]
            results.append(self._step(step, operands, last=last))
        self.subgraph.ops[self.position] = self.ops

    def _refuse(self, words: str) -> NoReturn:
        self.editor.refuse(self.node, words)

    def _operand(self, ref: Ref, results: Sequence[Tensor]) -> Tensor:
        if not isinstance(ref, Input):
            return results[ref.step]
        if not 0 <= ref.position < len(self.inputs) or self.node.inputs[ref.position] is None:
            self._refuse(f"it has no operand {ref.position}")
        value = self.node.inputs[ref.position]
        assert value is not None
        number = self.inputs[ref.position]
        table = self.subgraph.tensors[number]
        return Tensor(number, value.shape, table.number(1, "int8"), table)

    # Constants.

    def _source(self, position: int) -> tuple[int, int | None] | None:
        """The constant of an operand, and the DEQUANTIZE that reads it, if one does."""
        number = self.inputs[position] if position < len(self.inputs) else -1
        if number < 0:
            return None
        through = None
        maker = self.subgraph.made.get(number)
        if maker is not None:
            op = self.subgraph.old_ops[maker]
            read = op.numbers(1, "int32")
            if not self._is_dequantize(op) or len(read) != 1:
                return None
            number, through = read[0], maker
        table = self.subgraph.tensors[number]
        place = table.number(2, "uint32")
        if place >= len(self.editor.buffers) or table.table(6) is not None:
            return None
        buffer = self.editor.buffers[place]
        numbers = buffer.vector(0, "uint8")
        filled = (numbers is not None and numbers.count) or buffer.number(1, "uint64") > 1
        return (number, through) if filled else None

    def _is_dequantize(self, op: Table) -> bool:
        code = self.editor.codes[op.number(0, "uint32")]
        return bool(code_of(code) == NUMBERS["DEQUANTIZE"])

    def _constant_shape(self, position: int) -> tuple[int, ...] | None:
        source = self._source(position)
        value = self.node.inputs[position] if position < len(self.node.inputs) else None
        if source is None or value is None or not value.constant:
            return None
        return shape_of(self.subgraph.tensors[source[0]], value.name)

    def _reshaped(self, position: int, shape: tuple[int, ...]) -> Tensor:
        """A constant operand in another shape."""
        source = self._source(position)
        assert source is not None
        number, through = source
        key = ("constant", self.inputs[position], shape)
        if key in self.subgraph.shared:
            return self.subgraph.shared[key]
        operand = self.inputs[position]
        in_place = self.subgraph.reads.get(operand) == 1 == self.subgraph.reads.get(number)
        tensor = self._of_shape(number, shape, in_place=in_place)
        if through is not None and in_place:
            table = self.subgraph.tensors[operand]
            kind = table.number(1, "int8")
            tensor = Tensor(operand, shape, kind, table)
            self.subgraph.resized[operand] = NewTensor(tensor, "")
        elif through is not None:
            kind = self.subgraph.tensors[operand].number(1, "int8")
            result = self._new(Tensor(0, shape, kind), f"{self._name(operand)}_reshaped")
            self.ops.append(NewOp("", (tensor.number,), (result.number,), old=through))
            return result  # its DEQUANTIZE stands before this operator only
        self.subgraph.shared[key] = tensor
        return tensor

    def _of_shape(self, number: int, shape: tuple[int, ...], *, in_place: bool) -> Tensor:
        """A tensor of another shape that reads the same buffer."""
        table = self.subgraph.tensors[number]
        kind, buffer = table.number(1, "int8"), table.number(2, "uint32")
        tensor = Tensor(number, shape, kind, table)
        axis = self._axis(table, shape)
        if in_place:
            self.subgraph.resized[number] = NewTensor(tensor, "", buffer=buffer, axis=axis)
            return tensor
        name = self.editor.fresh(f"{self._name(number)}_{'x'.join(map(str, shape)) or 'scalar'}")
        return self.subgraph.add(NewTensor(tensor, name, buffer=buffer, axis=axis))

    def _axis(self, table: Table, shape: tuple[int, ...]) -> int | None:
        """The axis of a constant's scales in another shape; None for one scale."""
        quantised = table.table(4)
        if quantised is None or len(_scales(table)) < 2:
            return None
        old, axis = table.numbers(0, "int32"), quantised.number(6, "int32")
        before = math.prod(old[:axis])
        fitting = (
            k for k, n in enumerate(shape) if (math.prod(shape[:k]), n) == (before, old[axis])
        )
        place = next(fitting, None) if axis < len(old) else None
        if place is None:
            self._refuse("the axis of its scales is not an axis of the new shape")
        return place

    def _name(self, number: int) -> str:
        return self.subgraph.tensors[number].text(3) or f"tensor_{number}"

    def _new(self, tensor: Tensor, name: str, content: bytes | None = None) -> Tensor:
        return self.subgraph.add(NewTensor(tensor, self.editor.fresh(name), content))

    # Steps.

    def _step(self, step: RewriteStep, operands: Sequence[Tensor], *, last: bool) -> Tensor:
        if step.op == "self":
            return self._itself(step, operands, last=last)
        if step.op == "number":
            return self._number(step)
        if step.op in ("reshape", "expand", "tile", "unsqueeze", "squeeze"):
            return self._move(step, operands[0], last=last)
        return self._other(step, operands, last=last)

    def _result(self, tensor: Tensor, words: str, *, last: bool) -> Tensor:
        """The tensor that a step makes: the operator's own, or a new one."""
        if last:
            return replace(tensor, number=self.outputs[0])
        return self._new(tensor, f"{self._name(self.outputs[0])}_{words}")

    def _itself(self, step: RewriteStep, operands: Sequence[Tensor], *, last: bool) -> Tensor:
        if step.attributes or len(operands) != len(self.inputs):
            self._refuse("its options or the number of its operands would change")
        values = tuple(
            None if value is None else replace(value, shape=operand.shape)
            for value, operand in zip(self.node.inputs, operands, strict=True)
        )
        own = self.subgraph.tensors[self.outputs[0]]
        output = self.node.outputs[0].shape
        shape = output if last else self._planned(replace(self.node, inputs=values))
        tensor = Tensor(0, shape, own.number(1, "int8"), own)
        result = self._result(tensor, "inner", last=last)
        inputs = tuple(operand.number for operand in operands)
        self.ops.append(NewOp("", inputs, (result.number,), old=self.position))
        return result

    def _planned(self, node: Node) -> Sizes:
        """The shape of the operator's result on other operands."""
        site = find_site(node)
        shapes = () if site is None else tuple(part.shape for part in site.operands)
        known = [shape for shape in shapes if shape is not None and None not in shape]
        if site is None or site.kind not in _WHOLE or len(known) != len(shapes):
            self._refuse("the shape of its result on the changed operands is not known")
        try:
            plan = site.plan(tuple(known))
        except BroadcastError as error:
            self._refuse(f"after the change it does not broadcast: {error.detail}")
        return plan.shape

    def _number(self, step: RewriteStep) -> Tensor:
        dtype = str(step.attributes["dtype"])
        kind = next((number for number, name in DTYPES.items() if name == dtype), None)
        try:
            content = np.array(step.attributes["value"], dtype).tobytes()
        except (TypeError, ValueError, OverflowError):
            kind, content = None, b""
        if kind is None or np.dtype(dtype).itemsize != len(content):
            self._refuse(f"a constant {step.attributes['value']} of {dtype} cannot be written")
        return self._new(Tensor(0, (), kind), "number", content)

    def _move(self, step: RewriteStep, operand: Tensor, *, last: bool) -> Tensor:
        """A step as the op of its name.

        A RESHAPE takes its place where it cannot mean other axes, or where the engine has it alone.
        """
        shape = self._moved(step, operand.shape)
        if len(_scales(operand.like)) > 1:
            self._refuse("a tensor with several scales would be moved")
        result = self._result(Tensor(0, shape, operand.type, operand.like), step.op, last=last)
        target = step.shape
        if target is None and shape is not None and len(open_sizes(shape)) <= 1:
            smaller = operand.shape if step.op == "unsqueeze" else shape
            if self.editor.by_reshape or (smaller is not None and 1 not in smaller):
                target = tuple(size if isinstance(size, int) else -1 for size in shape)
        if step.op == "expand":
            self._add("BROADCAST_TO", operand, result, self._list(target or ()))
        elif step.op == "tile":
            self._add("TILE", operand, result, self._list(step.shape or ()))
        elif target is not None:
            if target == (0,) or (-1 in target and 0 in target):
                self._refuse(f"a RESHAPE to {list(target)} means something else")
            self._add("RESHAPE", operand, result, self._list(target))
        elif step.op == "squeeze":
            inputs, outputs = (operand.number,), (result.number,)
            self.ops.append(NewOp("SQUEEZE", inputs, outputs, squeezed=step.axes))
        else:
            self._put_in(step, operand, result)
        return result

    def _add(self, op: str, operand: Tensor, result: Tensor, *more: int) -> None:
        self.ops.append(NewOp(op, (operand.number, *more), (result.number,)))

    def _put_in(self, step: RewriteStep, operand: Tensor, result: Tensor) -> None:
        """One EXPAND_DIMS for each axis."""
        current = operand
        for k, axis in enumerate(step.axes):
            final = k == len(step.axes) - 1
            shape = current.shape and (*current.shape[:axis], 1, *current.shape[axis:])
            following = result
            if not final:
                inner = Tensor(0, shape, operand.type, operand.like)
                following = self._result(inner, step.op, last=False)
            listed = self._list((axis,), scalar=True)
            self._add("EXPAND_DIMS", current, following, listed)
            current = following

    def _moved(self, step: RewriteStep, shape: Sizes) -> Sizes:
        try:
            return moved(step, shape)
        except ValueError as error:
            self._refuse(str(error))

    def _list(self, numbers: Sequence[int], *, scalar: bool = False) -> int:
        """The number of a constant of int32 that holds these numbers."""
        key = ("list", tuple(numbers), scalar)
        if key not in self.subgraph.shared:
            content = np.array(numbers, "<i4").tobytes()
            name = "_".join(["ints", *map(str, numbers)]).replace("-", "m")
            shape = () if scalar else (len(numbers),)
            self.subgraph.shared[key] = self._new(Tensor(0, shape, _INT32), name, content)
        return self.subgraph.shared[key].number

    def _other(self, step: RewriteStep, operands: Sequence[Tensor], *, last: bool) -> Tensor:
        """An op of the op table by NumPy's rule, on tensors that are not quantised."""
        row = find_op(step.op)
        if "litert" not in row.names:
            self._refuse(f"LiteRT has no op for {row.name}")
        if any(map(_scales, (part.like for part in operands))):
            self._refuse(f"{row.name} of quantised tensors would round otherwise")
        op = str(row.names["litert"][0])
        shapes = [part.shape for part in operands]
        if any(shape is None or None in shape for shape in shapes):
            self._refuse(f"{row.name} of tensors whose sizes are not known")
        try:
            plan = apply(RULES["numpy"], tuple(shapes), {})
        except BroadcastError as error:
            self._refuse(f"{step.op}: {error.detail}")
        truth = row.name in TRUTHS
        kind = _BOOL if truth else operands[-1].type
        result = self._result(Tensor(0, plan.shape, kind), row.name, last=last)
        inputs = tuple(part.number for part in operands)
        self.ops.append(NewOp(op, inputs, (result.number,)))
        return result
