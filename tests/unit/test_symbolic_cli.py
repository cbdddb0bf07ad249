"""Open sizes on the command line: shapes, facts, values, and hostile text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

from work import calls_of
from zerostride.cli.shapes import parse_shape
from zerostride.sizes.dim import Dim


@pytest.mark.parametrize(
    ("written", "shape"),
    {
        "N,C,?,1..8": ("N", "C", "?", "1..8"),
        "2*N,3": ("2*N", 3),
        "N": ("N",),
        "[N, 3]": ("N", 3),
        "(N,)": ("N",),
        "(N+1)*(M+1), 3": ("(N+1)*(M+1)", 3),
        "((N+1)*2)": ("(N+1)*2",),
        "bcast(N, M),3": ("bcast(N, M)", 3),
        "max(N,2)": ("max(N,2)",),
        "x": ("x",),
        "Nx3": ("Nx3",),  # a name: x is a sign between numbers only
        "2x3": (2, 3),
        "0..": ("0..",),
        "-1,N": (-1, "N"),
    }.items(),
)
def test_shapes_may_have_open_sizes(written: str, shape: tuple[Any, ...]) -> None:
    assert parse_shape(written) == shape


#: Calls of functions that refusing a text takes at most.
MOST_CALLS = 400_000
HOSTILE = [
    "N,,3",
    "N+",
    "8..1",
    "N;M",
    "(N,3",
    "N,3)",
    "--N",
    "N/2",
    "N.npy",
    "model.onnx",
    "N // 0",
    "2**N",
    "and,3",
    "N\x00",
    "N" * 2000,
    "N," * 100_000,
    "(" * 1000 + "N" + ")" * 1000,
    "(" * 40 + "N" + ")" * 40 + ",3",
    "N" + "%N" * 400,
    "*".join(["(A+B+C+D+E)"] * 80),
    "-" * 900 + "N",
    "bcast(" * 200 + "N" + ")" * 200,
    "9" * 30 + "*N",
    "[" * 100_000,
    "max(N" + ",N" * 100_000 + ")",
]


@pytest.mark.parametrize("written", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("command", ["explain", "compare"])
def test_invalid_shape_is_bad_input(run: Run, command: str, written: str) -> None:
    answers = []
    assert calls_of(lambda: answers.append(run(command, written, "3"))) < MOST_CALLS
    (answer,) = answers
    assert answer.status == 2, answer
    assert answer.out == ""
    assert len(answer.err) < 4000


@pytest.mark.parametrize(
    "text", ["", "N", "N >=", "N >= 1 and", "(" * 900, "N" * 5000, "N ≥ 1", "?"]
)
def test_invalid_fact_is_bad_input(run: Run, text: str) -> None:
    answer = run("explain", "N", "M", "--given", text)
    assert answer.status == 2
    assert len(answer.err) < 4000


def test_drawing_shows_the_needs(run: Run) -> None:
    answer = run("explain", "N,3", "M,3", "--given", "N >= 2", "--given", "M <= 9")
    assert (answer.status, answer.err) == (0, "")
    assert "  x        N 3\n  y       M⇢ 3\n  result   N 3\n" in answer.out
    assert "  given: N >= 2 and M <= 9\n" in answer.out
    assert "  y may stretch along result axis 0 (where M == 1)\n" in answer.out


def test_option_set_replaces_sizes(run: Run) -> None:
    answer = run(
        "explain", "N,1,H", "C,H", "--set", "N=2", "--set", "C=3", "--set", "H=4", "--json"
    )
    assert json.loads(answer.out)["shape"] == [2, 3, 4]
    part = json.loads(run("explain", "N,1,H", "C,H", "--set", "C=3", "--json").out)
    assert part["shape"] == ["N", 3, "H"]
    assert [symbol["name"] for symbol in part["symbols"]] == ["N", "H"]
    named = json.loads(run("explain", "?,3", "3", "--set", "x[0]=5", "--json").out)
    assert named["shape"] == [5, 3]
    renamed = json.loads(run("explain", "N,3", "M,3", "--set", "M=N", "--json").out)
    assert renamed["shape"] == ["N", 3]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["N", "3", "--set", "M=4"], 2, "there is no size 'M' to bind; there are: N"),
        (["2", "3", "--set", "M=4"], 1, "neither is 1"),
        (["3", "3", "--set", "M=4"], 2, "all sizes are numbers"),
        (["1..8", "1", "--set", "x[0]=9"], 2, "outside its bounds 1..8"),
        (["N", "3", "--set", "N"], 2, "is not NAME=VALUE"),
        (["N", "3", "--set", "N="], 2, "is not NAME=VALUE"),
        (["N", "3", "--set", "N=1", "--set", "N=3"], 2, "two values"),
        (["N", "3", "--set", "N=1.5"], 2, "1.5"),
        (["N", "3", "--set", "N=2"], 1, "for N=2: 2 against 3"),
        (["N", "3", "--given", "N == 2"], 1, "N against 3"),
        (["N,3", "M,4"], 1, "3 against 4"),
        (["N", "1", "--set", "N=" + "9" * 5000], 2, "9"),
    ],
)
def test_wrong_calls_are_reported(run: Run, words: list[str], status: int, message: str) -> None:
    answer = run("explain", *words)
    assert (answer.status, answer.out) == (status, "")
    assert message in answer.err
    data = json.loads(run("explain", *words, "--json").out)
    assert data["ok"] is False


def test_target_may_be_symbolic(run: Run) -> None:
    answer = run("explain", "N", "--to", "M,4,K")
    assert answer.status == 0
    assert answer.out.startswith("rule 'unidirectional' lays data over (M, 4, K)\n")
    assert "needs: K == N or N == 1" in answer.out
    coded = run("explain", "N", "--to", "M,4,K", "--code", "numpy")
    assert "M, _, K = target" in coded.out


def test_cases_are_drawn_one_by_one(run: Run) -> None:
    answer = run("explain", "H,W", "W", "--rule", "ncnn")
    assert "  where H == W:\n    x       H W\n    y       W .\n" in answer.out
    assert "  where H != W:\n    x       H W\n    y       . W\n" in answer.out
    data = json.loads(run("explain", "H,W", "W", "--rule", "ncnn", "--json").out)
    assert [case["conditions"] for case in data["cases"]] == [["H == W"], ["H != W"]]
    assert data["axes_mapping"] == [[0, 1], ["depends"]]


@pytest.mark.parametrize("target", ["numpy", "torch", "onnx"])
def test_source_and_another_rule_are_printed(run: Run, target: str) -> None:
    answer = run("explain", "N,1,H", "C,H", "--code", target, "--express", "ncnn", "--json")
    data = json.loads(answer.out)
    compile(data["code"], target, "exec")
    assert data["express"]["shapes"] == [["N", 1, "H"], [1, "C", "H"]]
    assert data["express"]["only_if"] is None


def test_source_that_needs_numbers_advises_to_bind(run: Run) -> None:
    answer = run("explain", "N,1", "M", "--code", "stablehlo")
    assert answer.status == 1
    assert "bind the sizes first" in answer.err


def test_comparison_states_the_sizes(run: Run) -> None:
    answer = run("compare", "H,W", "W")
    assert answer.status == 1
    assert "different when H == W and W != 1, for example H=2, W=2" in answer.out
    known = run("compare", "H,W", "W", "--given", "H != W", "--json")
    rows = json.loads(known.out)["rows"]
    assert {row["name"]: row["verdict"] for row in rows if row["kind"] == "rule"}["ncnn"] == "same"


def test_tensor_of_a_model_may_have_symbols(run: Run, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info("x:0", TensorProto.FLOAT, ["batch size", 3, None])
    node = helper.make_node("Relu", ["x:0"], ["y"])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch size", 3, None])
    model = helper.make_model(helper.make_graph([node], "g", [value], [out]))
    onnx.save(model, tmp_path / "m.onnx")
    where = f"{tmp_path / 'm.onnx'}:x:0"
    assert parse_shape(where)[0].words == "batch size"
    assert isinstance(parse_shape(where)[0], Dim)
    data = json.loads(run("explain", where, "1,1,1", "--json").out)
    assert data["shape"] == ["batch size", 3, "?"]
    bound = run("explain", where, "1,1,1", "--set", "batch size=4", "--set", "x[2]=5", "--json")
    assert json.loads(bound.out)["shape"] == [4, 3, 5]


def test_compute_takes_only_arrays(run: Run) -> None:
    answer = run("compute", "add", "N,3", "3")
    assert answer.status == 2
    assert "N,3" in answer.err


def test_help_advises_to_quote(run: Run) -> None:
    assert "Quote those" in run("explain", "-h").out


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ((("N", "C", "H", "W"), ("C", 1, 1)), "it has a checked fix, for some sizes alone"),
        ((("N", "H"), (1, 1, "C")), "it has a checked fix"),
    ],
)
def test_a_fix_for_some_sizes_is_called_one(
    run: Run, tmp_path: Path, shapes: Any, words: str
) -> None:
    onnx = pytest.importorskip("onnx", reason="needs onnx to write a model")
    from onnx import TensorProto, helper

    named = zip("xy", shapes, strict=True)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, s) for name, s in named]
    out = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    node = helper.make_node("Add", ["x", "y"], ["z"])
    onnx.save(helper.make_model(helper.make_graph([node], "g", values, [out])), tmp_path / "m.onnx")
    shown = run("audit", str(tmp_path / "m.onnx"), "--target", "keras-tensorflow").out
    assert any(line.endswith(words) for line in shown.splitlines()), shown
