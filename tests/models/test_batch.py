"""The batch axis that ncnn does not have: the values that carry it, lose it or keep it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small
from onnx import TensorProto, helper

import zerostride as zs
from zerostride.core.plan import Plan
from zerostride.models.audit.witness import find_batch_witness
from zerostride.models.transport.sample import without_batch


def audit(content: Any, via: str = "none", **more: Any) -> Any:
    """The audit for ncnn, op for op."""
    return small.audit(content, "ncnn", via, **more)


def operands(report: Any, name: str = "site") -> tuple[Any, ...]:
    """The shapes in which ncnn gets the operands of a node."""
    finding = next(f for f in report.findings if f.node == name)
    assert finding.target is not None, finding.message
    target = finding.target
    return target.operands if isinstance(target, Plan) else target.shapes


def added(x: Any, c: tuple[int, ...], **more: Any) -> Any:
    content = small.model([small.node("Add", "x c")], {"x": x}, {"c": c})
    return audit(content, **more)


# "A value that descends from a graph input carries batch axis 0 while its extent is 1 ..."


def test_input_with_a_leading_1_loses_it() -> None:
    assert operands(added((1, 3, 4), (3, 4))) == ((3, 4), (3, 4))


def test_input_with_another_extent_keeps_its_axis() -> None:
    assert operands(added((2, 3, 4), (3, 4))) == ((2, 3, 4), (3, 4))


def after(*nodes: Any, x: Any = (1, 3, 4, 5), c: Any = (5,), **weights: Any) -> Any:
    """x through some nodes, then added to a constant of lower rank."""
    all_nodes = [*nodes, small.node("Add", "h c")]
    return operands(audit(small.model(all_nodes, {"x": x}, {"c": c, **weights})))[0]


KEEP: list[tuple[str, Any, tuple[int, ...]]] = [
    ("an op that keeps axes", [small.node("Relu", "x", "h", name="n")], (3, 4, 5)),
    (
        "a transpose of the others",
        [small.node("Transpose", "x", "h", name="n", perm=[0, 2, 3, 1])],
        (4, 5, 3),
    ),
    ("a reshape behind it", [small.node("Reshape", "x s1", "h", name="n")], (12, 5)),
    ("a flatten", [small.node("Flatten", "x", "h", name="n")], (60,)),
    (
        "a squeeze of another",
        [
            small.node("ReduceMean", "x a1", "g", name="r"),
            small.node("Squeeze", "g a1", "h", name="n"),
        ],
        (4, 5),
    ),
    ("an unsqueeze behind it", [small.node("Unsqueeze", "x a1", "h", name="n")], (1, 3, 4, 5)),
    (
        "a reduction of another",
        [small.node("ReduceMean", "x a1", "h", name="n", keepdims=0)],
        (4, 5),
    ),
    ("a reduction that keeps axes", [small.node("ReduceMean", "x", "h", name="n")], (1, 1, 1)),
    ("a gather of another", [small.node("Gather", "x i0", "h", name="n", axis=1)], (4, 5)),
    ("a concatenation of another", [small.node("Concat", "x x", "h", name="n", axis=1)], (6, 4, 5)),
    ("a product with a matrix", [small.node("MatMul", "x m", "h", name="n")], (3, 4, 5)),
    ("a product with a vector", [small.node("MatMul", "x v", "h", name="n")], (3, 4)),
    ("a slice of another", [small.node("Slice", "x a0 a1 a1", "h", name="n")], (1, 4, 5)),
    (
        "a transpose of it and back",
        [
            small.node("Transpose", "x", "t", name="t", perm=[1, 0, 2, 3]),
            small.node("Transpose", "t", "h", name="n", perm=[1, 0, 2, 3]),
        ],
        (3, 4, 5),
    ),
    (
        "an unsqueeze before it and a squeeze",
        [
            small.node("Unsqueeze", "x a0", "t", name="t"),
            small.node("Squeeze", "t a0", "h", name="n"),
        ],
        (3, 4, 5),
    ),
    (
        "a product of itself",
        [small.node("Einsum", "x m", "h", name="n", equation="abcd,de->abce")],
        (3, 4, 5),
    ),
]
MOVE: list[tuple[str, Any, tuple[int, ...]]] = [
    (
        "a transpose of it",
        [small.node("Transpose", "x", "h", name="n", perm=[1, 0, 2, 3])],
        (3, 1, 4, 5),
    ),
    ("a squeeze of it", [small.node("Squeeze", "x a0", "h", name="n")], (3, 4, 5)),
    ("an unsqueeze before it", [small.node("Unsqueeze", "x a0", "h", name="n")], (1, 1, 3, 4, 5)),
    (
        "a reduction over it",
        [small.node("ReduceMean", "x a0", "h", name="n", keepdims=0)],
        (3, 4, 5),
    ),
    ("a gather along it", [small.node("Gather", "x i0", "h", name="n", axis=0)], (3, 4, 5)),
    (
        "a concatenation along it",
        [small.node("Concat", "x x", "h", name="n", axis=0)],
        (2, 3, 4, 5),
    ),
    (
        "its shape",
        [
            small.node("Shape", "x", "s", name="s"),
            small.node("Cast", "s", "h", name="n", to=TensorProto.FLOAT),
        ],
        (4,),
    ),
    (
        "an einsum that moves it",
        [small.node("Einsum", "x m", "h", name="n", equation="abcd,de->bace")],
        (3, 1, 4, 5),
    ),
]
INDICES = {
    "a0": np.array([0]),
    "a1": np.array([1]),
    "s1": np.array([1, 12, 5]),
    "i0": np.array(0),
    "m": (5, 5),
    "v": (5,),
}


@pytest.mark.parametrize(("what", "nodes", "shape"), KEEP, ids=[row[0] for row in KEEP])
def test_batch_axis_is_followed_through_ops(what: str, nodes: Any, shape: tuple[int, ...]) -> None:
    c = shape[-1:]
    assert after(*nodes, c=c, **INDICES) == shape


@pytest.mark.parametrize(("what", "nodes", "shape"), MOVE, ids=[row[0] for row in MOVE])
def test_batch_axis_is_not_moved_by_these_ops(
    what: str, nodes: Any, shape: tuple[int, ...]
) -> None:
    assert after(*nodes, c=shape[-1:], **INDICES) == shape


@pytest.mark.parametrize(
    ("node", "shape"),
    [
        (small.node("Gather", "x i0", "h", name="n", axis=0), (1, 4, 5)),
        (small.node("Gather", "x a0", "h", name="n", axis=0), (1, 1, 4, 5)),
        (small.node("Squeeze", "x a0", "h", name="n"), (1, 4, 5)),
        (small.node("ReduceMax", "x a0", "h", name="n", keepdims=0), (1, 4, 5)),
        (small.node("Transpose", "x", "h", name="n", perm=[1, 0, 2, 3]), (1, 1, 4, 5)),
        (small.node("Unsqueeze", "x a0", "h", name="n"), (1, 1, 1, 4, 5)),
        (small.node("Einsum", "x m", "h", name="n", equation="abcd,de->bace"), (1, 1, 4, 5)),
    ],
    ids=lambda value: value.op_type if hasattr(value, "op_type") else "",
)
def test_another_axis_of_extent_1_is_kept(node: Any, shape: Any) -> None:
    assert after(node, x=(1, 1, 4, 5), c=(5,), **INDICES) == shape


def test_time_axis_of_a_recurrence_is_kept() -> None:
    lstm = small.node("LSTM", "x w r", "y_all h", name="lstm", hidden_size=2)
    weights = {"w": (1, 8, 3), "r": (1, 8, 2)}
    # h is (directions, batch, hidden): its 1 is the number of directions.
    assert after(lstm, x=(1, 4, 3), c=(2,), **weights) == (1, 4, 2)


def test_product_that_sums_over_the_batch_keeps_it() -> None:
    content = small.model([small.node("MatMul", "x m")], {"x": (1, 4)}, {"m": (3, 4, 5)})
    (finding,) = audit(content).findings
    assert finding.reason == "batch_broadcast"


def test_sum_over_the_batch_axis_has_no_batch() -> None:
    product = small.node("MatMul", "one x", "h", name="n")
    assert after(product, x=(1, 5), c=(5,), one=(1, 1)) == (1, 5)
    flipped = small.node("Gemm", "x one", "h", name="n", transA=1)
    assert after(flipped, x=(1, 1), c=(1,), one=(1, 1)) == (1, 1)


def test_embedding_indices_carry_the_batch() -> None:
    gather = small.node("Gather", "table x", "h", name="n")
    content = small.model(
        [gather, small.node("Add", "h c")], {"x": (1, 6)}, {"table": (9, 4), "c": (4,)}
    )
    content.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    assert operands(audit(content))[0] == (6, 4)


# "... and loses it; a constant of the same rank with a leading 1 loses it too, one of lower rank
# stays."


def test_constant_of_the_same_rank_loses_its_1() -> None:
    assert operands(added((1, 3, 4), (1, 1, 4))) == ((3, 4), (1, 4))


def test_constant_of_lower_rank_is_kept() -> None:
    assert operands(added((1, 3, 4), (1, 4))) == ((3, 4), (1, 4))
    assert operands(added((1, 3, 4), (4,))) == ((3, 4), (4,))
    assert operands(added((1, 3, 4), ())) == ((3, 4), ())


def test_value_of_constants_alone_is_a_constant() -> None:
    nodes = [small.node("Exp", "c", "d", name="exp"), small.node("Add", "x d")]
    content = small.model(nodes, {"x": (1, 3, 4)}, {"c": (1, 1, 4)})
    assert operands(audit(content)) == ((3, 4), (1, 4))


def test_shape_without_remaining_axes_is_a_vector_of_1() -> None:
    report = added((1,), (1,))
    assert report.ok
    assert operands(report) == ((1,), (1,))


# "Broadcast across the batch is its own reason."


@pytest.mark.parametrize("c", [(2, 3, 4), (2, 1, 1), (2, 1, 3, 4)])
def test_broadcast_across_the_batch_is_different(c: tuple[int, ...]) -> None:
    (finding,) = added((1, 3, 4), c).findings
    assert (finding.verdict, finding.reason) == ("different", "batch_broadcast")
    assert "batch_axis" in finding.message


def test_constant_of_higher_rank_keeps_its_ones() -> None:
    assert operands(added((1, 3, 4), (1, 1, 3, 4))) == ((3, 4), (1, 1, 3, 4))


def test_each_of_two_inputs_loses_its_own_axis() -> None:
    """The batch of the one of lower rank, of extent 1, lies under another axis."""
    content = small.model([small.node("Add", "x z")], {"x": (1, 3, 4), "z": (1, 4)})
    assert operands(audit(content)) == ((3, 4), (4,))


# "An open size counts samples by its name, by the ops that it meets, or it is data."

CONV = small.node("Conv", "x k", "h", name="conv")
OPEN: list[tuple[str, Any, Any, bool]] = [
    ("a name that says so", "batch_size", [], True),
    ("a letter that says so", "N", [], True),
    ("a name that says nothing", "p2o.DynamicDimension.0", [], True),
    ("no name", None, [], True),
    ("another name", "frames", [], False),
    ("another name that a convolution gets", "frames", [CONV], True),
    ("a softmax along it", None, [small.node("Softmax", "x", "h", name="n", axis=0)], False),
    ("a softmax along another", None, [small.node("Softmax", "x", "h", name="n", axis=1)], True),
    ("a sum over it", None, [small.node("ReduceSum", "x a0", "h", name="n")], False),
    ("a mean over all", None, [small.node("ReduceMean", "x", "h", name="n")], False),
    ("its name, whatever is done", "batch", [small.node("ReduceMean", "x", "h", name="n")], True),
    (
        "a product that sums over it",
        None,
        [
            small.node("Transpose", "x", "t", name="t", perm=[1, 2, 3, 0]),
            small.node("MatMul", "t w", "h", name="n"),
        ],
        False,
    ),
    (
        "a convolution that it is the width of",
        None,
        [
            small.node("Transpose", "x", "t", name="t", perm=[2, 1, 3, 0]),
            small.node("Conv", "t k", "h", name="n"),
        ],
        False,
    ),
    (
        "another open size in the same place",
        "N",
        [
            small.node("ReduceSum", "z a0", "t", name="t"),
            small.node("Add", "x z", "h", name="n"),
        ],
        False,
    ),
]


@pytest.mark.parametrize(("what", "size", "nodes", "counts"), OPEN, ids=[row[0] for row in OPEN])
def test_names_decide_which_open_sizes_count_samples(
    what: str, size: Any, nodes: Any, counts: bool
) -> None:
    inputs = {"x": (size, 3, 4, 5)}
    if "z" in str([list(node.input) for node in nodes]):
        inputs["z"] = ("M", 3, 4, 5)
    weights = {"k": (3, 3, 1, 1), "w": (7, 2), "a0": np.array([0]), "c": (5,)}
    all_nodes = [*nodes, small.node("Add", "x c")]
    report = audit(small.model(all_nodes, inputs, weights, opset=13))
    dropped = operands(report)[0] == (3, 4, 5)
    assert dropped is counts


# "A number above 1 counts samples where it reaches, as axis 0, an op that is defined by samples."

FIXED: list[tuple[str, list[Any], bool]] = [
    ("a convolution", [CONV], True),
    (
        "a convolution after ops that keep axis 0",
        [
            small.node("ReduceMean", "x", "m", name="m", axes=[2, 3]),
            small.node("Conv", "m k", "h", name="n"),
        ],
        True,
    ),
    ("nothing of the kind", [small.node("Relu", "x", "h", name="n")], False),
    (
        "a convolution that it is the width of",
        [
            small.node("Transpose", "x", "t", name="t", perm=[2, 1, 3, 0]),
            small.node("Conv", "t k", "h", name="n"),
        ],
        False,
    ),
]


@pytest.mark.parametrize(("what", "nodes", "counts"), FIXED, ids=[row[0] for row in FIXED])
@pytest.mark.parametrize("via", ["none", "pnnx"])
def test_which_fixed_sizes_count_samples(what: str, nodes: Any, counts: bool, via: str) -> None:
    weights = {"k": (3, 3, 1, 1), "c": (3, 1, 1)}
    content = small.model(
        [*nodes, small.node("Add", "x c")], {"x": (2, 3, 4, 5)}, weights, opset=13
    )
    report = audit(content, via)
    assert (operands(report)[0] == (3, 4, 5)) is counts
    assert any("taken for a batch" in note for note in report.notes) is counts
    kept = audit(content, via, batch_axis=-1)
    assert operands(kept)[0] == (2, 3, 4, 5)


# "Override."


def test_option_batch_axis_overrides_the_choice() -> None:
    assert operands(added((3, 1, 4), (3, 1, 4), batch_axis=1))[0] == (3, 4)
    assert operands(added((2, 3, 4), (3, 4), batch_axis=0))[0] == (3, 4)
    assert operands(added((1, 3, 4), (3, 4), batch_axis=-1))[0] == (1, 3, 4)
    across = added((2, 3, 4), (2, 3, 4), batch_axis=0).findings[0]
    assert across.reason == "batch_broadcast"


@pytest.mark.parametrize(("axis", "expected"), [(-1, False), (0, False), (2, False), (3, True)])
def test_batch_axis_that_no_input_has_gives_a_note(axis: int, expected: bool) -> None:
    notes = added((1, 3, 4), (3, 4), batch_axis=axis).notes
    words = f"no input of the model has an axis {axis}: nothing is a batch"
    assert (words in notes) is expected


def test_engines_with_a_batch_axis_keep_it() -> None:
    content = small.model([small.node("Add", "x c")], {"x": (1, 3, 4)}, {"c": (3, 4)})
    assert operands(small.audit(content, "mnn")) == ((1, 3, 4), (3, 4))


def test_same_name_in_two_branches_is_two_tensors() -> None:
    """The value t carries the batch in one branch and not in the other."""

    def branch(op: str, **attributes: Any) -> Any:
        nodes = [
            small.node(op, "x", "t", name="make", **attributes),
            small.node("Add", "t c", "r", name=f"add_{op}"),
        ]
        result = helper.make_tensor_value_info("r", TensorProto.FLOAT, None)
        return helper.make_graph(nodes, op, [], [result])

    choose = helper.make_node(
        "If",
        ["cond"],
        ["y"],
        name="if",
        then_branch=branch("Relu"),
        else_branch=branch("Transpose", perm=[0, 1, 3, 2]),
    )
    choose_moved = helper.make_node(
        "If",
        ["cond"],
        ["y"],
        name="if",
        then_branch=branch("Relu"),
        else_branch=branch("Transpose", perm=[1, 0, 2, 3]),
    )
    for node, moved in ((choose, False), (choose_moved, True)):
        content = small.model([node], {"x": (1, 1, 4, 4)}, {"cond": np.array(True), "c": (4,)})
        report = audit(content)
        kept = operands(report, "if/then_branch/add_Relu")
        other = operands(report, "if/else_branch/add_Transpose")
        assert kept[0] == (1, 4, 4)
        assert other[0] == ((1, 1, 4, 4) if moved else (1, 4, 4))


# The function itself.


def test_without_batch_removes_the_axis_from_a_plan() -> None:
    plan = zs.plan((1, 3, 4), (1, 1, 4))
    sample = without_batch(plan, [0, None])
    assert (sample.shapes, sample.plan.shape, sample.axis) == (((3, 4), (1, 4)), (3, 4), 0)
    kept = without_batch(plan, [None, None])
    assert (kept.shapes, kept.axis, kept.across) == (plan.operands, None, None)
    # More than one on the batch of another is a broadcast across it.
    assert without_batch(zs.plan((1, 3, 4), (2, 1, 4)), [0, None]).across == 1
    # A batch that is another axis of each stays under the other's.
    moved = without_batch(zs.plan((1, 4, 1), (1, 4, 1)), [0, 2])
    assert moved.shapes == ((4, 1), (1, 4))
    assert zs.plan(*moved.shapes, engine="ncnn") != moved.plan


@pytest.mark.parametrize(("other", "op"), [((2, 3), "Add"), ((3, 3), "Sub"), ((2, 3), "Mul")])
def test_broadcast_across_the_batch_has_a_counter_example(
    tmp_path: Path, other: tuple[int, ...], op: str
) -> None:
    path = tmp_path / "across.onnx"
    graph = helper.make_graph(
        [helper.make_node(op, ["a", "b"], ["y"])],
        "across",
        [
            helper.make_tensor_value_info("a", TensorProto.FLOAT, other),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, (1, 3)),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)
    (finding,) = zs.audit(path, target="ncnn", via="none").findings
    assert finding.reason == "batch_broadcast"
    witness = finding.witness
    assert witness is not None
    assert witness.source != witness.target
    # ncnn holds b without its first axis, and lays it along the outermost one where it fits.
    a, b = (np.arange(np.prod(shape), dtype=float).reshape(shape) for shape in witness.shapes)
    if op == "Add":
        b += a.size
    function = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op]
    assert function(a, b)[witness.index] == witness.source
    assert function(a, b[0][:, None])[witness.index] == witness.target


def test_lost_batch_of_1_is_no_difference() -> None:
    shapes = ((1, 2, 3), (1,))
    plan, target = (lambda s: zs.plan(*s)), (lambda s: zs.plan(*s, engine="ncnn"))
    assert find_batch_witness(shapes, plan, target, (0, 0), "add") is None


@pytest.mark.parametrize("command", [zs.audit, zs.port, zs.verify])
@pytest.mark.parametrize("axis", ["0", 1.5])
def test_batch_axis_that_is_no_number_is_refused(command: Any, axis: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(small.model([small.node("Relu", "x")], {"x": (1, 2, 3)}).SerializeToString())
    more = (tmp_path / "ported.onnx",) if command is zs.port else ()
    with pytest.raises(zs.ModelError, match="it is a number: 0, 1"):
        command(path, "ncnn", *more, batch_axis=axis)
