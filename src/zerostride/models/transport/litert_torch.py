"""Broadcasts of a PyTorch module as the converter litert-torch writes them for LiteRT.

Its pass to LiteRT's ops wants the element types and ranks of its own tables, which are narrower
than those of the kernels, and it makes 32 bits of 64. It writes compound ops out, so that sizes
mean what they mean in PyTorch. Every op that is named here was converted and run in each element
type (`python -m campaigns front-doors --engine litert`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import repeat, zip_longest
from types import MappingProxyType

import numpy as np

from ...derive.size_traps import Side
from ...engines import limits
from ...engines.model import Divergence, Engine, always
from ...engines.rows import frozen
from ...engines.rows_litert import LITERT
from ...errors import ModelError, Reason
from ...sizes import Shape
from ..ir.graph import Graph, Node, Value
from ..ir.site import Kind, Site
from .ways import canonical, refusal, transport

_SOURCE = "litert-torch 0.10.0 and LiteRT 2.3.0, run: campaigns front-doors --engine litert"
#: The engine's row: element types are judged by what the converter writes.
WRITTEN = replace(
    LITERT,
    divergences=(
        Divergence(
            "litert-torch makes int32 of int64",
            Reason.WRONG_RESULT,
            _SOURCE,
            strikes=always,
            dtypes=frozen("int64"),
            narrows="int32",
        ),
        Divergence(
            "litert-torch divides integers as float32",
            Reason.WRONG_RESULT,
            _SOURCE,
            strikes=always,
            ops=frozen("divide fmod"),
            dtypes=frozen("int32 int64"),
            narrows="float32",
        ),
    ),
)
_ARITHMETIC = "float16 float32 float64 int16 int32 int64"
_COMPARED = "float32 int32 int64"
#: The element types that it converts, by op.
_TYPES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        name: frozen(dtypes)
        for names, dtypes in (
            ("add multiply", _ARITHMETIC),
            ("subtract", "float16 float32 float64 int32 int64"),
            ("divide", f"{_ARITHMETIC} int8 uint8"),
            ("maximum", "float16 float32 int32 int64"),
            ("minimum", _COMPARED),
            ("pow prelu BatchNormalization LayerNormalization", "float32"),
            ("fmod", "float32 int8 uint8 int16 int32"),
            ("remainder", f"{_COMPARED} int16"),
            ("less greater_equal", f"{_COMPARED} int16"),
            ("less_equal greater clip", _COMPARED),
            ("equal", f"{_COMPARED} int16 bool"),
            ("logical_and logical_or", f"{_COMPARED} bool"),
            ("bitwise_xor", "int8 uint8 int16 int32"),
            ("logical_xor bitwise_and bitwise_or bitwise_left_shift bitwise_right_shift", ""),
            ("where", "bool float16 float32 float64 int8 int16 int32 int64"),
            ("Expand", "bool float16 float32 float64 int8 uint8 int16 int32 int64"),
            ("MatMul", "float16 float32 int8 int16 int32 int64"),
            ("Gemm GroupNormalization InstanceNormalization RMSNormalization", "float16 float32"),
        )
        for name in names.split()
    }
)
#: Element types that it does not read.
_UNREAD = frozen("uint16 uint32 uint64")
#: Constants of one number with which it leaves a node out, by op.
_LEFT_OUT: Mapping[str, frozenset[int]] = MappingProxyType(
    {
        **dict.fromkeys(("add", "subtract", "bitwise_xor", "logical_xor"), frozenset({0})),
        "multiply": frozenset({0, 1}),
        **dict.fromkeys(("bitwise_and", "bitwise_or"), frozenset({0, -1})),
    }
)
#: The most axes where sizes differ, or of a compound op, if that is not the engine's own limit.
_AXES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("maximum", "minimum", "prelu", "clip"), 5),
        **dict.fromkeys(("pow", "RMSNormalization"), 4),
        **dict.fromkeys(("add", "subtract", "multiply", "divide", "fmod", "remainder"), 6),
        **dict.fromkeys(("LayerNormalization", "InstanceNormalization"), 6),
    }
)
#: The most axes of the other factor of a matrix, of an operand of SELECT_V2, and of FLOOR_MOD.
_FACTOR, _SELECT, _REMAINDER = 5, 5, 4


# Forms of an op that it does not convert, in words; None where it does.


def left_out(site: Site) -> bool:
    """Whether a constant of one number leaves the other operand as it is, or makes a constant.

    Then the converter leaves the node out, whatever the element type.
    """
    neutral = _LEFT_OUT.get(canonical(site) or "", frozenset())
    for place, value in enumerate(site.node.inputs if neutral else ()):
        if value is None or not value.constant or (place == 0 and site.node.op == "Sub"):
            continue
        try:
            numbers = set(map(int, np.unique(value.data())[:2]))
        except (ModelError, ValueError, OverflowError):  # its data is missing, or no number
            continue
        if len(numbers) == 1 and numbers <= neutral:
            return True
    return False


def _selected(site: Site) -> str | None:
    """SELECT and BROADCAST_TO have no such type.

    It writes SELECT where nothing stretches but a condition of one number, and BROADCAST_TO of an
    operand without which the others do not fill the result. It joins that with SELECT_V2 for one
    operand after the other, so that the second value is left.
    """
    condition, first, second = shapes = [part.shape or () for part in site.operands]
    result = _joined(*shapes)
    if not any(map(_stretches, shapes if condition else (first, second), repeat(result))):
        return "of one shape"
    if len(result) > _SELECT:
        return f"of more than {_SELECT} axes"
    second_fills = _stretches(second, result) and _stretches(_joined(condition, first), result)
    return "whose result the condition and the first value do not fill" if second_fills else None


def _filled(most: int) -> Callable[[Site], str | None]:
    """BROADCAST_TO, which it writes of more axes than the op has, has no such type."""

    def unfilled(site: Site) -> str | None:
        shapes = [part.shape or () for part in site.operands]
        result = _joined(*shapes)
        too_many = len(result) > most and all(_stretches(shape, result) for shape in shapes)
        return f"of more than {most} axes where both operands stretch" if too_many else None

    return unfilled


def _joined(*shapes: Shape) -> Shape:
    """The shape to which shapes stretch."""
    axes = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return tuple(next((size for size in sizes if size != 1), 1) for sizes in axes)[::-1]


def _of_one_batch(site: Site) -> str | None:
    """BROADCAST_TO of a factor, which it writes of several axes of a batch, has no such type."""
    first, second = (value.shape or () for value in _factors(site))
    if len(second) < 3 or len(first) < 2:  # it flattens the first factor, or multiplies and sums
        return None
    batch = _joined(first[:-2], second[:-2])
    several = len(batch) + 2 > _FACTOR or sum(size != 1 for size in batch) > 1
    alike = _joined(first[:-2]) == _joined(second[:-2])
    return "whose batch of several axes stretches" if several and not alike else None


def _stretched(site: Site) -> str | None:
    data, target = (part.shape or () for part in site.operands)
    return "that stretches" if _stretches(data, target) else None


def _stretches(shape: Shape, result: Shape) -> bool:
    """Whether a shape has fewer numbers than the result."""
    return [size for size in shape if size != 1] != [size for size in result if size != 1]


def _of_vectors(site: Site) -> str | None:
    """It writes a product with a vector as a multiplication and a sum."""
    first, second = (len(value.shape or ()) for value in _factors(site))
    summed = second == 1 or (first == 1 and second > 2)
    return None if summed else "but a matrix with a vector"


def _of_one_shape(site: Site) -> str | None:
    """It writes BROADCAST_TO of a first operand of more axes than the op has."""
    first, second = (part.shape or () for part in site.operands)
    filled = len(second) > _REMAINDER and second == _joined(first, second)
    plain = (filled or first == second) and not any(part.constant for part in site.operands)
    return None if plain else "but inputs of one shape"


def _of_samples(site: Site) -> str | None:
    """It repeats the scale for each sample; not where the exporter wrote a group norm so."""
    if "InstanceNormalization" in site.node.name:
        return None
    data = site.operands[0].shape or (1, 1)
    return "of several samples" if 1 not in data[:2] else None


#: A further check of an op in an element type.
_FURTHER: Mapping[tuple[str, str], Callable[[Site], str | None]] = MappingProxyType(
    {
        ("where", "float16"): _selected,
        ("maximum", "float16"): _filled(4),
        ("divide", "float16"): _filled(5),
        ("MatMul", "float16"): _of_one_batch,
        ("Expand", "float16"): _stretched,
        ("Expand", "float64"): _stretched,
        ("InstanceNormalization", "float16"): _of_samples,
        ("remainder", "int16"): _of_one_shape,
        **{("MatMul", kind): _of_vectors for kind in ("int8", "int16", "int32", "int64")},
    }
)


def written_for_litert(site: Site, engine: Engine) -> Side:
    """The rule of a node of a module; as `transport` for ops that were not run.

    Raises:
        BroadcastError: litert-torch does not convert it.
        NotJudged: nothing is known about it.
    """
    name = "Expand" if site.kind is Kind.EXPAND else canonical(site) or site.stands_for
    if name not in _TYPES or site.node.domain:
        return transport(site, engine, "litert-torch")
    _check_types(site, name)
    if name == "MatMul":
        _check_factors(site)
    rule, most = replace(site.rule, source=_SOURCE), _AXES.get(name, limits.LITERT_RANK)
    if site.kind in (Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU):
        rule = replace(rule, check=partial(limits.litert_axes, most=most))
    elif name in _AXES:
        rule = replace(rule, max_rank=most)
    return Side(rule, site.attributes, engine.title, name)


def _check_factors(site: Site) -> None:
    """Refuses shapes that it does not convert."""
    first, second = (value.shape or () for value in _factors(site))
    if len(second) != 2:
        return
    if len(first) > _FACTOR:
        detail = f"litert-torch does not convert a matrix times more than {_FACTOR} axes"
        raise refusal(site, detail, Reason.RANK_LIMIT)
    if len(first) > 3 and {first[0], *first[2:-1]} == {1}:
        detail = (
            f"litert-torch writes a product of wrong rank of {first} and a matrix: of all axes "
            "but the last two and the second no size is more than 1"
        )
        raise refusal(site, detail, Reason.RANK_LIMIT)


def _check_types(site: Site, name: str) -> None:
    """Refuses element types that it does not convert."""
    kind = _type_of(site)
    values = [value for value in site.node.inputs if value is not None]
    unsigned = [value.dtype for value in values if value.dtype in _UNREAD]
    unsigned += ["uint8" for value in values if value.constant and value.dtype == "uint8"]
    if unsigned:
        constants = "constants of " if unsigned[0] == "uint8" else ""
        detail = f"litert-torch does not convert {constants}{unsigned[0]}"
        raise refusal(site, detail, Reason.DTYPE)
    words = f"litert-torch does not convert {site.node.op} of {kind}"
    if kind is not None and kind not in _TYPES[name]:
        if left_out(site):
            return
        raise refusal(site, words, Reason.DTYPE)
    if kind is not None and (more := _FURTHER.get((name, kind))) and (where := more(site)):
        raise refusal(site, f"{words} {where}", Reason.DTYPE)


def before_export(graph: Graph) -> Graph:
    """The graph with operands of the element types that they have in the module.

    PyTorch's exporter widens operands of which ONNX Runtime has no kernel; litert-torch does not.
    """
    before = dict(filter(None, map(_widening, graph.nodes)))
    kinds: dict[int, str | None] = {}
    for node in graph.nodes if before else ():
        values = [value for value in node.inputs if value is not None]
        cast = [value for value in values if id(value) in before]
        if node.op == "Div":  # in PyTorch, too, a quotient of integers is one of floats
            cast = [value for value in cast if value.name.startswith("val_")]
        # Of a constant the exporter has left the number alone.
        plain = [value for value in values if not (value.constant and _is_cast(value.name))]
        sources = {before.get(id(value), value.dtype) for value in plain}
        if cast and len(sources) == 1:
            kinds |= {id(value): kind for value in values for kind in sources}

    def change(value: Value, _: int) -> Value:
        return replace(value, dtype=kinds[id(value)]) if id(value) in kinds else value

    return graph.with_values(change) if kinds else graph


def _widening(node: Node) -> tuple[int, str | None] | None:
    """The identity of an operand for which the exporter wrote a Cast, and its type before."""
    if node.op != "Cast" or node.inputs[0] is None or not _is_cast(node.outputs[0].name):
        return None
    narrow, wide = node.inputs[0].dtype, node.outputs[0].dtype
    between = node.outputs[0].name.startswith("val_") or _width(narrow) < _width(wide)
    return (id(node.outputs[0]), narrow) if between else None


def _is_cast(name: str) -> bool:
    """Whether the exporter gave a tensor this name between a node and its operand."""
    return name.startswith(("val_", "convert_element_type"))


def _width(dtype: str | None) -> int:
    """The bits of an element type; those of floats count as more."""
    digits = int("".join(filter(str.isdigit, dtype or "")) or 1)
    return digits + 64 * (dtype or "").startswith("float")


def _factors(site: Site) -> list[Value]:
    return [value for value in site.node.inputs[:2] if value is not None]


def _type_of(site: Site) -> str | None:
    """The element type that decides: of a power the wider, of a selected value, or the first."""
    inputs = site.node.inputs
    if site.node.op == "Pow":  # PyTorch computes in the wider of both types
        return max((value.computed_type for value in _factors(site)), key=_width)
    value = inputs[1 if site.kind is Kind.WHERE else 0]
    return None if value is None else value.computed_type
