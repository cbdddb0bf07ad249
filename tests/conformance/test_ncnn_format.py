"""The .param reader, its shapes and its .bin, compared with the real ncnn.

A sample runs here; ZEROSTRIDE_NCNN_LAYERS=20000 draws that many layers, and as many pairs.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

import ncnn_draws
import ncnn_models as made
from ncnn_net import Net, feeds

from zerostride.errors import BroadcastError
from zerostride.models.execute import execute
from zerostride.models.formats.ncnn import find_site, lower, read
from zerostride.models.formats.ncnn.layers import LAYERS, loads_of
from zerostride.models.formats.ncnn.text import read_text
from zerostride.models.formats.ncnn.weights import bin_path, locate

pytestmark = pytest.mark.conformance

EXAMPLES = Path(__file__).parents[2] / "examples"
COUNT = int(os.environ.get("ZEROSTRIDE_NCNN_LAYERS", "2100"))
#: A region whose parts have no whole size. ncnn's ROIAlign for x86 makes room for
#: ceil(size / parts) numbers of a part and writes ceil(end - begin): where the size is whole and
#: the end is rounded up, that is one more, behind the buffer, and the process may die.
REGION = np.array([0.5, 0.5, 2.2, 2.2], np.float32)
#: Layers that no draw makes: the release lacks them, or the engine itself is asked for their shape.
UNDRAWN = frozenset(
    {
        "ArgMax",
        "Cast",
        "DeformableConv2D",
        "Dequantize",
        "DetectionOutput",
        "Einsum",
        "Input",
        "InverseSpectrogram",
        "MemoryData",
        "Normalize",
        "PSROIPooling",
        "Packing",
        "PriorBox",
        "Proposal",
        "Quantize",
        "Requantize",
        "RotaryEmbed",
        "SPP",
        "Spectrogram",
        "YoloDetectionOutput",
        "Yolov3DetectionOutput",
    }
)


# Shapes, and where weights lie.


def weights_of(path: Path, end: Any) -> bytes:
    """A .bin for the file's layers as the table says they read it, then `end`."""
    data = b""
    for layer in read_text(path).layers:
        if layer.type == "MemoryData" and layer.name == "end":
            return data + made.floats(end)
        loads = loads_of(layer)
        for k, load in enumerate(loads):
            numbers = np.random.default_rng(k).uniform(0.1, 0.9, load.count)
            data += made.floats(numbers, mark=load.marked)
    return data


def test_layers_have_the_tables_shapes(ncnn: Net, tmp_path: Path) -> None:
    table: Counter[str] = Counter()
    wrong = []
    end = np.array([3, 1, 4, 1, 5], np.float32)
    for number in range(COUNT):
        rng = random.Random(f"layers/{number}")
        drawn = ncnn_draws.DRAWS[number % len(ncnn_draws.DRAWS)](rng)
        text, shapes = ncnn_draws.layer(drawn)
        path = made.write(tmp_path, text)
        graph = read(path)
        shapes_here = made.shapes_of(graph)
        outs = [f"out{k}" for k in range(drawn[3])]
        if any(shapes_here[name] is None for name in outs):
            assert any("does not work" in note for note in graph.notes), (drawn, graph.notes)
            table["wrong"] += 1
            continue
        given = feeds(shapes, number)
        if drawn[0] == "Embed":
            given = {"in0": np.zeros(shapes[0], np.int32)}
        if drawn[0] == "ROIAlign":
            given["in1"] = REGION
        data = weights_of(path, end)
        for packing in (True, False):
            word, got = ncnn.ask(text, given, [*outs, "end"], data, packing=packing)
            if word == "crashed":  # a layer before it may have spoilt the process's memory
                word, got = ncnn.ask(text, given, [*outs, "end"], data, packing=packing)
            if word != "result":
                wrong.append((drawn, word, got))
                continue
            there = {name: getattr(got[name], "shape", got[name]) for name in outs}
            if there != {name: shapes_here[name] for name in outs}:
                wrong.append((drawn, packing, there))
            # What comes after the layer's weights is where the table says.
            if not np.array_equal(got["end"], end):
                wrong.append((drawn, "weights", got["end"]))
        table[drawn[0]] += 1
    print(f"\n{COUNT} layers: {dict(table)}")
    assert wrong == []
    drawn_kinds = set(table) | {"BinaryOp"}
    if COUNT >= 2100:
        assert set(LAYERS) - UNDRAWN <= drawn_kinds


@pytest.mark.parametrize(
    ("line", "shapes", "wanted"),
    [
        ("Spectrogram op 1 1 in0 out0 0=4 1=2 2=4", [(8,)], (3, 3)),
        ("Unfold op 1 1 in0 out0 1=2", [(4, 6)], (4, 15)),
        ("Einsum op 2 1 in0 in1 out0 -23300=10,105,106,44,106,107,45,62,105,107,0",
         [(2, 3), (3, 4)], None),
    ],
)  # fmt: skip
def test_ncnn_is_asked_for_layers_without_a_row(
    ncnn: Net, tmp_path: Path, line: str, shapes: list[made.Shape], wanted: Any
) -> None:
    text = made.param(*made.inputs(*shapes), line, "ReLU r 1 1 out0 r")
    graph = read(made.write(tmp_path, text))
    word, got = ncnn.ask(text, feeds(shapes, 0), ["out0", "r"], light=False)
    if word != "result" or not hasattr(got["out0"], "shape"):
        assert made.shapes_of(graph)["out0"] is None
        assert any("asked" in note for note in graph.notes)
        return
    assert made.shapes_of(graph)["out0"] == got["out0"].shape == (wanted or got["out0"].shape)
    assert made.shapes_of(graph)["r"] == got["r"].shape
    assert any("the installed ncnn makes" in note for note in graph.notes)


# What a BinaryOp means.


def nearest(a: Any, b: Any) -> Any:
    return a - b * np.rint(a / b)


OPS = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Max": np.maximum,
    "Min": np.minimum,
    "Pow": np.power,
    "atan2": np.arctan2,
    "fmod": np.fmod,
    "logaddexp": np.logaddexp,
    "floor_divide": np.floor_divide,
    "remainder": nearest,
}
#: Of these a last bit decides between two numbers.
JUMPS = frozenset({"fmod", "floor_divide", "remainder"})


def test_binary_op_computes_the_plan_of_its_site(ncnn: Net, tmp_path: Path) -> None:
    table: Counter[str] = Counter()
    wrong = []
    for number in range(COUNT):
        rng = random.Random(f"pairs/{number}")
        full = [rng.choice((1, 2, 3, 4, 5, 8)) for _ in range(4)]
        shapes = []
        for rank in (rng.randint(1, 4), rng.randint(1, 4)):
            start = rng.choice((0, 4 - rank))
            cut = full[start : start + rank]
            shapes.append(tuple(rng.choice((1, n, n, n)) for n in cut))
        op = number % 19
        text = made.param(*made.inputs(*shapes), f"BinaryOp op 2 1 in0 in1 out0 0={op}")
        graph = read(made.write(tmp_path, text))
        site = find_site(graph.nodes[0])
        assert site is not None
        given = feeds(shapes, number)
        arrays = [given[part.name] for part in site.operands]
        plan = plan_of(graph.nodes[0])
        if isinstance(plan, BroadcastError):
            assert plan.silent
            assert made.shapes_of(graph)["out0"] is None
            table["no plan"] += 1
            continue
        expected = OPS[site.op](*plan.views(*arrays))
        for packing in (True, False):
            word, got = ncnn.ask(text, given, ["out0"], packing=packing)
            result = got["out0"] if word == "result" else None
            shape = getattr(result, "shape", None)
            if shape != expected.shape or made.shapes_of(graph)["out0"] != shape:
                wrong.append((text, shape, expected.shape))
                continue
            far = ~np.isclose(result, expected, rtol=1e-2, atol=1e-3)
            if far.mean() > (0.05 if site.op in JUMPS else 0):
                wrong.append((text, packing, result, expected))
        table[site.op] += 1
    print(f"\n{COUNT} pairs: {dict(table)}")
    assert wrong == []
    assert set(table) == {*OPS, "no plan"}


@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4, "row", "column", "vector n", "vector m", "whole"])
@pytest.mark.parametrize(("m", "n"), [(3, 5), (4, 8), (1, 4), (4, 1)])
def test_gemms_addend_is_aligned_as_its_site_says(
    ncnn: Net, tmp_path: Path, kind: Any, m: int, n: int
) -> None:
    k = 6
    rng = np.random.default_rng(m * n)
    a, b = rng.normal(size=(m, k)).astype("f4"), rng.normal(size=(k, n)).astype("f4")
    shapes = {0: (1,), 1: (m,), 2: (m, 1), 3: (m, n), 4: (1, n), "row": (1, n), "column": (m, 1),
              "vector n": (n,), "vector m": (m,), "whole": (m, n)}  # fmt: skip
    c = rng.normal(size=shapes[kind]).astype("f4")
    if isinstance(kind, int):
        line = f"Gemm op 2 1 in0 in1 out0 6=1 7={m} 8={n} 9={k} 10={kind}"
        text = made.param(*made.inputs((m, k), (k, n)), line)
        data, given = made.floats(c, mark=True), {"in0": a, "in1": b}
    else:
        text = made.param(*made.inputs((m, k), (k, n), c.shape), "Gemm op 3 1 in0 in1 in2 out0")
        data, given = b"", {"in0": a, "in1": b, "in2": c}
    graph = read(made.write(tmp_path, text, data))
    site = find_site(graph.nodes[-1])
    assert site is not None
    shape = site.operands[1].shape
    plan = site.plan((site.operands[0].shape, shape))
    expected = np.add(*plan.views(a @ b, c.reshape(shape)))
    for packing in (True, False):
        word, got = ncnn.ask(text, given, ["out0"], data, packing=packing)
        assert word == "result"
        assert got["out0"].shape == expected.shape == (m, n)
        assert np.allclose(got["out0"], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["LayerNorm", "RMSNorm", "GroupNorm", "InstanceNorm", "BatchNorm"])
@pytest.mark.parametrize("shape", [(3, 4, 5), (4, 4, 4), (8, 3), (2, 5, 1)])
def test_norm_weights_are_aligned_as_their_site_says(
    ncnn: Net, tmp_path: Path, kind: str, shape: made.Shape
) -> None:
    if kind == "InstanceNorm" and len(shape) < 3:
        pytest.skip("a sample of two axes is one channel to it, which is not modelled")
    trailing = kind in ("LayerNorm", "RMSNorm")
    counts = {shape[-1], shape[-1] * shape[-2]} if trailing and len(shape) > 2 else {shape[-1]}
    for count in counts if trailing else {shape[0]}:
        texts = {"GroupNorm": f"0=1 1={count} 2=1e-5", "BatchNorm": f"0={count} 1=1e-5"}
        line = f"{kind} op 1 1 in0 out0 {texts.get(kind, f'0={count} 1=1e-5')}"
        path = made.write(tmp_path, made.param(*made.inputs(shape), line))
        loads = loads_of(read_text(path).layers[1])
        zeros = ("beta", "bias", "mean")
        plain = [np.full(load.shape, 0 if load.name in zeros else 1) for load in loads]
        drawn = [np.random.default_rng(k).uniform(1, 2, load.shape) for k, load in enumerate(loads)]
        scale = 0
        changed = [drawn[k] if k == scale else array for k, array in enumerate(plain)]
        x = {"in0": np.random.default_rng(9).normal(size=shape).astype("f4")}
        text = path.read_text()
        bare, scaled = (
            ncnn.ask(text, x, ["out0"], made.floats(*w))[1]["out0"] for w in (plain, changed)
        )
        site = find_site(read(path).nodes[0])
        assert site is not None
        plan = site.plan(tuple(part.shape for part in site.operands if part.shape is not None))
        weight = drawn[scale].reshape(plan.aligned[1]).astype("f4")
        assert np.allclose(scaled, bare * weight, rtol=1e-3, atol=1e-4)


def test_notes_and_findings_match_ncnns_behaviour(ncnn: Net) -> None:
    x = {"in0": np.ones((2, 3), np.float32)}
    head = made.inputs((2, 3))
    shared = made.param(*head, "ReLU r 1 1 in0 r", "BinaryOp op 2 1 in0 r out0")
    assert ncnn.ask(shared, x, ["out0"])[0] == "crashed"
    assert ncnn.ask(shared, x, ["out0"], light=False)[0] == "result"
    split = made.param(*head, "Split s 1 2 in0 a b", "ReLU r 1 1 a r", "BinaryOp op 2 1 b r out0")
    assert ncnn.ask(split, x, ["out0"])[0] == "result"
    alone = made.param(*head, "BinaryOp op 1 1 in0 out0 0=0")
    assert ncnn.ask(alone, x, ["out0"])[0] == "crashed"
    pair = made.param(*made.inputs((2, 3), (1, 3)), "Eltwise op 2 1 in0 in1 out0 0=1")
    word, got = ncnn.ask(pair, feeds([(2, 3), (1, 3)], 0), ["out0"])
    assert word == "crashed" or got["out0"].shape == (2, 3)


# ONNX's words.


def onnx_model(nodes: Any, inputs: dict[str, Any], outputs: list[str]) -> Any:
    """The lowered nodes as a model; values are told apart by identity."""
    from onnx import TensorProto, helper, numpy_helper

    made_ones = {id(value) for node in nodes for value in node.outputs}
    constants, protos = {}, []
    names = {}

    def name(value: Any) -> str:
        if value.constant and id(value) not in made_ones and id(value) not in constants:
            tensor = numpy_helper.from_array(np.asarray(value.data()), f"c{len(constants)}")
            constants[id(value)] = tensor
            names[id(value)] = tensor.name
        return names.setdefault(id(value), value.name)

    for node in nodes:
        ins, outs = [name(v) if v else "" for v in node.inputs], [name(v) for v in node.outputs]
        protos.append(helper.make_node(node.op, ins, outs, **dict(node.attributes)))
    types = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in inputs.items()}
    ends = [[helper.make_tensor_value_info(n, types.get(n, TensorProto.FLOAT), None) for n in group]
            for group in (inputs, outputs)]  # fmt: skip
    whole = helper.make_graph(protos, "g", *ends, list(constants.values()))
    opset = helper.make_opsetid("", 21)
    return helper.make_model(whole, opset_imports=[opset], ir_version=10)


def close(got: Any, wanted: Any) -> bool:
    return bool(np.allclose(got, wanted, rtol=1e-2, atol=2e-3, equal_nan=True))


def test_lowered_layers_compute_ncnns_numbers(ncnn: Net, tmp_path: Path) -> None:
    """Computed by zerostride, and by ONNX Runtime where it takes the words."""
    pytest.importorskip("onnx", reason="the words are said in the onnx package's")
    ort: Any = pytest.importorskip("onnxruntime", reason="what runs them is an extra")
    from onnxruntime.capi import onnxruntime_pybind11_state as states

    refusals = (states.Fail, states.InvalidArgument, states.NotImplemented, states.RuntimeException)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    table: Counter[str] = Counter()
    left: Counter[str] = Counter()
    wrong = []
    draws = [*ncnn_draws.DRAWS, *[_pair] * 14]
    for number in range(COUNT // 2):
        rng = random.Random(f"words/{number}")
        drawn = draws[number % len(draws)](rng)
        text, shapes = ncnn_draws.layer(drawn)
        path = made.write(tmp_path, text)
        path.with_suffix(".bin").write_bytes(weights_of(path, [1, 2, 3, 4, 5]))
        graph = read(path)
        node = next(node for node in graph.nodes if node.name == "op")
        words = lower(node)
        if words is None:
            left[drawn[0]] += 1
            continue
        assert words[-1].outputs == node.outputs or len(node.outputs) > 1 or drawn[0] == "Noop"
        outs = [value.name for value in node.outputs]
        given = feeds(shapes, number)
        if drawn[0] == "Embed":
            given = {"in0": np.arange(shapes[0][0], dtype=np.int32) % 3}
        word, got = ncnn.ask(text, given, outs, path.with_suffix(".bin").read_bytes())
        assert word == "result", drawn
        answers = [execute(graph, given, outs)]
        try:
            model = onnx_model(words, given, outs)
            session = ort.InferenceSession(model.SerializeToString(), options)
            answers.append(dict(zip(outs, session.run(outs, given), strict=True)))
        except refusals:
            left["ONNX Runtime"] += 1
        for wanted in answers:
            for name in outs:
                shape = getattr(got[name], "shape", None)
                if shape != wanted[name].shape or not close(got[name], wanted[name]):
                    wrong.append((drawn, got[name], wanted[name]))
        table[drawn[0]] += 1
    print(f"\nwords: {dict(table)}; without: {dict(left)}")
    assert wrong == []
    assert left["ONNX Runtime"] < COUNT // 40
    assert set(table) >= WORDED


#: Layers of which some draw must have words.
WORDED = {
    "BinaryOp", "Concat", "Crop", "Embed", "Flatten", "GLU", "Gemm", "InnerProduct", "Interp",
    "MatMul", "MultiHeadAttention", "Padding", "Permute", "Reduction", "Reshape", "SDPA", "Slice",
    "Tile", "Unfold",
}  # fmt: skip


def _pair(rng: random.Random) -> ncnn_draws.Drawn:
    full = tuple(rng.choice((1, 2, 3, 5)) for _ in range(rng.randint(1, 4)))
    other = tuple(rng.choice((1, n)) for n in full)[: rng.randint(1, len(full))]
    return "BinaryOp", f"0={rng.randrange(10)}", [full, other], 1


# Models that pnnx makes.


@pytest.mark.slow
def test_files_of_pnnx_are_read(ncnn: Net, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="the models are made with the onnx package")
    pnnx: Any = pytest.importorskip("pnnx", reason="the converter is an extra, not a test need")
    from pnnx_models import generated

    from zerostride.models.formats.onnx.reader import read_onnx

    sources = [path.read_bytes() for path in sorted(EXAMPLES.rglob("*.onnx"))]
    sources += [model.model().SerializeToString() for model in generated(12, 5)]
    blobs = files = 0
    for number, content in enumerate(sources):
        folder = tmp_path / str(number)
        folder.mkdir()
        source = folder / "m.onnx"
        source.write_bytes(content)
        graph = read_onnx(source)
        if not all(value.known for value in graph.inputs):
            continue
        command = [pnnx.EXEC_PATH, str(source)]
        subprocess.run(command, cwd=folder, capture_output=True, timeout=120)
        path = folder / "m.ncnn.param"
        shapes = given_shapes(folder, [value.shape for value in graph.inputs])
        if not path.is_file() or shapes is None:
            continue
        text = path.read_text("utf-8")
        for k, shape in enumerate(shapes):
            line = f" {made.sizes(shape)}"
            text = re.sub(rf"(?m)^(Input .* in{k})$", lambda m, s=line: m[1] + s, text)
        path.write_text(text, "utf-8")
        if not {layer.type for layer in read_text(path).layers} <= set(LAYERS):
            continue  # pnnx leaves an op as it is that ncnn has no layer for
        model = read(path)
        assert not [note for note in model.notes if "sizes" in note or "missing" in note]
        weights = locate(read_text(path).layers, bin_path(path))
        assert (weights.missing, weights.end) == (None, weights.size)
        names = [value.name for node in model.nodes for value in node.outputs]
        data = bin_path(path).read_bytes()
        word, got = ncnn.ask(text, feeds(shapes, 0), names, data, light=False)
        assert word == "result"
        shapes_here = made.shapes_of(model)
        sound = [name for name in names if shapes_here[name] is not None]
        assert {name: shapes_here[name] for name in sound} == {
            name: got[name].shape for name in sound
        }
        assert len(sound) == len(names) or any(
            isinstance(plan_of(node), BroadcastError) for node in model.nodes
        )
        for node in model.nodes:
            if node.op == "MemoryData":
                value = node.outputs[0]
                assert np.array_equal(value.data(), got[value.name])
        files, blobs = files + 1, blobs + len(sound)
    print(f"\n{files} converted models, {blobs} blobs")
    assert files > 20


def given_shapes(folder: Path, shapes: list[Any]) -> list[made.Shape] | None:
    """The inputs without the batch axis that pnnx took away; None where ncnn has no such input."""
    script = folder / "m_ncnn.py"
    if not script.is_file():
        return None
    axes = map(int, re.findall(r"ex\.input\(.*batch_index=(\d+)", script.read_text("utf-8")))
    entries = []
    for shape, axis in zip(shapes, axes, strict=True):
        drop = axis != 233 and shape[axis] == 1  # 233 is pnnx's word for none
        kept = tuple(size for k, size in enumerate(shape) if not drop or k != axis) or (1,)
        entries.append(kept)
    return entries if all(len(shape) <= 4 and all(shape) for shape in entries) else None


def plan_of(node: Any) -> Any:
    site = find_site(node)
    if site is None:
        return None
    try:
        return site.plan(tuple(part.shape for part in site.operands if part.shape is not None))
    except BroadcastError as error:
        return error
