"""Inference gets no weights, and the reader still has them; time grows linearly."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
from benchmarks.audit_scale import generate
from onnx import ModelProto, TensorProto, helper, numpy_helper

from work import calls_of
from zerostride.engines import find_engine
from zerostride.models.audit.run import audit_graph
from zerostride.models.formats import read_model
from zerostride.models.formats.onnx.light import light
from zerostride.models.ir.memory import uncollected

BIG = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)


def branch(name: str, result: str) -> Any:
    """A body with weights of its own."""
    weights = numpy_helper.from_array(BIG, name)
    return helper.make_graph(
        [helper.make_node("Add", ["x", name], [result], name=f"add_{name}")],
        name,
        [],
        [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)],
        [weights],
    )


def heavy() -> ModelProto:
    """Weights as initialisers, in a node, and in both bodies of an If."""
    nodes = [
        small.node("Add", "x w", "sum", name="sum"),
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(BIG, "c")),
        small.node("Mul", "sum c", "product", name="product"),
        small.node("Reshape", "product shape", "flat", name="flat"),
        helper.make_node(
            "If",
            ["yes"],
            ["either"],
            name="if",
            then_branch=branch("then", "a"),
            else_branch=branch("else", "b"),
        ),
    ]
    weights = {"w": BIG, "shape": np.array([128, 64]), "yes": np.array(True)}
    return small.model(nodes, {"x": (64, 128)}, weights, outputs=("flat", "either"))


def test_light_copy_has_shapes_and_no_numbers() -> None:
    model = heavy()
    before = model.SerializeToString()
    copy = light(model)
    assert model.SerializeToString() == before
    assert copy.ByteSize() < 3000 < 4 * BIG.nbytes < len(before)
    assert [tuple(t.dims) for t in copy.graph.initializer] == [(64, 128), (2,), ()]
    assert copy.graph.initializer[1] == model.graph.initializer[1]
    assert [node.op_type for node in copy.graph.node] == [n.op_type for n in model.graph.node]
    assert copy.graph.node[4].attribute[0].g.initializer[0].data_type == TensorProto.FLOAT
    # Before inlining only the main graph is emptied: functions hold what they hold.
    assert light(model, whole=False).graph.node[1] == model.graph.node[1]


def test_reader_has_the_numbers(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(heavy().SerializeToString())
    graph = read_model(file)
    assert graph.notes == ()
    values = {value.name: value for value in graph.values()}
    for name in ("w", "c", "then", "else"):
        np.testing.assert_array_equal(values[name].data(), BIG)
    # What the shape of a Reshape is was inferred from numbers that were kept.
    assert values["flat"].shape == (128, 64)
    assert values["product"].shape == (64, 128)


def test_model_with_functions_has_the_numbers(tmp_path: Path) -> None:
    function = helper.make_function(
        "own",
        "scaled",
        ["x", "w"],
        ["y"],
        [helper.make_node("Mul", ["x", "w"], ["y"], name="times")],
        [helper.make_opsetid("", 21)],
    )
    model = small.model(
        [helper.make_node("scaled", ["x", "w"], ["y"], domain="own", name="call")],
        {"x": (3, 64, 128)},
        {"w": BIG},
        functions=[function],
        domains=["own"],
    )
    file = tmp_path / "m.onnx"
    file.write_bytes(model.SerializeToString())
    (node,) = read_model(file).nodes
    assert node.op == "Mul"
    assert node.inputs[1] is not None
    np.testing.assert_array_equal(node.inputs[1].data(), BIG)


def test_names_outside_utf8_are_copied_whole() -> None:
    content = heavy().SerializeToString().replace(b"\x42\x01w", b"\x42\x01\xff")
    model = ModelProto.FromString(content)
    assert light(model).ByteSize() > BIG.nbytes


def _fails_uncollected() -> None:
    assert not gc.isenabled()
    raise KeyError


def test_garbage_collection_is_restored() -> None:
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            with pytest.raises(KeyError), uncollected():
                _fails_uncollected()
            assert gc.isenabled() == enabled
        finally:
            gc.enable()


class _Cycle:
    def __init__(self) -> None:
        self.own = self


def test_cycles_of_small_models_are_collected() -> None:
    """An audit of a broken file leaves an error with its frames, which is one."""
    left = []
    for _ in range(3000):
        with uncollected():
            left.append(weakref.ref(_Cycle()))
    assert sum(one() is not None for one in left) < 2000


@pytest.mark.parametrize("kind", ["blocks", "shapes", "dynamic"])
def test_work_is_linear_in_the_model(kind: str, tmp_path: Path) -> None:
    calls = []
    for nodes in (200, 800):
        file = tmp_path / f"{nodes}.onnx"
        generate(kind, nodes, file)
        reports: list[Any] = []
        audit = lambda: reports.append(audit_graph(read_model(file), find_engine("ncnn")))  # noqa: E731, B023
        calls.append(calls_of(audit))
        assert len(reports[0].findings) > nodes / 2
    # Four times the nodes; the square would be sixteen.
    assert calls[1] < 5 * calls[0]
