"""`zerostride compute`, and every file that the command line reads and writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Run

# compute, and the files it reads and writes.


@pytest.fixture
def arrays(tmp_path: Path) -> tuple[str, str]:
    np.save(tmp_path / "a.npy", np.arange(4, dtype=np.float32).reshape(2, 2))
    np.save(tmp_path / "b.npy", np.array([10, 20], np.float32))
    return str(tmp_path / "a.npy"), str(tmp_path / "b.npy")


def test_compute_prints_writes_and_gives_json(
    run: Run, arrays: tuple[str, str], tmp_path: Path
) -> None:
    expected = [[10, 11], [22, 23]]
    out = tmp_path / "c.npy"
    answer = run("compute", "add", *arrays, "--engine", "ncnn")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out == "[[10. 11.]\n [22. 23.]]\n", "ncnn lays a vector on the outermost axis"
    answer = run("compute", "add", *arrays, "--rule", "pdpd", "--axis", "0", "-o", out)
    assert "shape (2, 2), float32" in answer.out
    assert np.load(out).tolist() == expected
    data = json.loads(run("compute", "Add", *arrays, "--rule", "ncnn", "--json").out)
    assert data.keys() == {"ok", "op", "shape", "dtype", "result"}
    assert data["result"] == expected
    data = json.loads(run("compute", "add", *arrays, "-o", out, "--json").out)
    assert data.keys() == {"ok", "op", "shape", "dtype", "output"}
    # The result may take the place of an operand.
    assert run("compute", "add", *arrays, "-o", arrays[0]).status == 0
    assert np.load(arrays[0]).tolist() == [[10, 21], [12, 23]]


def test_json_names_numbers_that_it_lacks(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([0.0, 1.0, -1.0]))
    np.save(tmp_path / "b.npy", np.zeros(3))
    answer = run("compute", "divide", tmp_path / "a.npy", tmp_path / "b.npy", "--json")
    strict = json.loads(answer.out, parse_constant=lambda name: pytest.fail(name))
    assert strict["result"] == ["NaN", "Infinity", "-Infinity"]


KINDS = {
    "text": np.array(["a", "b"]),
    "bytes": np.array([b"a", b"b"]),
    "records": np.zeros(2, dtype=[("x", "f4"), ("y", "i8")]),
    "dates": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
    "spans": np.array([1, 2], dtype="timedelta64[s]"),
    "void": np.zeros(2, dtype="V8"),
    "bool": np.array([True, False]),
    "complex": np.array([1j, 2.0]),
    "half": np.array([1, 2], dtype=np.float16),
    "long": np.array([1, 2], dtype=np.longdouble),
    "big-endian": np.array([1, 2], dtype=">i4"),
}


@pytest.mark.parametrize("op", ["add", "divide", "pow", "bitwise_and", "less", "prelu", "atan2"])
@pytest.mark.parametrize("kind", KINDS)
def test_compute_supports_or_refuses_any_dtype(
    run: Run, tmp_path: Path, op: str, kind: str
) -> None:
    np.save(tmp_path / "a.npy", KINDS[kind])
    answer = run("compute", op, tmp_path / "a.npy", tmp_path / "a.npy")
    assert answer.status in (0, 2)
    assert (answer.status == 2) == bool(answer.err)
    assert "internal error" not in answer.err


def header(text: str, version: bytes = b"\x01\x00") -> bytes:
    """The start of a .npy file with this header."""
    data = text.encode("latin-1")
    size = len(data).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + size + data


NPY = {
    "huge": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,)}"),
    "overflow": header("{'descr': '<f8', 'fortran_order': False, 'shape': (2**62, 2**62)}"),
    "overflow-2": header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**62}, 8)}}"),
    "negative": header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"),
    "float-size": header("{'descr': '<f8', 'fortran_order': False, 'shape': (2.5,)}"),
    "no-shape": header("{'descr': '<f8', 'fortran_order': False}"),
    "no-dict": header("[1, 2]"),
    "bad-dtype": header("{'descr': 'nope', 'fortran_order': False, 'shape': (2,)}"),
    "odd-dtype": header("{'descr': [('a', 7)], 'fortran_order': False, 'shape': (2,)}"),
    "object": header("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}") + b"x" * 64,
    "open-text": header("{'descr': '<f8"),
    "deep": header("(" * 9000),
    "code": header("__import__('os').abort()"),
    "long": header(" " * 60000),
    "version": header("{}", b"\x09\x00"),
    "cut-header": b"\x93NUMPY\x01\x00\xff\xff{",
    "cut-magic": b"\x93NUM",
    "cut-data": header("{'descr': '<f8', 'fortran_order': False, 'shape': (20,)}") + b"x" * 8,
    "empty": b"",
    "text": b"1,2,3\n",
    "pickle": b"\x80\x04\x95\x0b\x00",
    "zip": b"PK\x03\x04 not really",
}


@pytest.mark.parametrize("name", NPY)
def test_invalid_array_file_is_one_line(run: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / "bad.npy"
    path.write_bytes(NPY[name])
    for arguments in (("compute", "add", path, path), ("explain", path)):
        answer = run(*arguments)
        assert answer.status == 2
        assert "bad.npy" in answer.err
        assert "internal error" not in answer.err
    assert len(run("compute", "add", path, path).err.splitlines()) == 1


def test_archives_folders_and_pipes_are_not_arrays(run: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "z.npz", np.zeros(2))
    os.rename(tmp_path / "z.npz", tmp_path / "z.npy")
    (tmp_path / "folder.npy").mkdir()
    names = ["z.npy", "folder.npy", "missing.npy", "n" * 300 + ".npy"]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.npy")  # reading it would wait for a writer for ever
        names.append("pipe.npy")
    for name in names:
        answer = run("compute", "add", tmp_path / name, tmp_path / name)
        assert answer.status == 2
        assert len(answer.err.splitlines()) == 1
        assert name in answer.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope", "a", "a"], "nope"),
        (["add", "a"], "add takes 2 arrays, not 1"),
        (["where", "a", "a"], "where takes 3 arrays"),
        (["add", "a", "a", "--axis", "0"], "axis"),
        (["add", "a", "a", "--engine", "nope"], "nope"),
        (["add"], "FILES"),
    ],
)
def test_compute_reports_wrong_calls(
    run: Run, arrays: tuple[str, str], arguments: list[str], said: str
) -> None:
    answer = run("compute", *[arrays[0] if word == "a" else word for word in arguments])
    assert answer.status == 2
    assert said in answer.err


def test_shapes_that_do_not_combine_have_status_1(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    np.save(tmp_path / "b.npy", np.zeros(4))
    assert run("compute", "add", tmp_path / "a.npy", tmp_path / "b.npy").status == 1


def test_result_beyond_memory_is_refused_before_any_work(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((10**7, 1), np.float32))
    np.save(tmp_path / "b.npy", np.zeros(10**7, np.float32))
    answer = run("compute", "add", tmp_path / "a.npy", tmp_path / "b.npy", "-o", tmp_path / "c.npy")
    assert answer.status == 2
    assert len(answer.err.splitlines()) == 1
    assert "(10000000, 10000000)" in answer.err
    assert "400,000,000,000,000 bytes" in answer.err
    assert not (tmp_path / "c.npy").exists()


def test_json_of_a_million_numbers_must_go_to_a_file(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((1100, 1), np.int8))
    np.save(tmp_path / "b.npy", np.zeros(1100, np.int8))
    answer = run("compute", "add", tmp_path / "a.npy", tmp_path / "b.npy", "--json")
    assert answer.status == 2
    assert "write it with -o" in answer.err


def targets(folder: Path) -> dict[str, Path]:
    """Outputs that cannot be written, a chmod away from root or not."""
    (folder / "folder").mkdir()
    (folder / "file").write_text("not a folder")
    return {
        "a folder": folder / "folder",
        "in no folder": folder / "missing" / "c.npy",
        "in a file": folder / "file" / "c.npy",
        "a name too long": folder / ("n" * 300),
        "a path too long": Path("/".join(["d" * 200] * 40)),
        "a device": Path(os.devnull),
    }


@pytest.mark.parametrize("kind", ["-o", "--svg"])
def test_failed_output_is_one_line_and_leaves_no_file(
    run: Run, arrays: tuple[str, str], tmp_path: Path, kind: str
) -> None:
    for name, target in targets(tmp_path).items():
        before = sorted(tmp_path.rglob("*"))
        arguments = ["compute", "add", *arrays] if kind == "-o" else ["explain", "2", "2"]
        answer = run(*arguments, kind, target)
        assert answer.status == 2, name
        assert len(answer.err.splitlines()) == 1, name
        assert sorted(tmp_path.rglob("*")) == before, f"{name}: something was left behind"
    assert not Path(os.devnull).is_file(), "a device was replaced by a file"


def test_longest_allowed_name_can_be_written(run: Run, tmp_path: Path) -> None:
    target = tmp_path / ("n" * 251 + ".svg")
    assert run("explain", "2", "2", "--svg", target).status == 0
    assert target.read_text("utf-8").startswith("<svg")


def test_failed_write_leaves_the_old_file(
    run: Run, arrays: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(handle: Any, *_: Any, **__: Any) -> None:
        handle.write(b"half of it")
        raise OSError(28, "No space left on device")

    target = tmp_path / "c.npy"
    target.write_bytes(b"precious")
    monkeypatch.setattr(np, "save", fails)
    answer = run("compute", "add", *arrays, "-o", target)
    assert answer.status == 2
    assert answer.err.strip() == f"zerostride: {target}: No space left on device"
    assert target.read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "b.npy", "c.npy"]


def test_symbolic_link_stays_a_link(run: Run, arrays: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.npy").symlink_to(tmp_path / "real" / "c.npy")
    assert run("compute", "add", *arrays, "-o", tmp_path / "link.npy").status == 0
    assert (tmp_path / "link.npy").is_symlink()
    assert np.load(tmp_path / "real" / "c.npy").shape == (2, 2)


def test_compute_applies_unary_ops(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([-1.0, 2.5, np.nan], np.float32))
    file = str(tmp_path / "a.npy")
    answer = json.loads(run("compute", "LeakyRelu", file, "-p", "alpha=0.5", "--json").out)
    assert answer["result"] == [-0.5, 2.5, "NaN"]
    assert json.loads(run("compute", "exp", file, "--dtype", "float64", "--json").out)["dtype"] == (
        "float64"
    )
    cast = json.loads(run("compute", "cast", file, "--dtype", "int8", "--json").out)
    assert (cast["result"], cast["dtype"]) == ([-1, 2, 0], "int8")
    assert run("compute", "sign", file, "--engine", "torch").out.split()[-1] == "0.]"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("elu", "-p", "beta=1"), "elu has no parameter 'beta'; it has alpha"),
        (("elu", "-p", "alpha=much"), "'alpha=much' is no NAME=NUMBER"),
        (("exp", "-p", "alpha=1"), "exp has no parameter 'alpha'; it has none"),
        (("exp", "--rule", "pdpd"), "exp takes one array: --rule has nothing to align"),
        (("exp", "--dtype", "zork"), "there is no dtype 'zork'"),
        (("cast",), "cast takes --dtype"),
        (("cast", "--dtype", "int8", "--engine", "torch"), "was not measured"),
        (("selu", "--engine", "torch", "-p", "alpha=2"), "and no other"),
        (("exp", "--engine", "mnn"), "what mnn's exp gives for float32 is not known"),
        (("add",), "add takes 2 arrays, not 1"),
    ],
)
def test_wrong_calls_of_unary_ops_are_reported(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    np.save(tmp_path / "a.npy", np.ones(3, np.float32))
    answer = run("compute", arguments[0], str(tmp_path / "a.npy"), *arguments[1:])
    assert answer.status in (1, 2)
    assert said in answer.err
    assert not answer.out


def test_output_of_shapes_has_to_be_an_onnx_file(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    model = str(Path(__file__).parents[2] / "examples/clean.onnx")
    for name, words in (("nope", "does not end like a model's"), ("nope.param", "ONNX files only")):
        answer = run("shapes", model, "--output", str(tmp_path / name))
        assert answer.status == 2
        assert words in answer.err
        assert not (tmp_path / name).exists()


def test_empty_path_of_a_model_is_named(run: Run) -> None:
    answer = run("audit", "", "--target", "ncnn")
    assert answer.status == 2
    assert "no model is named" in answer.err


def test_convert_and_verify_take_target(run: Run) -> None:
    for command in (("convert", "absent.onnx", "-o", "out"), ("verify", "absent.onnx")):
        answer = run(*command, "--target", "nccn")
        assert answer.status == 2
        assert "Did you mean 'ncnn'?" in answer.err
