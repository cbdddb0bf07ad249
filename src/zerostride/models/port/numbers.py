"""The proof of a rewrite by values: the node and the steps, computed on random numbers.

The results must agree bit for bit. Where tensors are large or sizes open, other sizes with the same
equalities replace them. An op without a kernel is computed as an addition, since the proof is about
the places of numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...compute.kernels import KERNELS
from ...core.alignment import apply
from ...core.plan import Plan
from ...derive.regions import not_empty, real_shapes
from ...errors import BroadcastError
from ...ops import find_op
from ...sizes import Shape, elements
from ...sizes.condition import all_of
from ...sizes.dim import Dim, Symbol
from ...sizes.solve import values_for
from ..audit.audited import Audited
from ..audit.symbolic import related
from ..ir.graph import Array, FileSize
from ..ir.rewrite import Input
from ..ir.site import Kind, Operand, Site
from .layout import segments
from .program import Done, RewriteProgram, Unwitnessed, Wrong, op_of

#: Results of more elements are computed at smaller sizes.
MOST_ELEMENTS = 1 << 14
#: Larger arrays repeat so many random numbers. A prime: sizes and strides are rarely multiples.
_PERIOD = 16_381
#: Floats that rewrites easily change: signed zeros and NaN.
_SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0)
#: One in so many random floats is one of those.
_RARE = 7


def random_array(seed: int, shape: tuple[int, ...], dtype: str | None) -> Array:
    """Random numbers of a dtype, read-only; float32 where NumPy lacks the dtype."""
    if elements(shape) <= MOST_ELEMENTS:
        return _random(seed, shape, dtype)
    return np.resize(_random(seed, (_PERIOD,), dtype), shape)


def _computed_in(dtype: str | None) -> np.dtype[Any]:
    """NumPy's dtype of that name; float32 where NumPy lacks it, as for bfloat16."""
    try:
        kind = np.dtype(dtype or "float32")
    except TypeError:
        return np.dtype("float32")
    return kind if kind.kind in "biufc" else np.dtype("float32")


@functools.lru_cache(256)  # models repeat their blocks
def _random(seed: int, shape: tuple[int, ...], dtype: str | None) -> Array:
    rng = np.random.default_rng(seed)
    kind = _computed_in(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(kind)
    if kind.kind in "iu":
        return rng.integers(1, 8, shape).astype(kind)
    data = np.asarray(rng.standard_normal(shape)).astype(kind)
    rare = rng.integers(0, _RARE, shape) == 0
    return np.where(rare, rng.choice(_SPECIAL, shape).astype(kind), data)


def identical(a: Array, b: Array) -> bool:
    """Whether two arrays have the same bits, where all NaNs are equal.

    Which of two NaNs an addition keeps depends on NumPy's loop.

    >>> identical(np.array([0.0]), np.array([-0.0]))
    False
    >>> identical(np.array([np.nan]), np.array([-np.nan]))
    True
    """
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    same = np.array_equal(_words(a), _words(b))
    if same or a.dtype.kind != "f":
        return same
    a, b = (np.where(np.isnan(x), np.array(np.nan, x.dtype), x) for x in (a, b))
    return np.array_equal(_words(a), _words(b))


def _words(array: Array) -> Array:
    """The bits of an array as whole numbers, of its elements' size where NumPy has such."""
    size = array.itemsize if array.itemsize in (2, 4, 8) else 1
    return np.ascontiguousarray(array).reshape(-1).view(f"u{size}")


def operate(site: Site, plan: Plan, arrays: Sequence[Array]) -> Array:
    """The result of a site by its plan; the sum of the operands for an op without a kernel."""
    views = plan.views(*arrays)
    if site.kind is Kind.EXPAND:
        return views[0]
    with np.errstate(all="ignore"):
        op = op_of(site)
        try:
            count = find_op(op).operands if op.islower() else 0
        except BroadcastError:
            count = 0
        if count:
            try:
                function = KERNELS[find_op(op).name]
                if count == len(views):
                    return np.asarray(function(*views))
                if count == 2:
                    return np.asarray(functools.reduce(function, views))
            except (TypeError, ValueError):
                pass  # not defined for these dtypes or numbers; add instead
        return np.asarray(functools.reduce(np.add, [np.asarray(v, np.float64) for v in views]))


def outer_axes(array: Array, count: int) -> Array:
    """An array over its first axes, with one number for each inner matrix: 0 for an empty one."""
    if 0 in array.shape[count:]:
        return np.zeros(array.shape[:count], array.dtype)
    return array[(slice(None),) * count + (0,) * (array.ndim - count)]


def compute(program: RewriteProgram, setting: Audited) -> int:
    """Computes the node and its steps; returns the number of equal elements.

    Raises:
        Unwitnessed: no sizes were found to compute it with.
        Wrong: the results differ.
    """
    subject = program.subject
    sizes = sizes_for(program, setting, small=True)
    shapes = tuple(tuple(map(sizes, shape)) for shape in subject.source.operands)
    plan = _replanned(subject.site, subject.source, shapes, sizes)
    parts = [
        _numbers(k, part, shape, sizes)
        for k, (part, shape) in enumerate(zip(subject.site.operands, shapes, strict=False))
    ]
    before = operate(subject.site, plan, parts)
    after = _through(program, parts, sizes)
    if not identical(before, after):
        raise Wrong("computed on random numbers, the steps give another result")
    return int(before.size)


def _numbers(k: int, part: Operand, shape: Shape, size: Callable[[Any], int]) -> Array:
    """Random numbers for an operand; zeros where its tensor has further axes and holds none."""
    array = random_array(k, shape, None if part.tensor is None else part.tensor.computed_type)
    inner = () if part.tensor is None else (part.tensor.shape or ())[len(shape) :]
    return np.zeros_like(array) if 0 in map(size, inner) else array


def sizes_for(
    program: RewriteProgram, setting: Audited, *, small: bool = False
) -> Callable[[Any], int]:
    """Numbers for the sizes of a program: its own where they are numbers, and not too large."""
    shapes = (*program.subject.source.operands, program.subject.source.shape)
    if program.values is None:
        # A part may be the outer axes of a tensor (a product), which has inner sizes too.
        values = (*program.subject.node.inputs, *program.subject.node.outputs)
        whole = [v.shape for v in values if v is not None and v.shape is not None]
        program.values = _witness(program, setting, (*shapes, *whole))
    numbers = program.values
    real = real_shapes(shapes, numbers)
    names: Mapping[int, int] = {}
    if small and max(map(elements, real)) > MOST_ELEMENTS:
        names = _renamed({size for shape in real for size in shape if size > 1}, len(real[-1]))

    def size(extent: Any) -> int:
        number = extent if isinstance(extent, int) else extent.evaluate(numbers)
        return names.get(number, number)

    return size


def _witness(
    program: RewriteProgram, setting: Audited, shapes: Sequence[Sequence[FileSize]]
) -> Mapping[Symbol, int]:
    """Numbers for the symbols of a node, at which the model works.

    Raises:
        Unwitnessed: the solver found none.
    """
    unknown = [size for shape in shapes for size in shape if isinstance(size, Dim)]
    symbols = {symbol for size in unknown for symbol in size.symbols}
    if not symbols:
        return {}
    needs = (related(setting.judge.needs, shapes), program.subject.source.conditions)
    sized = (program.subject.source.shape, *program.subject.source.operands)
    values = values_for(all_of([*needs, not_empty(sized)]), sorted(symbols))
    if values is None:
        raise Unwitnessed(
            "no sizes were found at which the model works here, so no rewrite can be computed"
        )
    return values


def _renamed(sizes: set[int], rank: int) -> Mapping[int, int]:
    """Small numbers for the sizes, different where the result stays small enough to compute."""
    most = max(2, int(MOST_ELEMENTS ** (1 / max(rank, 1))))
    return {size: 2 + k % (most - 1) for k, size in enumerate(sorted(sizes))}


def _replanned(
    site: Site, plan: Plan, shapes: tuple[Shape, ...], size: Callable[[Any], int]
) -> Plan:
    """The plan at other sizes, with the same axes mapping."""
    if plan.operands == shapes and plan.open is None:
        return plan
    if plan.open is not None and site.kind is not Kind.EXPAND:
        try:
            return apply(site.rule, shapes, site.attributes)
        except BroadcastError as error:
            raise Wrong(error.detail) from None
    result: list[int] = [1] * plan.rank
    for shape, mapping in zip(shapes, plan.axes_mapping, strict=True):
        for extent, axis in zip(shape, mapping, strict=True):
            if axis is not None and extent != 1:
                result[axis] = extent
    if site.kind is Kind.EXPAND:
        if plan.open is not None:
            raise Unwitnessed("where its axes land depends on sizes, so it was not computed")
        result = list(map(size, plan.shape))  # the target has sizes that no operand has
    return Plan(tuple(result), shapes, plan.axes_mapping, plan.rule)


def _through(program: RewriteProgram, parts: Sequence[Array], size: Callable[[Any], int]) -> Array:
    """The result of the steps."""
    subject = program.subject
    inputs: dict[int, Array] = {}
    for k, place in enumerate(subject.positions):
        tensor = subject.site.operands[k].tensor
        if place is None or tensor is None:
            continue
        # Where the part is a tensor's outer axes, every inner matrix repeats one number.
        inner = tuple(map(size, (tensor.shape or ())[parts[k].ndim :]))
        array = parts[k].reshape(parts[k].shape + (1,) * len(inner))
        inputs[place] = np.broadcast_to(array, parts[k].shape + inner)
    results: list[Array] = []
    for done in program.done:
        arrays = [
            inputs.get(ref.position) if isinstance(ref, Input) else results[ref.step]
            for ref in done.step.operands
        ]
        results.append(_step(done, arrays, parts, size))
    return results[-1]


def _step(
    done: Done, arrays: Sequence[Array | None], parts: Sequence[Array], size: Callable[[Any], int]
) -> Array:
    step = done.step
    if step.op == "number":
        return np.array(step.attributes["value"], _computed_in(step.attributes["dtype"]))
    if step.op in ("unsqueeze", "squeeze"):
        assert arrays[0] is not None
        return (np.expand_dims if step.op == "unsqueeze" else np.squeeze)(arrays[0], step.axes)
    if step.op == "reshape":
        assert arrays[0] is not None
        return arrays[0].reshape(_shape(done, arrays[0], size))
    if step.op == "tile":
        assert arrays[0] is not None
        counts = tuple(map(size, step.shape or ()))
        sizes = tuple(n * count for n, count in zip(arrays[0].shape, counts, strict=True))
        return np.broadcast_to(arrays[0], sizes)  # an axis that repeats has the size 1
    if step.op == "expand":
        assert arrays[0] is not None
        assert done.plan is not None
        return np.broadcast_to(arrays[0], tuple(map(size, done.plan.shape)))
    assert done.site is not None
    assert done.plan is not None
    taken = []
    for k, place in enumerate(done.parts[: len(done.plan.operands)]):
        array = parts[k] if place is None else arrays[place]
        assert array is not None
        taken.append(outer_axes(array, len(done.plan.operands[k])))
    shapes = tuple(array.shape for array in taken)
    return operate(done.site, _replanned(done.site, done.plan, shapes, size), taken)


def _shape(done: Done, array: Array, size: Callable[[Any], int]) -> tuple[int, ...]:
    """The shape after a reshape at these sizes; groups of axes keep their product."""
    old = done.node.inputs[0]
    new = done.node.outputs[0].shape
    assert old is not None
    assert old.shape is not None
    assert new is not None
    groups = segments(old.shape, new)
    if groups is None:
        raise Wrong(f"{old.shape} is not regrouped to {new}")
    result = [1] * len(new)
    for before, after in groups:
        if len(after) == 1:
            result[after[0]] = elements([array.shape[axis] for axis in before])
        else:
            for axis in after:
                result[axis] = size(new[axis])
    return tuple(result)
