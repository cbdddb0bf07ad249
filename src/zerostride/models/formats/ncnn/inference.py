"""Shapes of all blobs of a .param, by the table of layers, from the sizes of inputs.

If the file gives no sizes of an input and a layer fixes its rank, its sizes get names ("in0.c",
"in0.h", "in0.w"). Otherwise the input has no shape.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ....core.rules import NCNN_RANK
from ....sizes.dim import Dim, Number, Symbol, of_atom
from ...onnx_ops.sizes.facts import NoSizes, Unclear
from .layers import LAYERS, LEFTOVERS
from .shapes.call import LayerCall, Sizes, called, checked
from .text import Layer, Params, shown

#: Longer expressions of sizes are replaced by new names.
MAX_EXPRESSION = 200


@dataclass
class Inferred:
    """The inferred shapes.

    Attributes:
        shapes: blobs with a shape.
        wrong: results of failing layers, and blobs that depend on them.
        open: blobs whose shape depends on data, and blobs that depend on them.
        named: input blobs whose sizes have names.
        unsized: input blobs without a shape.
        notes: problems of layers, as text.
    """

    shapes: dict[str, Sizes] = field(default_factory=dict)
    wrong: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    named: list[str] = field(default_factory=list)
    unsized: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def infer(
    layers: Sequence[Layer],
    answers: Mapping[str, Sizes] | None = None,
    inputs: Mapping[str, Sizes] | None = None,
) -> Inferred:
    """The shapes of blobs.

    Args:
        layers: the layers in order.
        answers: shapes of blobs that the engine gave.
        inputs: shapes of input blobs that a caller gave.

    Raises:
        ModelError: a parameter has the wrong type; names line and layer, not the file.
    """
    inferred = Inferred()
    ranks = _ranks(layers)
    for layer in layers:
        hints = _hints(layer, inferred.notes)
        own = [(inputs or {}).get(name) for name in layer.tops if layer.type == "Input"]
        shapes = own if any(own) else _results(layer, inferred, ranks)
        for k, name in enumerate(layer.tops):
            shape = shapes[k] if k < len(shapes) else None
            if shape is None:
                shape = (answers or {}).get(name) or hints.get(name)
            elif name in hints and all(isinstance(s, int) for s in shape) and hints[name] != shape:
                inferred.notes.append(
                    f"{layer.shown}: the file hints at {hints[name]}, it makes {shape}"
                )
            if shape is not None:
                inferred.shapes[name] = tuple(map(_bounded, shape))
        if layer.type == "Input":
            inferred.unsized += [name for name in layer.tops if name not in inferred.shapes]
    return inferred


def _bounded(size: Number) -> Number:
    """The size, or a new name for a long expression."""
    if not isinstance(size, Dim) or len(str(size)) <= MAX_EXPRESSION:
        return size
    name = hashlib.sha256(str(size).encode()).hexdigest()[:12]
    return of_atom(Symbol(f"size_{name}", 1))


def _results(
    layer: Layer, inferred: Inferred, ranks: Mapping[str, _Rank]
) -> Sequence[Sizes | None]:
    """The shapes of a layer's results; empty if they are unknown."""
    row = LAYERS.get(layer.type) or LEFTOVERS.get(layer.type)
    if any(name in inferred.wrong for name in layer.bottoms):
        inferred.wrong.update(layer.tops)
        return ()
    if any(name in inferred.open for name in layer.bottoms):
        inferred.open.update(layer.tops)
    if row is None or row.shapes is None:
        if row is not None and row.by_data:
            inferred.open.update(layer.tops)
        return ()
    operands = [inferred.shapes[name] for name in layer.bottoms if name in inferred.shapes]
    if len(operands) < len(layer.bottoms):
        return ()
    try:
        return row.shapes(LayerCall(layer, tuple(operands)))
    except Unclear:
        if layer.type == "Input" and layer.tops:
            return _input(layer.tops[0], inferred, ranks)
        if row.by_data and len(layer.bottoms) > 1:
            inferred.open.update(layer.tops)
    except (NoSizes, ArithmeticError) as error:
        inferred.wrong.update(layer.tops)
        if layer.type != "BinaryOp":  # its finding explains the failure better
            inferred.notes.append(f"{layer.shown} does not work: {error}")
    return ()


def _input(name: str, inferred: Inferred, ranks: Mapping[str, _Rank]) -> Sequence[Sizes | None]:
    """Names for the sizes of an input that the file does not give, if its rank is known."""
    if name not in ranks:
        return ()
    rank = ranks[name]
    inferred.named.append(name)
    inferred.notes += [rank.note.format(shown(name))] if rank.note else []
    return [called(name, rank.axes)]


@dataclass(frozen=True)
class _Rank:
    """An input's rank, from the layers that it reaches.

    Attributes:
        axes: the number of axes.
        note: a note for the user about an assumption; {} is the input.
    """

    axes: int
    note: str = ""


#: The note for an input whose rank is assumed.
_UP_TO = (
    "the input {{}} is taken to have {} axes, as many as {} makes of it; it may have fewer, and "
    "then its sizes are to be given"
)


def _ranks(layers: Sequence[Layer]) -> dict[str, _Rank]:
    """The ranks of inputs, from layers that they reach through layers that keep ranks.

    If a constant of more axes joins on the way, the input may have fewer axes than the result. The
    largest rank is assumed, with a note.
    """
    origin: dict[str, str] = {}
    least: dict[str, tuple[int, str]] = {}
    axes: dict[str, int] = {}
    ranks: dict[str, _Rank] = {}
    for layer in layers:
        row = LAYERS.get(layer.type)
        if layer.type == "Input":
            origin.update((name, name) for name in layer.tops)
        if layer.type == "MemoryData":
            axes.update(dict.fromkeys(layer.tops, len(Params(layer).sizes()) or 1))
        met = [name for name in layer.bottoms if name in origin]
        if not met or row is None:
            continue
        rank = row.rank if row.rank is not None else _by_others(layer, axes)
        first = met[0]
        if rank is not None and first == layer.bottoms[0]:
            floor, who = least.get(first, (0, ""))
            note = _UP_TO.format(rank, who) if floor >= rank else ""
            ranks.setdefault(origin[first], _Rank(rank, note))
        if not (row.keeps or row.ranked or layer.type == "BinaryOp"):
            continue
        for name in layer.tops:
            origin[name] = origin[first]
            if first in least:
                least[name] = least[first]
        if layer.type == "BinaryOp" and len(layer.bottoms) > 1:
            rows = [
                least.get(name, (0, ""))
                if origin.get(name) == origin[first]
                else (axes.get(name, NCNN_RANK), layer.shown)
                for name in layer.bottoms
            ]
            least.update((name, max(rows)) for name in layer.tops)
    return ranks


def _by_others(layer: Layer, axes: Mapping[str, int]) -> int | None:
    """The rank of the operands, which is the same for all, from one operand of known rank."""
    if layer.type not in ("Concat", "Eltwise"):
        return None
    return next((axes[name] for name in layer.bottoms if name in axes), None)


def _hints(layer: Layer, notes: list[str]) -> dict[str, Sizes]:
    """Shapes of results that a line gives: parameter 30, dims and w, h, (d,) c for each."""
    if 30 not in layer.params or not layer.tops:
        return {}
    numbers = Params(layer).wholes(30)
    step = len(numbers) // len(layer.tops)
    hinted: dict[str, Sizes] = {}
    for k, name in enumerate(layer.tops):
        row = numbers[k * step : (k + 1) * step]
        rank = row[0] if row else 0
        if not 1 <= rank <= NCNN_RANK or len(row) <= rank:
            notes.append(f"{layer.shown}: its hint at shapes is malformed")
            return {}
        inner = row[1 : rank + 1]
        if rank == 3 and len(row) == 5:
            inner = (row[1], row[2], row[4])
        try:
            hinted[name] = checked(inner[::-1])
        except NoSizes as error:
            notes.append(f"{layer.shown}: its hint at shapes is malformed: {error}")
            return {}
    return hinted
