"""LiteRT's files as graphs: tensors, constants, subgraphs, what is refused; without LiteRT."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from tflite_files import MODELS, Model, Tensor, of_one

import zerostride as zs
from zerostride.errors import ModelError
from zerostride.models.execute import execute, not_executed
from zerostride.models.findings import Verdict
from zerostride.models.flow.resolved import resolved
from zerostride.models.formats import read_model
from zerostride.models.formats.tflite import find_site, tensors
from zerostride.models.ir.graph import Graph, Quantisation, Value
from zerostride.models.ir.site import Kind
from zerostride.models.options import ModelOptions


def read(model: Model, folder: Path) -> Graph:
    return read_model(model.write(folder / "m.tflite"))


def value(graph: Graph, name: str) -> Value:
    return next(value for value in graph.values() if value.name == name)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_size_of_small_models_is_known(name: str, tmp_path: Path) -> None:
    graph = resolved(read(MODELS[name](), tmp_path))[0]
    sizes = [value.shape for value in graph.values() if value.name]
    assert None not in sizes
    if name != "open_sizes":
        assert all(value.known for value in graph.values())


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8", "uint8", "int64", "bool"])
@pytest.mark.parametrize("behind", [False, True])
def test_the_numbers_of_a_constant(dtype: str, behind: bool, tmp_path: Path) -> None:
    model = of_one("TANH", (1,))
    model.behind = behind
    array = (np.arange(24).reshape(2, 3, 4) % 2).astype(dtype)
    model.main.constant("c", array)
    model.main.op("SHAPE", "c", "s")
    constant = value(read(model, tmp_path), "c")
    assert (constant.shape, constant.dtype, constant.constant) == ((2, 3, 4), dtype, True)
    np.testing.assert_array_equal(constant.data(), array)


def test_numbers_of_four_bits(tmp_path: Path) -> None:
    model = of_one("TANH", (1,))
    model.main.add("c", (3,), "int4", data=bytes([0x8F, 0x07]), scales=(0.5,))
    model.main.op("DEQUANTIZE", "c", "d")
    graph = read(model, tmp_path)
    assert value(graph, "c").data().tolist() == [-1, -8, 7]
    assert execute(graph, {}, ["d"])["d"].tolist() == [-0.5, -4.0, 3.5]


def test_a_constant_of_another_count_is_an_error_when_it_is_read(tmp_path: Path) -> None:
    model = of_one("TANH", (1,))
    model.main.tensors.append(Tensor("c", (5,), "float32", data=bytes(8)))
    model.main.op("TANH", "c", "d")
    graph = read(model, tmp_path)
    with pytest.raises(ModelError, match=r"constant 'c' of shape \(5,\): the file has 2 numbers"):
        value(graph, "c").data()


def test_no_elements_need_no_bytes(tmp_path: Path) -> None:
    model = of_one("TANH", (2, 1))
    model.main.add("shape", (0,), "int32", data=b"")
    model.main.op("RESHAPE", "y shape", "n")
    assert value(read(model, tmp_path), "shape").content == ()


# Quantised tensors.


def test_scales_of_a_tensor_and_of_channels(tmp_path: Path) -> None:
    graph = read(MODELS["quantised"](), tmp_path)
    assert value(graph, "b").quantised == Quantisation((np.float32(0.05),), (0,))
    weights = value(graph, "w").quantised
    assert weights is not None
    assert (len(weights.scales), weights.axis) == (6, 0)
    assert value(graph, "x").quantised is None


def test_quantised_numbers_are_judged_as_reals(tmp_path: Path) -> None:
    """LiteRT ends the process on int8 numbers without scales."""
    path = MODELS["quantised"]().write(tmp_path / "m.tflite")
    assert zs.audit(path, "litert").ok
    plain = of_one("ADD", (2, 3), (3,), dtype="int8").write(tmp_path / "plain.tflite")
    assert not zs.audit(plain, "litert").ok


def test_a_quantised_sum_is_rounded_to_the_results_scale(tmp_path: Path) -> None:
    graph = read(MODELS["quantised"](), tmp_path)
    x = np.full((1, 4, 4, 3), 0.52, np.float32)
    numbers = execute(graph, {"x": x}, ["q", "s"])
    assert numbers["q"].ravel()[:3].tolist() == [29, 29, 29]  # 0.52 / 0.02 + 3
    # (0.52 - 1, 0.52 + 0.25, 0.52 + 3) / 0.04 - 1
    assert numbers["s"].ravel()[:3].tolist() == [-13, 18, 87]


def test_half_weights_behind_dequantize_are_constants(tmp_path: Path) -> None:
    graph = read(MODELS["residual"](), tmp_path)
    assert value(graph, "slope").constant
    (site,) = (find_site(node) for node in graph.nodes if node.op == "PRELU")
    assert site is not None
    assert site.operands[1].constant


# Sparse constants, by hand: rows of blocks.


def test_a_sparse_matrix_of_rows() -> None:
    """4x4 in compressed rows: entries of row 0 at 1; row 2 at 0, 3; row 3 at 2."""
    indices = np.array([1, 0, 3, 2], np.uint8)
    segments = np.array([0, 1, 1, 3, 4], np.int32)
    layout = tensors.Sparsity(
        (0, 1),
        (),
        (
            tensors.Axis(4),
            tensors.Axis(
                0,
                tensors.Vector(segments.tobytes(), 0, 5, "int32"),
                tensors.Vector(indices.tobytes(), 0, 4, "uint8"),
            ),
        ),
    )
    flat = np.array([5, 6, 7, 8], np.float32)
    dense = tensors.dense(flat, (4, 4), layout)
    assert dense.tolist() == [[0, 5, 0, 0], [0, 0, 0, 0], [6, 0, 0, 7], [0, 0, 8, 0]]


def test_a_sparse_matrix_of_blocks() -> None:
    """4x4 in blocks of 2x2: the second block of the first row of blocks."""
    layout = tensors.Sparsity(
        (0, 1, 2, 3),
        (0, 1),
        (
            tensors.Axis(2),
            tensors.Axis(
                0,
                tensors.Vector(np.array([0, 1, 1], np.int32).tobytes(), 0, 3, "int32"),
                tensors.Vector(np.array([1], np.int32).tobytes(), 0, 1, "int32"),
            ),
            tensors.Axis(2),
            tensors.Axis(2),
        ),
    )
    dense = tensors.dense(np.array([1, 2, 3, 4], np.float32), (4, 4), layout)
    assert dense.tolist() == [[0, 0, 1, 2], [0, 0, 3, 4], [0, 0, 0, 0], [0, 0, 0, 0]]


# Sizes.


def test_an_open_size_of_the_signature(tmp_path: Path) -> None:
    path = MODELS["open_sizes"]().write(tmp_path / "m.tflite")
    graph = resolved(read_model(path))[0]
    assert str(value(graph, "y").shape) == str(value(graph, "x").shape)
    assert not value(graph, "x").known
    for given in ({"sizes": {"x[0]": 7}}, {"input_shapes": {"x": (7, 5)}}):
        sized = resolved(ModelOptions(**given).read(path))[0]
        assert value(sized, "y").shape == (7, 5)


def test_sizes_inside_the_file_are_hints(tmp_path: Path) -> None:
    """The interpreter infers them from the inputs, whatever the file says."""
    model = of_one("ADD", (2, 3), (3,))
    model.main.tensors[-1] = Tensor("y", (9, 9), "float32")
    graph = resolved(read(model, tmp_path))[0]
    assert value(graph, "y").shape == (2, 3)


def test_a_callers_size_replaces_what_the_file_says_inside(tmp_path: Path) -> None:
    """The file's sizes are those for an input of one row."""
    model = MODELS["custom"]()
    model.main.tensors[0] = Tensor("x0", (1, 3), "float32", signature=(-1, 3))
    path = model.write(tmp_path / "m.tflite")
    assert value(resolved(read_model(path))[0], "y").shape == (2, 3)
    sized = resolved(ModelOptions(sizes={"x0[0]": 4}).read(path))[0]
    assert not value(sized, "y").known


# Subgraphs.


def test_branches_are_bodies_with_the_nodes_operands(tmp_path: Path) -> None:
    graph = read(MODELS["branches"](), tmp_path)
    (node,) = (node for node in graph.nodes if node.op == "IF")
    assert [body.name for body in node.bodies] == ["then_branch", "else_branch"]
    assert node.bodies[0].nodes[0].inputs[0] is node.inputs[1]
    assert [node.path for node in graph.nodes][1:] == [
        "IF_2/then_branch/ADD_2",
        "IF_2/else_branch/MUL_2",
    ]
    x = np.ones((2, 3), np.float32)
    for which, row in ((True, [1, 2, 3]), (False, [0, 1, 2])):
        assert execute(graph, {"which": [which], "x": x})["y"][0].tolist() == row


def test_a_loop_tests_its_condition_first(tmp_path: Path) -> None:
    graph = read(MODELS["loop"](), tmp_path)
    x = np.zeros((2, 3), np.float32)
    for start, turns in ((0, 3), (2, 1), (3, 0), (9, 0)):
        results = execute(graph, {"n": start, "x": x})
        assert results["y"][1].tolist() == [0, turns, 2 * turns]


def test_each_signature_is_an_entry(tmp_path: Path) -> None:
    graph = read(MODELS["signatures"](), tmp_path)
    assert [value.name for value in graph.inputs] == ["x", "b", "x:0", "b:1"]
    assert [value.name for value in graph.outputs] == ["y", "y:2"]
    places = [node.place for node in graph.nodes if not node.scope]
    assert places == [(0,), (1,), (2,)]
    report = zs.audit(tmp_path / "m.tflite", "litert")
    assert [finding.node for finding in report.findings] == [
        "ADD_2",
        "CALL_ONCE_1.op0/init/SUB_2",
        "MUL_1.2",
    ]


def test_a_subgraph_that_nothing_runs_is_judged(tmp_path: Path) -> None:
    model = of_one("TANH", (2, 3))
    _, inner = model.graph()
    inner.input("a", 2, 3)
    inner.input("b", 3)
    inner.op("ADD", "a b", "c")
    inner.output("c")
    report = zs.audit(model.write(tmp_path / "m.tflite"), "ncnn")
    assert [finding.op for finding in report.findings] == ["ADD"]


# Ops.


def test_a_custom_op_is_named(tmp_path: Path) -> None:
    path = MODELS["custom"]().write(tmp_path / "m.tflite")
    first, second = zs.audit(path, "litert").findings
    assert (first.op, first.verdict, first.reason) == ("MyOwnOp", Verdict.UNKNOWN, "custom_op")
    assert second.verdict is Verdict.SAME
    assert [node.op for node in not_executed(read_model(path))] == ["litert custom:MyOwnOp"]


def test_a_custom_op_that_was_read_about_has_its_number_of_operands(tmp_path: Path) -> None:
    for count, sites in ((2, 0), (3, 1)):
        model = of_one("TransformLandmarks", *[(1, 4, 4)] * count)
        path = model.write(tmp_path / f"{count}.tflite")
        assert len(zs.audit(path, "litert").findings) == sites


def test_an_activation_is_part_of_the_op(tmp_path: Path) -> None:
    path = of_one("SUB", (2,), (1,), fused_activation_function="RELU").write(tmp_path / "m.tflite")
    numbers = execute(read_model(path), {"x0": [3.0, 1.0], "x1": [2.0]})
    assert numbers["y"].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("condition", "fits"),
    [((2, 3), True), ((2,), True), ((), True), ((3,), False), ((1, 3), False)],
)
def test_the_older_select_takes_a_condition_along_axis_0(
    condition: tuple[int, ...], fits: bool, tmp_path: Path
) -> None:
    model = Model()
    model.main.input("c", *condition, dtype="bool")
    model.main.input("a", 2, 3)
    model.main.input("b", 2, 3)
    model.main.op("SELECT", "c a b", "y")
    model.main.output("y")
    (finding,) = zs.audit(model.write(tmp_path / "m.tflite"), "numpy").findings
    assert (finding.reason != "invalid_source") is fits


def test_options_of_another_op_count_as_left_out(tmp_path: Path) -> None:
    """As in the interpreter, which then reads none."""
    model = of_one("CONCATENATION", (2, 3), (2, 3), axis=1)
    data = bytearray(model.data())
    graph = read_model(model.write(tmp_path / "m.tflite"))
    assert graph.nodes[0].attributes["axis"] == 1
    at = data.index(bytes([10]), 0)
    kinds = [k for k in range(len(data)) if data[k] == 10]  # ConcatenationOptions
    for at in kinds:
        other = bytes(data[:at]) + bytes([11]) + bytes(data[at + 1 :])  # AddOptions
        (tmp_path / "o.tflite").write_bytes(other)
        try:
            changed = read_model(tmp_path / "o.tflite")
        except ModelError:
            continue
        if changed.nodes[0].attributes.get("axis") == 0:
            return
    raise AssertionError("no byte is the type of the options")


def test_every_builtin_op_that_broadcasts_is_modelled_or_named(tmp_path: Path) -> None:
    (finding,) = zs.audit(
        of_one("STABLEHLO_CLAMP", (2,), (2,), (2,)).write(tmp_path / "m.tflite"), "litert"
    ).findings
    assert finding.reason == "not_modelled"
    node = read_model(of_one("ADD_N", (2,), (2,), (2,)).write(tmp_path / "n.tflite")).nodes[0]
    site = find_site(node)
    assert site is not None
    assert (site.kind, site.rule.name) == (Kind.ELEMENTWISE, "none")


# What is refused.


def test_another_file(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(b"not a model at all, but long enough")
    with pytest.raises(ModelError, match="not a readable LiteRT model"):
        read_model(path)
    path.write_bytes(b"")
    with pytest.raises(ModelError, match="the file is empty"):
        read_model(path)


def test_a_truncated_file(tmp_path: Path) -> None:
    data = MODELS["residual"]().data()
    path = tmp_path / "m.tflite"
    for length in range(4, len(data) - 64, 97):
        path.write_bytes(data[:length])
        with pytest.raises(ModelError):
            read_model(path)


def test_a_file_of_2_gib(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    with path.open("wb") as file:
        file.truncate(2**31)
    with pytest.raises(ModelError, match="2147483648 bytes; models of 2 GiB and more are not read"):
        read_model(path)


def test_subgraphs_that_run_each_other(tmp_path: Path) -> None:
    model = Model()
    for k in range(2):
        graph = model.main if not k else model.graph()[1]
        graph.input("a", 2)
        graph.op("CALL", "a", "b", subgraph=1 - k)
        graph.op("CALL", "a", "c", subgraph=1 - k)
        graph.output("b")
    with pytest.raises(ModelError, match=r"run each other too often|deeper than"):
        read(model, tmp_path)


def test_an_operator_without_a_code(tmp_path: Path) -> None:
    data = bytearray(of_one("ADD", (2,), (2,)).data())
    for at in range(8, len(data) - 4):
        (word,) = struct.unpack_from("<I", data, at)
        if word == 0:
            struct.pack_into("<I", data, at, 7)
            (tmp_path / "m.tflite").write_bytes(data)
            try:
                read_model(tmp_path / "m.tflite")
            except ModelError as error:
                if "there is no operator code 7" in str(error):
                    return
            struct.pack_into("<I", data, at, 0)
    raise AssertionError("no word is the operator's code")
