"""The weights of layers, and their positions in a .bin.

A .bin has no table. It holds the weights of the layers in order, so the position of one follows
from the lengths of all before it. `LOADS` lists what each layer reads (its `load_model`). A layer
that ncnn lacks may have weights of any length. It is assumed to have none, or all bytes that the
other layers leave, if the last layer then ends at the end of the file. Only the 4-byte marks of the
storage forms are read, until numbers are needed.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, TypeAlias

import numpy as np

from ....errors import ModelError
from ...ir.graph import Array
from .text import Layer, Params, shown

#: Marks before weights with several storage forms (`ModelBinFromDataReader::load`).
_HALF, _INT8, _FLOAT_AGAIN = 0x01306B47, 0x000D4B38, 0x0002C056
#: The table of 256 numbers before indices of a byte.
_TABLE = 256 * 4
#: Functions that pnnx leaves untranslated. They read only blobs; only modules have weights.
FUNCTIONS = re.compile(r"(F|torch|Tensor|pnnx)\..*|(aten|prim)::.*")


@dataclass(frozen=True, slots=True)
class Load:
    """Weights that a layer reads.

    Attributes:
        name: their name in the layer.
        shape: their shape, in NumPy's order.
        marked: whether a mark before them gives the storage form; else they are 32-bit floats.
    """

    name: str
    shape: tuple[int, ...]
    marked: bool = False

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Stored:
    """Weights in a .bin.

    Attributes:
        load: name and shape.
        start, end: their bytes, with the mark and the padding to 4 bytes.
        mark: the storage form; 0 without a mark.
    """

    load: Load
    start: int
    end: int
    mark: int


@dataclass(frozen=True, slots=True)
class Weights:
    """The located weights of a .bin.

    Attributes:
        path: the file, whether it exists or not.
        stored: for each layer its weights; None for layers whose weights are not located.
        missing: why weights are not located; None if all are.
        end: the first byte after the located weights.
        size: the file's size; None without a file.
    """

    path: Path
    stored: tuple[tuple[Stored, ...] | None, ...]
    missing: str | None
    end: int
    size: int | None


Loads: TypeAlias = "Callable[[Params], Sequence[Load]]"


def _vector(name: str, count: int) -> Load:
    return Load(name, (count,))


def _convolution(p: Params) -> list[Load]:
    if p.whole(19):
        return []
    return _weighted(p)


def _weighted(p: Params) -> list[Load]:
    """Weights of the count in the line, and a bias."""
    loads = [Load("weight", (p.whole(6),), marked=True)]
    return [*loads, _vector("bias", p.whole(0))] if p.whole(5) else loads


def _convolution_2d(p: Params) -> list[Load]:
    loads = _convolution(p)
    scales = p.whole(8)
    if loads and scales:
        loads += [_vector("weight_scale", p.whole(0)), _vector("input_scale", 1)]
        loads += [_vector("output_scale", 1)] if scales > 100 else []
    return loads


def _depthwise_2d(p: Params) -> list[Load]:
    loads = _convolution(p)
    scales = p.whole(8)
    if loads and scales:
        if scales % 100 in (1, 2):
            count = p.whole(7, 1) if scales % 100 == 1 else 1
            loads += [_vector("weight_scale", count), _vector("input_scale", 1)]
        loads += [_vector("output_scale", 1)] if scales > 100 else []
    return loads


def _deconvolution(p: Params) -> list[Load]:
    return [] if p.whole(28) else _weighted(p)


def _inner_product(p: Params) -> list[Load]:
    loads = [Load("weight", (p.whole(2),), marked=True)]
    loads += [_vector("bias", p.whole(0))] if p.whole(1) else []
    if p.whole(8):
        loads += [_vector("weight_scale", p.whole(0)), _vector("input_scale", 1)]
    return loads


def _embed(p: Params) -> list[Load]:
    loads = [Load("weight", (p.whole(3),), marked=True)]
    loads += [_vector("bias", p.whole(0))] if p.whole(2) else []
    return [*loads, _vector("weight_scale", 1)] if p.whole(18) else loads


def _batch_norm(p: Params) -> list[Load]:
    return [_vector(name, p.whole(0)) for name in ("slope", "mean", "variance", "bias")]


def _affine(count: int, switch: int, names: str) -> Loads:
    def loads(p: Params) -> list[Load]:
        if not p.whole(switch, 1):
            return []
        return [_vector(name, p.whole(count)) for name in names.split()]

    return loads


def _scale(p: Params) -> list[Load]:
    count = p.whole(0)
    if count == -233:
        return []
    loads = [_vector("scale", count)]
    return [*loads, _vector("bias", count)] if p.whole(1) else loads


def _one(name: str, number: int, default: int = 0) -> Loads:
    """A vector of the length in a parameter; nothing if that is 0."""

    def loads(p: Params) -> list[Load]:
        count = p.whole(number, default)
        return [_vector(name, count)] if count else []

    return loads


def _several(*rows: Loads) -> Loads:
    def loads(p: Params) -> list[Load]:
        return [load for row in rows for load in row(p)]

    return loads


def _memory_data(p: Params) -> list[Load]:
    w, h, d, c = (p.whole(key) for key in (0, 1, 11, 2))
    marked = p.whole(21, 1) == 0
    if not (w or h or d or c):
        return []
    shape = (c, d, h, w) if d else (c, h, w) if c else (h, w) if h else (w,)
    return [Load("data", shape, marked)]


def _blocks(term: int, k: int) -> tuple[int, int]:
    """Bytes and blocks of a row of weights that are quantised by blocks."""
    block = {0: 32, 1: 64}.get(term % 10, 128)
    return (k * (term // 100) + 7) // 8, -(-k // block)


def _gemm(p: Params) -> list[Load]:
    m, n, k, term = p.whole(7), p.whole(8), p.whole(9), p.whole(18)
    by_blocks = term >= 400
    loads: list[Load] = []
    if p.whole(4):
        loads.append(Load("A", (k, m) if p.whole(2) else (m, k), marked=True))
    if p.whole(5):
        shape = (n, k) if p.whole(3) else (k, n)
        shape = (n, _blocks(term, k)[0]) if by_blocks else shape
        loads.append(Load("B", shape, marked=True))
    kind = p.whole(10)
    if p.whole(6) and kind != -1:
        shapes = {0: (1,), 1: (m,), 2: (m, 1), 3: (m, n), 4: (1, n)}
        if kind in shapes:
            loads.append(Load("C", shapes[kind], marked=True))
    if by_blocks:
        loads.append(Load("B_scale", (n, _blocks(term, k)[1])))
        loads += [_vector("B_input_scale", k)] if term % 100 // 10 == 1 else []
    elif term:
        loads += [_vector("A_scale", m)] if p.whole(4) else []
        loads += [_vector("B_scale", 1)] if p.whole(5) else []
    return loads


def _attention(p: Params) -> list[Load]:
    embed, term = p.whole(0), p.whole(18)
    if embed < 1:
        return []
    q = p.whole(2) // embed
    widths = (("q", embed, q), ("k", embed, p.whole(3, embed)), ("v", embed, p.whole(4, embed)))
    every = (*widths, ("out", q, embed))
    by_blocks = term >= 400
    loads: list[Load] = []
    for name, rows, columns in every:
        wide = _blocks(term, columns)[0] if by_blocks else columns
        loads += [Load(f"{name}_weight", (rows, wide), marked=True), _vector(f"{name}_bias", rows)]
    if by_blocks:
        loads += [Load(f"{name}_scale", (r, _blocks(term, c)[1])) for name, r, c in every]
        if term % 100 // 10 == 1:
            loads += [_vector(f"{name}_input_scale", c) for name, _, c in every]
    elif term:
        loads += [_vector(f"{name}_scale", embed) for name in "qkv"] + [_vector("out_scale", 1)]
    return loads


def _recurrent(gates: int, biases: int) -> Loads:
    def loads(p: Params) -> list[Load]:
        count, directions = p.whole(0), 2 if p.whole(2) == 2 else 1
        hidden = p.whole(3, count) if gates == 4 else count
        if count < 1 or hidden < 1:
            return []
        size = p.whole(1) // directions // hidden // gates
        shapes = {
            "weight_xc": (directions, hidden * gates, size),
            "bias_c": (directions, biases, hidden),
            "weight_hc": (directions, hidden * gates, count),
        }
        rows = [Load(name, shape, marked=True) for name, shape in shapes.items()]
        if hidden != count:
            rows.append(Load("weight_hr", (directions, count, hidden), marked=True))
        if p.whole(8):
            rows += [Load(f"{name}_scale", (directions, hidden * gates)) for name in ("xc", "hc")]
        return rows

    return loads


_NORM = _affine(1, 3, "gamma beta")

#: The weights that each layer reads from the .bin. Other layers of ncnn read none.
LOADS: Mapping[str, Loads] = MappingProxyType(
    {
        "BatchNorm": _batch_norm,
        "Bias": lambda p: [_vector("bias", p.whole(0))],
        "Convolution": _convolution_2d,
        "ConvolutionDepthWise": _depthwise_2d,
        **dict.fromkeys(("Convolution1D", "ConvolutionDepthWise1D"), _convolution),
        **dict.fromkeys(("Convolution3D", "ConvolutionDepthWise3D"), _weighted),
        **dict.fromkeys(
            (
                "Deconvolution",
                "Deconvolution1D",
                "DeconvolutionDepthWise",
                "DeconvolutionDepthWise1D",
            ),
            _deconvolution,
        ),
        **dict.fromkeys(
            ("Deconvolution3D", "DeconvolutionDepthWise3D", "DeformableConv2D"), _weighted
        ),
        "Dequantize": _several(_one("scale", 0, 1), _one("bias", 1)),
        "Embed": _embed,
        "GRU": _recurrent(3, 4),
        "Gemm": _gemm,
        "GroupNorm": _NORM,
        "InnerProduct": _inner_product,
        "InstanceNorm": _affine(0, 2, "gamma beta"),
        "LSTM": _recurrent(4, 4),
        "LayerNorm": _affine(0, 2, "gamma beta"),
        "MemoryData": _memory_data,
        "MultiHeadAttention": _attention,
        "Normalize": _one("scale", 3),
        "PReLU": lambda p: [_vector("slope", p.whole(0))],
        "Padding": _one("value", 6),
        "Quantize": _one("scale", 0, 1),
        "RMSNorm": _affine(0, 2, "gamma"),
        "RNN": _recurrent(1, 1),
        "Requantize": _several(_one("scale_in", 0, 1), _one("scale_out", 1, 1), _one("bias", 2)),
        "Scale": _scale,
    }
)


def bin_path(param: Path) -> Path:
    """The .bin of a .param: the same stem, beside it."""
    name = param.name
    stem = name[: -len(".param")] if name.lower().endswith(".param") else name
    return param.with_name(stem + ".bin")


def locate(layers: Sequence[Layer], path: Path, is_ncnn: Callable[[str], bool]) -> Weights:
    """Locates the weights of the layers in a .bin.

    Args:
        layers: the layers of the .param.
        path: the .bin; it need not exist.
        is_ncnn: whether ncnn has a layer type.

    Raises:
        ModelError: a layer's parameter has the wrong type.
    """
    size = _size(path)
    if size is None:
        return Weights(path, (None,) * len(layers), path.name, 0, None)
    try:
        with path.open("rb") as file:
            walk = _walked(layers, file, size, is_ncnn)
    except OSError as error:
        walk = _Walk([], 0, f"{path.name}: {error.strerror or error}")
    stored = (*walk.stored, *(None,) * (len(layers) - len(walk.stored)))
    return Weights(path, stored, walk.missing, walk.end, size)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except (OSError, ValueError):
        return None


@dataclass
class _Walk:
    """The weights located so far, their end, and why the search stopped."""

    stored: list[tuple[Stored, ...] | None]
    end: int
    missing: str | None = None


def _walked(
    layers: Sequence[Layer], file: BinaryIO, size: int, is_ncnn: Callable[[str], bool]
) -> _Walk:
    """The weights of all layers, or of those before a layer of unknown length."""

    def opaque(layer: Layer) -> bool:
        return not is_ncnn(layer.type) and not FUNCTIONS.fullmatch(layer.type)

    here = next((k for k, layer in enumerate(layers) if opaque(layer)), len(layers))
    before = _forward(layers[:here], file, 0, size)
    if here == len(layers) or before.missing is not None:
        return before
    after = layers[here + 1 :]
    # No weights, or the bytes that the other layers leave if they all have one storage form.
    lengths = {0}
    if not any(map(opaque, after)):
        lengths |= {size - before.end - _total(after, mark) for mark in (0, _HALF)}
    for length in sorted(n for n in lengths if n >= 0):
        rest = _forward(after, file, before.end + length, size)
        if rest.missing is None and rest.end == size:
            return _Walk([*before.stored, () if not length else None, *rest.stored], size)
    before.missing = f"the weights of {_who(layers[here])} before it are of unknown length"
    return before


def _who(layer: Layer) -> str:
    return f"{shown(layer.type)[1:-1]} {shown(layer.name)}"


def _loads(layer: Layer) -> Sequence[Load]:
    return LOADS[layer.type](Params(layer)) if layer.type in LOADS else ()


def _total(layers: Sequence[Layer], mark: int) -> int:
    """The bytes of the layers' weights if all marked ones have one storage form."""
    return sum(
        4 + _length(mark, load.count) if load.marked else 4 * load.count
        for layer in layers
        for load in _loads(layer)
    )


def _forward(layers: Sequence[Layer], file: BinaryIO, start: int, size: int) -> _Walk:
    """The weights of consecutive layers from a position on."""
    walk = _Walk([], start)
    for layer in layers:
        own: list[Stored] = []
        here = walk.end
        for load in _loads(layer):
            if min(load.shape) < 0:
                walk.missing = f"the weights of {_who(layer)} are of a length below 0"
                return walk
            stored = _stored(load, file, here, size)
            if stored is None:
                walk.missing = f"the file ends within the weights of {_who(layer)}"
                return walk
            own.append(stored)
            here = stored.end
        walk.stored.append(tuple(own))
        walk.end = here
    return walk


def _stored(load: Load, file: BinaryIO, start: int, size: int) -> Stored | None:
    """The weights that start here; None if they end beyond the file."""
    mark = 0
    at = start
    if load.marked:
        file.seek(start)
        raw = file.read(4)
        if len(raw) < 4:
            return None
        (mark,) = struct.unpack("<I", raw)
        at += 4
    end = at + _length(mark, load.count)
    return Stored(load, start, end, mark) if end <= size else None


def _length(mark: int, count: int) -> int:
    """The bytes of weights after their mark."""
    if mark == _HALF:
        return -(-2 * count // 4) * 4
    if mark == _INT8:
        return -(-count // 4) * 4
    if mark in (0, _FLOAT_AGAIN):
        return 4 * count
    return _TABLE + -(-count // 4) * 4


def dtype_of(stored: Stored) -> str:
    """The type in which ncnn holds weights: 32-bit floats, but for what is marked as int8."""
    return "int8" if stored.mark == _INT8 else "float32"


def load(stored: Stored, path: Path) -> Array:
    """The numbers of weights, as ncnn holds them.

    Raises:
        ModelError: the file has gone, or is shorter than it was.
    """
    start = stored.start + (4 if stored.load.marked else 0)
    try:
        with path.open("rb") as file:
            file.seek(start)
            raw = file.read(stored.end - start)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from None
    if len(raw) < stored.end - start:
        raise ModelError(f"{path}: too short for {stored.load.name} of {stored.load.shape}")
    count, shape = stored.load.count, stored.load.shape
    if stored.mark == _HALF:
        return np.frombuffer(raw, "<f2", count).astype(np.float32).reshape(shape)
    if stored.mark == _INT8:
        return np.frombuffer(raw, np.int8, count).reshape(shape)
    if stored.mark in (0, _FLOAT_AGAIN):
        return np.frombuffer(raw, "<f4", count).reshape(shape)
    table = np.frombuffer(raw, "<f4", 256)
    indices = np.frombuffer(raw, np.uint8, count, offset=_TABLE)
    numbers: Array = table[indices].reshape(shape)
    return numbers


__all__ = ["LOADS", "Load", "Stored", "Weights", "bin_path", "load", "locate"]
