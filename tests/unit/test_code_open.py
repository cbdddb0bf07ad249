"""Source for open sizes equals the source of the plan with numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx.reference
import pytest
from code_runs import execute, expected, inputs
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import zerostride as zs
from zerostride.core.rules import RULES
from zerostride.core.symbolic import symbols
from zerostride.derive.code import TARGETS, code, guard_code
from zerostride.derive.explain.facts import names_of
from zerostride.sizes.dim import Dim, Symbol, calls, dim

#: What a plan may be made of, and the values that its symbols take.
PIECES = [1, 2, 3, "N", "M", "K", "?", "0..2", "2*N", "N + 1", "N//2", "max(N, 2)", "bcast(N, M)"]
ELEMENTWISE = [name for name, rule in RULES.items() if not rule.to_target]


@st.composite
def open_plan(draw: st.DrawFn) -> zs.Plan:
    """A plan of sizes that are not known, by any element-wise rule."""
    rule = draw(st.sampled_from(ELEMENTWISE))
    shapes = draw(st.lists(st.lists(st.sampled_from(PIECES), max_size=3), min_size=2, max_size=2))
    given = {name: 1 for name in ("axis", "broadcast") if name in RULES[rule].attributes}
    if "axis" in given:
        given["axis"] = draw(st.sampled_from([0, 1]))
    facts = draw(st.sampled_from([None, "N >= 2", "M != N"]))
    try:
        plan = zs.plan(*shapes, rule=rule, facts=facts, **given)  # type: ignore[arg-type]
    except zs.BroadcastError:
        assume(False)
    assume(plan.open is not None)
    return plan


def run_symbolic(
    plan: zs.Plan, target: str, arrays: list[np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]]:
    names = ["a", "b"]
    module = __import__("torch") if target == "torch" else None
    data = [module.from_numpy(array.copy()) for array in arrays] if module else list(arrays)
    space = dict(zip(names, data, strict=True))
    execute(code(plan, target, names), space)
    return [np.asarray(space[name]) for name in names]


@settings(max_examples=300, deadline=None)
@given(plan=open_plan(), numbers=st.lists(st.integers(0, 4), min_size=8, max_size=8))
def test_source_for_symbols_matches_the_bound_plan(plan: zs.Plan, numbers: list[int]) -> None:
    check_symbolic(plan, numbers, "numpy")


@settings(max_examples=100, deadline=None)
@example(plan=zs.plan(("N + 1",), ("N + 1",), rule="pdpd", axis=1), numbers=[0] * 8)
@given(plan=open_plan(), numbers=st.lists(st.integers(0, 4), min_size=8, max_size=8))
def test_einops_source_for_symbols_runs(plan: zs.Plan, numbers: list[int]) -> None:
    pytest.importorskip("einops")
    check_symbolic(plan, numbers, "einops")


@settings(max_examples=50, deadline=None)
@given(plan=open_plan(), numbers=st.lists(st.integers(0, 4), min_size=8, max_size=8))
def test_torch_source_for_symbols_runs(plan: zs.Plan, numbers: list[int]) -> None:
    pytest.importorskip("torch")
    check_symbolic(plan, numbers, "torch")


def source_or_advice(plan: zs.Plan, target: str, names: Sequence[str] = ()) -> str | None:
    """The source; None where it is refused, which has to say what to do."""
    try:
        return code(plan, target, names)
    except zs.BroadcastError as error:
        refused = error
    assert refused.reason == "unknown_size"
    assert "bind" in (refused.hint or "")
    return None


def check_symbolic(plan: zs.Plan, numbers: list[int], target: str) -> None:
    """Real shapes that fit give the bound plan's views; what does not fit is asserted against."""
    source = source_or_advice(plan, target, ["a", "b"])
    if source is None:
        return
    values = dict(zip(symbols(plan), numbers, strict=False))
    try:
        real = [tuple(dim(size).evaluate(values) for size in shape) for shape in plan.operands]
    except ArithmeticError:
        assume(False)
    strict = not any(any(calls(dim(size))) for shape in plan.operands for size in shape)
    compare_symbolic(plan, target, source, real, lambda: plan.bind(values), strict)
    # One size is another one: it may fit still, as another symbol's value.
    row = numbers[-1] % 2
    if strict and real[row]:
        axis = numbers[-2] % len(real[row])
        real[row] = tuple(size + (k == axis) for k, size in enumerate(real[row]))
        compare_symbolic(plan, target, source, real, lambda: plan.bind(*real), strict)


def compare_symbolic(
    plan: zs.Plan,
    target: str,
    source: str,
    shapes: list[tuple[int, ...]],
    bind: Callable[[], zs.Plan],
    strict: bool,
) -> None:
    arrays = [np.arange(np.prod(s, dtype=int), dtype="f4").reshape(s) for s in shapes]
    bound = None
    with suppress(zs.BroadcastError):
        bound = bind()
    if bound is not None:
        for got, want in zip(run_symbolic(plan, target, arrays), bound.views(*arrays), strict=True):
            np.testing.assert_array_equal(got, want, strict=True)
    elif strict:
        with pytest.raises(AssertionError):
            print(shapes, source, run_symbolic(plan, target, arrays))


def test_symbols_are_read_from_shapes() -> None:
    assert code(zs.plan(("N", 1, "H"), ("C", "H")), "numpy").splitlines()[2:] == [
        "# x: (N, 1, H), y: (C, H) -> (N, C, H)",
        'assert len(x.shape) == 3 and x.shape[1] == 1, "x is not (N, 1, H)"',
        "N, _, H = x.shape",
        'assert len(y.shape) == 2, "y is not (C, H)"',
        "C, _ = y.shape",
        'assert y.shape[1] == H, "axis 1 of y is not H"',
        "x = np.broadcast_to(x, (N, C, H))",
        "y = np.broadcast_to(y, (N, C, H))",
    ]


def test_linear_expression_is_solved_for_its_symbol() -> None:
    source = code(zs.plan(("2*N + 1", "N"), ("2*M",)), "numpy")
    assert "N = (x.shape[0] - 1) // 2" not in source  # it stands alone on the other axis
    assert 'assert x.shape[0] == 2*N + 1, "axis 0 of x is not 2*N + 1"' in source
    assert 'assert y.shape[0] % 2 == 0, "axis 0 of y is not 2*M"\nM = y.shape[0] // 2' in source


def test_cases_become_an_if() -> None:
    lines = code(zs.plan(("H", "W"), ("W",), rule="ncnn"), "numpy").splitlines()
    assert lines[-8:] == [
        "if H == W:",
        "    x = np.broadcast_to(x, (H, W))",
        "    y = np.broadcast_to(y.reshape(W, 1), (H, W))",
        "elif H != W:",
        "    x = np.broadcast_to(x, (H, W))",
        "    y = np.broadcast_to(y, (H, W))",
        "else:",
        '    raise AssertionError("x and y do not broadcast")',
    ]


@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize(
    "plan",
    [
        zs.plan(("N", 1, "H"), ("C", "H")),
        zs.plan(("H", "W"), ("W",), rule="ncnn"),
        zs.plan(("N // 2", "?"), ("M", "len")),
        zs.plan(("_", "class", "np"), ("for", "x", "1..8")),
        zs.plan_to(("N",), ("M", 4, "K")),
        zs.plan((Dim(Symbol('a "b" \\\n')),), ("ａ",)),
    ],
)
def test_every_target_writes_source_for_symbols_or_advises_to_bind(
    plan: zs.Plan, target: str
) -> None:
    text = source_or_advice(plan, target)
    if text is None:
        assert target not in ("numpy", "torch", "jax", "tensorflow", "paddle", "mnn")
    elif target == "openvino-ir":
        assert ElementTree.fromstring(text).tag == "net"
    else:
        compile(text, target, "exec")


@pytest.mark.parametrize("name", ["a --><x/>", "---", "-", "]]>", "&lt;<", "\x00\x1b", "é\u202e\n"])
def test_symbols_cannot_inject_code(name: str) -> None:
    plan = zs.plan((Dim(Symbol(name)), 3), (3,))
    for target in TARGETS:
        text = source_or_advice(plan, target)
        if target == "openvino-ir":
            assert text is not None
            assert {node.tag for node in ElementTree.fromstring(text)} == {"layers", "edges"}
        elif text is not None:
            compile(text, target, "exec")


def test_one_way_stretching_is_kept_in_a_graph() -> None:
    for target in ("onnx", "openvino", "openvino-ir"):
        with pytest.raises(zs.BroadcastError, match="a graph has one way only"):
            code(zs.plan(("H", "W"), ("W",), rule="ncnn"), target)


def test_source_for_a_symbolic_target_runs() -> None:
    plan = zs.plan_to(("N",), ("M", 4, "K"))
    data = np.arange(3.0)
    for target, fits in (((2, 4, 3), True), ((2, 5, 3), False), ((2, 4, 2), False)):
        space: dict[str, Any] = {"data": data, "target": target}
        if fits:
            execute(code(plan, "numpy"), space)
            np.testing.assert_array_equal(space["data"], np.broadcast_to(data, target))
        else:
            with pytest.raises(AssertionError):
                execute(code(plan, "numpy"), space)


def test_given_facts_are_asserted() -> None:
    source = code(zs.plan(("N", 3), ("M", 3), facts=["N >= 2", "K == 2*N"]), "numpy")
    assert 'assert N >= 2, "it was given that N >= 2"' in source
    assert "# given, and not told by the shapes: K == 2*N" in source


@pytest.mark.parametrize(
    "plan",
    [
        zs.plan(("N", 1, "H"), ("C", "H")),
        zs.plan(("N", 3), ("M", 3), ("K", 1, 1)),
        zs.plan(("N", "C", "H"), ("C", 1), rule="paddle", axis=1),
        zs.plan_to(("N",), ("M", 4, "K")),
    ],
)
def test_onnx_model_for_symbols_runs(plan: zs.Plan) -> None:
    names = names_of(plan)[:-1]
    space: dict[str, Any] = {}
    execute(code(plan, "onnx"), space)
    session = onnx.reference.ReferenceEvaluator(space["model"])
    for size in (0, 1, 3):
        bound = plan.bind(dict.fromkeys(symbols(plan), size))
        feeds = dict(zip(names, inputs(bound), strict=True))
        if names == ("data",):
            feeds["target"] = np.array(bound.shape)
        for got, want in zip(session.run(None, feeds), expected(bound, inputs(bound)), strict=True):
            np.testing.assert_array_equal(got, want, strict=True)


def test_guard_is_available_as_source() -> None:
    source = guard_code(zs.plan(("N", 3), ("M", 3)), ["a", "b"])
    for shapes, holds in ((((4, 3), (1, 3)), True), (((4, 3), (2, 3)), False)):
        space = dict(zip("ab", map(np.zeros, shapes), strict=True))
        if holds:
            execute(source, space)
        else:
            with pytest.raises(AssertionError, match="a and b do not broadcast on axis 0"):
                execute(source, space)
