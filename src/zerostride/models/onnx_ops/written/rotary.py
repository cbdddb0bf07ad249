"""RotaryEmbedding as products, a sum and a difference."""

from __future__ import annotations

import numpy as np

from .calls import CompoundCall, NotWritten, Shape


def rotary(call: CompoundCall) -> tuple[str, ...]:
    """RotaryEmbedding of ai.onnx (input, cosines, sines, positions): operators, version 23."""
    return (_rotated(call, caches=(1, 2), ids=3),)


def contributed(call: CompoundCall) -> tuple[str, ...]:
    """RotaryEmbedding of com.microsoft (input, positions, cosines, sines): ContribOperators.md."""
    call.refuse(
        (call.number("is_packed_batching"), "is_packed_batching, samples one behind the other"),
        (not call.input(1), "it has no positions"),
    )
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
        positions = behind(call, positions, length)
    else:
        call.fits(ids, batch, length)
    return gathered(call, call.fits(cache, rows, half), positions)


def behind(call: CompoundCall, first: str, length: int) -> str:
    """A position and those behind it."""
    kind = call.writer.dtype(first) or "int64"
    return call.writer.add("Add", first, call.writer.constant(np.arange(length).astype(kind)))


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
    if neighbours:
        first = data if 2 * half == features else call.part(data, last, 0, 2 * half)
        pairs = call.reshaped(first, *outer, half, 2)
        real, imaginary = (
            call.reshaped(call.part(pairs, last + 1, side, side + 1), *outer, half)
            for side in (0, 1)
        )
    else:
        real, imaginary = (call.part(data, last, side * half, (side + 1) * half) for side in (0, 1))
    results = [
        add("Sub", add("Mul", real, cos), add("Mul", imaginary, sin)),
        add("Add", add("Mul", real, sin), add("Mul", imaginary, cos)),
    ]
    if neighbours:
        pairs = call.joined([call.reshaped(name, *outer, half, 1) for name in results], last + 1)
        results = [call.reshaped(pairs, *outer, 2 * half)]
    rest = [] if 2 * half == features else [call.part(data, last, 2 * half, features)]
    return call.joined([*results, *rest], last)
