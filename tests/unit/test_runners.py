"""Runners with NumPy alone: ops by name, targets, tensors of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from zerostride.engines import ENGINES
from zerostride.runtimes.runners import (
    RUNNERS,
    Absent,
    ModelFile,
    Refused,
    Runner,
    load_runner,
    own_names,
)
from zerostride.runtimes.runners.onnxruntime_ import words
from zerostride.runtimes.task import Array, Form, Task

X, Y = np.arange(6.0).reshape(2, 3), np.array([1.0, -2.0, 3.0])


def computed(form: Form, op: str, *arrays: Array, **more: Any) -> Array:
    (result,) = load_runner("numpy").run(Task(form, op, **more), arrays)
    return result


def test_an_op_of_the_table_takes_more_operands_two_by_two() -> None:
    np.testing.assert_array_equal(computed(Form.OP, "subtract", X, Y, Y, X), X - Y - Y - X)
    np.testing.assert_array_equal(computed(Form.OP, "where", X > 1, X, Y), np.where(X > 1, X, Y))


def test_a_target_a_compound_and_what_is_absent() -> None:
    spread = computed(Form.TO, "expand", Y, target=(2, 3))
    np.testing.assert_array_equal(spread, np.broadcast_to(Y, (2, 3)))
    np.testing.assert_array_equal(computed(Form.COMPOUND, "MatMul", X, Y), X @ Y)
    for form in (Form.NODE, Form.LAYER, Form.FILE):
        with pytest.raises(Absent, match="cannot be run by itself"):
            computed(form, "Add", X, Y)


def test_every_row_is_of_an_engine_and_names_a_module() -> None:
    assert set(RUNNERS) <= set(ENGINES)
    for engine, row in RUNNERS.items():
        assert row.module == f"{engine}_"


def open_difference(path: str, names: Sequence[str]) -> ModelFile:
    """A file of two inputs and two outputs, computed by NumPy."""

    def compute(feeds: Mapping[int, Array], wanted: Sequence[int | str]) -> Sequence[Array]:
        a, b = feeds[0], feeds[1]
        tensors = {0: a - b, 1: b - a, "sum": a + b}
        return [tensors[name] for name in wanted]

    return ModelFile([["a", "a:0"], ["b"]], [["d"], ["e", "e:0"]], compute)


def from_file(inputs: Sequence[str], wanted: Sequence[str], outputs: bool) -> Sequence[Array]:
    numpy = load_runner("numpy")
    runner = Runner("0", numpy.call, (), own_names("numpy"), open_file=open_difference)
    attributes = {"inputs": list(inputs), "tensors": list(wanted), "outputs": outputs}
    return runner.run(Task(Form.FILE, "m", attributes), [X, Y, X + Y][: len(inputs)])


@pytest.mark.parametrize(
    ("inputs", "difference"),
    [
        (("a", "b"), X - Y),
        (("b", "a"), Y - X),
        (("b", "a:0"), Y - X),
        (("x", "y"), X - Y),  # other names: in order
        (("b", "unused", "a"), X + Y - X),
    ],
)
def test_inputs_are_fed_by_name_or_in_order(inputs: tuple[str, ...], difference: Array) -> None:
    np.testing.assert_array_equal(from_file(inputs, ["d"], True)[0], difference)


def test_outputs_come_by_name_or_in_order_and_tensors_by_name_alone() -> None:
    pair = from_file(("a", "b"), ["e:0", "d"], True)
    np.testing.assert_array_equal(pair, [Y - X, X - Y])
    np.testing.assert_array_equal(from_file(("a", "b"), ["u", "v"], True), [X - Y, Y - X])
    inner = from_file(("a", "b"), ["sum", "d"], False)
    np.testing.assert_array_equal(inner, [X + Y, X - Y])


def test_names_that_do_not_fit_are_refused() -> None:
    with pytest.raises(Refused, match=r"inputs \['a', 'b'\]; the model \['x'\]"):
        from_file(("x",), ["d"], True)
    with pytest.raises(Refused, match=r"outputs \['d', 'e'\]; the model \['u'\]"):
        from_file(("a", "b"), ["u"], True)


CODE = "[ONNXRuntimeError] : 1 : FAIL : "
RUNNING = CODE + "Non-zero status code returned while running "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            RUNNING + "MatMul node. Name:'' Status Message: matmul_helper.h:59 Compute MatMul no",
            "MatMul: Compute MatMul no",
        ),
        (
            RUNNING + "Reshape node. Name:'/r' Status Message: /s/reshape_helper.h:91 R::R(int&) "
            "a == b was false. No such shape:{5}",
            "Reshape '/r' No such shape:{5}",
        ),
        (
            CODE + "Load model from ModelProto 'net' failed:Node (n) Op (Add) "
            "[ShapeInferenceError] Incompatible dimensions",
            "ModelProto 'net' does not load: Node (n) Op (Add) Incompatible dimensions",
        ),
        (
            CODE + "Got invalid dimensions for input: x for the following indices\n index: 0 "
            "Got: 4 Expected: 2\n Please fix either the inputs/outputs or the model.",
            "Got invalid dimensions for input: x for the following indices index: 0 Got: 4 "
            "Expected: 2",
        ),
        ("", ""),
    ],
)
def test_onnxruntimes_messages_lose_what_only_its_developers_read(text: str, message: str) -> None:
    assert words(RuntimeError(text)) == message
