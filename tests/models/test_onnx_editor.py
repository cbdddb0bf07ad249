"""The ONNX editor: rewrites in the file's op set; all other parts stay the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small
from campaigns.models.paddle_writer import varint
from onnx import TensorProto, helper, numpy_helper

from zerostride.errors import ModelError
from zerostride.models.formats.onnx.format import edit
from zerostride.models.ir.rewrite import SELF, Earlier, Input, Rewrite, RewriteStep

ROW = RewriteStep("unsqueeze", (Input(1),), axes=(0,))
IN_ROW = (ROW, SELF(Input(0), Earlier(0)))


def described(
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[int]],
    weights: Mapping[str, Any] | None = None,
    *,
    outputs: Mapping[str, Sequence[int]],
    opset: int = 21,
    ir: int = 10,
) -> onnx.ModelProto:
    """A model that the checker passes: every output has its shape."""
    content = small.model(nodes, inputs, weights, opset=opset, outputs=list(outputs))
    content.ir_version = ir
    for entry, shape in zip(content.graph.output, outputs.values(), strict=True):
        entry.CopyFrom(helper.make_tensor_value_info(entry.name, TensorProto.FLOAT, shape))
    if ir < 4:
        for tensor in content.graph.initializer:
            content.graph.input.append(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    onnx.checker.check_model(content, full_check=True)
    return content


def edited(folder: Path, model: onnx.ModelProto, *rewrites: Rewrite) -> onnx.ModelProto:
    """The model after rewrites, written and read, and passed by the checker."""
    file, goal = folder / "model.onnx", folder / "edited.onnx"
    file.write_bytes(model.SerializeToString())
    editor = edit(file)
    editor.apply(rewrites)
    assert editor.save(goal)[0] == goal
    result = onnx.load(goal)
    onnx.checker.check_model(result, full_check=True)
    return result


def add(name: str, second: str, output: str, first: str = "x") -> Any:
    return helper.make_node("Add", [first, second], [output], name=name)


def weights(model: onnx.ModelProto) -> dict[str, np.ndarray[Any, Any]]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def unmarked(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node without the words that a port writes into its metadata."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.metadata_props[:]
    return copy


C = np.arange(5, dtype=np.float32)


def test_constant_with_one_reader_changes_in_place(tmp_path: Path) -> None:
    model = described([add("a", "c", "y")], {"x": (5, 5)}, {"c": C}, outputs={"y": (5, 5)})
    result = edited(tmp_path, model, Rewrite((0,), IN_ROW))
    assert [node.op_type for node in result.graph.node] == ["Add"]
    assert unmarked(result.graph.node[0]) == model.graph.node[0]
    (c,) = weights(result).values()
    assert c.shape == (1, 5)
    assert (c.ravel() == C).all()
    assert result.graph.initializer[0].raw_data == model.graph.initializer[0].raw_data


def test_changed_nodes_have_the_change_in_their_metadata(tmp_path: Path) -> None:
    nodes = [add("a", "z", "t"), helper.make_node("Relu", ["t"], ["y"], name="r")]
    nodes[0].metadata_props.add(key="pkg", value="kept")
    model = described(nodes, {"x": (5, 5), "z": (5,)}, outputs={"t": (5, 5), "y": (5, 5)})
    result = edited(tmp_path, model, Rewrite((0,), IN_ROW, "operands"))
    reshape, changed, untouched = result.graph.node
    marks = [{entry.key: entry.value for entry in one.metadata_props} for one in result.graph.node]
    assert marks[0] == {"zerostride.port": f"added for {changed.name}"}
    words = marks[1].pop("zerostride.port")
    assert words.startswith("operands: t0 = ")
    assert "z" in words
    assert marks[1] == {"pkg": "kept"}
    assert untouched == nodes[1]
    assert reshape.op_type in ("Reshape", "Unsqueeze")


def test_constant_with_other_readers_stays_and_gets_a_reshaped_copy(tmp_path: Path) -> None:
    nodes = [add("a", "c", "t"), add("b", "c", "u", "t"), add("d", "c", "y", "u")]
    model = described(nodes, {"x": (5, 5)}, {"c": C}, outputs={"y": (5, 5)})
    result = edited(tmp_path, model, Rewrite((0,), IN_ROW), Rewrite((2,), IN_ROW))
    arrays = weights(result)
    assert {name: array.shape for name, array in arrays.items()} == {"c": (5,), "c_1x5": (1, 5)}
    assert [node.input[1] for node in result.graph.node] == ["c_1x5", "c", "c_1x5"]
    assert result.graph.node[1] == model.graph.node[1]


def test_constant_changes_in_place_if_all_readers_agree(tmp_path: Path) -> None:
    nodes = [add("a", "c", "t"), add("b", "c", "y", "t")]
    model = described(nodes, {"x": (5, 5)}, {"c": C}, outputs={"y": (5, 5)})
    result = edited(tmp_path, model, Rewrite((1,), IN_ROW), Rewrite((0,), IN_ROW))
    assert {name: array.shape for name, array in weights(result).items()} == {"c": (1, 5)}


def test_constant_wanted_in_two_shapes_is_stored_twice(tmp_path: Path) -> None:
    nodes = [add("a", "c", "t"), add("b", "c", "y", "t")]
    model = described(nodes, {"x": (5, 5)}, {"c": C}, outputs={"y": (5, 5)})
    column = (RewriteStep("unsqueeze", (Input(1),), axes=(1,)), SELF(Input(0), Earlier(0)))
    result = edited(tmp_path, model, Rewrite((0,), IN_ROW), Rewrite((1,), column))
    shapes = {name: array.shape for name, array in weights(result).items()}
    assert shapes == {"c": (5,), "c_1x5": (1, 5), "c_5x1": (5, 1)}


def test_constant_that_is_an_output_keeps_its_shape(tmp_path: Path) -> None:
    model = described(
        [add("a", "c", "y")], {"x": (5, 5)}, {"c": C}, outputs={"y": (5, 5), "c": (5,)}
    )
    result = edited(tmp_path, model, Rewrite((0,), IN_ROW))
    assert weights(result)["c"].shape == (5,)
    assert result.graph.output == model.graph.output


def test_equal_reshapes_of_a_tensor_are_one_node(tmp_path: Path) -> None:
    nodes = [add("a", "v", "t"), add("b", "v", "y", "t")]
    model = described(nodes, {"x": (5, 5), "v": (5,)}, outputs={"y": (5, 5)})
    result = edited(tmp_path, model, Rewrite((1,), IN_ROW), Rewrite((0,), IN_ROW))
    assert [node.op_type for node in result.graph.node] == ["Unsqueeze", "Add", "Add"]
    assert [list(node.input)[1] for node in result.graph.node[1:]] == ["v_unsqueeze"] * 2
    (info,) = (entry for entry in result.graph.value_info if entry.name == "v_unsqueeze")
    assert [dim.dim_value for dim in info.type.tensor_type.shape.dim] == [1, 5]


@pytest.mark.parametrize("opset", [11, 13])
def test_numbers_are_attributes_or_inputs_by_op_set(tmp_path: Path, opset: int) -> None:
    model = described(
        [add("a", "v", "y")], {"x": (5, 5), "v": (5,)}, outputs={"y": (5, 5)}, opset=opset, ir=8
    )
    result = edited(tmp_path, model, Rewrite((0,), IN_ROW))
    unsqueeze = result.graph.node[0]
    assert len(unsqueeze.attribute) == (opset < 13)
    assert len(unsqueeze.input) == 1 + (opset >= 13)


def test_reshaped_results_keep_their_names(tmp_path: Path) -> None:
    nodes = [add("a", "z", "t"), helper.make_node("Relu", ["t"], ["y"], name="r")]
    shape = (2, 3, 4)
    model = described(nodes, {"x": shape, "z": shape}, outputs={"t": shape, "y": shape})
    steps = (
        RewriteStep("reshape", (Input(0),), shape=(6, 4)),
        RewriteStep("reshape", (Input(1),), shape=(6, 4)),
        SELF(Earlier(0), Earlier(1)),
        RewriteStep("reshape", (Earlier(2),), shape=shape),
    )
    result = edited(tmp_path, model, Rewrite((0,), steps))
    ops = [node.op_type for node in result.graph.node]
    assert ops == ["Reshape", "Reshape", "Add", "Reshape", "Relu"]
    assert result.graph.node[3].output[0] == "t"
    assert result.graph.node[4] == model.graph.node[1]
    assert result.graph.output == model.graph.output


def test_initializers_of_old_files_are_inputs_too(tmp_path: Path) -> None:
    model = described(
        [add("a", "c", "t"), add("b", "c", "y", "t")],
        {"x": (5, 5)},
        {"c": C},
        outputs={"y": (5, 5)},
        opset=8,
        ir=3,
    )
    result = edited(tmp_path, model, Rewrite((0,), IN_ROW), Rewrite((1,), IN_ROW))
    dims = result.graph.input[1].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [1, 5]
    assert weights(result)["c"].shape == (1, 5)
    beside = edited(tmp_path, model, Rewrite((0,), IN_ROW))
    assert [node.op_type for node in beside.graph.node] == ["Add", "Add"]
    assert [entry.name for entry in beside.graph.input] == ["x", "c", "c_1x5"]
    assert weights(beside)["c"].shape == (5,)


def test_default_of_an_input_is_no_constant(tmp_path: Path) -> None:
    model = described([add("a", "c", "y")], {"x": (5, 5)}, {"c": C}, outputs={"y": (5, 5)})
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, [5]))
    result = edited(tmp_path, model, Rewrite((0,), IN_ROW))
    assert [node.op_type for node in result.graph.node] == ["Unsqueeze", "Add"]
    assert weights(result)["c"].shape == (5,)
    assert result.graph.input == model.graph.input


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({"value": numpy_helper.from_array(C)}, (1, 5)),
        ({"value_floats": C.tolist()}, (1, 5)),
        ({"value_float": 2.5}, (1,)),
    ],
)
def test_constant_nodes_change_in_place(tmp_path: Path, value: Any, shape: tuple[int, ...]) -> None:
    constant = helper.make_node("Constant", [], ["c"], name="k", **value)
    model = described([constant, add("a", "c", "y")], {"x": (5, 5)}, outputs={"y": (5, 5)})
    result = edited(tmp_path, model, Rewrite((1,), IN_ROW))
    assert [node.op_type for node in result.graph.node] == ["Constant", "Add"]
    (attribute,) = result.graph.node[0].attribute
    array = numpy_helper.to_array(attribute.t)
    assert array.shape == shape
    assert array.ravel().tolist() == (C.tolist() if array.size > 1 else [2.5])


def test_constant_node_with_other_readers_gets_a_copy(tmp_path: Path) -> None:
    constant = helper.make_node("Constant", [], ["c"], name="k", value=numpy_helper.from_array(C))
    nodes = [constant, add("a", "c", "t"), add("b", "c", "y", "t")]
    model = described(nodes, {"x": (5, 5)}, outputs={"y": (5, 5)})
    result = edited(tmp_path, model, Rewrite((2,), IN_ROW))
    assert [node.op_type for node in result.graph.node] == ["Constant", "Constant", "Add", "Add"]
    assert result.graph.node[0] == model.graph.node[0]
    assert result.graph.node[2] == model.graph.node[1]


def branches(capture: str) -> onnx.ModelProto:
    """An If whose branches read a tensor from outside."""

    def body(op: str) -> Any:
        node = helper.make_node(op, ["x", capture], ["r"], name=f"in_{op}")
        result = helper.make_tensor_value_info("r", TensorProto.FLOAT, (5, 5))
        return helper.make_graph([node], op, [], [result])

    choice = helper.make_node(
        "If", ["p"], ["y"], name="if", then_branch=body("Add"), else_branch=body("Mul")
    )
    weights = {"c": C} if capture == "c" else None
    inputs = {"x": (5, 5)} | ({} if weights else {"v": (5,)})
    model = small.model([choice], inputs, weights)
    model.graph.input.append(helper.make_tensor_value_info("p", TensorProto.BOOL, ()))
    model.graph.output[0].type.tensor_type.shape.SetInParent()
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, (5, 5)))
    model.ir_version = 10
    return model


def test_bodies_reshape_outer_values(tmp_path: Path) -> None:
    then = Rewrite((0, "then_branch", 0), IN_ROW)
    other = Rewrite((0, "else_branch", 0), IN_ROW)
    one = edited(tmp_path, branches("c"), then)
    assert {name: a.shape for name, a in weights(one).items()} == {"c": (5,), "c_1x5": (1, 5)}
    both = edited(tmp_path, branches("c"), then, other)
    assert {name: a.shape for name, a in weights(both).items()} == {"c": (1, 5)}
    inside = edited(tmp_path, branches("v"), other)
    graphs = {a.name: a.g for a in inside.graph.node[0].attribute}
    assert [node.op_type for node in graphs["else_branch"].node] == ["Unsqueeze", "Mul"]
    assert [node.op_type for node in graphs["then_branch"].node] == ["Add"]


def test_untouched_parts_stay_the_same(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="r", doc_string="said"),
        add("a", "c", "t", "r"),
        helper.make_node("LeakyRelu", ["t"], ["y"], alpha=0.25),
    ]
    model = described(nodes, {"x": (5, 5)}, {"c": C, "d": C}, outputs={"y": (5, 5)})
    helper.set_model_props(model, {"who": "me"})
    model.doc_string, model.producer_name = "words", "somebody"
    result = edited(tmp_path, model, Rewrite((1,), IN_ROW))
    result.graph.initializer[0].dims[:] = [5]
    assert len(result.graph.node[1].metadata_props) == 1
    del result.graph.node[1].metadata_props[:]
    assert result == model
    assert result.SerializeToString() == model.SerializeToString()


def test_file_without_rewrites_has_the_same_bytes(tmp_path: Path) -> None:
    model = described([add("a", "c", "y")], {"x": (5, 5)}, {"c": C}, outputs={"y": (5, 5)})
    # Fields in an order that no writer of today uses.
    data = model.graph.SerializeToString()
    odd = b"\x3a" + varint(len(data)) + data
    model.ClearField("graph")
    file = tmp_path / "model.onnx"
    file.write_bytes(odd + model.SerializeToString())
    editor = edit(file)
    editor.apply([])
    editor.save(tmp_path / "copy.onnx")
    assert (tmp_path / "copy.onnx").read_bytes() == file.read_bytes()


def test_added_names_are_new(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["v"], ["v_unsqueeze"], name="r"),
        add("a", "v", "t"),
        add("b", "c", "y", "t"),
        add("d", "c", "ints_0"),
    ]
    model = described(
        nodes,
        {"x": (5, 5), "v": (5,)},
        {"c": C, "c_1x5": C},
        outputs={"y": (5, 5), "v_unsqueeze": (5,), "ints_0": (5, 5)},
    )
    result = edited(tmp_path, model, Rewrite((1,), IN_ROW), Rewrite((2,), IN_ROW))
    names = [name for node in result.graph.node for name in node.output]
    names += [tensor.name for tensor in result.graph.initializer]
    assert len(set(names)) == len(names)
    assert {"v_unsqueeze_2", "c_1x5_2", "ints_0_2"} < set(names)


def external(folder: Path) -> Path:
    """A model with its constants in a file of their own."""
    model = described([add("a", "c", "y")], {"x": (5, 5)}, {"c": C}, outputs={"y": (5, 5)})
    file = folder / "model.onnx"
    onnx.save(model, file, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return file


def test_external_data_stays_external(tmp_path: Path) -> None:
    file = external(tmp_path)
    before = (tmp_path / "weights.bin").read_bytes()
    editor = edit(file)
    editor.apply([Rewrite((0,), IN_ROW)])
    assert editor.save(tmp_path / "edited.onnx") == (tmp_path / "edited.onnx",)
    other = tmp_path / "other"
    other.mkdir()
    assert editor.save(other / "m.onnx") == (other / "m.onnx", other / "weights.bin")
    for written in (tmp_path / "edited.onnx", other / "m.onnx"):
        (tensor,) = onnx.load(written).graph.initializer
        assert numpy_helper.to_array(tensor).tolist() == [C.tolist()]
    assert (tmp_path / "weights.bin").read_bytes() == before


def test_functions_are_inlined_where_the_reader_inlines_them(tmp_path: Path) -> None:
    function = helper.make_function(
        "own",
        "twice",
        ["a", "b"],
        ["c"],
        [
            helper.make_node("Add", ["a", "b"], ["m"], name="one"),
            helper.make_node("Add", ["m", "b"], ["c"], name="two"),
        ],
        [helper.make_opsetid("", 21)],
    )
    model = small.model(
        [helper.make_node("twice", ["x", "v"], ["y"], domain="own", name="call")],
        {"x": (5, 5), "v": (5,)},
        functions=[function],
        domains=["own"],
    )
    model.ir_version = 10
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, (5, 5)))
    result = edited(tmp_path, model, Rewrite((1,), IN_ROW))
    assert [node.op_type for node in result.graph.node] == ["Add", "Unsqueeze", "Add"]


def test_other_ops_and_numbers_are_inserted(tmp_path: Path) -> None:
    """PRelu written out, with the constant that it needs."""
    model = described(
        [helper.make_node("PRelu", ["x", "c"], ["y"], name="p")],
        {"x": (5, 5)},
        {"c": C},
        outputs={"y": (5, 5)},
    )
    steps = (
        RewriteStep("number", (), attributes={"value": 0.0, "dtype": "float32"}),
        RewriteStep("less", (Input(0), Earlier(0))),
        RewriteStep("multiply", (Input(1), Input(0))),
        RewriteStep("where", (Earlier(1), Earlier(2), Input(0))),
    )
    result = edited(tmp_path, model, Rewrite((0,), steps))
    assert [node.op_type for node in result.graph.node] == ["Constant", "Less", "Mul", "Where"]
    assert result.graph.node[-1].name == "p"


def test_attributes_are_changed_and_removed(tmp_path: Path) -> None:
    node = helper.make_node("Add", ["x", "c"], ["y"], name="a", broadcast=1, axis=1)
    model = small.model([node], {"x": (2, 5)}, {"c": C}, opset=6)
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    editor = edit(file)
    editor.apply([Rewrite((0,), (SELF(Input(0), Input(1), axis=None, broadcast=0),))])
    editor.save(file)
    (result,) = onnx.load(file).graph.node
    assert {a.name: a.i for a in result.attribute} == {"broadcast": 0}


def test_op_sets_without_expand_use_tile(tmp_path: Path) -> None:
    node = helper.make_node("Add", ["x", "v"], ["y"], name="a", broadcast=1, axis=0)
    model = described([node], {"x": (3, 5), "v": (3,)}, outputs={"y": (3, 5)}, opset=6, ir=3)
    steps = (
        RewriteStep("unsqueeze", (Input(1),), axes=(1,)),
        RewriteStep("expand", (Earlier(0),), shape=(3, 5)),
        SELF(Input(0), Earlier(1), broadcast=None, axis=None),
    )
    result = edited(tmp_path, model, Rewrite((0,), steps))
    assert [node.op_type for node in result.graph.node] == ["Unsqueeze", "Tile", "Add"]
    assert not result.graph.node[-1].attribute


@pytest.mark.parametrize(
    ("opset", "step", "words"),
    [
        (7, RewriteStep("expand", (Input(1),), shape=(5, 5)), "no Expand"),
        (5, RewriteStep("expand", (Input(0),), shape=(5, 5)), "no Expand"),
        (13, RewriteStep("reshape", (Input(1),), shape=(0, 5)), "size of 0"),
        (13, RewriteStep("fmod", (Input(0), Input(1))), "no fmod"),
        (8, RewriteStep("where", (Input(0), Input(0), Input(1))), "no Where"),
        (13, RewriteStep("nothing", (Input(0),)), "nothing"),
    ],
)
def test_impossible_rewrite_is_refused(
    tmp_path: Path, opset: int, step: RewriteStep, words: str
) -> None:
    model = small.model([add("a", "v", "y")], {"x": (5, 5), "v": (5,)}, opset=opset)
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    rewrite = Rewrite((0,), (step, SELF(Input(0), Earlier(0))))
    editor = edit(file)
    assert words in str(editor.refuses(rewrite))
    with pytest.raises(ModelError, match=f"'a'.*{words}"):
        editor.apply([rewrite])


def test_unknown_place_is_refused(tmp_path: Path) -> None:
    model = small.model([add("a", "v", "y")], {"x": (5, 5), "v": (5,)})
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    for place in ((1,), (0, "then_branch", 0), ("x",)):
        with pytest.raises(ModelError, match="no node"):
            edit(file).apply([Rewrite(place, IN_ROW)])


def test_sparse_constant_is_reshaped_by_a_node(tmp_path: Path) -> None:
    model = described([add("a", "s", "y")], {"x": (5, 5), "s": (5,)}, outputs={"y": (5, 5)})
    del model.graph.input[1]
    values = numpy_helper.from_array(np.ones(2, np.float32), "s")
    indices = numpy_helper.from_array(np.array([0, 3], np.int64), "s_at")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [5]))
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    editor = edit(file)
    editor.apply([Rewrite((0,), IN_ROW)])
    editor.save(file)
    assert [node.op_type for node in onnx.load(file).graph.node] == ["Unsqueeze", "Add"]
