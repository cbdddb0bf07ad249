"""Tensors that MNN packs after mnnconvert: verdicts on operands of one number, without MNN."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small

import zerostride as zs

WEIGHTS = np.ones((8, 4, 1, 1), np.float32)
CONV = small.node("Conv", "x w", "c")


def verdicts(nodes: list[Any], one: tuple[int, ...] = (1,) * 4, via: str | None = None) -> str:
    """The verdicts of Add nodes, a letter each: s for same, d for different."""
    findings = small.audit(content(nodes, one), "mnn", via).findings
    return "".join(str(f.verdict)[0] for f in findings if f.op == "Add")


def content(nodes: list[Any], one: tuple[int, ...] = (1,) * 4) -> bytes:
    constants = {"w": WEIGHTS, "k": np.full(one, 2, np.float32), "row": np.ones((1, 8, 1, 1), "f")}
    written: bytes = small.model(nodes, {"x": (1, 4, 6, 5)}, constants).SerializeToString()
    return written


@pytest.mark.parametrize(
    ("one", "first", "second"),
    [
        ((), "s", "s"),
        ((1,), "s", "s"),
        ((1, 1, 1), "s", "s"),
        ((1, 1, 1, 1), "d", "s"),
        ((1, 1, 1, 1, 1), "d", "d"),
    ],
)
def test_number_that_decides_the_layout_is_different(
    one: tuple[int, ...], first: str, second: str
) -> None:
    for operands, verdict in (("k c", first), ("c k", second)):
        nodes = [CONV, small.node("Add", operands, "y")]
        assert verdicts(nodes, one) == verdict
        assert verdicts(nodes, one, "none") == "s"


def test_layout_follows_the_ops_between() -> None:
    site = small.node("Add", "k t", "y")
    assert verdicts([small.node("Tanh", "x", "t"), site]) == "s"
    assert verdicts([CONV, small.node("Tanh", "c", "t"), site]) == "d"
    assert verdicts([CONV, small.node("Softmax", "c", "t"), site]) == "s"
    assert verdicts([CONV, small.node("Mul", "c row", "t"), site]) == "d"
    assert verdicts([CONV, small.node("Mul", "row c", "t"), site]) == "s"
    assert verdicts([CONV, small.node("Mish", "c", "t"), site]) == "s"  # not in the tables


def test_alike_sites_of_other_packing_have_their_own_verdicts() -> None:
    sites = [small.node("Add", "k c", "y"), small.node("Add", "k s", "z")]
    assert verdicts([CONV, small.node("Softmax", "c", "s"), *sites]) == "ds"
    assert verdicts([CONV, small.node("Softmax", "c", "s"), *sites[::-1]]) == "sd"


def test_numbers_that_packing_does_not_move_are_the_same() -> None:
    pooled = small.node("GlobalAveragePool", "c", "t")
    assert verdicts([CONV, pooled, small.node("Add", "k t", "y")]) == "s"


def test_finding_has_a_fix_and_the_port_mends_it(tmp_path: Path) -> None:
    file, ported = tmp_path / "m.onnx", tmp_path / "ported.onnx"
    file.write_bytes(content([CONV, small.node("Add", "k c", "t"), small.node("Add", "k t", "y")]))
    for finding in zs.audit(file, "mnn").findings[-2:]:
        assert (finding.verdict, finding.reason) == ("different", "wrong_result")
        assert finding.fix is not None
        assert finding.fix.shapes == ((), (1, 8, 6, 5))
        assert "NC4HW4" in finding.message
    report = zs.port(file, "mnn", ported)
    assert [change.by for change in report.changes] == ["constants"] * 2
    assert "different" not in [finding.verdict for finding in zs.audit(ported, "mnn").findings]
