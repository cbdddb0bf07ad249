"""The work of comparing two models grows with their number of nodes, counted in steps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import zerostride as zs
from zerostride.models.equivalent.pair import paired
from zerostride.models.equivalent.proof import prove
from zerostride.models.equivalent.terms import builder, term
from zerostride.models.options import ModelOptions

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.equivalent_scale import build, judge

#: The steps of a node may grow by so much from 100 to 400 nodes.
MOST_GROWTH = 1.25


def steps_of(nodes: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The calls that make views and terms, for each node of both models."""
    counts = {"views": 0, "terms": 0}

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            counts[name] += 1
            return function(*args, **kwargs)

        return call

    files = [folder / f"{nodes}_{k}.onnx" for k in range(2)]
    written = sum(build(nodes, file, optimised=bool(k)) for k, file in enumerate(files))
    graphs = [ModelOptions().read(str(file)) for file in files]
    with monkeypatch.context() as patch:
        patch.setattr(builder.Builder, "view", counted("views", builder.Builder.view))
        patch.setattr(term.Terms, "get", counted("terms", term.Terms.get))
        prove(paired(*graphs))
    return {name: count / written for name, count in counts.items()}


def test_steps_of_a_node_do_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = steps_of(100, tmp_path, monkeypatch)
    many = steps_of(400, tmp_path, monkeypatch)
    assert few["views"] > 1
    for name, count in many.items():
        assert count <= MOST_GROWTH * few[name], (name, few, many)


def test_the_pair_is_the_same_each_time_and_means_the_same(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.onnx", "b.onnx", "c.onnx")]
    counts = [build(60, file, optimised=k == 1) for k, file in enumerate(files)]
    assert counts[1] < counts[0] == counts[2]
    assert files[0].read_bytes() == files[2].read_bytes()
    result = zs.equivalent(files[0], files[1]).equivalence
    assert result is not None
    assert result.verdict in ("rounded", "undecided")
    assert result.error < 1e-5


def test_goal_needs_time_memory_and_a_proof() -> None:
    row = {"nodes": 510, "seconds": 9.0, "bytes": 1 << 29, "verdict": "rounded"}
    assert [goal.reached for goal in judge([row])] == [True]
    for change in ({"seconds": 11.0}, {"bytes": 1 << 31}, {"verdict": "undecided"}):
        assert [goal.reached for goal in judge([{**row, **change}])] == [False]
    assert not judge([{**row, "nodes": 100}])
