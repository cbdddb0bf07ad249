"""The bugs of `examples/bugs.json`: one ONNX file of one node for each.

A row of the table:

id             the name of the file, `bugs/<id>.onnx`
symptom        the engine's error text, or what a user saw, in a few words
references     where it was reported: owner/repository#number
op, attributes the ONNX operator with that meaning
shapes         of the operands, as they were in the model that went wrong
declared       the same as the model file declared them, where it left an extent open
target_shapes  what the target's operator was given, where a converter had changed them
also           further pairs of shapes from the same reports
shapes_from    "report", or how the shapes were chosen where the report gives none
source, target the engine (or the rule "none") whose meaning was wanted, and the engine that
               computed otherwise
backend        the part of the target that did (a GPU delegate), where it was only one
happened       what went wrong, in one sentence
today          what the target does with exactly these shapes (target_shapes, if given), run on
               the release named at the top of the table: "same" as NumPy, "same at these sizes"
               only, "different", "refused", "invalid" (it computes, though its own rule gives
               them no meaning), or "not run"
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx

from builders.net import Net, Shape, model, value

TABLE = Path(__file__).parents[1] / "bugs.json"
# Low, so that every converter reads them; the ops mean the same in all later opsets.
OPSET, IR_VERSION = 13, 7

Bug = dict[str, Any]


def table() -> list[Bug]:
    bugs: list[Bug] = json.loads(TABLE.read_text(encoding="utf-8"))["bugs"]
    return bugs


def build(bug: Bug) -> onnx.ModelProto:
    """The operands are graph inputs; the target shape of an Expand is a constant."""
    net = Net()
    shapes: list[Shape] = bug["declared"] if "declared" in bug else bug["shapes"]
    if bug["op"] == "Expand":
        names = ["a", net.const("target_shape", bug["shapes"][1])]
        shapes = shapes[:1]
    else:
        names = list("abcdef"[: len(shapes)])
    inputs = [value(name, shape) for name, shape in zip(names, shapes, strict=False)]
    net.op(bug["op"], *names, name="y", **bug.get("attributes", {}))
    # The result has a rank and no extents: which they are is the question.
    output = value("y", [None] * max(len(shape) for shape in bug["shapes"]))
    return model(net.graph(bug["id"], inputs, [output]), {"": OPSET}, IR_VERSION)
