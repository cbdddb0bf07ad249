"""The graph of a program, made without tracing; `zerostride.fuse` is compared with it.

Shapes come from `planner.plan`, dtypes from the op table's functions (`native.promote`); nothing
here is shared with the tracer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zerostride.compute import native
from zerostride.compute.kernels import KERNELS
from zerostride.compute.semantics import WEAK, values_of
from zerostride.compute.special import keeps_kind
from zerostride.engines.planning import plan, plan_to
from zerostride.fusion.trace.graph import (
    Apply,
    Axes,
    Constant,
    Graph,
    Input,
    Node,
    Reduce,
    View,
    arguments,
)
from zerostride.ops import OPS, ops_with

from ..native.cases import Number, dtype_of
from .cases import DrawnStep, FuseCase, FuseProgram

Shape = tuple[int, ...]
_ALONE = {bool: "bool", int: "int64", float: "float64"}
_COMPARISONS = ops_with("comparison")
#: Reductions that are expressions.
_COMPOSED = frozenset({"mean", "var", "std", "sum_of_squares", "logsumexp"})
#: Ops of truth values that are no numbers.
_OF_BOTH = ops_with("truths")
#: Ops that read whether their operands are 0.
_OF_TRUTHS = ops_with("logical")
_HALVES = frozenset({"float16", "bfloat16"})


@dataclass(frozen=True, slots=True)
class Known:
    """A value of a program: its node, and what tracing knows of it."""

    node: int
    shape: Shape
    dtype: str
    weak: bool = False

    @property
    def kind(self) -> str:
        """The dtype's name, or "int" or "float" of a Python number."""
        if not self.weak:
            return self.dtype
        return "int" if self.dtype == "int64" else "float"

    @property
    def family(self) -> str:
        """The dtype's kind; 16-bit floats of other packages are floats."""
        return "f" if self.dtype == "bfloat16" else np.dtype(self.dtype).kind


class Builder:
    """Writes a graph step by step; a step that has no meaning raises and changes nothing."""

    def __init__(self, operands: Sequence[Known], dtype: str | None = None) -> None:
        self.nodes: list[Node] = []
        self.values: list[Known] = []
        self.dtype = dtype
        for k, known in enumerate(operands):
            place = self._add(Input(k, known.shape, known.dtype, known.weak), weak=known.weak)
            self.values.append(self._entering(place))

    def _entering(self, given: Known) -> Known:
        """An input in the dtype of computation."""
        if self.dtype is None or given.weak or given.dtype in ("bool", self.dtype):
            return given
        if not keeps_kind(dtype_of(given.dtype), dtype_of(self.dtype)):
            raise TypeError(f"{given.dtype} does not become {self.dtype}")
        return self._cast(given, self.dtype)

    def step(self, step: DrawnStep) -> Known:
        """The value of a step.

        Raises:
            BroadcastError: its shapes do not combine.
            TypeError: its dtypes do not.
        """
        before = len(self.nodes)
        try:
            place = self._step(step)
        except Exception:
            del self.nodes[before:]
            raise
        self.values.append(place)
        return place

    def graph(self, outputs: Sequence[int], inputs: int) -> Graph:
        """The graph with these values as results."""
        ends = [self.values[value].node for value in outputs]
        needed = {*ends}
        for k in range(len(self.nodes) - 1, -1, -1):
            if k in needed:
                needed |= {*arguments(self.nodes[k])}
        number = {k: n for n, k in enumerate(sorted(needed))}
        nodes = tuple(_renumbered(self.nodes[k], number) for k in sorted(needed))
        return Graph(nodes, tuple(number[k] for k in ends), inputs)

    def _counted(self, arg: Known) -> Known:
        """Truth values as numbers of the dtype that all is computed in."""
        if self.dtype is None or arg.dtype != "bool":
            return arg
        return self._cast(arg, self.dtype)

    # Steps

    def _step(self, step: DrawnStep) -> Known:
        args = [self._operand(arg) for arg in step.args]
        if step.kind == "cast":
            return self._cast(args[0], step.options["dtype"])
        if step.kind == "view":
            return self._view(args[0], _axes_of(args[0].shape, step))
        if step.kind == "broadcast":
            plan = plan_to(args[0].shape, step.options["target_shape"], step.options.get("mode"))
            name = "positive" if args[0].dtype in _HALVES else "cast"
            dtypes = (args[0].dtype,) * 2
            return self._apply(name, args, plan.axes_mapping, dtypes, plan.shape)
        if step.kind == "reduce":
            return self._reduction(step, args[0])
        return self._op(step, args)

    def _operand(self, arg: int | Number) -> Known:
        if not isinstance(arg, Number):
            return self.values[arg]
        value = arg.value
        if type(value) in WEAK:
            weak = type(value) is not bool
            return self._add(Constant(value, _ALONE[type(value)], True), weak=weak)
        return self._entering(self._add(Constant(value.item(), value.dtype.name, False)))

    def _add(self, node: Node, *, weak: bool = False) -> Known:
        self.nodes.append(node)
        return Known(len(self.nodes) - 1, node.shape, node.dtype, weak)

    def _op(self, step: DrawnStep, args: list[Known]) -> Known:
        op = OPS[step.name]
        rule = {key: value for key, value in step.options.items() if key != "dtype"}
        args += [
            self._operand(Number(value))
            for value in list(op.parameters.values())[len(args) - op.tensors :]
            if len(args) < op.operands
        ]
        result = plan(*(arg.shape for arg in args), **rule)
        dtype = step.options.get("dtype")
        if dtype is None and step.name not in _OF_BOTH:
            args = [self._counted(arg) for arg in args]
        truths = 1 if step.name == "where" else len(args) if step.name in _OF_TRUTHS else 0
        args[:truths] = map(self._truth, args[:truths])
        dtypes = native.promote(op, tuple(arg.kind for arg in args), dtype)
        if dtypes is None and dtype is not None:  # narrowed, then computed in another
            kept = len(args) - len(values_of(op, args))
            args = [*args[:kept], *(self._narrowed(arg, dtype) for arg in args[kept:])]
            dtypes = native.promote(op, tuple(arg.kind for arg in args), None)
        if dtypes is None:
            raise TypeError(f"{step.name} has no dtype")
        if isinstance(KERNELS[step.name], np.ufunc) and step.name not in _COMPARISONS:
            self._check_numbers(args, dtypes)
        return self._apply(step.name, args, result.axes_mapping, dtypes, result.shape)

    def _truth(self, arg: Known) -> Known:
        """A complex number is true unless it is 0."""
        if arg.family != "c":
            return arg
        axes = (*range(len(arg.shape)),)
        zero = self._add(Constant(0, "int64", True), weak=True)
        dtypes = (arg.dtype, arg.dtype, "bool")
        return self._apply("not_equal", [arg, zero], (axes, ()), dtypes, arg.shape)

    def _check_numbers(self, args: Sequence[Known], dtypes: Sequence[str]) -> None:
        """NumPy's ufuncs refuse Python integers that their dtype does not hold."""
        for arg, dtype in zip(args, dtypes, strict=False):
            node = self.nodes[arg.node]
            if isinstance(node, Constant) and node.weak and np.dtype(dtype).kind in "iu":
                np.asarray(node.value, dtype)

    def _narrowed(self, arg: Known, dtype: str) -> Known:
        target = dtype_of(dtype)
        given = np.result_type(target, 1 if arg.kind == "int" else 1.0) if arg.weak else arg.dtype
        if not keeps_kind(given, target):
            raise TypeError(f"{given} does not become {dtype}")
        return self._cast(arg, dtype)

    def _apply(
        self,
        name: str,
        args: Sequence[Known],
        axes: Sequence[Axes],
        dtypes: tuple[str, ...],
        shape: Shape,
    ) -> Known:
        nodes = tuple(arg.node for arg in args)
        return self._add(Apply(name, nodes, tuple(axes), dtypes, shape, dtypes[-1]))

    def _cast(self, arg: Known, dtype: str) -> Known:
        name = dtype_of(dtype).name
        if arg.family == "c" and dtype_of(dtype).kind != "c":
            raise TypeError(f"complex numbers have no value in {dtype}")
        axes = (tuple(range(len(arg.shape))),)
        return self._apply("cast", [arg], axes, (arg.dtype, name), arg.shape)

    def _view(self, arg: Known, axes: Axes) -> Known:
        shape = tuple(1 if axis is None else arg.shape[axis] for axis in axes)
        return self._add(View(arg.node, axes, shape, arg.dtype))

    # Reductions

    def _reduction(self, step: DrawnStep, arg: Known) -> Known:
        axis, keepdims = step.options.get("axis"), bool(step.options.get("keepdims", False))
        rank = len(arg.shape)
        given = range(rank) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        if any(not -rank <= one < rank for one in given):
            raise ValueError(f"no axis {axis}")
        over = tuple(sorted({one % rank for one in given}))
        if step.name in ("sum", "prod") or step.name in _COMPOSED:
            arg = self._counted(arg)
        if step.name in _COMPOSED:
            return self._composed(step.name, arg, over, keepdims)
        return self._single(step.name, arg, over, keepdims)

    def _single(self, name: str, arg: Known, over: Shape, keepdims: bool) -> Known:
        if name in ("min", "max", "argmin", "argmax") and not _count(arg, over):
            raise ValueError("the least of no elements")
        compute = arg.dtype
        if name in ("sum", "prod"):
            compute = np.add.reduce(np.empty(0, compute)).dtype.name
        result = {"any": "bool", "all": "bool", "argmin": "int64", "argmax": "int64"}.get(name)
        return self._reduce(name, arg, over, keepdims, compute, result or compute)

    def _composed(self, name: str, arg: Known, over: Shape, keepdims: bool) -> Known:
        """Reductions that are made of others, of real numbers."""
        if arg.family == "c" and name != "mean":
            raise TypeError(f"{name} is one of real numbers here")
        if name == "sum_of_squares":
            wide = np.add.reduce(np.empty(0, arg.dtype)).dtype.name
            arg = arg if arg.dtype == wide else self._cast(arg, wide)
            return self._single("sum", self._of("square", arg), over, keepdims)
        if name != "mean" and arg.family in "iub":
            arg = self._cast(arg, "float64")
        if name == "logsumexp":
            return self._logsumexp(arg, over, keepdims)
        if name == "mean":
            return self._mean(arg, over, keepdims)
        square = self._of("square", self._of("subtract", arg, self._mean(arg, over, True)))
        variance = self._mean(square, over, keepdims)
        return self._of("sqrt", variance) if name == "std" else variance

    def _mean(self, arg: Known, over: Shape, keepdims: bool) -> Known:
        own = arg.dtype if arg.family in "fc" else "float64"
        wide = "float32" if own in _HALVES else own
        total = self._reduce("sum", arg, over, keepdims, wide, wide)
        count = self._add(Constant(_count(arg, over), "int64", True), weak=True)
        axes = (tuple(range(len(total.shape))), ())
        dtypes = (wide, wide, wide)
        return self._add(Apply("divide", (total.node, count.node), axes, dtypes, total.shape, own))

    def _logsumexp(self, arg: Known, over: Shape, keepdims: bool) -> Known:
        if not _count(arg, over):
            return self._of("log", self._single("sum", self._of("exp", arg), over, keepdims))
        greatest = self._single("max", arg, over, True)
        zero = self._add(Constant(0, "int64", True), weak=True)
        taken = self._of("where", self._of("isfinite", greatest), greatest, zero)
        powers = self._of("exp", self._of("subtract", arg, taken))
        total = self._of("log", self._single("sum", powers, over, keepdims))
        if not keepdims:
            taken = self._view(taken, tuple(k for k in range(len(arg.shape)) if k not in over))
        return self._of("add", total, taken)

    def _of(self, name: str, *args: Known) -> Known:
        """An op on operands that lie as in NumPy."""
        result = plan(*(arg.shape for arg in args))
        dtypes = native.promote(OPS[name], tuple(arg.kind for arg in args), None)
        if dtypes is None:
            raise TypeError(f"{name} has no dtype")
        return self._apply(name, args, result.axes_mapping, dtypes, result.shape)

    def _reduce(
        self, name: str, arg: Known, over: Shape, keepdims: bool, compute: str, dtype: str
    ) -> Known:
        shape = tuple(
            1 if axis in over else size
            for axis, size in enumerate(arg.shape)
            if keepdims or axis not in over
        )
        return self._add(Reduce(name, arg.node, over, keepdims, compute, shape, dtype))


def _count(arg: Known, over: Shape) -> int:
    """The number of elements that become one."""
    return math.prod(arg.shape[axis] for axis in over)


def _renumbered(node: Node, number: Mapping[int, int]) -> Node:
    if isinstance(node, Apply):
        return replace(node, args=tuple(number[arg] for arg in node.args))
    if isinstance(node, Reduce | View):
        return replace(node, arg=number[node.arg])
    return node


def _axes_of(shape: Shape, step: DrawnStep) -> Axes:
    """The argument's axes that a view has."""
    if step.name == "transpose":
        return tuple(step.options["axes"])
    if step.name == "reshape":
        wide = [axis for axis, size in enumerate(shape) if size != 1]
        asked = step.options["shape"]
        if [shape[axis] for axis in wide] != [size for size in asked if size != 1]:
            raise ValueError(f"a reshape of {shape} to {asked} is no view that is drawn")
        rest = iter(wide)
        return tuple(None if size == 1 else next(rest) for size in asked)
    axes: list[int | None] = []
    used = sum(key == ":" for key in step.options["key"])
    place = 0
    for key in step.options["key"]:
        if key is None:
            axes.append(None)
        elif key == ":":
            axes.append(place)
            place += 1
        else:
            axes += range(place, place + len(shape) - used)
            place += len(shape) - used
    return tuple(axes)


def operand_of(operand: Any) -> Known:
    """The facts of a case's operand for a builder."""
    if isinstance(operand, Number):
        value = operand.value
        if type(value) in _ALONE:
            return Known(0, (), _ALONE[type(value)], type(value) is not bool)
        return Known(0, (), np.asarray(value).dtype.name)
    return Known(0, operand.shape, dtype_of(operand.dtype).name)


def build(program: FuseProgram, operands: Sequence[Known]) -> Builder:
    """A builder that has done a program's steps."""
    builder = Builder(operands, program.dtype)
    for step in program.steps:
        builder.step(step)
    return builder


def graph_of(case: FuseCase) -> Graph:
    """The graph of a case."""
    known = [operand_of(operand) for operand in case.operands]
    return build(case.program, known).graph(case.program.outputs, len(known))
