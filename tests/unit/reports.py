"""Reports for tests: audits of small graphs, a port, a verification, comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import zerostride as zs
from zerostride.engines import find_engine
from zerostride.models.audit.run import audit_graph
from zerostride.models.findings import Change, Check, Outcome, Report
from zerostride.models.ir.graph import Graph, Node, Value
from zerostride.models.options import ModelOptions

#: What a hostile file may call things; no report may take any of it for more than a name.
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x=\'',
    "a\u2028b\u2029c",
    "a|b`c``d```",
    "a\\|b\\",
    "\x1b[31mred\x07",
    "[link](javascript:alert(1)) ![x](http://example.org/x.png)",
    "@someone #1 www.example.org https://example.org",
    "&lt;b&gt; &amp; <b>",
    "]]><!--",
    "\ud800",
    "\x00",
    "</td></tr></table><h1>",
    "{{7*7}} ${x}",
    "\u202egnp.exe",
    "```\n</details>\n# title",
    " ",
    "x" * 5000,
]


def graph(rows: Sequence[tuple[str, str, Sequence[Any]]], path: str = "made.onnx") -> Graph:
    """A graph of element-wise nodes: (name, op, shapes of two operands)."""
    nodes = []
    for number, (name, op, shapes) in enumerate(rows):
        values = tuple(
            Value(f"{letter}{number}", tuple(shape), letter == "y" and isinstance(shape[0], int))
            for letter, shape in zip("xyz", shapes, strict=False)
        )
        out = (Value(f"out{number}", None),)
        nodes.append(Node(name, op, "", 17, values, out, place=(number,)))
    inputs = tuple(value for node in nodes for value in node.inputs if value and not value.constant)
    return Graph(path, "onnx", 17, inputs, tuple(nodes))


def audited(
    *rows: tuple[str, str, Sequence[Any]], target: str = "ncnn", path: str = "made.onnx"
) -> Report:
    """The audit of such a graph."""
    return audit_graph(graph(rows, path), find_engine(target), ModelOptions("none", -1))


#: One of each verdict.
ROWS = (
    ("fine", "Add", ((2, 5), (2, 5))),
    ("wrong", "Add", ((5, 5), (5,))),
    ("wrong_again", "Add", ((5, 5), (5,))),
    ("here", "Mul", ((3, 5), (5,))),
    ("refused", "Greater", ((5, 5), (5,))),
    ("own", "Custom", ((5, 5), (5,))),
    ("sizes", "Add", (("H", "W"), ("W",))),
)


def audit_report(path: str = "made.onnx") -> Report:
    """An audit with findings of all kinds."""
    return audited(*ROWS, path=path)


def port_report(name: str = "wrong") -> Report:
    """A port that reshaped a constant."""
    before = audited((name, "Add", ((5, 5), (5,))))
    after = audited((name, "Add", ((5, 5), (1, 5))))
    change = Change(
        name,
        "Add",
        "reshape_constant",
        "reshape y0 to (1, 5)",
        (f"out0 = Add(x0 (5,5), y0 (5)) <{name}>",),
        ("y0_1x5 = constant (1,5)", "out0 = Add(x0 (5,5), y0_1x5 (1,5))"),
        25,
    )
    return Report(
        "made.onnx",
        "ncnn",
        None,
        after.release,
        after.findings,
        command="port",
        before=before.findings,
        changes=(change,),
        output="fixed.onnx",
    )


def verify_report(name: str = "wrong") -> Report:
    """A verification with every outcome."""
    operands = (("x", (5, 5)), ("y", (5,)))
    details = {
        Outcome.AGREES: "",
        Outcome.DIFFERS: "25 of 25 numbers differ",
        Outcome.REFUSED: "the engine says: <no>",
        Outcome.CRASHED: "its process was ended by SIGSEGV",
        Outcome.NOT_RUN: "ncnn has no such op",
    }
    checks = tuple(
        Check(
            f"{name}_{outcome}",
            "Add",
            operands,
            outcome,
            detail,
            25 if outcome in (Outcome.AGREES, Outcome.DIFFERS) else 0,
            0.5 if outcome is Outcome.DIFFERS else 1.2e-7,
            "1.0",
            cached=outcome is Outcome.AGREES,
        )
        for outcome, detail in details.items()
    )
    rows = [(check.node, "Add", ((5, 5), (5,))) for check in checks]
    findings = audited(*rows).findings
    return Report("made.onnx", "ncnn", None, "1.0", findings, command="verify", checks=checks)


#: A report of each command, by its name.
KINDS = {"audit": audit_report, "port": port_report, "verify": verify_report}


def equivalent_reports(*wanted: str, name: str = "w") -> dict[str, Report]:
    """Comparisons with every verdict, and one of models that take other sizes; or some of them."""
    onnx = pytest.importorskip("onnx", reason="two models are made with onnx")

    def model(nodes: str) -> Any:
        text = (
            f'<ir_version: 8, opset_import: ["" : 17]> g (float[N,4] x) => (float[a,b] w) {nodes}'
        )
        proto = onnx.parser.parse_model(text)
        for part in (*proto.graph.output, proto.graph.node[-1]):
            if isinstance(part, onnx.NodeProto):
                part.name, part.output[:] = name, [name]
            else:
                part.name = name
        return proto

    relu, rows = "{ w = Relu(x) }", "<int64[2] s={3,4}>"
    pairs = {
        "equal": (relu, "{ t = Relu(x) w = Relu(t) }"),
        "rounded": (
            "<float k={0.1}, float q={0.2}> { t = Add(x, k) w = Add(t, q) }",
            "<float q={0.3}> { w = Add(x, q) }",
        ),
        "different": (relu, "{ w = Softmax<axis=0>(x) }"),
        "undecided": (
            "{ w = Tanh(x) }",
            "<float k={2}, float q={1}>"
            " { t = Mul(x, k) s = Sigmoid(t) r = Mul(s, k) w = Sub(r, q) }",
        ),
        "sizes": (relu, f"{rows} {{ t = Reshape(x, s) w = Relu(t) }}"),
    }
    asked = wanted or tuple(pairs)
    return {key: zs.equivalent(*map(model, pairs[key])) for key in asked}
