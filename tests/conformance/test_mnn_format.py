"""MNN files compared with MNN: the reader, the inferred shapes, and the lowered graphs.

MNN's own converter converts models in a child process. For the examples, and for one model per op,
every op is read, the shapes are MNN's, and ONNX Runtime gives MNN's result for the lowered model.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mnn_evaluation import assert_close, both, onnx, random_inputs, worker

from sampled import few
from zerostride.models.audit.run import audit
from zerostride.models.flow.resolved import resolved
from zerostride.models.format_table import lowered, module_of
from zerostride.models.formats import flatbuffer, read_model
from zerostride.models.formats.mnn import schema, shapes

pytest.importorskip("MNN", reason="MNN reads and runs its own files")

EXAMPLES = Path(__file__).parents[2] / "examples"
#: MNN's converter writes nothing for this file, because MNN lacks its ops.
NOT_CONVERTED = {"functions_and_subgraphs.onnx"}
#: Without the models that optimisers get wrong: engines get some of them wrong, too.
FILES = sorted(
    path
    for path in EXAMPLES.rglob("*.onnx")
    if path.name not in NOT_CONVERTED and path.parent.name != "optimisers"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mnn")


@pytest.fixture(scope="module")
def converted(folder: Path) -> Callable[[Path], Path]:
    """Converts a file once."""

    @functools.cache
    def convert(source: Path) -> Path:
        target = folder / f"{source.stem}.mnn"
        worker("convert", str(source), str(target))
        assert target.is_file(), f"MNN's converter wrote nothing for {source.name}"
        return target

    return convert


# The examples.


@pytest.mark.parametrize("source", FILES, ids=lambda path: path.stem)
def test_examples_are_read_with_mnns_shapes(
    source: Path, converted: Callable[[Path], Path]
) -> None:
    file = converted(source)
    graph = read_model(file)
    # Every op of the file is a node, an input, or a constant that a node reads.
    ops = flatbuffer.File(file.read_bytes()).root().tables(3)
    kinds = Counter(schema.OPS[op.number(5, "int32")] for op in ops)
    nodes = Counter(node.op for node in graph.nodes)
    assert nodes == {k: n for k, n in kinds.items() if k not in ("Input", "Const")}
    assert len(graph.inputs) == kinds["Input"]
    if all(value.known for value in graph.inputs):
        shapes_here = shapes.of_tensors(file)
        for node in graph.nodes:
            for value in node.outputs:
                if value.name in shapes_here:
                    assert value.shape == shapes_here[value.name], value.name


@pytest.mark.parametrize("source", FILES, ids=lambda path: path.stem)
def test_inferred_shapes_match_mnns_shapes(
    source: Path, converted: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without MNN, shapes are inferred from the words: the same ones."""
    file = converted(source)
    with_mnn = {v.name: v.shape for node in read_model(file).nodes for v in node.outputs}
    monkeypatch.setattr(shapes, "installed", lambda: False)
    graph, _, _ = resolved(read_model(file))
    for node in graph.nodes:
        for value in node.outputs:
            expected = with_mnn[value.name]
            if expected is None or None in expected or value.shape is None:
                continue  # MNN gave up before it, or sizes are open
            assert len(value.shape) == len(expected), value.name
            for size, engine_size in zip(value.shape, expected, strict=True):
                assert size == engine_size or not isinstance(size, int), value.name


#: MNN itself computes nothing sensible for it, and the audit says so.
WRONG_IN_MNN = {"tiny_vision": "stage/floor/packed_input", "legacy_opset6": "oblong/shift"}


@pytest.mark.parametrize(
    "source", [path for path in FILES if path.stem not in WRONG_IN_MNN], ids=lambda path: path.stem
)
def test_lowered_model_computes_mnns_result(
    source: Path, converted: Callable[[Path], Path], folder: Path
) -> None:
    file = converted(source)
    for name, by_mnn, by_words in both(file, random_inputs(read_model(file)), folder):
        assert_close(name, by_mnn, by_words)


@pytest.mark.parametrize(("stem", "node"), sorted(WRONG_IN_MNN.items()))
def test_converter_errors_are_found(
    stem: str, node: str, converted: Callable[[Path], Path]
) -> None:
    """It drops the axis of an old Add, and stacks the operands of a Max without stretching them."""
    source = next(path for path in FILES if path.stem == stem)
    findings = {finding.node: finding for finding in audit(converted(source), "numpy").findings}
    assert findings[node].reason == "invalid_source"


@pytest.mark.slow
@pytest.mark.parametrize("target", ["numpy", "openvino", "ncnn"])
def test_examples_are_audited_for_other_engines(
    target: str, converted: Callable[[Path], Path]
) -> None:
    for source in FILES:
        report = audit(converted(source), target)
        names = {finding.node for finding in report.findings}
        graph = read_model(converted(source))
        may = {n.path for n in graph.nodes if n.op in ("BinaryOp", "Select", "BroadcastTo")}
        assert may <= names, source.stem


# One model an op.


def single(
    op: str,
    inputs: dict[str, Any],
    outputs: int = 1,
    opset: int = 17,
    kind: int = 1,
    **more: Any,
) -> Any:
    """An ONNX model of one node; arrays are constants, shapes are inputs of float32."""
    given = {k: v for k, v in inputs.items() if isinstance(v, tuple)}
    constants = {k: v for k, v in inputs.items() if not isinstance(v, tuple)}
    names = [f"y{k}" for k in range(outputs)]
    node = onnx.helper.make_node(op, list(inputs), names, name="site", **more)
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [value(name, 1, shape) for name, shape in given.items()],
        [value(name, kind, None) for name in names],
        [onnx.numpy_helper.from_array(np.asarray(array), k) for k, array in constants.items()],
    )
    return onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8
    )


def floats(*shape: int) -> Any:
    return np.random.default_rng(1).uniform(0.1, 1, shape).astype(np.float32)


def whole(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


X = (2, 3, 4, 5)
SINGLES: dict[str, Any] = {
    **{
        f"{op}_{k}": single(op, {"a": pair[0], "b": pair[1]})
        for op in ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min")
        for k, pair in enumerate([(X, (5,)), ((4, 1), X), (X, (3, 1, 1)), ((2, 1, 4, 1), X)])
    },
    "Add_constant": single("Add", {"a": X, "b": floats(3, 1, 1)}),
    "Concat": single("Concat", {"a": X, "b": X}, axis=-1),
    "Expand": single("Expand", {"a": (4, 1), "n": whole(2, 1, 4, 5)}),
    "Tile": single("Tile", {"a": (2, 3), "n": whole(2, 2)}),
    **{
        f"Pad_{mode}": single("Pad", {"a": X, "n": whole(0, 0, 1, 2, 0, 0, 2, 1)}, mode=mode)
        for mode in ("constant", "reflect", "edge")
    },
    "Pad_value": single("Pad", {"a": (2, 3), "n": whole(1, 0, 0, 2), "v": np.float32(0.5)}),
    "Reshape": single("Reshape", {"a": X, "n": whole(0, -1, 2)}),
    "Flatten": single("Flatten", {"a": X}, axis=2),
    "Squeeze": single("Squeeze", {"a": (1, 3, 1, 5), "n": whole(0, 2)}),
    "Unsqueeze": single("Unsqueeze", {"a": (3, 5), "n": whole(0, 3)}),
    "Transpose": single("Transpose", {"a": X}, perm=[0, 3, 1, 2]),
    "Slice": single("Slice", {"a": X, "s": whole(1, 0), "e": whole(9, -1), "x": whole(2, 3)}),
    "Slice_steps": single(
        "Slice", {"a": X, "s": whole(0), "e": whole(5), "x": whole(3), "t": whole(2)}
    ),
    "Gather": single("Gather", {"a": X, "i": whole(1, 0)}, axis=1),
    "Split": single("Split", {"a": X, "n": whole(1, 4)}, outputs=2, axis=3, opset=13),
    **{
        f"{op}_{keep}": single(op, {"a": X}, axes=[1, 3], keepdims=keep)
        for op in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare")
        for keep in (0, 1)
    },
    "ReduceSum": single("ReduceSum", {"a": X, "n": whole(2)}, keepdims=0),
    **{
        op: single(op, {"a": X})
        for op in (
            *("Abs", "Neg", "Floor", "Ceil", "Exp", "Sin", "Cos", "Atan", "Reciprocal", "Sigmoid"),
            *("Tanh", "Erf", "HardSwish", "Softplus", "Relu", "Sign", "Round", "Identity"),
        )
    },
    "LeakyRelu": single("LeakyRelu", {"a": X}, alpha=0.1),
    "Clip": single("Clip", {"a": X, "l": np.float32(-0.5), "h": np.float32(0.25)}),
    "PRelu_channels": single("PRelu", {"a": X, "s": floats(3, 1, 1)}),
    "Softmax": single("Softmax", {"a": X}, axis=-1),
    "MatMul": single("MatMul", {"a": (2, 3, 4), "b": (2, 4, 5)}),
    "MatMul_batches": single("MatMul", {"a": (2, 1, 3, 4), "b": (4, 5)}),
    "Gemm": single("Gemm", {"a": (3, 4), "b": floats(4, 5), "c": floats(5)}),
    "Conv": single("Conv", {"a": (1, 3, 9, 8), "w": floats(4, 3, 3, 3)}, pads=[1, 0, 2, 1]),
    "Conv_strides": single(
        "Conv", {"a": (1, 3, 9, 8), "w": floats(4, 3, 3, 3), "b": floats(4)}, strides=[2, 3]
    ),
    "Conv_depthwise": single("Conv", {"a": (1, 4, 9, 8), "w": floats(4, 1, 3, 3)}, group=4),
    "Conv_groups": single("Conv", {"a": (1, 4, 9, 8), "w": floats(6, 2, 3, 3)}, group=2),
    "BatchNormalization": single(
        "BatchNormalization",
        {"a": X, "s": floats(3), "b": floats(3), "m": floats(3), "v": floats(3)},
    ),
    "LayerNormalization": single(
        "LayerNormalization", {"a": (2, 4, 5), "s": floats(5), "b": floats(5)}
    ),
    "MaxPool": single("MaxPool", {"a": (1, 3, 9, 8)}, kernel_shape=[3, 2], strides=[2, 2]),
    "MaxPool_ceil": single(
        "MaxPool", {"a": (1, 3, 9, 8)}, kernel_shape=[2, 3], strides=[2, 2], ceil_mode=1
    ),
    "AveragePool": single("AveragePool", {"a": (1, 3, 9, 8)}, kernel_shape=[3, 2], strides=[1, 2]),
    "GlobalAveragePool": single("GlobalAveragePool", {"a": (1, 3, 9, 8)}),
    **{
        f"{op}_{keep}": single(op, {"a": (2, 3, 4)}, axis=-1, keepdims=keep, kind=7)
        for op in ("ArgMax", "ArgMin")
        for keep in (0, 1)
    },
    "GatherElements": single("GatherElements", {"a": (3, 4), "i": np.array([[1, 0, 2]])}, axis=1),
    "ScatterElements": single(
        "ScatterElements", {"a": (3, 4), "i": np.array([[1, 0, 2]]), "u": (1, 3)}, axis=1
    ),
    "Conv_of_rows": single("Conv", {"a": (1, 3, 9), "w": floats(4, 3, 3)}, pads=[1, 1]),
    "ConvTranspose": single(
        "ConvTranspose",
        {"a": (1, 3, 4, 5), "w": floats(3, 2, 2, 3), "b": floats(2)},
        strides=[2, 3],
    ),
    "Where": single("Where", {"c": np.array([True, False, True, True]), "a": (4,), "b": (3, 1)}),
    "Resize_nearest": single(
        "Resize",
        {"a": (1, 3, 4, 5), "r": floats(0), "s": np.array([1, 1, 2, 2], np.float32)},
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    ),
    "Resize_linear": single(
        "Resize",
        {"a": (1, 3, 4, 5), "r": floats(0), "s": np.array([1, 1, 2, 2], np.float32)},
        mode="linear",
        coordinate_transformation_mode="half_pixel",
    ),
}


@pytest.fixture(scope="module")
def singles(folder: Path, converted: Callable[[Path], Path]) -> Callable[[str], Path]:
    def convert(name: str) -> Path:
        source = folder / f"single_{name}.onnx"
        if not source.is_file():
            onnx.save(SINGLES[name], source)
        return converted(source)

    return convert


@pytest.mark.parametrize("name", few(30, SINGLES))
def test_lowered_op_computes_mnns_result(
    name: str, singles: Callable[[str], Path], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = singles(name)
    graph = read_model(file)
    assert all(node.domain == "" for node in lowered(graph).nodes)
    with_mnn = {v.name: v.shape for node in graph.nodes for v in node.outputs}
    assert all(shape is not None for shape in with_mnn.values())
    for output, by_mnn, by_words in both(file, random_inputs(graph), folder):
        assert_close(output, by_mnn, by_words)
    monkeypatch.setattr(shapes, "installed", lambda: False)
    inferred, _, _ = resolved(read_model(file))
    by_name = {v.name: v.shape for node in inferred.nodes for v in node.outputs}
    assert by_name == with_mnn


# Broadcasts by value: the site's plan against MNN's result.


@pytest.mark.parametrize("name", [name for name in SINGLES if name.startswith(("Add", "Sub"))])
def test_plan_of_a_site_computes_mnns_result(
    name: str, singles: Callable[[str], Path], folder: Path
) -> None:
    file = singles(name)
    graph = read_model(file)
    module = module_of(graph)
    sites = [site for node in graph.nodes if (site := module.find_site(node)) is not None]
    assert len(sites) == 1
    feeds = random_inputs(graph)
    operands = [
        feeds[part.name] if part.tensor is not None and part.name in feeds else part.tensor.data()
        for part in sites[0].operands
        if part.tensor is not None
    ]
    plan = sites[0].plan(tuple(array.shape for array in operands))
    function = {"Add": np.add, "Sub": np.subtract}[sites[0].op]
    ((_, by_mnn, _),) = both(file, feeds, folder)
    np.testing.assert_allclose(by_mnn, function(*plan.views(*operands)), rtol=1e-5)


@pytest.mark.parametrize("then", [(3, 4), (4,), (3, 1), (1,)])
@pytest.mark.parametrize("other", [(3, 4), (4,), (3, 1), (1,)])
def test_select_is_refused_where_mnn_reads_past_an_operand(
    then: tuple[int, ...], other: tuple[int, ...], folder: Path, converted: Callable[[Path], Path]
) -> None:
    condition = np.array([[True, False, True, False]] * 3)
    source = folder / f"select_{'x'.join(map(str, then))}_{'x'.join(map(str, other))}.onnx"
    onnx.save(single("Where", {"c": condition, "a": then, "b": other}), source)
    file = converted(source)
    graph = read_model(file)
    feeds = random_inputs(graph)
    ((_, by_mnn, _),) = both(file, feeds, folder)
    right = np.array_equal(by_mnn, np.where(condition, feeds["a"], feeds["b"]))
    (finding,) = audit(file, "numpy").findings
    assert (str(finding.verdict) == "same") == right
    assert right == (then != (3, 4) or other not in ((4,), (3, 1)))


# What MNN says of files that are not its own.


def test_file_is_read_even_if_mnns_process_ends(
    singles: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = singles("Add_0")
    died = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    monkeypatch.setattr(shapes, "_CHILD", died)
    graph = read_model(file)
    assert "SIGSEGV" in " ".join(graph.notes)
    whole_graph, _, _ = resolved(graph)
    assert whole_graph.nodes[0].outputs[0].shape == X


def test_mnns_process_has_a_limit_of_time_and_memory(
    singles: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = singles("Add_0")
    monkeypatch.setattr(shapes, "SECONDS", 0.5)
    with monkeypatch.context() as slow:
        slow.setattr(shapes, "_CHILD", "import time; time.sleep(1000)")
        assert "longer than" in " ".join(read_model(file).notes)
    monkeypatch.setattr(shapes, "SECONDS", 120.0)
    greedy = shapes._CHILD.replace("found = expr", "bytearray(1 << 31); found = expr")
    monkeypatch.setattr(shapes, "_CHILD", greedy)
    assert "MemoryError" in " ".join(read_model(file).notes)


def test_types_and_formats_match_mnn(converted: Callable[[Path], Path]) -> None:
    """What the reader hands on from op to op, beside MNN's own answer."""
    names = {"dtype.float": "float32", "dtype.int": "int32"}
    for stem in ("tiny_vision", "clean"):
        file = converted(next(path for path in FILES if path.stem == stem))
        code = (
            "import json, sys; from MNN import expr\n"
            "for v in expr.load_as_list(sys.argv[1]):\n"
            "  print('@', json.dumps([v.name, str(v.dtype), str(v.data_format)]))\n"
        )
        done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True)
        lines = [line[2:] for line in done.stdout.decode().splitlines() if line.startswith("@ ")]
        table = {name: (dtype, layout) for name, dtype, layout in map(json.loads, lines)}
        graph = read_model(file)
        by_name = {value.name: value for node in graph.nodes for value in node.outputs}
        assert len(by_name) > 10
        for name, value in by_name.items():
            assert value.dtype == names[table[name][0]], name
        for node in graph.nodes:
            first = node.inputs[0]
            if first is not None and first.name in table and not first.constant:
                assert node.attributes["layout"] == table[first.name][1].split(".")[-1], node.name
