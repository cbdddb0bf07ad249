"""The converters by which a model gets to an engine, one row each.

A converter may write other operands than the engine's own functions take: TensorRT's network
requires operands of one rank, and its ONNX parser makes them so. Each row says
how the engine behaves on what this converter writes. An audit judges the first converter that reads
the model's format; `via="none"` judges every node as if it were carried over op for op.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from ...core.rules import RULES
from ...derive.size_traps import Side
from ...engines.model import Divergence, Engine, always
from ...engines.rows import NUMPY_RULE, frozen, modes, rows
from ...engines.rows_read import TENSORRT
from ...engines.rows_runtimes import MNN
from ...errors import Reason, ZerostrideError
from ...ops import OPS
from ...system.spelling import meant
from ..findings import Finding
from ..ir.graph import Graph, Node
from ..ir.site import ONE_WAY, Kind, Site, present_operands
from .batch import BatchAxes
from .frontend import read_by_frontend
from .frontend_fusion import scaled
from .litert_torch import WRITTEN, before_export, left_out, written_for_litert
from .mnn_fusion import fused
from .pnnx import OF_ONE, batches_by_pnnx, pnnx_transport
from .pnnx_groups import joined
from .ways import refusal, transport

#: The name for no converter: op for op.
NONE = "none"
#: The batch axis of each operand.
BatchPlaces: TypeAlias = Sequence[int | None]
#: A change of a finding.
Change: TypeAlias = Callable[[Finding], Finding]


@dataclass(frozen=True, slots=True)
class Converter:
    """A row of the table.

    Attributes:
        name: its name as `via`.
        target: the engine that it writes for.
        reads: the formats that it reads, by their names in `formats`; "module": modules of PyTorch
            and files of torch.export.
        words: the model as it arrives, for a reader: "as pnnx writes it".
        engine: the engine's row for the converter's output; None: the engine's own row (`met`).
        carry: the rule by which a site arrives on the engine; raises as `transport` does.
        release: the converter's release.
        run: whether it was run (True) or only read.
        noted: whether a report explains it: it is another program than the engine.
        batches: the batch axes of a site's operands as it sees them; raises BroadcastError.
        joined: how it changes the findings of nodes that it joins with others, by their identity.
        wrong_of_one: ONNX ops of any number of operands that it gets wrong if they have one.
        by_node: whether it converts a model of one node of the file.
        seen: the graph as it reads it, where that is not what the file says.
        asks: what it asks of a site's numbers: findings of sites that differ in it differ.
    """

    name: str
    target: str
    reads: frozenset[str]
    words: str
    engine: Engine | None
    carry: Callable[[Site, Engine], Side]
    release: str
    run: bool = True
    noted: bool = True
    batches: Callable[[Site, BatchPlaces], BatchPlaces] = lambda site, axes: axes
    joined: Callable[[Graph, BatchAxes], Mapping[int, Change]] = lambda graph, batch: {}
    wrong_of_one: frozenset[str] = frozenset()
    by_node: bool = True
    seen: Callable[[Graph], Graph] = lambda graph: graph
    asks: Callable[[Site], Hashable] = lambda site: None

    @property
    def via(self) -> str | None:
        """Its name as `via`; None where no converter is judged."""
        return None if self.name == NONE else self.name

    @property
    def note(self) -> str | None:
        """A report's note on the converter that it judges."""
        if not self.noted:
            return None
        how = "run" if self.run else "read"
        return (
            f"judged {self.words} ({self.release}: {how}); via='none' (--via none) judges op for op"
        )

    def met(self, engine: Engine) -> Engine:
        """The engine's row for its output."""
        return self.engine or engine

    def site_of_one(self, node: Node) -> Site | None:
        """The site of a node of one operand that it gets wrong, or None.

        The node broadcasts nothing.
        """
        if node.domain != "" or node.op not in self.wrong_of_one or len(node.inputs) != 1:
            return None
        return Site(node, Kind.ELEMENTWISE, present_operands(node), RULES["numpy"], {})


#: Every node carried over op for op.
OP_FOR_OP = Converter(NONE, "", frozenset(), "", None, transport, "", noted=False)


# TensorRT's ONNX parser.

_PARSER = (
    "onnx/onnx-tensorrt 10.1, importerUtils.cpp, broadcastTensors; onnxOpImporters.cpp; "
    "docs/operators.md: read"
)
_PADDED = replace(
    NUMPY_RULE, max_rank=8, summary="Ones are put before the shorter shape; both may stretch."
)


def _read(text: str, effect: Reason, ops: str, dtypes: str) -> Divergence:
    names, elements = frozen(ops), frozen(dtypes)
    return Divergence(text, effect, _PARSER, run=False, strikes=always, ops=names, dtypes=elements)


_PARSED = replace(
    TENSORRT,
    elementwise=rows(_PADDED, source=_PARSER),
    ops=MappingProxyType(
        {
            "where": rows(replace(_PADDED, operands=(3, 3)), source=_PARSER),
            "prelu": rows(replace(ONE_WAY, max_rank=8, operands=(2, 2)), source=_PARSER),
        }
    ),
    to_target=modes(_PARSER, bidirectional=replace(RULES["bidirectional"], max_rank=8)),
    reads="onnx",
    has=frozen(
        "add subtract multiply divide pow fmod remainder maximum minimum equal greater less "
        "greater_equal less_equal logical_and logical_or logical_xor where prelu"
    ),
    divergences=(
        _read(
            "its ONNX parser takes no integers here",
            Reason.DTYPE,
            "pow prelu",
            "int32 int64",
        ),
    ),
)


def _parsed(site: Site, engine: Engine) -> Side:
    """As `transport`, for op sets whose broadcasts the parser takes."""
    if site.node.domain == "" and site.node.version < 7:
        detail = "TensorRT's ONNX parser takes no broadcasts of op sets before 7"
        raise refusal(site, detail, Reason.NO_OP)
    return transport(site, engine, "onnx-parser")


# MNN's converter.

_CONVERTED = "MNN 3.6.1, mnnconvert and MNN, run: tests/conformance/test_mnnconvert.py"
#: ONNX ops that the converter lacks, by canonical name.
_NOT_CONVERTED = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor"})
#: Run: the converter reads a second operand without checking that it exists.
_DIES_OF_ONE = frozenset({"Max", "Mean", "Min", "Sum"})
#: Faults of expressions in MNN's own interface that the converter's files do not have.
_OF_EXPRESSIONS = frozenset({"uint8", "float64"})


def _written(text: str, ops: str, dtypes: str, narrows: str) -> Divergence:
    """A narrower type in a file that the converter wrote."""
    return Divergence(
        text,
        Reason.WRONG_RESULT,
        _CONVERTED,
        strikes=always,
        ops=frozen(ops),
        dtypes=frozen(dtypes),
        narrows=narrows,
    )


_NO_WRAP = "small integers become int32, which does not go round at their ends"
_WRITTEN = replace(
    MNN,
    reads="onnx",
    has=frozenset(name for name, op in OPS.items() if "mnn" in op.names) - _NOT_CONVERTED
    | {"logical_and", "where", "prelu"},
    divergences=(
        _written(
            "products, maxima and minima of integers are computed in float32",
            "multiply maximum minimum",
            "int32 uint32 int64 uint64",
            "float32",
        ),
        *(
            _written(_NO_WRAP, "add subtract multiply pow bitwise_left_shift", kind, kind)
            for kind in ("int8", "uint8", "int16", "uint16")
        ),
        *(row for row in MNN.divergences if not row.dtypes & _OF_EXPRESSIONS),
        _written("uint32 and uint64 become int32", "", "uint32 uint64", "int32"),
    ),
)


def _converted(site: Site, engine: Engine) -> Side:
    """As `transport`; constants of small integers fail."""
    if len(site.operands) == 1 and site.node.op in _DIES_OF_ONE:
        detail = (
            f"mnnconvert 3.6.1 ends with a segmentation fault on a {site.node.op} of one operand"
        )
        hint = "leave the node out: it hands on its operand"
        raise refusal(site, detail, Reason.CRASH, silent=True, hint=hint)
    side = transport(site, engine, "mnnconvert")
    if site.node.op == "Pow" and (mixed := _mixed_power(site)):
        raise refusal(site, mixed, Reason.DTYPE)
    if site.kind is Kind.ELEMENTWISE or site.node.op == "Clip":
        dtypes = {part.tensor.dtype for part in site.operands if part.constant and part.tensor}
        first = bool(site.operands) and site.operands[0].constant
        few = len(site.operands) < 3 or site.node.op == "Clip"
        if "uint8" in dtypes and (first or few):
            detail = "MNN does not load what its converter makes of a constant of uint8"
            raise refusal(site, detail, Reason.DTYPE)
        if "int8" in dtypes and first:
            detail = "MNN does not load what its converter makes of a first operand of int8"
            raise refusal(site, detail, Reason.DTYPE)
        if dtypes & {"int8", "uint8"}:
            detail = "MNN reads other numbers from a constant of 8 bits"
            raise refusal(site, detail, Reason.WRONG_RESULT, silent=True)
    return side


def _mixed_power(site: Site) -> str | None:
    """A power of a float and an integer; the constant 2 of rank 0 is a square."""
    base, exponent = (part.tensor for part in site.operands[:2])
    kinds = [str(value.computed_type or "") for value in (base, exponent) if value is not None]
    floats = {"float" in kind for kind in kinds if kind}
    square = exponent is not None and exponent.content == (2,) and exponent.shape == ()
    if len(floats) < 2 or (square and "float" in kinds[0]):
        return None
    return f"MNN gives no result of a power of {kinds[0]} and {kinds[1]}"


#: Formats: a module gets to most converters as the ONNX file that PyTorch exports.
_ONNX, _MODULE = frozen("onnx module"), frozen("module")
_FORMS = MappingProxyType({"onnx": "ONNX files", "module": "modules of PyTorch"})
#: Every converter by its name.
CONVERTERS: Mapping[str, Converter] = MappingProxyType(
    {
        row.name: row
        for row in (
            Converter(
                "pnnx",
                "ncnn",
                _ONNX,
                "as pnnx writes it",
                None,
                pnnx_transport,
                "pnnx 20261020",
                batches=batches_by_pnnx,
                joined=joined,
                wrong_of_one=frozenset(OF_ONE),
            ),
            Converter(
                "onnx-frontend",
                "openvino",
                _ONNX,
                "as its ONNX frontend reads it",
                None,
                read_by_frontend,
                "OpenVINO 2026.4.1",
                noted=False,
                joined=scaled,
            ),
            Converter(
                "onnx-parser",
                "tensorrt",
                _ONNX,
                "as its ONNX parser reads it",
                _PARSED,
                _parsed,
                "onnx/onnx-tensorrt 10.1",
                run=False,
            ),
            Converter(
                "mnnconvert",
                "mnn",
                _ONNX,
                "as mnnconvert writes it",
                _WRITTEN,
                _converted,
                "MNN 3.6.1",
                joined=fused,
                wrong_of_one=_DIES_OF_ONE,
            ),
            Converter(
                "litert-torch",
                "litert",
                _MODULE,
                "as litert-torch writes it",
                WRITTEN,
                written_for_litert,
                "litert-torch 0.10.0 and LiteRT 2.3.0",
                by_node=False,
                seen=before_export,
                asks=left_out,
            ),
        )
    }
)


def named(via: str | None, target: str) -> Converter | None:
    """The converter of this name; None where none is named.

    Raises:
        ZerostrideError: it does not exist, or writes for another engine.
    """
    if via is None:
        return None
    row = OP_FOR_OP if via == NONE else CONVERTERS.get(via)
    if row is not None and row.target in ("", target):
        return row
    fitting = [name for name, row in CONVERTERS.items() if row.target == target]
    names = ", ".join(f"{name} (for {converter.target})" for name, converter in CONVERTERS.items())
    hint = meant(via, [*fitting, NONE]) if row is None else ""
    raise ZerostrideError(
        f"via={via!r} does not write for {target}; known: {names}; none judges op for op{hint}"
    )


def chosen(via: str | None, target: str, format: str) -> Converter:
    """The converter by which a model of a format gets to an engine, or `OP_FOR_OP`.

    Args:
        via: a converter's name, "none" for op for op, or None for the usual way.
        target: the engine's name.
        format: the model's format.

    Raises:
        ZerostrideError: the converter writes for another engine, or reads other formats.
    """
    row = named(via, target)
    if row is None:
        own = (o for o in CONVERTERS.values() if o.target == target and format in o.reads)
        return next(own, OP_FOR_OP)
    if row is not OP_FOR_OP and format not in row.reads:
        reads = " and ".join(_FORMS[form] for form in sorted(row.reads, reverse=True))
        raise ZerostrideError(f"{row.name} reads {reads}, not {_FORMS.get(format, format)}")
    return row
