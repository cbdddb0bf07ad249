"""The Plan, from which everything else is derived. Start reading here.

A rule chooses, for each operand, the result axis on which each operand axis lands. A :class:`Plan`
is that choice, checked and canonical. Views, strides, drawings, rewrites and gradients are computed
from the Plan alone, without the rule.

Two plans are equal when they mean the same: same result shape, same aligned operand shapes. The
rule and the operands as written are provenance and take no part in equality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..errors import BroadcastError, Reason, printable
from ..sizes import Shape, brief, check_elements, whole_numbers

if TYPE_CHECKING:
    from ..attachments import PlanMethods
    from ..sizes.condition import Condition
    from .leaves import Open
else:
    PlanMethods = object  # attached when all rooms are loaded


class RuleUse(str):
    """The name of a rule, with the attributes it was used with and the engine that used it.

    It is a plain string (``plan.rule == "pdpd"``) that remembers where it came from.

    >>> use = RuleUse("pdpd", {"axis": 1}, engine="openvino")
    >>> use == "pdpd", use.label
    (True, "openvino's rule 'pdpd' axis=1")
    """

    __slots__ = ("attributes", "engine", "op")
    attributes: Mapping[str, Any]
    engine: str | None
    op: str | None

    def __new__(
        cls,
        name: str,
        attributes: Mapping[str, Any] | None = None,
        engine: str | None = None,
        op: str | None = None,
    ) -> RuleUse:
        """Names a use of rule `name`."""
        self = super().__new__(cls, name)
        self.attributes = MappingProxyType(dict(attributes or {}))
        self.engine = engine
        self.op = op
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return RuleUse, (str(self), dict(self.attributes), self.engine, self.op)

    @property
    def name(self) -> str:
        """The bare name, as a plain string."""
        return str(self)

    @property
    def label(self) -> str:
        """Name, attributes and engine, as messages print them."""
        owner = f"{self.engine}'s " if self.engine else ""
        values = "".join(f" {key}={_listed(value)}" for key, value in self.attributes.items())
        return f"{owner}rule {str(self)!r}{values}"


#: Characters of an attribute that a label shows; a list of 64 axes fits.
_LONGEST_VALUE = 260


def _listed(value: Any) -> str:
    """A value as a call writes it, a tuple as a list; cut to one line."""
    text = printable(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(PlanMethods):
    """How operands of given shapes become one result shape.

    Made by :func:`zerostride.plan` and :func:`zerostride.plan_to`. Frozen; equal and hashed by
    (shape, aligned) alone.

    Attributes:
        shape: the result's sizes, outermost first.
        operands: the operands' shapes as the caller wrote them.
        axes_mapping: for each operand, the result axis of each of its axes; None for an axis of
            extent 1 that the rule drops.
        rule: the rule and its attributes, where the plan came from.
        aligned: each operand's shape at the result's rank, 1 wherever nothing lands. Reshape an
            operand to it, then broadcast to `shape`.
        stretched: for each operand, the result axes where `aligned` is 1 and the result is not.
            With open sizes: where the two are not certainly the same.
        open: further facts of a plan with open sizes; None for a plan of numbers.

    >>> import zerostride as zs
    >>> p = zs.plan((2, 3, 4, 5), (3, 4), rule="pdpd", axis=1)
    >>> p.shape, p.aligned[1], p.stretched[1]
    ((2, 3, 4, 5), (1, 3, 4, 1), (0, 3))
    >>> p == zs.plan((2, 3, 4, 5), (3, 4, 1))
    True
    """

    shape: Shape
    operands: tuple[Shape, ...]
    axes_mapping: tuple[tuple[int | None, ...], ...]
    rule: RuleUse
    open: Open | None = None
    aligned: tuple[Shape, ...] = field(init=False)
    stretched: tuple[tuple[int, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.open is not None:
            object.__setattr__(self, "aligned", self.open.aligned)
            object.__setattr__(self, "stretched", tuple(map(self._stretches, self.aligned)))
            return
        check_elements(self.shape)
        aligned = tuple(map(self._align, self.operands, self.axes_mapping))
        object.__setattr__(self, "aligned", aligned)
        object.__setattr__(self, "stretched", tuple(map(self._stretches, aligned)))

    def _align(self, operand: Shape, mapping: Sequence[int | None]) -> Shape:
        """The operand's sizes at the result's rank; axes keep their order, dropped ones have extent
        1.
        """
        if operand == self.shape and mapping == (*range(len(operand)),):
            return operand  # it lies on the result as it is: the most frequent case
        if len(operand) != len(mapping):
            raise AssertionError(f"{len(mapping)} places for the {len(operand)} axes of {operand}")
        sizes: list[Any] = [1] * len(self.shape)
        last = -1
        for size, axis in zip(operand, mapping, strict=True):
            if axis is None:
                if size != 1:
                    raise AssertionError(f"an axis of extent {size} cannot be dropped")
                continue
            if not last < axis < len(sizes):
                raise AssertionError(f"axes {mapping} transpose or leave the result {self.shape}")
            if size not in (1, self.shape[axis]):
                raise AssertionError(f"extent {size} cannot become {self.shape[axis]}")
            sizes[axis] = size
            last = axis
        return tuple(sizes)

    def _stretches(self, aligned: Shape) -> tuple[int, ...]:
        if aligned == self.shape:
            return ()
        return tuple(k for k, size in enumerate(aligned) if size != self.shape[k])

    # Value semantics.

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return self.shape == other.shape and self.aligned == other.aligned

    def __hash__(self) -> int:
        return hash((self.shape, self.aligned))

    def __repr__(self) -> str:
        shapes = ", ".join(map(str, self.operands))
        return f"<Plan {shapes} -> {self.shape} by {self.rule.label}>"

    def __str__(self) -> str:
        return self.explain()

    @property
    def rank(self) -> int:
        """Number of result axes."""
        return len(self.shape)

    @property
    def two_sided(self) -> bool:
        """Whether two operands each stretch along an axis that the other one fills.

        That is the (N, 1) against (N,) accident, which makes (N, N).
        """
        return sum(map(bool, self.stretched)) > 1 and self.shape not in self.aligned

    # Open sizes.

    @property
    def conditions(self) -> Condition:
        """The condition under which the plan exists.

        A sequence of clauses, empty if there is a plan for all sizes. Called with values it returns
        true or false; `str` gives it in words.

        >>> import zerostride as zs
        >>> p = zs.plan(("N", 1, "H"), ("C", "H"))
        >>> p.shape, len(p.conditions)
        ((Dim('N'), Dim('C'), Dim('H')), 0)
        >>> print(zs.plan(("N", 3), ("M", 3)).conditions)
        M == N or N == 1 or M == 1
        """
        from .symbolic import conditions

        return conditions(self)

    @property
    def cases(self) -> tuple[Plan, ...]:
        """A Plan for each way the axes may land, with its condition; empty if there is one way
        only.

        >>> import zerostride as zs
        >>> for case in zs.plan(("H", "W"), ("W",), rule="ncnn").cases:
        ...     print(case.conditions, "->", case.aligned[1])
        H == W -> (Dim('W'), 1)
        H != W -> (1, Dim('W'))
        """
        from .symbolic import cases

        return cases(self)

    # Memory.

    def strides(self, k: int, strides: Sequence[int]) -> tuple[int, ...]:
        """Operand `k`'s strides in result order, in the unit given; 0 where it stretches.

        >>> import zerostride as zs
        >>> zs.plan((2, 3, 4), (3, 1)).strides(1, (8, 8))
        (0, 8, 0)
        """
        self.need_numbers("strides")
        k, steps = self.operand_number(k), whole_numbers(strides)
        if steps is None:
            raise BroadcastError(
                f"strides are a list of whole numbers, not {brief(strides)}",
                reason=Reason.ATTRIBUTE,
                rule=self.rule,
                shapes=self.operands,
                hint="pass the strides of an array: x.strides",
            )
        if len(steps) != len(self.operands[k]):
            raise BroadcastError(
                f"{len(steps)} strides for operand {k} of rank {len(self.operands[k])}",
                reason=Reason.RANK,
                rule=self.rule,
                shapes=self.operands,
            )
        result = [0] * self.rank
        for axis, stride in zip(self.axes_mapping[k], steps, strict=True):
            if axis is not None and axis not in self.stretched[k]:
                result[axis] = stride
        return tuple(result)

    def operand_number(self, k: Any) -> int:
        """`k` as the number of an operand, from 0; raises BroadcastError if there is none."""
        number = whole_numbers((k,))
        if number is not None and 0 <= number[0] < len(self.operands):
            return number[0]
        count = len(self.operands)
        counted = f"the plan has {count}, counted from 0"
        raise BroadcastError(
            f"an operand is named by its number, not by {brief(k)}; {counted}"
            if number is None
            else f"there is no operand {brief(number[0])}; {counted}",
            reason=Reason.ATTRIBUTE if number is None else Reason.OPERAND_COUNT,
            rule=self.rule,
            shapes=self.operands,
            hint="use 0" if count == 1 else f"use a number from 0 to {count - 1}",
        )

    def need_numbers(self, what: str) -> None:
        """Raises BroadcastError if a size is not a number; `what` begins the message."""
        if self.open is not None:
            raise BroadcastError(
                f"{what} needs all sizes as numbers",
                reason=Reason.UNKNOWN_SIZE,
                rule=self.rule,
                shapes=self.operands,
                hint="bind the sizes first: plan.bind(N=4), or plan.bind(*shapes)",
            )
