"""The op table, and look-up in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from ..errors import BroadcastError, Reason
from ..system.spelling import near
from . import activations, arithmetic, logic, unary
from .model import API_NAMED, Name, Op

#: Columns of the table, in the order in which `find_op` reads them.
COLUMNS = (
    *("onnx", "openvino", "ncnn", "mnn", "paddle", *API_NAMED),
    *("litert", "tensorrt", "coreml", "tosa", "stablehlo"),
)
ROWS = (*arithmetic.ROWS, *logic.ROWS, *unary.ROWS, *activations.ROWS)

OPS: Mapping[str, Op] = MappingProxyType({op.name: op for op in ROWS})


def ops_with(fact: str) -> frozenset[str]:
    """The ops of which a fact of `model.FACTS` holds, by name.

    >>> sorted(ops_with("width"))
    ['nextafter']
    """
    return frozenset(op.name for op in ROWS if fact in op.facts)


#: Ops that compare their operands.
COMPARISONS = ops_with("comparison")
#: Ops whose results are truth values, whatever their operands are.
TRUTHS = COMPARISONS | ops_with("logical")

#: Names in the engines, in lower case, of the op that broadcasts to a target shape. It has no row.
BROADCAST_OPS = frozenset({"expand", "broadcast", "broadcast_to", "broadcastto", "expand_v2"})


def _index(column: str | None, *, reverse: bool = False) -> dict[Name, Op]:
    """Lower-case name or number to row; the first of two rows with one name wins."""
    index: dict[Name, Op] = {}
    for op in ROWS:
        names = op.reversed_names if reverse else op.names
        for word in names.get(column, ()) if column else (op.name, *op.aliases):
            index.setdefault(word.lower() if isinstance(word, str) else word, op)
    return index


_BY_COLUMN = {column: _index(column) for column in COLUMNS}
_REVERSED = {column: _index(column, reverse=True) for column in COLUMNS}
_BY_NAME: dict[Name, Op] = {
    name: op
    for index in (*[_BY_COLUMN[column] for column in reversed(COLUMNS)], _index(None))
    for name, op in index.items()
    if isinstance(name, str)
}


def find_op(name: Name, engine: str | None = None) -> Op:
    """The row of an op by any engine's name for it, in any case.

    Engines use some names for different ops ("Mod" is the remainder in ONNX and fmod in OpenVINO).
    Without an engine the array API's name counts first, then the columns in their order.

    Args:
        name: the op's name, or its number where the engine has numbers (ncnn's BinaryOp).
        engine: read only this engine's names.

    Raises:
        BroadcastError: if no row has the name.

    >>> find_op("elementwise_sub").name, find_op(17, "ncnn").name
    ('subtract', 'remainder')
    >>> find_op("Mod").name, find_op("Mod", "openvino").name
    ('remainder', 'fmod')
    """
    index = _BY_NAME if engine is None else _BY_COLUMN.get(column_of(engine), _BY_NAME)
    op = index.get(name.lower() if isinstance(name, str) else name)
    if op is None:
        raise BroadcastError(
            f"there is no op {name!r}" + (f" in {engine}" if engine else ""),
            reason=Reason.UNKNOWN_OP,
            # Computed only when read: most callers go on to ask about another engine.
            hint=lambda: _near(name, index),
        )
    return op


def _near(name: Name, index: Mapping[Name, Op]) -> str:
    if str(name).lower() in BROADCAST_OPS:
        return "to broadcast to a target shape: zerostride.plan_to, or explain SHAPE --to TARGET"
    words = [word for word in index if isinstance(word, str)]
    # At 0.6 "zork" would match "or".
    close = near(name, words, 3, cutoff=0.7)
    return f"did you mean {' or '.join(close)}?" if close else f"one of {', '.join(OPS)}"


def find_reversed(name: Name, engine: str) -> Op | None:
    """The row whose operands the engine's op `name` takes in reverse order, or None.

    >>> find_reversed(7, "ncnn").name
    'subtract'
    >>> find_reversed(1, "ncnn") is None
    True
    """
    index = _REVERSED.get(column_of(engine), {})
    return index.get(name.lower() if isinstance(name, str) else name)


def translated(column: str, to: str) -> Mapping[Name, Name]:
    """For each name in a column of ops of several operands the name in another column; the op's
    own where that column lacks it, or has one name for several ops.

    >>> names = translated("openvino", "onnx")
    >>> names["Subtract"], names["SquaredDifference"], names["Mod"]
    ('Sub', 'squared_difference', 'fmod')
    """
    uses = Counter(name for op in ROWS for name in op.names.get(to, ()))
    words: dict[Name, Name] = {}
    for op in ROWS:
        if op.tensors == 2 or op.conditions:
            theirs = [name for name in op.names.get(to, ()) if uses[name] == 1]
            words |= dict.fromkeys(op.names.get(column, ()), (*theirs, op.name)[0])
    return words


_READS = {"onnxruntime": "onnx", "litert-gpu": "litert", "executorch": "torch"}


def take_names(engine: str, column: str) -> None:
    """Lets an engine of another package use the names of a column."""
    _READS[engine] = column


def column_of(engine: str) -> str:
    """The column that has an engine's names: ONNX Runtime reads ONNX's; all releases have one."""
    name = engine.partition("@")[0]
    return _READS.get(name, name)
