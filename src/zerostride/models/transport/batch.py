"""The batch axis, which ncnn's tensors do not have.

ncnn's layers see one sample. A converter removes the batch axis from every value that descends from
a graph input: axis 0, if its extent is 1 or counts samples and no op has moved it. A number above
1 counts samples where it reaches a convolution or the like. This module follows that axis through
the graph, and removes it from a site's shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...engines.table import ENGINES
from ...sizes import Shape
from ...sizes.condition import Condition, all_of
from ...sizes.dim import Dim, plain
from ..ir.graph import Graph, Node, Value
from ..ir.site import Operand
from .batch_sizes import BY_SAMPLE, Samples, sizes_of_samples
from .node_axes import new_axis

#: Engines whose tensors hold one sample, without the batch axis.
BATCHLESS = frozenset(name for name, row in ENGINES.items() if row.samples)
#: Further ops by which pnnx takes axis 0 for the batch: tests/conformance/test_front_doors.py.
_BY_PNNX = frozenset({"LayerNormalization", "PRelu", "RMSNormalization"})
#: Ops whose result depends on a tensor's shape or values but does not hold its samples.
_DETACHES = frozenset({"Shape", "Size", "NonZero", "ConstantOfShape", "Range", "EyeLike"})


class BatchAxes:
    """The values that carry a batch axis, and the position of that axis.

    Values are told apart by identity: two branches of an If may use one name for two tensors.

    Attributes:
        home: the position of the batch axis. Only a batch axis at this position is removed.
        samples: the open sizes that count samples; to the engine they are 1.
        notes: what was taken for a batch, in words.
        dropped: whether axes are dropped. A converter that finds no batch keeps all axes.
        telling: the ops of whose data axis 0 is the batch.
    """

    __slots__ = ("_places", "_under", "dropped", "home", "notes", "samples", "telling")

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
        self.notes: tuple[str, ...] = ()
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
        if node.onnx_op != "PRelu" or node.onnx_op not in self.telling:
            return node.onnx_op in self.telling
        slope = node.inputs[1]
        return slope is not None and slope.constant and any(n != 1 for n in slope.shape or ())

    def counts(self, size: object) -> bool:
        """Whether a size counts samples."""
        return bool(self.samples.sizes) and size in self.samples.sizes

    def put(self, value: Value, axis: int) -> None:
        """Notes that `axis` is the value's batch axis."""
        self._places[id(value)] = axis

    def of_one(self, shape: Shape) -> Shape:
        """The shape for one sample."""
        if not self.samples.sizes:
            return shape
        ones = self.samples.ones
        return tuple(
            plain(size.substitute(ones)) if isinstance(size, Dim) else size for size in shape
        )

    def needs_of_one(self, needs: Condition) -> Condition:
        """A model's needs for one sample, without those that one sample contradicts.

        The remaining sizes are those of the sample alone.
        """
        if not self.samples.sizes:
            return needs
        ones = self.samples.ones
        clauses = [clause.substitute(ones) for clause in needs.clauses]
        return all_of(clause for clause in clauses if not clause.never)


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
        samples=sizes_of_samples(graph, override, every=via is not None),
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
    axes.notes = tuple(_notes(axes.samples, fixed, engine))
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


def _notes(samples: Samples, fixed: Sequence[Value], engine: str) -> Iterator[str]:
    """Notes where neither a name nor a 1 decides what is a batch."""
    taken = []
    if samples.taken:
        taken.append(f"taken for a batch, and judged for one sample: {_listed(samples.taken)}")
    if samples.data:
        taken.append(f"taken for data: {_listed(samples.data)}")
    if taken:
        yield (
            f"{engine} holds no batch in its tensors; {'; '.join(taken)} (say otherwise: "
            f"batch_axis, --batch-axis {'none' if samples.taken else '0'})"
        )
    if fixed:
        names = [f"axis 0 of {value.name!r} ({(value.shape or ('?',))[0]})" for value in fixed]
        yield (
            f"{engine} holds no batch in its tensors; taken for a batch, and judged for one "
            f"sample: {_listed(names)} (say otherwise: batch_axis, --batch-axis none)"
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def follow(node: Node, axes: BatchAxes) -> None:
    """Hands the batch axis of a node's operands to its results."""
    if axes.told_by(node):
        _by_sample(node, axes)
    carriers = [v for v in node.inputs if v is not None and axes.place(v) is not None]
    if not carriers or node.onnx_op in _DETACHES:
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
