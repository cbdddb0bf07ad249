"""Ports of models: the smallest rewrite of each kind, computed and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small
from onnx import TensorProto, helper
from ported import by, model_of, one, ported

import zerostride as zs

Shape = tuple[int, ...]
pytestmark = pytest.mark.filterwarnings("ignore::zerostride.EngineVersionWarning")


# The passes, each at what it is for.


def test_constant_is_reshaped_before_a_node_is_inserted(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Add", {"x": (5, 5)}, {"c": (5,)}), "ncnn", via="none")
    assert report.ok
    assert by(report) == ["constants"]
    assert [finding.verdict for finding in report.before] == ["different"]
    (change,) = report.changes
    assert change.before == ("y(5,5) = Add(x(5,5), c(5))",)
    assert change.after == ("y(5,5) = Add(x(5,5), c(1,5))",)
    assert change.elements == 25


def test_size_trap_is_removed(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Add", {"x": (3, 5)}, {"c": (5,)}), "ncnn", via="none")
    assert [finding.verdict for finding in report.before] == ["same_here"]
    assert report.ok


def test_computed_operand_is_reshaped_by_a_node(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Sub", {"x": (5,), "z": (5, 5)}), "ncnn", via="none")
    assert report.ok
    assert by(report) == ["operands"]
    assert len(report.changes[0].after) == 2


def test_operands_are_exchanged_where_their_order_does_not_matter(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Mul", {"x": (1, 4), "z": (3, 4)}), "litert-gpu")
    assert report.ok
    assert by(report) == ["swap"]
    report = ported(tmp_path / _new(tmp_path), one("Sub", {"x": (1, 4), "z": (3, 4)}), "litert-gpu")
    assert report.ok
    assert by(report) == ["expand"]


def _new(folder: Path) -> str:
    (folder / "again").mkdir()
    for file in folder.glob("*.onnx"):
        file.unlink()
    return "again"


@pytest.mark.parametrize("target", ["coreml", "litert-gpu", "tosa"])
def test_axes_are_merged_for_engines_with_few(tmp_path: Path, target: str) -> None:
    shape = (2, 3, 4, 2, 3, 2, 2)
    report = ported(tmp_path, one("Add", {"x": shape}, {"c": (4, 2, 3, 2, 2)}), target)
    assert report.ok
    assert by(report) == ["merge"]


def test_operand_is_broadcast_first_if_nothing_stretches(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Add", {"x": (3, 1), "z": (1, 4)}), "stablehlo")
    assert report.ok
    assert by(report) == ["expand"]


def test_axes_beyond_the_engines_limit_are_left(tmp_path: Path) -> None:
    x, z = (2, 1, 3, 1, 2, 1, 3, 1), (1, 3, 1, 2, 1, 3, 1, 2)
    report = ported(tmp_path, one("Add", {"x": x, "z": z}), "tensorflow")
    assert report.ok
    assert by(report) == ["expand"]


@pytest.mark.parametrize("size", [4, 40_000])  # the larger is computed at smaller sizes
def test_expand_to_less_than_the_result_gets_the_results_shape(tmp_path: Path, size: int) -> None:
    model = model_of(
        [small.node("Expand", "x s")], {"x": (3, 1)}, {"s": np.array([1, size], np.int64)}
    )
    report = ported(tmp_path, model, "torch")
    assert report.ok
    assert by(report) == ["target"]


def test_many_operands_become_a_chain_for_a_converter_of_two(tmp_path: Path) -> None:
    """pnnx keeps two operands of a Max."""
    model = one("Max", {"x": (4, 5, 5), "z": (4, 5, 5), "w": (5,)})
    report = ported(tmp_path, model, "ncnn")
    assert report.ok
    assert by(report) == ["equivalent"]
    assert [node.op_type for node in onnx.load(tmp_path / "ported.onnx").graph.node][-2:] == [
        "Max",
        "Max",
    ]


def test_unsupported_slope_is_decomposed(tmp_path: Path) -> None:
    model = one("PRelu", {"x": (2, 3, 4, 5)}, {"s": np.full((4, 1), -0.5, np.float32)})
    report = ported(tmp_path, model, "torch")
    assert report.ok
    assert by(report) == ["equivalent"]
    ops = [node.op_type for node in onnx.load(tmp_path / "ported.onnx").graph.node]
    assert ops == ["Constant", "Less", "Mul", "Where"]


def test_slopes_are_reshaped_where_a_vector_means_channels(tmp_path: Path) -> None:
    model = one("PRelu", {"x": (2, 5, 5)}, {"s": np.linspace(0, 1, 5, dtype=np.float32)})
    report = ported(tmp_path, model, "openvino")
    assert report.ok
    assert by(report) == ["constants"]


def test_products_addend_is_ported(tmp_path: Path) -> None:
    weights = {"w": (6, 5), "c": np.arange(5, dtype=np.float32).reshape(5, 1)}
    report = ported(tmp_path, one("Gemm", {"x": (5, 6)}, weights), "mnn")
    assert [finding.verdict for finding in report.before] == ["different"]
    assert {change.op for change in report.changes} <= {"Gemm"}
    # MNN takes a column of as many numbers as there are columns for a row, in any shape.
    assert report.ok or "not ported" in report.findings[0].notes[-1]


def test_matrices_that_would_be_paired_are_ported(tmp_path: Path) -> None:
    report = ported(tmp_path, one("MatMul", {"x": (3, 1, 4, 5), "z": (1, 3, 5, 4)}), "mnn")
    assert [finding.verdict for finding in report.before] == ["different"]
    assert report.ok
    assert by(report) == ["expand"]


@pytest.mark.parametrize("sizes", [(3, 2, 5), (3, 1, 1)])
def test_vector_in_a_product_is_no_matrix_of_one_row(tmp_path: Path, sizes: Any) -> None:
    model = model_of([small.node("MatMul", "x w")], {"x": sizes}, {"w": sizes[-1:]})
    for target in ("tensorflow", "litert"):
        report = ported(tmp_path, model, target)
        assert not report.changes
        for file in tmp_path.iterdir():
            file.unlink()


def test_scale_of_exactly_the_normalised_axes_is_ported(tmp_path: Path) -> None:
    model = one("LayerNormalization", {"x": (2, 3, 4)}, {"s": (1, 4), "b": (4,)})
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    report = zs.port(file, "torch", tmp_path / "ported.onnx")
    assert report.ok
    assert by(report) == ["constants"]


@pytest.mark.parametrize(("shape", "axis"), [((3, 4), 0), ((4,), 1), ((3,), 0)])
def test_axis_attribute_becomes_explicit(tmp_path: Path, shape: Shape, axis: int) -> None:
    """Before opset 7 nothing says NumPy's rule, so the operand is laid out in full."""
    c = np.random.default_rng(0).random(shape, np.float32)
    node = small.node("Sub", "x c", broadcast=1, axis=axis)
    report = ported(tmp_path, model_of([node], {"x": (3, 4, 5)}, {"c": c}, opset=6), "torch")
    assert report.ok
    assert by(report) == ["attributes"]
    ops = [node.op_type for node in onnx.load(tmp_path / "ported.onnx").graph.node]
    assert ops == ["Tile", "Sub"]


# The batch axis.


def test_engines_of_samples_get_the_models_own_shapes(tmp_path: Path) -> None:
    model = model_of(
        [small.node("Add", "x c", "t", name="a"), small.node("Mul", "t v", name="b")],
        {"x": (1, 7, 5, 5), "v": (1, 5)},
        {"c": (5,)},
    )
    report = ported(tmp_path, model, "ncnn", via="none")
    assert report.ok
    shapes = {
        tensor.name: tuple(tensor.dims)
        for tensor in onnx.load(tmp_path / "ported.onnx").graph.initializer
    }
    assert shapes["c"][-3:] == (1, 1, 5)


def test_named_batch_axis_is_used(tmp_path: Path) -> None:
    model = one("Add", {"x": (8, 5, 5)}, {"c": (5,)})
    report = ported(tmp_path, model, "ncnn", batch_axis=0, via="none")
    assert report.ok
    assert report.changes


def test_broadcast_across_the_batch_is_left(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Add", {"x": (1, 5), "z": (4, 5)}), "ncnn", via="none")
    assert not report.ok
    assert report.changes == ()


def test_batch_axis_of_a_result_is_kept(tmp_path: Path) -> None:
    """Squeezed away and put back it would be an axis like any other to what reads the result."""
    shape = (1, 1, 1, 1, 1, 1, 5)
    nodes = [
        small.node("Sum", "x x", "t", name="a"),
        small.node("Sum", "t x", "u", name="b"),
        small.node("Mul", "u v", name="c"),
    ]
    report = ported(tmp_path, model_of(nodes, {"x": shape, "v": ()}), "ncnn", via="none")
    assert report.ok
    assert by(report) == ["merge"] * 3
    assert any("no tensors of more than 4 axes" in note for note in report.notes)


# What a converter does by itself, and what it leaves.


def test_pnnx_inserts_ones_itself(tmp_path: Path) -> None:
    model = one("Add", {"x": (4, 5, 5)}, {"c": (5,)})
    assert by(ported(tmp_path, model, "ncnn", via="pnnx")) == []
    assert by(ported(tmp_path / _new(tmp_path), model, "ncnn", via="none")) == ["constants"]


def test_pnnx_leaves_five_axes(tmp_path: Path) -> None:
    model = one("Add", {"x": (4, 2, 3, 5, 5)}, {"c": (5, 5)})
    report = ported(tmp_path, model, "ncnn", via="pnnx")
    assert report.ok
    assert by(report) == ["merge"]


def test_pnnx_inserts_ones_for_open_sizes(tmp_path: Path) -> None:
    model = one("Add", {"x": ("A", "H", "W"), "z": ("W",)})
    report = ported(tmp_path, model, "ncnn", via="pnnx")
    assert report.ok
    assert by(report) == []


# Sizes that are not known.


def test_ones_are_inserted_for_open_sizes(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Add", {"x": ("H", "W"), "z": ("W",)}), "ncnn", via="none")
    assert report.ok
    assert by(report) == ["operands"]
    assert "H" in str(report.changes[0].after)


def test_conditional_rewrite_needs_the_given_condition(tmp_path: Path) -> None:
    model = one("Add", {"x": ("N", 4, 5), "z": (4, "M")})
    real = {"N": 1, "M": 5}
    free = ported(tmp_path, model, "stablehlo", real=real)
    assert free.changes == ()
    assert not free.ok
    facts = ["N == 1", "M == 5"]
    given = ported(tmp_path / _new(tmp_path), model, "stablehlo", real=real, facts=facts)
    assert given.ok


def test_named_sizes_may_be_given_as_numbers(tmp_path: Path) -> None:
    model = one("Add", {"x": ("N", 4, 5, 5, 5, 5), "z": (5, 5)})
    report = ported(tmp_path, model, "coreml", sizes={"N": 4})
    assert report.ok
    assert report.changes


# Models of more than one node.


def test_constants_with_several_readers_are_copied(tmp_path: Path) -> None:
    nodes = [
        small.node("Add", "x c", "t", name="a"),
        small.node("Mul", "t c", "u", name="b"),
        small.node("Sub", "v c", "w", name="d"),
        small.node("Add", "u c", "y", name="e"),
    ]
    model = model_of(nodes, {"x": (5, 5), "v": (5,)}, {"c": (5,)}, outputs=("y", "w", "t"))
    report = ported(tmp_path, model, "ncnn", via="none")
    assert report.ok
    assert len(report.changes) == 3
    result = onnx.load(tmp_path / "ported.onnx")
    assert {t.name: tuple(t.dims) for t in result.graph.initializer} == {"c": (5,), "c_1x5": (1, 5)}
    assert [o.name for o in result.graph.output] == ["y", "w", "t"]


def test_nodes_in_bodies_are_ported(tmp_path: Path) -> None:
    def body(op: str) -> Any:
        node = helper.make_node(op, ["x", "v"], ["r"], name=f"in_{op}")
        result = helper.make_tensor_value_info("r", TensorProto.FLOAT, (5, 5))
        return helper.make_graph([node], op, [], [result])

    node = helper.make_node("If", ["p"], ["y"], then_branch=body("Add"), else_branch=body("Mul"))
    model = model_of([node], {"x": (5, 5), "v": (5,)})
    model.graph.input.append(helper.make_tensor_value_info("p", TensorProto.BOOL, ()))
    report = ported(tmp_path, model, "ncnn", via="none")
    assert len(report.changes) == 2
    assert report.ok
    assert all(change.node.startswith("If_0/") for change in report.changes)


def test_computed_constants_are_reshaped_after_their_node(tmp_path: Path) -> None:
    nodes = [
        small.node("DequantizeLinear", "q s", "c", name="d"),
        small.node("Add", "x c", name="a"),
    ]
    q = np.arange(5, dtype=np.int8)
    model = model_of(nodes, {"x": (5, 5)}, {"q": q, "s": np.float32(0.5)})
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    report = zs.port(file, "openvino", tmp_path / "o.onnx")
    assert report.changes == ()
    report = zs.port(file, "ncnn", tmp_path / "o.onnx", via="none")
    assert [change.node for change in report.changes] == ["a"]
    ops = [node.op_type for node in onnx.load(tmp_path / "o.onnx").graph.node]
    assert ops == ["DequantizeLinear", "Unsqueeze", "Add"]


def test_unportable_nodes_stay_with_a_reason(tmp_path: Path) -> None:
    nodes = [
        small.node("And", "p q", "r", name="logic"),
        small.node("Custom", "x", "t", name="own", domain="mine"),
        small.node("Add", "x c", name="a"),
    ]
    model = model_of(nodes, {"x": (5, 5)}, {"c": (5,)}, outputs=("y", "r", "t"), domains=["mine"])
    for name, shape in (("p", (5, 5)), ("q", (5,))):
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.BOOL, shape))
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    report = zs.port(file, "ncnn", tmp_path / "o.onnx", via="none")
    assert not report.ok
    assert [change.node for change in report.changes] == ["a"]
    left = {f.node: f.notes[-1] for f in report.findings if f.verdict != "same"}
    assert left.keys() == {"logic", "own"}
    assert "nothing is known" in left["own"]
    result = onnx.load(tmp_path / "o.onnx")
    assert result.graph.node[:2] == model.graph.node[:2]


def test_model_that_needs_nothing_stays_the_same_file(tmp_path: Path) -> None:
    report = ported(tmp_path, one("Add", {"x": (5, 5)}, {"c": (1, 5)}), "torch")
    assert report.ok
    assert (tmp_path / "ported.onnx").read_bytes() == (tmp_path / "model.onnx").read_bytes()
