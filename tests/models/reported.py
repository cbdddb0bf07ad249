"""The reported bugs of `examples/bugs.json`, with the audit's and the port's result for each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
BUGS = {bug["id"]: bug for bug in json.loads((EXAMPLES / "bugs.json").read_text("utf-8"))["bugs"]}


@dataclass(frozen=True)
class Named:
    """What an audit says of a report, and what a port makes of it.

    `cured` is the pass that does it; "" where nothing is wrong any more; None where no rewrite
    helps, and the finding stays.
    """

    bug: str
    target: str
    verdict: str
    reason: str
    cured: str | None = ""


#: By the release in the engine table; GPU delegates by what was read of them.
NAMED = (
    # A: silent wrong numbers.
    Named("ncnn-3924", "ncnn", "same_here", "size_trap", "operands"),
    Named("ncnn-2837", "ncnn", "different", "other_alignment", "operands"),
    Named("ncnn-4508", "ncnn", "same", "same_plan"),
    Named("ncnn-4803", "ncnn", "same", "same_plan"),
    Named("ncnn-4752", "ncnn", "same", "same_plan"),
    Named("ncnn-2823", "ncnn", "same", "same_plan"),
    Named("ncnn-3516", "ncnn", "same", "same_plan"),
    Named("ncnn-3297", "ncnn", "same", "same_plan"),
    Named("ncnn-4930", "ncnn", "different", "other_alignment", "operands"),
    Named("ncnn-4878", "ncnn", "same_here", "size_trap", "operands"),
    Named("ncnn-5673", "ncnn", "different", "silent", "operands"),
    Named("litert-8980", "litert-gpu", "different", "other_alignment", "operands"),
    Named("litert-8593", "litert-gpu", "same", "same_plan"),  # it needs a product before it
    Named("tensorflow-61594", "litert-gpu", "refused", "no_op", "target"),
    Named("tensorflow-60043", "litert-gpu", "different", "silent", "expand"),
    Named("paddle-23913", "paddle", "same", "same_plan"),
    Named("pytorch-16045", "torch", "same", "same_plan"),
    Named("tensorflow-37770", "tensorflow", "same", "same_plan"),
    # B: valid broadcasts refused.
    Named("openvino-33620", "openvino", "same", "same_plan"),  # the CPU; the GPU plugin refused
    Named("onnxruntime-15110", "coreml", "same", "same_plan"),
    Named("opencv-23556", "opencv", "same", "same_plan"),
    Named("litert-9191", "litert-gpu", "refused", "no_op", "target"),
    # C: rank limits.
    Named("litert-2540", "litert-gpu", "refused", "rank_limit", "merge"),
    Named("executorch-11694", "coreml", "refused", "rank_limit", "merge"),
    Named("tensorflow-14924", "tensorflow", "refused", "rank_limit", "expand"),
    Named("tensorflow-43271", "litert", "same", "same_plan"),
    Named("pnnx-228", "ncnn", "different", "batch_broadcast", None),
)


def model(named: Named) -> tuple[Path, dict[str, Any]]:
    """The file, and what an audit has to be told of it."""
    # Reports without a batch axis hold what the engine got.
    options = {} if "target_shapes" in BUGS[named.bug] else {"batch_axis": -1}
    return EXAMPLES / "bugs" / f"{named.bug}.onnx", options
