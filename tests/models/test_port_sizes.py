"""Ports with large, open or impossible sizes give findings, never errors."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import ir_models
import numpy as np
import pytest
import small
from ported import model_of

import zerostride as zs
from zerostride.engines.table import ENGINES
from zerostride.models.findings import Verdict

#: Sizes of a result; 130 and more are computed at smaller ones.
SIZES = (1, 2, 3, 5, 130, 700, "N", "H", "2*N", "N + 1", None)
ELEMENTWISE = ("Add", "Sub", "Mul", "Max", "Pow", "Less", "PRelu", "Sum", "Where", "Clip")


def part(rng: random.Random, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """A shape that broadcasts to another one, or does not where sizes are open."""
    kept = shape[rng.randint(0, len(shape)) :]
    return tuple(1 if rng.random() < 0.35 else size for size in kept)


def weight(rng: random.Random, shape: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else 1 for size in part(rng, shape))


def drawn(rng: random.Random) -> Any:
    """A model of one or two nodes, of operands that need not fit each other."""
    shape = tuple(rng.choice(SIZES) for _ in range(rng.randint(1, 5)))
    inputs: dict[str, Any] = {"x": shape}
    weights: dict[str, Any] = {}
    nodes, last = [], "x"
    for k in range(rng.randint(1, 2)):
        op = rng.choice((*ELEMENTWISE, "Expand", "Gemm", "MatMul", "LayerNormalization"))
        tensor = f"t{k}"
        count = {"Where": 2, "Clip": 0, "Sum": 2}.get(op, 1)
        operands = [last]
        for j in range(count):
            name = f"{'w' if rng.random() < 0.5 else 'v'}{k}{j}"
            if op == "Expand":
                target = [size for size in shape if isinstance(size, int)]
                weights[name := f"s{k}"] = np.array(target or [1], np.int64)
            elif name[0] == "w":
                weights[name] = weight(rng, shape)
            else:
                inputs[name] = part(rng, shape)
            operands.append(name)
        if op == "Where":
            nodes.append(small.node("Greater", f"{last} {operands[1]}", f"c{k}", name=f"g{k}"))
            operands[0] = f"c{k}"
        if op == "Clip":
            weights[f"low{k}"] = np.array([0.0], np.float32)
            operands.append(f"low{k}")
        if op == "Less":
            nodes.append(small.node(op, " ".join(operands), f"b{k}", name=f"n{k}"))
            nodes.append(small.node("Cast", f"b{k}", tensor, name=f"cast{k}", to=1))
        else:
            nodes.append(small.node(op, " ".join(operands), tensor, name=f"n{k}"))
        last = tensor
    return model_of(nodes, inputs, weights, outputs=(last,))


@pytest.mark.parametrize("seed", range(60))
def test_port_always_returns_a_report(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    file, goal = tmp_path / "m.onnx", tmp_path / "out.onnx"
    file.write_bytes(drawn(rng).SerializeToString())
    for target in rng.sample(list(ENGINES), 5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", zs.EngineVersionWarning)
            report = zs.port(file, target, goal)
        for finding in report.findings:
            explained = any(note.startswith("not ported: ") for note in finding.notes)
            assert explained or finding.verdict is Verdict.SAME, (target, finding)


def test_rewrite_that_breaks_the_whole_model_is_left(tmp_path: Path) -> None:
    # Written out, the slope may be longer than the data: PRelu itself does not take that.
    nodes = [small.node("PRelu", "x v", "t", name="n"), small.node("Relu", "t")]
    model = model_of(nodes, {"x": (5, None, 3, 3, None), "v": (None,)})
    file, goal = tmp_path / "m.onnx", tmp_path / "out.onnx"
    file.write_bytes(model.SerializeToString())
    report = zs.port(file, "mnn", goal, via="none")
    assert "not ported: after writing, " in report.findings[0].notes[-1]
    assert goal.exists()


def test_a_target_size_that_no_operand_has_is_not_computed(tmp_path: Path) -> None:
    ir = ir_models.Ir()
    x, number = ir.parameter("x", ("?",)), ir.constant("c", np.float32(2))
    sizes = ir.layer("s", "ShapeOf", [x], (1,), kind="i64")
    ir.result(ir.layer("b", "Broadcast", [number, sizes], ("?",), 'mode="numpy"', "opset3"))
    report = zs.port(ir.save(tmp_path / "m.xml"), "tensorrt", tmp_path / "out.xml")
    (finding,) = report.findings
    assert "depends on sizes, so it was not computed" in finding.notes[-1]
