"""The batch axis, which ncnn's tensors do not have.

ncnn's layers see one sample. A converter removes the batch axis from every value that descends from
a graph input: axis 0, if its extent is 1 or counts samples and no op has moved it. A number above
1 counts samples where it reaches a convolution or the like. This module follows that axis through
the graph, and removes it from a site's shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core.plan import Plan
from ...core.symbolic import assemble
from ...sizes import Shape
from ...sizes.condition import ALWAYS, Condition, all_of
from ...sizes.dim import Dim, Symbol, lone_symbol, plain
from ..ir.graph import Graph, Node, Value
from ..ir.site import Kind, Operand, Site
from .batch_sizes import BY_SAMPLE, Samples, fixed_note, outer_sizes, sizes_of_samples
from .node_axes import new_axis

#: Further ops by which pnnx takes axis 0 for the batch: tests/conformance/test_front_doors.py.
_BY_PNNX = frozenset({"LayerNormalization", "PRelu", "RMSNormalization"})
#: Ops whose result depends on a tensor's shape or values but does not hold its samples.
_DETACHES = frozenset({"Shape", "Size", "NonZero", "ConstantOfShape", "Range", "EyeLike"})


class BatchAxes:
    """Which values carry a batch axis, and which axis it is.

    Values are told apart by identity: two branches of an If may use one name for two tensors.

    Attributes:
        home: the position of the batch axis. Only a batch axis at this position is removed.
        samples: the open sizes that count samples; to the engine they are 1.
        dropped: whether axes are dropped. A converter that finds no batch keeps all axes.
        telling: the ops of whose data axis 0 is the batch.
    """

    __slots__ = ("_places", "_under", "dropped", "home", "samples", "telling")

    def __init__(
        self,
        under: BatchAxes | None = None,
        *,
        home: int = 0,
        samples: Samples | None = None,
        dropped: bool = True,
        telling: frozenset[str] = BY_SAMPLE,
    ) -> None:
        """Starts with the axes of `under`, if any."""
        self._places: dict[int, int] = {}
        self._under = under
        self.home: int = home if under is None else under.home
        self.dropped: bool = dropped if under is None else under.dropped
        self.telling: frozenset[str] = telling if under is None else under.telling
        self.samples: Samples = samples or (Samples() if under is None else under.samples)

    def of(self, value: Value | None) -> int | None:
        """The value's batch axis, where the engine drops it.

        The only axis of a value is kept: it means the same whether kept or dropped.
        """
        if not self.dropped or value is None or len(value.shape or ()) < 2:
            return None
        place = self.place(value)
        return place if place == self.home else None

    def of_operand(self, part: Operand) -> int | None:
        """The operand's batch axis; a part of a tensor may lack it."""
        axis = self.of(part.tensor)
        return axis if axis is not None and axis < len(part.shape or ()) else None

    def place(self, value: Value | None) -> int | None:
        """The place of the batch in the value, even if an op has moved it; or None."""
        if value is None or value.constant or value.shape is None:
            return None
        if len(value.shape) > self.home and self.counts(value.shape[self.home]):
            return self.home
        place = self._places.get(id(value))
        return self._under.place(value) if place is None and self._under is not None else place

    def told_by(self, node: Node) -> bool:
        """Whether axis 0 of a node's data is the batch. A PRelu of one slope is a LeakyRelu."""
        if node.word != "PRelu" or node.word not in self.telling:
            return node.word in self.telling
        slope = node.inputs[1]
        return slope is not None and slope.constant and any(n != 1 for n in slope.shape or ())

    def counts(self, size: object) -> bool:
        """Whether a size counts samples."""
        return bool(self.samples.symbols) and lone_symbol(size) in self.samples.symbols

    def put(self, value: Value, axis: int) -> None:
        """Notes that `axis` is the value's batch axis."""
        self._places[id(value)] = axis

    def of_one(self, shape: Shape) -> Shape:
        """The shape for one sample."""
        if not self.samples.symbols:
            return shape
        return tuple(
            plain(size.substitute(self._ones)) if isinstance(size, Dim) else size for size in shape
        )

    def needs_of_one(self, needs: Condition) -> Condition:
        """A model's needs for one sample, without those that one sample contradicts.

        The remaining sizes are those of the sample alone.
        """
        if not self.samples.symbols:
            return needs
        clauses = [clause.substitute(self._ones) for clause in needs.clauses]
        return all_of(clause for clause in clauses if not clause.never)

    @property
    def _ones(self) -> dict[Symbol, int]:
        return dict.fromkeys(self.samples.symbols, 1)


def batch_axes(
    graph: Graph, override: int | None = None, engine: str = "ncnn", *, via: str | None = None
) -> BatchAxes:
    """The batch axis of every value that carries one.

    Args:
        graph: the model.
        override: the batch axis of every graph input, whatever its extent; a negative number for
            no batch axis. None: axis 0 where its extent is 1 or counts samples, or where it
            reaches an op that is defined by samples.
        engine: the engine that lacks the axis.
        via: a converter. pnnx takes every open axis 0 for a batch (load_onnx.cpp), and drops the
            batch where an op of the model is defined by samples.
    """
    telling = BY_SAMPLE | _BY_PNNX if via == "pnnx" else BY_SAMPLE
    axes = BatchAxes(
        home=max(0, override or 0),
        samples=_samples(graph, override, engine, via),
        dropped=override is None or override >= 0,
        telling=telling,
    )
    told = any(map(axes.told_by, graph.nodes))
    axes.dropped &= via != "pnnx" or override is not None or told
    fixed = []
    for value in graph.inputs:
        shape = value.shape or ()
        if len(shape) > axes.home and (override is not None or shape[axes.home] == 1):
            axes.put(value, axes.home)
        elif override is None and told and _holds_samples(value, graph, axes):
            fixed.append(value)
    fixed += _beside(fixed, graph)
    for value in fixed:
        axes.put(value, 0)
    axes.samples = replace(axes.samples, notes=(*axes.samples.notes, *fixed_note(fixed, engine)))
    for node in graph.nodes:
        follow(node, axes)
    return axes


def _holds_samples(value: Value, graph: Graph, axes: BatchAxes) -> bool:
    """Whether a number on axis 0 of an input reaches, as axis 0, an op defined by samples."""
    shape = value.shape or ()
    if len(shape) < 2 or not isinstance(shape[0], int):
        return False
    trial = BatchAxes(axes)
    trial.put(value, 0)
    for node in graph.nodes:
        data = node.inputs[0] if node.inputs else None
        if trial.told_by(node) and trial.place(data) == 0 and axes.place(data) is None:
            return True
        follow(node, trial)
    return False


def _beside(fixed: Sequence[Value], graph: Graph) -> list[Value]:
    """Further inputs with as many samples: the same number on axis 0, and as many axes."""
    alike = {(len(value.shape or ()), (value.shape or (None,))[0]) for value in fixed}
    return [
        value
        for value in graph.inputs
        if all(value is not other for other in fixed)
        and value.shape
        and (len(value.shape), value.shape[0]) in alike
    ]


def _samples(graph: Graph, override: int | None, engine: str, via: str | None) -> Samples:
    if override is not None and override < 0:
        return Samples()
    if override is not None:
        return Samples(frozenset(outer_sizes(graph, override)))
    sizes = sizes_of_samples(graph, engine)
    return sizes if via is None else Samples(frozenset(outer_sizes(graph)))


def follow(node: Node, axes: BatchAxes) -> None:
    """Hands the batch axis of a node's operands to its results."""
    if axes.told_by(node):
        _by_sample(node, axes)
    carriers = [v for v in node.inputs if v is not None and axes.place(v) is not None]
    if not carriers or node.word in _DETACHES:
        return
    # The operand of the highest rank decides: the others align with it from the right.
    carrier = max(carriers, key=lambda value: len(value.shape or ()))
    axis = axes.place(carrier)
    if axis is None or carrier.shape is None:
        return
    for value in node.outputs:
        place = new_axis(node, carrier, value, axis)
        if place is not None and value.shape and value.shape[place] == carrier.shape[axis]:
            axes.put(value, place)


def _by_sample(node: Node, axes: BatchAxes) -> None:
    """Makes axis 0 of the data the batch, even if it was lost on the way here."""
    data = node.inputs[0] if node.inputs else None
    if data is None or data.constant or axes.home != 0 or axes.place(data) is not None:
        return
    if data.shape and data.shape[0] == 1:
        axes.put(data, 0)


def contracted_batch(site: Site, batch: BatchAxes) -> int | None:
    """The input of a product whose batch axis is an axis of the matrix.

    Without the batch such an input is a vector, and the product is another one. The rows of a
    Gemm's A are an exception: they are the rows of the result, which loses them too.
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
            return position
    return None


@dataclass(frozen=True, slots=True)
class Sample:
    """A site without its batch axis.

    Attributes:
        shapes: the operands' shapes as the target holds them.
        plan: the source's plan without the batch axis.
        axis: the result axis that was the batch, or None where no operand carried one.
        across: the operand that broadcasts across the batch axis, which the target cannot do.
    """

    shapes: tuple[Shape, ...]
    plan: Plan
    axis: int | None = None
    across: int | None = None


def whole(plan: Plan) -> Sample:
    """A site on an engine that keeps all axes."""
    return Sample(plan.operands, plan)


def without_batch(plan: Plan, batch: Sequence[int | None]) -> Sample:
    """A site's plan and shapes without the batch axis.

    Args:
        plan: the source's plan.
        batch: for each operand its batch axis, or None. An operand without one loses an axis of
            extent 1 that lies on the batch of another.
    """
    carriers = {k: axis for k, axis in enumerate(batch) if axis is not None}
    if not carriers:
        return Sample(*_with_an_axis(plan.operands, plan))
    landed = {k: plan.axes_mapping[k][axis] for k, axis in carriers.items()}
    in_place = [axis for k, axis in carriers.items() if landed[k] == axis]
    outer = plan.shape[: 1 + max(axis or 0 for axis in landed.values())]
    if not in_place and any(size != 1 for size in outer):
        # Aligned with an operand of higher rank, the batch would become another axis.
        return Sample(plan.operands, plan, None, next(iter(carriers)))
    # An operand of higher rank that has only ones there keeps them, and so does the result.
    result_axis = in_place[0] if in_place else -1
    shapes, mappings = [], []
    for k, (shape, mapping) in enumerate(zip(plan.operands, plan.axes_mapping, strict=True)):
        own = batch[k]
        under = mapping.index(result_axis) if result_axis in mapping else None
        if own != under and any(shape[axis] != 1 for axis in (own, under) if axis is not None):
            return Sample(plan.operands, plan, result_axis, k)
        gone = under if own is None else own
        kept = [axis for axis in range(len(shape)) if axis != gone]
        shapes.append(tuple(shape[axis] for axis in kept))
        mappings.append(tuple(_inner(mapping[axis], result_axis) for axis in kept))
    result = tuple(size for axis, size in enumerate(plan.shape) if axis != result_axis)
    left = _rebuilt(plan, result, tuple(shapes), tuple(mappings))
    return Sample(*_with_an_axis(left.operands, left), result_axis if in_place else None)


def _inner(axis: int | None, gone: int) -> int | None:
    """A result axis after another one is removed; −1: none is removed."""
    if axis is None or axis == gone:
        return None
    return axis if gone < 0 or axis < gone else axis - 1


def _rebuilt(
    plan: Plan,
    result: Shape,
    shapes: tuple[Shape, ...],
    mapping: tuple[tuple[int | None, ...], ...],
) -> Plan:
    """The plan of other shapes with the same meaning and the same conditions."""
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
    """A shape of rank 0 becomes (1,): engines of samples have no rank 0."""
    if plan.rank:
        return shapes, plan
    count = len(shapes)
    return ((1,),) * count, Plan((1,), ((1,),) * count, ((0,),) * count, plan.rule)
