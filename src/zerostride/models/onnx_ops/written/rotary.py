"""RotaryEmbedding as products, a sum and a difference."""

from __future__ import annotations

import math

import numpy as np

from .calls import CompoundCall, Form, NotWritten, Shape


def check_rotary(form: Form) -> None:
    """Raises NotWritten for a form that is none of the document's."""
    form.refuse((not form.input(1) or not form.input(2), "it has no cosines and sines"))


def check_contributed(form: Form) -> None:
    """Raises NotWritten for samples one behind the other."""
    form.refuse(
        (form.number("is_packed_batching"), "is_packed_batching, samples one behind the other"),
        (not all(map(form.input, (1, 2, 3))), "it has no positions, cosines or sines"),
    )


def rotary(call: CompoundCall) -> tuple[str, ...]:
    """RotaryEmbedding of ai.onnx (input, cosines, sines, positions): operators, version 23."""
    return (_rotated(call, caches=(1, 2), ids=3),)


def contributed(call: CompoundCall) -> tuple[str, ...]:
    """RotaryEmbedding of com.microsoft (input, positions, cosines, sines): ContribOperators.md."""
    return (_rotated(call, caches=(2, 3), ids=1),)


def _rotated(call: CompoundCall, caches: tuple[int, int], ids: int) -> str:
    shape = call.sizes(0, 3, 4)
    half = call.sizes(caches[0], 2, 3)[-1]
    partial = call.number("rotary_embedding_dim")
    heads = call.number("num_heads")
    if len(shape) == 3 and not heads:
        call.refuse(
            (call.domain == "" or partial or not half, "heads whose number is not known"),
            (shape[2] % max(1, 2 * half), "heads whose number is not known"),
        )
        heads = shape[2] // (2 * half)
    by_head = shape if len(shape) == 4 else (*shape[:2], heads, shape[2] // max(1, heads))
    call.refuse((2 * half != (partial or by_head[3]), "caches of another size than the features"))
    length = shape[2] if len(shape) == 4 else shape[1]
    angles = [_angles(call, cache, ids, shape[0], length, half) for cache in caches]
    if len(shape) == 4:
        cos, sin = (call.reshaped(name, -1, 1, length, half) for name in angles)
        return turned(call, call.input(0), by_head, (cos, sin), half)
    cos, sin = (call.reshaped(name, -1, length, 1, half) for name in angles)
    data = call.reshaped(call.input(0), *by_head)
    return call.reshaped(turned(call, data, by_head, (cos, sin), half), *shape)


def _angles(call: CompoundCall, cache: int, ids: int, batch: int, length: int, half: int) -> str:
    """The cosines or sines of each place of each sample, or of each place."""
    if not call.input(ids):
        return call.fits(cache, batch, length, half)
    rows = call.sizes(cache, 2)[0]
    positions = call.input(ids)
    if len(call.sizes(ids, 1, 2)) == 1:  # the position of the first place of every sample
        call.fits(ids, 1)
        positions = behind(call, positions, call.kind(ids), length)
    else:
        call.fits(ids, batch, length)
    return gathered(call, call.fits(cache, rows, half), positions)


def behind(call: CompoundCall, first: str, kind: str, length: int, start: int = 0) -> str:
    """Positions of a type from one that is `start` behind another."""
    if length == 1 and not start:
        return first
    places, known = np.arange(start, start + length, dtype=kind), call.writer.array(first)
    if known is not None:
        return call.writer.constant(known + places)
    return call.writer.add("Add", first, call.writer.constant(places))


def gathered(call: CompoundCall, cache: str, positions: str) -> str:
    """The rows of a cache."""
    known, rows = call.writer.array(positions), (call.writer.shape(cache) or (0,))[0]
    if known is not None and known.size and not 0 <= known.min() <= known.max() < rows:
        raise NotWritten(f"positions beyond the {rows} of the caches")
    return call.writer.add("Gather", cache, positions, axis=0)


def turned(call: CompoundCall, data: str, shape: Shape, angles: tuple[str, str], half: int) -> str:
    """A tensor whose first features are turned by angles.

    Args:
        call: `interleaved` says whether neighbours are a pair, or features that are half apart.
        data: the tensor.
        shape: its sizes; features are the last axis.
        angles: cosines and sines, which broadcast to the half that they multiply.
        half: the number of pairs.
    """
    add, (cos, sin), last = call.writer.add, angles, len(shape) - 1
    outer, features = shape[:-1], shape[-1]
    neighbours = call.number("interleaved") or call.number("rotary_interleaved")
    pairs = outer[0], math.prod(outer[1:]), half  # engines take four axes
    if neighbours:
        first = data if 2 * half == features else call.part(data, last, 0, 2 * half)
        first = call.reshaped(first, *pairs, 2)
        real, imaginary = (
            call.reshaped(call.part(first, 3, side, side + 1), *outer, half) for side in (0, 1)
        )
    else:
        real, imaginary = (call.part(data, last, side * half, (side + 1) * half) for side in (0, 1))
    results = [
        add("Sub", add("Mul", real, cos), add("Mul", imaginary, sin)),
        add("Add", add("Mul", real, sin), add("Mul", imaginary, cos)),
    ]
    if neighbours:
        both = call.joined([call.reshaped(name, *pairs, 1) for name in results], 3)
        results = [call.reshaped(both, *outer, 2 * half)]
    rest = [] if 2 * half == features else [call.part(data, last, 2 * half, features)]
    return call.joined([*results, *rest], last)
