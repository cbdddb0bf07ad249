"""The sites of RotaryEmbedding: its angles repeat along the heads.

Half of a head's features are multiplied by a cosine and a sine for each place of a sequence. The
caches have no axis of heads, and with one position for the whole batch none of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..ir.graph import FileSize, Node, Value
from ..ir.site import BESIDE_AXIS, Kind, Operand, Site, input_at, not_modelled, operand_of


def _rotary(node: Node) -> Site:
    """RotaryEmbedding of ai.onnx: input, cosines, sines, positions."""
    data, cos, sin, ids = (input_at(node, position) for position in range(4))
    return _site(node, data, (cos, sin), ids)


def _contributed(node: Node) -> Site:
    """RotaryEmbedding of com.microsoft: input, positions, cosines, sines."""
    data, ids, cos, sin = (input_at(node, position) for position in range(4))
    if node.attributes.get("is_packed_batching"):
        return not_modelled(node, "is_packed_batching, samples one behind the other")
    if ids is None:
        return not_modelled(node)
    return _site(node, data, (cos, sin), ids)


def _site(
    node: Node, data: Value | None, caches: tuple[Value | None, Value | None], ids: Value | None
) -> Site:
    if data is None or None in caches:
        return not_modelled(node)
    unsized = [value for value in (data, *caches, ids) if value is not None and value.shape is None]
    if unsized:
        return Site(node, Kind.TRAILING, tuple(map(operand_of, unsized)), BESIDE_AXIS, {"axis": 1})
    rotated = _rotated(node, data, caches[0])
    if rotated is None:
        return not_modelled(node, "heads whose number is not known")
    shape, axis, length = rotated
    operands = [Operand(f"{data.name}[half]", shape, tensor=data)]
    for cache in caches:
        operand = _angles(cache, ids, length)
        if operand is None:
            return not_modelled(node, "caches of another rank")
        operands.append(operand)
    return Site(node, Kind.TRAILING, tuple(operands), BESIDE_AXIS, {"axis": axis})


def _rotated(
    node: Node, data: Value, cos: Value | None
) -> tuple[tuple[FileSize, ...], int, FileSize] | None:
    """The shape of the half that is multiplied, the axis of its heads, and the length."""
    shape, heads = data.shape or (), node.attributes.get("num_heads") or 0
    partial = node.attributes.get("rotary_embedding_dim") or 0
    if not isinstance(heads, int) or not isinstance(partial, int):
        return None
    if len(shape) == 4:
        half = partial // 2 or _divided(shape[3], 2)
        return (*shape[:3], half), 1, shape[2]
    if len(shape) != 3:
        return None
    width, angles = shape[2], (None if cos is None or not cos.shape else cos.shape[-1])
    if not heads and isinstance(width, int) and isinstance(angles, int) and angles:
        heads = width // (2 * angles)  # com.microsoft derives it
    if not heads:
        return None
    half = partial // 2 or _divided(width, 2 * heads)
    return (*shape[:2], heads, half), 2, shape[1]


def _divided(size: FileSize, number: int) -> FileSize:
    return size // number if isinstance(size, int) else None


def _angles(cache: Value | None, ids: Value | None, length: FileSize) -> Operand | None:
    """A cache as it is multiplied: by (sample, place), or by place alone."""
    if cache is None or cache.shape is None:
        return None
    if ids is None:
        return operand_of(cache) if len(cache.shape) == 3 else None
    if ids.shape is None or len(cache.shape) != 2 or len(ids.shape) not in (1, 2):
        return None
    name = f"{cache.name}[{ids.name}]"
    if len(ids.shape) == 1:  # the position of the first place of every sample
        return Operand(name, (length, cache.shape[1]), cache.constant)
    return Operand(name, (*ids.shape, cache.shape[1]), cache.constant, tensor=ids)


Builder = Callable[[Node], "Site | None"]
#: Ops of ai.onnx.
ROWS: Mapping[str, Builder] = MappingProxyType({"RotaryEmbedding": _rotary})
#: Ops of com.microsoft.
CONTRIB: Mapping[str, Builder] = MappingProxyType({"RotaryEmbedding": _contributed})
