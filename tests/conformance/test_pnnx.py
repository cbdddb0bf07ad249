"""The audit's verdicts on pnnx's output, compared with the real pnnx and ncnn.

Each model is converted, run on ncnn and compared with ONNX Runtime: `same` must mean equal numbers.
A sample runs here; ZEROSTRIDE_PNNX=2000 runs that many models, and ZEROSTRIDE_PNNX_NETWORKS=500
that many networks.
"""

from __future__ import annotations

import os
import re
import subprocess
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from child import Child

from sampled import few

pytest.importorskip("onnx", reason="the models are made with the onnx package")
pnnx: Any = pytest.importorskip("pnnx", reason="the converter is an extra, not a test need")
ort: Any = pytest.importorskip("onnxruntime", reason="the reference is an extra, not a test need")

import pnnx_networks  # noqa: E402
from campaigns.models.exporter_forms import write_form  # noqa: E402
from campaigns.models.exporter_sheet import Sheet  # noqa: E402
from pnnx_models import (  # noqa: E402
    BINARY,
    Broadcast,
    compound,
    expand,
    generated,
    normalised,
    typed,
)

from zerostride.models.audit.run import audit  # noqa: E402
from zerostride.models.execute import execute  # noqa: E402
from zerostride.models.findings import Finding, Report, Verdict  # noqa: E402
from zerostride.models.formats import read_model  # noqa: E402

pytestmark = pytest.mark.conformance

EXAMPLES = Path(__file__).parents[2] / "examples"
#: Without the models that optimisers get wrong: ONNX Runtime's own does, too.
FILES = [p for p in sorted(EXAMPLES.rglob("*.onnx")) if p.parent.name != "optimisers"]
SAMPLE = 120
NETWORKS = 25


def convert(content: bytes, folder: Path) -> bool:
    """Runs pnnx on a model; whether it wrote a net for ncnn."""
    file = folder / "m.onnx"
    file.write_bytes(content)
    subprocess.run([pnnx.EXEC_PATH, str(file)], cwd=folder, capture_output=True, timeout=120)
    return (folder / "m.ncnn.param").is_file() and (folder / "m.ncnn.bin").is_file()


def numbers(child: Child, folder: Path, feeds: dict[str, Any]) -> tuple[str, Any]:
    """The converted net's answer; its own script says which axis of an input was the batch."""
    script = (folder / "m_ncnn.py").read_text("utf-8")
    axes = [int(axis) for axis in re.findall(r"ex\.input\(.*batch_index=(\d+)", script)]
    inputs = {}
    for k, (array, axis) in enumerate(zip(feeds.values(), axes, strict=True)):
        none = axis == 233 or array.shape[axis] != 1  # 233 is pnnx's word for none
        inputs[f"in{k}"] = array if none else array.squeeze(axis)
    content = (folder / "m.ncnn.bin").read_bytes()
    param = (folder / "m.ncnn.param").read_text("utf-8")
    return child.ask({"op": "net", "param": param, "bin": content, "inputs": inputs})


def equal(answer: tuple[str, Any], wanted: Any) -> bool:
    """The same numbers in the same order; the batch axis is not in ncnn's shape."""
    word, got = answer
    return (
        word == "result"
        and got.size == wanted.size
        and bool(np.allclose(got.ravel(), wanted.ravel(), rtol=5e-3, atol=1e-3))
    )


def judged(folder: Path) -> Report:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # another release than the measured one
        return audit(folder / "m.onnx", target="ncnn")


def at_site(report: Report) -> Finding:
    return next(finding for finding in report.findings if finding.node == "site")


def outcome(
    child: Child, content: bytes, feeds: dict[str, Any], folder: Path
) -> tuple[Finding, bool]:
    """The finding of the model's broadcast, and whether pnnx and ncnn give its numbers."""
    wanted = ort.InferenceSession(content).run(None, feeds)[0]
    converted = convert(content, folder)
    finding = at_site(judged(folder))
    return finding, converted and equal(numbers(child, folder, feeds), wanted)


@pytest.mark.slow
def test_same_verdicts_give_equal_numbers(ncnn_ops: Child, tmp_path: Path) -> None:
    count = int(os.environ.get("ZEROSTRIDE_PNNX", SAMPLE))
    table: Counter[tuple[str, str, bool]] = Counter()
    wrong = []
    for k, broadcast in enumerate(generated(count, seed=count)):
        folder = tmp_path / str(k)
        folder.mkdir()
        content = broadcast.model().SerializeToString()
        finding, same = outcome(ncnn_ops, content, broadcast.feeds(), folder)
        table[finding.verdict, finding.reason, same] += 1
        if finding.verdict is Verdict.SAME and not same:
            wrong.append(broadcast)
    print(f"\n{count} models: {dict(table)}")
    assert wrong == []
    # Not by saying `different` of everything: what pnnx gets right is mostly called the same.
    right = sum(n for (_, _, same), n in table.items() if same)
    count_same = sum(n for (verdict, _, _), n in table.items() if verdict == Verdict.SAME)
    assert count_same > 0.75 * right > 0


def test_networks_marked_same_give_equal_numbers(ncnn_ops: Child, tmp_path: Path) -> None:
    """Attention, heads, reductions, moved batches: nothing is called other than it is.

    What pnnx does not convert, and the op for op audit, are counted alone: a layer's own alignment
    may differ where pnnx puts ones in.
    """
    count = int(os.environ.get("ZEROSTRIDE_PNNX_NETWORKS", NETWORKS))
    table: Counter[tuple[str, bool]] = Counter()
    plain: Counter[str] = Counter()
    wrong = []
    for k, network in enumerate(pnnx_networks.generated(count, seed=count)):
        folder = tmp_path / str(k)
        folder.mkdir()
        content, feeds = network.model().SerializeToString(), network.feeds()
        if not convert(content, folder):
            table["not converted", False] += 1
            continue
        wanted = ort.InferenceSession(content).run(None, feeds)[0]
        same = equal(numbers(ncnn_ops, folder, feeds), wanted)
        report = judged(folder)
        bad = [f for f in report.findings if f.verdict is not Verdict.SAME]
        worst = "same" if not bad else str(bad[0].verdict)
        table[worst, same] += 1
        if same != (not bad):
            wrong.append((k, network.batch, network.given, [(f.node, f.message) for f in bad]))
        plain.update(
            str(f.reason) for f in audit(folder / "m.onnx", target="ncnn", via="none").findings
        )
    print(f"\n{count} networks: {dict(table)}; op for op {dict(plain)}")
    assert wrong == []
    assert table["same", True] > count // 2
    assert not set(plain) - {
        "same_plan",
        "size_trap",
        "other_alignment",
        "batch_broadcast",
        "silent",
    }


@pytest.mark.parametrize(("axis", "verdict"), [(0, "refused"), (1, "same"), (2, "same")])
def test_fifth_axis_is_refused_or_equal(
    ncnn_ops: Child, tmp_path: Path, axis: int, verdict: str
) -> None:
    """Behind the batch there are four axes; before it the batch is one of five."""
    network = pnnx_networks.fifth_axis(axis)
    content, feeds = network.model().SerializeToString(), network.feeds()
    wanted = ort.InferenceSession(content).run(None, feeds)[0]
    assert convert(content, tmp_path)
    same = equal(numbers(ncnn_ops, tmp_path, feeds), wanted)
    assert (judged(tmp_path).findings[0].verdict, same) == (verdict, verdict == "same")


@pytest.mark.parametrize("batch", [1, "N", "frames"])
@pytest.mark.parametrize("axes", [[1], [1, 2], [2], [3]], ids=str)
def test_open_sizes_marked_same_give_equal_numbers(
    ncnn_ops: Child, tmp_path: Path, batch: int | str, axes: list[int]
) -> None:
    """pnnx reshapes operands of lower rank to expressions of open sizes."""
    content = pnnx_networks.open_sizes(batch, axes).SerializeToString()
    for side in (4, 6):
        feeds = {"x": _ramp(1, 3, side, side)}
        wanted = ort.InferenceSession(content).run(None, feeds)[0]
        assert convert(content, tmp_path)
        same = equal(numbers(ncnn_ops, tmp_path, feeds), wanted)
        report = judged(tmp_path)
        assert report.ok
        assert same


@pytest.mark.parametrize(
    ("broadcast", "verdict"),
    [
        (Broadcast((1, 3, 4, 4), (4,)), "same"),  # put on the width, though C may be 4
        (Broadcast((1, 4, 4, 4), (4,)), "same"),
        (Broadcast((1, 4, 4), (4,)), "same"),
        (Broadcast((1, 4, 4), (1, 1, 4)), "same"),  # equal rank: the leading 1 is dropped
        (Broadcast((1, 4, 4), (1, 4), given=True), "same"),
        (Broadcast((1, 3, 2, 4, 4), (2, 1, 4)), "same"),  # five axes, a convolution tells
        (Broadcast((1, 3, 2, 4, 4), (2, 1, 4), tells=False), "refused"),  # and without one
        (Broadcast((1, 3, 4, 4), (2, 1, 4, 4)), "different"),  # across the batch
        (Broadcast((1, 4, 3), (2, 2, 4, 3), given=True), "different"),
        (Broadcast((1, 4, 3), (1, 1, 4, 3)), "same"),  # of higher rank, with ones alone
    ],
    ids=str,
)
def test_verdicts_match_pnnx(
    ncnn_ops: Child, tmp_path: Path, broadcast: Broadcast, verdict: str
) -> None:
    content = broadcast.model().SerializeToString()
    finding, same = outcome(ncnn_ops, content, broadcast.feeds(), tmp_path)
    assert finding.verdict == verdict
    assert same or verdict != "same"


@pytest.mark.parametrize("op", BINARY)
def test_every_binary_op_has_pnnxs_verdict(ncnn_ops: Child, tmp_path: Path, op: str) -> None:
    broadcast = Broadcast((1, 4, 4, 4), (4,), op)
    content = broadcast.model().SerializeToString()
    finding, same = outcome(ncnn_ops, content, broadcast.feeds(), tmp_path)
    assert (finding.verdict, same) == (Verdict.SAME, True)


def _ramp(*shape: int) -> Any:
    return np.linspace(0.5, 1.5, int(np.prod(shape)), dtype=np.float32).reshape(shape)


X = (1, 4, 4, 4)
COMPOUNDS = {
    "prelu": ("PRelu", X, [_ramp(4, 1, 1)], {}),
    "prelu_number": ("PRelu", X, [_ramp(1)], {}),
    "prelu_width": ("PRelu", X, [_ramp(4)], {}),
    "prelu_rows": ("PRelu", X, [_ramp(4, 1)], {}),
    "clip": ("Clip", X, [np.float32(0.2), np.float32(1.1)], {}),
    "clip_vector": ("Clip", X, [_ramp(1) * 0 + 0.2, _ramp(1) * 0 + 1.1], {}),
    "batch_norm": ("BatchNormalization", X, [_ramp(4)] * 4, {}),
    "instance_norm": ("InstanceNormalization", X, [_ramp(4)] * 2, {}),
    "layer_norm_1": ("LayerNormalization", X, [_ramp(4)] * 2, {"axis": -1}),
    "layer_norm_2": ("LayerNormalization", X, [_ramp(4, 4)] * 2, {"axis": -2}),
    "layer_norm_3": ("LayerNormalization", X, [_ramp(4, 4, 4)] * 2, {"axis": -3}),
    "layer_norm_ones": ("LayerNormalization", X, [_ramp(1, 4)] * 2, {"axis": -2}),
    "matmul": ("MatMul", X, [_ramp(4, 5)], {}),
    "matmul_heads": ("MatMul", X, [_ramp(4, 4, 5)], {}),
    "matmul_batch": ("MatMul", X, [_ramp(1, 1, 4, 5)], {}),
    "matmul_across": ("MatMul", X, [_ramp(2, 1, 4, 5)], {}),
    "three": ("Max", X, [_ramp(4), _ramp(4, 1, 1)], {}),
    "sum": ("Sum", X, [_ramp(4), _ramp(4, 1, 1)], {}),
    "mean": ("Mean", X, [_ramp(4), _ramp(4, 1, 1)], {}),
    "expand": ("Expand", (1, 4, 1, 4), [np.array([1, 4, 4, 4])], {}),
    "mod": ("Mod", X, [_ramp(4)], {"fmod": 1}),
}


@pytest.mark.parametrize("name", COMPOUNDS)
def test_compounds_have_pnnxs_verdict(ncnn_ops: Child, tmp_path: Path, name: str) -> None:
    op, shape, weights, attributes = COMPOUNDS[name]
    content = compound(op, shape, weights, **attributes).SerializeToString()
    feeds = {"x": np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)}
    finding, same = outcome(ncnn_ops, content, feeds, tmp_path)
    print(f"\n{name}: {finding.verdict} ({finding.reason}), equal numbers: {same}")
    assert same or finding.verdict is not Verdict.SAME


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_examples_marked_same_give_equal_numbers(
    ncnn_ops: Child, tmp_path: Path, path: Path
) -> None:
    """A model of which every broadcast is the same gives the same numbers."""
    content = path.read_bytes()
    (tmp_path / "m.onnx").write_bytes(content)
    report = judged(tmp_path)
    if not report.ok:
        pytest.skip(f"not all the same: {dict(report.counts)}")
    session = ort.InferenceSession(content)
    rng = np.random.default_rng(0)
    entries = session.get_inputs()
    # pnnx takes every open axis 0 for a batch of 1.
    ones = {entry.shape[0] for entry in entries if entry.shape}
    feeds = {}
    for entry in entries:
        shape = [
            size if isinstance(size, int) else 1 if size in ones else 5 for size in entry.shape
        ]
        feeds[entry.name] = rng.uniform(0.5, 1.5, shape).astype(np.float32)
    wanted = session.run(None, feeds)[0]
    assert convert(content, tmp_path)
    assert equal(numbers(ncnn_ops, tmp_path, feeds), wanted)


def _grouped(sizes: tuple[int | str, ...], number: float, after: bool) -> bytes:
    """A GroupNorm as PyTorch exports it, or with other scales, or without its second Reshape."""
    sheet = Sheet(np.random.default_rng(1), 17)
    x = sheet.input("x", 1, 8, *sizes)
    scale, bias = sheet.const(np.full(4, number)), sheet.const(np.zeros(4))
    flat = sheet.reshape(x, 0, 4, -1)
    y = sheet.op("InstanceNormalization", flat, scale, bias, epsilon=1e-5)
    y = sheet.op("Reshape", y, sheet.op("Shape", x)) if after else y
    sheet.output(sheet.op("Relu", y))
    content: bytes = sheet.model().SerializeToString()
    return content


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("number", [1.0, 2.0])
@pytest.mark.parametrize("sizes", [(6,), (6, 5), ("h", 5)], ids=str)
def test_normalised_groups(
    ncnn_ops: Child, tmp_path: Path, sizes: tuple[int | str, ...], number: float, after: bool
) -> None:
    content = _grouped(sizes, number, after)
    shape = (1, 8, *(6 if isinstance(size, str) else size for size in sizes))
    feeds = {"x": np.random.default_rng(0).random(shape).astype(np.float32)}
    wanted = ort.InferenceSession(content).run(None, feeds)[0]
    same = convert(content, tmp_path) and equal(numbers(ncnn_ops, tmp_path, feeds), wanted)
    (finding,) = judged(tmp_path).findings
    assert (finding.verdict is Verdict.SAME) is same, finding.message


@pytest.mark.parametrize("seed", range(6))
def test_a_batch_of_a_fixed_size_is_judged_for_a_sample(
    ncnn_ops: Child, tmp_path: Path, seed: int
) -> None:
    model = write_form("squeeze_excite", seed, fixed=True)
    content = model.SerializeToString()
    shape = [size.dim_value for size in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    wanted = ort.InferenceSession(content).run(None, {"x": x})[0]
    assert convert(content, tmp_path)
    assert equal(numbers(ncnn_ops, tmp_path, {"x": x[:1]}), wanted[:1])
    assert judged(tmp_path).ok


@pytest.mark.parametrize("op", ["Max", "Mean", "Min", "Sum"])
@pytest.mark.parametrize("count", [1, 3, 5, 20])
def test_any_number_of_operands(ncnn_ops: Child, tmp_path: Path, op: str, count: int) -> None:
    """pnnx makes a chain of a Sum, and keeps two operands of a Max; one operand it gets wrong."""
    rng = np.random.default_rng(count)
    shapes = [X, (4, 1, 1), (4,), (1,), (1, 4, 1, 4), (4, 4)]
    weights = [
        rng.uniform(0.2, 1.5, shapes[rng.integers(len(shapes))]).astype(np.float32)
        for _ in range(count - 1)
    ]
    feeds = {"x": rng.uniform(0.2, 1.5, X).astype(np.float32)}
    content = compound(op, X, weights).SerializeToString()
    finding, same = outcome(ncnn_ops, content, feeds, tmp_path)
    right = count > 1 and op == "Sum"
    assert (finding.verdict == "same", same) == (right, right)
    silent = op in ("Max", "Min") or (op, count) == ("Sum", 1)
    assert finding.verdict == ("different" if silent else "same" if right else "refused")


@pytest.mark.slow
def test_expands_have_pnnxs_verdict(ncnn_ops: Child, tmp_path: Path) -> None:
    """pnnx makes a Tile, and takes the batch axis out of the target, too."""
    table: Counter[tuple[str, bool]] = Counter()
    for seed in range(60):
        model, feeds = expand(seed)
        (folder := tmp_path / str(seed)).mkdir()
        finding, same = outcome(ncnn_ops, model.SerializeToString(), feeds, folder)
        assert (finding.verdict == "same") == same, (seed, finding.message)
        table[str(finding.verdict), same] += 1
    assert table["same", True] > 30
    assert table["different", False] > 2


NORMALISED = [
    *(((1, 3, 4, 5), axis, "Conv") for axis in (0, 1, 2, 3)),
    *(((1, 3, 4), axis, "Conv") for axis in (1, 2)),
    ((1, 6), 1, "Gemm"),
    ((3, 6), 1, "Gemm"),
    *((shape, axis, "") for shape in [(6,), (3, 6), (3, 4, 5), (2, 3, 4, 5)] for axis in (0, -1)),
    ((1, 3, 4, 5), 1, ""),
]


@pytest.mark.parametrize(("shape", "axis", "mark"), NORMALISED)
@pytest.mark.parametrize("norm", ["ReduceL1", "ReduceL2"])
def test_norms_become_a_layer_of_the_first_axis(
    ncnn_ops: Child, tmp_path: Path, shape: tuple[int, ...], axis: int, mark: str, norm: str
) -> None:
    """F.normalize of PyTorch; without its Expand, pnnx writes what the nodes say."""
    for spread in (True, False):
        model, feeds = normalised(shape, axis, mark, norm=norm, spread=spread)
        (folder := tmp_path / str(spread)).mkdir()
        finding, same = outcome(ncnn_ops, model.SerializeToString(), feeds, folder)
        if spread:
            assert (finding.verdict == "same") == same, finding.message
            assert same or "pnnx makes a Normalize" in finding.message
        else:
            assert "Normalize" not in finding.message


KINDS = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16"]


@pytest.mark.parametrize("kind", [*KINDS, "uint32", "uint64"])
@pytest.mark.parametrize("op", few(1, ["Add", "Div", "Max", "Pow"]))
def test_element_types(ncnn_ops: Child, tmp_path: Path, op: str, kind: str) -> None:
    """Inputs, constants, and constants of one number, which become a parameter."""
    for name, other in {"inputs": None, "constant": (3, 4), "one": (1,)}.items():
        (folder := tmp_path / name).mkdir()
        model, feeds = typed(op, kind, other)
        wanted = execute(read(model, folder), feeds)["y"]
        converted = convert(model.SerializeToString(), folder)
        finding = at_site(judged(folder))
        floats = {key: array.astype(np.float32) for key, array in feeds.items()}
        same = converted and equal(numbers(ncnn_ops, folder, floats), wanted)
        assert (finding.verdict in ("same", "same_here")) == same, (name, finding.message)


def read(model: Any, folder: Path) -> Any:
    (folder / "read.onnx").write_bytes(model.SerializeToString())
    return read_model(folder / "read.onnx")
