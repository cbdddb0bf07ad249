"""Broadcasts that differ in their sizes alone are judged once, and as if each were the only one."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import small

from zerostride.engines import ENGINES
from zerostride.models.audit import verdict as comparing
from zerostride.models.audit.audit_cache import Like, pattern
from zerostride.models.audit.witness import find_witness
from zerostride.models.findings import Cause, Finding, Verdict, Witness
from zerostride.models.formats.onnx.sites import find_site
from zerostride.models.ir.graph import Node, Value

TARGETS = [name for name in ENGINES if name != "jax"]
OPS = ("Add", "Mul", "Sub", "Pow", "Max", "Equal", "Mod")


def pair(draw: random.Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes that combine, with ones, zeros, equal sizes and other ranks."""
    rank = draw.randint(0, 5)
    whole = [draw.choice([0, 1, 2, 3, 3, 4, 5, 7]) for _ in range(rank)]
    parts = []
    for _ in range(2):
        shape = [size if draw.random() < 0.7 else 1 for size in whole]
        parts.append(tuple(shape[draw.randint(0, rank) if draw.random() < 0.4 else 0 :]))
    return parts[0], parts[1]


def findings(
    cases: list[tuple[str, Any, Any]], target: str, batch_axis: int | None = -1
) -> list[dict[str, Any]]:
    """The findings of one model with a node for each case."""
    nodes, inputs = [], {}
    for k, (op, a, b) in enumerate(cases):
        inputs[f"a{k}"], inputs[f"b{k}"] = a, b
        nodes.append(small.node(op, f"a{k} b{k}", f"y{k}", name=f"n{k}"))
    model = small.model(nodes, inputs, outputs=[f"y{k}" for k in range(len(cases))])
    report = small.audit(model, target, batch_axis=batch_axis)
    return [finding.as_dict() for finding in report.findings]


@pytest.mark.parametrize(
    ("target", "batch_axis"), [*((name, -1) for name in TARGETS), ("ncnn", None), ("ncnn", 0)]
)
def test_together_and_alone_findings_are_the_same(target: str, batch_axis: int | None) -> None:
    draw = random.Random(target)
    cases = [(draw.choice(OPS), *pair(draw)) for _ in range(60)]
    if batch_axis is None:
        cases = [(op, (1, *a[-4:]), (1, *b[-4:]) if len(b) > 2 else b) for op, a, b in cases]
    # The same patterns once more, with sizes that are larger, and in another order.
    for op, a, b in cases.copy():
        names = {size: size for size in (0, 1)}
        fresh = draw.sample(range(2, 40), 8)
        for size in sorted({*a, *b} - {0, 1}, key=lambda _: draw.random()):
            names[size] = fresh.pop()
        cases.append((op, tuple(names[s] for s in a), tuple(names[s] for s in b)))
    together = findings(cases, target, batch_axis)
    for k, (op, a, b) in enumerate(cases):
        (alone,) = findings([(op, a, b)], target, batch_axis)
        text = str(alone).replace("a0", f"a{k}").replace("b0", f"b{k}").replace("n0", f"n{k}")
        assert str(together[k]) == text, (op, a, b)


def _site(a: tuple[Any, ...], b: tuple[Any, ...], op: str = "Add") -> Any:
    node = Node("n", op, "", 17, (Value("a", a), Value("b", b)), (Value("y", None),))
    return find_site(node)


def test_sizes_are_renamed_one_to_one() -> None:
    known = pattern(_site((2, 5, 1), (5, 0)), None)
    assert known is not None
    assert known[1] == (2, 5)
    assert pattern(_site((3, 7, 1), (7, 0)), None) == (known[0], (3, 7))
    for other in ((_site((3, 3, 1), (3, 0))), _site((7, 3, 1), (3, 0)), _site((3, 1, 1), (7, 0))):
        assert (pattern(other, None) or ())[0] != known[0]
    assert pattern(_site((2, "N"), (2, 1)), None) is None
    assert pattern(_site((2, 3), (2, 3), "Where"), None) is None


def test_what_says_a_size_is_judged_by_itself() -> None:
    plan = _site((2, 5), (5,)).plan(((2, 5), (5,)))
    same = Finding("n", "Add", (), plan, plan, Verdict.SAME, "same_plan", "means the same")
    sizes = {2: 3, 5: 8}
    made = Like(same, sizes).resized()
    assert made is not None
    assert isinstance(made.source, type(plan))
    assert (made.source.shape, made.source.operands) == ((3, 8), ((3, 8), (8,)))
    for change in (
        {"verdict": Verdict.DIFFERENT},
        {"reason": "other"},
        {"target": None},
        {"witness": Witness((), "add", (), 0, 1)},
        {"fix": plan.express("ncnn")},
    ):
        assert Like(replace(same, **change), sizes).resized() is None  # type: ignore[arg-type]
    assert Like(same, {2: 2**40, 5: 2**40}).resized() is None


def test_a_broadcast_across_the_batch_is_said_without_sizes() -> None:
    plan = _site((1, 5), (4, 1)).plan(((1, 5), (4, 1)))
    shown = Witness(((1, 3), (2, 1)), "add", (), [2, 3], [3])
    lost = Finding(
        "n", "Add", (), plan, None, Verdict.DIFFERENT, Cause.BATCH, "across", witness=shown
    )
    made = Like(lost, {4: 6, 5: 7}).resized()
    assert made is not None
    assert made.witness == shown
    assert isinstance(made.source, type(plan))
    assert made.source.operands == ((1, 7), (6, 1))


def test_a_fix_is_taken_over_where_the_same_operand_is_the_smaller() -> None:
    # On ncnn either operand may be laid out, and the one with fewer elements is.
    site = _site((2, 3, 1), (1, 1, 7))
    plan = site.plan(((2, 3, 1), (1, 1, 7)))
    fix = replace(plan.express("ncnn"), shapes=((2, 3, 1), (1, 1, 7)))
    found = Finding("n", "Add", (), plan, None, Verdict.DIFFERENT, Cause.SILENT, "", fix)
    made = Like(found, {2: 2, 3: 3, 7: 9}).fix
    assert made is not None
    assert (made.shapes, made.result_shape) == (((2, 3, 1), (1, 1, 9)), (2, 3, 9))
    assert Like(found, {2: 2, 3: 3, 7: 5}).fix is None
    assert Like(replace(found, fix=replace(fix, merged_axes=((0, 1), (2,)))), {2: 4}).fix is None
    # So they are of two patterns.
    known = pattern(site, None)
    assert known is not None
    assert pattern(_site((2, 3, 1), (1, 1, 9)), None) == (known[0], (2, 3, 9))
    assert (pattern(_site((2, 3, 1), (1, 1, 5)), None) or ())[0] != known[0]


def test_a_counter_example_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*args: Any) -> Any:
        calls.append(args)
        return find_witness(*args)

    monkeypatch.setattr(comparing, "find_witness", counted)
    made = findings([("Add", (2, 1, size), (3, 1)) for size in range(5, 25)], "ncnn")
    assert len(calls) == 1
    assert {finding["reason"] for finding in made} == {Cause.SILENT}
    assert [finding["fix"]["shapes"] for finding in made] == [
        ((2, 1, size), (1, 3, 1)) for size in range(5, 25)
    ]
