"""An expression: the change after which a rule means what a plan means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.plan import RuleUse
from ...core.rules import RULES
from ...errors import operand_names
from ...sizes import Shape

if TYPE_CHECKING:
    from ...sizes.condition import Condition


@dataclass(frozen=True, slots=True)
class Expression:
    """A plan in terms of another rule.

    Attributes:
        shapes: the shapes to reshape the operands to, in the order in which the rule takes them;
            for a Broadcast op the data's shape and the target shape.
        attributes: the rule's attributes (axis, broadcast, axes_mapping).
        swapped: the rule takes the operands in reverse order.
        merged_axes: for each axis of `result_shape` the result axes of the plan merged into it;
            empty if nothing is merged.
        result_shape: the rule's result; reshape it to the plan's shape if axes are merged.
        rule: the rule that was asked for, and the engine.
        changed: which operands are reshaped; for a Broadcast op of a model also whether the target
            shape is another one.
        only_if: the open sizes for which it means the same; None: all.
        explicit: for an engine that stretches nothing by itself: for each operand, in order, the
            result axes on which a Broadcast op before it lays the axes of its shape; None: no op is
            needed. `shapes` has the shapes after it. Empty: no Broadcast op is involved.
    """

    shapes: tuple[Shape, ...]
    attributes: Mapping[str, Any]
    swapped: bool
    merged_axes: tuple[tuple[int, ...], ...]
    result_shape: Shape
    rule: RuleUse
    changed: tuple[bool, ...]
    only_if: Condition | None = None
    explicit: tuple[tuple[int, ...] | None, ...] = ()

    def describe(self, names: Sequence[Any] = ()) -> str:
        """The change on one line, with these names for the operands; x, y, z ... otherwise.

        >>> import zerostride as zs
        >>> zs.plan((5, 5), (5,)).express("ncnn").describe()
        'reshape y to (1, 5)'
        """
        named = operand_names(names, len(self.shapes))
        order = named[::-1] if self.swapped else named
        to_target = self.rule in RULES and RULES[self.rule].to_target
        # The target of a Broadcast op is a list of sizes, not a tensor to reshape.
        verbs = ("reshape", "set") if to_target else ("reshape",) * len(self.shapes)
        steps = [
            f"{verb} {name} to {text(shape)}"
            for verb, name, shape, changed in zip(
                verbs, order, self.shapes, self.changed, strict=False
            )
            if changed and not self.explicit
        ]
        steps += [
            f"broadcast {name} to {text(shape)} with axes_mapping={list(axes)}"
            for name, shape, axes in zip(order, self.shapes, self.explicit, strict=False)
            if axes is not None
        ]
        if self.swapped:
            steps.append("swap the operands")
        steps += [
            f"set {key}={list(value) if isinstance(value, tuple) else value}"
            for key, value in self.attributes.items()
        ]
        if self.merged_axes:
            steps.append(f"the result has shape {text(self.result_shape)} then: reshape it back")
        change = ", ".join(steps) or "nothing to change"
        return change if self.only_if is None else f"{change}, only if {self.only_if}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "shapes": tuple(map(_plain, self.shapes)),
            "attributes": dict(self.attributes),
            "swapped": self.swapped,
            "merged_axes": self.merged_axes,
            "result_shape": _plain(self.result_shape),
            "rule": self.rule.name,
            "engine": self.rule.engine,
            "only_if": None if self.only_if is None else str(self.only_if),
            "explicit": self.explicit,
        }


def _plain(shape: Shape) -> Shape:
    """Sizes in JSON: open sizes as text."""
    return tuple(size if isinstance(size, int) else str(size) for size in shape)


def text(shape: Shape) -> str:
    """A shape as Python prints one; open sizes by their names."""
    if all(isinstance(size, int) for size in shape):
        return str(shape)
    from ..explain.open import shape_text

    return shape_text(shape)
