"""Broadcasts inside compound ops: every row of `compound_engines`, run.

For each op a range of shapes becomes a node; what the audit says about it on an engine is held
against what the engine does with small numbers:

- a plan: the engine gives the numbers that NumPy gives over the plan's views;
- a refusal: the engine refuses (a crash may also pass now and then);
- a silent refusal: the engine does not give the model's meaning.

Run with ``pytest tests/conformance/test_compounds.py -s`` to see the counts. Paddle needs an
environment of its own: ZEROSTRIDE_PYTHON_PADDLE names its interpreter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from child import Child

from zerostride.core.plan import Plan
from zerostride.engines import find_engine
from zerostride.errors import BroadcastError, Reason
from zerostride.models.ir.graph import Node, Value
from zerostride.models.ir.site import Site
from zerostride.models.onnx_ops.sites import find_site
from zerostride.models.transport.compound_engines import CARRIERS
from zerostride.models.transport.ways import transport

pytestmark = pytest.mark.conformance

EPSILON = 1e-5
ENGINES = ("numpy", "torch", "tensorflow", "jax", "onnxruntime", "openvino", "paddle", "litert")
#: Engines that may die, or read what is not theirs, on what they do not refuse.
UNCHECKED = ("ncnn", "mnn")


@dataclass(frozen=True)
class Case:
    """A node with operands: `shapes` are the inputs', `weights` whether those but one are fixed."""

    op: str
    shapes: tuple[tuple[int, ...], ...]
    weights: bool = True
    opset: int = 23
    attributes: Mapping[str, Any] | None = None

    def node(self) -> Node:
        constant = [k > 0 and self.weights for k in range(len(self.shapes))]
        if self.op == "Gemm":
            constant[1] = True  # ncnn's and MNN's products take their matrix as a weight
        inputs = tuple(Value(f"x{k}", shape, constant[k]) for k, shape in enumerate(self.shapes))
        return Node("node", self.op, "", self.opset, inputs, (Value("y", None),), self.attrs)

    @property
    def attrs(self) -> dict[str, Any]:
        return dict(self.attributes or {})

    def arrays(self) -> list[Any]:
        rng = np.random.default_rng(len(self.op) + sum(map(sum, self.shapes)))
        arrays = [rng.uniform(0.5, 2.0, shape).astype(np.float32) for shape in self.shapes]
        if self.op == "PRelu":
            arrays[0] = -arrays[0]
        if self.op == "Clip":
            arrays[1:] = [np.full(self.shapes[1], 0.9, np.float32), arrays[2] + 0.7]
        if self.op == "QuantizeLinear":
            arrays = [arrays[0] * 20, arrays[1], np.zeros(self.shapes[2], np.int8)]
        if self.op == "DequantizeLinear":
            whole = (arrays[0] * 20).astype(np.int8)
            arrays = [whole, arrays[1], np.zeros(self.shapes[2], np.int8)]
        return [np.asarray(array) for array in arrays]

    def question(self) -> dict[str, Any]:
        constant = [value.constant for value in self.node().inputs if value is not None]
        return {
            "op": self.op,
            "opset": self.opset,
            "attributes": self.attrs,
            "arrays": self.arrays(),
            "constant": constant,
        }


# The shapes.


def gemms() -> Iterator[Case]:
    for m, n in ((2, 3), (3, 3), (1, 3), (3, 1), (1, 1)):
        shapes = {(), (1,), (n,), (1, n), (m, 1), (m, n), (m,), (1, 1), (1, 1, n)}
        for shape, weights in itertools.product(sorted(shapes), (True, False)):
            yield Case("Gemm", ((m, 4), (4, n), shape), weights)


def matmuls() -> Iterator[Case]:
    batches = [(), (1,), (2,), (3,), (2, 1), (1, 3), (1, 2), (2, 3), (3, 2), (2, 1, 3), (2, 3, 1)]
    batches += [(1, 2, 1), (2, 1, 2, 1), (1, 2, 1, 2), (1, 4, 1, 1)]
    for a, b in itertools.product(batches, repeat=2):
        if a or b:
            yield Case("MatMul", ((*a, 2, 4), (*b, 4, 3)), weights=False)
    for batch in ((2,), (2, 3)):
        yield Case("MatMul", ((4,), (*batch, 4, 3)), weights=False)
        yield Case("MatMul", ((*batch, 2, 4), (4,)), weights=False)
    yield Case("MatMul", ((1, 2, 4), (0, 4, 3)), weights=False)


def clips() -> Iterator[Case]:
    for data, bound in itertools.product(((), (3,), (2, 3)), ((), (1,), (1, 1), (3,), (2, 1))):
        for weights in (True, False):
            yield Case("Clip", (data, bound, bound), weights)


def normalisations() -> Iterator[Case]:
    epsilon = {"epsilon": EPSILON}
    for rank, channels in itertools.product((2, 3, 4, 5, 6), (4, 1, 2)):
        data = (2, 4, 3, 3, 2, 2)[:rank]
        for vector in ((channels,), (channels, 1)):
            yield Case("BatchNormalization", (data, *[vector] * 4), attributes=epsilon)
            if rank > 2:
                yield Case("InstanceNormalization", (data, *[vector] * 2), attributes=epsilon)
            groups = {"num_groups": 2, **epsilon}
            yield Case("GroupNormalization", (data, *[vector] * 2), attributes=groups)
    # The data's last axis is as long as its channels: who goes by that is found out.
    yield Case("BatchNormalization", ((2, 3, 3, 3), *[(3,)] * 4), attributes=epsilon)


def samples() -> Iterator[Case]:
    """What ncnn sees, which has no batch axis."""
    epsilon = {"epsilon": EPSILON}
    for data in ((4,), (4, 3), (4, 3, 3), (4, 3, 3, 2)):
        yield Case("BatchNormalization", (data, *[(4,)] * 4), attributes=epsilon)
        yield Case("InstanceNormalization", (data, *[(4,)] * 2), attributes=epsilon)
        groups = {"num_groups": 2, **epsilon}
        yield Case("GroupNormalization", (data, *[(4,)] * 2), attributes=groups)


def trailing() -> Iterator[Case]:
    for data in ((4,), (3, 4), (2, 3, 4), (2, 5, 3, 4)):
        for kept in range(1, len(data) + 1):
            normal = data[-kept:]
            shapes = {normal, (4,), (1,), (1,) * kept, (1, *normal[1:])}
            for shape in sorted(shapes):
                attributes = {"axis": -kept, "epsilon": EPSILON}
                yield Case("LayerNormalization", (data, shape, shape), attributes=attributes)
                yield Case("RMSNormalization", (data, shape), attributes=attributes)


def quantisations() -> Iterator[Case]:
    for op, data in itertools.product(
        ("QuantizeLinear", "DequantizeLinear"), ((2, 3), (3, 3), (2, 3, 3), (3, 3, 3))
    ):
        for axis in range(-len(data), len(data)):
            for scale in ((), (1,), (3,), (2,)):
                yield Case(op, (data, scale, scale), opset=21, attributes={"axis": axis})


def prelus() -> Iterator[Case]:
    for opset, data in itertools.product((16, 6), ((3,), (2, 3), (3, 3), (2, 3, 4), (1, 3, 3, 3))):
        for slope in ((), (1,), (3,), (4,), (3, 1), (1, 3), (3, 1, 1), (1, 3, 1), (1, 1, 3)):
            yield Case("PRelu", (data, slope), opset=opset)


CASES = [
    *gemms(),
    *matmuls(),
    *clips(),
    *normalisations(),
    *trailing(),
    *quantisations(),
    *prelus(),
]


# What the plan says that comes out.


def _normalise(x: Any, axes: tuple[int, ...], *, centre: bool = True) -> Any:
    centred = x - x.mean(axes, keepdims=True) if centre else x
    return centred / np.sqrt((centred * centred).mean(axes, keepdims=True) + EPSILON)


def _group(x: Any, groups: int, batch: bool) -> Any:
    shaped = x if batch else x[None]
    flat = shaped.reshape(shaped.shape[0], groups, -1)
    return _normalise(flat, (2,)).reshape(x.shape)


def _gemm(case: Case, plan: Plan, x: list[Any]) -> Any:
    product, addend = plan.views(x[0] @ x[1], x[2])
    return product + addend


def _matmul(case: Case, plan: Plan, x: list[Any]) -> Any:
    a, b = x
    a2 = a[None] if a.ndim == 1 else a
    b2 = b[:, None] if b.ndim == 1 else b
    a3 = np.broadcast_to(
        a2.reshape(*plan.aligned[0], *a2.shape[-2:]), (*plan.shape, *a2.shape[-2:])
    )
    b3 = np.broadcast_to(
        b2.reshape(*plan.aligned[1], *b2.shape[-2:]), (*plan.shape, *b2.shape[-2:])
    )
    result = a3 @ b3
    if a.ndim == 1:
        result = result[..., 0, :]
    return result[..., 0] if b.ndim == 1 else result


def _vectors(case: Case, plan: Plan, x: list[Any], normal: Any) -> Any:
    _, scale, *bias = plan.views(normal, *x[1:3])
    return normal * scale + (bias[0] if bias else 0)


def _batch_norm(case: Case, plan: Plan, x: list[Any]) -> Any:
    data, scale, bias, mean, variance = plan.views(*x)
    return (data - mean) / np.sqrt(variance + EPSILON) * scale + bias


def _inner(plan: Plan) -> tuple[int, ...]:
    """The axes within a channel: those after the one where the vectors land."""
    channel = next(axis for axis in plan.axes_mapping[1] if axis is not None)
    return tuple(range(channel + 1, plan.rank))


def _instance(case: Case, plan: Plan, x: list[Any]) -> Any:
    return _vectors(case, plan, x, _normalise(x[0], _inner(plan)))


def _group_norm(case: Case, plan: Plan, x: list[Any]) -> Any:
    batch = plan.axes_mapping[1] == (1,)
    return _vectors(case, plan, x, _group(x[0], case.attrs["num_groups"], batch))


def _kept(case: Case) -> tuple[int, ...]:
    return tuple(range(case.attrs["axis"], 0))


def _layer(case: Case, plan: Plan, x: list[Any]) -> Any:
    return _vectors(case, plan, x, _normalise(x[0], _kept(case)))


def _rms(case: Case, plan: Plan, x: list[Any]) -> Any:
    return _vectors(case, plan, x, _normalise(x[0], _kept(case), centre=False))


def _quantise(case: Case, plan: Plan, x: list[Any]) -> Any:
    data, scale, _ = plan.views(*x)
    return np.clip(np.rint(data / scale), -128, 127)


def _dequantise(case: Case, plan: Plan, x: list[Any]) -> Any:
    data, scale, _ = plan.views(*x)
    return data * scale


def _clip(case: Case, plan: Plan, x: list[Any]) -> Any:
    return np.clip(*plan.views(*x))


def _prelu(case: Case, plan: Plan, x: list[Any]) -> Any:
    data, slope = plan.views(*x)
    return np.where(data < 0, data * slope, data)


FORMULAS: Mapping[str, Callable[[Case, Plan, list[Any]], Any]] = {
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Clip": _clip,
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": _instance,
    "GroupNormalization": _group_norm,
    "LayerNormalization": _layer,
    "RMSNormalization": _rms,
    "QuantizeLinear": _quantise,
    "DequantizeLinear": _dequantise,
    "PRelu": _prelu,
}


def site_of(case: Case) -> Site:
    site = find_site(case.node())
    assert site is not None
    return site


def shapes_of(site: Site) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(size for size in part.shape or () if isinstance(size, int)) for part in site.operands
    )


def predicted(case: Case, engine: str) -> Plan | BroadcastError:
    """What the audit says that the engine makes of the node."""
    site = site_of(case)
    try:
        return transport(site, find_engine(engine)).plan(shapes_of(site))
    except BroadcastError as error:
        return error


def meant(case: Case) -> Plan | None:
    """The model's own meaning, where it has one."""
    site = site_of(case)
    try:
        return site.plan(shapes_of(site))
    except BroadcastError:
        return None


def values(case: Case, plan: Plan) -> Any:
    return FORMULAS[case.op](case, plan, case.arrays())


def agree(got: Any, wanted: Any, case: Case) -> bool:
    if got.shape != wanted.shape:
        return False
    if case.op == "QuantizeLinear":  # a half may be rounded either way after a division
        return bool(np.all(np.abs(got.astype(int) - wanted) <= 1))
    return bool(np.allclose(got, wanted, rtol=2e-3, atol=2e-4))


def wrong(case: Case, engine: str, answer: tuple[str, Any]) -> str | None:
    """What of the engine's answer the audit did not say, or None."""
    prediction = predicted(case, engine)
    word, what = answer
    if word == "absent":
        return f"the worker cannot run {case.op}"
    if isinstance(prediction, Plan):
        if word != "result":
            return f"planned to {prediction.shape}, but {word}: {what}"
        if not agree(what, values(case, prediction), case):
            return f"planned to {prediction.shape}; other numbers of shape {what.shape}"
        return None
    if prediction.reason == Reason.CRASH:
        return None  # now and then: any answer will do
    if prediction.silent:
        source = meant(case)
        if word == "result" and source is not None and agree(what, values(case, source), case):
            return f"said to go wrong ({prediction.detail}), but right"
        return None
    return f"refused here ({prediction.detail}), but a result there" if word == "result" else None


def asked(engine: str) -> list[Case]:
    """The cases of ops that the engine has a row for, and that the model's document allows.

    What ONNX itself refuses never comes to an engine.
    """
    cases = [*CASES, *samples()] if engine == "ncnn" else CASES
    ops = {op for op, rows in CARRIERS.items() if any(row.run for row in rows.get(engine, ()))}
    if engine in ("torch", "paddle", "openvino", "onnxruntime", "ncnn", "mnn"):
        ops.add("PRelu")
    if engine == "mnn":  # an empty result cannot be read there
        cases = [case for case in cases if (0, 4, 3) not in case.shapes]
    return [c for c in cases if c.op in ops and (meant(c) is not None or c in samples_)]


samples_ = list(samples())


@pytest.mark.slow
@pytest.mark.parametrize("engine", [*ENGINES, *UNCHECKED])
def test_every_measured_row_matches_its_engine(engine: str) -> None:
    faults = []
    cases = asked(engine)
    counts = {"plan": 0, "refused": 0, "silent": 0}
    with Child(engine) as child:
        if child.missing:
            pytest.skip(f"{engine} is not installed for its interpreter: {child.missing}")
        for case in cases:
            prediction = predicted(case, engine)
            kind = (
                "plan"
                if isinstance(prediction, Plan)
                else "silent"
                if prediction.silent
                else "refused"
            )
            if (
                kind == "refused"
                and isinstance(prediction, BroadcastError)
                and prediction.reason == "no_op"
            ):
                continue  # an op that is not there cannot be run
            counts[kind] += 1
            answer = child.ask(case.question())
            if answer[0] == "crashed":  # a case before may have ruined that process's memory
                answer = child.ask(case.question())
            fault = wrong(case, engine, answer)
            if fault is not None:
                faults.append(f"{case}: {fault}")
    print(f"\n{engine}: {len(cases)} cases, {counts}, {len(faults)} disagreements")
    assert not faults, "\n".join(faults[:20])
    assert counts["plan"] > 10


def test_comparison_finds_a_wrong_result() -> None:
    case = Case("Gemm", ((3, 4), (4, 3), (3, 1)))
    right = values(case, predicted(case, "torch"))  # type: ignore[arg-type]
    assert wrong(case, "torch", ("result", right)) is None
    assert wrong(case, "torch", ("result", right + 1)) is not None
    assert wrong(case, "torch", ("refused", "")) is not None
    # MNN takes that column for a row: the right numbers would contradict the table.
    assert wrong(case, "mnn", ("result", right)) is not None
