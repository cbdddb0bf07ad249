"""A change of a model as data: one node replaced by a small program, in no format's own words.

A :class:`Rewrite` names a node and the steps that stand for it from then on: operands reshaped or
expanded, the node itself with its operands in another order or with other attributes, its result
reshaped. Being data it can be planned, computed and shown before any file is touched; a format's
:class:`Editor` says it in the file's words.

>>> Rewrite((3,), (Step("unsqueeze", (Input(1),), axes=(0,)), SELF(Input(0), Made(0)))).describe()
't0 = unsqueeze operand 1 at axes (0,); itself(operand 0, t0)'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from .graph import Place


@dataclass(frozen=True, slots=True)
class Input:
    """The node's operand at a position of `Node.inputs`, as it was."""

    position: int


@dataclass(frozen=True, slots=True)
class Earlier:
    """The result of an earlier step."""

    step: int


Ref: TypeAlias = Input | Earlier


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RewriteStep:
    """One op of the program that stands for a node.

    Attributes:
        op: "self" for the node's own op; "reshape", "expand" (both to `shape`), "unsqueeze",
            "squeeze" (both at `axes`); "number" for a constant of one element and no axes; or an
            op of the op table by its name there ("add", "where").
        operands: what it reads.
        shape: the shape that reshape and expand make. A −1 in a reshape is what is left over.
        axes: the axes of unsqueeze (in the result) and squeeze (in the operand), ascending.
        attributes: for "self": attributes of the format that change, None to leave one out. For
            "number" its `value`, and as `dtype` NumPy's name of its element type.
    """

    op: str
    operands: tuple[Ref, ...]
    shape: tuple[int, ...] | None = None
    axes: tuple[int, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=_nothing, hash=False)

    def describe(self) -> str:
        """In words."""
        names = ", ".join(map(_name, self.operands))
        if self.op in ("reshape", "expand"):
            return f"{self.op} {names} to {self.shape}"
        if self.op in ("unsqueeze", "squeeze"):
            return f"{self.op} {names} at axes {self.axes}"
        changed = "".join(f", {key}={value!r}" for key, value in self.attributes.items())
        return f"{'itself' if self.op == 'self' else self.op}({names}{changed})"


def SELF(*operands: Ref, **attributes: Any) -> RewriteStep:  # noqa: N802 - reads as the constant it is
    """The node's own op on these operands."""
    return RewriteStep("self", operands, attributes=attributes)


def _name(ref: Ref) -> str:
    return f"operand {ref.position}" if isinstance(ref, Input) else f"t{ref.step}"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One node replaced.

    Attributes:
        place: the node's place in its file (`Node.place`).
        steps: what stands for it; the last one's result is the node's own, under its name.
        by: the name of the pass that made it.
    """

    place: Place
    steps: tuple[RewriteStep, ...]
    by: str = ""

    def describe(self) -> str:
        """In words, a clause a step."""
        last = len(self.steps) - 1
        return "; ".join(
            step.describe() if k == last else f"t{k} = {step.describe()}"
            for k, step in enumerate(self.steps)
        )


class Editor(Protocol):
    """A model file, open for changes. A fresh one for each port; nothing is written but by save."""

    def apply(self, rewrites: Sequence[Rewrite]) -> None:
        """Says the rewrites in the file's words.

        Places are those of the file as it was read, whatever the other rewrites add or take away.
        A reshape, unsqueeze or squeeze of a constant becomes a constant of the new shape: the same
        one where nobody else reads it, else a new one beside it, shared by equal rewrites. Names
        that are added are new to the file. Graph outputs, bodies and other readers of a tensor keep
        what they had.

        Raises:
            ModelError: a rewrite cannot be said in this format; names the node and says why.
                Nothing may be saved after that.
        """
        ...

    def save(self, path: Path) -> tuple[Path, ...]:
        """Writes the model to `path` and what goes with it (weights) beside it.

        Bytes that no rewrite touched are as they were, where the format allows it.

        Returns:
            The files written, `path` first.

        Raises:
            ModelError: a file cannot be written.
        """
        ...
