"""The frozen value of a quantisation, and the types of the engines' rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ..core.plan import Plan, RuleUse
from ..sizes import Shape


class Placement(StrEnum):
    """How a scale lies on a tensor."""

    TENSOR = "tensor"  # one number
    AXIS = "axis"  # a vector along one axis
    AXES = "axes"  # a scale of the tensor's rank that is 1 where it repeats
    BLOCK = "block"  # a number for each run of elements along an axis, or along several


class Divided(StrEnum):
    """How a number is divided by its scale."""

    DIVIDE = "divide"  # x / s
    RECIPROCAL = "reciprocal"  # x * (1 / s)
    RANGE = "range"  # x * (levels / (high - low)) + shift, the two ends of the range in float32


class Shifted(StrEnum):
    """When the zero point is added."""

    AFTER = "after"  # to the rounded number
    BEFORE = "before"  # to the quotient, which is then rounded
    FUSED = "fused"  # before, the product and the sum rounded once


class Huge(StrEnum):
    """The result of numbers that int32 does not hold."""

    ENDS = "ends"  # the nearest end of the type
    LOWEST = "lowest"  # they become the least int32, whatever their sign, before the zero point


class Ties(StrEnum):
    """Where a number half way between two whole ones goes."""

    EVEN = "even"
    AWAY = "away"  # from zero
    HALF = "half"  # half is added in float32 and the rest cut off, so 0.49999997 gives 1


class NotANumber(StrEnum):
    """The result of NaN in a type of whole numbers."""

    LOWEST = "lowest"
    HIGHEST = "highest"
    ZERO = "zero"


class Subtracted(StrEnum):
    """How the zero point is subtracted from a quantised number."""

    EXACTLY = "exactly"
    WRAPS = "wraps"  # of int32: in int32, which wraps around
    DOUBLES = "doubles"  # of int32: the number is made float32; then in float64, as is the product
    FUSED = "fused"  # of 8 bits and more: q * s - (z * s), product and difference rounded once


@dataclass(frozen=True, slots=True)
class Rounding:
    """The arithmetic of a quantisation to whole numbers; results saturate.

    Attributes:
        divided: how a number is divided by its scale.
        shifted: when the zero point is added.
        ties: where ties go.
        huge: what numbers beyond int32 become.
        nan: what NaN becomes.
        symmetric: the lowest number is minus the highest.
        lanes: elements that are rounded together; those left over at the end of a tensor are
            divided in float64, ties away from zero. 0: all are rounded alike.
        row_lanes: elements of an index of axis 0 that are rounded together; those left over at its
            end are rounded exactly, ties away from zero, unless axis 0 is a multiple of it.

    >>> str(Rounding().ties), str(Rounding().shifted)
    ('even', 'after')
    """

    divided: Divided = Divided.DIVIDE
    shifted: Shifted = Shifted.AFTER
    ties: Ties = Ties.EVEN
    huge: Huge = Huge.ENDS
    nan: NotANumber = NotANumber.LOWEST
    symmetric: bool = False
    lanes: int = 0
    row_lanes: int = 0

    def sentence(self) -> str:
        """The arithmetic in a line.

        >>> Rounding().sentence()
        'round(x / scale) + zero point; ties to even; saturates; NaN gives the lowest number'
        """
        words = {
            Divided.DIVIDE: "x / scale",
            Divided.RECIPROCAL: "x * (1 / scale)",
            Divided.RANGE: "x * steps + shift",
        }
        quotient = words[self.divided]
        if self.divided is Divided.RANGE:
            formula = f"round({quotient}) + lowest"
        elif self.shifted is Shifted.AFTER:
            formula = f"round({quotient}) + zero point"
        else:
            formula = f"round({quotient} + zero point)"
        fused = ", product and sum rounded once" if self.shifted is Shifted.FUSED else ""
        ties = "to even" if self.ties is Ties.EVEN else "away from 0"
        ends = "saturates" if self.huge is Huge.ENDS else "beyond int32 the least int32"
        ends += ", at -127 as well" if self.symmetric else ""
        nan = {"zero": "0", "lowest": "the lowest number", "highest": "the highest number"}
        return f"{formula}{fused}; ties {ties}; {ends}; NaN gives {nan[self.nan]}"


@dataclass(frozen=True, slots=True)
class Quantizer:
    """What a release of an engine makes of quantisation: a row.

    Attributes:
        name: the engine.
        release: the release that was measured.
        source: where the facts are from, and how many cases were run.
        run: whether it was run (True) or only read.
        rounding: the arithmetic, where `special` has none.
        special: the arithmetic by placement, and by placement and stored type: `"axis"`,
            `"tensor int8"`.
        stores: the types to which it quantises.
        reads: the types from which it dequantises.
        floats: the types of the numbers that it quantises, and of scales.
        placements: the least opset for each placement; 0 where there are no opsets.
        own: the least opset from which float16 is divided in float16; None: in float32.
        subtracts: how dequantising subtracts the zero point.
        divides: a block has to divide its axis, and has a zero point.
        vectors: a scale of shape (1,) is one number even where block= is given, which is refused.
        zeros: whether it has zero points.
        vector_axis: the one axis on which a vector of scales may lie; None: any.
        packs: channels that are stored together; a vector of more of them for several samples gives
            wrong numbers.
        least_rank: tensors of fewer axes end the process.
        reads_from: the least opset in which it dequantises.
        shared: one zero point may serve a vector of scales.
        default_axis: the axis of a vector where none is named; None: it has to be named.
        notes: other facts that users meet.
    """

    name: str
    release: str
    source: str
    run: bool = True
    rounding: Rounding = Rounding()
    special: Mapping[str, Rounding] = field(default_factory=dict)
    stores: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    floats: frozenset[str] = frozenset({"float32"})
    placements: Mapping[Placement, int] = field(default_factory=dict)
    own: int | None = None
    subtracts: Subtracted = Subtracted.EXACTLY
    divides: bool = False
    vectors: bool = False
    zeros: bool = True
    vector_axis: int | None = None
    packs: int = 0
    least_rank: int = 0
    reads_from: int = 0
    shared: bool = False
    default_axis: int | None = 1
    notes: tuple[str, ...] = ()

    def rounding_of(self, placement: Placement, dtype: str) -> Rounding:
        """The arithmetic for a placement and a stored type."""
        typed = self.special.get(f"{placement} {dtype}")
        return typed or self.special.get(str(placement)) or self.rounding


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QuantizationPlan:
    """How a scale and a zero point lie on a tensor.

    Made by :func:`zerostride.plan_quantization`. Frozen; equal and hashed by meaning: the tensor's
    shape, and the plan of its parameters over the split axes.

    Attributes:
        shape: the tensor's sizes.
        plan: an ordinary :class:`~zerostride.Plan` of the tensor, its scale and its zero point. A
            blocked axis of n elements is two axes there: n / block, and block.
        blocks: for each axis of the tensor, how many neighbours share a number.
        placement: "tensor", "axis", "axes" or "block".
        axes: the axes along which the scale does not repeat.
        padding: for each axis of the tensor, the elements that its last block lacks.
        rule: where it came from: the engine, opset, axis and block.

    >>> import zerostride as zs
    >>> p = zs.plan_quantization((4, 64), (4, 2), block=32)
    >>> p.plan.shape, p.plan.aligned[1], p.blocks
    ((4, 2, 32), (4, 2, 1), (1, 32))
    """

    shape: Shape
    plan: Plan
    blocks: Shape
    placement: Placement
    axes: tuple[int, ...]
    padding: Shape
    rule: RuleUse

    @property
    def split(self) -> Shape:
        """The tensor's shape with each blocked axis split in two."""
        return self.plan.shape

    @property
    def operands(self) -> tuple[Shape, ...]:
        """The shapes of the tensor, its scale and its zero point."""
        return (self.shape, *self.plan.operands[1:])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QuantizationPlan):
            return NotImplemented
        return (self.shape, self.plan) == (other.shape, other.plan)

    def __hash__(self) -> int:
        return hash((self.shape, self.plan))

    def __repr__(self) -> str:
        shapes = ", ".join(map(str, self.operands))
        return f"<QuantizationPlan {shapes} by {self.rule.label}>"

    def __str__(self) -> str:
        return self.explain()

    def explain(self) -> str:
        """Which numbers share a scale, with the drawing of the plan.

        >>> import zerostride as zs
        >>> print(zs.plan_quantization((2, 6), (2,), axis=0).explain())
        rule 'quantization' axis=0: a scale for each index of axis 0
          x      2 6
          scale  2 .
        2 scales for 12 elements
        """
        from .words import explain

        return explain(self)
