"""Lowered graphs, run with NumPy: the graph's results, in the expected phases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graphs import Builder, random_graph, random_rows
from numpy_program import evaluate_program

from zerostride.fusion.reference import evaluate
from zerostride.fusion.schedule import batch, simplify
from zerostride.fusion.schedule import materialize as keep
from zerostride.fusion.schedule import phases as schedule
from zerostride.fusion.schedule.lower import LoweringError, lower
from zerostride.fusion.schedule.program import Literal, Program, value_dtype
from zerostride.fusion.trace.graph import Apply, Constant, Graph, Input

Draw = Callable[[int], tuple[Graph, list[Any]]]


def check(graph: Graph, operands: list[Any], program: Program | None = None) -> Program:
    """The program, which has to give what the reference gives."""
    program = program or lower(graph)
    expected = evaluate(graph, operands)
    for given, wanted in zip(evaluate_program(program, operands), expected, strict=True):
        wanted = np.asarray(wanted)
        assert (given.shape, given.dtype) == (wanted.shape, wanted.dtype)
        same = np.array_equal(given, wanted, equal_nan=wanted.dtype.kind == "f")
        # Sums of what tanh gives are taken in another order.
        assert same or np.allclose(given, wanted, rtol=1e-3, atol=1e-6, equal_nan=True)
    return program


@pytest.mark.parametrize("draw", [random_graph, random_rows])
@pytest.mark.parametrize("block", range(4))
def test_random_graphs_match_the_reference(draw: Draw, block: int) -> None:
    check_many(draw, range(block * 100, block * 100 + 100))


@pytest.mark.parametrize("draw", [random_graph, random_rows])
def test_random_graphs_with_small_limits_match_the_reference(
    draw: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hoisted, kept and cut into pieces wherever it can be."""
    monkeypatch.setattr(schedule, "_HOIST_WORK", 1)
    monkeypatch.setattr(schedule, "_HOIST_RATIO", 2)
    monkeypatch.setattr(keep, "DEAR", 1)
    monkeypatch.setattr(simplify, "_LARGE", 1)
    monkeypatch.setattr(batch, "WHOLE_BYTES", 1)
    monkeypatch.setattr(batch, "_PIECE_BYTES", 200)
    monkeypatch.setattr(batch, "_RUN_BYTES", 1)
    check_many(draw, range(1000, 1200))


def check_many(draw: Draw, seeds: range) -> None:
    for seed in seeds:
        try:
            check(*draw(seed))
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def test_comparison_finds_a_wrong_program() -> None:
    builder = Builder()
    graph = builder.graph(builder.op("subtract", builder.input((3,)), builder.input((3,))))
    program = lower(graph)
    (phase,) = program.phases
    swapped = replace(phase, steps=(replace(phase.steps[0], args=(1, 0)),))
    with pytest.raises(AssertionError):
        check(graph, operands(graph), replace(program, phases=(swapped,)))
    twice = replace(program, phases=(phase, phase))
    with pytest.raises(AssertionError):
        check(graph, operands(graph), twice)


# Which phases there are


def rows(builder: Builder, *shape: int) -> int:
    return builder.input(shape or (256, 1024))


def softmax(builder: Builder, x: int, over: tuple[int, ...] = (1,)) -> int:
    top = builder.reduce("max", x, over, keepdims=True)
    parts = builder.op("exp", builder.op("subtract", x, top))
    return builder.op("divide", parts, builder.reduce("sum", parts, over, keepdims=True))


def layer_norm(builder: Builder, x: int) -> int:
    count = builder.number(float(builder.nodes[x].shape[-1]))
    mean = builder.op("divide", builder.reduce("sum", x, (1,), keepdims=True), count)
    centred = builder.op("subtract", x, mean)
    squares = builder.reduce("sum", builder.op("square", centred), (1,), keepdims=True)
    scale = builder.op("rsqrt", builder.op("divide", squares, count))
    return builder.op("multiply", centred, scale)


def kinds(program: Program) -> list[str]:
    return [slot.kind for slot in program.slots if slot.kind not in ("input", "output")]


def operands(graph: Graph) -> list[Any]:
    data = np.random.default_rng(0)
    inputs = [node for node in graph.nodes if isinstance(node, Input)]
    return [data.standard_normal(node.shape).astype(node.dtype) for node in inputs]


def test_elementwise_is_one_phase() -> None:
    builder = Builder()
    x, mean, scale = rows(builder), builder.input((1024,)), builder.input((256, 1))
    total = builder.op("multiply", builder.op("subtract", x, mean), scale)
    graph = builder.graph(builder.op("relu", total), builder.op("add", total, x))
    program = check(graph, operands(graph))
    (phase,) = program.phases
    assert phase.shape == (256, 1024)
    assert [load.walk for load in phase.loads] == [(0, 1), (-1, 0), (0, 1)]
    assert [step.op for step in phase.steps] == ["subtract", "multiply", "relu", "add"]
    assert [store.walk for store in phase.stores] == [(0, 1), (0, 1)]


def test_input_aligned_twice_is_two_loads() -> None:
    builder = Builder()
    x = builder.input((8, 8))
    graph = builder.graph(builder.op("add", builder.op("add", x, builder.view(x, (1, 0))), x))
    (phase,) = check(graph, operands(graph)).phases
    assert [load.walk for load in phase.loads] == [(0, 1), (1, 0)]


def test_outputs_of_two_shapes_are_two_phases() -> None:
    builder = Builder()
    x, y = builder.input((4, 5)), builder.input((5,))
    graph = builder.graph(builder.op("add", x, y), builder.op("square", y))
    assert [phase.shape for phase in check(graph, operands(graph)).phases] == [(4, 5), (5,)]


def test_softmax_keeps_its_numerators() -> None:
    builder = Builder()
    graph = builder.graph(softmax(builder, rows(builder)))
    program = check(graph, operands(graph))
    assert (program.batch, program.first, program.last) == (1, 0, 3)
    assert kinds(program) == ["piece"] * 3
    assert [[step.op for step in phase.steps] for phase in program.phases] == [
        [],
        ["subtract", "exp"],
        ["divide"],
    ]


def test_softmax_of_one_row_stores_nothing_large() -> None:
    builder = Builder()
    graph = builder.graph(softmax(builder, builder.input((1 << 16,)), (0,)))
    program = check(graph, operands(graph))
    assert program.batch == 0
    assert kinds(program) == ["temp", "temp"]
    assert {slot.shape for slot in program.slots[2:]} == {()}
    assert [step.op for step in program.phases[2].steps] == ["subtract", "exp", "divide"]


def test_softmax_of_a_short_row_keeps_its_numerators() -> None:
    builder = Builder()
    graph = builder.graph(softmax(builder, builder.input((1 << 12,)), (0,)))
    program = check(graph, operands(graph))
    assert program.batch == 0
    assert [step.op for step in program.phases[2].steps] == ["divide"]


def test_softmax_over_the_first_axis_moves_the_other_to_the_front() -> None:
    builder = Builder()
    graph = builder.graph(softmax(builder, builder.input((16, 8192)), (0,)))
    program = check(graph, operands(graph))
    assert program.batch == 1
    assert {phase.shape for phase in program.phases} == {(8192, 16)}


def test_columns_of_a_transposed_array_are_read_as_rows() -> None:
    builder = Builder()
    x = builder.view(builder.input((1024, 256)), (1, 0))
    graph = builder.graph(softmax(builder, x, (0,)))
    program = check(graph, operands(graph))
    assert program.batch == 1
    assert {phase.shape for phase in program.phases} == {(1024, 256)}


def test_long_columns_are_not_batched() -> None:
    builder = Builder()
    graph = builder.graph(softmax(builder, builder.input((1 << 16, 16)), (0,)))
    assert check(graph, operands(graph)).batch == 0


def test_layer_norm_computes_its_row_values_once() -> None:
    builder = Builder()
    graph = builder.graph(layer_norm(builder, rows(builder)))
    program = check(graph, operands(graph))
    assert (program.batch, program.first, program.last) == (1, 0, 5)
    assert [phase.shape[1] for phase in program.phases] == [1024, 1, 1024, 1, 1024]
    assert {step.op for step in program.phases[4].steps} == {"subtract", "multiply"}


def test_large_temporary_is_cut_into_pieces() -> None:
    builder = Builder()
    x, y = builder.input((300, 1, 16)), builder.input((1, 300, 16))
    total = builder.reduce("sum", builder.op("squared_difference", x, y), (2,))
    graph = builder.graph(builder.op("sqrt", total))
    program = check(graph, operands(graph))
    assert program.batch == 1
    assert kinds(program) == ["piece"]


def test_loss_ends_after_the_batch() -> None:
    builder = Builder()
    x = rows(builder)
    best = builder.reduce("max", softmax(builder, x), (1,))
    graph = builder.graph(builder.reduce("sum", builder.op("log", best), (0,)))
    program = check(graph, operands(graph))
    assert (program.first, program.last) == (0, 3)
    assert [phase.shape for phase in program.phases[3:]] == [(256,)]
    assert "temp" in kinds(program)


def test_loss_over_all_axes_is_first_reduced_by_rows() -> None:
    builder = Builder()
    x = builder.input((256, 1024), "float16")
    graph = builder.graph(builder.reduce("sum", softmax(builder, x), (0, 1)))
    program = check(graph, operands(graph))
    assert (program.first, program.last) == (0, 3)
    assert [phase.shape for phase in program.phases] == [(256, 1024)] * 3 + [(256, 1)]
    assert program.slots[program.phases[3].loads[0].slot].dtype == "float32"


def test_fold_over_the_batch_has_its_own_phase() -> None:
    builder = Builder()
    x = rows(builder)
    graph = builder.graph(softmax(builder, x), builder.reduce("sum", x, (0,)))
    program = check(graph, operands(graph))
    assert (program.first, program.last) == (0, 3)
    assert [store.fold for store in program.phases[3].stores] == ["sum"]


def test_folds_over_the_batch_share_a_phase() -> None:
    builder = Builder()
    x, y = rows(builder), builder.input((256, 1024))
    scaled = builder.op("multiply", y, softmax(builder, x))
    sums = [builder.reduce("sum", one, (0,)) for one in (x, y, scaled)]
    program = check(builder.graph(scaled, *sums), operands(builder.graph(scaled)))
    assert (program.first, program.last) == (0, 3)
    assert [len(phase.stores) for phase in program.phases[3:]] == [3]


def test_expensive_row_is_hoisted() -> None:
    builder = Builder()
    x, row = rows(builder), builder.input((1024,))
    graph = builder.graph(builder.op("multiply", x, builder.op("exp", row)))
    program = check(graph, operands(graph))
    assert [phase.shape for phase in program.phases] == [(1024,), (256, 1024)]
    assert program.batch == 0


def test_hoisted_rows_come_before_the_batch() -> None:
    builder = Builder()
    x, row = rows(builder), builder.input((1024,))
    graph = builder.graph(builder.op("multiply", softmax(builder, x), builder.op("exp", row)))
    program = check(graph, operands(graph))
    assert (program.first, program.last) == (1, 4)


def test_reduction_is_folded_into_its_result() -> None:
    builder = Builder()
    total = builder.reduce("sum", builder.input((4, 5, 6)), (1,))
    graph = builder.graph(builder.view(total, (1, None, 0)))
    program = check(graph, operands(graph))
    (phase,) = program.phases
    assert phase.stores[0].walk == (2, -1, 0)
    assert kinds(program) == []


def test_positions_count_in_the_order_of_the_argument() -> None:
    builder = Builder()
    x = builder.view(builder.input((3, 4, 5)), (2, 0, 1))
    graph = builder.graph(builder.reduce("argmax", x, (0, 2)), builder.reduce("argmin", x, (0, 1)))
    check(graph, operands(graph))


def test_empty_axes_are_lowered() -> None:
    builder = Builder()
    x = builder.input((0, 5))
    graph = builder.graph(builder.reduce("sum", x, (0,)), builder.op("add", x, x))
    check(graph, operands(graph))


# Dtypes


def test_16_bit_floats_are_rounded_only_at_casts() -> None:
    builder = Builder()
    x = builder.input((40,), "float16")
    third = builder.op("divide", x, builder.number(3.0))
    graph = builder.graph(
        builder.op("multiply", builder.cast(third, "float16"), builder.number(1.5)), third
    )
    (phase,) = check(graph, operands(graph)).phases
    assert [step.dtypes[-1] for step in phase.steps if step.op == "convert"] == [
        "float32",  # as loaded
        "float16",  # the cast, and one of the results
        "float32",
        "float16",
    ]
    assert phase.loads[0].dtype == "float16"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cast_before_a_result_is_its_rounding(dtype: str) -> None:
    builder = Builder()
    graph = builder.graph(builder.cast(builder.op("exp", builder.input((40,), dtype)), "float16"))
    (phase,) = check(graph, operands(graph)).phases
    assert [step.op for step in phase.steps] == ["exp", "convert"]
    assert value_dtype(phase, phase.stores[0].value) == "float16"


def test_cheaper_steps_give_the_same() -> None:
    builder = Builder()
    x = builder.input((40,))
    parts = [
        builder.op("divide", x, builder.number(value)) for value in (8.0, -0.25, 3.0, 2.0**-130)
    ]
    graph = builder.graph(*parts, builder.op("pow", x, builder.number(2.0)))
    given = operands(graph)
    (phase,) = check(graph, given).phases
    assert [step.op for step in phase.steps] == ["multiply"] * 2 + ["divide"] * 2 + ["square"]
    results = evaluate_program(lower(graph), given)
    for result, wanted in zip(results, evaluate(graph, given), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_numbers_are_rounded_to_the_dtype_beside_them() -> None:
    builder = Builder()
    x = builder.input((4,), "float16")
    (phase,) = lower(builder.graph(builder.op("multiply", x, builder.number(0.1)))).phases
    assert phase.literals == (Literal(float(np.float16(0.1)), "float32"),)


def test_zeros_of_both_signs_are_two_numbers() -> None:
    builder = Builder()
    x = builder.input((4,))
    both = [
        builder.op("copysign", x, builder.add(Constant(zero, "float64"))) for zero in (0.0, 1.0)
    ]
    (phase,) = lower(builder.graph(*both)).phases
    assert len(phase.literals) == 2
    negative = Graph((*builder.nodes[:1], Constant(-0.0, "float64")), (1,), 1)
    assert str(lower(negative).phases[0].literals[0].value) == "-0.0"


def test_stretched_operand_is_converted_when_loaded() -> None:
    builder = Builder()
    x, row = builder.input((2, 4), "uint8"), builder.input((4,), "uint8")
    given = builder.cast(x, "float32"), builder.cast(row, "float32")
    (phase,) = lower(builder.graph(builder.op("add", *given))).phases
    assert [load.dtype for load in phase.loads] == ["uint8", "float32"]
    assert [step.op for step in phase.steps] == ["convert", "add"]


def test_load_with_two_dtypes_is_converted_after_loading() -> None:
    builder = Builder()
    x, row = builder.input((2, 4)), builder.input((4,), "uint8")
    both = builder.op("add", x, builder.cast(row, "float32")), builder.op("add", row, row)
    graph = builder.graph(builder.op("add", both[0], builder.cast(both[1], "float32")))
    (phase,) = check(graph, operands(graph)).phases
    assert [load.dtype for load in phase.loads] == ["float32", "uint8"]


# What is refused


def test_many_results_are_several_phases() -> None:
    builder = Builder()
    pairs = [(builder.input((4,)), builder.input((4,))) for _ in range(20)]
    graph = builder.graph(*(builder.op("add", *pair) for pair in pairs))
    program = check(graph, operands(graph))
    assert [len(phase.stores) for phase in program.phases] == [10, 10]


def test_too_many_operands_are_refused() -> None:
    builder = Builder()
    total = builder.input((4,))
    for _ in range(40):
        total = builder.op("add", total, builder.input((4,)))
    with pytest.raises(LoweringError, match="42 arrays meet in one pass; the engine takes 32"):
        lower(builder.graph(total))


def test_many_norms_keep_values_needed_by_all_of_them() -> None:
    builder = Builder()
    x = rows(builder, 64, 64)
    for _ in range(40):
        total = builder.reduce("max", x, (1,), keepdims=True)
        x = builder.op("tanh", builder.op("subtract", x, total))
    graph = builder.graph(x)
    assert len(check(graph, operands(graph)).phases) == 41


@pytest.mark.parametrize(
    ("op", "dtypes", "reason"),
    [
        ("add", ("complex64", "complex64"), "the engine has no complex64"),
        ("pow", ("int32", "int32"), "a negative power of integers"),
        ("prelu", ("bool", "bool"), "the engine has no prelu of bool"),
    ],
)
def test_unsupported_ops_and_dtypes_are_refused(
    op: str, dtypes: tuple[str, str], reason: str
) -> None:
    inputs = tuple(Input(k, (2,), dtype) for k, dtype in enumerate(dtypes))
    node = Apply(op, (0, 1), ((0,), (0,)), (*dtypes, dtypes[1]), (2,), dtypes[1])
    kernels = {("add", "float32"), ("pow", "int32")}
    with pytest.raises(LoweringError, match=reason):
        lower(Graph((*inputs, node), (2,), 2), kernels=kernels)


def test_number_that_does_not_fit_is_refused() -> None:
    builder = Builder()
    x = builder.input((2,), "uint8")
    node = Apply(
        "less", (x, builder.number(300)), ((0,), ()), ("uint8", "uint8", "bool"), (2,), "bool"
    )
    with pytest.raises(LoweringError, match="the number 300 is no uint8"):
        lower(builder.graph(builder.add(node)))


def test_natural_powers_of_integers_are_accepted() -> None:
    builder = Builder()
    x = builder.input((4,), "int32")
    node = Apply("pow", (x, builder.number(3)), ((0,), ()), ("int32",) * 3, (4,), "int32")
    graph = builder.graph(builder.add(node))
    check(graph, operands(graph))
