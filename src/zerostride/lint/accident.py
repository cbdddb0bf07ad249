"""The text of an accidental broadcast, and how watched tests report it.

Rewritten code (`checks`) and the watch of PyTorch (`torch_watch`) report the same accidents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ..core.alignment import placements, plan_or_none, text
from ..core.plan import Plan
from ..core.rules import RULES
from ..errors import columns

Shape = tuple[int, ...]
#: The comment that allows its line; on the line of a `def` or a `class`, the whole body.
COMMENT = "broadcast: ok"


@dataclass(frozen=True, slots=True)
class Accident:
    """A broadcast that nobody intended.

    Attributes:
        path: the user's file.
        line: the line where the expression begins.
        source: the expression.
        names: its operands, as written.
        shapes: their shapes.
    """

    path: str
    line: int
    source: str
    names: tuple[str, ...]
    shapes: tuple[Shape, ...]

    def __str__(self) -> str:
        plan = plan_of(self.shapes)
        assert plan is not None
        rows = [[None] * (plan.rank - len(shape)) + list(shape) for shape in self.shapes]
        drawn = columns((*self.names, "result"), [*rows, plan.shape])
        return "\n".join(
            [
                # The place comes first: pytest's summary shows the beginning of a message.
                f"{self.path}:{self.line}: {self.headline(plan)}",
                *(f"  {line}" for line in self.lines()),
                *("    " + line for line in drawn),
                f"  fix: {self.fix()}",
            ]
        )

    def headline(self, plan: Plan) -> str:
        """What happened, in a phrase."""
        shapes = " and ".join(map(str, self.shapes))
        return f"accidental broadcast of {shapes} to {plan.shape}"

    def lines(self) -> list[str]:
        """The lines of source to show."""
        return [self.source]

    def fix(self) -> str:
        """What to write instead; a shape in it has been planned."""
        advice = (
            "where it is meant, write all operands at one rank (x[:, None] - y[None, :]), or end "
            f"the line in `# {COMMENT}`"
        )
        for name, placed in _fixes(self.names, self.shapes):
            return f"reshape {name} to {text(placed)}; {advice}"
        return advice


def plan_of(shapes: Sequence[Shape]) -> Plan | None:
    """The plan of NumPy's rule; None if the shapes do not combine."""
    return plan_or_none(RULES["numpy"], shapes, {})


def _fixes(names: Sequence[str], shapes: Sequence[Shape]) -> Iterator[tuple[str, Shape]]:
    """Reshapes of one operand that remove the accident, planned; the lowest rank first."""
    rank = max(map(len, shapes))
    for k in sorted(range(len(shapes)), key=lambda k: (len(shapes[k]), -k)):
        extents = tuple(size for size in shapes[k] if size != 1)
        for placed in (extents, *placements(extents, rank)):
            plan = plan_of([*shapes[:k], placed, *shapes[k + 1 :]])
            if placed != shapes[k] and plan is not None and not plan.two_sided:
                yield names[k], placed


# Watched tests.

ALLOWED: ContextVar[bool] = ContextVar("zerostride.lint.allowed", default=False)


@contextmanager
def allowed() -> Iterator[None]:
    """No broadcast inside it is an accident: `with zerostride.pytest_plugin.allowed(): ...`."""
    token = ALLOWED.set(True)
    try:
        yield
    finally:
        ALLOWED.reset(token)


@dataclass(slots=True)
class Watch:
    """How the accidents of a watched test are reported; the plugin sets it.

    Attributes:
        enabled: whether accidents are reported.
        report: called with each accident; it raises.
        covers: whether a file is under test.
    """

    enabled: bool = False
    report: Callable[[Accident], None] | None = None
    covers: Callable[[str], bool] | None = None


WATCH = Watch()

__all__ = [
    "ALLOWED",
    "COMMENT",
    "WATCH",
    "Accident",
    "Shape",
    "Watch",
    "allowed",
    "plan_of",
]
