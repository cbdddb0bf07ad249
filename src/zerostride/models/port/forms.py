"""Candidate shapes for operands, the smallest change first, and the steps that reshape them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...sizes import Shape, elements
from ...sizes.dim import Dim
from ..audit.fixes import without_outer
from ..ir.rewrite import SELF, Earlier, Input, Ref, RewriteStep
from ..ir.site import Kind
from .layout import inserted
from .program import Subject

Steps = tuple[RewriteStep, ...]
#: Up to so many operands, forms are combined freely; more operands all get the same form.
_COMBINED = 3
#: The most combinations of forms that one pass tries for one node.
_MOST = 160
#: The most ways to reach the shapes of one combination.
_MOST_WAYS = 8


# Steps that give an operand a shape.


class StepWriter:
    """Collects steps; equal steps are stored once."""

    def __init__(self) -> None:
        self.steps: list[RewriteStep] = []

    def add(self, step: RewriteStep) -> Ref:
        """The result of a step; adds the step if it is new."""
        if step in self.steps:
            return Earlier(self.steps.index(step))
        self.steps.append(step)
        return Earlier(len(self.steps) - 1)

    def chain(self, ref: Ref, moves: Iterable[RewriteStep]) -> Ref:
        """The tensor after moves; fills in the operand of each."""
        for move in moves:
            ref = self.add(RewriteStep(move.op, (ref,), move.shape, move.axes))
        return ref


def moves(old: Shape, new: Shape) -> Iterator[Steps]:
    """Steps from `old` to `new`: insert axes of 1, remove them, or reshape."""
    if old == new:
        yield ()
        return
    ways = [(RewriteStep("unsqueeze", (), axes=axes),) for axes in inserted(old, new)]
    ways += [(RewriteStep("squeeze", (), axes=axes),) for axes in inserted(new, old)]
    yield from ways
    if ways:
        return
    wide = tuple(size for size in old if size != 1)
    if wide == tuple(size for size in new if size != 1):
        if all_numbers(new) and 0 not in new:
            yield (RewriteStep("reshape", (), shape=new),)
            return
        ones = tuple(axis for axis, size in enumerate(old) if size == 1)
        (back,) = itertools.islice(inserted(wide, new), 1)
        yield (RewriteStep("squeeze", (), axes=ones), RewriteStep("unsqueeze", (), axes=back))
        return
    asked = asked_shape(new)
    if asked is not None:
        yield (RewriteStep("reshape", (), shape=asked),)


def all_numbers(shape: Shape) -> bool:
    """Whether every size is known."""
    return all(isinstance(size, int) for size in shape)


def asked_shape(shape: Shape) -> tuple[int, ...] | None:
    """The argument of a reshape: at most one open size, and with it no size of 0."""
    unknown = [size for size in shape if isinstance(size, Dim)]
    if len(unknown) > 1 or (unknown and 0 in shape):
        return None
    return tuple(-1 if isinstance(size, Dim) else int(size) for size in shape)


# Shapes to try.


def forms(subject: Subject, k: int) -> list[Shape]:
    """Candidate shapes of an operand: unchanged, aligned, and without outer ones."""
    aligned = subject.source.aligned[k]
    rank = len(aligned)
    filled = [axis for axis, size in enumerate(aligned) if size != 1] or [rank]
    first, last = filled[0], filled[-1] + 1
    shapes = [subject.source.operands[k]]
    shapes += [aligned[start:] for start in range(first, -1, -1)]
    shapes += [aligned[first:last], aligned[:last], tuple(n for n in aligned if n != 1)]
    return list(dict.fromkeys(shapes))


def is_constant(subject: Subject, k: int) -> bool:
    """Whether an operand is a constant of the file, not computed from constants by nodes."""
    tensor = subject.site.operands[k].tensor
    if tensor is None or not tensor.constant:
        return False
    return tensor.source is not None or tensor.missing is not None or tensor.content is not None


def may_move(subject: Subject) -> list[int]:
    """The operands that are whole tensors of the model, or the outer axes of one in a product."""
    return [
        k
        for k in range(len(subject.source.operands))
        if subject.positions[k] is not None
        and (is_whole(subject, k) or subject.site.kind is Kind.MATMUL)
    ]


def inner_axes(subject: Subject, k: int) -> Shape:
    """The axes of a tensor behind those that are broadcast: the matrix, in a product."""
    tensor = subject.site.operands[k].tensor
    if subject.site.kind is not Kind.MATMUL or tensor is None:
        return ()
    sizes = tuple(size for size in tensor.shape or () if size is not None)
    return sizes[len(subject.source.operands[k]) :]


def is_whole(subject: Subject, k: int) -> bool:
    """Whether a part of the site is a tensor with all its axes."""
    part = subject.site.operands[k]
    tensor = part.tensor
    return tensor is not None and tensor.shape == part.shape


def combinations(subject: Subject, moving: Sequence[int]) -> list[tuple[Shape, ...]]:
    """Shapes for all operands, of which only `moving` ones change; the smallest change first."""
    written = subject.source.operands
    if len(moving) > _COMBINED:
        every = range(len(written))
        aligned = subject.source.aligned
        rows = [aligned, tuple(without_outer(shape) for shape in aligned)]
        uniform = [tuple(row[k] if k in moving else written[k] for k in every) for row in rows]
        return list(dict.fromkeys((written, *uniform)))
    options = [forms(subject, k) if k in moving else [shape] for k, shape in enumerate(written)]
    choices = sorted(itertools.product(*options), key=lambda shapes: _cost(subject, shapes))
    return choices[:_MOST]  # the operands as they are cost nothing, and come first


def _cost(subject: Subject, shapes: Sequence[Shape]) -> tuple[int, int, int, int]:
    """Nodes put in, operands changed, numbers moved, axes."""
    changed = [k for k, shape in enumerate(shapes) if shape != subject.source.operands[k]]
    nodes = sum(not is_constant(subject, k) for k in changed)
    moved = sum(count_of(shapes[k]) for k in changed)
    return nodes, len(changed), moved, sum(len(shapes[k]) for k in changed)


def count_of(shape: Shape) -> int:
    """The number of elements; unknown sizes count as large ones."""
    return elements([size if isinstance(size, int) else 1 << 10 for size in shape])


# Rewrites made of them.


def rewritten(
    subject: Subject,
    shapes: Sequence[Shape],
    *,
    swapped: str | None = None,
    attributes: Mapping[str, Any] | None = None,
    result: Shape | None = None,
) -> Iterator[Steps]:
    """The node's op on operands of these shapes; the operands exchanged, the result reshaped."""
    places = [subject.positions[k] for k in range(len(shapes))]
    options = [list(ways_to(subject, k, shape)) for k, shape in enumerate(shapes)]
    if not all(options):
        return
    # The same way for all of them, then each in its own.
    alike = [tuple(each[min(k, len(each) - 1)] for each in options) for k in range(2)]
    mixed = itertools.islice(itertools.product(*options), _MOST_WAYS)
    for ways in dict.fromkeys((*alike, *mixed)):
        writer = StepWriter()
        refs: list[Ref] = [Input(p) for p in range(len(subject.node.inputs))]
        for place, way in zip(places, ways, strict=True):
            if place is not None:
                refs[place] = writer.chain(Input(place), way)
        yield from finished(writer, refs, swapped, attributes, result)


def ways_to(subject: Subject, k: int, shape: Shape) -> Iterator[Steps]:
    """Steps that give an operand's broadcast axes another shape."""
    inner = inner_axes(subject, k)
    return moves(subject.source.operands[k] + inner, shape + inner)


def finished(
    writer: StepWriter,
    refs: Sequence[Ref],
    swapped: str | None = None,
    attributes: Mapping[str, Any] | None = None,
    result: Shape | None = None,
) -> Iterator[Steps]:
    """The steps with the node's op at their end, and its result reshaped; none if it cannot be."""
    if swapped is not None:
        op = "self" if swapped == "self" else swapped
        last = RewriteStep(op, tuple(refs[::-1]), attributes=attributes or {})
    else:
        last = SELF(*refs, **(attributes or {}))
    writer.steps.append(last)
    if result is not None:
        asked = asked_shape(result)
        if asked is None:
            return
        writer.steps.append(RewriteStep("reshape", (Earlier(len(writer.steps) - 1),), shape=asked))
    yield tuple(writer.steps)
