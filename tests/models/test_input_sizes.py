"""Given sizes: the same options in every command and format, and advice that works."""

from __future__ import annotations

import itertools
import json
import pickle
import random
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import ncnn_models
import numpy as np
import onnx
import pytest
from bound import model, node, read
from ir_models import Ir
from mnn_files import Model as Mnn

import zerostride as zs
from sampled import few
from zerostride.cli import main as command
from zerostride.models.execute.inputs import check_inputs
from zerostride.models.flow.advice import advice
from zerostride.models.flow.input_sizes import UnknownSize, sized
from zerostride.models.flow.resolved import resolved
from zerostride.models.formats import read_model

#: How a file may write a size.
WRITTEN = (3, 1, None, "N", "M", "batch size", "it's", "x[0]", "N + 1", "2*M", "unk__7", "?", "-1")
#: Numbers that stand for the names of sizes, and for axes that have none.
NUMBERS = {"N": 4, "M": 5}


class Drawn(NamedTuple):
    """A model file, a shape for each of its inputs that it takes, and what cannot take the file."""

    file: Path
    shapes: dict[str, tuple[int, ...]]
    without: frozenset[str] = frozenset()


def number(size: Any) -> int:
    """A number that a size of a file can be."""
    if isinstance(size, int):
        return size
    return {"N + 1": 5, "2*M": 10, **NUMBERS}.get(size, 2)


def shapes(rng: random.Random, sizes: tuple[Any, ...], low: int = 1) -> list[Any]:
    """Shapes of one to three inputs as a file has them."""
    return [
        tuple(rng.choice(sizes) for _ in range(rng.randint(low, 3)))
        for _ in range(rng.randint(1, 3))
    ]


def names(rng: random.Random, count: int) -> list[str]:
    """Names of inputs, some of them odd."""
    return rng.sample(["x", "y", "a b", "in:0", "z[0]", "it's"], count)


def an_onnx(rng: random.Random, folder: Path) -> Drawn:
    files = shapes(rng, WRITTEN, 0)
    called = names(rng, len(files))
    if rng.random() < 0.3:
        files[0] = None
    nodes = [
        onnx.helper.make_node("Mul", [name, name], [f"out{k}"], name=f"mul{k}")
        for k, name in enumerate(called)
    ]
    outputs = " ".join(f"out{k}" for k in range(len(called)))
    content = model(nodes, dict(zip(called, files, strict=True)), outputs=outputs)
    file = folder / "m.onnx"
    file.write_bytes(content.SerializeToString())
    real = [(2, 2) if shape is None else tuple(map(number, shape)) for shape in files]
    return Drawn(file, dict(zip(called, real, strict=True)))


def an_ir(rng: random.Random, folder: Path) -> Drawn:
    files = shapes(rng, (3, 1, "?", "1..8", "2.."))
    ir = Ir()
    for k, shape in enumerate(files):
        given = ir.parameter(f"x{k}", ["..."] if rng.random() < 0.2 else shape)
        ir.result(ir.layer(f"mul{k}", "Multiply", (given, given), shape))
    real = {f"x{k}": tuple(map(number, shape)) for k, shape in enumerate(files)}
    return Drawn(ir.save(folder / "m.xml"), real)


def an_mnn(rng: random.Random, folder: Path) -> Drawn:
    files = shapes(rng, (3, 1, -1))
    mnn = Mnn()
    called = rng.sample(["x", "y", "z[0]", "in:0"], len(files))
    for k, (name, shape) in enumerate(zip(called, files, strict=True)):
        mnn.input(name, *shape)
        mnn.binary("MUL", f"{name} {name}", f"out{k}")
    file = folder / "m.mnn"
    file.write_bytes(mnn.data(*(f"out{k}" for k in range(len(files)))))
    real = [tuple(2 if size < 0 else size for size in shape) for shape in files]
    return Drawn(file, dict(zip(called, real, strict=True)), frozenset({"port"}))


def an_ncnn(rng: random.Random, folder: Path) -> Drawn:
    count = rng.randint(1, 2)
    real, lines = {}, []
    for k in range(count):
        shape = tuple(rng.randint(1, 4) for _ in range(3))
        known = rng.random() < 0.4
        lines.append(f"Input in{k} 0 1 in{k} {ncnn_models.sizes(shape) if known else ''}".strip())
        lines.append(f"Split s{k} 1 2 in{k} a{k} b{k}")
        lines.append(f"BinaryOp mul{k} 2 1 a{k} b{k} p{k} 0=2")
        # A layer that takes images says that its input has three axes.
        pool = rng.random() < 0.5
        lines.append(f"PixelShuffle r{k} 1 1 p{k} o{k} 0=1" if pool else f"ReLU r{k} 1 1 p{k} o{k}")
        real[f"in{k}"] = shape
    text = ncnn_models.param(*lines)
    without = frozenset({"run"} if "PixelShuffle" in text else ())
    return Drawn(ncnn_models.write(folder, text), real, without)


FORMATS: dict[str, Callable[[random.Random, Path], Drawn]] = {
    "onnx": an_onnx,
    "openvino": an_ir,
    "mnn": an_mnn,
    "ncnn": an_ncnn,
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "audit": ("--target", "ncnn", "--json"),
    "port": ("--target", "coreml", "--dry-run", "--json"),
    "shapes": ("--json",),
    "run": ("--random", "0", "--json"),
    "verify": ("--engine", "numpy", "--no-cache", "--json"),
}
_OPTION = re.compile(r"--(?:set|input-shape) ((?:'[^']*'|\"[^\"]*\"|[^\s'\"();,])+)")


def texts(document: Any) -> Iterator[str]:
    """Every text in JSON."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict | list):
        for part in document.values() if isinstance(document, dict) else document:
            yield from texts(part)


def pasted(drawn: Drawn, document: Any) -> list[str]:
    """The options that a command advises, with numbers in them, as a shell reads them."""
    table: dict[tuple[str, str], None] = {}
    for text in texts(document):
        for found in _OPTION.finditer(text):
            option, words = shlex.split(found[0])
            name = words.rpartition("=")[0]
            if words.endswith("=SIZES"):
                words = f"{name}={','.join(map(str, drawn.shapes[name])) or '()'}"
            else:
                assert words.endswith("=NUMBER"), text
                words = f"{name}={NUMBERS.get(name, 2)}"
            table[option, words] = None
    return list(itertools.chain.from_iterable(table))


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    """Runs a command on a model; its status and what it says."""

    def call(name: str, file: Path, *words: str) -> tuple[int, Any]:
        with pytest.raises(SystemExit) as stop:
            command([name, str(file), *COMMANDS[name], *words])
        out, err = capfd.readouterr()
        assert "internal error" not in out + err
        assert isinstance(stop.value.code, int)
        return stop.value.code, json.loads(out)

    return call


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("seed", few(2, range(12)))
def test_advice_can_be_pasted_as_options(format_: str, seed: int, run: Any, tmp_path: Path) -> None:
    drawn = FORMATS[format_](random.Random(seed), tmp_path)
    for name in COMMANDS.keys() - drawn.without:
        _, document = run(name, drawn.file)
        given = pasted(drawn, document)
        status, again = run(name, drawn.file, *given)
        assert status in (0, 1), (name, given, again)
        assert not pasted(drawn, again), (name, given, again)
        if name == "run":
            assert again["ok"]
        if name == "verify":
            assert {check["outcome"] for check in again["checks"]} <= {"agrees"}


def a_fork() -> Any:
    """A result of rank 2 or 3, as a size of the input has it; then an addition."""

    def branch(op: str, *more: str) -> Any:
        result = onnx.helper.make_tensor_value_info(op, onnx.TensorProto.FLOAT, None)
        return onnx.helper.make_graph([node(op, " ".join(["x", *more]), op)], op, [], [result])

    nodes = [
        node("Shape", "x", "size", start=1, end=2),
        node("Equal", "size one", "alone"),
        onnx.helper.make_node(
            "If",
            ["alone"],
            ["fork"],
            name="fork_1",
            then_branch=branch("Squeeze", "one"),
            else_branch=branch("Identity"),
        ),
        node("Add", "fork w"),
    ]
    return model(nodes, {"x": ("N", "C", 3)}, {"w": (3,), "one": np.array([1])})


def test_shape_decided_by_a_branch_names_the_size(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "fork.onnx"
    file.write_bytes(a_fork().SerializeToString())
    _, document = run("audit", file)
    (finding,) = (found for found in document["findings"] if found["verdict"] == "unknown")
    assert "If 'fork_1' on, whose branches give other shapes" in finding["message"]
    assert pasted(Drawn(file, {}), finding) == ["--set", "C=2"]
    _, again = run("audit", file, "--set", "C=2")
    assert again["counts"]["unknown"] == 0


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("seed", few(1, range(6)))
def test_shapes_are_given_by_name_and_in_order(
    format_: str, seed: int, run: Any, tmp_path: Path
) -> None:
    drawn = FORMATS[format_](random.Random(100 + seed), tmp_path)
    sizes = [",".join(map(str, shape)) or "()" for shape in drawn.shapes.values()]
    named = [f"{name}={size}" for name, size in zip(drawn.shapes, sizes, strict=True)]
    for name in COMMANDS.keys() - drawn.without:
        answers = [
            run(name, drawn.file, *(part for one in words for part in ("--input-shape", one)))
            for words in (named, sizes)
        ]
        assert answers[0] == answers[1]
        assert answers[0][0] in (0, 1), answers[0]
    shapes = zs.shapes(drawn.file, input_shapes=drawn.shapes)
    assert shapes == zs.shapes(drawn.file, input_shapes=list(drawn.shapes.values()))
    for name, shape in drawn.shapes.items():
        assert shapes.shapes[name] == shape


def one(*shape: Any, **more: Any) -> Any:
    """The graph of a model of one input."""
    return read(model([node("Relu", "x")], {"x": shape}, **more))


def test_given_sizes_set_names_and_axes() -> None:
    graph = one("N", "N + 1", None, "unk__3", 2)
    sized_graph = sized(graph, {"x[1]": 5, "unk__3": 7}, {"x": (None, None, 6, None, 2)})
    assert sized_graph.inputs[0].shape == (4, 5, 6, 7, 2)
    assert sized(graph, {"N": np.int64(4), "x[-2]": 7}).inputs[0].shape[:2] == (4, 5)
    assert [str(size) for size in sized(graph, {"x[2]": 6}).inputs[0].shape] == [
        *("N", "N + 1", "6", "?", "2")
    ]
    # A name that a caller gives, and a shape of which nothing is known in the file.
    assert [
        str(size) for size in sized(graph, None, [(None, None, "H", 1, 2)]).inputs[0].shape
    ] == [*("N", "N + 1", "H", "1", "2")]
    unknown = read(model([node("Relu", "x")], {"x": None}))
    assert advice(unknown) == "--input-shape x=SIZES"
    assert sized(unknown, None, {"x": (2, 3)}).inputs[0].shape == (2, 3)
    assert sized(graph) is graph


@pytest.mark.parametrize(
    ("sizes", "input_shapes", "words"),
    [
        ({"n": 3}, None, "no size is called 'n'; did you mean 'N'"),
        ({"y[0]": 3}, None, r"no size is called 'y\[0\]'"),
        ({"x[9]": 3}, None, r"input 'x' is \(N, N \+ 1, \?, 2\), of rank 4"),
        ({"x[3]": 3}, None, "its axis 3 is 2, not 3"),
        ({"N": 3, "x[0]": 4}, None, "N is 3 by N=3, and 4 by"),
        ({"N": 3}, {"x": (3, 5, 1, 2)}, "the file has N \\+ 1 there"),
        ({"x[1]": 0}, None, "never 0"),
        ({"N": -1}, None, "-1 is not a size"),
        ({"N": True}, None, "True is not a size"),
        ({"N": 2.0}, None, "2.0 is not a size"),
        ({"N": 2**63}, None, "is not a size"),
        (None, {"x": (1, 2)}, r"\(1, 2\) has rank 2"),
        (None, {"x": 3}, "3 is no shape"),
        (None, {"x": "1,2"}, "is no shape"),
        (None, {"y": (1,)}, "no input is called 'y' \\(inputs: x\\)"),
        (None, [(1, 2, 3, 2), (1,)], "2 shapes are given; the model has 1 inputs"),
        (None, {"x": (None, None, None, 5)}, "its axis 3 is 2, not 5"),
        (None, {"x": (None, None, None, "K")}, "its axis 3 is 2, not K"),
    ],
)
def test_contradicting_sizes_are_refused(sizes: Any, input_shapes: Any, words: str) -> None:
    with pytest.raises(zs.ZerostrideError, match=words):
        sized(one("N", "N + 1", None, 2), sizes, input_shapes)


def test_expression_in_the_file_binds_its_size() -> None:
    graph = one("2*N", "N", "M + N")
    assert sized(graph, {"x[0]": 6}).inputs[0].shape[:2] == (6, 3)
    assert sized(graph, None, [(6, 3, 8)]).inputs[0].shape == (6, 3, 8)
    with pytest.raises(zs.ZerostrideError, match="which is never 5"):
        sized(graph, {"x[0]": 5})
    with pytest.raises(zs.ZerostrideError, match="M \\+ N there, which is never 2"):
        sized(graph, {"N": 3, "x[2]": 2})


def test_bounds_of_a_file_are_kept(tmp_path: Path) -> None:
    ir = Ir()
    given = ir.parameter("x", ["1..8", 3])
    ir.result(ir.layer("relu", "ReLU", (given,), ["1..8", 3]))
    file = ir.save(tmp_path / "m.xml")
    assert zs.shapes(file, sizes={"x[0]": 8}).shapes["relu"] == (8, 3)
    with pytest.raises(zs.ZerostrideError, match=r"bounds x\[0\] by 1\.\.8"):
        zs.shapes(file, sizes={"x[0]": 9})


def test_given_sizes_are_checked_against_inner_shapes() -> None:
    # Where every other size is a number, too: the file's own are not believed then.
    content = model([node("Relu", "x", "h"), node("Relu", "h")], {"x": ("N", 3)},
                    claims={"h": (1, 3), "y": (1, 3)})  # fmt: skip
    graph = sized(read(content), {"N": 4})
    flow = resolved(graph)[2]
    assert flow is not None
    assert [failure.node_path for failure in flow.failures]


def test_name_inside_the_model_can_be_set() -> None:
    nodes = [node("NonZero", "x", "h"), node("Cast", "h", "y", to=1)]
    content = model(nodes, {"x": (4,)}, claims={"h": (1, "found")})
    graph = sized(read(content), {"found": 3})
    assert resolved(graph)[0].outputs[0].shape == (1, 3)


def test_many_models_share_options(tmp_path: Path, run: Any) -> None:
    for name, shape in (("a", ("N", 3)), ("b", ("M", 3))):
        content = model([node("Add", "x w")], {"x": shape}, {"w": np.ones(3, np.float32)})
        (tmp_path / f"{name}.onnx").write_bytes(content.SerializeToString())
    status, document = run("audit", tmp_path, "--set", "N=4", "--jobs", "1")
    assert status in (0, 1)
    assert ["'N'" in str(one["notes"]) for one in document] == [False, True]
    status, document = run("audit", tmp_path, "--set", "K=4", "--jobs", "1")
    assert (status, "'K'" in document["detail"]) == (2, True)


def test_error_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(UnknownSize("N", "no N")))
    assert (error.name, str(error)) == ("N", "no N")


@pytest.mark.parametrize(("name", "free"), [("?", True), ("N", False)])
def test_a_mark_for_an_unknown_size_is_no_name(name: str, free: bool, tmp_path: Path) -> None:
    """Arrays may have two sizes that a file writes as "?", and not two of one name."""
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [name, name])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    nodes = [onnx.helper.make_node("Relu", ["x"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "g", [value], [result])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "m.onnx")
    arrays = {"x": np.zeros((2, 3), np.float32)}
    graph = read_model(tmp_path / "m.onnx")
    with nullcontext() if free else pytest.raises(zs.ZerostrideError, match="the model calls N"):
        assert check_inputs(graph, graph.inputs, arrays)["x"].shape == (2, 3)
