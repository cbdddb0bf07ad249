"""A site: a node that may broadcast, its operands and its rule.

Every format's `find_site` returns sites; audits, ports and executions read them. The rules here
take operands, in contrast to rules of similar names in `core.rules`, which take a target shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...core.alignment import Alignment, Attribute, Attributes, Rule, apply
from ...core.plan import Plan
from ...core.rules import RULES, right_aligned
from ...errors import Misfit, Reason
from ...sizes import Asker, Shape
from .graph import FileShape, Node, Value

if TYPE_CHECKING:
    from ...attention.plan import Asked
    from ...attention.rules import AttentionRule
    from ...sizes.condition import Condition


class Kind(StrEnum):
    """The kind of a site; engines treat each kind differently."""

    ELEMENTWISE = "elementwise"
    WHERE = "where"
    EXPAND = "expand"
    PRELU = "prelu"
    CLIP = "clip"
    GEMM = "gemm"
    MATMUL = "matmul"
    CHANNEL = "channel"
    TRAILING = "trailing"
    PER_AXIS = "per_axis"
    ATTENTION = "attention"
    NOT_MODELLED = "not_modelled"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a site: a tensor of the model, or a part of one (the batch axes)."""

    name: str
    shape: FileShape
    constant: bool = False
    missing: str | None = None
    tensor: Value | None = None  # the tensor whose outer axes these are


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """The call of an attention node without its shapes, and the row of its op.

    Attributes:
        rule: the row.
        asked: the call.
        where: the values of operands for which this is the call, in a sentence; empty if all.
        unfit: why the op's own engine refuses the node, whatever its sizes; empty if not.
    """

    rule: AttentionRule
    asked: Asked
    where: str = ""
    unfit: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """One broadcast of the model.

    Attributes:
        node: the node.
        kind: the kind of broadcast.
        operands: the broadcast operands; for EXPAND the data and a target whose shape is its sizes.
        rule: the source's rule.
        attributes: the rule's attributes.
        op: the op's name in ONNX, or in the op table if ONNX lacks it; empty for the node's own.
        whole: the node computes this op on these operands and nothing else. False: a weighted sum.
        call: of an attention: its call, which stands in the place of the rule.
        lacks: of a site that is not modelled: the part of the op that is not.
    """

    node: Node
    kind: Kind
    operands: tuple[Operand, ...]
    rule: Rule
    attributes: Mapping[str, Any]
    op: str = ""
    whole: bool = True
    call: AttentionCall | None = None
    lacks: str = ""

    @property
    def stands_for(self) -> str:
        """The op that engines are compared by."""
        return self.op or self.node.op

    def plan(self, shapes: tuple[Shape, ...], facts: Condition | None = None) -> Plan:
        """The source's plan for these shapes, if `facts` hold for their symbols."""
        return apply(self.rule, shapes, self.attributes, facts=facts)


def operand_of(value: Value) -> Operand:
    """A whole tensor as an operand."""
    return Operand(value.name, value.shape, value.constant, value.missing, value)


def present_operands(node: Node) -> tuple[Operand, ...]:
    """The operands of a node that are present."""
    return tuple(operand_of(value) for value in node.inputs if value is not None)


def input_at(node: Node, position: int) -> Value | None:
    """A node's input; None if it is left out."""
    return node.inputs[position] if position < len(node.inputs) else None


def unjudged(node: Node, kind: Kind) -> Site:
    """The site of a node that may broadcast and cannot be judged."""
    return Site(node, kind, present_operands(node), BOTH_WAYS, {})


def not_modelled(node: Node, lacks: str = "") -> Site:
    """The site of a node that may broadcast in a way that is not modelled; `lacks` names it."""
    return replace(unjudged(node, Kind.NOT_MODELLED), lacks=lacks)


def batches(operands: Sequence[Operand]) -> tuple[Operand, ...] | None:
    """The axes before the last two of factors; None if no factor has such axes.

    Two vectors have none, and are a site nonetheless: not every engine multiplies them.
    """
    ranks = {3 if part.shape is None else len(part.shape) for part in operands}
    if ranks != {1} and ranks <= {0, 1, 2}:
        return None
    return tuple(
        replace(
            part,
            shape=None if part.shape is None else part.shape[:-2],
            name=f"{part.name}[batch]",
        )
        for part in operands
    )


# Rules of ops whose first operand does not stretch.


def _align_one_way(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """Aligns the others right with the first, which does not stretch."""
    rank, mapping = right_aligned(shapes)
    if rank > len(shapes[0]):
        raise Misfit(Reason.RANK, f"an operand has rank {rank}, the first only {len(shapes[0])}")
    return Alignment(rank, mapping, ((), *[range(rank)] * (len(shapes) - 1)))


def _align_at_axis(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    return vectors_along(shapes, attributes["axis"])


def vectors_along(shapes: tuple[Shape, ...], axis: int) -> Alignment:
    """Aligns vectors with one axis of the first; they repeat only along its other axes."""
    rank = len(shapes[0])
    if not 0 <= axis < rank:
        raise Misfit(Reason.AXIS_RANGE, f"axis {axis} of data of rank {rank}")
    for k, shape in enumerate(shapes[1:], start=1):
        if len(shape) != 1:
            raise Misfit(Reason.RANK, f"operand {k} has rank {len(shape)}; it must be a vector")
    places = (tuple(range(rank)), *[(axis,)] * (len(shapes) - 1))
    return Alignment(rank, places, ((),) * len(shapes))


def _align_beside_axis(
    asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes
) -> Alignment:
    """The others right-aligned to the axes of the first without one, along which they repeat."""
    rank, axis = len(shapes[0]), attributes["axis"]
    rest = tuple(place for place in range(rank) if place != axis)
    if not 0 <= axis < rank:
        raise Misfit(Reason.AXIS_RANGE, f"axis {axis} of data of rank {rank}")
    if any(len(shape) > len(rest) for shape in shapes[1:]):
        raise Misfit(Reason.RANK, f"an operand has more than the {len(rest)} axes beside {axis}")
    places = (tuple(range(rank)), *[rest[len(rest) - len(shape) :] for shape in shapes[1:]])
    return Alignment(rank, places, ((),) * len(shapes))


def _align_one_number(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """Every operand after the first is one number, as () or (1,); the first does not change."""
    rank = len(shapes[0])
    for k, shape in enumerate(shapes[1:], start=1):
        if len(shape) > 1 or not all(map(asker.is_one, shape)):
            raise Misfit(Reason.RANK, f"operand {k} is {shape}; it must be one number")
    places = (tuple(range(rank)), *[(None,) * len(shape) for shape in shapes[1:]])
    return Alignment(rank, places, ((), *[range(rank)] * (len(shapes) - 1)))


BOTH_WAYS = RULES["numpy"]
ONE_WAY = replace(
    RULES["unidirectional"],
    name="one_way",
    align=_align_one_way,
    summary="The others right-aligned to the first, which does not stretch.",
    source="ONNX, Broadcasting.md, unidirectional",
    to_target=False,
    operands=(1, 16),
    one_way="only the later operands may stretch, to the first",
)
AT_AXIS = replace(
    RULES["pdpd"],
    name="at_axis",
    attributes=MappingProxyType({"axis": Attribute(required=True)}),
    one_way="a vector along the axis has its size",
    align=_align_at_axis,
    summary="Vectors along one axis of the first operand.",
    source="ONNX operator documents: a vector along an axis",
    operands=(1, 16),
)
BESIDE_AXIS = replace(
    AT_AXIS,
    name="beside_axis",
    one_way="an operand has the first one's sizes",
    align=_align_beside_axis,
    summary="The others right-aligned to the axes of the first but one, along which they repeat.",
    source="ONNX operator document, RotaryEmbedding: its angles serve all heads",
)
ONE_NUMBER = replace(
    ONE_WAY,
    name="one_number",
    align=_align_one_number,
    summary="Every operand after the first is one number.",
    source="ONNX operator document, Clip: min and max are scalars; ONNX Runtime takes (1,) too",
)
