"""The size of a page of 10,000 findings, and the time to write it.

`python benchmarks/report_scale.py FOLDER` writes three pages: all findings different (the worst
there can be), all of 40 kinds as in a network of repeated blocks, and half of them the same.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from zerostride.engines import find_engine
from zerostride.models.audit.run import audit_graph
from zerostride.models.findings import Report
from zerostride.models.ir.graph import Graph, Node, Value
from zerostride.models.options import ModelOptions
from zerostride.report import html

COUNT = 10_000


def audit(kinds: int, same: int = 0) -> Report:
    """An audit for ncnn of COUNT nodes of so many kinds, `same` of which mean the same there."""
    nodes = []
    for k in range(COUNT):
        size = 2 + k % kinds
        rows = (1, size) if k < same else (size,)
        values = (
            Value(f"/model/layers.{k}/norm/Mul_output_0", (1, size, size, size)),
            Value(f"model.layers.{k}.norm.weight", rows, True),
        )
        out = (Value(f"/model/layers.{k}/norm/Add_output_0", None),)
        nodes.append(Node(f"/model/layers.{k}/norm/Add", "Add", "", 17, values, out, place=(k,)))
    inputs = tuple(node.inputs[0] for node in nodes if node.inputs[0] is not None)
    graph = Graph("large.onnx", "onnx", 17, inputs, tuple(nodes))
    return audit_graph(graph, find_engine("ncnn"), ModelOptions("none", -1))


def main(folder: Path) -> None:
    for name, kinds, same in (("different", COUNT, 0), ("repeated", 40, 0), ("half", 40, 5000)):
        report = audit(kinds, same)
        began = time.perf_counter()
        page = html(report)
        seconds = time.perf_counter() - began
        (folder / f"{name}.html").write_text(page, "utf-8")
        print(f"{name:10} {len(page.encode()) / 1e6:6.2f} MB written in {seconds:5.2f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
