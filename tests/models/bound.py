"""Inferred sizes of small models, compared with onnx's reference evaluator."""

from __future__ import annotations

import itertools
import random
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from zerostride.models.flow import Flow, flow
from zerostride.models.flow.input_sizes import sized
from zerostride.models.formats.onnx.reader import read_onnx
from zerostride.models.ir.graph import Graph
from zerostride.sizes.dim import dim

Shape = Sequence[int | str | None] | None
KINDS = {
    "float": (TensorProto.FLOAT, np.float32),
    "int": (TensorProto.INT64, np.int64),
    "bool": (TensorProto.BOOL, np.bool_),
    "uint8": (TensorProto.UINT8, np.uint8),
    "int8": (TensorProto.INT8, np.int8),
}


class Case(NamedTuple):
    """A node with its operands; `shape` is what must come out, `needs` what it needs."""

    node: Any
    inputs: dict[str, Any]
    shape: str
    needs: tuple[str, ...] = ()
    weights: dict[str, Any] = {}  # noqa: RUF012 - never changed
    opset: int = 21
    kinds: dict[str, str] = {}  # noqa: RUF012 - never changed
    #: The evaluator refuses what the needs rule out. NumPy computes some of what ONNX forbids.
    strict: bool = True
    #: The evaluator knows the op.
    run: bool = True
    #: The least size that is put in: NumPy's -1 has no answer beside a 0, where Flatten has one.
    least: int = 0


def ints(*numbers: int) -> Any:
    """Numbers as a tensor."""
    return np.array(numbers, np.int64)


N, NC, NCH, NCHW = ({"x": tuple(names)} for names in ("N", "NC", "NCH", "NCHW"))
far = 2**63 - 1


def judge(case: Case) -> None:
    """One node: what comes out and what it needs as written, and as computed for sizes put in."""
    outputs = " ".join(case.node.output)
    content = model(
        [case.node],
        case.inputs,
        case.weights,
        opset=case.opset,
        kinds=case.kinds,
        outputs=outputs,
    )
    flow = flowing(content)
    assert not flow.failures
    assert not flow.notes
    assert (shapes(flow)[case.node.output[0]], tuple(needs(flow))) == (case.shape, case.needs)
    if case.run:
        sizes = [size for size in (0, 1, 2, 3, 4, 6, 8) if size >= case.least]
        assert check(content, flow, strict=case.strict, sizes=sizes) > 0


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> Any:
    """A node; its name is the op's, "-" stands for an input that is left out."""
    names = ["" if part == "-" else part for part in inputs.split()]
    return helper.make_node(op, names, outputs.split(), **attributes)


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, Shape],
    weights: Mapping[str, Any] | None = None,
    *,
    outputs: str = "y",
    opset: int = 21,
    kinds: Mapping[str, str] | None = None,
    claims: Mapping[str, Shape] | None = None,
) -> onnx.ModelProto:
    """A model; inputs are float unless `kinds` says otherwise, `claims` are shapes it declares."""
    kinds, claims = kinds or {}, claims or {}
    values = [
        helper.make_tensor_value_info(name, KINDS[kinds.get(name, "float")][0], shape)
        for name, shape in inputs.items()
    ]
    constants = [numpy_helper.from_array(np.asarray(v), k) for k, v in (weights or {}).items()]
    results = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, claims.get(name))
        for name in outputs.split()
    ]
    inner = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in claims.items()
        if name not in outputs.split()
    ]
    graph = helper.make_graph(nodes, "g", values, results, constants, value_info=inner)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def read(content: onnx.ModelProto) -> Graph:
    """The graph of a model that is written to a file for it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.onnx")
        file.write_bytes(content.SerializeToString())
        return read_onnx(file)


def flowing(content: onnx.ModelProto, sizes: Any = None, **more: Any) -> Flow:
    """The flow of a model."""
    return flow(sized(read(content), sizes), **more)


def shapes(flow: Flow) -> dict[str, str | None]:
    """The shapes of a flow by the tensors' names, as text."""
    return {
        value.name: None if shape is None else ", ".join(map(str, shape))
        for value in flow.graph.values()
        for shape in [flow.shape_of(value)]
    }


def needs(flow: Flow) -> list[str]:
    """What a flow needs, as text."""
    return [str(need.condition) for need in flow.conditions]


def evaluate(
    content: onnx.ModelProto, flow: Flow, values: Mapping[str, int], seed: int = 0
) -> list[Any] | None:
    """The outputs' shapes for these sizes; None where the evaluator refuses."""
    random_ = np.random.default_rng(seed)
    feeds = {}
    for entry in content.graph.input:
        value = next(v for v in flow.graph.inputs if v.name == entry.name)
        shape = tuple(_number(size, values) for size in flow.shape_of(value) or ())
        kind = next(k for t, k in KINDS.values() if t == entry.type.tensor_type.elem_type)
        feeds[entry.name] = random_.integers(0, 2, shape).astype(kind)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = ReferenceEvaluator(content).run(None, feeds)
    except Exception:  # noqa: BLE001 - whatever NumPy makes of sizes that do not fit
        return None
    return [np.shape(result) for result in results]


def _number(size: Any, values: Mapping[str, int]) -> int:
    symbols = dim(size).symbols
    return dim(size).evaluate({symbol: values[symbol.name] for symbol in symbols})


def holds(flow: Flow, values: Mapping[str, int]) -> bool | None:
    """Whether these sizes meet all needs; None where that depends on sizes without a name."""
    answers = []
    for need in flow.conditions:
        if all(symbol.name in values for symbol in need.condition.symbols):
            answers.append(need.condition(values))
        else:
            answers.append(None)
    if False in answers:
        return False
    return None if None in answers else True


def check(
    content: onnx.ModelProto,
    flow: Flow,
    *,
    sizes: Sequence[int] = (0, 1, 2, 3, 4, 6, 8),
    tries: int = 24,
    strict: bool = True,
    refusals: bool = False,
    seed: int = 0,
) -> int:
    """Puts sizes in and compares: shapes where all needs hold, a refusal where one does not.

    Args:
        content, found: the model and its flow.
        sizes: what to put in for each symbol, in `tries` combinations.
        tries: see there.
        strict: where a need does not hold, the evaluator has to refuse.
        refusals: it may refuse where all needs hold: NumPy's -1 has no answer beside a 0.
        seed: of the choice.

    Returns how often shapes were compared.
    """
    names = [symbol.name for symbol in flow.symbols]
    every = list(itertools.islice(itertools.product(sizes, repeat=len(names)), 4000))
    random.Random(seed).shuffle(every)
    rows = [dict(zip(names, numbers, strict=True)) for numbers in every]
    judged = [(values, holds(flow, values)) for values in rows]
    fitting = [row for row in judged if row[1] is not False][: tries // 2]
    compared = 0
    for values, fits in [*fitting, *(row for row in judged if row not in fitting)][:tries]:
        given = evaluate(content, flow, values, seed)
        if fits is False or flow.failures:
            assert not strict or given is None, f"{values}: computed {given}, needs {needs(flow)}"
            continue
        if given is None:
            assert fits is None or refusals, f"{values}: refused, though {needs(flow)} hold"
            continue
        for entry, actual in zip(content.graph.output, given, strict=True):
            value = next(v for v in flow.graph.outputs if v.name == entry.name)
            compared += _compare(flow.shape_of(value), actual, values, entry.name)
    return compared


def _compare(shape: Any, actual: Any, values: Mapping[str, int], name: str) -> int:
    if shape is None:
        return 0
    assert len(shape) == len(actual), f"{name}: {shape}, computed {actual} at {values}"
    for size, number in zip(shape, actual, strict=True):
        symbols = dim(size).symbols
        if all(symbol.name in values for symbol in symbols):
            value = _number(size, values)
            assert value == number, f"{name}: {shape} at {values} is not {actual}"
        elif len(symbols) == 1 and dim(size).const == 0:
            low, high = dim(size).interval
            assert (low or 0) <= number <= (number if high is None else high), (name, actual)
    return 1
