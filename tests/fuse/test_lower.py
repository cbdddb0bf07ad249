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
    made = Builder()
    graph = made.graph(made.op("subtract", made.input((3,)), made.input((3,))))
    program = lower(graph)
    (phase,) = program.phases
    swapped = replace(phase, steps=(replace(phase.steps[0], args=(1, 0)),))
    with pytest.raises(AssertionError):
        check(graph, operands(graph), replace(program, phases=(swapped,)))
    twice = replace(program, phases=(phase, phase))
    with pytest.raises(AssertionError):
        check(graph, operands(graph), twice)


# Which phases there are


def rows(made: Builder, *shape: int) -> int:
    return made.input(shape or (256, 1024))


def softmax(made: Builder, x: int, over: tuple[int, ...] = (1,)) -> int:
    top = made.reduce("max", x, over, keepdims=True)
    parts = made.op("exp", made.op("subtract", x, top))
    return made.op("divide", parts, made.reduce("sum", parts, over, keepdims=True))


def layer_norm(made: Builder, x: int) -> int:
    count = made.number(float(made.nodes[x].shape[-1]))
    mean = made.op("divide", made.reduce("sum", x, (1,), keepdims=True), count)
    centred = made.op("subtract", x, mean)
    squares = made.reduce("sum", made.op("square", centred), (1,), keepdims=True)
    scale = made.op("rsqrt", made.op("divide", squares, count))
    return made.op("multiply", centred, scale)


def kinds(program: Program) -> list[str]:
    return [slot.kind for slot in program.slots if slot.kind not in ("input", "output")]


def operands(graph: Graph) -> list[Any]:
    data = np.random.default_rng(0)
    inputs = [node for node in graph.nodes if isinstance(node, Input)]
    return [data.standard_normal(node.shape).astype(node.dtype) for node in inputs]


def test_elementwise_is_one_phase() -> None:
    made = Builder()
    x, mean, scale = rows(made), made.input((1024,)), made.input((256, 1))
    total = made.op("multiply", made.op("subtract", x, mean), scale)
    graph = made.graph(made.op("relu", total), made.op("add", total, x))
    program = check(graph, operands(graph))
    (phase,) = program.phases
    assert phase.shape == (256, 1024)
    assert [load.walk for load in phase.loads] == [(0, 1), (-1, 0), (0, 1)]
    assert [step.op for step in phase.steps] == ["subtract", "multiply", "relu", "add"]
    assert [store.walk for store in phase.stores] == [(0, 1), (0, 1)]


def test_input_aligned_twice_is_two_loads() -> None:
    made = Builder()
    x = made.input((8, 8))
    graph = made.graph(made.op("add", made.op("add", x, made.view(x, (1, 0))), x))
    (phase,) = check(graph, operands(graph)).phases
    assert [load.walk for load in phase.loads] == [(0, 1), (1, 0)]


def test_outputs_of_two_shapes_are_two_phases() -> None:
    made = Builder()
    x, y = made.input((4, 5)), made.input((5,))
    graph = made.graph(made.op("add", x, y), made.op("square", y))
    assert [phase.shape for phase in check(graph, operands(graph)).phases] == [(4, 5), (5,)]


def test_softmax_keeps_its_numerators() -> None:
    made = Builder()
    graph = made.graph(softmax(made, rows(made)))
    program = check(graph, operands(graph))
    assert (program.batch, program.first, program.last) == (1, 0, 3)
    assert kinds(program) == ["piece"] * 3
    assert [[step.op for step in phase.steps] for phase in program.phases] == [
        [],
        ["subtract", "exp"],
        ["divide"],
    ]


def test_softmax_of_one_row_stores_nothing_large() -> None:
    made = Builder()
    graph = made.graph(softmax(made, made.input((1 << 16,)), (0,)))
    program = check(graph, operands(graph))
    assert program.batch == 0
    assert kinds(program) == ["temp", "temp"]
    assert {slot.shape for slot in program.slots[2:]} == {()}
    assert [step.op for step in program.phases[2].steps] == ["subtract", "exp", "divide"]


def test_softmax_of_a_short_row_keeps_its_numerators() -> None:
    made = Builder()
    graph = made.graph(softmax(made, made.input((1 << 12,)), (0,)))
    program = check(graph, operands(graph))
    assert program.batch == 0
    assert [step.op for step in program.phases[2].steps] == ["divide"]


def test_softmax_over_the_first_axis_moves_the_other_to_the_front() -> None:
    made = Builder()
    graph = made.graph(softmax(made, made.input((16, 8192)), (0,)))
    program = check(graph, operands(graph))
    assert program.batch == 1
    assert {phase.shape for phase in program.phases} == {(8192, 16)}


def test_columns_of_a_transposed_array_are_read_as_rows() -> None:
    made = Builder()
    x = made.view(made.input((1024, 256)), (1, 0))
    graph = made.graph(softmax(made, x, (0,)))
    program = check(graph, operands(graph))
    assert program.batch == 1
    assert {phase.shape for phase in program.phases} == {(1024, 256)}


def test_long_columns_are_not_batched() -> None:
    made = Builder()
    graph = made.graph(softmax(made, made.input((1 << 16, 16)), (0,)))
    assert check(graph, operands(graph)).batch == 0


def test_layer_norm_computes_its_row_values_once() -> None:
    made = Builder()
    graph = made.graph(layer_norm(made, rows(made)))
    program = check(graph, operands(graph))
    assert (program.batch, program.first, program.last) == (1, 0, 5)
    assert [phase.shape[1] for phase in program.phases] == [1024, 1, 1024, 1, 1024]
    assert {step.op for step in program.phases[4].steps} == {"subtract", "multiply"}


def test_large_temporary_is_cut_into_pieces() -> None:
    made = Builder()
    x, y = made.input((300, 1, 16)), made.input((1, 300, 16))
    total = made.reduce("sum", made.op("squared_difference", x, y), (2,))
    graph = made.graph(made.op("sqrt", total))
    program = check(graph, operands(graph))
    assert program.batch == 1
    assert kinds(program) == ["piece"]


def test_loss_ends_after_the_batch() -> None:
    made = Builder()
    x = rows(made)
    best = made.reduce("max", softmax(made, x), (1,))
    graph = made.graph(made.reduce("sum", made.op("log", best), (0,)))
    program = check(graph, operands(graph))
    assert (program.first, program.last) == (0, 3)
    assert [phase.shape for phase in program.phases[3:]] == [(256,)]
    assert "temp" in kinds(program)


def test_loss_over_all_axes_is_first_reduced_by_rows() -> None:
    made = Builder()
    x = made.input((256, 1024), "float16")
    graph = made.graph(made.reduce("sum", softmax(made, x), (0, 1)))
    program = check(graph, operands(graph))
    assert (program.first, program.last) == (0, 3)
    assert [phase.shape for phase in program.phases] == [(256, 1024)] * 3 + [(256, 1)]
    assert program.slots[program.phases[3].loads[0].slot].dtype == "float32"


def test_fold_over_the_batch_has_its_own_phase() -> None:
    made = Builder()
    x = rows(made)
    graph = made.graph(softmax(made, x), made.reduce("sum", x, (0,)))
    program = check(graph, operands(graph))
    assert (program.first, program.last) == (0, 3)
    assert [store.fold for store in program.phases[3].stores] == ["sum"]


def test_folds_over_the_batch_share_a_phase() -> None:
    made = Builder()
    x, y = rows(made), made.input((256, 1024))
    scaled = made.op("multiply", y, softmax(made, x))
    sums = [made.reduce("sum", one, (0,)) for one in (x, y, scaled)]
    program = check(made.graph(scaled, *sums), operands(made.graph(scaled)))
    assert (program.first, program.last) == (0, 3)
    assert [len(phase.stores) for phase in program.phases[3:]] == [3]


def test_expensive_row_is_hoisted() -> None:
    made = Builder()
    x, row = rows(made), made.input((1024,))
    graph = made.graph(made.op("multiply", x, made.op("exp", row)))
    program = check(graph, operands(graph))
    assert [phase.shape for phase in program.phases] == [(1024,), (256, 1024)]
    assert program.batch == 0


def test_hoisted_rows_come_before_the_batch() -> None:
    made = Builder()
    x, row = rows(made), made.input((1024,))
    graph = made.graph(made.op("multiply", softmax(made, x), made.op("exp", row)))
    program = check(graph, operands(graph))
    assert (program.first, program.last) == (1, 4)


def test_reduction_is_folded_into_its_result() -> None:
    made = Builder()
    total = made.reduce("sum", made.input((4, 5, 6)), (1,))
    graph = made.graph(made.view(total, (1, None, 0)))
    program = check(graph, operands(graph))
    (phase,) = program.phases
    assert phase.stores[0].walk == (2, -1, 0)
    assert kinds(program) == []


def test_positions_count_in_the_order_of_the_argument() -> None:
    made = Builder()
    x = made.view(made.input((3, 4, 5)), (2, 0, 1))
    graph = made.graph(made.reduce("argmax", x, (0, 2)), made.reduce("argmin", x, (0, 1)))
    check(graph, operands(graph))


def test_empty_axes_are_lowered() -> None:
    made = Builder()
    x = made.input((0, 5))
    graph = made.graph(made.reduce("sum", x, (0,)), made.op("add", x, x))
    check(graph, operands(graph))


# Dtypes


def test_16_bit_floats_are_rounded_only_at_casts() -> None:
    made = Builder()
    x = made.input((40,), "float16")
    third = made.op("divide", x, made.number(3.0))
    graph = made.graph(made.op("multiply", made.cast(third, "float16"), made.number(1.5)), third)
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
    made = Builder()
    graph = made.graph(made.cast(made.op("exp", made.input((40,), dtype)), "float16"))
    (phase,) = check(graph, operands(graph)).phases
    assert [step.op for step in phase.steps] == ["exp", "convert"]
    assert value_dtype(phase, phase.stores[0].value) == "float16"


def test_cheaper_steps_give_the_same() -> None:
    made = Builder()
    x = made.input((40,))
    parts = [made.op("divide", x, made.number(value)) for value in (8.0, -0.25, 3.0, 2.0**-130)]
    graph = made.graph(*parts, made.op("pow", x, made.number(2.0)))
    given = operands(graph)
    (phase,) = check(graph, given).phases
    assert [step.op for step in phase.steps] == ["multiply"] * 2 + ["divide"] * 2 + ["square"]
    results = evaluate_program(lower(graph), given)
    for found, wanted in zip(results, evaluate(graph, given), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_numbers_are_rounded_to_the_dtype_beside_them() -> None:
    made = Builder()
    x = made.input((4,), "float16")
    (phase,) = lower(made.graph(made.op("multiply", x, made.number(0.1)))).phases
    assert phase.literals == (Literal(float(np.float16(0.1)), "float32"),)


def test_zeros_of_both_signs_are_two_numbers() -> None:
    made = Builder()
    x = made.input((4,))
    both = [made.op("copysign", x, made.add(Constant(zero, "float64"))) for zero in (0.0, 1.0)]
    (phase,) = lower(made.graph(*both)).phases
    assert len(phase.literals) == 2
    negative = Graph((*made.nodes[:1], Constant(-0.0, "float64")), (1,), 1)
    assert str(lower(negative).phases[0].literals[0].value) == "-0.0"


def test_stretched_operand_is_converted_when_loaded() -> None:
    made = Builder()
    x, row = made.input((2, 4), "uint8"), made.input((4,), "uint8")
    given = made.cast(x, "float32"), made.cast(row, "float32")
    (phase,) = lower(made.graph(made.op("add", *given))).phases
    assert [load.dtype for load in phase.loads] == ["uint8", "float32"]
    assert [step.op for step in phase.steps] == ["convert", "add"]


def test_load_with_two_dtypes_is_converted_after_loading() -> None:
    made = Builder()
    x, row = made.input((2, 4)), made.input((4,), "uint8")
    both = made.op("add", x, made.cast(row, "float32")), made.op("add", row, row)
    graph = made.graph(made.op("add", both[0], made.cast(both[1], "float32")))
    (phase,) = check(graph, operands(graph)).phases
    assert [load.dtype for load in phase.loads] == ["float32", "uint8"]


# What is refused


def test_many_results_are_several_phases() -> None:
    made = Builder()
    pairs = [(made.input((4,)), made.input((4,))) for _ in range(20)]
    graph = made.graph(*(made.op("add", *pair) for pair in pairs))
    program = check(graph, operands(graph))
    assert [len(phase.stores) for phase in program.phases] == [10, 10]


def test_too_many_operands_are_refused() -> None:
    made = Builder()
    total = made.input((4,))
    for _ in range(40):
        total = made.op("add", total, made.input((4,)))
    with pytest.raises(LoweringError, match="42 arrays meet in one pass; the engine takes 32"):
        lower(made.graph(total))


def test_many_norms_keep_values_needed_by_all_of_them() -> None:
    made = Builder()
    x = rows(made, 64, 64)
    for _ in range(40):
        total = made.reduce("max", x, (1,), keepdims=True)
        x = made.op("tanh", made.op("subtract", x, total))
    graph = made.graph(x)
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
    made = Builder()
    x = made.input((2,), "uint8")
    node = Apply(
        "less", (x, made.number(300)), ((0,), ()), ("uint8", "uint8", "bool"), (2,), "bool"
    )
    with pytest.raises(LoweringError, match="the number 300 is no uint8"):
        lower(made.graph(made.add(node)))


def test_natural_powers_of_integers_are_accepted() -> None:
    made = Builder()
    x = made.input((4,), "int32")
    node = Apply("pow", (x, made.number(3)), ((0,), ()), ("int32",) * 3, (4,), "int32")
    graph = made.graph(made.add(node))
    check(graph, operands(graph))
