"""The reasons of findings: a stable code, a name and a meaning each.

A code never changes its meaning and is never used again. Codes of one hundred belong together:
ZS1 are reasons of audits, ZS2 are reasons for which a rule or an engine refuses shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..errors import Reason


class Cause(StrEnum):
    """Reasons of findings, in addition to :class:`~zerostride.errors.Reason`."""

    SAME_PLAN = "same_plan"
    FOLDED = "folded"
    SIZE_TRAP = "size_trap"
    OTHER_ALIGNMENT = "other_alignment"
    OTHER_VALUES = "other_values"
    NARROWED = "narrowed"
    SILENT = "silent"
    BATCH = "batch_broadcast"
    INVALID = "invalid_source"
    UNKNOWN_SHAPE = "unknown_shape"
    MISSING_DATA = "missing_data"
    NOT_MODELLED = "not_modelled"
    NOT_MEASURED = "not_measured"
    CUSTOM_OP = "custom_op"
    LAYOUT = "layout"
    MIXED_TYPES = "mixed_types"
    OTHER_ATTENTION = "other_attention"
    ACCIDENT = "accident"
    OUTER_GROWTH = "outer_growth"


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """A row of the table.

    Attributes:
        code: "ZS101".
        name: the reason, as findings have it.
        meaning: one line.
    """

    code: str
    name: Cause | Reason
    meaning: str


#: Every reason. Add rows at the end of their hundred.
REASONS: tuple[ReasonRow, ...] = tuple(
    ReasonRow(f"ZS{number}", name, meaning)
    for number, name, meaning in (
        (101, Cause.SAME_PLAN, "The target's plan is the model's plan."),
        (102, Cause.FOLDED, "The node computes sizes from sizes, which converters fold."),
        (103, Cause.SIZE_TRAP, "The plans are equal at these sizes and differ at others."),
        (104, Cause.OTHER_ALIGNMENT, "The target aligns the operands differently."),
        (105, Cause.OTHER_VALUES, "The target's op of this name computes other numbers."),
        (106, Cause.NARROWED, "The target computes in a narrower element type."),
        (107, Cause.SILENT, "The target does not refuse; it computes nonsense or crashes."),
        (108, Cause.BATCH, "The broadcast runs along the batch axis, which the target drops."),
        (109, Cause.INVALID, "The model itself does not broadcast here."),
        (110, Cause.UNKNOWN_SHAPE, "A shape or a size is not known."),
        (111, Cause.MISSING_DATA, "Data that decide a shape are missing."),
        (112, Cause.NOT_MODELLED, "The op may broadcast in a way that is not modelled."),
        (113, Cause.NOT_MEASURED, "The op was not measured on the target."),
        (114, Cause.CUSTOM_OP, "Nothing is known about the op, which is of another domain."),
        (115, Cause.LAYOUT, "The layout channels-last, and what an operand becomes there."),
        (116, Cause.MIXED_TYPES, "The model itself mixes element types that the op does not take."),
        (117, Cause.OTHER_ATTENTION, "The target's attention has other heads, masks or offsets."),
        (118, Cause.ACCIDENT, "Operands of equal sizes stretch against each other; seldom meant."),
        (119, Cause.OUTER_GROWTH, "Operands stretch against each other to a far larger result."),
        (201, Reason.BAD_EXTENT, "A size is negative or no whole number."),
        (202, Reason.TOO_LARGE, "The result has more than 2^63 - 1 elements."),
        (203, Reason.OPERAND_COUNT, "The number of operands does not fit."),
        (204, Reason.ATTRIBUTE, "An attribute is missing, extra or malformed."),
        (205, Reason.AXIS_RANGE, "An axis is outside the range that the rule allows."),
        (206, Reason.OVERRUN, "An operand placed at `axis` sticks out of the result."),
        (207, Reason.DUPLICATE_AXES, "Two axes of an operand would land on one result axis."),
        (208, Reason.TRANSPOSES, "Axes would have to change their order."),
        (209, Reason.RANK, "An operand's rank does not fit."),
        (210, Reason.RANK_LIMIT, "There are more axes than the rule or the engine carries."),
        (211, Reason.EXTENT_MISMATCH, "Two sizes differ and neither is 1."),
        (212, Reason.ONE_WAY, "It would fit if the other operand might stretch."),
        (213, Reason.NOT_IDENTICAL, "Shapes differ under a rule that stretches nothing."),
        (214, Reason.UNKNOWN_SIZE, "A size must be a number and is open."),
        (215, Reason.UNKNOWN_RULE, "There is no rule of this name."),
        (216, Reason.UNKNOWN_ENGINE, "There is no engine of this name."),
        (217, Reason.UNKNOWN_OP, "There is no op of this name."),
        (218, Reason.NO_RULE, "The engine lacks the rule."),
        (219, Reason.NO_OP, "The engine lacks the op."),
        (220, Reason.DTYPE, "The engine lacks the op for this element type."),
        (221, Reason.CRASH, "The plan is valid and kills the engine."),
        (222, Reason.WRONG_RESULT, "The engine answers, and the answer is wrong."),
        (223, Reason.TWO_SIDED, "Strict mode: operands stretch against each other."),
        (224, Reason.NEW_AXES, "Strict mode: an operand has fewer axes than the result."),
        (225, Reason.GROWTH, "Strict mode: the result is much larger than its operands."),
        (226, Reason.PLUGIN, "A rule of another package failed."),
        (227, Reason.LIMIT, "The engine refuses what its rule takes."),
        (
            228,
            Reason.NOT_UNDERSTOOD,
            "The engine was run: it was not asked this, or its answers fit no rule.",
        ),
    )
)
_BY_NAME = {str(row.name): row for row in REASONS}


def row_of_code(code: str) -> ReasonRow | None:
    """The row of a code.

    >>> row_of_code("ZS103").name
    <Cause.SIZE_TRAP: 'size_trap'>
    """
    return next((row for row in REASONS if row.code == code), None)


def code_of(reason: str) -> str:
    """The code of a reason.

    >>> code_of("size_trap")
    'ZS103'
    """
    return _BY_NAME[reason].code
