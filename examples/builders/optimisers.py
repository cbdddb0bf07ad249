"""The faults of `examples/optimisers.json`: two ONNX files for each, before and after a pass.

A row of the table:

id             the name of the files, `optimisers/<id>-before.onnx` and `-after.onnx`
symptom        what a user sees, in a few words
references     where it was reported: owner/repository#number; none if we found it
tool           the optimiser, as `campaigns/equivalent/optimisers.py` names it
pass           the pass that does it, by the tool's name for it
release        the release that wrote the second model
mended         the first release that leaves the first model's meaning as it is
happened       what went wrong, and what of it the references say
effect         "changed": other numbers or another shape; "refuses": the second model refuses sizes
               that the first takes
sizes          the open sizes of a run that shows it
begins         tensors that both models have, after which they differ; where the effect is "changed"
today          what the release at the top of the table does with the first model: "changed" or
               "refuses" as above, or "mended"
before, after  the models as onnx writes them, a node a line; `after` without the names of nodes
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from onnx import parser

TABLE = Path(__file__).parents[1] / "optimisers.json"
HEAD = '<ir_version: 8, opset_import: ["" : 17]> net '

Fault = dict[str, Any]


def table() -> list[Fault]:
    faults: list[Fault] = json.loads(TABLE.read_text(encoding="utf-8"))["faults"]
    return faults


def build(lines: list[str]) -> onnx.ModelProto:
    return parser.parse_model(HEAD + "\n".join(lines))


def models() -> Iterator[tuple[str, onnx.ModelProto]]:
    """Both models of each fault, by the paths of their files."""
    for fault in table():
        for part in ("before", "after"):
            yield f"optimisers/{fault['id']}-{part}.onnx", build(fault[part])


def valid(model: onnx.ModelProto) -> bool:
    """Whether ONNX has all ops of its domain: ONNX Runtime puts some of its own there."""
    return all(node.domain or onnx.defs.has(node.op_type) for node in model.graph.node)
