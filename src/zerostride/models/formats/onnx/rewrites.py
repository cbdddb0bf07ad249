"""The shapes of constant operands in a rewrite, and the rewrite in words on its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ....errors import printable
from ...ir.moves import moved
from ...ir.rewrite import Input, Rewrite, RewriteStep
from ...onnx_ops.validation import text

if TYPE_CHECKING:
    import onnx

#: The key of a changed node's metadata, which viewers such as Netron show.
MARK = "zerostride.port"


def last_shapes(
    rewrite: Rewrite, sizes: Callable[[int], tuple[int, ...] | None]
) -> dict[int, tuple[int, ...]]:
    """The shape in which each constant operand is used, if it is only read reshaped.

    Chains of moves are followed. An operand that is also read in its own shape, or in two shapes,
    or expanded, is left out.
    """
    shapes: dict[int, tuple[int, tuple[int, ...]]] = {}  # step to operand and its shape there
    used: dict[int, set[tuple[int, ...] | None]] = {}
    for k, step in enumerate(rewrite.steps):
        for ref in step.operands:
            moves = step.op in ("reshape", "squeeze", "unsqueeze")
            if isinstance(ref, Input):
                at, shape = ref.position, sizes(ref.position)
            elif ref.step in shapes:
                at, shape = shapes[ref.step]
            else:
                continue
            if shape is None:
                continue
            new_shape = after(step, shape) if moves else None
            if new_shape is not None:
                shapes[k] = (at, new_shape)
            else:
                used.setdefault(at, set()).add(None if isinstance(ref, Input) else shape)
    result = {}
    for at, final in used.items():
        if len(final) == 1 and None not in final:
            (shape,) = final
            assert shape is not None
            result[at] = shape
    return result


def after(step: RewriteStep, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape after a reshape, a squeeze or an unsqueeze; None if the step does not fit."""
    try:
        return moved(step, shape)
    except ValueError:
        return None


def constant_steps(rewrite: Rewrite, shapes: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
    """The steps that a constant of another shape replaces: step to operand."""
    counts: dict[int, int] = {}
    for k, step in enumerate(rewrite.steps):
        if step.op not in ("reshape", "squeeze", "unsqueeze"):
            continue
        (ref,) = step.operands
        at = ref.position if isinstance(ref, Input) else counts.get(ref.step)
        if at is not None and at in shapes:
            counts[k] = at
    return counts


def mark(
    rewrite: Rewrite,
    original: onnx.NodeProto,
    node: onnx.NodeProto,
    added: Sequence[onnx.NodeProto],
) -> None:
    """Writes the rewrite in words into the metadata of its nodes."""
    names = [text(name) for name in original.input]
    words = f"{rewrite.by}: {rewrite.describe(names, text(original.op_type))}"
    node.metadata_props.add(key=MARK, value=printable(words))
    of = text(original.name or original.output[0])
    for other in added:
        other.metadata_props.add(key=MARK, value=printable(f"added for {of}"))
