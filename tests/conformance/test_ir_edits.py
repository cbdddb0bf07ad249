"""Edited IR files, and files with bodies: OpenVINO computes the same results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.compute.semantics import select
from zerostride.models.findings import Verdict
from zerostride.models.flow.resolved import resolved
from zerostride.models.formats import read_model
from zerostride.models.formats.openvino import edit, find_site
from zerostride.models.formats.openvino.sites import AXIS
from zerostride.models.ir.rewrite import SELF, Earlier, Input, Rewrite, RewriteStep
from zerostride.models.ir.site import Kind
from zerostride.ops import OPS

ov = pytest.importorskip("openvino", reason="asks the real OpenVINO")
sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

from ir_models import Ir, binary  # noqa: E402
from openvino_runs import converted, infer  # noqa: E402
from processor import processor  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_edited_models_compute_the_same(core: Any, tmp_path: Path) -> None:
    """A model with a shared constant, a value with several readers and a Result between."""
    model = Ir()
    x, y = model.parameter("x", (5, 5)), model.parameter("y", (5,))
    c = model.constant("c", np.arange(5, dtype=np.float32))
    alone = model.constant("alone", np.arange(5, 10, dtype=np.float32))
    one = model.layer("one", "Add", (x, c), (5, 5))
    two = model.layer("two", "Multiply", (one, y), (5, 5))
    three_ = model.layer("three", "Maximum", (c, c), (5,))
    four = model.layer("four", "Subtract", (two, three_), (5, 5))
    five = model.layer("five", "Add", (four, alone), (5, 5))
    model.result(one)
    model.result(five)
    path = model.save(tmp_path / "m.xml")
    rng = np.random.default_rng(0)
    # Small whole numbers: nothing is rounded, whatever the plugin fuses.
    arrays = [rng.integers(1, 9, shape).astype(np.float32) for shape in ((5, 5), (5,))]
    before = infer(core, path, arrays)
    places = {node.name: node.place or () for node in read_model(path).nodes}
    editor = edit(path)
    row = RewriteStep("reshape", (Input(1),), shape=(1, 5))
    editor.apply(
        [
            Rewrite(places["one"], (row, SELF(Input(0), Earlier(0)))),
            Rewrite(places["two"], (row, SELF(Earlier(0), Input(0)))),
            Rewrite(
                places["four"],
                (
                    RewriteStep("unsqueeze", (Input(0),), axes=(0,)),
                    RewriteStep("unsqueeze", (Input(1),), axes=(0, 1)),
                    SELF(Earlier(0), Earlier(1)),
                    RewriteStep("squeeze", (Earlier(2),), axes=(0,)),
                ),
            ),
            Rewrite(places["five"], (row, RewriteStep("add", (Input(0), Earlier(0))))),
        ]
    )
    files = editor.save(tmp_path / "out.xml")
    assert [file.name for file in files] == ["out.xml", "out.bin"]
    for mine, real in zip(infer(core, files[0], arrays), before, strict=True):
        np.testing.assert_array_equal(mine, real)
    counts = zs.audit(files[0], target="ncnn").counts
    assert counts[Verdict.SAME] == sum(counts.values())


@pytest.mark.parametrize(("kind", "dtype"), [("f32", "float32"), ("f16", "float16")])
def test_decomposed_prelu_computes_the_same(
    core: Any, tmp_path: Path, kind: str, dtype: str
) -> None:
    """With a constant without axes, and NaN, infinities and both zeros among the numbers."""
    model = Ir()
    x, slope = model.parameter("x", (2, 3, 4), kind), model.parameter("slope", (3,), kind)
    model.result(model.layer("p", "PReLU", (x, slope), (2, 3, 4), kind=kind))
    path = model.save(tmp_path / "m.xml")
    data = np.arange(-12, 12).astype(dtype).reshape(2, 3, 4)
    data[0, :, :3] = [-0.0, -np.inf, np.inf]
    data[1, 2, 3] = np.nan
    arrays = [data, np.array([0.5, -2, 4], dtype)]
    (before,) = infer(core, path, arrays)
    (place,) = (node.place or () for node in read_model(path).nodes)
    zero = RewriteStep("number", (), attributes={"value": 0.0, "dtype": dtype})
    steps = (
        RewriteStep("reshape", (Input(1),), shape=(3, 1)),
        zero,
        RewriteStep("less", (Input(0), Earlier(1))),
        RewriteStep("multiply", (Earlier(0), Input(0))),
        RewriteStep("where", (Earlier(2), Earlier(3), Input(0))),
    )
    editor = edit(path)
    editor.apply([Rewrite(place, steps)])
    (after,) = infer(core, editor.save(tmp_path / "out.xml")[0], arrays)
    np.testing.assert_array_equal(after, before)
    # The signs of zeros, too: of the one that the op's row says, and of the one written out.
    plan = zs.plan((2, 3, 4), (3, 1), op="prelu", engine="openvino")
    views = list(plan.views(arrays[0], arrays[1].reshape(3, 1)))
    for result, where in ((before, processor()), (after, "")):
        with np.errstate(invalid="ignore"):
            kernel, given, _ = select(OPS["prelu"], plan, views, None, where)
            expected = kernel(*given)
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


def test_pdpd_is_rewritten_with_an_explicit_reshape(core: Any, tmp_path: Path) -> None:
    """The axis attribute written as a reshape, which every mode of OpenVINO understands."""
    path = tmp_path / "m.xml"
    binary(
        "Add", (2, 3, 4, 5), (3, 4), f'auto_broadcast="pdpd" {AXIS}="1"', result=(2, 3, 4, 5)
    ).save(path)
    arrays = [np.random.default_rng(1).random(s, np.float32) for s in ((2, 3, 4, 5), (3, 4))]
    before = infer(core, path, arrays)
    (node,) = read_model(path).nodes
    editor = edit(path)
    changes = {"auto_broadcast": "numpy", AXIS: None}
    steps = (
        RewriteStep("unsqueeze", (Input(1),), axes=(2,)),
        RewriteStep("self", (Input(0), Earlier(0)), attributes=changes),
    )
    editor.apply([Rewrite(node.place or (), steps)])
    editor.save(tmp_path / "out.xml")
    np.testing.assert_array_equal(infer(core, tmp_path / "out.xml", arrays)[0], before[0])
    assert 'auto_broadcast="numpy"' in (tmp_path / "out.xml").read_text()


@pytest.mark.slow
def test_every_broadcast_of_a_converted_model_can_be_rewritten(core: Any, tmp_path: Path) -> None:
    """Every two-operand site gets an axis more and its result loses it; the numbers stay."""
    for name in ("tiny_vision", "unet_dynamic", "transformer_dynamic"):
        path = converted(core, EXAMPLES / f"{name}.onnx", tmp_path)
        whole, _, _ = resolved(read_model(path))
        rewrites = []
        for node in whole.nodes:
            site = find_site(node)
            if site is None or site.kind is not Kind.ELEMENTWISE:
                continue
            ranks = [len(part.shape or ()) for part in site.operands]
            steps = [
                RewriteStep("unsqueeze", (Input(k),), axes=tuple(range(max(ranks) + 1 - rank)))
                for k, rank in enumerate(ranks)
            ]
            steps += [
                SELF(Earlier(0), Earlier(1)),
                RewriteStep("squeeze", (Earlier(2),), axes=(0,)),
            ]
            rewrites.append(Rewrite(node.place or (), tuple(steps)))
        assert rewrites
        editor = edit(path)
        editor.apply(rewrites)
        out = editor.save(tmp_path / f"{name}_out.xml")[0]
        model = core.read_model(path)
        arrays = []
        rng = np.random.default_rng(2)
        for port in model.inputs:
            shape = [8 if dim.is_dynamic else dim.get_length() for dim in port.partial_shape]
            kind = port.element_type.to_dtype()
            array = rng.random(shape) if kind.kind == "f" else rng.integers(0, 2, shape)
            arrays.append(array.astype(kind))
        for mine, real in zip(infer(core, out, arrays), infer(core, path, arrays), strict=True):
            np.testing.assert_allclose(mine, real, rtol=1e-4, atol=1e-5)


def with_bodies(folder: Path) -> Path:
    """An If in the main graph, and a Loop, made by OpenVINO itself."""
    from openvino import Model, opset13

    x = opset13.parameter([-1, 3, 4, 5], np.float32, name="x")
    condition = opset13.parameter([], bool, name="condition")
    rows = opset13.constant(np.arange(3, dtype=np.float32).reshape(3, 1, 1))
    scaled = opset13.multiply(x, rows, name="scaled")
    branch = opset13.if_op(condition)
    given = [opset13.parameter([-1, 3, 4, 5], np.float32) for _ in range(3)]
    ones = opset13.constant(np.ones((3, 1, 1), np.float32))
    then = Model([opset13.result(opset13.add(given[0], ones))], [given[0]], "then")
    other = Model([opset13.result(opset13.relu(given[1]))], [given[1]], "else")
    branch.set_then_body(then)
    branch.set_else_body(other)
    branch.set_input(scaled.output(0), given[0], given[1])
    chosen = branch.set_output(then.results[0], other.results[0])
    loop = opset13.loop(opset13.constant(np.array(3)), opset13.constant(np.array(True)))
    count = opset13.parameter([], np.int64)
    step = opset13.add(given[2], opset13.constant(np.arange(5, dtype=np.float32)))
    going = opset13.constant(np.array(True))
    body = Model([opset13.result(step), opset13.result(going)], [count, given[2]], "body")
    loop.set_function(body)
    loop.set_special_body_ports([0, 1])
    loop.set_merged_input(given[2], scaled.output(0), step.output(0))
    last = loop.get_iter_value(step.output(0), -1)
    results = [opset13.result(chosen), opset13.result(last)]
    path = folder / "bodies.xml"
    ov.save_model(Model(results, [x, condition], "m"), path, compress_to_fp16=False)
    return path


def test_layers_in_bodies_are_audited_and_ported(core: Any, tmp_path: Path) -> None:
    path = with_bodies(tmp_path)
    report = zs.audit(path, target="ncnn", batch_axis=-1)
    assert len(report.findings) == 3
    assert sum("body" in finding.node for finding in report.findings) == 2
    assert all(finding.verdict is not Verdict.UNKNOWN for finding in report.findings)
    graph, _, flow = resolved(read_model(path))
    assert flow is not None
    assert flow.ok
    rewrites = []
    for node in graph.nodes:
        site = find_site(node)
        if site is not None:
            rank = len(site.operands[1].shape or ())
            lift = RewriteStep("unsqueeze", (Input(1),), axes=tuple(range(4 - rank)))
            rewrites.append(Rewrite(node.place or (), (lift, SELF(Input(0), Earlier(0)))))
    editor = edit(path)
    editor.apply(rewrites)
    out = editor.save(tmp_path / "out.xml")[0]
    arrays = [np.random.default_rng(3).random((2, 3, 4, 5), np.float32), np.array(True)]
    for mine, real in zip(infer(core, out, arrays), infer(core, path, arrays), strict=True):
        np.testing.assert_allclose(mine, real, rtol=1e-6)
    again = zs.audit(out, target="ncnn", batch_axis=-1)
    assert [finding.verdict for finding in again.findings] == [Verdict.SAME] * 3
