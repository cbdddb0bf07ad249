"""The meaning audit: compares every broadcast of a model with its meaning on a target engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...engines.model import Engine
from ...engines.table import find_engine
from ...engines.versions import warn_if_unmeasured
from ...sizes.solve import allowance
from ..arguments import checked
from ..findings import Report
from ..flow.input_sizes import InputShapes, Sizes
from ..formats.model_file import model_file
from ..formats.torch_export import Example
from ..ir.graph import Graph
from ..ir.memory import uncollected
from ..options import ModelOptions
from ..transport.converters import NONE, named
from .audited import Progress, Question, audited
from .intent import accident_notes
from .relaid import check_layout, layout_findings


@checked
def audit(
    model: Any,
    target: str,
    via: str | None = None,
    *,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    batch_axis: int | None = None,
    facts: Any = None,
    sizes: Sizes | None = None,
    input_shapes: InputShapes | None = None,
    layout: str | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Judges every broadcast of a model against what `target` would make of it.

    Each node is judged as it arrives there: as the engine's converter writes it. There is one
    finding for each node that may broadcast; its verdict is `unknown` if the node cannot be judged.

    Args:
        model: a model file, whose format is known by the end of its name; a model in memory
            (`onnx.ModelProto`, the bytes of an ONNX or .tflite file, `onnx_ir.Model`,
            `torch.onnx.ONNXProgram`, `openvino.Model`), which does not change; a `torch.nn.Module`;
            or an `ExportedProgram` of torch.export. PyTorch's ONNX exporter carries a module over,
            and findings name the lines of its source.
        target: an engine's name.
        args, kwargs: a module's example inputs, as for `torch.export.export`.
        dynamic_shapes: which of their sizes stay open, as for `torch.export.export`.
        via: judge what this converter makes of each node: "pnnx" for ncnn, "mnnconvert" for MNN,
            "onnx-frontend" for OpenVINO, "onnx-parser" for TensorRT, "litert-torch" for modules on
            LiteRT; "none": op for op, as for one who writes the engine's files by hand. None: the
            way that users of the engine go, for a module or a file of ONNX; files of other formats
            are carried over op for op.
        batch_axis: for engines without a batch axis, which axis of the model's inputs it is; −1 for
            none. None: axis 0 where its extent is 1.
        facts: what is known of sizes that the model leaves open: "N >= 1", or a list of such.
        sizes: numbers for sizes: {"N": 4} for one that the model names, {"x[0]": 4} for an input's
            axis.
        input_shapes: shapes by the name of an input, or in the order of the inputs; None for an
            axis that stays open.
        layout: "nhwc": say also what every operand must become where images are channels-last.
        strict: say also which broadcasts look accidental, whatever the target: operands that
            stretch against each other, as (N, 1) and (N,) do (ZS118), and results that grow by
            that (ZS119).
        progress: called with the number of nodes done and of all.

    Raises:
        ModelError: the file cannot be read, or the module cannot be exported.
        ArgumentError: a module without `args`, or `args` without a module.
        BroadcastError: there is no such engine.
        TypeError: `model` is none of these.

    >>> import onnx
    >>> report = audit(onnx.load("examples/bugs/ncnn-4930.onnx"), target="ncnn", via="none")
    >>> report.model, report.ok
    ("ModelProto 'ncnn-4930'", False)
    """
    options = ModelOptions(via, batch_axis, facts, sizes, input_shapes, layout, strict)
    return audit_model(model, target, options, progress, Example(args, kwargs, dynamic_shapes))


def audit_model(
    model: Any,
    target: str,
    options: ModelOptions,
    progress: Progress | None = None,
    example: Example = Example(),  # noqa: B008 - frozen
) -> Report:
    """Judges every broadcast of a model; see :func:`audit`."""
    engine = find_engine(target)
    named(options.via, engine.name)
    check_layout(options.layout)
    warn_if_unmeasured(target)
    # Once for both steps: each pause of the collector costs as much.
    with model_file(model, example, weights=False) as file, uncollected():
        options = replace(options, form=file.form or options.form, numbers=file.numbers)
        return file.named(audit_graph(options.read(file.path), engine, options, progress))


def audit_graph(
    graph: Graph,
    engine: Engine,
    options: ModelOptions = ModelOptions(via=NONE),  # noqa: B008 - frozen
    progress: Progress | None = None,
) -> Report:
    """Judges every broadcast of a graph, op for op by default; see :func:`audit`."""
    question = Question.of(options, engine, graph.format)
    with allowance(), uncollected():
        judged = audited(graph, question, progress)
        pairs = judged.judged()
        findings = [finding for _, finding in pairs]
        notes = list(accident_notes(pairs)) if options.strict else []
        if options.layout is not None:
            relaid, more = layout_findings(judged.graph)
            findings, notes = [*findings, *relaid], [*notes, *more]
        return judged.report(findings, *notes)
