"""Models of many nodes: memory and work grow linearly."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sampled import few

pytest.importorskip("onnx", reason="the models are ONNX files")
import small

import zerostride as zs
from work import calls_of

#: Bytes for a node, at the audit's height: a GB for 100,000.
MOST_BYTES = 10_000
#: Calls of functions for a node.
MOST_CALLS = 1000
FEW, MANY = 400, 1200


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Chains of sums, products and activations on an open batch."""

    def chain(count: int) -> Path:
        nodes = [
            small.node(op, f"t{k} b" if op != "Relu" else f"t{k}", f"t{k + 1}", name=f"n{k}")
            for k in range(count)
            for op in [("Add", "Mul", "Relu")[k % 3]]
        ]
        weights = {"b": np.ones((1, 8), np.float32)}
        content = small.model(nodes, {"t0": ("N", 8)}, weights, outputs=(f"t{count}",))
        file = tmp_path_factory.mktemp("chains") / f"{count}.onnx"
        file.write_bytes(content.SerializeToString())
        return file

    return chain(FEW), chain(MANY)


@pytest.fixture(scope="module")
def own_constants(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Chains of sums, each with a constant of its own."""

    def chain(count: int) -> Path:
        nodes = [small.node("Add", f"t{k} c{k}", f"t{k + 1}") for k in range(count)]
        weights = {f"c{k}": (3,) for k in range(count)}
        content = small.model(nodes, {"t0": ("n", 3)}, weights, outputs=(f"t{count}",))
        file = tmp_path_factory.mktemp("constants") / f"{count}.onnx"
        file.write_bytes(content.SerializeToString())
        return file

    return chain(FEW), chain(MANY)


def height(file: Path, job: Callable[[Path], Any]) -> int:
    """The most bytes at once of a job."""
    tracemalloc.start()
    try:
        job(file)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def reports(file: Path) -> None:
    """An audit, and its findings as text, JSON and HTML."""
    report = zs.audit(file, "ncnn")
    str(report)
    report.to_html()
    report.to_json()


def sizes(file: Path) -> None:
    str(zs.shapes(file))


def ported(file: Path) -> None:
    zs.port(file, "ncnn", file.with_name("out.onnx"))


JOBS = (reports, sizes, ported)


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("kind", few(1, ["own_constants", "chains"]))
def test_memory_is_linear_in_nodes(
    kind: str, job: Callable[[Path], Any], request: pytest.FixtureRequest
) -> None:
    few, many = request.getfixturevalue(kind)
    job(few)  # imports
    assert height(many, job) - height(few, job) < MOST_BYTES * (MANY - FEW)


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("kind", few(1, ["chains", "own_constants"]))
def test_work_is_linear_in_nodes(
    kind: str, job: Callable[[Path], Any], request: pytest.FixtureRequest
) -> None:
    few, many = request.getfixturevalue(kind)
    job(few)  # imports
    calls = [calls_of(lambda file=file: job(file)) for file in (few, many)]
    assert calls[1] < 1.3 * MANY / FEW * calls[0]
    assert calls[1] - calls[0] < MOST_CALLS * (MANY - FEW)


@pytest.mark.slow
def test_work_on_open_sizes_grows_with_the_nodes_and_their_axes(tmp_path: Path) -> None:
    def sums(count: int, rank: int) -> int:
        nodes, inputs = [], {}
        for k in range(count):
            for side in "xy":
                inputs[f"{side}{k}"] = tuple(f"{side}{k}_{axis}" for axis in range(rank))
            nodes.append(small.node("Add", f"x{k} y{k}", f"z{k}", name=f"n{k}"))
        content = small.model(nodes, inputs, outputs=tuple(f"z{k}" for k in range(count)))
        file = tmp_path / f"{count}-{rank}.onnx"
        file.write_bytes(content.SerializeToString())
        return calls_of(lambda: zs.audit(file, "ncnn"))

    sums(1, 4)  # imports
    few = sums(2, 8)
    assert sums(8, 8) < 1.3 * 4 * few
    assert sums(2, 32) < 2 * 4 * few
