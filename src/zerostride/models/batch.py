"""The batch axis that ncnn does not have.

ncnn's blobs hold one sample. A converter drops the batch axis of every value that descends from a
graph input: axis 0, as long as its extent is 1 and no op has moved it. This module follows that
axis through the graph, and takes it out of a site's shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..dims import Shape
from ..dims.condition import ALWAYS
from ..plan import Plan
from ..symbolic import assemble
from .graph import Graph, Node, Value
from .sites import Kind, Site

#: Ops whose result says something about a tensor but does not hold its samples.
_DETACHES = frozenset({"Shape", "Size", "NonZero", "ConstantOfShape", "Range", "EyeLike"})


class BatchAxes:
    """Which values carry a batch axis, and which axis it is.

    Values are told apart by identity: two branches of an If may use one name for two tensors.
    """

    __slots__ = ("_axes", "_under")

    def __init__(self, under: BatchAxes | None = None) -> None:
        """Knows of no axis but what `under` knows."""
        self._axes: dict[int, int] = {}
        self._under = under

    def of(self, value: Value | None) -> int | None:
        """The value's batch axis, or None."""
        if value is None or value.constant:
            return None
        axis = self._axes.get(id(value))
        return self._under.of(value) if axis is None and self._under is not None else axis

    def put(self, value: Value, axis: int) -> None:
        """Notes that `axis` is the value's batch axis."""
        self._axes[id(value)] = axis


def batch_axes(graph: Graph, override: int | None = None) -> BatchAxes:
    """For every value that carries a batch axis, which one it is.

    Args:
        graph: the model.
        override: the batch axis of every graph input, whatever its extent; a negative number says
            that there is none. None: axis 0 where its extent is 1.
    """
    axes = BatchAxes()
    if override is not None and override < 0:
        return axes
    for value in graph.inputs:
        rank = len(value.shape or ())
        axis = override or 0
        if value.shape == (1,):
            continue  # one number: whether its axis is kept or dropped, it means the same
        if axis < rank and (override is not None or _is_one(value, axis)):
            axes.put(value, axis)
    for node in graph.nodes:
        follow(node, axes, any_extent=override is not None)
    return axes


def _is_one(value: Value, axis: int) -> bool:
    return value.shape is not None and len(value.shape) > axis and value.shape[axis] == 1


def follow(node: Node, axes: BatchAxes, *, any_extent: bool = False) -> None:
    """Hands the batch axis of a node's operands to its results."""
    carriers = [v for v in node.inputs if v is not None and axes.of(v) is not None]
    if not carriers or node.op in _DETACHES:
        return
    # The operand of the highest rank decides: smaller ones are laid over it from the right.
    carrier = max(carriers, key=lambda value: len(value.shape or ()))
    axis = axes.of(carrier)
    if axis is None:
        return
    extent = carrier.shape[axis] if carrier.shape is not None else None
    for value in node.outputs:
        if value.shape is None or len(value.shape) <= axis or _moves(node, carrier, value, axis):
            continue
        if value.shape[axis] == 1 or (any_extent and value.shape[axis] == extent):
            axes.put(value, axis)


def _axes_given(node: Node, position: int = 1) -> tuple[int, ...] | None:
    """The axes of a Squeeze, Unsqueeze or reduction: an attribute once, an input today."""
    axes = node.attributes.get("axes", node.attributes.get("axis"))
    if axes is None and position < len(node.inputs):
        value = node.inputs[position]
        axes = value.content if value is not None else None
    if axes is None:
        return None
    given = axes if isinstance(axes, tuple) else (axes,)
    return given if all(isinstance(axis, int) for axis in given) else None


def _normal(axes: Sequence[int], rank: int) -> set[int]:
    return {axis + rank if axis < 0 else axis for axis in axes}


def _transposed(node: Node, before: Value, after: Value, axis: int) -> bool:
    rank = len(before.shape or ())
    order = node.attributes.get("perm", tuple(range(rank))[::-1])
    return axis >= len(order) or order[axis] != axis


def _squeezed(node: Node, before: Value, after: Value, axis: int) -> bool:
    axes = _axes_given(node)
    return axes is None or min(_normal(axes, len(before.shape or ())), default=axis + 1) <= axis


def _unsqueezed(node: Node, before: Value, after: Value, axis: int) -> bool:
    axes = _axes_given(node)
    return axes is None or min(_normal(axes, len(after.shape or ())), default=axis + 1) <= axis


def _reduced(node: Node, before: Value, after: Value, axis: int) -> bool:
    if node.attributes.get("keepdims", 1):
        return False
    axes = _axes_given(node)
    return axes is None or min(_normal(axes, len(before.shape or ())), default=axis + 1) <= axis


def _reshaped(node: Node, before: Value, after: Value, axis: int) -> bool:
    """A reshape keeps the axis if what stands before it is the same on both sides."""
    return before.shape is None or before.shape[:axis] != (after.shape or ())[:axis]


def _along(node: Node, before: Value, after: Value, axis: int) -> bool:
    """Ops that join or pick along `axis`."""
    rank = len(before.shape or ())
    return axis in _normal((node.attributes.get("axis", 0),), rank) or _rank_differs(
        node, before, after, axis
    )


def _gathered(node: Node, before: Value, after: Value, axis: int) -> bool:
    """Picking along an inner axis leaves the outer ones; indices take the place of the axis."""
    data = node.inputs[0]
    rank = len(data.shape or ()) if data is not None else 0
    (picked,) = _normal((node.attributes.get("axis", 0),), rank)
    return picked != 0 if before is not data else picked <= axis


def _multiplied(node: Node, before: Value, after: Value, axis: int) -> bool:
    """A product sums over the rows of its second operand, and over the columns of its first."""
    rank = len(before.shape or ())
    second = len(node.inputs) > 1 and before is node.inputs[1]
    flipped = bool(node.attributes.get("transB" if second else "transA"))
    summed = rank - 2 if second != flipped else rank - 1
    if node.op == "Gemm" and (second or flipped):
        return True
    other = node.inputs[0 if second else 1] if len(node.inputs) > 1 else None
    if node.op == "MatMul" and other is not None and len(other.shape or ()) == 1 < rank:
        return axis >= summed  # a vector takes away the axis that is summed, and adds none
    return axis == summed or _rank_differs(node, before, after, axis)


def _summed(node: Node, before: Value, after: Value, axis: int) -> bool:
    """An Einsum keeps an axis if its letter stands in the same place of the result."""
    terms, arrow, result = str(node.attributes.get("equation", "")).replace(" ", "").partition("->")
    position = next((k for k, value in enumerate(node.inputs) if value is before), 0)
    words = terms.split(",")
    if not arrow or "." in terms + result or position >= len(words):
        return True
    word = words[position]
    return axis >= min(len(word), len(result)) or word[axis] != result[axis]


def _lost(node: Node, before: Value, after: Value, axis: int) -> bool:
    return True


def _rank_differs(node: Node, before: Value, after: Value, axis: int) -> bool:
    """Any other op keeps axes in place as long as it keeps their number."""
    return len(before.shape or ()) != len(after.shape or ())


_MOVES: Mapping[str, Callable[[Node, Value, Value, int], bool]] = MappingProxyType(
    {
        "Transpose": _transposed,
        "Squeeze": _squeezed,
        "Unsqueeze": _unsqueezed,
        "Reshape": _reshaped,
        "Flatten": _reshaped,
        "Concat": _along,
        "Gather": _gathered,
        "GatherElements": _along,
        "ScatterElements": _along,
        "GatherND": _lost,
        "MatMul": _multiplied,
        "Gemm": _multiplied,
        "Einsum": _summed,
        # Sequence first: their axis 0 is time, and then directions.
        "LSTM": _lost,
        "GRU": _lost,
        "RNN": _lost,
        # What a body returns is not followed, and an engine of samples runs no bodies.
        "If": _lost,
        "Loop": _lost,
        "Scan": _lost,
        "ArgMax": _reduced,
        "ArgMin": _reduced,
    }
)


def _moves(node: Node, before: Value, after: Value, axis: int) -> bool:
    move = _reduced if node.op.startswith("Reduce") else _MOVES.get(node.op, _rank_differs)
    return move(node, before, after, axis)


def contracted_batch(site: Site, batch: BatchAxes) -> str | None:
    """The operand of a product whose batch axis is one that the product multiplies over.

    Without the batch such an operand is a vector, and the product another one. The rows of a Gemm's
    A are the exception: they are the rows of the result, and leave with them.
    """
    if site.kind not in (Kind.MATMUL, Kind.GEMM):
        return None
    for position, value in enumerate(site.node.inputs[:2]):
        axis = batch.of(value)
        if value is None or axis is None:
            continue
        outside = len(value.shape or ()) - 2
        rows = site.kind is Kind.GEMM and position == 0 and not site.node.attributes.get("transA")
        if axis >= outside + rows:
            return value.name
    return None


@dataclass(frozen=True, slots=True)
class Sample:
    """A site without its batch axis.

    Attributes:
        shapes: the operands' shapes as the target holds them.
        plan: the source's plan without the batch axis.
        axis: the result axis that was the batch, or None where no operand carried one.
        across: the operand that broadcasts across the batch axis, which then means nothing.
    """

    shapes: tuple[Shape, ...]
    plan: Plan
    axis: int | None = None
    across: int | None = None


def whole(plan: Plan) -> Sample:
    """A site on an engine that drops no axis."""
    return Sample(plan.operands, plan)


def without_batch(plan: Plan, batch: Sequence[int | None], constant: Sequence[bool]) -> Sample:
    """What is left of a site's plan and shapes when the batch axis is dropped.

    Args:
        plan: the source's plan.
        batch: for each operand its batch axis, or None.
        constant: for each operand whether it is a constant. A constant with an axis of extent 1 on
            the batch loses that axis; one of lower rank stays as it is.
    """
    landed = {plan.axes_mapping[k][axis] for k, axis in enumerate(batch) if axis is not None}
    if not landed:
        return Sample(*_with_an_axis(plan.operands, plan))
    result_axis = next(iter(landed))
    carried = {axis for axis in batch if axis is not None}
    if landed != carried or len(landed) > 1 or result_axis is None:
        # Laid under an operand of higher rank, the batch would have to become another axis.
        first = next(k for k, axis in enumerate(batch) if axis is not None)
        return Sample(plan.operands, plan, None, first)
    shapes = []
    for k, (shape, mapping) in enumerate(zip(plan.operands, plan.axes_mapping, strict=True)):
        here = mapping.index(result_axis) if result_axis in mapping else None
        if here is None:
            shapes.append(shape)
        elif here == batch[k] or (constant[k] and shape[here] == 1):
            shapes.append(shape[:here] + shape[here + 1 :])
        else:
            return Sample(plan.operands, plan, result_axis, k)
    mapping_ = tuple(
        tuple(
            axis if axis is None or axis < result_axis else axis - 1
            for axis in mapping
            if axis != result_axis
        )
        for mapping in plan.axes_mapping
    )
    result = plan.shape[:result_axis] + plan.shape[result_axis + 1 :]
    left = _rebuilt(plan, result, tuple(shapes), mapping_)
    return Sample(*_with_an_axis(left.operands, left), result_axis)


def _rebuilt(
    plan: Plan,
    result: Shape,
    shapes: tuple[Shape, ...],
    mapping: tuple[tuple[int | None, ...], ...],
) -> Plan:
    """The plan of other shapes that means the same; what it needed to exist it still needs."""
    if plan.open is None:
        return Plan(result, shapes, mapping, plan.rule)
    whole = plan.open.accepted
    leaf = replace(
        whole[0],
        path=ALWAYS,
        clauses=tuple((None, clause) for clause in plan.open.exists),
        shape=result,
        mapping=mapping,
        alignment=None,
        sizes=shapes,
    )
    return assemble(plan.rule, shapes, (leaf,), plan.open.given)


def _with_an_axis(shapes: tuple[Shape, ...], plan: Plan) -> tuple[tuple[Shape, ...], Plan]:
    """What has no axis at all is a vector of one: engines of samples have no rank 0."""
    if plan.rank:
        return shapes, plan
    count = len(shapes)
    return ((1,),) * count, Plan((1,), ((1,),) * count, ((0,),) * count, plan.rule)
