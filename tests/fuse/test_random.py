"""Random fused programs compared with the reference; the judge finds wrong results only."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from campaigns.__main__ import main
from campaigns.fuse import command as campaign
from campaigns.fuse.bounds import bounds
from campaigns.fuse.cases import DrawnStep, FuseCase, FuseProgram, function_source, source
from campaigns.fuse.draw import cases
from campaigns.fuse.graph import graph_of
from campaigns.fuse.judge import fused_of, judge
from campaigns.native.cases import Memory, Number, View, contiguous, dtype_of
from campaigns.native.judge import BOUND, FAMILIES
from hypothesis import given, settings
from hypothesis import strategies as st

import zerostride as zs
from zerostride.compute import native
from zerostride.fusion import reference
from zerostride.fusion.trace.graph import Graph

SAMPLE = 800
needs_native = pytest.mark.skipif(
    not native.backend().startswith("native"), reason="the native engine is not in use"
)


def test_sample_has_no_differences():
    result = campaign.judge_all(cases(0, SAMPLE, seed=1))
    shown = "\n\n".join(f"# case {d.case}: {d.text}\n{d.code}" for d in result.differences)
    assert result.cases == SAMPLE
    assert not result.differing, shown


@needs_native
def test_engine_computes_most_of_the_sample():
    result = campaign.judge_all(cases(0, 400, seed=3))
    assert result.handed_over < 0.1 * result.cases


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(0, 10_000))
def test_any_case_of_any_seed_can_be_drawn(seed, first):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ((_, case),) = cases(first - first % 500, 1, seed)
        assert judge(case).difference == "", source(case)


# The generator


@pytest.fixture(scope="module")
def sample() -> list[FuseCase]:
    return [case for _, case in cases(0, 4000, seed=5)]


def test_sample_contains_every_kind_of_step(sample):
    steps = [step for case in sample[::4] for step in case.program.steps]
    ops = {step.name for step in steps if step.kind == "op"}
    assert len(ops) > 85
    assert {step.kind for step in steps} == {"op", "reduce", "view", "cast", "broadcast"}
    assert {step.form for step in steps} == {"zs", "operator", "numpy", "method"}
    reductions = {step.name for step in steps if step.kind == "reduce"}
    assert reductions == {
        *("sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "mean"),
        *("var", "std", "logsumexp", "sum_of_squares"),
    }
    assert {step.options.get("rule") for step in steps} > {None, "numpy", "pdpd", "onnx6"}
    views = [view for case in sample for view in case.operands if isinstance(view, View)]
    assert {len(view.shape) for view in views} == set(range(7))
    assert {view.dtype for view in views} >= {"bool", "int8", "uint64", "float16", "bfloat16"}
    assert {view.dtype for view in views} >= {"float32", "float64", "complex64", "longdouble"}


@pytest.mark.parametrize(
    ("share", "what"),
    [
        (0.2, lambda case: bool(case.outs)),
        (0.15, lambda case: len(case.program.outputs) > 1),
        (0.2, lambda case: any(step.kind == "reduce" for step in case.program.steps)),
        (0.03, lambda case: case.program.dtype is not None),
        (0.1, lambda case: any(isinstance(one, Number) for one in case.operands)),
        (0.1, lambda case: _overlaps(case)),
        (0.2, lambda case: any(_is_strided(view) for view in case.operands)),
        (0.1, lambda case: _has_a_tail(case)),
        (0.01, lambda case: any(0 in view.shape for view in case.operands if _is_view(view))),
    ],
)
def test_shares_of_rare_features_are_large_enough(sample, share, what):
    assert sum(map(what, sample)) >= share * len(sample)


def _is_view(operand: Any) -> bool:
    return isinstance(operand, View)


def _is_strided(operand: Any) -> bool:
    return _is_view(operand) and operand.strides != contiguous(
        operand.shape, dtype_of(operand.dtype).itemsize
    )


def _overlaps(case: FuseCase) -> bool:
    used = {view.memory for view in case.operands if isinstance(view, View)}
    return any(out is not None and out.memory in used for out in case.outs)


def _has_a_tail(case: FuseCase) -> bool:
    reductions = {
        case.program.operands + k
        for k, step in enumerate(case.program.steps)
        if step.kind == "reduce"
    }
    return any(reductions & {*step.args} for step in case.program.steps if step.kind == "op")


# Wrong answers


def by_graph(change: Callable[[list[Any]], Any], case: FuseCase) -> Any:
    """A fused function that evaluates the graph of `case`, and then `change`s the results."""

    def fused(program: FuseProgram) -> Callable[..., Any]:
        def call(*operands: Any, out: Any = None) -> Any:
            results = reference.evaluate(graph_of(replace(case, program=program)), operands)
            results = change(results) or results
            outs = [] if out is None else [out] if len(results) == 1 else out
            for k, target in enumerate(outs):
                if target is not None:
                    np.copyto(target, results[k], casting="same_kind")
                    results[k] = target
            return results[0] if len(results) == 1 else results

        return call

    return fused


def made(
    *steps: DrawnStep, dtype: str = "float32", style: str = "plain", operands: int = 1
) -> FuseCase:
    """A case on (4, 5) arrays whose last step is its result."""
    size = dtype_of(dtype).itemsize
    memories = tuple(Memory(20 * size, dtype, style, 100 * k) for k in range(operands))
    views = tuple(View(k, dtype, 0, (4, 5), contiguous((4, 5), size)) for k in range(operands))
    program = FuseProgram(operands, steps, (operands + len(steps) - 1,))
    return FuseCase(program, memories, views)


ADD = DrawnStep("op", "add", (0, 0), {})
EXP = DrawnStep("op", "exp", (0,), {})
SUM = DrawnStep("reduce", "sum", (0,), {"axis": -1})


def nudge(units: float) -> Callable[[list[Any]], None]:
    def change(results: list[Any]) -> None:
        results[0][0] += units * np.spacing(results[0][0])

    return change


@pytest.mark.parametrize(
    ("steps", "units", "seen"),
    [
        ((ADD,), 0, False),
        ((ADD,), 1, True),
        ((EXP,), BOUND, False),
        ((EXP,), 3 * BOUND, True),
        ((EXP, DrawnStep("op", "multiply", (1, 0), {})), BOUND, False),
        ((EXP, DrawnStep("op", "multiply", (1, 0), {})), 6 * BOUND, True),
        ((SUM,), 1, False),
        ((SUM,), 1000, True),
        ((EXP, DrawnStep("op", "floor", (1,), {})), 1, True),
    ],
)
def test_difference_beyond_the_units_is_seen(steps, units, seen):
    case = made(*steps)
    assert bool(judge(case, by_graph(nudge(units), case)).difference) == seen


def replaced(index: int, value: Any) -> Callable[[list[Any]], None]:
    def change(results: list[Any]) -> None:
        results[0].flat[index] = value

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda results: [results[0].astype("float64")], "dtype float64"),
        (lambda results: [results[0].T], "shape (5, 4)"),
        (lambda results: [results[0].tolist()], "a list"),
        (replaced(7, np.nan), "element (1, 2): np.float32(nan)"),
        (replaced(0, 1e30), "(1 of 20 differ)"),
    ],
)
def test_differences_of_shape_dtype_and_layout_are_seen(change, text):
    case = made(EXP)
    assert text in judge(case, by_graph(change, case)).difference


def test_zero_of_the_other_sign_is_a_difference():
    case = made(DrawnStep("op", "multiply", (0, Number(0.0)), {}), style="positive")
    assert "-0.0" in judge(case, by_graph(replaced(3, -0.0), case)).difference


def test_missing_nan_is_a_difference():
    case = made(DrawnStep("op", "log", (0,), {}))
    value = reference.evaluate(graph_of(case), case.make().operands)[0]
    index = int(np.flatnonzero(np.isnan(value))[0])
    assert "nan" in judge(case, by_graph(replaced(index, 1.0), case)).difference


def test_raised_error_is_a_difference():
    def fails(*_: Any) -> Any:
        raise RuntimeError("no")

    assert judge(made(ADD), lambda _: fails).difference == (
        "raised RuntimeError('no'); the reference has a result"
    )
    refused = made(DrawnStep("op", "bitwise_and", (0, 0), {}))
    assert judge(refused).family == "refused"
    assert judge(refused).difference == ""
    assert "there is a result" in judge(refused, lambda _: lambda a: a).difference
    assert "RuntimeError" in judge(refused, lambda _: fails).difference


def test_refusal_of_an_unused_step_counts_as_refusal():
    unread = DrawnStep("op", "squared_difference", (Number(-1), 0), {})
    verdict = judge(
        made(unread, DrawnStep("op", "bitwise_xor", (0, Number(1)), {}), dtype="uint32")
    )
    assert (verdict.family, verdict.difference) == ("refused", "")
    fails = DrawnStep("op", "bitwise_xor", (0, 0), {})
    refused = judge(made(fails, dtype="uint32"), lambda _: _raises_overflow)
    assert "the reference has a result" in refused.difference


def _raises_overflow(*_: Any) -> Any:
    raise OverflowError("no")


def test_missing_results_are_differences():
    case = replace(made(ADD, EXP), program=FuseProgram(1, (ADD, EXP), (1, 2)))
    assert judge(case).difference == ""
    text = judge(case, lambda _: lambda a: a + a).difference
    assert text == "ndarray for 2 results"


def test_wrong_memory_or_out_is_a_difference():
    case = replace(made(ADD), outs=(View(0, "float32", 0, (4, 5), (20, 4)),))
    assert judge(case).difference == ""
    right = by_graph(lambda results: None, case)
    assert judge(case, right).difference == ""

    def copied(program: FuseProgram) -> Callable[..., Any]:
        return lambda *operands, out: right(program)(*operands, out=out).copy()

    assert judge(case, copied).difference == "it is not out"
    plain = made(DrawnStep("op", "positive", (0,), {}))
    assert "shares memory" in judge(plain, lambda _: lambda a: a).difference

    def scribbles(program: FuseProgram) -> Callable[..., Any]:
        def call(a: Any) -> Any:
            result = a + a
            a[0, 0] = 7
            return result

        return call

    assert "memory that is no part of a result" in judge(made(ADD), scribbles).difference


# What may differ


@contextlib.contextmanager
def erring(units: float, seed: int = 0) -> Iterator[None]:
    """Kernels whose functions err by up to so many units, and sums in the values' own dtype."""
    rng = np.random.default_rng(seed)

    def off(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def erring_kernel(*args: Any) -> Any:
            result = np.asarray(kernel(*args))
            if result.dtype.kind != "f" or result.dtype.itemsize > 8:
                return result
            unit = np.spacing(np.where(np.isfinite(result), np.abs(result), 0))
            if name.startswith("logaddexp"):
                sizes = [np.abs(np.asarray(arg, result.dtype)) for arg in args]
                unit = np.fmax(unit, np.spacing(np.where(np.isfinite(sizes), sizes, 0)).max(0))
            moved = result + (rng.integers(-units, units + 1, result.shape) * unit)
            return np.where(np.isfinite(moved), moved, result).astype(result.dtype)

        return erring_kernel

    def backwards(rows: Any) -> Any:
        inner = None if rows.dtype.kind == "f" and rows.dtype.itemsize <= 8 else rows.dtype
        return np.add.reduce(np.ascontiguousarray(rows[..., ::-1]), axis=-1, dtype=inner)

    kernels = {
        name: off(name, kernel) if FAMILIES[name] == "functions" else kernel
        for name, kernel in reference.KERNELS.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "KERNELS", kernels)
        patch.setitem(reference._REDUCTIONS, "sum", backwards)
        yield


def erring_judge(case: FuseCase, units: float) -> str:
    def fused(program: FuseProgram) -> Callable[..., Any]:
        def call(*operands: Any, out: Any = None) -> Any:
            with erring(units):
                return by_graph(lambda results: None, case)(program)(*operands, out=out)

        return call

    return judge(case, fused).difference


def test_error_within_the_bound_is_accepted():
    within = 0
    for k, case in cases(0, 900, seed=11):
        if k % 4 == 0 and not any("complex" in operand.dtype for operand in views_of(case)):
            difference = erring_judge(case, BOUND)
            assert difference == "", f"case {k}: {difference}\n{source(case)}"
            within += 1
    assert within > 200


def test_error_beyond_the_bound_is_found():
    chosen = [case for _, case in cases(0, 600, seed=11) if _ends_in_a_function(case)]
    wrong = [case for case in chosen if erring_judge(case, 100 * BOUND)]
    assert len(wrong) > 0.5 * len(chosen) > 5


def interval(function: Callable[..., Any], *operands: Any) -> tuple[Any, Any, bool]:
    """The one element of a function's result: lowest, highest, whether anything is right."""
    arrays = [np.asarray(operand, "float32") for operand in operands]
    graph = zs.fuse(function).graph(*arrays)
    (bound,) = bounds(graph, arrays)
    opened = bound.open is not None and bool(bound.open.all())
    return bound.low.item(), bound.high.item(), opened


def test_functions_that_jump_at_zero_have_both_results():
    # A sum whose digits cancel may be 0, where the sizes of both its ends are more.
    low, high, _ = interval(lambda x, s: zs.copysign(zs.sum(x, axis=-1), s), [[1e8, 3, -1e8]], [-1])
    assert low < 0 <= high
    # The sine of 0 may be 0 as well as next to it: then it is the second operand, inexact itself.
    low, high, _ = interval(lambda x, h: zs.heaviside(zs.sin(x), -zs.exp(h)), [0], [0])
    assert low < -1 < high


def test_inexact_power_of_a_negative_number_is_open():
    assert interval(lambda x, y: zs.pow(x, zs.exp(y)), [-2], [0])[2]
    assert not interval(lambda x, y: zs.pow(x, zs.exp(y)), [2], [0])[2]
    assert not interval(lambda x, y: zs.pow(x, y), [-2], [3])[2]


def views_of(case: FuseCase) -> list[View]:
    return [operand for operand in case.operands if isinstance(operand, View)]


def _ends_in_a_function(case: FuseCase) -> bool:
    last = case.program.steps[-1] if case.program.steps else ADD
    floats = all(view.dtype in ("float32", "float64") for view in views_of(case))
    return last.kind == "op" and FAMILIES[last.name] == "functions" and floats


def test_few_results_are_open():
    elements = opened = 0
    for k, case in cases(0, 600, seed=12):
        if k % 4 == 0:
            with contextlib.suppress(ValueError, OverflowError), np.errstate(all="ignore"):
                for one in bounds(graph_of(case), case.make().operands):
                    elements += np.size(one.value)
                    opened += 0 if one.open is None else int(one.open.sum())
    assert opened < 0.03 * elements


# Shrinking, printing, the command


def test_shrinking_keeps_the_difference():
    def fused(program: FuseProgram) -> Callable[..., Any]:
        text = function_source(program)

        def call(*operands: Any, out: Any = None) -> Any:
            result = fused_of(program)(*operands)
            if "squared_difference" in text and isinstance(result, np.ndarray):
                result[...] = 12345
            return result

        return call

    case = made(
        DrawnStep("op", "multiply", (0, 1), {}, "operator"),
        DrawnStep("op", "squared_difference", (0, 2), {}, "zs"),
        DrawnStep("reduce", "max", (3,), {"axis": 0, "keepdims": True}, "method"),
        DrawnStep("op", "add", (4, 1), {"rule": "numpy"}),
        operands=2,
    )
    result = campaign.judge_all(iter([(7, case)]), fused)
    (difference,) = result.differences
    assert difference.case == 7
    assert difference.code.count("    t") == 1
    assert "    t0 = zs.squared_difference(a, a)\n" in difference.code
    assert "np.ndarray((), 'float32'" in difference.code or "(1,)" in difference.code


def test_printed_case_runs(sample):
    for case in sample[:40:4]:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(source(case), {})
        assert printed.getvalue()


def test_graph_of_a_case_is_the_tracers(sample):
    graphs = 0
    for case in sample[:200:4]:
        if case.program.dtype is None and not case.outs:
            graph = fused_of(case.program).graph(*case.make().operands)
            assert isinstance(graph, Graph)
            mine = graph_of(case)
            shapes = [(mine.nodes[k].shape, mine.nodes[k].dtype) for k in mine.outputs]
            traced = [(graph.nodes[k].shape, graph.nodes[k].dtype) for k in graph.outputs]
            assert traced == shapes
            graphs += 1
    assert graphs > 10


@pytest.mark.slow
@needs_native
def test_command_judges_every_instruction_set(capsys):
    assert main(["fuse", "--isa", "all", "--cases", "200", "--seed", "2", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [result["isa"] for result in results] == native._native.available_isas()
    for result in results:
        assert sum(tally["cases"] for tally in result["tallies"].values()) == 200
    assert main(["fuse", "--isa", "mmx"]) == 2
    assert "no instruction set 'mmx'" in capsys.readouterr().err


def test_command_prints_differences(capsys):
    result = campaign.judge_all(cases(0, 40, seed=0), lambda _: lambda *a, **k: None)
    campaign._print([result], 3)
    out = capsys.readouterr().out
    assert f"{result.isa}: {result.differing} differences in 40 cases" in out
    assert f"# {result.isa}, seed 3, case 0: " in out
    assert "def fused(" in out


def test_judged_function_is_zerostrides():
    assert fused_of(made(ADD).program)(np.ones(3)).tolist() == zs.add([1.0] * 3, 1).tolist()
