"""Finds the faults of a node that explain the numbers of a run.

A fault is a wrong computation whose shapes are right: one number of an operand stands for a whole
axis, an operand lies along another axis of the same extent, two operands are exchanged, the sign of
an operand is lost. A run shows it if the node's result would differ by more than rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np

from ...errors import BroadcastError, ModelError
from ..execute.broadcasts import can_plan, in_order, measured, pointwise
from ..execute.part import read_by
from ..execute.program import readable
from ..format_table import FORMATS, module_of
from ..ir.graph import Array, Graph, Node, Value
from ..ir.site import Kind, Site
from ..judging import relative
from ..onnx_ops.kernels.call import NodeCall, Unfit
from ..onnx_ops.table import run_op
from ..transport.shape_arithmetic import shape_arithmetic

#: Numbers of a result that are looked at, and of one that shows nothing there.
_MOST_NUMBERS, _ALL_NUMBERS = 2048, 2**18
#: A difference of this size, relative as in `bisect`, is more than rounding.
_ROUNDING = 2.0**-10
#: Ops whose operands must not change places, and which of them.
_ORDERED = {
    **dict.fromkeys(("Sub", "Div", "Pow", "Mod"), (0, 1)),
    **dict.fromkeys(("Less", "LessOrEqual", "Greater", "GreaterOrEqual"), (0, 1)),
    **dict.fromkeys(("subtract", "divide", "remainder", "pow", "floor_divide"), (0, 1)),
    "Where": (1, 2),
}
#: Ops that treat numbers below 0 otherwise than numbers above; remainders do in both operands.
_REMAINDERS = frozenset({"Mod", "remainder", "fmod", "floor_divide"})
_SIGNED = frozenset(
    {
        *("Abs", "Celu", "Clip", "Elu", "HardSigmoid", "HardSwish", "LeakyRelu", "PRelu", "Relu"),
        *("Selu", "Sign", "ThresholdedRelu", "prelu"),
    }
)
#: Ops whose result is never below 0.
_POSITIVE = frozenset(
    {
        *("Relu", "Sigmoid", "Softmax", "Exp", "Abs", "Sqrt", "HardSigmoid", "Softplus"),
        *("ArgMax", "ArgMin", "Shape", "ReduceSumSquare", "ReduceL1", "ReduceL2"),
    }
)
#: Ops whose result is not below 0 if no number of their first operand is, or of any.
_PASSING = frozenset(
    {
        *("Identity", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Split"),
        *("Expand", "Tile", "Gather", "MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean"),
        *("ReduceMax", "ReduceSum", "Cast", "Dropout", "Resize", "Pad", "Clip", "Floor"),
    }
)
_JOINING = frozenset({"Add", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean", "Concat", "MatMul"})
#: The array of a value; None if the run did not hand it out.
Fetch = Callable[[Value], "Array | None"]
_Compute = Callable[[Sequence[Array]], Array]


class FaultKind(StrEnum):
    """A kind of wrong computation with right shapes."""

    FIRST = "first"  # the first number along an axis stands for the axis
    AXIS = "axis"  # laid along another axis of the same extent
    SWAPPED = "swapped"  # two operands exchanged
    SIGN = "sign"  # numbers below 0 taken as above


@dataclass(frozen=True, slots=True)
class NodeFault:
    """A fault of one node.

    Attributes:
        node, op: the node.
        kind: the fault.
        operand: the operand's position.
        name: the operand's name.
        axes: the axes of the result.
    """

    node: str
    op: str
    kind: FaultKind
    operand: int
    name: str
    axes: tuple[int, ...] = ()


def faults_shown(graph: Graph, fetch: Fetch) -> Iterator[tuple[NodeFault, bool]]:
    """Yield the faults of the main graph's nodes, and whether a run's tensors show each.

    A fault that changes nothing whatever the inputs are is none: a constant of equal numbers has no
    axes, and what a Relu made has no sign.
    """
    sizes = shape_arithmetic(graph)
    positive: set[int] = set()
    varying = {id(value) for value in graph.inputs}
    for node in graph.nodes:
        if node.scope or id(node) in sizes:
            continue
        lowered = _lowered(graph, node)
        if any(id(value) in varying for value in read_by(node)) and not _is_shape(lowered):
            varying |= {id(value) for value in node.outputs}
        if _is_positive(graph, node, positive):
            positive |= {id(value) for value in node.outputs}
        if not any(id(value) in varying for value in node.inputs) or not _is_asked(graph, node):
            continue
        arrays = [None if value is None else fetch(value) for value in node.inputs]
        pairs = zip(node.inputs, arrays, strict=True)
        if any(array is None for value, array in pairs if value is not None):
            continue
        try:
            looked = _looked(graph, node, arrays)
        except (BroadcastError, ModelError, Unfit, ValueError, TypeError):
            continue
        if looked is not None:
            yield from looked.faults(node, positive, varying)


def _is_asked(graph: Graph, node: Node) -> bool:
    """Whether a node has faults that are asked for; the numbers of a convolution are not read."""
    site = module_of(graph).find_site(node)
    lowered = _lowered(graph, node)
    return (site is not None and can_plan(site)) or (len(lowered) == 1 and lowered[0].op in _SIGNED)


def _is_positive(graph: Graph, node: Node, positive: Collection[int]) -> bool:
    """Whether no number of a node's results is below 0, whatever the model's inputs are."""
    lowered = _lowered(graph, node)
    operands = [value for value in node.inputs if value is not None]
    if not lowered or not operands:
        return False
    if lowered[-1].op in _POSITIVE:
        return True
    if len(lowered) != 1:
        return False
    op = lowered[0].op
    if op == "Mul" and all(value is operands[0] for value in operands):
        return True
    if op == "Pow" and readable(operands[1]) and bool((operands[1].data() % 2 == 0).all()):
        return True
    if op == "Clip" and _least(lowered[0]) >= 0:
        return True
    read = operands[:1] if op in _PASSING else operands if op in _JOINING else ()
    return bool(read) and all(_not_below_0(value, positive) for value in read)


def _is_shape(lowered: Sequence[Node]) -> bool:
    """Whether a node's results depend on sizes alone."""
    return len(lowered) == 1 and lowered[0].op in ("Shape", "Size")


def _least(clip: Node) -> float:
    """The lower bound of a Clip; -1 if it is not known."""
    bound = clip.inputs[1] if len(clip.inputs) > 1 else None
    if bound is not None and readable(bound):
        return float(bound.data().reshape(-1)[0])
    return float(clip.attributes.get("min", -1))


def _not_below_0(value: Value, positive: Collection[int]) -> bool:
    return id(value) in positive or (readable(value) and bool((value.data() >= 0).all()))


@dataclass(frozen=True, slots=True)
class _Looked:
    """A node's operands as they lie against its result, and what it computes of single numbers."""

    op: str
    values: tuple[Value, ...]
    views: tuple[Array, ...]
    compute: _Compute
    mapped: bool

    def faults(
        self, node: Node, positive: Collection[int], varying: Collection[int]
    ) -> Iterator[tuple[NodeFault, bool]]:
        shape = self.views[0].shape
        for place, (value, view) in enumerate(zip(self.values, self.views, strict=True)):
            asked = self.op in _REMAINDERS or (self.op in _SIGNED and place == 0)
            signed = asked and view.dtype.kind in "fi" and id(value) not in positive
            fixed = id(value) not in varying
            if signed and not (fixed and (view >= 0).all()):
                yield self._asked(node, FaultKind.SIGN, place, ())
            if not self.mapped:
                continue
            for k, extent in enumerate(shape):
                if extent > 1 and view.strides[k] and not (fixed and _even(view, k)):
                    yield self._asked(node, FaultKind.FIRST, place, (k,))
            for a, b in combinations(range(len(shape)), 2):
                if shape[a] != shape[b] or shape[a] < 2:
                    continue
                if not (view.strides[a] or view.strides[b]):
                    continue
                if not (fixed and np.array_equal(view, view.swapaxes(a, b))):
                    yield self._asked(node, FaultKind.AXIS, place, (a, b))
        places = _ORDERED.get(self.op, ())
        if places and len({id(value) for value in self.values[: places[-1] + 1]}) > places[-1]:
            yield self._asked(node, FaultKind.SWAPPED, _ORDERED[self.op][0], ())

    def _asked(
        self, node: Node, kind: FaultKind, place: int, axes: tuple[int, ...]
    ) -> tuple[NodeFault, bool]:
        fault = NodeFault(node.path, node.op, kind, place, self.values[place].name, axes)
        wrong = list(self.views)
        if kind is FaultKind.FIRST:
            view = wrong[place]
            wrong[place] = np.broadcast_to(view.take([0], axes[0]), view.shape)
        elif kind is FaultKind.AXIS:
            wrong[place] = wrong[place].swapaxes(*axes)
        elif kind is FaultKind.SWAPPED:
            a, b = _ORDERED[self.op]
            wrong[a], wrong[b] = wrong[b], wrong[a]
        return fault, self._differs(wrong, place if kind is FaultKind.SIGN else None)

    def _differs(self, wrong: Sequence[Array], unsigned: int | None) -> bool:
        """Whether the results differ, with the operand at `unsigned` without its signs."""
        shape = self.views[0].shape or (1,)  # NumPy has no indices of arrays without axes
        size = int(np.prod(shape))
        for most in (_MOST_NUMBERS, _ALL_NUMBERS):
            few = size > most == _MOST_NUMBERS
            places = (
                np.random.default_rng(0).integers(0, size, most)
                if few
                else np.arange(min(size, most))
            )
            index = np.unravel_index(places, shape)
            changed = [np.atleast_1d(view)[index] for view in wrong]
            if unsigned is not None:
                changed[unsigned] = np.abs(changed[unsigned])
            with np.errstate(all="ignore"):
                meant = self.compute([np.atleast_1d(view)[index] for view in self.views])
                got = self.compute(changed)
                if bool((relative(*map(_numbers, (meant, got))) > _ROUNDING).any()):
                    return True
            if not few:
                break
        return False


def _numbers(array: Array) -> Array:
    """The array; truth values as 0 and 1."""
    return array.astype(np.int8) if array.dtype.kind == "b" else array


def _even(view: Array, axis: int) -> bool:
    """Whether all numbers along an axis are equal."""
    return bool((view == view.take([0], axis)).all())


def _looked(graph: Graph, node: Node, arrays: Sequence[Array | None]) -> _Looked | None:
    module, engine = module_of(graph), FORMATS[graph.format].engine
    site = module.find_site(node)
    if site is not None and can_plan(site):
        shaped = measured(node, arrays)
        site = module.find_site(shaped)
        own = {id(new): old for new, old in zip(shaped.inputs, node.inputs, strict=True)}
        return None if site is None else _of_site(site, shaped, own, arrays, engine)
    lowered = _lowered(graph, node)
    data = node.inputs[0] if node.inputs else None
    if len(lowered) != 1 or lowered[0].op not in _SIGNED or data is None or arrays[0] is None:
        return None
    (one,), rest = lowered, tuple(arrays[1:])

    def call(samples: Sequence[Array]) -> Array:
        return np.asarray(run_op(NodeCall(one, (samples[0], *rest)))[0])

    return _Looked(one.op, (data,), (arrays[0],), call, mapped=False)


def _of_site(
    site: Site,
    node: Node,
    own: Mapping[int, Value | None],
    arrays: Sequence[Array | None],
    engine: str | None,
) -> _Looked:
    """Arguments: `own` are the model's values, by the identities of the measured ones."""
    ordered = tuple(array for array in in_order(site, arrays) if array is not None)
    values = tuple(
        value for part in site.operands if (value := own.get(id(part.tensor))) is not None
    )
    if site.kind is Kind.EXPAND:
        target = site.operands[1].shape
        plan = site.plan((ordered[0].shape, tuple(target or ())))
        return _Looked("Expand", values[:1], (plan.view(0, ordered[0]),), _same, mapped=True)
    plan = site.plan(tuple(array.shape for array in ordered))
    views = tuple(plan.view(k, array) for k, array in enumerate(ordered))

    def call(samples: Sequence[Array]) -> Array:
        return pointwise(site, NodeCall(node, tuple(samples)), engine)

    return _Looked(site.stands_for, values, views, call, mapped=True)


def _same(samples: Sequence[Array]) -> Array:
    return samples[0]


def _lowered(graph: Graph, node: Node) -> Sequence[Node]:
    return (node,) if node.domain == "" else module_of(graph).lower(node) or ()
