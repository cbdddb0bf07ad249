"""The passes of a port, cheapest first: each proposes rewrites of one node, and says what they are.

A pass *requires* something of the node, proposes steps, and *ensures* something of them, which is
checked after it ran. Whether steps mean the same is not its business: :mod:`.program` finds out.

======================  ========================================================================
constants               reshape constants
swap                    exchange the operands of an op that may, constants reshaped
operands                put ones into operands that are no constants, or take them out
attributes              the format's own attribute for NumPy's rule, operands reshaped to suit
exchange                the two together: operands exchanged, ones put into any of them
merge                   neighbouring axes as one, for engines with few of them; result put back
target                  an Expand to the whole result shape
expand                  one operand or all broadcast first
equivalent              other ops of the same values
======================  ========================================================================
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...dims import Shape, elements
from ...dims.dim import Dim
from ...ops import find_op
from ..findings import Verdict
from ..rewrite import SELF, Input, Made, Ref, Step
from ..sites import Kind
from .layout import inserted
from .program import Setting, Subject

Steps = tuple[Step, ...]
#: Operands whose forms are combined freely; of more, all get the same form.
_COMBINED = 3
#: Combinations of forms that are tried by one pass for one node.
_MOST = 160
#: Broadcasts in a row by which one operand is expanded, for engines with few runs of axes.
_STAGES = 3
#: Pairs of a chain of which each may be turned round by itself.
_TURNED = 3


@dataclass(frozen=True, slots=True)
class Pass:
    """A row of the table.

    Attributes:
        name: how it is called.
        does: what it does, in words.
        requires: whether it has anything to propose for a node.
        propose: the steps, the smallest change first.
        ensures: whether steps are what the pass promises; a fault of ours otherwise.
    """

    name: str
    does: str
    requires: Callable[[Subject, Setting], bool]
    propose: Callable[[Subject, Setting], Iterator[Steps]]
    ensures: Callable[[Subject, Steps], bool]


# Steps that give an operand a shape.


class _Writer:
    """Collects steps; equal ones are one."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def add(self, step: Step) -> Ref:
        """The result of a step, which may be there already."""
        if step in self.steps:
            return Made(self.steps.index(step))
        self.steps.append(step)
        return Made(len(self.steps) - 1)

    def chain(self, ref: Ref, moves: Iterable[Step]) -> Ref:
        """The tensor after moves, whose operand is filled in here."""
        for move in moves:
            ref = self.add(Step(move.op, (ref,), move.shape, move.axes))
        return ref


def moves(old: Shape, new: Shape) -> Iterator[Steps]:
    """Steps that make `new` of `old`: put in axes of 1, take them out, or reshape."""
    if old == new:
        yield ()
        return
    ways = [(Step("unsqueeze", (), axes=axes),) for axes in inserted(old, new)]
    ways += [(Step("squeeze", (), axes=axes),) for axes in inserted(new, old)]
    yield from ways
    if ways:
        return
    wide = tuple(size for size in old if size != 1)
    if wide == tuple(size for size in new if size != 1):
        if _numbers(new) and 0 not in new:
            yield (Step("reshape", (), shape=new),)
            return
        ones = tuple(axis for axis, size in enumerate(old) if size == 1)
        (back,) = itertools.islice(inserted(wide, new), 1)
        yield (Step("squeeze", (), axes=ones), Step("unsqueeze", (), axes=back))
        return
    asked = _asked(new)
    if asked is not None:
        yield (Step("reshape", (), shape=asked),)


def _numbers(shape: Shape) -> bool:
    return all(isinstance(size, int) for size in shape)


def _asked(shape: Shape) -> tuple[int, ...] | None:
    """A shape as a reshape takes it: one size at most that is not known, and none of 0 then."""
    unknown = [size for size in shape if isinstance(size, Dim)]
    if len(unknown) > 1 or (unknown and 0 in shape):
        return None
    return tuple(-1 if isinstance(size, Dim) else int(size) for size in shape)


# Shapes to try.


def forms(subject: Subject, k: int) -> list[Shape]:
    """Shapes that may be given to an operand: as it is, aligned, and without outer ones."""
    aligned = subject.source.aligned[k]
    rank = len(aligned)
    filled = [axis for axis, size in enumerate(aligned) if size != 1] or [rank]
    first, last = filled[0], filled[-1] + 1
    found = [subject.source.operands[k]]
    found += [aligned[start:] for start in range(first, -1, -1)]
    found += [aligned[first:last], aligned[:last], tuple(n for n in aligned if n != 1)]
    return list(dict.fromkeys(found))


def _is_constant(subject: Subject, k: int) -> bool:
    """Whether an operand is a constant of the file, not one that nodes compute from such."""
    tensor = subject.site.operands[k].tensor
    if tensor is None or not tensor.constant:
        return False
    return tensor.source is not None or tensor.missing is not None or tensor.content is not None


def _may_move(subject: Subject) -> list[int]:
    """The operands that are tensors of the model, whole, or the outer axes of one in a product."""
    return [
        k
        for k in range(len(subject.source.operands))
        if subject.positions[k] is not None
        and (_is_whole(subject, k) or subject.site.kind is Kind.MATMUL)
    ]


def _inner(subject: Subject, k: int) -> Shape:
    """The axes of a tensor behind those that are broadcast: the matrix, in a product."""
    tensor = subject.site.operands[k].tensor
    if subject.site.kind is not Kind.MATMUL or tensor is None:
        return ()
    sizes = tuple(size for size in tensor.shape or () if size is not None)
    return sizes[len(subject.source.operands[k]) :]


def _is_whole(subject: Subject, k: int) -> bool:
    """Whether a part of the site is a tensor with all its axes."""
    part = subject.site.operands[k]
    tensor = part.tensor
    return tensor is not None and tensor.shape == part.shape


def _combinations(subject: Subject, moving: Sequence[int]) -> list[tuple[Shape, ...]]:
    """Shapes for all operands, of which only `moving` ones change; the smallest change first."""
    written = subject.source.operands
    if len(moving) > _COMBINED:
        every = range(len(written))
        aligned = subject.source.aligned
        rows = [aligned, tuple(_bare(shape) for shape in aligned)]
        uniform = [tuple(row[k] if k in moving else written[k] for k in every) for row in rows]
        return list(dict.fromkeys((written, *uniform)))
    options = [forms(subject, k) if k in moving else [shape] for k, shape in enumerate(written)]
    found = sorted(itertools.product(*options), key=lambda shapes: _cost(subject, shapes))
    return found[:_MOST]  # the operands as they are cost nothing, and come first


def _bare(shape: Shape) -> Shape:
    """The shape without the ones at its front."""
    filled = [axis for axis, size in enumerate(shape) if size != 1]
    return shape[filled[0] :] if filled else ()


def _cost(subject: Subject, shapes: Sequence[Shape]) -> tuple[int, int, int, int]:
    """Nodes put in, operands changed, numbers moved, axes."""
    changed = [k for k, shape in enumerate(shapes) if shape != subject.source.operands[k]]
    nodes = sum(not _is_constant(subject, k) for k in changed)
    moved = sum(_count(shapes[k]) for k in changed)
    return nodes, len(changed), moved, sum(len(shapes[k]) for k in changed)


def _count(shape: Shape) -> int:
    """How many numbers, sizes that are not known taken for large ones."""
    return elements([size if isinstance(size, int) else 1 << 10 for size in shape])


# Rewrites made of them.


def _rewritten(
    subject: Subject,
    shapes: Sequence[Shape],
    *,
    swapped: str | None = None,
    attributes: dict[str, object] | None = None,
    result: Shape | None = None,
) -> Iterator[Steps]:
    """The node's op on operands of these shapes; the operands exchanged, the result reshaped."""
    places = [subject.positions[k] for k in range(len(shapes))]
    options = [list(_ways(subject, k, shape)) for k, shape in enumerate(shapes)]
    for ways in itertools.islice(itertools.product(*options), 8):
        writer = _Writer()
        refs: list[Ref] = [Input(p) for p in range(len(subject.node.inputs))]
        for place, way in zip(places, ways, strict=True):
            if place is not None:
                refs[place] = writer.chain(Input(place), way)
        yield from _finish(writer, refs, swapped, attributes, result)


def _ways(subject: Subject, k: int, shape: Shape) -> Iterator[Steps]:
    """Steps that give an operand's broadcast axes another shape."""
    inner = _inner(subject, k)
    return moves(subject.source.operands[k] + inner, shape + inner)


def _finish(
    writer: _Writer,
    refs: Sequence[Ref],
    swapped: str | None = None,
    attributes: dict[str, object] | None = None,
    result: Shape | None = None,
) -> Iterator[Steps]:
    if swapped is not None:
        op = "self" if swapped == "self" else swapped
        last = Step(op, tuple(refs[::-1]), attributes=attributes or {})
    else:
        last = SELF(*refs, **(attributes or {}))
    writer.steps.append(last)
    if result is not None:
        asked = _asked(result)
        if asked is None:
            return
        writer.steps.append(Step("reshape", (Made(len(writer.steps) - 1),), shape=asked))
    yield tuple(writer.steps)


def _reshape_constants(subject: Subject, _: Setting) -> Iterator[Steps]:
    moving = [k for k in _may_move(subject) if _is_constant(subject, k)]
    for shapes in _combinations(subject, moving):
        if shapes != subject.source.operands:
            yield from _rewritten(subject, shapes)


def _has_constant(subject: Subject, _: Setting) -> bool:
    return any(_is_constant(subject, k) for k in _may_move(subject))


def _adds_no_node(subject: Subject, steps: Steps) -> bool:
    """Everything but the node itself is done to constants."""
    constants = {
        Input(place)
        for k, place in enumerate(subject.positions)
        if place is not None and _is_constant(subject, k)
    }
    known: set[Ref] = set(constants)
    for k, step in enumerate(steps[:-1]):
        if step.op not in ("reshape", "squeeze", "unsqueeze") or not known.issuperset(
            step.operands
        ):
            return False
        known.add(Made(k))
    return True


def _swaps(subject: Subject, _: Setting) -> bool:
    return _swap_name(subject) is not None


def _swap_name(subject: Subject) -> str | None:
    """The op to which operands are handed the other way round: "self", or the mirrored one."""
    if subject.site.kind is not Kind.ELEMENTWISE or len(subject.source.operands) != 2:
        return None
    if not subject.op.islower() or tuple(subject.positions) != (0, 1):
        return None
    row = find_op(subject.op)
    return "self" if row.commutes else row.swap


def _swap(subject: Subject, _: Setting) -> Iterator[Steps]:
    moving = [k for k in _may_move(subject) if _is_constant(subject, k)]
    for shapes in _combinations(subject, moving):
        yield from _rewritten(subject, shapes, swapped=_swap_name(subject))


def _reshape_operands(subject: Subject, _: Setting) -> Iterator[Steps]:
    for shapes in _combinations(subject, _may_move(subject))[1:]:
        yield from _rewritten(subject, shapes)


def _exchange(subject: Subject, _: Setting) -> Iterator[Steps]:
    for shapes in _combinations(subject, _may_move(subject))[1:]:
        yield from _rewritten(subject, shapes, swapped=_swap_name(subject))


def _orders(subject: Subject) -> tuple[str | None, ...]:
    """As written, and the other way round where the op allows it."""
    name = _swap_name(subject)
    return (None,) if name is None else (None, name)


def _moves_only(subject: Subject, steps: Steps) -> bool:
    """Ones are put in or taken out, and the node does the rest."""
    return steps[-1].op in ("self", _swap_name(subject)) and all(
        step.op in ("reshape", "squeeze", "unsqueeze") for step in steps[:-1]
    )


def _any(subject: Subject, _: Setting) -> bool:
    return bool(_may_move(subject))


# Attributes.


def _explicit(subject: Subject, setting: Setting) -> dict[str, object] | None:
    """What the format changes so that the node follows NumPy's rule, or nothing stretches."""
    hook = getattr(setting.module, "explicit", None)
    changes = None if hook is None else hook(subject.node)
    return None if not changes else dict(changes)


def _says_explicit(subject: Subject, setting: Setting) -> bool:
    return _explicit(subject, setting) is not None


def _change_attributes(subject: Subject, setting: Setting) -> Iterator[Steps]:
    changes = _explicit(subject, setting)
    constants = [k for k in _may_move(subject) if _is_constant(subject, k)]
    for moving in (constants, _may_move(subject)):
        for shapes in _combinations(subject, moving):
            yield from _rewritten(subject, shapes, attributes=changes)
    yield from _expanded(subject, changes)


def _one_self(subject: Subject, steps: Steps) -> bool:
    return sum(step.op == "self" for step in steps) == 1


# Merged axes.


def _is_elementwise(subject: Subject, _: Setting) -> bool:
    return subject.site.kind in (Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU, Kind.CLIP) and all(
        _is_whole(subject, k) for k in range(len(subject.source.operands))
    )


def _merge(subject: Subject, setting: Setting) -> Iterator[Steps]:
    source = subject.source
    batch = _batch_axis(subject, setting)
    groups: list[tuple[int, ...]] = [(axis,) for axis in range(source.rank)]
    while (pair := _mergeable_pair(subject, groups, batch)) is not None:
        groups[pair : pair + 2] = [groups[pair] + groups[pair + 1]]
        aligned = [_fold(shape, groups) for shape in source.aligned]
        kept = [
            shape if _carries(subject, setting, k) else _bare(shape)
            for k, shape in enumerate(aligned)
        ]
        for swapped in _orders(subject):
            for shapes in dict.fromkeys((tuple(aligned), tuple(kept))):
                yield from _rewritten(subject, shapes, swapped=swapped, result=source.shape)


def _fold(shape: Shape, groups: Sequence[Sequence[int]]) -> Shape:
    return tuple(elements([shape[axis] for axis in group]) for group in groups)


def _carries(subject: Subject, setting: Setting, k: int) -> bool:
    """Whether an operand carries the batch, or fills the result's outermost axis."""
    batch = setting.judge.batch.of(subject.site.operands[k].tensor)
    return batch is not None or subject.source.aligned[k][0] != 1


def _batch_axis(subject: Subject, setting: Setting) -> int | None:
    """The result's axis that is the batch."""
    for part, mapping in zip(subject.site.operands, subject.source.axes_mapping, strict=False):
        axis = setting.judge.batch.of(part.tensor)
        if axis is not None and axis < len(mapping):
            return mapping[axis]
    return None


def _mergeable_pair(
    subject: Subject, groups: Sequence[tuple[int, ...]], batch: int | None
) -> int | None:
    """Neighbours that merge: first those with an extent of 1, then the innermost."""
    shape = subject.source.shape
    ones = [all(shape[axis] == 1 for axis in group) for group in groups]
    order = sorted(range(len(groups) - 1), key=lambda i: (not (ones[i] or ones[i + 1]), -i))
    for i in order:
        axes = groups[i] + groups[i + 1]
        if batch not in axes and all(_fills(row, shape, axes) for row in subject.source.aligned):
            return i
    return None


def _fills(row: Shape, shape: Shape, axes: Sequence[int]) -> bool:
    """Whether an operand lies along all of these axes, or none."""
    wide = [axis for axis in axes if shape[axis] != 1]
    here = [row[axis] for axis in wide]
    return here == [shape[axis] for axis in wide] or all(size == 1 for size in here)


def _puts_back(subject: Subject, steps: Steps) -> bool:
    return steps[-1].op == "reshape" and steps[-2].op in ("self", _swap_name(subject))


# Broadcasts written out.


def _is_expand(subject: Subject, _: Setting) -> bool:
    return subject.site.kind is Kind.EXPAND and _numbers(subject.source.shape)


def _whole_target(subject: Subject, _: Setting) -> Iterator[Steps]:
    for shape in forms(subject, 0):
        for way in moves(subject.source.operands[0], shape):
            writer = _Writer()
            ref = writer.chain(Input(0), way)
            yield (*writer.steps, Step("expand", (ref,), shape=subject.source.shape))


def _ends_in_expand(subject: Subject, steps: Steps) -> bool:
    return steps[-1].op == "expand"


def _has_stretch(subject: Subject, _: Setting) -> bool:
    return (
        subject.site.kind is not Kind.EXPAND
        and any(subject.source.stretched)
        and bool(_may_move(subject))
        and _numbers(subject.source.shape)
        and all(_numbers(_inner(subject, k)) for k in _may_move(subject))
    )


def _expand(subject: Subject, _: Setting) -> Iterator[Steps]:
    return _expanded(subject, {})


def _expanded(subject: Subject, attributes: dict[str, object] | None) -> Iterator[Steps]:
    """One operand broadcast first, the smallest number of elements first; then all of them."""
    source = subject.source
    if not _numbers(source.shape):
        return
    stretched = [k for k in _may_move(subject) if source.stretched[k]]
    some = [[k] for k in sorted(stretched, key=lambda k: _count(source.operands[k]))]
    for stages in range(1, _STAGES + 1):
        for expanded in [*some, stretched] if len(some) > 1 else some:
            for rest in ("as written", "aligned"):
                yield from _expand_these(subject, expanded, rest, stages, attributes)


def _expand_these(
    subject: Subject,
    expanded: Sequence[int],
    rest: str,
    stages: int,
    attributes: dict[str, object] | None,
) -> Iterator[Steps]:
    source = subject.source
    writer = _Writer()
    refs: list[Ref] = [Input(p) for p in range(len(subject.node.inputs))]
    for k in _may_move(subject):
        place = subject.positions[k]
        assert place is not None
        aligned = source.aligned[k]
        if k not in expanded and rest == "as written":
            continue
        way = next(_ways(subject, k, aligned), None)
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
                ref = writer.add(Step("expand", (ref,), shape=shape + _inner(subject, k)))
        refs[place] = ref
    yield from _finish(writer, refs, attributes=attributes)


def _expands(subject: Subject, steps: Steps) -> bool:
    return steps[-1].op == "self" and any(step.op == "expand" for step in steps)


# Other ops of the same values.


def _chain(subject: Subject) -> Iterator[Steps]:
    """Two operands at a time, in the order in which they are computed."""
    count = len(subject.source.operands)
    if count < 3 or not subject.op.islower() or find_op(subject.op).operands != 2:
        return
    written = _combinations(subject, ())
    for shapes in (*written, *_combinations(subject, _may_move(subject))):
        writer = _Writer()
        refs = []
        for k, shape in enumerate(shapes):
            place = subject.positions[k]
            way = next(moves(subject.source.operands[k], shape), None)
            if place is None or way is None:
                return
            refs.append(writer.chain(Input(place), way))
        orders = (False, True) if find_op(subject.op).commutes else (False,)
        for turns in itertools.product(orders, repeat=min(count - 1, _TURNED)):
            steps, so_far = list(writer.steps), refs[0]
            for k, ref in enumerate(refs[1:]):
                pair = (ref, so_far) if turns[k % len(turns)] else (so_far, ref)
                steps.append(Step(subject.op, pair))
                so_far = Made(len(steps) - 1)
            yield tuple(steps)


def _prelu(subject: Subject) -> Iterator[Steps]:
    """x < 0 ? slope times x : x, which is what PRelu's document says, NaN and −0 included."""
    data = subject.node.inputs[0]
    if subject.site.kind is not Kind.PRELU or data is None or data.dtype is None:
        return
    for shape in forms(subject, 1):
        for way in itertools.islice(moves(subject.source.operands[1], shape), 1):
            writer = _Writer()
            slope = writer.chain(Input(1), way)
            zero = writer.add(Step("number", (), attributes={"value": 0.0, "dtype": data.dtype}))
            below = writer.add(Step("less", (Input(0), zero)))
            product = writer.add(Step("multiply", (slope, Input(0))))
            writer.add(Step("where", (below, product, Input(0))))
            yield tuple(writer.steps)


#: Ops that can be said by others, each exactly.
EQUIVALENTS: tuple[Callable[[Subject], Iterator[Steps]], ...] = (_chain, _prelu)


def _replace(subject: Subject, _: Setting) -> Iterator[Steps]:
    for make in EQUIVALENTS:
        yield from make(subject)


def _no_self(subject: Subject, steps: Steps) -> bool:
    return all(step.op != "self" for step in steps)


PASSES: tuple[Pass, ...] = (
    Pass("constants", "a constant reshaped", _has_constant, _reshape_constants, _adds_no_node),
    Pass("swap", "operands exchanged", _swaps, _swap, _adds_no_node),
    Pass("operands", "an operand reshaped", _any, _reshape_operands, _moves_only),
    Pass("attributes", "said explicitly", _says_explicit, _change_attributes, _one_self),
    Pass("exchange", "operands exchanged and reshaped", _swaps, _exchange, _moves_only),
    Pass("merge", "neighbouring axes merged", _is_elementwise, _merge, _puts_back),
    Pass("target", "the whole result shape as target", _is_expand, _whole_target, _ends_in_expand),
    Pass("expand", "an operand broadcast first", _has_stretch, _expand, _expands),
    Pass("equivalent", "other ops of the same values", _is_elementwise, _replace, _no_self),
)

__all__ = ["EQUIVALENTS", "PASSES", "Pass", "Verdict", "forms", "moves"]
