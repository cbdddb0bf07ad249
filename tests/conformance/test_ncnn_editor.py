"""The .param editor compared with the real ncnn: rewritten files give the rewrite's numbers."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

import ncnn_models as made
from ncnn_net import Net, feeds

from zerostride.models.formats.ncnn import edit, read
from zerostride.models.formats.ncnn.program import parameter
from zerostride.models.ir.rewrite import SELF, Earlier, Input, Rewrite, RewriteStep

pytestmark = pytest.mark.conformance


def computed(rewrite: Rewrite, arrays: list[Any], number: int) -> Any:
    """What a rewrite of a BinaryOp means, in NumPy."""
    results: list[Any] = []
    for step in rewrite.steps:
        given = [
            arrays[ref.position] if isinstance(ref, Input) else results[ref.step]
            for ref in step.operands
        ]
        if step.op == "reshape":
            results.append(given[0].reshape(step.shape))
        elif step.op == "unsqueeze":
            results.append(np.expand_dims(given[0], step.axes))
        elif step.op == "squeeze":
            results.append(np.squeeze(given[0], step.axes))
        elif step.op == "expand":
            results.append(np.broadcast_to(given[0], step.shape))
        elif step.op == "self":
            results.append(operate(step.attributes.get("0", number), *given))
        else:
            results.append(operate({"add": 0, "subtract": 1, "multiply": 2}[step.op], *given))
    return results[-1]


def operate(number: int, a: Any, b: Any) -> Any:
    assert a.ndim == b.ndim  # where ncnn means what NumPy means
    return [a + b, a - b, a * b, a / b, np.maximum(a, b), None, None, b - a, b / a][number]


def drawn_rewrite(
    rng: random.Random, shape: made.Shape
) -> tuple[made.Shape, tuple[RewriteStep, ...]]:
    """The shape of a second operand, and steps that make the two of one rank."""
    rank = len(shape)
    kept = tuple(n if rng.random() < 0.6 else 1 for n in shape)
    way = rng.choice(("reshape", "unsqueeze", "squeeze", "expand", "both", "swap", "twice"))
    reshaped = RewriteStep("reshape", (Input(1),), shape=kept)
    if way == "unsqueeze" and rank > 1:
        axes = tuple(sorted(rng.sample(range(rank), rng.randint(1, rank - 1))))
        other = tuple(n for k, n in enumerate(shape) if k not in axes)
        return other, (RewriteStep("unsqueeze", (Input(1),), axes=axes), SELF(Input(0), Earlier(0)))
    if way == "squeeze" and rank < 4:
        axis = rng.randrange(rank + 1)
        other = (*kept[:axis], 1, *kept[axis:])
        return other, (
            RewriteStep("squeeze", (Input(1),), axes=(axis,)),
            SELF(Input(0), Earlier(0)),
        )
    if way == "expand":
        other = kept[rng.randrange(rank) :]
        while len(other) < rank and rng.random() < 0.5:
            other = (1, *other)
        return other, (RewriteStep("expand", (Input(1),), shape=shape), SELF(Input(0), Earlier(0)))
    flat = (int(np.prod(kept)),)
    if way == "both":
        whole = RewriteStep("reshape", (Input(0),), shape=(int(np.prod(shape)),))
        back = RewriteStep("reshape", (Earlier(0),), shape=(-1, *shape[1:]))
        return flat, (
            whole,
            back,
            RewriteStep("reshape", (Input(1),), shape=kept),
            SELF(Earlier(1), Earlier(2)),
        )
    if way == "swap":
        return flat, (reshaped, SELF(Earlier(0), Input(0), **{"0": 7}))
    if way == "twice":
        double = RewriteStep("multiply", (Earlier(0), Earlier(1)))
        summed = RewriteStep("add", (Input(0), Earlier(0)))
        return flat, (
            reshaped,
            summed,
            double,
            SELF(Earlier(2), Earlier(1)),
        )
    return flat, (reshaped, SELF(Input(0), Earlier(0)))


def test_rewritten_files_give_the_rewrites_numbers(ncnn: Net, tmp_path: Path) -> None:
    table: Counter[str] = Counter()
    for number in range(240):
        rng = random.Random(f"edit/{number}")
        shape = tuple(rng.choice((1, 2, 3, 4, 5, 8)) for _ in range(rng.randint(1, 4)))
        other, steps = drawn_rewrite(rng, shape)
        if not other:
            continue
        op = rng.choice((0, 1, 2))
        constant = rng.random() < 0.5
        given = feeds([shape, other], number)
        before = ["MemoryData before 0 1 before 0=3", "BinaryOp scaled 1 1 before scaled 0=2 1=1"]
        second = f"MemoryData c 0 1 in1 {made.sizes(other)}"
        head = [*made.inputs(shape), *before, second] if constant else made.inputs(shape, other)
        middle = [f"BinaryOp op 2 1 in0 in1 y 0={op}"]
        if constant and rng.random() < 0.4:  # the constant has another reader
            head += ["Split c_s 1 2 in1 c_0 c_1", "ReLU c_r 1 1 c_1 extra"]
            middle = [f"BinaryOp op 2 1 in0 c_0 y 0={op}"]
        text = made.param(*head, *middle, "ReLU last 1 1 y out0", "MemoryData tail 0 1 tail 0=2")
        data = made.floats([7, 8, 9], given["in1"], [5, 6]) if constant else made.floats([5, 6])
        path = made.write(tmp_path, text, data)
        index = next(k for k, line in enumerate(text.splitlines()) if " op " in line) - 2
        rewrite = Rewrite((index,), steps)
        editor = edit(path)
        editor.apply([rewrite])
        param, weights = editor.save(tmp_path / "new.param")
        new = param.read_text()
        expected = np.maximum(computed(rewrite, [given["in0"], given["in1"]], op), 0)
        fed = {"in0": given["in0"]} if constant else given
        for packing in (True, False):
            word, got = ncnn.ask(new, fed, ["out0", "tail"], weights.read_bytes(), packing=packing)
            assert word == "result", (text, new)
            assert got["out0"].shape == expected.shape, (text, new)
            assert np.allclose(got["out0"], expected, rtol=1e-5), (text, new)
            assert list(got["tail"]) == [5, 6]
        model = read(param)
        assert made.shapes_of(model)["out0"] == expected.shape
        assert not model.notes, model.notes
        untouched = set(text.splitlines()) - {text.splitlines()[1], text.splitlines()[index + 2]}
        kept = untouched & set(new.splitlines())
        assert {line for line in untouched - kept if not line.startswith("MemoryData c")} == set()
        table[steps[0].op] += 1
    print(f"\nrewrites: {dict(table)}")
    assert set(table) == {"reshape", "unsqueeze", "squeeze", "expand"}


def test_expand_changes_no_bit(ncnn: Net, tmp_path: Path) -> None:
    odd = np.array([[-0.0], [np.nan], [np.inf], [1e-40]], np.float32)
    text = made.param(*made.inputs((4, 3), (4, 1)), "BinaryOp op 2 1 in0 in1 out0 0=2")
    editor = edit(made.write(tmp_path, text))
    steps = (RewriteStep("expand", (Input(1),), shape=(4, 3)), SELF(Input(0), Earlier(0)))
    editor.apply([Rewrite((2,), steps)])
    (param,) = editor.save(tmp_path / "new.param")
    new = param.read_text()
    tile = next(line.split()[5] for line in new.splitlines() if line.startswith("Tile"))
    given = {"in0": np.ones((4, 3), np.float32), "in1": odd}
    for packing in (True, False):
        word, got = ncnn.ask(new, given, [tile], packing=packing)
        assert word == "result"
        wanted = np.broadcast_to(odd, (4, 3)).view(np.uint32)
        assert np.array_equal(got[tile].view(np.uint32), wanted)


def test_ncnn_reads_the_written_parameters(ncnn: Net) -> None:
    x = {"in0": np.full((2, 3), 2, np.float32)}
    for value in (0.5, 3, 1e-7, 12345.0):
        text = made.param(
            *made.inputs((2, 3)), f"BinaryOp op 1 1 in0 out0 1=1 {parameter(2, value)}"
        )
        word, got = ncnn.ask(text, x, ["out0"])
        assert word == "result"
        assert np.allclose(got["out0"], 2 + value)
