"""A tensor that the other side stretches later is no fault; one that it never stretches is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the models are made with the onnx package")
from campaigns.models.bisect_graphs import saved
from campaigns.models.stretch_graphs import stretched
from onnx.utils import extract_model

from zerostride.errors import ModelError
from zerostride.models.bisect.search import search
from zerostride.models.bisect.sides import Other
from zerostride.models.execute import execute
from zerostride.models.execute.part import Parts
from zerostride.models.formats import read_model
from zerostride.models.ir.graph import Array, Graph

#: Seeds of an Expand, whose result can be held before it is stretched.
SEEDS = range(0, 48, 3)


class Sides:
    """A model, its tensors, and what the search finds in others."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.graph: Graph = read_model(saved(stretched(seed), folder / "a.onnx"))
        shape = self.graph.inputs[0].shape
        rng = np.random.default_rng(seed)
        self.inputs = {"x": rng.uniform(-1, 1, tuple(map(int, shape))).astype(np.float32)}
        results = [value.name for node in self.graph.nodes for value in node.outputs]
        self.meant: Mapping[str, Array] = execute(self.graph, self.inputs, outputs=results)

    def late(self, **held: Array) -> dict[str, Array]:
        """The tensors of a side that holds the small tensor under the name of the stretched one."""
        return {**self.meant, "e": self.meant["s"], **held}

    def after(self, array: Array) -> dict[str, Array]:
        """The tensors of a side that has other numbers for the stretched one."""
        parts = Parts(self.graph)
        results = {value.name: value for node in self.graph.nodes for value in node.outputs}
        values = {id(results["e"]): array, id(self.graph.inputs[0]): self.inputs["x"]}
        later = [value for name, value in results.items() if name[0] in "ry"]
        wrong = {value.name: parts.before(value, values).run(values) for value in later}
        return {**self.meant, "e": array, **wrong}

    def layout_and_faults(self, held: Mapping[str, Array]) -> tuple[str, list[str]]:
        side = Other(tuple(held), held.get)
        stages, faults, _ = search(self.graph, self.inputs, side, self.meant.get, 1e-4)
        layout = next(stage.layout for stage in stages if stage.tensor == "e")
        return layout, [fault.part.result.name for fault in faults]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tensor_that_is_stretched_later_is_no_fault(tmp_path: Path, seed: int) -> None:
    sides = Sides(tmp_path, seed)
    assert sides.layout_and_faults(sides.late()) == ("not yet stretched", [])
    dropped = sides.meant["s"].reshape(sides.meant["s"].shape[1:])
    assert sides.layout_and_faults(sides.late(e=dropped)) == ("not yet stretched", [])


@pytest.mark.parametrize("seed", SEEDS)
def test_other_numbers_are_a_fault(tmp_path: Path, seed: int) -> None:
    sides = Sides(tmp_path, seed)
    small = sides.meant["s"].copy()
    small.reshape(-1)[-1] += 0.5
    assert "e" in sides.layout_and_faults(sides.late(e=small))[1]
    whole = np.array(sides.meant["e"])
    whole[-1, -1, -1, -1] += 0.5
    assert sides.layout_and_faults(sides.after(whole))[1] == ["e"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tensor_that_is_never_stretched_is_a_fault(tmp_path: Path, seed: int) -> None:
    """The readers that need the extent have other numbers, or another shape, without it."""
    sides = Sides(tmp_path, seed)
    try:
        wrong = sides.after(sides.meant["s"])
    except ModelError:
        pytest.skip("a reader refuses the operand, as an engine does")
    names = [name for name in wrong if name[0] in "ry"]
    _, faults = sides.layout_and_faults(wrong)
    same = all(
        np.broadcast_shapes(wrong[name].shape, sides.meant[name].shape) == sides.meant[name].shape
        and np.allclose(wrong[name], sides.meant[name], atol=1e-5)
        for name in names
    )
    lean = any(wrong[v.name].shape != sides.meant[v.name].shape for v in sides.graph.outputs)
    assert bool(faults) is (lean or not same)
    if not same:
        assert faults[0] == "e"


@pytest.mark.parametrize("seed", SEEDS)
def test_an_output_that_is_not_stretched_is_a_fault(tmp_path: Path, seed: int) -> None:
    sides = Sides(tmp_path, seed)
    sides.graph = read_model(_ending_in(tmp_path, "e"))
    sides.meant = execute(sides.graph, sides.inputs, outputs=["m", "s", "e"])
    assert sides.layout_and_faults(sides.late()) == ("", ["e"])


def _ending_in(folder: Path, name: str) -> Path:
    extract_model(str(folder / "a.onnx"), str(folder / "end.onnx"), ["x"], [name])
    return folder / "end.onnx"
