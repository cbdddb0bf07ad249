"""Broadcasts that differ only in names are judged once, with the same findings as alone."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import small

from sampled import few
from zerostride.derive.counterexample import find_witness
from zerostride.engines import ENGINES
from zerostride.models.audit import verdict as comparing
from zerostride.models.reasons import Cause

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
    """The findings of one model with a node for each case; on ncnn op for op."""
    nodes, inputs = [], {}
    for k, (op, a, b) in enumerate(cases):
        inputs[f"a{k}"], inputs[f"b{k}"] = a, b
        nodes.append(small.node(op, f"a{k} b{k}", f"y{k}", name=f"n{k}"))
    model = small.model(nodes, inputs, outputs=[f"y{k}" for k in range(len(cases))])
    report = small.audit(model, target, "none" if target == "ncnn" else None, batch_axis=batch_axis)
    return [finding.as_dict() for finding in report.findings]


@pytest.mark.parametrize(
    "asked", few(5, [("ncnn", 0), ("ncnn", None), *((name, -1) for name in TARGETS)])
)
def test_together_and_alone_findings_are_the_same(asked: tuple[str, int | None]) -> None:
    target, batch_axis = asked
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


def test_names_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sites that differ in names alone are judged once, and each message has its own names."""
    calls = []

    def counted(*args: Any, **more: Any) -> Any:
        calls.append(args)
        return find_witness(*args, **more)

    monkeypatch.setattr(comparing, "find_witness", counted)
    alike = findings([("Add", (2, 1, 5), (3, 1))] * 20, "ncnn")
    assert len(calls) == 1
    assert {finding["reason"] for finding in alike} == {Cause.SILENT}
    traps = findings([("Add", (3, 5), (5,))] * 3, "ncnn")
    for k, finding in enumerate(traps):
        assert finding["reason"] == Cause.SIZE_TRAP
        assert f"axis 0 of a{k} is as long as axis 0 of b{k}" in finding["message"]


@pytest.mark.parametrize("name", ["\x00{}\x00", "{0!r}", "a'b", "\x1b[31m", "%s"])
def test_any_name_is_a_name(name: str) -> None:
    nodes = [small.node("Add", "x y", "z", name="first"), small.node("Add", "z x", "w", name=name)]
    for node, old, new in ((nodes[0], "y", name), (nodes[0], "x", "b" + name)):
        node.input[list(node.input).index(old)] = new
    nodes[1].input[1] = "b" + name
    model = small.model(nodes, {"b" + name: (5, 5), name: (5,)}, outputs=["w"])
    first, _ = small.audit(model, "ncnn", "none", batch_axis=-1).findings
    assert first.reason == Cause.OTHER_ALIGNMENT
    assert repr(name) in first.message
    assert first.names == ("b" + name, name)


def test_engine_refusal_names_only_its_node() -> None:
    nodes = [small.node("MatMulInteger", f"a b zero{k}", f"y{k}", name=f"n{k}") for k in range(2)]
    weights = {
        "b": np.ones((3, 4), np.uint8),
        "zero0": np.ones((2,), np.uint8),
        "zero1": np.ones((2,), np.uint8),
        "a": np.ones((2, 3), np.uint8),
    }
    model = small.model(nodes, {}, weights, outputs=["y0", "y1"])
    first, second = small.audit(model, "tosa", "none").findings
    assert first.message == second.message
    assert "input 2 has shape (2,)" in second.message


def test_zero_points_count_by_their_numbers() -> None:
    nodes = [
        small.node("QuantizeLinear", f"x scale zero{k}", f"y{k}", name=f"n{k}") for k in range(3)
    ]
    zeros = {f"zero{k}": np.array(number, np.int8) for k, number in enumerate((0, 3, 0))}
    weights = {"scale": np.array(0.5, np.float32), **zeros}
    model = small.model(nodes, {"x": (2, 3)}, weights, outputs=["y0", "y1", "y2"])
    verdicts = [finding.verdict for finding in small.audit(model, "tensorrt").findings]
    assert verdicts == ["same", "refused", "same"]
