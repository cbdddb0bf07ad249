"""Truth values and whole numbers as floats, and branches that a number decides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from models.prepared_models import Array, floated, random, saved
from zerostride.models.formats.onnx.prepared import with_decisions, with_floats, with_shapes

#: What ncnn lacks.
LACKING = {"Cast", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Where"} | {
    "And",
    "Not",
    "Or",
    "Xor",
}
COMPARED = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
LARGE = [0.0, -0.0, 1e-45, -1e-45, 1.5, -2.5, 3e38, -3e38, 1e-30, 7.0, 16777216.0]


@pytest.mark.parametrize("op", COMPARED)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32])
def test_comparisons(tmp_path: Path, op: str, dtype: type) -> None:
    numbers = np.array(LARGE, dtype) if dtype is np.float32 else np.arange(-5, 6).astype(dtype)
    inputs = {"x": numbers[:, None], "y": numbers}
    nodes = [helper.make_node(op, ["x", "y"], ["z"])]
    path = saved(tmp_path / "m.onnx", nodes, inputs, ["z"], kinds={"z": TensorProto.BOOL})
    assert not floated(path, inputs, tmp_path / "new.onnx") & LACKING


@pytest.mark.parametrize("op", ["And", "Or", "Xor", "Not"])
def test_logic(tmp_path: Path, op: str) -> None:
    inputs = {"x": np.array([[False], [True]]), "y": np.array([False, True])}
    inputs = inputs if op != "Not" else {"x": inputs["x"]}
    nodes = [helper.make_node(op, [*inputs], ["z"])]
    path = saved(tmp_path / "m.onnx", nodes, inputs, ["z"], kinds={"z": TensorProto.BOOL})
    assert not floated(path, inputs, tmp_path / "new.onnx") & LACKING


@settings(deadline=None, max_examples=60)
@given(
    test=st.sampled_from([(3,), (2, 1), (2, 3), (1,)]),
    sides=st.tuples(*[st.sampled_from(["x", "zero", "low", "high", "two", "row"])] * 2),
)
def test_choices(
    tmp_path_factory: pytest.TempPathFactory, test: tuple[int, ...], sides: tuple[str, str]
) -> None:
    folder = tmp_path_factory.mktemp("models")
    inputs: dict[str, Array] = {"c": random(*test) > 0, "x": random(2, 3)}
    constants = {
        "zero": np.float32(0),
        "low": np.float32(-3.4028235e38),
        "high": np.float32(3.4028235e38),
        "two": np.float32(2.5),
        "row": np.array([1, 0, -1], np.float32),
    }
    nodes = [
        helper.make_node("Where", ["c", *sides], ["z"]),
        helper.make_node("Identity", ["x"], ["same"]),
    ]
    path = saved(folder / "m.onnx", nodes, inputs, ["z", "same"], constants)
    assert not floated(path, inputs, folder / "new.onnx") & LACKING


def test_infinities_of_the_side_that_is_not_taken(tmp_path: Path) -> None:
    inputs = {"c": np.array([True, False, True]), "x": np.array([np.inf, -np.inf, 2], np.float32)}
    node = helper.make_node("Where", ["c", "x", "zero"], ["z"])
    path = saved(tmp_path / "m.onnx", [node], inputs, ["z"], {"zero": np.float32(0)})
    floated(path, inputs, tmp_path / "new.onnx")


@pytest.mark.parametrize("divisor", [1, 3, 160])
def test_quotients_toward_0(tmp_path: Path, divisor: int) -> None:
    inputs = {"n": np.array([*range(-1000, 1000), 2**22 - 1, 2**22], np.int64)}
    nodes = [
        helper.make_node("Div", ["n", "d"], ["q"]),
        helper.make_node("Cast", ["q"], ["z"], to=TensorProto.FLOAT),
    ]
    path = saved(tmp_path / "m.onnx", nodes, inputs, ["z"], {"d": np.array(divisor)})
    # onnx's reference rounds down, and the standard toward 0.
    goal = tmp_path / "new.onnx"
    with_shapes(path, goal, {"n": inputs["n"].shape})
    assert with_floats(goal) == ["n"]
    (got,) = ReferenceEvaluator(str(goal)).run(None, {"n": inputs["n"].astype(np.float32)})
    np.testing.assert_array_equal(got, np.trunc(inputs["n"] / divisor))


@pytest.mark.parametrize(
    ("source", "goal"),
    [
        (np.float32, TensorProto.INT64),
        (np.float32, TensorProto.BOOL),
        (np.int32, TensorProto.INT64),
        (np.int32, TensorProto.BOOL),
        (np.int32, TensorProto.FLOAT),
        (np.bool_, TensorProto.INT64),
        (np.bool_, TensorProto.FLOAT),
    ],
)
def test_casts(tmp_path: Path, source: type, goal: int) -> None:
    x = np.array([0, 1, 1.7, -2.3, 5]).astype(source)
    nodes = [helper.make_node("Cast", ["x"], ["z"], to=goal)]
    path = saved(tmp_path / "m.onnx", nodes, {"x": x}, ["z"], kinds={"z": goal})
    assert not floated(path, {"x": x}, tmp_path / "new.onnx") & LACKING


WHOLE = {f"{sign}int{bits}": getattr(np, f"{sign}int{bits}") for bits in (8, 16, 32, 64)
         for sign in ("", "u")}  # fmt: skip
#: Numbers around the ends of element types.
ENDS = (-70000, -32768, -300, -129, -128, -1, 0, 1, 2, 127, 128, 255, 256, 300, 65535, 70000)


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_what_wraps_around_is_left(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder, kind = tmp_path_factory.mktemp("models"), data.draw(st.sampled_from([*WHOLE]))
    bounds = np.iinfo(WHOLE[kind])
    fitting = [n for n in ENDS if bounds.min <= n <= bounds.max]
    inputs = {"a": np.array(fitting, kind)[:, None], "b": np.array(fitting, kind)}
    inputs["t"] = np.array([[True], [False]])[:, :, None]
    small = [n for n in fitting if abs(n) <= 2]
    constants = {"k": np.array(data.draw(st.sampled_from(small)), kind)}
    types = {"a": kind, "b": kind, "k": kind, "t": "bool"}
    nodes: list[onnx.NodeProto] = []
    for step in range(data.draw(st.integers(1, 4))):
        op = data.draw(st.sampled_from(["Add", "Sub", "Mul", "Neg", "Abs", "Cast", "Max", "Min"]))
        one = data.draw(st.sampled_from([*types]))
        goal, attributes, result = types[one], {}, f"r{step}"
        names = [one]
        if op == "Cast":
            goal = data.draw(st.sampled_from(sorted({*WHOLE, "bool"})))
            attributes["to"] = helper.np_dtype_to_tensor_dtype(np.dtype(goal))
        elif goal == "bool" or (op == "Neg" and goal.startswith("u")):
            continue
        elif op not in ("Neg", "Abs"):
            names.append(data.draw(st.sampled_from([n for n in types if types[n] == goal])))
        nodes.append(helper.make_node(op, names, [result], **attributes))
        types[result] = goal
    results = [name for name in types if name.startswith("r")]
    kinds = {n: helper.np_dtype_to_tensor_dtype(np.dtype(types[n])) for n in results}
    path = saved(folder / "m.onnx", nodes, inputs, results, constants, kinds)
    goal_file = folder / "new.onnx"
    with_shapes(path, goal_file, {name: array.shape for name, array in inputs.items()})
    event("floats" if (changed := with_floats(goal_file)) is not None else "left")
    if changed is None:
        return
    floats = {n: a.astype(np.float32) if n in changed else a for n, a in inputs.items()}
    with np.errstate(all="ignore"):
        expected = ReferenceEvaluator(str(path)).run(None, inputs)
        got = ReferenceEvaluator(str(goal_file)).run(None, floats)
    exact = np.array(True)  # floats of 32 bits hold all numbers so far
    for want, have in zip(expected, got, strict=True):
        exact = exact & (np.abs(have) < 2**23)
        np.testing.assert_array_equal(*np.broadcast_arrays(np.where(exact, have, want), want))


@pytest.mark.parametrize(
    ("nodes", "fits"),
    [
        ("c = Cast<to = 2>(t)  z = Sub(one, c)", True),  # a mask and its opposite
        ("c = Cast<to = 2>(t)  z = Add(c, c)", True),
        ("z = Sub(one, u)", False),
        ("z = Add(one, u)", False),
        ("z = Max(one, u)", True),
        ("z = Clip(u, , one)", True),
        ("c = Clip(u, , one)  z = Sub(one, c)", True),
        ("f = Clip(x, low, high)  z = Cast<to = 2>(f)", True),
        ("f = Sigmoid(x)  z = Cast<to = 2>(f)", True),
        ("f = Relu(x)  z = Cast<to = 2>(f)", False),
        ("z = Cast<to = 2>(x)", False),
        ("c = Cast<to = 7>(x)  z = Cast<to = 2>(c)", False),
        ("c = Cast<to = 7>(t)  n = Neg(c)  z = Cast<to = 2>(n)", False),
        ("c = Cast<to = 7>(u)  n = Neg(c)  z = Cast<to = 3>(n)", False),
        ("c = Cast<to = 7>(t)  n = Neg(c)  z = Cast<to = 3>(n)", True),
    ],
)
def test_ranges_exclude_that_numbers_wrap_around(tmp_path: Path, nodes: str, fits: bool) -> None:
    kind = "int8" if "<to = 3>(n)" in nodes else "uint8"
    text = f"""<ir_version: 9, opset_import: ["": 17]>
m (float[3] x, uint8[3] u, bool[3] t) => ({kind}[3] z)
<uint8 one = {{1}}, float low = {{0}}, float high = {{255}}> {{ {nodes.replace("  ", " ")} }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    assert (with_floats(tmp_path / "m.onnx") is not None) == fits


def test_rows_that_are_taken_stay_whole(tmp_path: Path) -> None:
    inputs = {"ids": np.array([[2, 0, 1]]), "mask": np.array([[1, 0, 1]])}
    nodes = [
        helper.make_node("Gather", ["w", "ids"], ["rows"]),
        helper.make_node("Cast", ["mask"], ["m"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["m", "last"], ["column"]),
        helper.make_node("Mul", ["rows", "column"], ["z"]),
    ]
    constants = {"w": random(3, 4), "last": np.array([2])}
    path = saved(tmp_path / "m.onnx", nodes, inputs, ["z"], constants)
    assert "Gather" in floated(path, inputs, tmp_path / "new.onnx")
    kinds = {
        v.name: v.type.tensor_type.elem_type for v in onnx.load(tmp_path / "new.onnx").graph.input
    }
    assert kinds == {"ids": TensorProto.INT64, "mask": TensorProto.FLOAT}


def test_numbers_that_are_rows_and_compared_are_left(tmp_path: Path) -> None:
    inputs = {"ids": np.array([[2, 0, 1]])}
    nodes = [
        helper.make_node("Gather", ["w", "ids"], ["z"]),
        helper.make_node("Less", ["ids", "two"], ["less"]),
    ]
    constants = {"w": random(3, 4), "two": np.array(2)}
    path = saved(tmp_path / "m.onnx", nodes, inputs, ["z", "less"], constants, {"less": 9})
    with_shapes(path, tmp_path / "new.onnx", {"ids": (1, 3)})
    before = (tmp_path / "new.onnx").read_bytes()
    assert with_floats(tmp_path / "new.onnx") is None
    assert (tmp_path / "new.onnx").read_bytes() == before


def test_a_constant_result_reads_an_input(tmp_path: Path) -> None:
    x = random(2, 3)
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    path = saved(
        tmp_path / "m.onnx", nodes, {"x": x}, ["y", "n"], {"n": np.array([7, 8])}, {"n": 7}
    )
    floated(path, {"x": x}, tmp_path / "new.onnx")
    results = {name for node in onnx.load(tmp_path / "new.onnx").graph.node for name in node.output}
    assert "n" in results


def test_a_model_of_floats_is_left(tmp_path: Path) -> None:
    x = random(2, 3)
    path = saved(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], {"x": x}, ["y"])
    with_shapes(path, tmp_path / "new.onnx", {"x": x.shape})
    assert with_floats(tmp_path / "new.onnx") is None


BRANCHES = """<ir_version: 9, opset_import: ["": 17]>
m (float[2] x, int64 rate, int64[1] other) => (float[2] y) <int64 k = {16000}> {
  same = Equal (rate, k)
  y = If (same) <
    then_branch = t () => (float[2] a) { a = Relu (x) },
    else_branch = e () => (float[2] b) {
      two = Constant<value = int64 {8000}> ()
      again = Equal (rate, two)
      b = If (again) <
        then_branch = u () => (float[2] c) { c = Neg (x) },
        else_branch = v () => (float[2] d) { d = Exp (x) }
      >
    }
  >
}"""


@pytest.mark.parametrize("rate", [16000, 8000, 1])
def test_a_number_takes_a_branch(tmp_path: Path, rate: int) -> None:
    file = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(BRANCHES), file)
    inputs = {"x": random(2), "rate": np.array(rate), "other": np.array([1])}
    (expected,) = ReferenceEvaluator(str(file)).run(None, inputs)
    assert with_decisions(file, {"rate": rate, "other": 1}) == ["rate"]
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    assert [value.name for value in model.graph.input] == ["x", "rate", "other"]
    assert "If" not in {node.op_type for node in model.graph.node}
    other = inputs | {"rate": np.array(5)}
    np.testing.assert_array_equal(ReferenceEvaluator(model).run(None, other)[0], expected)


IN_TURN = """<ir_version: 9, opset_import: ["": 17]>
m (float[2] x, bool a, bool b, bool c) => (float[2] y) {
  first = If (a) <
    then_branch = t () => (bool r) { r = Not (b) }, else_branch = e () => (bool s) { s = Not (c) }
  >
  y = If (first) <
    then_branch = u () => (float[2] p) { p = Neg (x) },
    else_branch = v () => (float[2] q) { q = Exp (x) }
  >
}"""


@pytest.mark.parametrize("fixed", [{"a": True}, {"b": True}, {"a": True, "b": False}])
def test_a_branch_of_one_if_decides_another(tmp_path: Path, fixed: dict[str, bool]) -> None:
    file = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(IN_TURN), file)
    inputs = {"x": random(2), **dict.fromkeys("abc", np.array(True))}
    inputs |= {name: np.array(number) for name, number in fixed.items()}
    (expected,) = ReferenceEvaluator(str(file)).run(None, inputs)
    assert with_decisions(file, fixed) == [*fixed]
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    left = sum(node.op_type == "If" for node in model.graph.node)
    assert left == {1: 1, 2: 0}[len(fixed)] + ("a" not in fixed)
    np.testing.assert_array_equal(ReferenceEvaluator(model).run(None, inputs)[0], expected)


def test_an_input_of_several_numbers_decides_nothing(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(BRANCHES), file)
    before = file.read_bytes()
    assert not with_decisions(file, {"other": 1})
    assert file.read_bytes() == before
