"""A change of a model as data: a small program replaces one node, independent of the format.

A :class:`Rewrite` names a node and the steps that replace it: operands reshaped or expanded, the
node itself with reordered operands or other attributes, its result reshaped. As data it can be
planned, computed and shown before a file changes. A format's :class:`Editor` writes it to a file.

>>> own = RewriteStep("self", (Input(0), Earlier(0)))
>>> Rewrite((3,), (RewriteStep("unsqueeze", (Input(1),), axes=(0,)), own)).describe()
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
    """The node's original operand at a position of `Node.inputs`."""

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
    """One op of the program that replaces a node.

    Attributes:
        op: "self" for the node's own op; "reshape", "expand" (both to `shape`), "tile" (by the
            repeats of each axis in `shape`), "unsqueeze", "squeeze" (both at `axes`); "number" for
            a constant of one element and no axes; or an op of the op table by its name there
            ("add", "where").
        operands: the values that it reads.
        shape: the target shape of reshape and expand, or the repeats of tile. A −1 in a reshape is
            the remaining extent.
        axes: the axes of unsqueeze (in the result) and squeeze (in the operand), ascending.
        attributes: for "self": changed attributes of the format; None removes one. For "number":
            its `value`, and `dtype`, NumPy's name of its element type.
    """

    op: str
    operands: tuple[Ref, ...]
    shape: tuple[int, ...] | None = None
    axes: tuple[int, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=_nothing, hash=False)

    def describe(self, names: Sequence[str] = (), own: str = "itself") -> str:
        """The step as text.

        Args:
            names: what the node's operands are called.
            own: what the node's own op is called.
        """

        def called(ref: Ref) -> str:
            if isinstance(ref, Earlier):
                return f"t{ref.step}"
            known = ref.position < len(names)
            return names[ref.position] if known else f"operand {ref.position}"

        operands = ", ".join(map(called, self.operands))
        if self.op in ("reshape", "expand", "tile"):
            how = "by" if self.op == "tile" else "to"
            return f"{self.op} {operands} {how} {self.shape}"
        if self.op in ("unsqueeze", "squeeze"):
            return f"{self.op} {operands} at axes {self.axes}"
        changed = "".join(f", {key}={value!r}" for key, value in self.attributes.items())
        return f"{own if self.op == 'self' else self.op}({operands}{changed})"


def SELF(*operands: Ref, **attributes: Any) -> RewriteStep:  # noqa: N802 - reads as the constant it is
    """The node's own op on these operands."""
    return RewriteStep("self", operands, attributes=attributes)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One node replaced.

    Attributes:
        place: the node's place in its file (`Node.place`).
        steps: the program; its last result takes the name of the node's result.
        by: the name of the pass that made it.
    """

    place: Place
    steps: tuple[RewriteStep, ...]
    by: str = ""

    def describe(self, names: Sequence[str] = (), own: str = "itself") -> str:
        """The rewrite as text, one clause per step; the arguments are those of a step's."""
        *clauses, last = (step.describe(names, own) for step in self.steps)
        return "; ".join([*(f"t{k} = {clause}" for k, clause in enumerate(clauses)), last])


class Editor(Protocol):
    """A model file open for changes. Each port uses a new one; only `save` writes files."""

    def apply(self, rewrites: Sequence[Rewrite]) -> None:
        """Translates the rewrites to the file's format, after those of earlier calls.

        Places refer to the file as it was read, whatever the other rewrites add or remove. A
        reshape, unsqueeze or squeeze of a constant becomes a constant of the new shape: the same
        constant if it has no other readers, otherwise a new one that equal rewrites share. Added
        names are new to the file. Graph outputs, bodies and other readers of a tensor do not
        change.

        Raises:
            ModelError: the format cannot express a rewrite; names the node and the reason.
                `save` must not be called after that.
        """
        ...

    def save(self, path: Path) -> tuple[Path, ...]:
        """Writes the model to `path` and its weights beside it.

        Bytes that no rewrite touched stay as they were, if the format allows it.

        Returns:
            The files written, `path` first.

        Raises:
            ModelError: a file cannot be written.
        """
        ...
