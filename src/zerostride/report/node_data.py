"""Findings as node data of Model Explorer, which colours the nodes of a model's picture by them.

Model Explorer finds a node by the name of a tensor that it makes. Findings name nodes, so the
model's file is read once more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..errors import ZerostrideError
from ..models.findings import Report, Verdict
from ..models.formats import read_model
from .words import WORST, Reports, listed, mark_of

_COLOURS: Mapping[Verdict, str] = {
    Verdict.SAME: "#d5f0de",
    Verdict.SAME_HERE: "#ffe7a8",
    Verdict.DIFFERENT: "#ffb3b3",
    Verdict.REFUSED: "#e6c3f0",
    Verdict.UNKNOWN: "#c3e0f0",
}


def node_data(reports: Reports) -> str:
    """The verdicts of one audit as JSON: `GraphNodeData` of Model Explorer.

    A node with several findings has the worst. Nodes in bodies are left out: Model Explorer has
    them in graphs of their own.

    Raises:
        ZerostrideError: there are several models.
        ModelError: the file cannot be read any more.
    """
    (report, *others) = listed(reports)
    if others or not isinstance(report, Report):
        raise ZerostrideError("node data of Model Explorer is of one model that can be read")
    worst: dict[str, Verdict] = {}
    for finding in report.findings:
        known = worst.get(finding.node, Verdict.SAME)
        worst[finding.node] = min(known, finding.verdict, key=WORST.index)
    results = {
        value.name: {
            "value": mark_of(worst[node.path]).lower(),
            "bgColor": _COLOURS[worst[node.path]],
            "textColor": "#000000",
        }
        for node in read_model(report.model).nodes
        if not node.scope and node.path in worst
        for value in node.outputs
    }
    data = {"name": f"zerostride: {report.place}", "results": results}
    return json.dumps(data, indent=2, allow_nan=False) + "\n"
