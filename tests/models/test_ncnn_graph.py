"""Shapes, sites and lowering of .param files, without the real ncnn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ncnn_models as made
import pytest

import zerostride as zs
from zerostride.models.format_table import lowered
from zerostride.models.formats.ncnn import engine, find_site, lower
from zerostride.models.formats.ncnn.layers import LAYERS
from zerostride.models.ir.graph import Graph, Node
from zerostride.models.ir.site import Kind, Site

IN = "Input in0 0 1 in0 0=5 1=4 2=3"


def one(tmp_path: Path, line: str, *shapes: made.Shape, weights: bytes | None = None) -> Graph:
    """The graph of one layer over inputs of these shapes, (3, 4, 5) if none are given."""
    head = made.inputs(*shapes) if shapes else [IN]
    return made.graph(tmp_path, made.param(*head, line), weights)


def site_of(graph: Graph) -> Site:
    listed = [site for site in map(find_site, graph.nodes) if site is not None]
    assert len(listed) == 1
    return listed[0]


# Shapes.


@pytest.mark.parametrize(
    ("line", "shape"),
    [
        ("Convolution c 1 1 in0 out0 0=8 1=3 3=2 4=1 6=216", (8, 2, 3)),
        ("Convolution c 1 1 in0 out0 0=8 1=3 3=2 4=-233 6=216", (8, 2, 3)),
        ("Convolution c 1 1 in0 out0 0=8 1=2 11=3 12=1 2=2 6=144", (8, 2, 3)),
        ("Deconvolution c 1 1 in0 out0 0=2 1=2 3=2 6=24", (2, 8, 10)),
        ("Pooling p 1 1 in0 out0 0=0 1=2 2=2", (3, 2, 3)),
        ("Pooling p 1 1 in0 out0 0=0 1=2 2=2 5=1", (3, 2, 2)),
        ("Pooling p 1 1 in0 out0 0=1 4=1", (3,)),
        ("Pooling p 1 1 in0 out0 0=1 7=1 8=2 18=-233", (3, 4, 2)),
        ("InnerProduct i 1 1 in0 out0 0=7 2=420", (7,)),
        ("Permute p 1 1 in0 out0 0=3", (4, 5, 3)),
        ("Reduction r 1 1 in0 out0 0=3 1=0 -23303=1,-1 4=1 5=1", (3, 4, 1)),
        ("Reduction r 1 1 in0 out0 0=3", (1,)),
        ("Interp i 1 1 in0 out0 0=1 1=2.0 2=2.0", (3, 8, 10)),
        ('Interp i 1 1 in0 out0 0=1 9="*(0w,2),7"', (3, 7, 10)),
        ("Tile t 1 1 in0 out0 -23302=3,2,1,3", (6, 4, 15)),
        ("Padding p 1 1 in0 out0 0=1 1=2 2=3 3=4", (3, 7, 12)),
        ("Crop c 1 1 in0 out0 -23309=1,1 -23310=1,-1 -23311=1,2", (3, 4, 3)),
        ("Squeeze s 1 1 in0 out0 3=0,", (3, 4, 5)),
        ("ExpandDims e 1 1 in0 out0 3=0,", (1, 3, 4, 5)),
        ("Flatten f 1 1 in0 out0", (60,)),
        ("Reshape r 1 1 in0 out0 0=0 1=-1", (12, 5)),
        ('Reshape r 1 1 in0 out0 6="+(0w,0h),-1"', None),
        ('Reshape r 1 1 in0 out0 6="+(0w,1),-1"', (10, 6)),
        ("Reshape r 1 1 in0 out0 0=7", None),
        ("Permute p 1 1 in0 out0 0=9", None),
        ("Crop c 1 1 in0 out0 -23309=1,9 -23310=1,12 -23311=1,2", None),
        ("Reduction r 1 1 in0 out0 0=3 1=0 -23303=1,1 4=1", None),
        ("Convolution c 1 1 in0 out0 0=8 1=9 6=216", None),
        ("Concat c 1 1 in0 out0 0=3", None),
        ("Softmax s 1 1 in0 out0 0=1 1=1", (3, 4, 5)),
        ("Softmax s 1 1 in0 out0 0=1", None),
    ],
)
def test_layer_has_the_inferred_shape(tmp_path: Path, line: str, shape: Any) -> None:
    graph = one(tmp_path, line)
    assert made.shapes_of(graph)["out0"] == shape
    if shape is None:
        (note,) = [note for note in graph.notes if "does not work" in note]
        assert repr(line.split()[1]) in note


def test_the_layers_with_weights_are_those_with_a_load_model_in_ncnn() -> None:
    spaces = ("", "1D", "3D")
    kinds = ("Convolution", "ConvolutionDepthWise", "Deconvolution", "DeconvolutionDepthWise")
    windows = {f"{kind}{space}" for kind in kinds for space in spaces}
    others = (
        "BatchNorm Bias DeformableConv2D Dequantize Embed GRU Gemm GroupNorm InnerProduct "
        "InstanceNorm LSTM LayerNorm MemoryData MultiHeadAttention Normalize PReLU Padding "
        "Quantize RMSNorm RNN Requantize Scale"
    )
    weighted = {name for name, row in LAYERS.items() if row.weights is not None}
    assert weighted == windows | set(others.split())


def test_hints_are_used_where_nothing_else_is_known(tmp_path: Path) -> None:
    graph = one(tmp_path, "Custom c 1 2 in0 a b -23330=8,3,7,6,5,1,9,0,0")
    assert made.shapes_of(graph)["a"] == (5, 6, 7)
    assert made.shapes_of(graph)["b"] == (9,)
    text = made.param("Input in0 0 1 in0 -23330=4,2,3,2,1", "ReLU r 1 1 in0 out0")
    assert made.graph(tmp_path, text).outputs[0].shape == (2, 3)
    graph = one(tmp_path, "ReLU r 1 1 in0 out0 -23330=4,2,3,2,1")
    assert graph.outputs[0].shape == (3, 4, 5)
    assert any("the file hints at (2, 3), it makes (3, 4, 5)" in note for note in graph.notes)


def test_unstated_sizes_get_names(tmp_path: Path) -> None:
    text = made.param(
        "Input in0 0 1 in0",
        "Split s 1 2 in0 a b",
        "Convolution c 1 1 a x 0=8 1=3 3=2 4=1 6=216",
        "Pooling p 1 1 b y 4=1",
        "Flatten f 1 1 x z",
    )
    graph = made.graph(tmp_path, text)
    assert graph.inputs[0].shape == ("in0.c", "in0.h", "in0.w")
    assert any("they are called in0.c, in0.h, in0.w" in note for note in graph.notes)
    shapes = zs.shapes(tmp_path / "m.param")
    assert str(shapes.shapes["x"]) == "(8, Dim('(in0.h + 1) // 2'), Dim('(in0.w + 1) // 2'))"
    shapes = zs.shapes(tmp_path / "m.param", sizes={"in0.h": 32, "in0.w": 30, "in0.c": 3})
    assert shapes.shapes["x"] == (8, 16, 15)
    assert shapes.shapes["y"] == (3,)
    assert shapes.shapes["z"] == (8 * 16 * 15,)
    assert not shapes.failures


RANKS: Any = [
    # A constant of three axes leaves an input that a convolution reads at most three.
    (("MemoryData m 0 1 m 0=1 1=1 2=3", "BinaryOp b 2 1 in0 m x 0=1"), True),
    (("MemoryData m 0 1 m 0=1 1=1 2=3", "BinaryOp b 2 1 m in0 x 0=7"), True),
    (("MemoryData m 0 1 m 0=1", "BinaryOp b 2 1 in0 m x 0=1"), False),
    (("BinaryOp b 1 1 in0 x 0=1 1=1 2=0.5",), False),
    (("Split s 1 2 in0 p q", "Sigmoid g 1 1 p r", "BinaryOp b 2 1 q r x 0=2"), False),
    (("Padding p 1 1 in0 x 0=1 1=1 2=1 3=1",), False),
    (("MemoryData m 0 1 m 0=8 1=8 2=1", "Concat b 2 1 in0 m x 0=0"), False),
]


@pytest.mark.parametrize(("lines", "expected"), RANKS)
def test_rank_is_inferred_through_other_layers(tmp_path: Path, lines: Any, expected: bool) -> None:
    convolution = "Convolution c 1 1 x out0 0=8 1=3 6=216"
    graph = made.graph(tmp_path, made.param("Input in0 0 1 in0", *lines, convolution))
    assert graph.inputs[0].shape == ("in0.c", "in0.h", "in0.w")
    assert any("is taken to have 3 axes" in note for note in graph.notes) is expected


def test_unfinished_layers_of_pnnx_have_open_sizes(tmp_path: Path) -> None:
    """A slice without its numbers has sizes of its own; two that are added still need one shape."""
    lines = [
        "Input in0 0 1 in0 0=8 1=8 2=3",
        "Tensor.slice s 1 1 in0 x",
        "Convolution c 1 1 x y 0=8 1=1 6=24",
        "Split p 1 2 y a b",
        "Sigmoid g 1 1 a d",
        "BinaryOp m 2 1 d b z 0=2",
        "torch.eq e 1 1 z t",
    ]
    graph = made.graph(tmp_path, made.param(*lines))
    assert made.shapes_of(graph)["y"] == (8, "x.h", "x.w")
    assert any("ncnn has no layer called Tensor.slice, torch.eq" in note for note in graph.notes)
    report = zs.audit(tmp_path / "m.param", target="onnxruntime")
    assert [(one.node, one.verdict) for one in report.findings] == [("m", "same")]


def test_ambiguous_rank_of_two_inputs_is_reported(tmp_path: Path) -> None:
    lines = ("BinaryOp b 2 1 in0 in1 x 0=0", "Convolution c 1 1 x out0 0=8 1=3 6=216")
    graph = made.graph(tmp_path, made.param("Input in0 0 1 in0", "Input in1 0 1 in1", *lines))
    assert [value.shape and len(value.shape) for value in graph.inputs] == [3, None]
    assert any("is taken to have 3 axes" in note for note in graph.notes)


def test_inputs_without_any_fact_have_unknown_rank(tmp_path: Path) -> None:
    graph = made.graph(tmp_path, made.param("Input in0 0 1 in0", "ReLU r 1 1 in0 out0"))
    assert graph.inputs[0].shape is None
    assert any("write them into its line (0=w 1=h 11=d 2=c)" in note for note in graph.notes)


def test_layer_without_a_row_is_inferred_by_ncnn_or_unknown(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(engine, "installed", lambda: False)
    graph = one(tmp_path, "Spectrogram d 1 1 in0 out0 0=4 2=4", (4,))
    assert graph.outputs[0].shape is None
    assert any("which could be asked for them, is not installed" in note for note in graph.notes)
    monkeypatch.setattr(engine, "installed", lambda: True)
    monkeypatch.setattr(engine, "ask", lambda *given: pytest.fail("asked for a custom layer"))
    graph = one(tmp_path, "Custom d 1 1 in0 out0", (4,))
    assert any("ncnn has no layer called Custom" in note for note in graph.notes)


def test_crashed_engine_is_a_note(tmp_path: Path, monkeypatch: Any) -> None:
    child = 'answer.write(b\'["a", [4, 4]]\\n["b", [-1]]\\n\'); answer.flush(); os.abort()'
    monkeypatch.setattr(engine, "_CHILD", child)
    monkeypatch.setattr(engine, "installed", lambda: True)
    lines = ("Spectrogram d 1 1 in0 a 0=4", "Spectrogram e 1 1 a b 0=4", "ReLU r 1 1 a c")
    text = made.param(*made.inputs((4,)), *lines)
    graph = made.graph(tmp_path, text)
    assert made.shapes_of(graph)["a"] == (4, 4)
    assert made.shapes_of(graph)["c"] == (4, 4)
    assert made.shapes_of(graph)["b"] is None
    assert any("it was ended by SIGABRT" in note for note in graph.notes)
    monkeypatch.setattr(engine, "_CHILD", "import time; time.sleep(60)")
    monkeypatch.setattr(engine, "SECONDS", 0.5)
    assert any("took longer than" in note for note in made.graph(tmp_path, text).notes)


def test_blobs_read_twice_are_named(tmp_path: Path) -> None:
    text = made.param(IN, "ReLU r 1 1 in0 r", "BinaryOp b 2 1 in0 r out0 0=0")
    assert any("'in0' are read by several layers" in n for n in made.graph(tmp_path, text).notes)


# Sites.


def test_binary_op_has_ncnns_rule(tmp_path: Path) -> None:
    site = site_of(one(tmp_path, "BinaryOp b 2 1 in0 in1 out0 0=1", (5, 5), (5,)))
    assert (site.kind, site.op, site.rule.name) == (Kind.ELEMENTWISE, "Sub", "ncnn")
    assert [part.name for part in site.operands] == ["in0", "in1"]
    assert site.plan(((5, 5), (5,))).aligned == ((5, 5), (5, 1))


@pytest.mark.parametrize(
    ("number", "op", "first"),
    [
        (0, "Add", "in0"),
        (4, "Max", "in0"),
        (6, "Pow", "in0"),
        (7, "Sub", "in1"),
        (8, "Div", "in1"),
        (9, "Pow", "in1"),
        (10, "atan2", "in0"),
        (11, "atan2", "in1"),
        (12, "fmod", "in0"),
        (13, "fmod", "in1"),
        (14, "logaddexp", "in0"),
        (15, "floor_divide", "in0"),
        (16, "floor_divide", "in1"),
        (17, "remainder", "in0"),
        (18, "remainder", "in1"),
    ],
)
def test_operands_are_in_the_ops_order(tmp_path: Path, number: int, op: str, first: str) -> None:
    site = site_of(one(tmp_path, f"BinaryOp b 2 1 in0 in1 out0 0={number}", (3, 5), (5,)))
    assert (site.op, site.operands[0].name) == (op, first)


def test_layers_that_broadcast_have_sites(tmp_path: Path) -> None:
    def kinds(line: str, *shapes: made.Shape) -> list[Any]:
        graph = one(tmp_path, line, *shapes)
        return [(s.kind, s.op) for s in map(find_site, graph.nodes) if s is not None]

    assert kinds("BinaryOp b 1 1 in0 out0 0=0 1=1 2=3.0") == []
    assert kinds("BinaryOp b 2 1 in0 in1 out0 0=19", (3,), (3,)) == [(Kind.NOT_MODELLED, "")]
    assert kinds("Eltwise e 2 1 in0 in1 out0 0=1", (3,), (3,)) == [(Kind.ELEMENTWISE, "Sum")]
    assert kinds("PReLU p 1 1 in0 out0 0=3") == [(Kind.PRELU, "PRelu")]
    assert kinds("Scale s 1 1 in0 out0 0=3 1=1") == [(Kind.ELEMENTWISE, "Mul")]
    assert kinds("Bias s 1 1 in0 out0 0=3") == [(Kind.ELEMENTWISE, "Add")]
    assert kinds("BatchNorm b 1 1 in0 out0 0=3") == [(Kind.CHANNEL, "BatchNormalization")]
    assert kinds("LayerNorm b 1 1 in0 out0 0=20") == [(Kind.TRAILING, "LayerNormalization")]
    assert kinds("LayerNorm b 1 1 in0 out0 0=20 2=0") == []
    assert kinds("MatMul m 2 1 in0 in1 out0", (2, 3, 4), (4, 5)) == [(Kind.MATMUL, "MatMul")]
    assert kinds("MatMul m 2 1 in0 in1 out0", (3, 4), (4, 5)) == []
    gemm = "Gemm g 1 1 in0 out0 5=1 6=1 7=0 8=2 9=5 10=4"
    assert kinds(gemm, (4, 5)) == [(Kind.GEMM, "Gemm")]
    assert kinds("Gemm g 1 1 in0 out0 5=1 8=2 9=5", (4, 5)) == []
    assert kinds("Gemm g 3 1 in0 in1 in2 out0", (4, 5), (5, 6), (6,)) == [(Kind.GEMM, "Gemm")]
    assert kinds("SDPA s 4 1 in0 in1 in2 in3 out0 5=1", *[(2, 3, 4)] * 3, (3, 3)) == [
        (Kind.NOT_MODELLED, "")
    ]
    assert kinds("Mine m 2 1 in0 in1 out0", (3,), (3,)) == [(Kind.CUSTOM, "")]
    assert kinds("ReLU r 1 1 in0 out0") == []


@pytest.mark.parametrize(
    "line",
    [
        "PReLU p 1 1 in0 out0 0=3",
        "PReLU p 1 1 in0 out0 0=1",
        "Scale s 1 1 in0 out0 0=3 1=1",
        "Bias s 1 1 in0 out0 0=3",
        "BatchNorm b 1 1 in0 out0 0=3",
        "InstanceNorm b 1 1 in0 out0 0=3",
        "GroupNorm b 1 1 in0 out0 0=3 1=3",
        "LayerNorm b 1 1 in0 out0 0=5",
        "RMSNorm b 1 1 in0 out0 0=20",
    ],
)
def test_weights_are_aligned_with_the_channels(tmp_path: Path, line: str) -> None:
    site = site_of(one(tmp_path, line))
    shapes = tuple(part.shape for part in site.operands if part.shape is not None)
    assert len(shapes) == len(site.operands) > 1
    plan = site.plan(shapes)
    assert plan.shape == (3, 4, 5)
    inner = line.startswith(("LayerNorm", "RMSNorm"))
    assert plan.aligned[1] in ([(1, 4, 5), (1, 1, 5)] if inner else [(3, 1, 1), (1, 1, 1)])


@pytest.mark.parametrize(
    "line",
    [
        "PReLU p 1 1 in0 out0 0=4",
        "Scale s 1 1 in0 out0 0=5",
        "Bias s 1 1 in0 out0 0=1",
        "BatchNorm b 1 1 in0 out0 0=4",
        "GroupNorm b 1 1 in0 out0 0=1 1=4",
    ],
)
def test_weights_of_the_wrong_length_are_read(tmp_path: Path, line: str) -> None:
    site = site_of(one(tmp_path, line))
    with pytest.raises(zs.BroadcastError) as caught:
        site.plan(tuple(part.shape for part in site.operands if part.shape is not None))
    assert caught.value.silent  # ncnn takes as many numbers as it needs from wherever they are


def test_layer_norm_covers_as_many_axes_as_its_weights(tmp_path: Path) -> None:
    for count, axis, shape in ((5, -1, (5,)), (20, -2, (4, 5))):
        site = site_of(one(tmp_path, f"LayerNorm n 1 1 in0 out0 0={count}"))
        assert site.attributes == {"axis": axis}
        assert site.operands[1].shape == shape
        assert site.plan(((3, 4, 5), shape, shape)).shape == (3, 4, 5)


# Lowering to ONNX.


def words(tmp_path: Path, line: str, *shapes: made.Shape) -> Any:
    graph = one(tmp_path, line, *shapes)
    nodes = lower(graph.nodes[0])
    if nodes is not None:
        assert nodes[-1].outputs == graph.nodes[0].outputs
        assert all(node.domain == "" for node in nodes)
    return None if nodes is None else [node.op for node in nodes]


CONVOLUTION = ["Unsqueeze", "Reshape", "Conv", "Squeeze"]


def test_layers_are_lowered_to_onnx_ops(tmp_path: Path) -> None:
    assert words(tmp_path, "Permute p 1 1 in0 out0 0=1") == ["Transpose"]
    assert words(tmp_path, "ExpandDims p 1 1 in0 out0 3=0,") == ["Unsqueeze"]
    assert words(tmp_path, "ReLU p 1 1 in0 out0 0=0.5") == ["LeakyRelu"]
    assert words(tmp_path, "Dropout p 1 1 in0 out0 0=0.5") is None
    assert words(tmp_path, "Reduction r 1 1 in0 out0 0=3") == ["ReduceMean", "Reshape"]
    assert words(tmp_path, "Reduction r 1 1 in0 out0 0=3 2=2.0") is None
    assert words(tmp_path, "Convolution c 1 1 in0 out0 0=8 1=3 6=216") == CONVOLUTION
    assert words(tmp_path, "BinaryOp b 1 1 in0 out0 0=7 1=1 2=1.0") == ["Sub"]
    assert words(tmp_path, "Scale s 1 1 in0 out0 0=3") == ["Unsqueeze", "Mul"]


def test_binary_op_is_lowered_by_ncnns_plan(tmp_path: Path) -> None:
    line = "BinaryOp b 2 1 in0 in1 out0 0={}"
    assert words(tmp_path, line.format(0), (3, 5), (1, 5)) == ["Add"]
    assert words(tmp_path, line.format(0), (5, 5), (5,)) == ["Reshape", "Add"]
    assert words(tmp_path, line.format(10), (5, 5), (5, 5)) is None
    assert words(tmp_path, line.format(0), (3, 4, 5), (4, 5)) is None
    graph = one(tmp_path, line.format(7), (3, 5), (3, 5))
    (node,) = lower(graph.nodes[0]) or ()
    assert [value.name for value in node.inputs if value is not None] == ["in1", "in0"]


def test_interp_keeps_its_scale_where_a_size_stays(tmp_path: Path) -> None:
    """The nearest pixel lies at the scale as written; ncnn copies data only if no size changes."""
    graph = one(tmp_path, "Interp i 1 1 in0 out0 0=1 1=2.0 2=1.1")
    nodes = lower(graph.nodes[0]) or ()
    (scales,) = [node.inputs[2] for node in nodes if node.op == "Resize"]
    assert scales is not None
    assert scales.reals == pytest.approx((1, 1, 2.0, 1.1))
    assert words(tmp_path, "Interp i 1 1 in0 out0 0=1 1=1.1 2=1.1") == ["Identity"]


def test_3d_pooling_with_an_odd_same_pad_before_is_not_lowered(tmp_path: Path) -> None:
    line = "Pooling3D p 1 1 in0 out0 0=0 1=2 2=1 5={}"
    assert words(tmp_path, line.format(2), (1, 5, 6, 4)) is not None
    assert words(tmp_path, line.format(3), (1, 5, 6, 4)) is None


def test_crop_to_a_blob_reads_expressions_of_both(tmp_path: Path) -> None:
    line = 'Crop c 2 1 in0 in1 out0 19="1" 20="1w" 21="2"'
    graph = one(tmp_path, line, (4, 6, 8), (3, 3, 5))
    assert made.shapes_of(graph)["out0"] == (4, 6, 4)
    assert words(tmp_path, line, (4, 6, 8), (3, 3, 5)) == ["Slice"]


def test_unfold_with_some_same_pads_has_no_shape(tmp_path: Path, monkeypatch: Any) -> None:
    """The release pads no axis, if 'same' is not written for all of them."""
    monkeypatch.setattr(engine, "installed", lambda: False)
    line = "Unfold u 1 1 in0 out0 1=3 2=2 4=-234 11=4 14=0"
    assert made.shapes_of(one(tmp_path, line, (2, 8, 7)))["out0"] is None


def test_lowered_graph_keeps_its_values(tmp_path: Path) -> None:
    text = made.param(IN, "Split s 1 2 in0 a b", "MemoryData m 0 1 m 0=3", "BinaryOp c 2 1 a m d")
    graph = made.graph(tmp_path, text)
    nodes = lowered(graph)
    assert [node.op for node in nodes.nodes] == [
        "Identity",
        "Identity",
        "Constant",
        "Reshape",
        "Add",
    ]
    assert set(map(id, graph.values())) <= set(map(id, nodes.values()))


def test_nodes_of_other_formats_are_not_lowered() -> None:
    node = Node("a", "BinaryOp", "", 1, (), ())
    assert find_site(node) is None
    assert lower(node) is None


def test_a_concat_of_an_open_size_and_a_number_has_the_number(tmp_path: Path) -> None:
    # A Squeeze after it then knows that its axis has one element.
    lines = [
        "Input x0 0 1 x0",
        "Convolution c 1 1 x0 a 0=4 1=3 3=2 6=36",
        "Input x1 0 1 x1 0=5 1=1 2=2",
        "Concat j 2 1 a x1 b 0=0",
        "Squeeze s 1 1 b out -23303=1,1",
    ]
    graph = made.graph(tmp_path, made.param(*lines))
    assert made.shapes_of(graph)["out"] == (6, 5)
