"""`zerostride run`: inputs of every kind, outputs, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Run

onnx = pytest.importorskip("onnx", reason="writes the models")


@pytest.fixture
def model(tmp_path: Path) -> str:
    """y = x + b, and the sum of that over its last axis."""
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Add", ["x", "b"], ["h"], name="add"),
            onnx.helper.make_node("Identity", ["h"], ["y"]),
            onnx.helper.make_node("ReduceMax", ["h"], ["most/../x"], axes=[1]),
        ],
        "g",
        [info("x", 1, ("N", 3)), info("b", 1, (3,))],
        [info("y", 1, None), info("most/../x", 1, None)],
    )
    file = tmp_path / "model.onnx"
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets), file)
    return str(file)


@pytest.fixture
def x(tmp_path: Path) -> str:
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    return str(tmp_path / "x.npy")


def test_run_prints_numbers(run: Run, model: str, x: str) -> None:
    answer = run("run", model, "--input", f"x={x}", "--input", "b=[1, 2, 3]")
    assert (answer.status, answer.err) == (0, "")
    assert "y  (2,3)  float32" in answer.out
    assert "[1., 3., 5.]" in answer.out


def test_run_accepts_every_kind_of_input(run: Run, model: str, x: str, tmp_path: Path) -> None:
    expected = [[1, 3, 5], [4, 6, 8]]
    (tmp_path / "b.json").write_text("[1, 2, 3]")
    np.savez(tmp_path / "all.npz", x=np.load(x), b=np.array([1, 2, 3], np.float32))
    np.savez(tmp_path / "one.npz", anything=np.array([1, 2, 3], np.float32))
    for words in (
        [f"x={x}", f"b={tmp_path}/b.json"],
        [f"{tmp_path}/all.npz"],
        [f"x={x}", f"b={tmp_path}/one.npz"],
        [f"x={tmp_path}/all.npz", "b=[1,2,3]"],
    ):
        given = [part for word in words for part in ("--input", word)]
        answer = run("run", model, *given, "--json")
        said = json.loads(answer.out)
        assert (answer.status, said["ok"]) == (0, True)
        assert said["outputs"]["y"] == {"shape": [2, 3], "dtype": "float32", "data": expected}


def test_run_writes_outputs(run: Run, model: str, x: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    given = ["--input", f"x={x}", "--input", "b=[1,2,3]"]
    assert run("run", model, *given, "-o", str(folder)).status == 0
    # A name that is a path stays inside the folder.
    assert sorted(file.name for file in folder.iterdir()) == ["most_.._x.npy", "y.npy"]
    np.testing.assert_array_equal(np.load(folder / "y.npy"), [[1, 3, 5], [4, 6, 8]])
    # What lies between can be had, too.
    assert run("run", model, *given, "-o", f"h={tmp_path}/h.npy").status == 0
    np.testing.assert_array_equal(np.load(tmp_path / "h.npy"), [[1, 3, 5], [4, 6, 8]])


def test_run_makes_random_inputs(run: Run, model: str) -> None:
    first, again, other = (
        json.loads(run("run", model, "--random", seed, "--set", "N=4", "--json").out)["outputs"]
        for seed in ("0", "0", "1")
    )
    assert first == again != other
    assert first["y"]["shape"] == [4, 3]


def test_run_chooses_sizes_that_nobody_gives(run: Run, model: str) -> None:
    answer = run("run", model, "--random", "0", "--json")
    said = json.loads(answer.out)
    assert said["sizes"] == {"N": said["outputs"]["y"]["shape"][0]}
    assert "open sizes were chosen: N=" in run("run", model, "--random", "0").err
    assert not json.loads(run("run", model, "--random", "0", "--set", "N=2", "--json").out)["sizes"]


def test_large_outputs_are_summarised(run: Run, model: str) -> None:
    made = ["run", model, "--random", "0", "--set", "N=100"]
    assert "mean" in run(*made).out
    said = json.loads(run(*made, "--json").out)["outputs"]["y"]
    assert set(said) == {"shape", "dtype", "statistics"}
    assert len(json.loads(run(*made, "--json", "--print").out)["outputs"]["y"]["data"]) == 100


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "its inputs are x (N,3) float32, b (3) float32"),
        (["--input", "b=[1,2,3]"], "not given: x (N,3) float32"),
        (["--input", "B=[1,2,3]", "--random", "0", "--set", "N=2"], "no input 'B'; did you mean"),
        (["--input", "b=[1,2]", "--random", "0", "--set", "N=2"], "axis 0 is 3 in the model"),
        (["--input", "b=[[1],[2,3]]", "--random", "0"], "--input b:"),
        (["--input", "b=missing.npy"], "missing.npy: No such file"),
        (["--input", "b=__import__('os')"], "is no .npy file and no numbers"),
        (["--input", 'b=["a"]'], "is no list of numbers"),
        (["--input", "x"], "write NAME=FILE.npy"),
        (["--input", "b=[1]", "--input", "b=[1]"], "given twice"),
        (["--random", "0", "--set", "M=2"], "no size is called 'M'"),
        (
            ["--set", "N=2", "--input", "x=[[1,2,3]]", "--input", "b=[1,2,3]"],
            "axis 0 is 2 in the model",
        ),
        (["--input-shape", "2,3,4"], "of rank 2; (2, 3, 4) has rank 3"),
        (["--input-shape", "x=2,4"], "its axis 1 is 3, not 4"),
        (["--input-shape", "2,3", "--set", "x[0]=4"], "N is 2 by input 'x', axis 0, and 4 by"),
        (["--set", "x[2]=4"], "input 'x' is (N, 3), of rank 2"),
        (["--set", "N=2", "--set", "N=3"], "two values"),
        (["--input-shape", "x=2;3"], "is no size"),
        (["--input-shape", "X=2,3"], "no input is called 'X'; did you mean 'x'"),
        (
            ["--input-shape", "2,3", "--input-shape", "3"] * 2,
            "3 shapes are given; the model has 2 inputs",
        ),
        (["--random", "0", "--set", "N=2", "-o", "z=z.npy"], "it makes no 'z'"),
        (["--random", "0", "--set", "N=2", "-o", "y=y.txt"], "write NAME=FILE.npy"),
        (["--random", "0", "--set", "N=9999999999999"], "bytes; at most"),
    ],
)
def test_wrong_calls_are_reported(run: Run, model: str, words: Any, said: str) -> None:
    answer = run("run", model, *words)
    assert (answer.status, answer.out) == (2, "")
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_pickles_and_bombs_are_refused(run: Run, model: str, tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "p.npz", b=np.array([{}], dtype=object))
    (tmp_path / "q.npz").write_bytes(b"PK not a zip")
    for word in ("b=p.npy", "b=p.npz", "b=q.npz"):
        name, _, file = word.partition("=")
        answer = run("run", model, "--input", f"{name}={tmp_path / file}")
        assert answer.status == 2
        assert file in answer.err


def test_all_unsupported_ops_are_named(run: Run, tmp_path: Path) -> None:
    info = onnx.helper.make_tensor_value_info
    words: dict[str, object] = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1}
    words |= {"max_skip_count": 0, "ngram_counts": [0], "ngram_indexes": [0]}
    nodes = [
        onnx.helper.make_node("TfIdfVectorizer", ["x"], ["h"], name="words", **words),
        onnx.helper.make_node("Own", ["h"], ["y"], name="mine", domain="me"),
    ]
    graph = onnx.helper.make_graph(nodes, "g", [info("x", 1, (1,))], [info("y", 1, None)])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("me", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets), tmp_path / "m.onnx")
    answer = run("run", str(tmp_path / "m.onnx"), "--random", "0")
    assert answer.status == 2
    assert "TfIdfVectorizer: words; me:Own: mine" in answer.err
