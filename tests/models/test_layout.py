"""Channels-last images: each operand's new shape, compared by computed numbers."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import zerostride as zs
from zerostride.cli.main import cli
from zerostride.errors import ZerostrideError
from zerostride.models.audit.relaid import Move, Relayout, _judgement, check_layout
from zerostride.models.findings import Finding, Verdict
from zerostride.models.ir.graph import Graph, Node, Value
from zerostride.models.layout.images import Layouts, channels_last, follow
from zerostride.models.layout.proof import prove
from zerostride.models.onnx_ops.sites import find_site

onnx = pytest.importorskip("onnx", reason="the models are ONNX files")

import small  # noqa: E402 - it needs onnx
from small import node  # noqa: E402

X = (1, 8, 5, 6)


def findings(nodes: Any, inputs: Any, weights: Any = None, **more: Any) -> dict[str, Finding]:
    """The findings about the layout, by node."""
    report = small.audit(small.model(nodes, inputs, weights, **more), "numpy", layout="nhwc")
    return {f.node: f for f in report.findings if f.reason == "layout"}


def moves(finding: Finding) -> dict[str, Move]:
    """What the operands become."""
    assert isinstance(finding.fix, Relayout)
    return {move.name: move for move in finding.fix.moves}


def one(op: str, x: Any, b: Any, *, swapped: bool = False) -> Finding:
    operands = "b x" if swapped else "x b"
    verdicts = findings([node(op, operands)], {"x": x}, {"b": np.ones(b, np.float32)})
    return verdicts["site"]


# What users ran into.


@pytest.mark.parametrize("swapped", [False, True])
def test_column_of_channels_becomes_a_row(swapped: bool) -> None:
    """onnx2tf#698, #37, #424: (512, 1, 1); #18: x + y and y + x."""
    finding = one("Add", (1, 512, 14, 14), (512, 1, 1), swapped=swapped)
    assert finding.verdict is Verdict.DIFFERENT
    move = moves(finding)["b"]
    assert (move.before, move.after, move.how) == ((512, 1, 1), (1, 1, 512), "reshape")
    assert "reshape (512, 1, 1) to (1, 1, 512)" in finding.message
    assert finding.fix is not None
    assert finding.fix.describe(finding.names) == (
        "the constant 'b': reshape (512, 1, 1) to (1, 1, 512)"
    )


@pytest.mark.parametrize("swapped", [False, True])
def test_vector_is_aligned_with_the_columns_even_if_it_fits_the_channels(swapped: bool) -> None:
    """onnx2tf#424: (32,) with 32 channels and 32 columns."""
    finding = one("Mul", (1, 32, 32, 32), (32,), swapped=swapped)
    move = moves(finding)["b"]
    assert (move.before, move.after, move.how) == ((32,), (32, 1), "reshape")
    assert any("axes 1, 2 have the size 32 too" in note for note in finding.notes)
    witness = finding.witness
    assert witness is not None
    assert witness.op == "multiply"
    assert witness.index
    assert witness.source != witness.target


def test_witness_is_numpys_result() -> None:
    finding = one("Add", (1, 3, 3, 3), (3,))
    witness = finding.witness
    assert witness is not None
    assert witness.shapes == ((1, 3, 3, 3), (3,))
    x, b = np.arange(27.0).reshape(1, 3, 3, 3), 27 + np.arange(3.0)
    last = x.transpose(0, 2, 3, 1)
    assert witness.source == (x + b).transpose(0, 2, 3, 1)[witness.index]
    assert witness.target == (last + b)[witness.index]


def test_unchanged_operand_may_not_broadcast() -> None:
    witness = one("Add", X, (8, 1, 1)).witness
    assert witness is not None
    assert "refused" in str(witness.target)
    assert witness.source == [1, 5, 6, 8]


def test_prelu_slopes_of_channels_change() -> None:
    """coremltools#499: a slope a channel."""
    finding = one("PRelu", X, (8, 1, 1))
    assert moves(finding)["b"].after == (1, 1, 8)


@pytest.mark.parametrize(
    ("shape", "after", "how"),
    [
        ((6,), (6, 1), "reshape"),
        ((5, 1), (5, 1, 1), "reshape"),
        ((5, 6), (5, 6, 1), "reshape"),
        ((8, 1, 1), (1, 1, 8), "reshape"),
        ((8, 5, 1), (5, 1, 8), "transpose"),
        ((8, 1, 6), (1, 6, 8), "transpose"),
        ((8, 5, 6), (5, 6, 8), "transpose"),
        ((1, 8, 1, 1), (1, 1, 1, 8), "reshape"),
        ((1, 8, 5, 6), (1, 5, 6, 8), "transpose"),
        ((2, 1, 1, 1), (2, 1, 1, 1), ""),
        ((1,), (1,), ""),
        ((), (), ""),
        ((1, 1, 1), (1, 1, 1), ""),
    ],
)
def test_constants_of_every_form_change(shape: Any, after: Any, how: str) -> None:
    finding = one("Add", X, shape)
    if not how:
        assert finding.verdict is Verdict.SAME
        return
    move = moves(finding)["b"]
    assert (move.after, move.how) == (after, how)
    assert move.constant


def test_images_of_other_ranks_are_followed() -> None:
    conv = node("Conv", "x w", "c", name="conv")
    verdicts = findings([conv, node("Add", "c b")], {"x": (1, 3, 9)}, {"w": (8, 3, 3), "b": (8, 1)})
    assert moves(verdicts["site"])["b"].after == (1, 8)
    finding = one("Add", (1, 4, 2, 3, 5), (4, 1, 1, 1))
    assert moves(finding)["b"].after == (1, 1, 1, 4)
    by_node = findings([node("Add", "x b")], {"x": (1, 7, 9)}, {"b": (7, 1)})
    assert by_node["site"].verdict is Verdict.SAME  # tokens, not an image


# Generated sites, with a proof of their own.


def value(name: str, shape: Any, *, constant: bool = False) -> Value:
    return Value(name, shape, constant)


def relaid(array: Any, move: Move, rank: int) -> Any:
    """The operand as a user would change it by what the table says."""
    if move.how == "stays":
        return array
    if move.how == "reshape":
        return array.reshape(move.after)
    whole = array.reshape((1,) * (rank - array.ndim) + array.shape)
    moved = whole.transpose(move.perm)
    return moved if move.how == "image" else moved.reshape(move.after)


def test_generated_sites_mean_the_same_channels_last() -> None:
    rng = random.Random(0)
    data = np.random.default_rng(0)
    hows: set[str] = set()
    for case in range(3000):
        rank = rng.choice((3, 4, 4, 4, 5))
        shape = tuple(rng.choice((1, 2, 2, 3, 4)) for _ in range(rank))
        small_shape = tuple(rng.choice((1, size)) for size in shape[rng.randrange(rank + 1) :])
        pair = [value("x", shape), value("b", small_shape, constant=rng.random() < 0.7)]
        arrays = [data.uniform(1, 2, shape), data.uniform(1, 2, small_shape)]
        if rng.random() < 0.5:
            pair.reverse()
            arrays.reverse()
        op = rng.choice(("Add", "Sub", "Mul", "Div"))
        result = value("y", shape)
        site = find_site(Node("site", op, "", 21, tuple(pair), (result,)))
        assert site is not None
        layouts = Layouts(Graph("", "onnx", 21, (), ()))
        image = next(v for v in pair if v.name == "x")
        perm = channels_last(rank)
        layouts.put(image, perm)
        finding = _judgement(site, layouts)
        function = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}[op]
        expected = function(*arrays).transpose(perm)
        if finding.fix is None:
            assert finding.verdict is Verdict.SAME, (case, finding.message)
            after = [
                array.transpose(perm) if v is image else array
                for array, v in zip(arrays, pair, strict=True)
            ]
        else:
            by_name = moves(finding)
            hows |= {move.how for move in by_name.values()}
            after = [
                relaid(array, by_name[v.name], rank) for array, v in zip(arrays, pair, strict=True)
            ]
            assert [a.shape for a in after] == [by_name[v.name].after for v in pair]
        np.testing.assert_array_equal(function(*after), expected, err_msg=f"case {case}")
    assert hows == {"image", "reshape", "transpose"}


# Following images.


def test_chain_of_ops_is_followed() -> None:
    verdicts = findings(
        [
            node("Conv", "x w", "c", name="conv", pads=[1, 1, 1, 1]),
            node("Add", "c b", "a", name="add"),
            node("Relu", "a", "r", name="relu"),
            node("Mul", "r s", "m", name="mul"),
            node("GlobalAveragePool", "m", "g", name="pool"),
            node("Sigmoid", "g", "h", name="gate"),
            node("Mul", "m h", "y", name="excite"),
        ],
        {"x": (1, 3, 5, 6)},
        {"w": (8, 3, 3, 3), "b": (8, 1, 1), "s": (6,)},
    )
    assert moves(verdicts["add"])["b"].after == (1, 1, 8)
    assert moves(verdicts["mul"])["s"].after == (6, 1)
    assert verdicts["excite"].verdict is Verdict.SAME


def test_computed_operand_needs_an_op_before_the_node() -> None:
    verdicts = findings(
        [
            node("Conv", "x w", "c", name="conv"),
            node("Reshape", "v n", "r", name="reshape"),
            node("Mul", "c r", "y"),
        ],
        {"x": (1, 3, 5, 6), "v": (8,)},
        {"w": (8, 3, 1, 1), "n": np.array([1, 8, 1, 1])},
    )
    move = moves(verdicts["site"])["r"]
    assert not move.constant
    assert move.after == (1, 1, 1, 8)
    assert "put an op before the node" in verdicts["site"].message


def test_reductions_squeezes_and_reshapes_keep_the_layout() -> None:
    verdicts = findings(
        [
            node("ReduceMean", "x two", "r", name="rows", keepdims=0),  # (1, 8, 6)
            node("Add", "r b", "y", name="after_reduce"),
            node("Reshape", "x flat", "t", name="tokens"),  # (1, 8, 30)
            node("Add", "t b1", "y1", name="after_reshape"),
            node("Transpose", "t", "u", name="turn", perm=[0, 2, 1]),
            node("Add", "u b2", "y2", name="after_transpose"),
            node("Reshape", "x all", "f", name="flatten"),  # (1, 240)
            node("Add", "f b3", "y3", name="after_flatten"),
        ],
        {"x": X},
        {
            "two": np.array([2]),
            "flat": np.array([1, 8, 30]),
            "all": np.array([1, 240]),
            "b": (8, 1),
            "b1": (8, 1),
            "b2": (8,),
            "b3": (240,),
        },
        outputs=("y", "y1", "y2", "y3"),
    )
    assert moves(verdicts["after_reduce"])["b"].after == (1, 8)
    assert moves(verdicts["after_reshape"])["b1"].after == (1, 8)
    assert verdicts["after_transpose"].verdict is Verdict.SAME
    assert verdicts["after_flatten"].verdict is Verdict.SAME


def test_lost_layout_is_reported() -> None:
    model = small.model(
        [node("Reshape", "x n", "f", name="flatten"), node("MatMul", "x w", "m", name="product")],
        {"x": X},
        {"n": np.array([1, -1]), "w": (6, 6)},
        outputs=("f", "m"),
    )
    notes = " ".join(small.audit(model, "numpy", layout="nhwc").notes)
    assert "Reshape flatten: its axes are those of the model, so 'x' is put back" in notes
    assert "MatMul product" in notes


def test_paths_of_reshapes_and_reductions_give_the_right_numbers() -> None:
    """The layout of every tensor of random chains, against the data itself."""
    rng = random.Random(1)
    followed = 0
    for _ in range(300):
        shape = tuple(rng.choice((1, 2, 3, 4)) for _ in range(4))
        array = np.arange(np.prod(shape)).reshape(shape)
        current = value("x", shape)
        graph_input = current
        nodes: list[Node] = []
        arrays = {id(current): array}
        for k in range(4):
            op, attributes, made = step(rng, array)
            result = value(f"t{k}", made.shape)
            nodes.append(Node(f"n{k}", op, "", 12, (current,), (result,), attributes))
            arrays[id(result)] = made
            current, array = result, made
        layouts = follow(Graph("", "onnx", 12, (graph_input,), tuple(nodes)))
        state = arrays[id(graph_input)].transpose(channels_last(4))
        for item in nodes:
            before, after = item.inputs[0], item.outputs[0]
            old, new = layouts.of(before), layouts.of(after)
            if old is None:
                break  # put back: nothing more to see
            expected = arrays[id(after)]
            expected = expected if new is None else expected.transpose(new)
            if new is None and any(item.path in note for note in layouts.notes):
                break
            # No data moves: the same numbers in the same order.
            if item.op in ("Reshape", "Squeeze", "Unsqueeze", "Transpose"):
                np.testing.assert_array_equal(state.ravel(), expected.ravel())
                followed += 1
            state = expected
    assert followed > 100


def step(rng: random.Random, array: Any) -> tuple[str, dict[str, Any], Any]:
    """A random op that moves axes, and what it makes of the data."""
    shape = array.shape
    match rng.randrange(5):
        case 0 if len(shape) > 1:
            axis = rng.randrange(len(shape))
            return (
                "ReduceSum",
                {"axes": (axis,), "keepdims": 0},
                array.sum(axis),
            )
        case 1:
            axis = rng.randrange(len(shape) + 1)
            return "Unsqueeze", {"axes": (axis,)}, np.expand_dims(array, axis)
        case 2 if 1 in shape:
            axis = rng.choice([k for k, size in enumerate(shape) if size == 1])
            return "Squeeze", {"axes": (axis,)}, np.squeeze(array, axis)
        case 3 if shape:
            perm = tuple(rng.sample(range(len(shape)), len(shape)))
            return "Transpose", {"perm": perm}, array.transpose(perm)
    cuts = sorted(rng.sample(range(len(shape) + 1), min(2, len(shape) + 1)))
    joined = tuple(
        int(np.prod(part))
        for a, b in itertools.pairwise((0, *cuts, len(shape)))
        if (part := shape[a:b])
    )
    return "Reshape", {}, array.reshape(joined)


# A proof that can fail.


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (((4, "image"), (3, "reshape")), None),
        (((4, "image"), (3, "transpose")), None),
        (((4, "image"), (3, "stays")), None),  # by its sizes alone: the same as a reshape
        (((4, "reshape"), (3, "reshape")), 0),
    ],
)
def test_wrong_change_is_found_by_computing(rows: Any, fault: int | None) -> None:
    plan = zs.plan((2, 8, 5, 6), (8, 1, 1))
    assert prove(plan, plan.operands, (0, 2, 3, 1), rows, "add").fault == fault
    both = zs.plan((2, 8, 5, 6), (8, 5, 1))
    assert prove(both, both.operands, (0, 2, 3, 1), ((4, "image"), (3, "reshape")), "").fault == 1


def test_large_or_zero_sizes_are_replaced_for_computing() -> None:
    for shape in ((1, 512, 640, 640), (0, 8, 5, 6)):
        plan = zs.plan(shape, (shape[1], 1, 1))
        rows = ((4, "image"), (3, "reshape"))
        proof = prove(plan, plan.operands, (0, 2, 3, 1), rows, "bitwise_and")
        assert proof.fault is None
        assert "computed both ways at" in proof.words
        assert proof.witness is not None
        assert proof.witness.op == "add"


def test_attributes_that_are_no_axes_are_reported_and_not_followed() -> None:
    x = value("x\x1b[31m", (1, 8, 5, 6))
    nodes = []
    for k, attributes in enumerate(({"perm": 7}, {"perm": ("a", 1.5)}, {"perm": (9, 9, 9, 9)})):
        result = value(f"t{k}", (1, 8, 5, 6))
        nodes.append(Node(f"n{k}", "Transpose", "", 21, (x,), (result,), attributes))
    layouts = follow(Graph("", "onnx", 21, (x,), tuple(nodes)))
    assert [layouts.of(node.outputs[0]) for node in nodes] == [None] * 3
    assert len(layouts.notes) == 3
    assert all(note.isprintable() for note in layouts.notes)


# The rest.


def test_unknown_layout_is_refused() -> None:
    with pytest.raises(ZerostrideError, match=r"no layout 'nchw16c'; known: nhwc"):
        check_layout("nchw16c")


def test_report_without_a_layout_has_no_layout_findings() -> None:
    model = small.model([node("Add", "x b")], {"x": X}, {"b": (8, 1, 1)})
    report = small.audit(model, "numpy")
    assert [f.reason for f in report.findings] == ["same_plan"]


def test_open_sizes_are_supported() -> None:
    verdicts = findings([node("Add", "x b")], {"x": ("N", 8, "H", "W")}, {"b": (8, 1, 1)})
    assert moves(verdicts["site"])["b"].after == (1, 1, 8)
    assert "not computed" in " ".join(verdicts["site"].notes)
    both = findings([node("Add", "x z")], {"x": ("N", 8, "H", "W"), "z": ("M", 8, "H", "W")})
    assert both["site"].verdict is Verdict.SAME


def test_expands_target_is_in_the_new_order() -> None:
    verdicts = findings(
        [node("Conv", "x w", "c", name="conv"), node("Expand", "c n")],
        {"x": (1, 3, 5, 6)},
        {"w": (8, 3, 1, 1), "n": np.array([2, 8, 5, 6])},
    )
    assert moves(verdicts["site"])["n"].after == (2, 5, 6, 8)


def test_report_with_a_layout_has_text_and_json() -> None:
    model = small.model([node("Add", "x b")], {"x": X}, {"b": (8, 1, 1)})
    report = small.audit(model, "numpy", layout="nhwc")
    assert not report.ok
    assert "reshape (8, 1, 1) to (1, 1, 8)" in str(report)
    assert '"moves"' in report.to_json()
    assert "(1, 1, 8)" in report.to_html()


def test_command_line_takes_a_layout(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    onnx.save(small.model([node("Add", "x b")], {"x": X}, {"b": (8, 1, 1)}), file)
    again = tmp_path / "again.onnx"
    again.write_bytes(file.read_bytes())
    run = CliRunner().invoke
    words = ["audit", str(file), "--target", "numpy"]
    assert run(cli, words, standalone_mode=False).return_value == 0
    results = run(cli, [*words, "--layout", "nhwc", "--json"], standalone_mode=False)
    assert results.return_value == 1
    (finding,) = [f for f in json.loads(results.output)["findings"] if f["reason"] == "layout"]
    assert finding["fix"]["moves"][1]["after"] == [1, 1, 8]
    many = ["audit", str(file), str(again), "--target", "numpy", "--layout", "nhwc", "--json"]
    assert "moves" in run(cli, many, standalone_mode=False).output
