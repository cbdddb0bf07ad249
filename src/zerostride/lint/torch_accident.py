"""Accidents in PyTorch code: which shapes are one, and the fix in PyTorch's own words."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import FrameType
from typing import Any

from ..core.accidental import is_accident, looks_accidental, stretch_apart
from ..core.plan import Plan
from ..core.strict_mode import Strict
from ..errors import Reason
from .accident import COMMENT, Accident, Shape, plan_of
from .source import Expression, expression
from .torch_frames import Site, shown


@dataclass(frozen=True, slots=True)
class Fault:
    """Why strict mode reports shapes.

    Attributes:
        reason: "two_sided", "growth", or "not_identical" for a loss.
        limit: what the reason refers to, for the text; "" if nothing.
    """

    reason: Reason
    limit: str = ""


def fault_of(shapes: Sequence[Shape], limits: Strict, is_loss: bool) -> Fault | None:
    """Why strict mode reports an operation on these shapes; None if it does not.

    Operands of a loss need one shape, except that a single element may stand for all. Other
    operands are an accident if :func:`looks_accidental` says so: (N, 1) against (N,), and not the
    table of (L, 1) against (D,).
    """
    if len(set(shapes)) < 2:
        return None
    apart = stretch_apart(shapes)
    if is_loss:
        small = any(math.prod(shape) == 1 for shape in shapes)
        if apart and not small:
            return None if limits.two_sided else Fault(Reason.TWO_SIDED)
        if not (small or limits.new_axes) and plan_of(shapes) is not None:
            return Fault(Reason.NOT_IDENTICAL)
    elif apart and not limits.two_sided and looks_accidental(shapes):
        return Fault(Reason.TWO_SIDED)
    return None if limits.max_growth is None else _growth(shapes, limits.max_growth)


def _growth(shapes: Sequence[Shape], most: float) -> Fault | None:
    plan = plan_of(shapes)
    if plan is None:
        return None
    size, largest = math.prod(plan.shape), max(map(math.prod, shapes))
    return Fault(Reason.GROWTH, str(most)) if size > Fraction(most) * largest else None


@dataclass(frozen=True, slots=True)
class TorchAccident(Accident):
    """An accident in PyTorch code.

    Attributes:
        fault: why it is one.
        is_loss: whether the operation is a loss.
        inside: the line of PyTorch's own code that runs the operation, with its file; "" if the
            user's line does.
        called: the user's line, if `path` is a file of an installed package.
        package: that package.
    """

    fault: Fault
    is_loss: bool = False
    inside: str = ""
    called: str = ""
    package: str = ""

    def headline(self, plan: Plan) -> str:
        """What happened, in a phrase."""
        shapes = " and ".join(map(str, self.shapes))
        if self.fault.reason is Reason.GROWTH:
            size, largest = math.prod(plan.shape), max(map(math.prod, self.shapes))
            return (
                f"broadcast of {shapes} to {plan.shape}: {size} elements, and the largest operand "
                f"has {largest}; max_growth is {self.fault.limit}"
            )
        place = " in a loss" if self.is_loss else ""
        return f"accidental broadcast of {shapes} to {plan.shape}{place}"

    def lines(self) -> list[str]:
        """The lines of source to show."""
        called = [f"called by {self.called}"] if self.called else []
        return [*called, self.source, *([f"in {self.inside}"] if self.inside else [])]

    def fix(self) -> str:
        """What to write instead, each proposal planned, and how to allow the line."""
        fixes = list(_fixes(self.names, self.shapes, self.is_loss))
        allow = f"to allow it, end the line in `# {COMMENT}`"
        if self.package:
            allow = f"to allow it, write zs.strict(exempt=({self.package!r},))"
        if self.fault.reason is Reason.GROWTH:
            return f"{allow}, or set a larger max_growth"
        return "; ".join([*([" or ".join(fixes)] if fixes else []), allow])


def _fixes(names: Sequence[str], shapes: Sequence[Shape], is_loss: bool) -> Iterator[str]:
    """For each operand the shortest change after which the result has the size of an operand; the
    lowest rank first.
    """
    for k in sorted(range(len(shapes)), key=lambda k: (len(shapes[k]), -k)):
        for words, shape in _changes(shapes[k]):
            changed = [*shapes[:k], shape, *shapes[k + 1 :]]
            if is_loss and len(set(changed)) == 1:
                yield _receiver(names[k]) + words
                break
            plan = None if is_loss or is_accident(changed) else plan_of(changed)
            if plan is not None and plan.shape in changed:
                yield _receiver(names[k]) + words
                break


def _changes(shape: Shape) -> Iterator[tuple[str, Shape]]:
    """One or two axes of extent 1 less or more, as methods of a tensor."""
    squeezes = [
        (f".squeeze({axis})", (*shape[:axis], *shape[axis + 1 :]))
        for axis, size in enumerate(shape)
        if size == 1
    ]
    once = [*squeezes, *_unsqueezed(shape)] if shape else []
    yield from once
    for words, placed in once:
        if words.startswith(".unsqueeze"):
            for more, twice in _unsqueezed(placed):
                yield words + more, twice


def _unsqueezed(shape: Shape) -> list[tuple[str, Shape]]:
    return [
        (f".unsqueeze({axis})", (*shape[:axis], 1, *shape[axis:]))
        for axis in range(len(shape), -1, -1)
    ]


def _receiver(name: str) -> str:
    """An expression whose methods can be called: (a + b)."""
    try:
        node = ast.parse(name, mode="eval").body
    except SyntaxError:
        return name  # cut off
    plain = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return name if plain else f"({name})"


def accident_at(
    site: Site, fault: Fault, operands: Sequence[Any], shapes: tuple[Shape, ...], is_loss: bool
) -> TorchAccident:
    """The accident of a site."""
    place = expression(site.frame)
    names = _names(site, place, operands, is_loss)
    inside, called = "", ""
    if site.inner is not None and not is_loss:
        within = expression(site.inner)
        inside = f"{shown(within.path)}:{within.line}: {within.text}"
    if site.user is not None and site.user is not site.frame:
        user = expression(site.user)
        called = f"{shown(user.path)}:{user.line}: {user.text}"
    path = shown(place.path)
    return TorchAccident(
        path, place.line, place.text, names, shapes, fault, is_loss, inside, called, site.package
    )


def _names(
    site: Site, place: Expression, operands: Sequence[Any], is_loss: bool
) -> tuple[str, ...]:
    """The operands as the line names them, or else as PyTorch's own line does."""
    count = len(operands)
    nodes = place.operands(count)
    known = _agree(nodes, operands, site.frame)
    # An operation in PyTorch's own code need not have the operands of the user's call.
    if nodes and (known or (known is None and (site.inner is None or is_loss))):
        return place.names(count)
    if site.inner is not None and not is_loss:
        return expression(site.inner).names(count)
    return ("input", "target") if is_loss else tuple("xyz"[:count])


def _agree(nodes: Sequence[Any], operands: Sequence[Any], frame: FrameType) -> bool | None:
    """Whether names in the source are the operands; None if no operand is a name."""
    named = [
        (node.id, operand)
        for node, operand in zip(nodes, operands, strict=False)
        if isinstance(node, ast.Name)
    ]
    if not named:
        return None
    scope = {**frame.f_globals, **frame.f_locals}
    return all(scope.get(name, operand) is operand for name, operand in named)


__all__ = ["Fault", "TorchAccident", "accident_at", "fault_of"]
