"""The ops that are tested on each engine, one row an op.

A row names the kind (the function), the roles of the shapes, the attributes to draw, and the `op`
of zerostride's prediction. The engine's runner has the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from ...errors import BadInput
from ...ops import OPS
from .case import Case


class ShapeRoles(StrEnum):
    """The meaning of a case's shapes."""

    BINARY = "binary"  # two operands
    TO = "to"  # data and a target shape
    WHERE = "where"  # condition and two operands
    PRELU = "prelu"  # data and slope


class Draw(StrEnum):
    """A way to draw attributes, and shapes that suit them."""

    RIGHT = "right"  # none; right-aligned shapes
    NCNN = "ncnn"  # none; left- and right-aligned shapes
    NONE_RULE = "none_rule"  # auto_broadcast=none
    NUMPY_RULE = "numpy_rule"  # auto_broadcast=numpy
    PDPD = "pdpd"  # auto_broadcast=pdpd with axis
    PADDLE_AXIS = "paddle_axis"  # axis, or none
    CHANNEL = "channel"  # none; slopes that often fit axis 1
    KEEPS = "keeps"  # −1 in the target now and then
    BROADCAST_3 = "broadcast_3"  # mode and axes_mapping
    IN_DIM = "in_dim"  # broadcast_dimensions
    EQUAL_RANKS = "equal_ranks"  # none; shapes of one rank, or scalars


@dataclass(frozen=True, slots=True)
class CatalogueRow:
    """An op of an engine.

    Attributes:
        op: the op as the engine calls it.
        kind: a name of `kinds.KINDS`.
        roles: what the shapes are.
        draw: how cases are drawn.
        max_rank: the highest rank that is drawn; one more than the engine carries, where that does
            not crash the engine.
        ask: the `op` of zerostride's prediction, or None for the engine's default.
        attrs: attributes that every case of the row has.
        dtypes: dtypes that are drawn; the first mostly.
        weight: the share of cases from this row, relative to the engine's other rows.
    """

    op: str
    kind: str
    roles: ShapeRoles = ShapeRoles.BINARY
    draw: Draw = Draw.RIGHT
    max_rank: int = 6
    ask: str | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ("float32",)
    weight: int = 4


_BOTH = ("float32", "int32")
#: NumPy makes the operands and reads the results, so the highest testable rank is 64.
_NUMPY_RANK = 64

#: One more than ExecuTorch's tensors have.
_EXECUTORCH_RANK = 17

#: One more than LiteRT stretches; each higher rank ends a process.
_LITERT_RANK = 9

_NCNN_KINDS = (
    *("add", "subtract", "multiply", "divide", "maximum", "minimum", "pow", "rsubtract"),
    *("rdivide", "rpow", "atan2", "ratan2", "fmod", "rfmod", "logaddexp", "floor_divide"),
    *("rfloor_divide", "remainder", "rremainder"),
)

CATALOGUE: Mapping[str, tuple[CatalogueRow, ...]] = MappingProxyType(
    {
        "numpy": (
            CatalogueRow("add", "add", max_rank=_NUMPY_RANK, dtypes=_BOTH),
            CatalogueRow("subtract", "subtract", max_rank=_NUMPY_RANK, dtypes=_BOTH),
            CatalogueRow(
                "broadcast_to", "broadcast", ShapeRoles.TO, max_rank=_NUMPY_RANK, dtypes=_BOTH
            ),
            CatalogueRow("where", "where", ShapeRoles.WHERE, ask="where"),
        ),
        "torch": (
            CatalogueRow("add", "add", max_rank=_NUMPY_RANK, dtypes=_BOTH),
            CatalogueRow("sub", "subtract", max_rank=_NUMPY_RANK, dtypes=_BOTH),
            CatalogueRow("expand", "broadcast", ShapeRoles.TO, Draw.KEEPS, max_rank=_NUMPY_RANK),
            CatalogueRow(
                "broadcast_to", "broadcast", ShapeRoles.TO, Draw.KEEPS, max_rank=_NUMPY_RANK
            ),
            CatalogueRow("where", "where", ShapeRoles.WHERE, ask="where", weight=2),
            CatalogueRow("prelu", "prelu", ShapeRoles.PRELU, Draw.CHANNEL, ask="prelu", weight=2),
        ),
        "executorch": (
            CatalogueRow(
                "add", "add", max_rank=_EXECUTORCH_RANK, dtypes=("float32", "int32", "int64")
            ),
            CatalogueRow("sub", "subtract", max_rank=_EXECUTORCH_RANK, dtypes=_BOTH, weight=2),
            CatalogueRow(
                "mul", "multiply", max_rank=_EXECUTORCH_RANK, ask="multiply", dtypes=_BOTH
            ),
            CatalogueRow("div", "divide", ask="divide", weight=1),
            CatalogueRow("maximum", "maximum", ask="maximum", dtypes=_BOTH, weight=1),
            CatalogueRow("minimum", "minimum", ask="minimum", weight=1),
            CatalogueRow("pow", "pow", ask="pow", weight=1),
            CatalogueRow("atan2", "atan2", ask="atan2", weight=1),
            CatalogueRow("fmod", "fmod", ask="fmod", weight=1),
            CatalogueRow("remainder", "remainder", ask="remainder", weight=1),
            CatalogueRow("floor_divide", "floor_divide", ask="floor_divide", weight=1),
            CatalogueRow("gt", "greater", ask="greater", weight=2),
            CatalogueRow(
                "logical_and", "logical_and", ask="logical_and", dtypes=("bool",), weight=2
            ),
            CatalogueRow(
                "where", "where", ShapeRoles.WHERE, max_rank=_EXECUTORCH_RANK, ask="where"
            ),
            CatalogueRow(
                "expand", "broadcast", ShapeRoles.TO, Draw.KEEPS, _EXECUTORCH_RANK, dtypes=_BOTH
            ),
            CatalogueRow("prelu", "prelu", ShapeRoles.PRELU, Draw.CHANNEL, ask="prelu", weight=2),
        ),
        "tensorflow": (
            CatalogueRow("add", "add", max_rank=12, dtypes=_BOTH),
            CatalogueRow("subtract", "subtract", max_rank=12, dtypes=_BOTH),
            CatalogueRow("greater", "greater", max_rank=12, weight=2),
            CatalogueRow("broadcast_to", "broadcast", ShapeRoles.TO, Draw.KEEPS, max_rank=12),
            CatalogueRow("where", "where", ShapeRoles.WHERE, ask="where", max_rank=10, weight=2),
        ),
        "jax": (
            CatalogueRow("add", "add", max_rank=_NUMPY_RANK, dtypes=_BOTH),
            CatalogueRow("subtract", "subtract", max_rank=_NUMPY_RANK),
            CatalogueRow("broadcast_to", "broadcast", ShapeRoles.TO, max_rank=_NUMPY_RANK),
            CatalogueRow("broadcast_in_dim", "broadcast", ShapeRoles.TO, Draw.IN_DIM, max_rank=12),
            CatalogueRow("lax.add", "add", draw=Draw.EQUAL_RANKS, max_rank=12, ask="lax.add"),
        ),
        "onnxruntime": (
            CatalogueRow("Add-7", "add", max_rank=_NUMPY_RANK, dtypes=_BOTH),
            CatalogueRow("Add-14", "add", max_rank=_NUMPY_RANK, dtypes=_BOTH),
            CatalogueRow("Sub-14", "subtract", max_rank=_NUMPY_RANK),
            CatalogueRow("Expand-13", "broadcast", ShapeRoles.TO, max_rank=_NUMPY_RANK),
            CatalogueRow(
                "PRelu-16", "prelu", ShapeRoles.PRELU, Draw.CHANNEL, max_rank=12, ask="prelu"
            ),
            CatalogueRow("Where-16", "where", ShapeRoles.WHERE, ask="where", weight=2),
        ),
        "openvino": (
            CatalogueRow("Add", "add", draw=Draw.NONE_RULE, max_rank=33, weight=2),
            CatalogueRow("Add", "add", draw=Draw.NUMPY_RULE, max_rank=33),
            CatalogueRow(
                "Subtract",
                "subtract",
                ShapeRoles.BINARY,
                Draw.NUMPY_RULE,
                33,
                ask="subtract",
                weight=2,
            ),
            CatalogueRow("Add", "add", draw=Draw.PDPD, max_rank=12, weight=6),
            CatalogueRow("Subtract", "subtract", draw=Draw.PDPD, ask="subtract", weight=2),
            CatalogueRow("Maximum", "maximum", draw=Draw.PDPD, ask="maximum", weight=1),
            CatalogueRow("Divide", "divide", draw=Draw.PDPD, ask="divide", weight=1),
            CatalogueRow("Greater", "greater", draw=Draw.PDPD, ask="greater", weight=1),
            CatalogueRow(
                "Broadcast-3", "broadcast", ShapeRoles.TO, Draw.BROADCAST_3, max_rank=12, weight=8
            ),
            CatalogueRow("PRelu", "prelu", ShapeRoles.PRELU, Draw.CHANNEL, ask="prelu", weight=2),
        ),
        "paddle": (
            CatalogueRow("elementwise_add", "add", draw=Draw.PADDLE_AXIS, dtypes=_BOTH, weight=6),
            CatalogueRow("elementwise_sub", "subtract", draw=Draw.PADDLE_AXIS, weight=6),
            CatalogueRow("elementwise_max", "maximum", draw=Draw.PADDLE_AXIS),
            CatalogueRow("elementwise_fmax", "maximum", draw=Draw.PADDLE_AXIS, ask="fmax"),
            CatalogueRow("greater_than", "greater", draw=Draw.PADDLE_AXIS, ask="greater"),
            CatalogueRow("add", "add", max_rank=9, ask="add", weight=2),
            CatalogueRow("subtract", "subtract", max_rank=9, weight=2),
            CatalogueRow("expand", "broadcast", ShapeRoles.TO, Draw.KEEPS, max_rank=9, weight=3),
            CatalogueRow(
                "broadcast_to", "broadcast", ShapeRoles.TO, Draw.KEEPS, max_rank=9, weight=3
            ),
            CatalogueRow(
                "expand_v2", "broadcast", ShapeRoles.TO, Draw.KEEPS, max_rank=9, ask="expand_v2"
            ),
            CatalogueRow("prelu", "prelu", ShapeRoles.PRELU, Draw.CHANNEL, ask="prelu", weight=2),
            CatalogueRow("where", "where", ShapeRoles.WHERE, max_rank=10, ask="where", weight=2),
        ),
        "ncnn": (
            *(
                CatalogueRow(
                    "BinaryOp",
                    kind,
                    draw=Draw.NCNN,
                    max_rank=5,
                    ask=kind if kind in OPS else kind[1:],  # rsubtract
                    attrs=MappingProxyType({"op_type": number}),
                    weight=12 if number < 2 else 2,
                )
                for number, kind in enumerate(_NCNN_KINDS)
            ),
            CatalogueRow("PReLU", "prelu", ShapeRoles.PRELU, Draw.CHANNEL, max_rank=4, ask="prelu"),
        ),
        "mnn": (
            CatalogueRow("Add", "add", max_rank=9),
            CatalogueRow("Subtract", "subtract", max_rank=9),
            CatalogueRow("BroadcastTo(op)", "broadcast", ShapeRoles.TO, max_rank=9, weight=3),
            CatalogueRow("PReLU", "prelu", ShapeRoles.PRELU, Draw.CHANNEL, ask="prelu", weight=1),
        ),
        "litert": (
            *(
                CatalogueRow(
                    op,
                    kind,
                    max_rank=_LITERT_RANK,
                    ask=kind,
                    attrs=MappingProxyType({"delegate": "none"}),
                    weight=2,
                )
                for op, kind in (("ADD", "add"), ("SUB", "subtract"))
            ),
            CatalogueRow(
                "ADD", "add", max_rank=12, ask="add", dtypes=("float32", "int32", "int64")
            ),
            CatalogueRow("SUB", "subtract", max_rank=_LITERT_RANK, ask="subtract", dtypes=_BOTH),
            CatalogueRow("MUL", "multiply", max_rank=12, ask="multiply", dtypes=_BOTH, weight=2),
            CatalogueRow("DIV", "divide", max_rank=_LITERT_RANK, ask="divide", weight=2),
            CatalogueRow(
                "MAXIMUM", "maximum", max_rank=_LITERT_RANK, ask="maximum", dtypes=_BOTH, weight=2
            ),
            CatalogueRow("MINIMUM", "minimum", max_rank=_LITERT_RANK, ask="minimum", weight=1),
            CatalogueRow("POW", "pow", max_rank=_LITERT_RANK, ask="pow", weight=2),
            CatalogueRow("FLOOR_DIV", "floor_divide", ask="floor_divide", weight=1),
            CatalogueRow("FLOOR_MOD", "fmod", ask="remainder", weight=1),
            CatalogueRow(
                "SQUARED_DIFFERENCE", "squared_difference", ask="squared_difference", weight=1
            ),
            CatalogueRow("ATAN2", "atan2", ask="atan2", weight=1),
            CatalogueRow("GREATER", "greater", max_rank=_LITERT_RANK, ask="greater", weight=2),
            CatalogueRow(
                "LOGICAL_AND", "logical_and", ask="logical_and", dtypes=("bool",), weight=1
            ),
            CatalogueRow(
                "SELECT_V2", "where", ShapeRoles.WHERE, max_rank=10, ask="where", weight=3
            ),
            CatalogueRow(
                "PRELU", "prelu", ShapeRoles.PRELU, Draw.CHANNEL, 12, ask="prelu", weight=2
            ),
            CatalogueRow(
                "BROADCAST_TO", "broadcast", ShapeRoles.TO, Draw.KEEPS, 12, dtypes=_BOTH, weight=4
            ),
        ),
    }
)


def rows_of(engine: str) -> tuple[CatalogueRow, ...]:
    """The rows of an engine; BadInput lists the names otherwise."""
    rows = CATALOGUE.get(engine)
    if rows is None:
        raise BadInput(
            f"there is no engine {engine!r} to run; one of {', '.join(CATALOGUE)}. "
            "A learnt engine is learnt again: zerostride engines learn RUNNER.py newest"
        )
    return rows


def row_of(case: Case) -> CatalogueRow:
    """The row that a case belongs to: the same op, and the row's own attributes among the case's.

    Raises BadInput where the catalogue has no such op.
    """
    for row in rows_of(case.engine):
        if row.op == case.op and all(case.attrs.get(key) == row.attrs[key] for key in row.attrs):
            return row
    names = ", ".join(dict.fromkeys(row.op for row in rows_of(case.engine)))
    raise BadInput(f"{case.engine} has no op {case.op!r} with {dict(case.attrs)}; ops: {names}")
