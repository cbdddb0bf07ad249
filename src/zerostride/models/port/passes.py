"""The passes of a port, rows of `PASSES`, cheapest first. Each proposes rewrites of one node.

A pass *requires* a property of the node, proposes steps, and *ensures* a property of the steps,
which is checked after it ran. :mod:`.program` decides whether the steps mean the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...ops import find_op
from ...sizes import Shape, elements
from ..audit.audited import Audited
from ..audit.fixes import without_outer
from ..ir.moves import repeats
from ..ir.rewrite import Earlier, Input, Ref, RewriteStep
from ..ir.site import Kind
from .forms import (
    Steps,
    StepWriter,
    all_numbers,
    combinations,
    count_of,
    finished,
    forms,
    inner_axes,
    is_constant,
    is_whole,
    may_move,
    moves,
    rewritten,
    ways_to,
)
from .program import Subject

#: The most consecutive Expands of one operand, for engines with few runs of axes.
_STAGES = 3
#: The most pairs of a chain that are exchanged independently.
_TURNED = 3


@dataclass(frozen=True, slots=True)
class Pass:
    """A row of the table.

    Attributes:
        name: its name.
        does: its effect, in words.
        requires: whether it applies to a node.
        propose: the steps, the smallest change first.
        ensures: whether steps are as the pass promises; otherwise the pass has a bug.
    """

    name: str
    does: str
    requires: Callable[[Subject, Audited], bool]
    propose: Callable[[Subject, Audited], Iterator[Steps]]
    ensures: Callable[[Subject, Steps], bool]


def _reshape(
    subject: Subject, _: Audited, *, constants: bool = False, swapped: bool = False
) -> Iterator[Steps]:
    """Operands or constants reshaped, exchanged or as they are; steps that do nothing left out."""
    moving = [k for k in may_move(subject) if is_constant(subject, k) or not constants]
    name = _swap_name(subject) if swapped else None
    for shapes in combinations(subject, moving):
        if (swapped and constants) or shapes != subject.source.operands:
            yield from rewritten(subject, shapes, swapped=name)


def _has_constant(subject: Subject, setting: Audited) -> bool:
    return any(is_constant(subject, k) for k in may_move(subject)) and _suffices(subject, setting)


def _suffices(subject: Subject, setting: Audited) -> bool:
    """Whether the node's op may work on the target after moves of axes, without an Expand.

    A target that stretches nothing takes a condition of one number, and no other such operand.
    """
    source, first = subject.source, int(subject.site.kind is Kind.WHERE)
    grows = any(
        isinstance(aligned[axis], int) and isinstance(source.shape[axis], int)
        for aligned, axes in zip(source.aligned[first:], source.stretched[first:], strict=True)
        for axis in axes
    )
    return not grows or setting.judge.stretches(subject.site)


def _adds_no_node(subject: Subject, steps: Steps) -> bool:
    """All steps but the node itself change constants only."""
    constants = {
        Input(place)
        for k, place in enumerate(subject.positions)
        if place is not None and is_constant(subject, k)
    }
    available: set[Ref] = set(constants)
    for k, step in enumerate(steps[:-1]):
        if step.op not in ("reshape", "squeeze", "unsqueeze") or not available.issuperset(
            step.operands
        ):
            return False
        available.add(Earlier(k))
    return True


def _swaps(subject: Subject, setting: Audited) -> bool:
    return _swap_name(subject) is not None and _suffices(subject, setting)


def _swap_name(subject: Subject) -> str | None:
    """The op with exchanged operands: "self", or the mirrored op; None if there is no such op."""
    if subject.site.kind is not Kind.ELEMENTWISE or len(subject.source.operands) != 2:
        return None
    if not subject.op.islower() or tuple(subject.positions) != (0, 1):
        return None
    row = find_op(subject.op)
    if not row.commutes:
        return row.swap
    return "self" if _commutes(subject) else None


#: Of 0.0 and −0.0, or of two NaNs, the result depends on the order of operands.
_ORDERED = frozenset({"maximum", "minimum"})


def _commutes(subject: Subject) -> bool:
    """Whether exchanged operands give the same bits."""
    dtypes = {None if v is None else v.dtype for v in subject.node.inputs}
    whole = all(name is not None and name.startswith(("int", "uint")) for name in dtypes)
    return find_op(subject.op).commutes and (whole or subject.op not in _ORDERED)


def _orders(subject: Subject) -> tuple[str | None, ...]:
    """The operands' order as written, and exchanged where the op allows it."""
    name = _swap_name(subject)
    return (None,) if name is None else (None, name)


def _moves_only(subject: Subject, steps: Steps) -> bool:
    """All steps but the node itself insert or remove axes of 1."""
    return steps[-1].op in ("self", _swap_name(subject)) and all(
        step.op in ("reshape", "squeeze", "unsqueeze") for step in steps[:-1]
    )


def _moves_axes(subject: Subject, setting: Audited) -> bool:
    return bool(may_move(subject)) and _suffices(subject, setting)


# Attributes.


def _explicit(subject: Subject, setting: Audited) -> Mapping[str, Any] | None:
    """The attributes by which the node follows NumPy's rule, or stretches nothing; or None."""
    hook = getattr(setting.module, "explicit", None)
    changes: Mapping[str, Any] | None = None if hook is None else hook(subject.node)
    return changes or None


def _says_explicit(subject: Subject, setting: Audited) -> bool:
    return _explicit(subject, setting) is not None


def _change_attributes(subject: Subject, setting: Audited) -> Iterator[Steps]:
    changes = _explicit(subject, setting)
    constants = [k for k in may_move(subject) if is_constant(subject, k)]
    for moving in (constants, may_move(subject)):
        for shapes in combinations(subject, moving):
            yield from rewritten(subject, shapes, attributes=changes)
    yield from _expand(subject, setting, changes)


def _one_self(subject: Subject, steps: Steps) -> bool:
    return sum(step.op == "self" for step in steps) == 1


# Merged axes.


def _is_elementwise(subject: Subject, _: Audited) -> bool:
    return subject.site.kind in (Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU, Kind.CLIP) and all(
        is_whole(subject, k) for k in range(len(subject.source.operands))
    )


def _merges(subject: Subject, setting: Audited) -> bool:
    return _is_elementwise(subject, setting) and _suffices(subject, setting)


def _merge(subject: Subject, setting: Audited) -> Iterator[Steps]:
    source = subject.source
    batch = _batch_axis(subject, setting)
    groups: list[tuple[int, ...]] = [(axis,) for axis in range(source.rank)]
    while (pair := _mergeable_pair(subject, groups, batch)) is not None:
        groups[pair : pair + 2] = [groups[pair] + groups[pair + 1]]
        aligned = [_fold(shape, groups) for shape in source.aligned]
        kept = [
            shape if _carries(subject, setting, k) else without_outer(shape)
            for k, shape in enumerate(aligned)
        ]
        for swapped in _orders(subject):
            for shapes in dict.fromkeys((tuple(aligned), tuple(kept))):
                yield from rewritten(subject, shapes, swapped=swapped, result=source.shape)


def _fold(shape: Shape, groups: Sequence[Sequence[int]]) -> Shape:
    return tuple(elements([shape[axis] for axis in group]) for group in groups)


def _carries(subject: Subject, setting: Audited, k: int) -> bool:
    """Whether an operand carries the batch, or fills the result's outermost axis."""
    batch = setting.judge.batch.of(subject.site.operands[k].tensor)
    return batch is not None or subject.source.aligned[k][0] != 1


def _batch_axis(subject: Subject, setting: Audited) -> int | None:
    """The batch axis of the result."""
    for part, mapping in zip(subject.site.operands, subject.source.axes_mapping, strict=False):
        axis = setting.judge.batch.of(part.tensor)
        if axis is not None and axis < len(mapping):
            return mapping[axis]
    return None


def _mergeable_pair(
    subject: Subject, groups: Sequence[tuple[int, ...]], batch: int | None
) -> int | None:
    """The first of two groups that merge: those with an extent of 1 first, then the innermost."""
    shape = subject.source.shape
    ones = [all(shape[axis] == 1 for axis in group) for group in groups]
    order = sorted(range(len(groups) - 1), key=lambda i: (not (ones[i] or ones[i + 1]), -i))
    for i in order:
        axes = groups[i] + groups[i + 1]
        if batch not in axes and all(_fills(row, shape, axes) for row in subject.source.aligned):
            return i
    return None


def _fills(row: Shape, shape: Shape, axes: Sequence[int]) -> bool:
    """Whether an operand fills all of these axes, or none."""
    wide = [axis for axis in axes if shape[axis] != 1]
    here = [row[axis] for axis in wide]
    return here == [shape[axis] for axis in wide] or all(size == 1 for size in here)


def _puts_back(subject: Subject, steps: Steps) -> bool:
    return steps[-1].op == "reshape" and steps[-2].op in ("self", _swap_name(subject))


# Broadcasts written out.


def _is_expand(subject: Subject, _: Audited) -> bool:
    return subject.site.kind is Kind.EXPAND and all_numbers(subject.source.shape)


def _whole_target(subject: Subject, setting: Audited) -> Iterator[Steps]:
    for shape in forms(subject, 0):
        for way in moves(subject.source.operands[0], shape):
            writer = StepWriter()
            ref = writer.chain(Input(0), way)
            yield (*writer.steps, _grown(setting, ref, shape, subject.source.shape))


def _grown(setting: Audited, ref: Ref, old: Shape, new: Shape) -> RewriteStep:
    """The step that repeats a tensor of a shape to another, by an op that the target has."""
    counts = repeats(old, new) if setting.judge.engine.tiles else None
    if counts is None:
        return RewriteStep("expand", (ref,), shape=new)
    return RewriteStep("tile", (ref,), shape=counts)


def _ends_in_expand(subject: Subject, steps: Steps) -> bool:
    return steps[-1].op in ("expand", "tile")


def _has_stretch(subject: Subject, _: Audited) -> bool:
    return (
        subject.site.kind is not Kind.EXPAND
        and any(subject.source.stretched)
        and bool(may_move(subject))
        and all_numbers(subject.source.shape)
        and all(all_numbers(inner_axes(subject, k)) for k in may_move(subject))
    )


def _expand(
    subject: Subject, setting: Audited, attributes: Mapping[str, Any] | None = None
) -> Iterator[Steps]:
    """One operand broadcast first, the smallest number of elements first; then all of them."""
    source = subject.source
    if not all_numbers(source.shape):
        return
    stretched = [k for k in may_move(subject) if source.stretched[k]]
    some = [[k] for k in sorted(stretched, key=lambda k: count_of(source.operands[k]))]
    for stages in range(1, _STAGES + 1):
        for expanded in [*some, stretched] if len(some) > 1 else some:
            for rest in ("as written", "aligned"):
                yield from _expand_these(subject, setting, expanded, rest, stages, attributes)


def _expand_these(
    subject: Subject,
    setting: Audited,
    expanded: Sequence[int],
    rest: str,
    stages: int,
    attributes: Mapping[str, Any] | None,
) -> Iterator[Steps]:
    source = subject.source
    writer = StepWriter()
    refs: list[Ref] = [Input(p) for p in range(len(subject.node.inputs))]
    for k in may_move(subject):
        place = subject.positions[k]
        assert place is not None
        aligned = source.aligned[k]
        if k not in expanded and rest == "as written":
            continue
        way = next(ways_to(subject, k, aligned), None)
        if way is None:
            return
        ref = writer.chain(Input(place), way)
        if k in expanded:
            axes = source.stretched[k]
            for stage in range(stages):
                done = set(axes[: -(-len(axes) * (stage + 1) // stages)])
                shape = tuple(
                    size if axis not in axes or axis in done else 1
                    for axis, size in enumerate(source.shape)
                )
                inner = inner_axes(subject, k)
                ref = writer.add(_grown(setting, ref, aligned + inner, shape + inner))
                aligned = shape
        refs[place] = ref
    yield from finished(writer, refs, attributes=attributes)


def _expands(subject: Subject, steps: Steps) -> bool:
    return steps[-1].op == "self" and any(step.op in ("expand", "tile") for step in steps)


# Other ops of the same values.


#: Element types of 16 bits.
_SMALL = frozenset({"float16", "bfloat16"})


def _chain(subject: Subject) -> Iterator[Steps]:
    """Two operands at a time, in the order in which they are computed."""
    count = len(subject.source.operands)
    if count < 3 or not subject.op.islower() or find_op(subject.op).operands != 2:
        return
    if subject.op == "add" and any(v is None or v.dtype in _SMALL for v in subject.node.inputs):
        return  # one op adds in float32 and rounds once; a chain rounds at each step
    written = combinations(subject, ())
    for shapes in (*written, *combinations(subject, may_move(subject))):
        writer = StepWriter()
        refs = []
        for k, shape in enumerate(shapes):
            place = subject.positions[k]
            way = next(moves(subject.source.operands[k], shape), None)
            if place is None or way is None:
                return
            refs.append(writer.chain(Input(place), way))
        orders = (False, True) if _commutes(subject) else (False,)
        for turns in itertools.product(orders, repeat=min(count - 1, _TURNED)):
            steps, so_far = list(writer.steps), refs[0]
            for k, ref in enumerate(refs[1:]):
                pair = (ref, so_far) if turns[k % len(turns)] else (so_far, ref)
                steps.append(RewriteStep(subject.op, pair))
                so_far = Earlier(len(steps) - 1)
            yield tuple(steps)


def _prelu(subject: Subject) -> Iterator[Steps]:
    """x < 0 ? slope times x : x, as PRelu's document says, for NaN and −0 too."""
    data = subject.node.inputs[0]
    if subject.site.kind is not Kind.PRELU or data is None or data.dtype is None:
        return
    for shape in forms(subject, 1):
        for way in itertools.islice(moves(subject.source.operands[1], shape), 1):
            writer = StepWriter()
            slope = writer.chain(Input(1), way)
            zero = writer.add(
                RewriteStep("number", (), attributes={"value": 0.0, "dtype": data.dtype})
            )
            below = writer.add(RewriteStep("less", (Input(0), zero)))
            product = writer.add(RewriteStep("multiply", (slope, Input(0))))
            writer.add(RewriteStep("where", (below, product, Input(0))))
            yield tuple(writer.steps)


#: Ops that other ops express exactly.
EQUIVALENTS: tuple[Callable[[Subject], Iterator[Steps]], ...] = (_chain, _prelu)


def _replace(subject: Subject, _: Audited) -> Iterator[Steps]:
    for make in EQUIVALENTS:
        yield from make(subject)


def _no_self(subject: Subject, steps: Steps) -> bool:
    return all(step.op != "self" for step in steps)


PASSES: tuple[Pass, ...] = (
    Pass(
        "constants",
        "a constant reshaped",
        _has_constant,
        partial(_reshape, constants=True),
        _adds_no_node,
    ),
    Pass(
        "swap",
        "operands exchanged",
        _swaps,
        partial(_reshape, constants=True, swapped=True),
        _adds_no_node,
    ),
    Pass("operands", "an operand reshaped", _moves_axes, _reshape, _moves_only),
    Pass("attributes", "said explicitly", _says_explicit, _change_attributes, _one_self),
    Pass(
        "exchange",
        "operands exchanged and reshaped",
        _swaps,
        partial(_reshape, swapped=True),
        _moves_only,
    ),
    Pass("merge", "neighbouring axes merged", _merges, _merge, _puts_back),
    Pass("target", "the whole result shape as target", _is_expand, _whole_target, _ends_in_expand),
    Pass("expand", "an operand broadcast first", _has_stretch, _expand, _expands),
    Pass("equivalent", "other ops of the same values", _is_elementwise, _replace, _no_self),
)
