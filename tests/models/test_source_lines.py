"""Findings of ONNX files with the metadata of PyTorch's exporter name the line of source."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import TensorProto, helper, save

import zerostride as zs
from zerostride.models.ir.origin import MAX_ENTRY, SCOPES, STACK, origin_of

OWN = '  File "/home/me/model.py", line {line}, in forward\n    {code}'
TORCH = (
    '\n  File "/x/site-packages/torch/nn/modules/linear.py", line 134, in forward\n    return f()'
)
OPS = {"add": "Add", "mul": "Mul", "sub": "Sub", "div": "Div", "linear": "Add", "where": "Where"}


def metadata(code, name, operator, modules=("", "layers.0"), classes=None, line=37):
    classes = classes or tuple(f"m.Part{place}" for place in range(len(modules)))
    stack = (
        OWN.format(line=3, code="return self.outer(x)") + "\n" + OWN.format(line=line, code=code)
    )
    return {
        STACK: stack + (TORCH if operator == "linear" else ""),
        SCOPES: repr([*modules, name]),
        "pkg.torch.onnx.class_hierarchy": repr([*classes, f"aten.{operator}.Tensor"]),
    }


def model(path, *operations):
    """A chain of operations on (1, 6, 6) whose other operand is a constant, by shape."""
    nodes, constants, before = [], [], "x"
    for place, (operator, entries, shape, first) in enumerate(operations):
        constant, after = f"b{place}", f"y{place}"
        numbers = np.ones(shape, np.float32)
        constants.append(helper.make_tensor(constant, TensorProto.FLOAT, shape, numbers.ravel()))
        names = [constant, before] if first else [before, constant]
        node = helper.make_node(OPS[operator], names, [after], name=f"n{place}")
        for key, text in entries.items():
            node.metadata_props.add(key=key, value=text)
        nodes.append(node)
        before = after
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 6, 6))],
        [helper.make_tensor_value_info(before, TensorProto.FLOAT, (1, 6, 6))],
        constants,
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    return path


def audited(path, *operations):
    """The audit of such a chain for ncnn, op for op."""
    return zs.audit(model(path, *operations), "ncnn", via="none")


ONE = [
    ("add", "return x + self.bias", "return x + self.bias.reshape(1, 6)"),
    ("mul", "x = torch.mul(x, self.g)  # gain", "x = torch.mul(x, self.g.reshape(1, 6))  # gain"),
    ("mul", "x = x.mul(self.g)", "x = x.mul(self.g.reshape(1, 6))"),
    ("sub", "x -= self.mean", "x -= self.mean.reshape(1, 6)"),
    ("div", "y = x / (self.a + 1)", "y = x / ((self.a + 1).reshape(1, 6))"),
    ("add", "if (x + self.b).sum() > 0:", "if (x + self.b.reshape(1, 6)).sum() > 0:"),
    ("add", "y = f(x, x + b, 2)", "y = f(x, x + b.reshape(1, 6), 2)"),
    ("add", "s = (x +", None),  # the line is not the whole statement
    ("add", "return helper(x)", None),
    ("add", "return x + a if x + b else y", None),  # two operations, one of them in the model
    ("add", "x = x + self.ö", None),
]


@pytest.mark.parametrize(("operator", "code", "fixed"), ONE)
def test_fix_is_the_changed_line(tmp_path, operator, code, fixed):
    if fixed is None and "if x + b" in code:
        # Three nodes of one line with two operations.
        rows = [(operator, metadata(code, f"add_{n}", operator), (6,), False) for n in range(3)]
    else:
        rows = [(operator, metadata(code, operator, operator), (6,), False)]
    finding = audited(tmp_path / "m.onnx", *rows).findings[0]
    assert finding.verdict == "different"
    assert (finding.origin.file, finding.origin.line) == ("/home/me/model.py", 37)
    assert (finding.origin.module, finding.origin.code) == ("layers.0", code)
    assert finding.source_fix == fixed


@pytest.mark.parametrize(
    ("code", "shape", "said"),
    [
        ("return x + self.bias", (6,), "self.bias.view(-1, 1)"),
        ("return x + (a + b)", (6,), "reshape b0 to (6, 1)"),  # two operations that could be it
        ("return f(x, b)", (6,), "reshape b0 to (6, 1)"),
        ("return x + self.bias", (6, 6), None),  # it has no single axis
    ],
)
def test_an_axis_of_equal_size_is_named(tmp_path, code, shape, said):
    rows = [("add", metadata(code, "add", "add"), shape, False)]
    notes = [
        note
        for finding in audited(tmp_path / "m.onnx", *rows).findings
        for note in finding.notes
        if "has the same size" in note
    ]
    wanted = f"'b0' lies along axis 2; axis 1 has the same size, 6: if you meant that one, {said}"
    assert notes == ([wanted] if said else [])


def test_each_of_several_operations_in_a_line(tmp_path):
    code = "return (x * self.a + self.b) * self.c"
    rows = [
        ("mul", metadata(code, "mul", "mul"), (6,), False),
        ("add", metadata(code, "add", "add"), (6,), False),
        ("mul", metadata(code, "mul_1", "mul"), (6,), False),
    ]
    findings = audited(tmp_path / "m.onnx", *rows).findings
    assert [finding.source_fix for finding in findings] == [
        "return (x * self.a.reshape(1, 6) + self.b) * self.c",
        "return (x * self.a + self.b.reshape(1, 6)) * self.c",
        "return (x * self.a + self.b) * self.c.reshape(1, 6)",
    ]


def test_number_on_the_left_is_the_second_operand(tmp_path):
    rows = [("mul", metadata("y = 2 * x + x", "mul", "mul"), (), False)]
    assert audited(tmp_path / "m.onnx", *rows).findings[0].source_fix is None


@pytest.mark.parametrize(
    ("code", "scope", "fixed"),
    [
        (
            "x = act(self.up(x))",
            "block.up",
            "x = act(torch.nn.functional.linear(x, self.up.weight) + self.up.bias.reshape(1, 6))",
        ),
        (
            "return self.layers[1](self.layers[0](x))",
            "block.layers.1",
            "return torch.nn.functional.linear(self.layers[0](x), self.layers[1].weight) + "
            "self.layers[1].bias.reshape(1, 6)",
        ),
        ("return layer(x)", "block.up", None),  # which module this is depends on a loop
    ],
)
def test_bias_of_a_linear_layer(tmp_path, code, scope, fixed):
    classes = ("m.Net", "m.Block", "torch.nn.modules.linear.Linear")
    entries = metadata(code, "linear", "linear", ("", "block", scope), classes)
    rows = [("linear", entries, (6,), False)]
    finding = audited(tmp_path / "m.onnx", *rows).findings[0]
    assert (finding.origin.module, finding.origin.caller) == (scope, "block")
    assert finding.origin.place == "model.py:37"  # not PyTorch's own linear.py
    assert finding.source_fix == fixed


def test_reports_show_the_line(tmp_path):
    code = "return x + self.bias"
    rows = [("add", metadata(code, "add", "add"), (6,), False)]
    report = audited(tmp_path / "m.onnx", *rows)
    for text in (str(report), report.to_html(), report.to_markdown()):
        assert "model.py:37" in text
        assert "self.bias.reshape(1, 6)" in text
    (finding,) = json.loads(report.to_json())["findings"]
    assert finding["origin"]["module"] == "layers.0"
    assert finding["source_fix"] == "return x + self.bias.reshape(1, 6)"


def test_models_without_metadata_have_no_origin(tmp_path):
    finding = audited(tmp_path / "m.onnx", ("add", {}, (6,), False)).findings[0]
    assert finding.origin is None
    assert finding.source_fix is None
    assert "written at" not in str(zs.audit(tmp_path / "m.onnx", "ncnn", via="none"))


@pytest.mark.parametrize(
    "entries",
    [
        {STACK: "no frame"},
        {SCOPES: "__import__('os')"},
        {SCOPES: "[" * 10_000},
        {SCOPES: "[1, 2]"},
        {SCOPES: repr(["x"] * MAX_ENTRY)},
        {STACK: 'File "' * 20_000},
    ],
)
def test_odd_metadata_is_no_origin(entries):
    assert origin_of(entries) is None


def test_control_characters_do_not_reach_a_report(tmp_path):
    code = "x + \x1b[31mself.b"
    rows = [("add", metadata(code, "add", "add"), (6,), False)]
    report = audited(tmp_path / "m.onnx", *rows)
    assert "\x1b" not in str(report) + report.to_html() + report.to_markdown()
