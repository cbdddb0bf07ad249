"""Broadcasts that differ in their sizes alone are judged once, and as if each were the only one."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import small

from zerostride.engines import ENGINES
from zerostride.models.alike import pattern, resized
from zerostride.models.findings import Finding, Verdict, Witness
from zerostride.models.graph import Node, Value
from zerostride.models.sites import find_site

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


def findings(cases: list[tuple[str, Any, Any]], target: str) -> list[dict[str, Any]]:
    """The findings of one model with a node for each case."""
    nodes, inputs = [], {}
    for k, (op, a, b) in enumerate(cases):
        inputs[f"a{k}"], inputs[f"b{k}"] = a, b
        nodes.append(small.node(op, f"a{k} b{k}", f"y{k}", name=f"n{k}"))
    model = small.model(nodes, inputs, outputs=[f"y{k}" for k in range(len(cases))])
    report = small.audit(model, target, batch_axis=-1)
    return [finding.as_dict() for finding in report.findings]


@pytest.mark.parametrize("target", TARGETS)
def test_together_and_alone_findings_are_the_same(target: str) -> None:
    draw = random.Random(target)
    cases = [(draw.choice(OPS), *pair(draw)) for _ in range(60)]
    # The same patterns once more, with sizes that are larger, and in another order.
    for op, a, b in cases.copy():
        names = {size: size for size in (0, 1)}
        fresh = draw.sample(range(2, 40), 8)
        for size in sorted({*a, *b} - {0, 1}, key=lambda _: draw.random()):
            names[size] = fresh.pop()
        cases.append((op, tuple(names[s] for s in a), tuple(names[s] for s in b)))
    together = findings(cases, target)
    for k, (op, a, b) in enumerate(cases):
        (alone,) = findings([(op, a, b)], target)
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


def test_what_is_not_the_same_is_judged_by_itself() -> None:
    site = _site((2, 5), (5,))
    plan = site.plan(((2, 5), (5,)))
    same = Finding("n", "Add", (), plan, plan, Verdict.SAME, "same_plan", "means the same")
    made = resized(same, (2, 5), (3, 8), _site((3, 8), (8,)))
    assert made is not None
    assert isinstance(made.source, type(plan))
    assert (made.source.shape, made.source.operands) == ((3, 8), ((3, 8), (8,)))
    assert made.operands == (("a", (3, 8)), ("b", (8,)))
    for change in (
        {"verdict": Verdict.DIFFERENT},
        {"reason": "other"},
        {"target": None},
        {"witness": Witness((), "add", (), 0, 1)},
    ):
        assert resized(replace(same, **change), (2, 5), (3, 8), site) is None  # type: ignore[arg-type]
    huge = 2**40
    assert resized(same, (2, 5), (huge, huge + 1), site) is None
