"""The output for plans of open sizes: drawings, facts, JSON, comparisons."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import zerostride as zs
from zerostride.core.rules import RULES
from zerostride.core.symbolic import symbols
from zerostride.derive.explain import as_dict, explain, facts, html, svg
from zerostride.derive.explain.facts import blocks, cells, element_by_element
from zerostride.derive.explain.open import Fate, fate, two_sided_where, ways
from zerostride.sizes.dim import Dim, Symbol, dim

SIZES = [0, 1, 1, 2, 3, "N", "M", "K", "?", "0..1", "1..8", "2*N", "N + 1", "N*M", "N//2"]
SIZES += ["bcast(N, M)", "max(N, 2)", "M - N"]
FACTS = [None, "N >= 2", "M == N", "K % 2 == 0", "N == 1 or M >= 3", ["N >= 1", "Q == 2*N"]]


@st.composite
def open_plan(draw: st.DrawFn) -> zs.Plan:
    """A plan by any rule of shapes with symbols, bounds and expressions."""
    rule = draw(st.sampled_from(sorted(RULES)))
    row = RULES[rule]
    count = 2 if row.operands == (2, 2) else draw(st.integers(1, 3))
    shapes = [draw(st.lists(st.sampled_from(SIZES), max_size=4)) for _ in range(count)]
    known = draw(st.sampled_from(FACTS))
    asked: dict[str, Any] = {}
    if "axis" in row.attributes:
        asked["axis"] = draw(st.sampled_from([None, 0, 1, -1]))
    if "broadcast" in row.attributes:
        asked["broadcast"] = 1
    try:
        if row.to_target:
            mode = {"unidirectional": "numpy"}.get(rule, rule)
            axes = list(range(len(shapes[0]))) if rule == "explicit" else None
            data, target = shapes
            plan = zs.plan_to(data, target, mode=mode, axes_mapping=axes, facts=known)
        else:
            plan = zs.plan(*shapes, rule=rule, facts=known, **asked)
    except zs.BroadcastError:
        assume(False)
    assume(plan.open is not None)
    return plan


@settings(max_examples=300, deadline=None)
@given(plan=open_plan(), names=st.lists(st.text(max_size=4), max_size=4))
def test_every_plan_can_be_drawn(plan: zs.Plan, names: list[str]) -> None:
    text = explain(plan, names)
    assert all(line.isprintable() for line in text.splitlines())
    plain = re.sub(r"\x1b\[[0-9;]*m", "", explain(plan, names, color=True))
    assert plain == text
    ET.fromstring(svg(plan, names))
    ET.fromstring(html(plan).replace("<strong>", "").replace("</strong>", ""))
    data = as_dict(plan)
    assert json.loads(json.dumps(data)) == data
    assert "Dim(" not in text + json.dumps(data)


@settings(max_examples=150, deadline=None)
@given(plan=open_plan(), numbers=st.lists(st.lists(st.integers(0, 3), min_size=12), min_size=6))
def test_described_stretches_hold_for_numbers(plan: zs.Plan, numbers: list[list[int]]) -> None:
    """Every stretch, and every warning, of the plan bound is one that was told."""
    where = two_sided_where(plan)
    fates = [[fate(plan, k, a) for a in range(plan.rank)] for k in range(len(plan.operands))]
    for row in numbers:
        assert len(symbols(plan)) <= len(row)
        values = dict(zip(symbols(plan), row, strict=False))
        try:
            for size in itertools.chain(*plan.operands, plan.shape):
                dim(size).evaluate(values)  # a broadcast of sizes need not exist
            bound = plan.bind(values)
        except (zs.BroadcastError, ArithmeticError):
            continue
        assert bound.open is None
        for k, axis in itertools.product(range(len(plan.operands)), range(plan.rank)):
            stretches = axis in bound.stretched[k]
            if fates[k][axis] is Fate.STAYS:
                assert not stretches
            elif fates[k][axis] is Fate.STRETCHES:
                assert stretches == (bound.shape[axis] != 1)
        assert where.evaluate(values) == bound.two_sided


def test_certain_stretches_are_drawn() -> None:
    assert str(zs.plan(("N", 1, "H"), ("C", "H"))) == (
        "rule 'numpy' combines x and y\n"
        "  x       N 1→C H\n"
        "  y       .   C H\n"
        "  result  N   C H\n"
        "  x stretches along result axis 1 (1→C)\n"
        "  y stretches along result axis 0 (absent→N)\n"
        "  the result has N*C*H elements, x N*H and y C*H\n"
        "  WARNING: where C != 1 and N != 1, x and y both stretch, each along an axis that another "
        "one fills; right only if an outer combination is meant"
    )


def test_possible_stretches_are_drawn() -> None:
    lines = zs.plan(("N", 3), ("M", 3)).explain(["a", "b"]).splitlines()
    assert lines[1:6] == [
        "  a                N⇢ 3",
        "  b                M⇢ 3",
        "  result  bcast(M, N) 3",
        "  a may stretch along result axis 0 (where N == 1)",
        "  b may stretch along result axis 0 (where M == 1)",
    ]
    assert lines[6].startswith("  needs: M == N or ")
    assert lines[7].startswith("  ⇢ marks a size that may stretch")


def test_facts_make_stretches_certain() -> None:
    plan = zs.plan(("N", 3), ("M", 3), facts=["N >= 2", "M == 1"])
    assert cells(plan)[1] == ("M→N", "3")
    told = dict(facts(plan))
    assert told["given"] == "given: N >= 2 and M == 1"
    assert "needs" not in told
    assert "legend" not in told


def test_bounds_hidden_in_the_drawing_are_listed() -> None:
    told = dict(facts(zs.plan(("2*N", 3), ("N+1", 1))))
    assert told["interval"] == "axis 0 of the result, 2*N, is 0..2"
    assert "interval" not in dict(facts(zs.plan(("N",), ("1..8",), facts="N == 3")))


def test_unnamed_sizes_are_called_by_their_operand() -> None:
    text = zs.plan(("?", 3), ("0..3", 1)).explain(["img", "mask"])
    assert "needs: img[0] == mask[0] or" in text
    assert "bcast(img[0], mask[0])" in text
    assert "data[0] == 4 or" in str(zs.plan_to(("?",), (4,)))


def test_names_from_files_stay_on_their_line() -> None:
    plan = zs.plan((Dim(Symbol("a\nb\x1b[31m")), 3), ("N", 3))
    assert all(line.isprintable() for line in str(plan).splitlines())
    assert "\x1b" not in json.dumps(as_dict(plan))
    ET.fromstring(plan.svg(["<&>", '"']))


def test_cases_are_drawn_with_their_condition() -> None:
    plan = zs.plan(("H", "W"), ("W",), rule="ncnn")
    assert str(plan).splitlines()[1:7] == [
        "  where H == W:",
        "    x       H W",
        "    y       W .",
        "    result  H W",
        "    y stretches along result axis 1 (absent→W)",
        "    the result has as many elements as x",
    ]
    assert [title for title, _, _ in blocks(plan)[0]] == ["where H == W:", "where H != W:"]
    picture = plan.svg()
    assert "where H == W:" in picture
    assert "where H != W:" in picture


def test_equal_looking_cases_are_drawn_once() -> None:
    # pdpd drops a trailing 1: it lands nowhere, and that is where it would be drawn as 1.
    plan = zs.plan(("N", "C", "H"), ("C",), rule="pdpd", axis=1)
    assert len(plan.cases) == 2
    assert len(ways(plan)) == 1
    assert cells(plan)[1] == (None, "C", None)
    data = as_dict(plan)
    assert data["axes_mapping"][1] == ["depends"]
    assert [case["axes_mapping"][1] for case in data["cases"]] == [[None], [1]]


def test_two_sided_warning_names_a_one_sided_fix() -> None:
    plan = zs.plan(("N", 1), ("N",))
    assert element_by_element(plan) == (1, ("N", 1))
    warning = dict(facts(plan))["two_sided"]
    assert warning.startswith("where N != 1, x and y both stretch")
    assert warning.endswith("reshape y to (N, 1)")
    certain = dict(facts(zs.plan(("N", 1), ("N",), facts="N >= 2")))["two_sided"]
    assert certain.startswith("x and y both stretch")
    assert "two_sided" not in dict(facts(zs.plan(("N", 1), ("M",), facts="N == 1")))


def test_open_plan_has_data() -> None:
    data = as_dict(zs.plan(("N", 1, "?"), ("C", "2*H"), facts="N >= 1"))
    assert data["shape"] == ["N", "C", "2*H"]  # twice a size is not 1
    assert data["operands"] == [["N", 1, "?"], ["C", "2*H"]]
    assert data["stretched"] == [[1], [0]]
    assert data["may_stretch"] == [[2], []]
    assert data["given"] == ["N >= 1"]
    assert len(data["conditions"]) == 1
    assert data["symbols"][1] == {"name": "x[2]", "low": 0, "high": None, "named": False}
    assert data["growth"] is None
    assert data["cases"] == []


def test_data_of_a_concrete_plan_has_the_same_keys() -> None:
    closed, opened = as_dict(zs.plan((2, 3), (3,))), as_dict(zs.plan(("N", 3), (3,)))
    assert closed.keys() <= opened.keys()
    assert closed["conditions"] == closed["cases"] == closed["symbols"] == []


# Comparisons.


def verdicts(*shapes: Any, **more: Any) -> dict[str, str]:
    rows = zs.compare(*shapes, **more).rows
    return {row.name: row.verdict for row in rows if row.kind == "rule"}


def test_comparison_of_symbols_is_printed() -> None:
    comparison = zs.compare(("H", "W"), ("W",))
    row = next(row for row in comparison.rows if row.name == "ncnn")
    assert row.verdict == "same_here"
    (part,) = row.parts
    assert part.kind == "different"
    assert set(map(str, part.when)) == {"H == W", "W != 1"}
    assert part.when(part.values)
    assert f"different when {part.when}, for example H=" in str(comparison)
    assert json.loads(comparison.to_json())["shapes"] == [["H", "W"], ["W"]]
    assert verdicts(("H", "W"), ("W",), facts="H != W")["ncnn"] == "same"
    assert verdicts(("N", "N"), ("N",), facts="N >= 2")["ncnn"] == "different"
    assert verdicts(("N", 3), ("M", 3))["none"] == "same_here"
    assert verdicts(("N", 3), (3,))["none"] == "refused"


@pytest.mark.parametrize(
    "shapes",
    [
        (("H", "W"), ("W",)),
        (("N", "C", "H"), ("C",)),
        (("N", 3), ("M", 3)),
        (("N", 1), ("M",)),
        (("N", "M"), ("N", "K")),
        (("?", "?"), ("1..2",)),
    ],
)
def test_comparison_of_symbols_holds_for_numbers(shapes: tuple[tuple[Any, ...], ...]) -> None:
    comparison = zs.compare(*shapes)
    plan = comparison.reference.answer
    assert isinstance(plan, zs.Plan)
    names = symbols(plan)
    for row in itertools.product((1, 2, 3), repeat=len(names)):
        values = dict(zip(names, row, strict=True))
        try:
            plan.bind(values)
        except zs.BroadcastError:
            continue
        real = [tuple(dim(size).evaluate(values) for size in shape) for shape in comparison.shapes]
        for said, numbers in zip(comparison.rows, zs.compare(*real).rows, strict=True):
            wrong = any(part.when.evaluate(values) for part in said.parts)
            assert wrong == (numbers.verdict not in ("same", "same_here")), (said.name, values)


def test_comparison_with_a_refusing_reference_is_printed() -> None:
    assert verdicts(("N", 3), ("N", 4)) == dict.fromkeys(verdicts((2, 3), (2, 4)), "refused")
    assert verdicts(("N", "C", 5), ("C",), reference="pdpd", axis=1)["numpy"] == "same_here"
