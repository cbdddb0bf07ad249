"""How engines align where that is not a rule of `rules`: what was measured, not what is written."""

from __future__ import annotations

from ..alignment import Alignment, Attributes
from ..dims import Asker, Shape
from ..errors import Misfit, Reason
from ..rules import check_axes, check_fits, one_way_axis


def openvino_pdpd(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """PDPD as OpenVINO infers it: trailing ones of B count, and zeros are compared by size.

    Along an axis B may not be larger than A, so 1 does not stretch to 0; but A's 1 becomes B's 0.
    """
    a, b = shapes
    axis = one_way_axis(a, b, attributes["axis"])
    check_fits(axis, len(b), len(a))
    mapping = tuple(range(axis, axis + len(b)))
    shrinks = frozenset(k for k, size in zip(mapping, b, strict=True) if asker.equal(size, 0))
    grows = frozenset(k for k in mapping if not asker.equal(a[k], 0))
    return Alignment(len(a), (tuple(range(len(a))), mapping), (shrinks, grows))


def openvino_explicit(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Explicit as OpenVINO infers it: rank-0 data may carry one axis where the target is 1."""
    data, target = shapes
    axes = attributes["axes_mapping"]
    scalar = not data and len(axes) == 1
    if len(axes) != len(data) and not scalar:
        raise Misfit(
            Reason.ATTRIBUTE, f"axes_mapping has {len(axes)} entries for {len(data)} data axes"
        )
    check_axes(axes, len(target))
    if scalar and not asker.is_one(target[axes[0]]):
        raise Misfit(Reason.ATTRIBUTE, "rank-0 data carries an axis only where the target is 1")
    every = tuple(range(len(target)))
    return Alignment(len(target), (axes if data else (), every), (every, ()))


def prelu_channel(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """PRelu: a vector that fits axis 1 goes there, even where the last axis has its length too."""
    data, slope = shapes
    rank = len(data)
    every = range(rank)
    if len(slope) > rank:
        raise Misfit(Reason.RANK, f"the slope has rank {len(slope)}, more than the data's {rank}")
    start = rank - len(slope)
    if len(slope) == 1 and rank > 1 and asker.equal(slope[0], data[1]):
        start = 1
    return Alignment(rank, (tuple(every), tuple(range(start, start + len(slope)))), ((), every))


def jax_dims(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """jax.lax.broadcast_in_dim: axes distinct, in range; unsorted ones would transpose."""
    data, target = shapes
    axes = attributes["axes_mapping"]
    if len(axes) != len(data):
        raise Misfit(
            Reason.ATTRIBUTE, f"broadcast_dimensions has {len(axes)} entries, data {len(data)} axes"
        )
    check_axes(axes, len(target))
    every = tuple(range(len(target)))
    return Alignment(len(target), (axes, every), (every, ()))


def equal_ranks_or_scalar(
    asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes
) -> Alignment:
    """jax.lax's element-wise functions: operands of one rank, or of rank 0."""
    rank = max(map(len, shapes))
    if any(len(shape) not in (0, rank) for shape in shapes):
        raise Misfit(Reason.RANK, "ranks differ and neither is 0")
    mapping = tuple(tuple(range(len(shape))) for shape in shapes)
    return Alignment(rank, mapping, (range(rank),) * len(shapes))
