"""IR files: zerostride's reading compared with OpenVINO's of the same files."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.errors import BroadcastError
from zerostride.models.flow.resolved import resolved
from zerostride.models.format_table import lowered
from zerostride.models.formats import read_model
from zerostride.models.formats.openvino import find_site
from zerostride.models.formats.openvino.opsets import OPS
from zerostride.models.formats.openvino.sites import AXIS
from zerostride.models.ir.graph import Node
from zerostride.models.ir.site import Kind

ov = pytest.importorskip("openvino", reason="asks the real OpenVINO")
sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

from ir_models import Ir, binary, broadcast  # noqa: E402
from openvino_runs import converted, infer  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"
ARITHMETIC = "Add Subtract Multiply Divide Maximum Minimum Power Mod FloorMod SquaredDifference"
COMPARISONS = "Equal NotEqual Greater GreaterEqual Less LessEqual"


def theirs(core: Any, path: Path) -> tuple[int, ...] | str:
    """The shape that OpenVINO infers, or the end of what it says."""
    try:
        model = core.read_model(path)
    except RuntimeError as error:
        return str(error).strip()[-200:]
    return tuple(model.outputs[0].get_shape())


def ours(path: Path, op: str = "op") -> tuple[int, ...] | str:
    """The shape that the site's rule gives, or why it refuses."""
    (node,) = [node for node in read_model(path).nodes if node.name == op]
    site = find_site(node)
    assert site is not None
    assert site.kind not in (Kind.NOT_MODELLED, Kind.CUSTOM), node
    try:
        return site.plan(tuple(part.shape for part in site.operands)).shape  # type: ignore[arg-type,misc,return-value]
    except BroadcastError as error:
        return error.detail


def agree(core: Any, model: Ir, path: Path) -> str:
    """Asserts that both infer one shape, or both refuse; says which."""
    model.save(path)
    mine, real = ours(path), theirs(core, path)
    assert isinstance(mine, str) == isinstance(real, str), (mine, real, path.read_text())
    if isinstance(mine, str):
        return "refused"
    assert mine == real, path.read_text()
    return "planned"


def near(rng: random.Random, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape that often combines with the given one."""
    start = rng.randrange(len(shape) + 1)
    stop = rng.randrange(start, len(shape) + 1)
    part = [1 if rng.random() < 0.3 else size for size in shape[start:stop]]
    if rng.random() < 0.15:
        part = [*part, rng.randint(1, 4)]
    return tuple(part)


def sizes(rng: random.Random, most: int = 5) -> tuple[int, ...]:
    return tuple(rng.randint(1, 4) for _ in range(rng.randrange(most)))


def test_binary_ops_infer_openvinos_shapes_in_every_mode(core: Any, tmp_path: Path) -> None:
    rng = random.Random(4)
    counts = {"planned": 0, "refused": 0}
    ops = [(op, "f32") for op in (ARITHMETIC + " " + COMPARISONS).split()]
    for case in range(900):
        op, _ = ops[case % len(ops)]
        a = sizes(rng)
        b = a if rng.random() < 0.2 else near(rng, a)
        if rng.random() < 0.2:
            a, b = b, a
        array = rng.choice(["", "numpy", "none", "explicit", "NUMPY", *["pdpd"] * 5])
        data = f'auto_broadcast="{array}"' if array else ""
        if array == "pdpd" and rng.random() < 0.8:
            data += f' {AXIS}="{rng.randint(-2, 4)}"'
        if rng.random() < 0.2:
            data += f' axis="{rng.randint(-1, 3)}"'  # which is ignored
        version = rng.choice((10, 11))
        counts[agree(core, binary(op, a, b, data, version), tmp_path / "m.xml")] += 1
    assert counts["planned"] > 250
    assert counts["refused"] > 250


def test_axis_is_read_from_its_documented_attribute(core: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    a, b = (2, 3, 4, 5), (3, 4)
    for version in (10, 11):
        right = binary("Add", a, b, f'auto_broadcast="pdpd" {AXIS}="1"', version)
        assert agree(core, right, path) == "planned"
        wrong = binary("Add", a, b, 'auto_broadcast="pdpd" axis="1"', version)
        assert agree(core, wrong, path) == "refused"
        zero = binary("Add", a, (2, 3), 'auto_broadcast="pdpd" axis="2"', version)
        assert agree(core, zero, path) == "planned"


def test_broadcast_infers_openvinos_shapes_in_every_mode(core: Any, tmp_path: Path) -> None:
    rng = random.Random(5)
    counts = {"planned": 0, "refused": 0}
    for _ in range(500):
        target = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 4)))
        data = near(rng, target) or (1,)
        version = rng.choice(("opset1", "opset2", "opset3", "opset13"))
        mode = rng.choice((None, "numpy", "explicit", "bidirectional", "none"))
        old = version in ("opset1", "opset2")
        if old and mode == "bidirectional":
            mode = "explicit"
        axes = None
        explicit = mode in ("explicit", "none") or (old and mode is None)
        if explicit and (not old or rng.random() < 0.8):
            # Repeated axes pass OpenVINO's inference and compute garbage: they are refused here.
            axes = sorted(rng.sample(range(len(target)), min(len(data), len(target))))
            if rng.random() < 0.2:
                axes = axes[:-1]
        if axes == []:
            continue
        model = broadcast(data, target, mode, axes, version)
        counts[agree(core, model, tmp_path / "m.xml")] += 1
    assert counts["planned"] > 150
    assert counts["refused"] > 40


def three(op: str, shapes: Sequence[Sequence[int]], data: str, kinds: Sequence[str]) -> Ir:
    ir = Ir()
    named = zip("abc", shapes, kinds, strict=False)
    inputs = [ir.parameter(name, shape, kind) for name, shape, kind in named]
    ir.result(ir.layer("op", op, inputs, (), data, kind="f32"))
    return ir


def test_select_and_prelu_infer_openvinos_shapes(core: Any, tmp_path: Path) -> None:
    rng = random.Random(6)
    counts = {"planned": 0, "refused": 0}
    for case in range(300):
        then = sizes(rng)
        other = then if rng.random() < 0.4 else near(rng, then)
        condition = near(rng, then)
        mode = ("numpy", "none", "pdpd")[case % 3]
        data = f'auto_broadcast="{mode}"'
        if mode == "pdpd":
            data += f' {AXIS}="{rng.randint(-1, 2)}"'
        model = three("Select", (condition, then, other), data, ("boolean", "f32", "f32"))
        counts[agree(core, model, tmp_path / "m.xml")] += 1
    assert min(counts.values()) > 60
    for _ in range(150):
        shape = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 4)))
        slope = (shape[1],) if len(shape) > 1 and rng.random() < 0.5 else near(rng, shape)
        model = binary("PReLU", shape, slope)
        path = model.save(tmp_path / "m.xml")
        mine = ours(path)
        if not isinstance(mine, str):  # the engine's inference checks no slope
            assert mine == theirs(core, path)


FORMULAS = {"Add": np.add, "Multiply": np.multiply, "Maximum": np.maximum}


def test_plans_compute_what_openvino_computes(core: Any, tmp_path: Path) -> None:
    rng, checked = random.Random(7), 0
    path = tmp_path / "m.xml"
    while checked < 60:
        a = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 4)))
        op = rng.choice(sorted(FORMULAS))
        mode = rng.choice(("numpy", "pdpd"))
        axis = rng.randint(-1, 2)
        data = f'auto_broadcast="{mode}"' + (f' {AXIS}="{axis}"' if mode == "pdpd" else "")
        binary(op, a, near(rng, a), data).save(path)
        (node,) = read_model(path).nodes
        site = find_site(node)
        assert site is not None
        shapes = [tuple(part.shape or ()) for part in site.operands]
        try:
            plan = site.plan(tuple(shapes))  # type: ignore[arg-type]
        except BroadcastError:
            continue
        arrays = [np.arange(1, 1 + np.prod(s), dtype=np.float32).reshape(s) for s in shapes]  # type: ignore[arg-type]
        arrays[1] = arrays[1] * 1000
        (real,) = infer(core, path, arrays)
        np.testing.assert_array_equal(FORMULAS[op](*plan.views(*arrays)), real)
        checked += 1


def test_broadcasts_compute_what_openvino_computes(core: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    cases = [
        ((16, 1, 1), (1, 16, 5, 5), "numpy", None, "opset3"),
        ((16,), (1, 16, 5, 5), "explicit", (1,), "opset3"),
        ((5, 5), (1, 5, 5, 16), "explicit", (1, 2), "opset3"),
        ((16, 1, 1), (1, 1, 5, 5), "bidirectional", None, "opset3"),
        ((3, 4), (2, 3, 1), "bidirectional", None, "opset8"),
        ((2, 3), (2, 3, 4), None, (0, 1), "opset1"),
        ((3,), (2, 3), "explicit", None, "opset1"),
        ((3, 1), (2, 3, 4), "numpy", None, "opset2"),
    ]
    for data, target, mode, axes, version in cases:
        broadcast(data, target, mode, axes, version).save(path)
        (node,) = read_model(path).nodes
        site = find_site(node)
        assert site is not None
        array = np.arange(np.prod(data), dtype=np.float32).reshape(data)
        plan = site.plan(tuple(part.shape for part in site.operands))  # type: ignore[arg-type,misc]
        (mine,) = plan.views(array)
        (real,) = infer(core, path, [array])
        np.testing.assert_array_equal(mine, real)


def test_table_has_all_ops_of_openvino() -> None:
    """Every function of every opset module of OpenVINO has its op in the list."""
    import importlib

    offered: set[str] = set()
    for version in range(1, 17):
        module = importlib.import_module(f"openvino.opset{version}")
        offered |= {name for name in dir(module) if name.islower() and not name.startswith("_")}
    known = {name.lower() for name in OPS}
    # Modules, and functions that are called otherwise than the op that they make.
    other = {"ops", "absolute", "ceil", "if_op", "constant", "read_value", "numpy_to_c", "np"}
    odd = {name for name in offered - other if name.replace("_", "") not in known}
    assert not odd, sorted(odd)
    assert len(offered) > 150


# Whole models.


MODELS = [
    path
    for path in sorted(EXAMPLES.rglob("*.onnx"))
    if "bugs" not in path.parts or path.stat().st_size < 20_000
]


def convertible(core: Any, path: Path, folder: Path) -> Path:
    try:
        return converted(core, path, folder)
    except Exception as error:  # noqa: BLE001 - OpenVINO's frontend raises what it likes
        pytest.skip(f"OpenVINO does not convert it: {str(error).strip().splitlines()[-1][:80]}")


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_converted_models_are_audited_in_full(core: Any, path: Path, tmp_path: Path) -> None:
    converted = convertible(core, path, tmp_path)
    report = zs.audit(converted, target="ncnn")
    graph = read_model(converted)
    sites = [node for node in graph.nodes if find_site(node) is not None]
    assert len(report.findings) == len(sites)
    odd = [f for f in report.findings if f.reason in ("custom_op", "unknown_shape")]
    assert not odd, [str(f.message) for f in odd]
    # What OpenVINO infers is what flows through the lowered graph.
    model = core.read_model(converted)
    shapes = {op.get_friendly_name(): op for op in model.get_ordered_ops()}
    whole, _, flow = resolved(graph)
    assert flow is None or flow.ok, flow and flow.failures
    for node in whole.nodes:
        if node.scope or len(node.outputs) != 1 or node.name not in shapes:
            continue
        real = shapes[node.name].output(0).partial_shape
        mine = node.outputs[0].shape
        if real.rank.is_dynamic:
            continue
        assert mine is not None, node
        assert len(mine) == len(real), node
        for size, dim in zip(mine, real, strict=True):
            if dim.is_static and isinstance(size, int):
                assert size == dim.get_length(), node


def test_lowered_nodes_are_most_of_a_converted_model(core: Any, tmp_path: Path) -> None:
    kept: list[Node] = []
    count = 0
    for name in ("tiny_vision", "transformer_dynamic", "unet_dynamic"):
        graph = lowered(read_model(converted(core, EXAMPLES / f"{name}.onnx", tmp_path)))
        count += len(graph.nodes)
        kept += [node for node in graph.nodes if node.domain]
    assert len(kept) < 0.05 * count, sorted({node.op for node in kept})


def test_dynamic_sizes_combine_as_in_openvino(core: Any, tmp_path: Path) -> None:
    rng = random.Random(8)
    path = tmp_path / "m.xml"
    texts = ("?", "3", "1", "2..5", "1..5", "4..8", "2", "6..9")
    agreed = 0
    for _ in range(300):
        a = [rng.choice(texts) for _ in range(3)]
        b = [rng.choice(texts) for _ in range(rng.randint(1, 3))]
        mode = rng.choice(("numpy", "pdpd"))
        axis = rng.randint(0, 2)
        data = f'auto_broadcast="{mode}"' + (f' {AXIS}="{axis}"' if mode == "pdpd" else "")
        a_, b_ = ([int(s) if s.isdigit() else s for s in shape] for shape in (a, b))
        binary("Add", a_, b_, data, result=("?",) * 3).save(path)
        try:
            real = core.read_model(path).outputs[0].partial_shape
        except RuntimeError:
            # Ours is to see it too, if not before: some sizes must be found impossible.
            continue
        whole, _, flow = resolved(read_model(path))
        shape = whole.nodes[0].outputs[0].shape
        assert shape is not None
        assert len(shape) == len(real)
        if flow is not None and flow.failures:
            assert mode == "pdpd"  # its inference lets pass what cannot be (ENGINES: 0..1 and 2)
            continue
        for size, dim in zip(shape, real, strict=True):
            if isinstance(size, int):
                assert dim.get_min_length() <= size <= (dim.get_max_length()), path.read_text()
        agreed += 1
    assert agreed > 100


def test_element_types_match_openvino() -> None:
    from zerostride.models.formats.openvino.tensors import TYPES

    kinds = [one for name in dir(ov.Type) if isinstance(one := getattr(ov.Type, name), ov.Type)]
    assert len(kinds) > 20
    for kind in kinds:
        row = TYPES[kind.get_type_name()]
        if kind.get_type_name() != "string":
            assert row.bits == kind.get_bitwidth()
        if row.plain:
            assert np.dtype(row.dtype) == kind.to_dtype()


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_whole_converted_model_is_executed(direction: str, tmp_path: Path) -> None:
    """An LSTM and a MaxPool, whose indices nobody reads, as OpenVINO's converter writes them."""
    onnx = pytest.importorskip("onnx", reason="what is converted is an ONNX model")
    rng = np.random.default_rng(5)
    ways, hidden, helper = 1 + (direction == "bidirectional"), 3, onnx.helper
    weights = {
        "w": rng.normal(size=(ways, 4 * hidden, 4)),
        "r": rng.normal(size=(ways, 4 * hidden, hidden)),
        "b": rng.normal(size=(ways, 8 * hidden)),
    }
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2], strides=[2]),
        helper.make_node(
            "LSTM", ["p", "w", "r", "b"], ["y", "h", "c"], hidden_size=hidden, direction=direction
        ),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", 1, (5, 2, 8))],
        [value(name, 1, None) for name in "yhc"],
        [onnx.numpy_helper.from_array(a.astype("f"), name) for name, a in weights.items()],
    )
    file = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), file)
    path = converted(ov.Core(), file, tmp_path)
    assert {"LSTMSequence", "MaxPool"} <= {node.op for node in read_model(path).nodes}
    for report in (
        zs.verify(path, "openvino", whole=True, cache=False),
        zs.verify(file, "openvino", against=path, cache=False),
    ):
        assert [check.outcome for check in report.checks] == ["agrees"] * 3
    sized, _, _ = resolved(read_model(path))
    (lstm,) = (node for node in sized.nodes if node.op == "LSTMSequence")
    assert [v.shape for v in lstm.outputs] == [(2, ways, 5, 3), (2, ways, 3), (2, ways, 3)]
