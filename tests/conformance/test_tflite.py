"""LiteRT's files against LiteRT itself: every translated op, every broadcast, whole models.

Sizes and numbers of every tensor that the interpreter makes are compared with the flow of sizes and
with zerostride's own execution.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from campaigns.models import litert_draw, litert_graphs

from zerostride.models.audit.run import audit
from zerostride.models.execute import execute, not_executed
from zerostride.models.execute.random_inputs import random_inputs
from zerostride.models.findings import Outcome
from zerostride.models.flow.resolved import resolved
from zerostride.models.formats import read_model
from zerostride.models.formats.tflite import lowering
from zerostride.models.formats.tflite.reader import tensor_numbers
from zerostride.models.ir.graph import Array
from zerostride.models.options import ModelOptions
from zerostride.models.port.run import port
from zerostride.runtimes.verify.checks import verify

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

import litert_reports
import tflite_files

pytest.importorskip("ai_edge_litert", reason="LiteRT reads and runs its own files")

from ai_edge_litert import interpreter as litert


def run(path: Path, inputs: Mapping[str, Array], names: Collection[str]) -> dict[str, Array]:
    """Tensors of the first subgraph, by their name in the graph."""
    numbers = {name: at[1] for name, at in tensor_numbers(path).items() if not at[0]}
    interpreter = litert.Interpreter(
        str(path),
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_preserve_all_tensors=True,
        num_threads=1,
    )
    for name, array in inputs.items():
        if name in numbers:
            interpreter.resize_tensor_input(numbers[name], array.shape)
    interpreter.allocate_tensors()
    for name, array in inputs.items():
        if name in numbers:
            interpreter.set_tensor(numbers[name], array)
    interpreter.invoke()
    made = {name: numbers[name] for name in names if name in numbers}
    return {name: np.array(interpreter.get_tensor(number)) for name, number in made.items()}


#: Ops whose result's sizes depend on numbers that the flow of sizes does not follow.
OPEN_RESULTS = ("RANGE", "WHERE")


def agrees(path: Path, *, steps: int = 0, close: float = 1e-5, **sizes: int) -> None:
    """Sizes and numbers of every tensor are the interpreter's."""
    graph = resolved(ModelOptions(sizes=sizes).read(path))[0]
    assert not not_executed(graph), not_executed(graph)
    inputs = random_inputs(graph, 7)
    made = [value for node in graph.nodes if not node.scope for value in node.outputs]
    theirs = run(path, inputs, [value.name for value in made])
    made = [value for value in made if value.name in theirs]
    assert made
    ours = execute(graph, inputs, [value.name for value in made])
    for value in made:
        a, b = ours[value.name], theirs[value.name]
        known = value.known or graph.nodes[-1].op not in OPEN_RESULTS
        assert not known or value.shape == b.shape, (value.name, value.shape, b.shape)
        assert (a.dtype, a.shape) == (b.dtype, b.shape), (value.name, a.dtype, b.dtype)
        if a.dtype.kind in "iub":
            difference = np.abs(a.astype(np.int64) - b.astype(np.int64))
            assert difference.max(initial=0) <= (steps if value.quantised else 0), value.name
        else:
            np.testing.assert_allclose(a, b, rtol=close, atol=close, err_msg=value.name)


@pytest.mark.parametrize("name", sorted(set(tflite_files.MODELS) - {"custom"}))
def test_small_models(name: str, tmp_path: Path) -> None:
    path = tflite_files.MODELS[name]().write(tmp_path / "m.tflite")
    agrees(path, steps=2, close=0.05 if name == "quantised" else 1e-5, **OPEN.get(name, {}))


OPEN = {"open_sizes": {"x[0]": 3}}


def test_a_wrong_answer_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tflite_files.of_one("TANH", (2, 3)).write(tmp_path / "m.tflite")
    agrees(path)
    monkeypatch.setattr(lowering, "ROWS", {"TANH": "Sigmoid"})
    with pytest.raises(AssertionError):
        agrees(path)


# Every translated op.


@dataclass(frozen=True)
class Case:
    """An op: shapes of its inputs, constants by position, options, and its results' types."""

    shapes: tuple[tuple[int, ...], ...]
    constants: Mapping[int, Any] = ()  # type: ignore[assignment]
    options: Mapping[str, Any] = ()  # type: ignore[assignment]
    dtype: str = "float32"
    results: tuple[str, ...] = ("float32",)
    inputs: tuple[str, ...] = ()

    def model(self, op: str) -> tflite_files.Model:
        model = tflite_files.Model()
        graph = model.main
        constants, shapes = dict(self.constants), iter(self.shapes)
        types = iter(self.inputs or (self.dtype,) * len(self.shapes))
        names = []
        for k in range(len(constants) + len(self.shapes)):
            if k in constants and constants[k] is None:
                names.append("-")
            elif k in constants:
                names.append(graph.constant(f"c{k}", constants[k]))
            else:
                names.append(graph.input(f"x{k}", *next(shapes), dtype=next(types)))
        outputs = []
        for k, dtype in enumerate(self.results):
            outputs.append(graph.add(f"y{k}", (), dtype, ranked=False))
        graph.op(op, " ".join(names), " ".join(outputs), **dict(self.options))
        graph.output(*outputs)
        return model


def ints(*numbers: int) -> Array:
    return np.array(numbers, np.int32)


def reals(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


IMAGE, WIDE = (2, 7, 6, 4), (1, 5, 8, 3)
_UNARY = "ABS CEIL COS ELU EXP FLOOR GELU HARD_SWISH LOGISTIC NEG RELU RELU6 RELU_0_TO_1"
_UNARY += " RELU_N1_TO_1 ROUND SIGN SIN SQRT SQUARE TANH LOG RSQRT L2_NORMALIZATION"
_BOOLS = {"dtype": "bool", "results": ("bool",)}
_TRUTH = {"results": ("bool",)}
_WHOLE = {"dtype": "int32", "results": ("int32",)}
_PAIR = ((2, 1, 4), (3, 1))
_WINDOW = {"stride_w": 2, "stride_h": 1}
_LRN = {"radius": 2, "bias": 1.0, "alpha": 0.3, "beta": 0.7}
_HALF, _CORNERS = {"half_pixel_centers": True}, {"align_corners": True}


def _masks(**masks: int) -> Case:
    return Case(
        ((4, 5, 6),), {1: ints(1, 0, 4), 2: ints(3, 4, 0), 3: ints(1, 2, -1)},
        {f"{name}_mask": mask for name, mask in masks.items()},
    )  # fmt: skip


CASES: Mapping[str, list[Case]] = {
    **{op: [Case(((2, 3, 4),)), Case(((5,),))] for op in _UNARY.split()},
    **{
        op: [Case(_PAIR), Case(_PAIR, options={"fused_activation_function": "RELU_N1_TO_1"})]
        for op in ("ADD", "SUB", "MUL")
    },
    "DIV": [Case(((2, 1, 4),), {1: reals(3, 1) + 2}, {"fused_activation_function": "TANH"})],
    **{op: [Case(_PAIR), Case(_PAIR, **_WHOLE)] for op in ("MAXIMUM", "MINIMUM")},
    "SQUARED_DIFFERENCE": [Case(_PAIR)],
    "POW": [Case(_PAIR)],
    "FLOOR_DIV": [
        Case(((2, 5),), {1: ints(3, -2, 7, -5, 2)}, **_WHOLE),
        Case(((2, 5),), {1: reals(5) * 0.3}),
    ],
    "FLOOR_MOD": [
        Case(((2, 5),), {1: ints(3, -2, 7, -5, 2)}, **_WHOLE),
        Case(((2, 5),), {1: reals(5) * 0.3}),
    ],
    **{
        op: [Case(_PAIR, **_TRUTH), Case(_PAIR, dtype="int32", **_TRUTH)]
        for op in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
    },
    **{op: [Case(_PAIR, **_BOOLS)] for op in ("LOGICAL_AND", "LOGICAL_OR")},
    "LOGICAL_NOT": [Case(((2, 3),), **_BOOLS)],
    "ADD_N": [Case(((2, 3),) * 3)],
    "CAST": [
        Case(((2, 3),), options={"in_data_type": 0, "out_data_type": 2}, results=("int32",)),
        Case(((2, 3),), dtype="int32"),
    ],
    "DEQUANTIZE": [Case((), {0: reals(2, 3).astype(np.float16)})],
    "LEAKY_RELU": [Case(((2, 3),), options={"alpha": 0.3})],
    "LOG_SOFTMAX": [Case(((2, 3, 5),))],
    "SOFTMAX": [Case(((2, 3, 5),), options={"beta": beta}) for beta in (1.0, 0.5)],
    "PRELU": [Case(((2, 3, 4),), {1: reals(*shape)}) for shape in ((4,), (1, 3, 1), (1, 1, 4))],
    "SELECT": [
        Case((shape, (2, 3), (2, 3)), inputs=("bool", "float32", "float32"))
        for shape in ((2, 3), (2,), ())
    ],
    "SELECT_V2": [
        Case((shape, (2, 1, 4), (3, 1)), inputs=("bool", "float32", "float32"))
        for shape in ((2, 3, 4), (4,), ())
    ],
    "BATCH_MATMUL": [
        Case(((2, 1, 3, 4), (5, 4, 6))),
        Case(((2, 4, 3), (2, 4, 6)), options={"adj_x": True}),
        Case(((2, 3, 4), (2, 6, 4)), options={"adj_y": True}),
    ],
    "FULLY_CONNECTED": [
        Case(((2, 3, 4),), {1: reals(5, 4), 2: reals(5)}),
        Case(((2, 3, 4),), {1: reals(5, 6), 2: None}),
        Case(
            ((2, 3, 4),),
            {1: reals(5, 4), 2: reals(5)},
            {"keep_num_dims": True, "fused_activation_function": "RELU6"},
        ),
    ],
    "CONV_2D": [
        Case((IMAGE,), {1: reals(6, 3, 2, each), 2: bias}, {"padding": padding, **_WINDOW, **more})
        for each, bias, padding, more in (
            (4, reals(6), "SAME", {}),
            (4, None, "VALID", {"fused_activation_function": "RELU"}),
            (2, reals(6), "SAME", {}),
            (4, reals(6), "SAME", {"stride_w": 1, "dilation_h_factor": 2, "dilation_w_factor": 3}),
        )
        if bias is not None
    ],
    "DEPTHWISE_CONV_2D": [
        Case(
            (IMAGE,),
            {1: reals(1, 3, 2, 4 * many), 2: reals(4 * many)},
            {"padding": padding, "stride_w": 2, "stride_h": 2, "depth_multiplier": many},
        )
        for padding in ("SAME", "VALID")
        for many in (1, 2)
    ],
    "TRANSPOSE_CONV": [
        Case(
            ((1, 4, 5, 3),),
            {0: ints(1, *size, 2), 1: reals(2, 3, 4, 3)},
            {"padding": padding, "stride_w": 2, "stride_h": 2},
        )
        for padding, size in (("SAME", (8, 10)), ("SAME", (7, 9)), ("VALID", (9, 12)))
    ],
    **{
        op: [
            Case((IMAGE,), options={"padding": p, **_WINDOW, "filter_width": 3, "filter_height": 2})
            for p in ("SAME", "VALID")
        ]
        for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
    },
    "LOCAL_RESPONSE_NORMALIZATION": [Case((IMAGE,), options=_LRN)],
    "RESIZE_BILINEAR": [Case((WIDE,), {1: ints(7, 5)}, more) for more in ({}, _HALF, _CORNERS)]
    + [Case((WIDE,), {1: ints(10, 16)}, more) for more in ({}, _HALF, _CORNERS)],
    "RESIZE_NEAREST_NEIGHBOR": [
        Case((WIDE,), {1: ints(7, 5)}, more) for more in ({}, _HALF, _CORNERS)
    ]
    + [Case((WIDE,), {1: ints(10, 16)}, more) for more in ({}, _HALF, _CORNERS)],
    **{
        op: [
            Case(((2, 3, 4),), {1: axes}, {"keep_dims": keep})
            for axes, keep in ((ints(1), True), (ints(-1, 0), False), (np.int32(1), False))
        ]
        for op in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
    },
    **{
        op: [Case(((2, 3, 4),), {1: ints(1)}, {"keep_dims": True}, **_BOOLS)]
        for op in ("REDUCE_ANY", "REDUCE_ALL")
    },
    **{
        op: [
            Case(
                ((2, 3, 4),),
                {1: ints(axis)[0:1].reshape(())},
                {"output_type": 2},
                results=("int32",),
            )
            for axis in (1, -1)
        ]
        for op in ("ARG_MAX", "ARG_MIN")
    },
    "BROADCAST_TO": [Case(((3, 1),), {1: ints(2, 3, 4)})],
    "CONCATENATION": [
        Case(((2, 3), (2, 5)), options={"axis": axis, "fused_activation_function": "NONE"})
        for axis in (1, -1)
    ],
    "CUMSUM": [
        Case(((2, 5),), {1: np.array(1, np.int32)}, {"exclusive": a, "reverse": b})
        for a in (False, True)
        for b in (False, True)
    ],
    "DEPTH_TO_SPACE": [Case(((1, 2, 3, 8),), options={"block_size": 2})],
    "SPACE_TO_DEPTH": [Case(((1, 4, 6, 3),), options={"block_size": 2})],
    "SPACE_TO_BATCH_ND": [
        Case(((1, 4, 5, 2),), {1: ints(2, 3), 2: ints(1, 1, 0, 1).reshape(2, 2)})
    ],
    "BATCH_TO_SPACE_ND": [
        Case(((12, 3, 2, 2),), {1: ints(2, 3), 2: ints(1, 1, 0, 1).reshape(2, 2)})
    ],
    "EXPAND_DIMS": [Case(((2, 3),), {1: np.array(axis, np.int32)}) for axis in (0, 1, -1)],
    "FILL": [Case(((),), {0: ints(2, 3)})],
    "GATHER": [
        Case(((3, 4, 5),), {1: ints(0, 2, 2, 1).reshape(2, 2)}, {"axis": axis})
        for axis in (0, 1, -1)
    ],
    "EMBEDDING_LOOKUP": [Case(((5, 3),), {0: ints(4, 0, 0, 2)})],
    "GATHER_ND": [Case(((3, 4, 5),), {1: ints(0, 2, 2, 1).reshape(2, 2)})],
    "SCATTER_ND": [Case(((3, 3),), {0: ints(1, 3, 3).reshape(3, 1), 2: ints(5, 3)})],
    "ONE_HOT": [
        Case(
            (),
            {0: ints(0, 2, 1), 1: np.array(4, np.int32), 2: np.float32(2), 3: np.float32(-1)},
            {"axis": axis},
        )
        for axis in (-1, 0)
    ],
    "PACK": [Case(((2, 3),) * 2, options={"values_count": 2, "axis": axis}) for axis in (0, 2, -1)],
    "UNPACK": [Case(((2, 3),), options={"num": 3, "axis": 1}, results=("float32",) * 3)],
    "PAD": [Case(((2, 3),), {1: ints(1, 0, 2, 1).reshape(2, 2)})],
    "PADV2": [Case(((2, 3),), {1: ints(1, 0, 2, 1).reshape(2, 2), 2: np.float32(7)})],
    "MIRROR_PAD": [Case(((3, 4),), {1: ints(1, 2, 2, 1).reshape(2, 2)})],
    "RANGE": [Case((), {0: np.float32(1), 1: np.float32(6), 2: np.float32(1.5)})],
    "RANK": [Case(((2, 3),), results=("int32",))],
    "SHAPE": [Case(((2, 3),), options={"out_type": 2}, results=("int32",))],
    "RESHAPE": [
        Case(((2, 3, 4),), {1: ints(4, -1)}),
        Case(((2, 3, 4),), options={"new_shape": (6, 4)}),
        Case(((1, 1),), {1: np.zeros(0, np.int32)}),
    ],
    "REVERSE_SEQUENCE": [
        Case(((3, 4),), {1: ints(1, 4, 2)}, {"seq_dim": 1, "batch_dim": 0}),
    ],
    "REVERSE_V2": [Case(((3, 4),), {1: ints(1)})],
    "SLICE": [Case(((3, 4, 5),), {1: ints(1, 0, 2), 2: ints(2, -1, 1)})],
    "SPLIT": [
        Case(((4, 6),), {0: np.array(1, np.int32)}, {"num_splits": 2}, results=("float32",) * 2)
    ],
    "SPLIT_V": [
        Case(
            ((4, 6),),
            {1: ints(2, -1), 2: np.array(1, np.int32)},
            {"num_splits": 2},
            results=("float32",) * 2,
        )
    ],
    "SQUEEZE": [
        Case(((1, 3, 1, 4),), options=more)
        for more in ({}, {"squeeze_dims": (2,)}, {"squeeze_dims": (-2, 0)})
    ],
    "STRIDED_SLICE": [
        _masks(),
        _masks(begin=1, end=6),
        _masks(shrink_axis=1),
        _masks(new_axis=2),
        _masks(ellipsis=2),
        _masks(ellipsis=1, shrink_axis=2),
        _masks(new_axis=1, ellipsis=2),
        _masks(shrink_axis=3, begin=2),
        _masks(end=4),
        _masks(ellipsis=4, shrink_axis=1),
        _masks(ellipsis=4, new_axis=3),
        _masks(ellipsis=2, new_axis=4, shrink_axis=1),
    ],
    "TILE": [Case(((2, 3),), {1: ints(2, 2)})],
    "TOPK_V2": [Case(((2, 5),), {1: np.array(2, np.int32)}, results=("float32", "int32"))],
    "TRANSPOSE": [Case(((2, 3, 4),), {1: ints(2, 0, 1)})],
    "WHERE": [Case(((2, 3),), dtype="bool", results=("int64",))],
    "ZEROS_LIKE": [Case(((2, 3),)), Case(((2, 3),), **_WHOLE)],
}
#: Rows that another test covers: a quantised or sparse tensor, subgraphs; and ops that LiteRT
#: registers for other element types alone.
ELSEWHERE = {"QUANTIZE", "DENSIFY", "IF", "WHILE", "CALL_ONCE", "CALL", "STABLEHLO_COMPOSITE"}
ELSEWHERE |= {"ATAN2", "BITWISE_XOR", "RIGHT_SHIFT"}


def test_every_row_has_a_case() -> None:
    assert set(lowering.ROWS) == set(CASES) | ELSEWHERE


@pytest.mark.parametrize("op", sorted(CASES))
def test_a_translated_op(op: str, tmp_path: Path) -> None:
    for k, case in enumerate(CASES[op]):
        agrees(case.model(op).write(tmp_path / f"{k}.tflite"))


# Broadcasts, by seed: `python -m campaigns litert-graphs` runs more of them.


@pytest.mark.slow
def test_graphs_compute_as_the_source_rule_says() -> None:
    tallies = litert_graphs.measure(range(600), 0)
    assert {op: tally.differing for op, tally in tallies.items() if tally.differing} == {}
    ends = sum((tally.ends for tally in tallies.values()), Counter())
    assert ends["agrees"] > 300
    assert ends["refused"] > 60
    assert ends["ended"] > 3
    assert ends["wrong"] > 3
    assert len(tallies) == 34
    assert sum(tally.tensors for tally in tallies.values()) > 900


def test_a_difference_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litert_graphs, "execute", shifted)
    tallies = litert_graphs.measure(range(40), 0)
    ends = sum((tally.ends for tally in tallies.values()), Counter())
    assert ends["agrees"] < 8 < ends["DIFFERS"]  # one element cannot be shifted


def shifted(*arguments: Any) -> dict[str, Array]:
    """zerostride's results, by one element off."""
    return {name: np.roll(array, 1) for name, array in execute(*arguments).items()}


# Ports.


@pytest.mark.parametrize("target", ["ncnn", "litert-gpu", "openvino", "tosa", "stablehlo"])
def test_a_ported_file_gives_the_same_bits(target: str, tmp_path: Path) -> None:
    path, ported = tmp_path / "m.tflite", tmp_path / "ported.tflite"
    changed = 0
    for seed in range(40):
        model = litert_draw.chain(seed)
        model.write(path)
        report = port(path, target, ported)
        changed += bool(report.changes)
        same_bits(path, ported, seed)
        assert ported.read_bytes().endswith(path.read_bytes()) or not report.changes
        left = {f.verdict for f in audit(ported, target).findings}
        assert left == {f.verdict for f in report.findings}
    assert changed > CHANGED.get(target, 5)


#: How many of the seeds' files need a change at least, where that is not 5.
CHANGED = {"openvino": 0}


def same_bits(path: Path, ported: Path, seed: int) -> None:
    """Both files give the same outputs, with delegates and without."""
    graph = resolved(read_model(path))[0]
    inputs = random_inputs(graph, seed)
    names = [value.name for value in graph.outputs]
    before, after = run(path, inputs, names), run(ported, inputs, names)
    assert before.keys() == after.keys() == set(names)
    for name in names:
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)


@pytest.mark.parametrize("name", ["branches", "loop", "quantised", "residual", "signatures"])
def test_small_models_are_ported(name: str, tmp_path: Path) -> None:
    path = tflite_files.MODELS[name]().write(tmp_path / "m.tflite")
    for target in ("ncnn", "litert-gpu", "tosa"):
        ported = tmp_path / f"{target}.tflite"
        port(path, target, ported)
        if name != "signatures":
            same_bits(path, ported, 3)
        else:
            assert len(audit(ported, target).findings) == len(audit(path, target).findings)


# Verification.


@pytest.mark.parametrize("name", sorted(set(tflite_files.MODELS) - {"custom", "open_sizes"}))
def test_every_broadcast_on_the_interpreter(name: str, tmp_path: Path) -> None:
    path = tflite_files.MODELS[name]().write(tmp_path / "m.tflite")
    checks = verify(path, "litert", cache=False).checks
    assert {check.outcome for check in checks} == {Outcome.AGREES}


@pytest.mark.parametrize("name", ["branches", "loop", "residual", "sliced"])
def test_every_tensor_on_the_interpreter(name: str, tmp_path: Path) -> None:
    path = tflite_files.MODELS[name]().write(tmp_path / "m.tflite")
    report = verify(path, "litert", whole=True)
    assert {check.outcome for check in report.checks} == {Outcome.AGREES}
    graph = read_model(path)
    made = {value.name for node in graph.nodes if not node.scope for value in node.outputs}
    assert {check.op for check in report.checks} == made


@pytest.mark.parametrize("name", [k for k, row in litert_reports.REPORTS.items() if row.cured])
def test_cured_report_computes_the_same(name: str, tmp_path: Path) -> None:
    file = litert_reports.REPORTS[name].make().write(tmp_path / "m.tflite")
    ported = tmp_path / "p.tflite"
    port(file, "litert-gpu", ported)
    inputs = random_inputs(read_model(file), 0)
    before, after = (run(path, inputs, ["y"])["y"] for path in (file, ported))
    assert before.tobytes() == after.tobytes()
