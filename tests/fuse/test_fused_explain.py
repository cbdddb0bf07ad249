"""The output of `explain` for fused functions: the text, the data, the bytes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from graphs import Builder

import zerostride as zs
from zerostride.compute import native
from zerostride.fusion.explain import Explanation, html
from zerostride.fusion.schedule.bytes_moved import registers, traffic
from zerostride.fusion.schedule.lower import lower
from zerostride.fusion.schedule.program import Literal, Load, Phase, Program, Slot, Step, Store
from zerostride.fusion.trace.graph import Graph

NATIVE = pytest.mark.skipif(native.backend() == "reference", reason="no native engine here")


def told(graph: Graph, *names: str) -> Explanation:
    """As if the engine ran it."""
    return Explanation("f", names, graph, lower(graph), "native avx2", "", "interpreted")


def softmax(rows: int = 256, columns: int = 1024) -> Graph:
    builder = Builder()
    x = builder.input((rows, columns))
    parts = builder.op(
        "exp", builder.op("subtract", x, builder.reduce("max", x, (1,), keepdims=True))
    )
    return builder.graph(
        builder.op("divide", parts, builder.reduce("sum", parts, (1,), keepdims=True))
    )


def test_elementwise_function_is_drawn() -> None:
    builder = Builder()
    x, y, z = builder.input((2, 3), "uint8"), builder.input((3,)), builder.input((2, 1))
    graph = builder.graph(builder.op("multiply", builder.op("subtract", x, y), z))
    assert str(told(graph, "x", "mean", "scale")).splitlines() == [
        "f(x, mean, scale) is computed by the native engine (avx2)",
        "  1 phase, interpreted",
        "  50 B moved, 50 B necessary",
        "  over 2 3, reads 26 B, stores 24 B",
        "    x uint8         2   3",
        "    mean float32    .   3",
        "    scale float32   2 1→3",
        "    box             2   3",
        "    result float32  2   3",
        "    r0 = float32(x)",
        "    r0 = subtract(r0, mean)",
        "    r0 = multiply(r0, scale)",
        "    result = r0",
        "    mean stretches along axis 0 (absent→2)",
        "    scale stretches along axis 1 (1→3)",
    ]


def test_phases_in_pieces_are_described() -> None:
    text = str(told(softmax(), "x"))
    assert "  3 phases, interpreted\n" in text
    assert "  all piece by piece along axis 0 of the boxes: what is read again is" in text
    assert "  2.0 MiB moved, 2.0 MiB necessary\n" in text
    assert "  4.0 KiB of temporaries for each index of a piece\n" in text
    assert "    t1 = sum of r0 over axis 1\n" in text
    assert "  phase 3: over 256 1024, reads 1.0 MiB, stores 1.0 MiB\n" in text


def test_numbers_are_as_short_as_their_dtype_allows() -> None:
    builder = Builder()
    graph = builder.graph(builder.op("add", builder.input((2,)), builder.number(0.1)))
    assert "r0 = add(x, 0.1)" in str(told(graph, "x"))


def test_two_passes_are_counted() -> None:
    builder = Builder()
    x = builder.input((1 << 16,))
    graph = builder.graph(builder.op("subtract", x, builder.reduce("max", x, (0,))))
    program = lower(graph)
    bytes_ = 4 << 16
    assert program.batch == 0
    moved = traffic(program)
    # The largest is stored by the first pass, and read by the second.
    assert (moved.moved, moved.necessary) == (3 * bytes_ + 8, 2 * bytes_)
    assert (moved.temporaries, moved.pieces) == (4, 0)


def test_transposed_reading_is_described() -> None:
    builder = Builder()
    x = builder.input((2, 3))
    text = str(told(builder.graph(builder.op("square", builder.view(x, (1, 0)))), "x"))
    assert "x is read along its axes 1 and 0, in this order" in text


def test_array_in_two_alignments_has_two_names() -> None:
    builder = Builder()
    x = builder.input((3, 3))
    text = str(told(builder.graph(builder.op("add", x, builder.view(x, (1, 0)))), "x"))
    assert "r0 = add(x, x')" in text


def test_registers_are_reused() -> None:
    unary, binary = ("float32",) * 2, ("float32",) * 3
    load = Load(0, (0,), "float32")
    literal = Literal(2.0, "float32")
    steps = (
        Step("exp", (0,), unary),  # 2, read until the end
        Step("square", (0,), unary),  # 3
        Step("add", (3, 1), binary),  # 4, where 3 was
        Step("add", (4, 2), binary),  # 5
    )
    phase = Phase((4,), (load,), (literal,), steps, (Store(5, 1, (0,)), Store(2, 2, (0,))))
    assert registers(phase) == (0, 1, 1, 1)


def test_pieces_do_not_count_as_memory() -> None:
    slots = (
        Slot("input", 0, "float32", (8, 4)),
        Slot("piece", 0, "float32", (8,)),
        Slot("output", 0, "bfloat16", (8, 4)),
    )
    first = Phase((8, 4), (Load(0, (0, 1), "float32"),), (), (), (Store(0, 1, (0, -1), "sum"),))
    loads = Load(0, (0, 1), "float32"), Load(1, (0, -1), "float32")
    step = Step("divide", (0, 1), ("float32",) * 3)
    second = Phase((8, 4), loads, (), (step,), (Store(2, 2, (0, 1)),))
    moved = traffic(Program(slots, (first, second), 1, 0, 2))
    assert (moved.moved, moved.necessary, moved.pieces) == (128 + 64, 128 + 64, 4)


def test_explanation_is_available_as_json() -> None:
    explained = told(softmax(), "x")
    data = explained.as_dict()
    assert json.loads(explained.to_json()) == data
    program = data["program"]
    assert (program["batch"], program["batched_phases"]) == (1, [0, 3])
    assert [phase["shape"] for phase in program["phases"]] == [[256, 1024]] * 3
    assert program["phases"][1]["loads"][1]["stretched"] == [1]
    assert [slot["name"] for slot in program["slots"]] == ["x", "result", "t0", "t1", "t2"]


def test_html_is_escaped() -> None:
    builder = Builder()
    x = builder.input((2, 3))
    graph = builder.graph(builder.op("add", x, builder.input((3,))))
    page = html(told(graph, "<b>", "y"))
    assert "<b>(" not in page
    assert "&lt;b&gt; float32" in page
    assert page.count("<tr>") == 4
    assert told(softmax(), "x")._repr_html_().count("<table>") == 3


# Of functions


@NATIVE
def test_fused_function_is_explained_for_operands() -> None:
    function = zs.fuse(lambda x, *more, scale: x * more[0] + more[1] * scale)
    x = np.ones((2, 3), "float32")
    explained = function.explain(x, x[0], 2.0, scale=x)
    assert explained.operands == ("x", "more0", "more1", "scale")
    assert explained.backend == native.backend()
    assert explained.reason == ""
    assert explained.tier.startswith("interpreted")


def test_reference_backend_is_named() -> None:
    function = zs.fuse(lambda x, y: (x.T + y) * 2)
    explained = function.explain(np.ones((3, 4), complex), np.ones(3, complex))
    assert explained.backend == "reference"
    lines = str(explained).splitlines()
    assert lines[0].startswith("<lambda>(x, y) is computed by the reference, node by node: ")
    assert "v3 = add(v2, y)  4 3  complex128" in str(explained)
    assert lines[-1] == "    result = v5"
    assert explained.as_dict()["program"] is None
    assert "<table" not in explained._repr_html_()


def test_arguments_are_those_of_a_call() -> None:
    function: Any = zs.fuse(lambda x, y: x + y)
    with pytest.raises(zs.BroadcastError):
        function.explain(np.ones(3), np.ones(4))


def test_explain_without_operands_shows_the_last_signature():
    add = zs.fuse(lambda x, y: x + y)
    with pytest.raises(TypeError):
        add.explain()
    add(np.ones((2, 3)), np.ones(3))
    assert str(add.explain()) == str(add.explain(np.ones((2, 3)), np.ones(3)))
    add(np.ones((4, 3)), 2)
    assert str(add.explain()) == str(add.explain(np.ones((4, 3)), 2))
