"""What a run's tensors show: faults of right shapes, and inputs chosen so that they show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from zerostride.errors import ZerostrideError
from zerostride.models.bisect.faults import FaultKind, faults_shown
from zerostride.models.execute import execute
from zerostride.models.execute.program import readable
from zerostride.models.options import ModelOptions
from zerostride.runtimes.feeds import fed

onnx = pytest.importorskip("onnx", reason="writes the models")


def written(folder: Path, inputs: str, body: str, constants: str = "") -> Path:
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g ({inputs}) => (y) {f"<{constants}>" if constants else ""} {{ {body} }}"""
    onnx.save(onnx.parser.parse_model(text), folder / "m.onnx")
    return folder / "m.onnx"


def hidden(file: Path, inputs: Mapping[str, np.ndarray]) -> set[tuple[str, FaultKind, int]]:
    """The faults that a run does not show: op, kind and operand."""
    graph = ModelOptions().read(file)
    names = [value.name for node in graph.nodes for value in node.outputs]
    tensors = {**inputs, **execute(graph, inputs, names)}

    def fetch(value):
        return tensors.get(value.name, value.data() if readable(value) else None)

    shown = faults_shown(graph, fetch)
    return {(fault.op, fault.kind, fault.operand) for fault, seen in shown if not seen}


ROW = np.arange(1, 4, dtype=np.float32)
CUBE = np.arange(9, dtype=np.float32).reshape(3, 3)


@pytest.mark.parametrize(
    ("body", "inputs", "expected"),
    [
        # The second operand is the same along each axis: which one is read does not show.
        (
            "y = Add(a, b)",
            {"a": CUBE, "b": np.ones((3, 3), np.float32)},
            {("Add", FaultKind.FIRST, 1), ("Add", FaultKind.AXIS, 1)},
        ),
        ("y = Add(a, b)", {"a": CUBE, "b": ROW}, set()),
        ("y = Sub(a, b)", {"a": CUBE, "b": CUBE + 1}, set()),
        ("y = Sub(a, b)", {"a": ROW, "b": ROW}, {("Sub", FaultKind.SWAPPED, 0)}),
        ("y = PRelu(a, b)", {"a": CUBE - 4, "b": ROW}, set()),
        (
            "y = PRelu(a, b)",
            {"a": CUBE, "b": ROW},
            {
                ("PRelu", FaultKind.SIGN, 0),
                ("PRelu", FaultKind.FIRST, 1),
                ("PRelu", FaultKind.AXIS, 1),
            },
        ),
        ("y = Relu(a)", {"a": ROW, "b": ROW}, {("Relu", FaultKind.SIGN, 0)}),
        ("y = Relu(a)", {"a": -ROW, "b": ROW}, set()),
        # All are above the bound, so that nothing shows which is compared with which.
        (
            "y = Greater(a, b)",
            {"a": CUBE + 10, "b": ROW},
            {
                ("Greater", FaultKind.FIRST, 0),
                ("Greater", FaultKind.AXIS, 0),
                ("Greater", FaultKind.FIRST, 1),
                ("Greater", FaultKind.AXIS, 1),
            },
        ),
    ],
)
def test_what_a_run_hides(
    body: str,
    inputs: Mapping[str, np.ndarray],
    expected: set[tuple[str, FaultKind, int]],
    tmp_path: Path,
) -> None:
    sizes = {name: ",".join(map(str, array.shape)) for name, array in inputs.items()}
    file = written(tmp_path, f"float[{sizes['a']}] a, float[{sizes['b']}] b", body)
    assert hidden(file, inputs) == expected


@pytest.mark.parametrize(
    ("body", "constants"),
    [
        ("y = PRelu(a, c)", "float[3] c = {0.1, 0.2, 0.3}"),
        ("y = Add(a, c)", "float[3] c = {2, 2, 2}"),  # no axis of equal numbers
        ("r = Relu(a) y = Relu(r)", ""),
        ("s = Mul(a, a) t = Sqrt(s) y = LeakyRelu(t)", ""),
        ("s = Softmax(a) y = Clip(s)", ""),
    ],
)
def test_a_fault_that_changes_nothing_is_none(body: str, constants: str, tmp_path: Path) -> None:
    file = written(tmp_path, "float[3,3] a", body, constants)
    assert hidden(file, {"a": CUBE - 4}) == set()


def test_inputs_are_lengths_where_small_numbers_hide_the_rest(tmp_path: Path) -> None:
    """A mask of 16 frames by a count: with counts of 0 to 3 the last frames are never seen."""
    file = written(
        tmp_path,
        "float[1,16] x, int64[1] count",
        "m = Less(t, count) y = Where(m, x, zero)",
        "int64[16] t = {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}, float zero = {0}",
    )
    given = fed(ModelOptions(), file, {"count": np.array([0])}, 0)
    assert len(given.runs) == 1
    assert "whether Where 'Where_1' reads all of x along axis 1" in given.notes[0]
    given = fed(ModelOptions(), file, {}, 0)
    assert given.notes == ()
    assert any(run["count"][0] > 3 for run in given.runs)
    assert len(given.runs) <= 3


def test_an_input_that_is_compared_with_constants_is_beside_them(tmp_path: Path) -> None:
    for compared, low, high in (
        ("GreaterOrEqual(pitch, x)", 50, 287.5),
        ("LessOrEqual(pitch, x)", 762.5, 1000),
        ("Less(x, pitch)", 50, 287.5),
        ("Equal(x, rate)", 16000, 16000),
    ):
        constants = "float[3] pitch = {50, 500, 1000}, float rate = {16000}"
        file = written(tmp_path, "float x", f"y = {compared}", constants)
        (run, *_) = fed(ModelOptions(), file, {}, 0).runs
        assert low <= run["x"] <= high, compared


def test_inputs_are_the_same_in_every_call(tmp_path: Path) -> None:
    file = written(tmp_path, "float[2,3] x", "y = Relu(x)")
    one, other = (fed(ModelOptions(), file, {}, 7) for _ in range(2))
    assert all(np.array_equal(a["x"], b["x"]) for a, b in zip(one.runs, other.runs, strict=True))
    assert not np.array_equal(one.runs[0]["x"], fed(ModelOptions(), file, {}, 8).runs[0]["x"])


def test_an_unknown_input_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "float[2,3] x", "y = Relu(x)")
    with pytest.raises(ZerostrideError, match="z"):
        fed(ModelOptions(), file, {"z": ROW}, 0)
