"""Runs where zerostride and this package are installed: pytest examples/plugin_package"""

from pathlib import Path

import pytest

import zerostride as zs
from zerostride.engines import ENGINES


def test_the_rule():
    assert zs.plan((5, 5), (5,), rule="toyleft").aligned == ((5, 5), (5, 1))
    assert zs.add([[1, 2], [3, 4]], [10, 20], rule="toyleft").tolist() == [[11, 12], [23, 24]]
    assert zs.plan((5, 5), (5,)).express("toyleft").shapes == ((5, 5), (1, 5))


def test_the_engine_and_its_limits():
    assert zs.plan((5, 5), (5,), engine="toyinfer").aligned == ((5, 5), (5, 1))
    with pytest.raises(zs.BroadcastError, match="the most it carries is 3"):
        zs.plan((2, 2, 2, 2), (2,), engine="toyinfer")
    with pytest.raises(zs.BroadcastError, match="an empty result ends the process"):
        zs.plan((0, 5), (1,), engine="toyinfer")
    assert not zs.supports("toyinfer", "Exp")
    assert not zs.supports("toyinfer", "Mul", "float32", [(5, 5), (5,)])
    assert zs.supports("toyinfer", "Add", "float32", [(5, 5), (5,)])
    assert ENGINES.source("toyinfer") == "zerostride-toyinfer 1.0"
    assert "toyinfer" in {row.name for row in zs.compare((5, 5), (5,)).rows}


def test_the_format(tmp_path: Path):
    model = tmp_path / "model.toy"
    model.write_text("a 4 5\nb 4\nc = Add a b\n")
    assert zs.audit(model, target="toyinfer").ok
    (finding,) = zs.audit(model, target="numpy").findings
    assert (finding.verdict, finding.fix.shapes) == ("refused", ((4, 5), (4, 1)))
    model.write_text("c = Add a b\n")
    with pytest.raises(zs.ModelError, match="there is no tensor 'a'"):
        zs.audit(model, target="numpy")
