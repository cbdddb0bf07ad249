"""A row of the table of compound ops: the behaviour of one engine, and its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ...core.alignment import Rule
from ...errors import Reason
from ..ir.graph import Node
from ..ir.site import ONE_WAY
from .compound_rules import own_rule

#: A placeholder for the model's own rule.
AS_WRITTEN = own_rule("as_written", ONE_WAY, "As the op's document has it.")


@dataclass(frozen=True, slots=True)
class Carrier:
    """The behaviour of an engine inside a compound op.

    Attributes:
        rule: the rule by which it places the operands; AS_WRITTEN: the model's own, as the op's
            document has it.
        source: the evidence, with the function or layer that implements the op.
        run: whether it was run (True) or only read.
        weights: True: this row holds where every operand but the first is a constant; False: where
            one is not; None: either way.
        needs: gives the reason why the engine refuses a node, whatever is broadcast, or None.
        because: the kind of that reason.
        crashes: says why the engine's process ends on a node, at least now and then, or None.
        wrong: says what the engine silently gets wrong in a node, whatever is broadcast, or None.
        types: gives the reason why the engine refuses the operands' element types, or None.
        until: the first release that this row is not of; "": it is of all.
    """

    rule: Rule
    source: str
    run: bool = True
    weights: bool | None = None
    needs: Callable[[Node], str | None] | None = None
    because: Reason = Reason.RANK
    crashes: Callable[[Node], str | None] | None = None
    wrong: Callable[[Node], str | None] | None = None
    types: Callable[[tuple[str, ...]], str | None] | None = None
    until: str = ""


# Sources.

COREML = "coremltools 8.3 (2026-08), mil/ops/defs: read; "
TOSA = "TOSA specification 1.0: read; "
STABLEHLO = "StableHLO specification 1.9: read; "
PARSER = "onnx/onnx-tensorrt 10.1, onnxOpImporters.cpp, docs/operators.md: read"
GPU = "google-ai-edge/LiteRT of 2026-08, tflite/delegates/gpu/common/"
ORT, OPENVINO, MNN = "ONNX Runtime's kernel", "OpenVINO's ONNX frontend", "MNN's ONNX converter"


# Rows.

#: The rows of one op, by engine.
EngineRows = Mapping[str, tuple[Carrier, ...]]
_OWN = "tests/conformance/test_compounds.py, run: "


def ran_row(rule: Rule, source: str, **more: object) -> Carrier:
    """A row that test_compounds.py runs."""
    return Carrier(rule, _OWN + source, **more)  # type: ignore[arg-type]


def each(engines: str, *rows: Carrier) -> EngineRows:
    """The same rows for each of these engines."""
    return dict.fromkeys(engines.split(), rows)


def ran(engines: str, rule: Rule, source: str, **more: object) -> EngineRows:
    """The same single row for each of these engines, which were run."""
    return each(engines, ran_row(rule, source, **more))


def read(engine: str, rule: Rule, source: str, **more: object) -> EngineRows:
    """A row of an engine that was only read about."""
    return {engine: (Carrier(rule, source, run=False, **more),)}  # type: ignore[arg-type]


def parsed(rule: Rule, max_rank: int = 8, **more: object) -> EngineRows:
    """A row of TensorRT's ONNX parser; its tensors have at most 8 axes."""
    limited = replace(rule, max_rank=max_rank)
    return read("onnx-parser", limited, PARSER, **more)
