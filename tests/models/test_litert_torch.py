"""Verdicts on modules as litert-torch writes them (run: campaigns front-doors --engine litert)."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
import small
from onnx import TensorProto, helper

from zerostride.engines import ENGINES
from zerostride.errors import ZerostrideError
from zerostride.models.audit.run import audit_graph
from zerostride.models.findings import Finding
from zerostride.models.options import ModelOptions

F, H, WHOLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32
TYPES = {name: getattr(TensorProto, name.upper()) for name in ("int8", "uint8", "int16", "bool")}
TYPES |= {"float16": H, "float32": F, "float64": TensorProto.DOUBLE, "int32": WHOLE}
TYPES |= {"int64": TensorProto.INT64}


def _findings(
    nodes: Any, inputs: Any, weights: Any = None, via: str | None = None
) -> list[Finding]:
    """The findings of nodes of the ONNX file that PyTorch exported; shapes and types by name."""
    values = [helper.make_tensor_value_info(k, kind, shape) for k, (kind, shape) in inputs.items()]
    fixed = [
        helper.make_tensor(k, kind, shape, [*number, 3][:1] * math.prod(shape))
        for k, (kind, shape, *number) in (weights or {}).items()
    ]
    result = [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph(nodes, "g", values, result, fixed)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    options = ModelOptions(via, form="module")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "m.onnx")
        file.write_bytes(model.SerializeToString())
        return list(audit_graph(options.read(file), ENGINES["litert"], options).findings)


def _of(op: str, *operands: Any, **attributes: Any) -> Finding:
    names = [f"x{k}" for k in range(len(operands))]
    node = small.node(op, " ".join(names), **attributes)
    return _findings([node], dict(zip(names, operands, strict=True)))[0]


@pytest.mark.parametrize(
    ("op", "types"),
    [
        ("Add", "float16 float32 float64 int16 int32 int64"),
        ("Sub", "float16 float32 float64 int32 int64"),
        ("Div", "float16 float32 float64 int8 uint8 int16 int32 int64"),
        ("Max", "float16 float32 int32 int64"),
        ("Min", "float32 int32 int64"),
        ("Equal", "float32 int16 int32 int64 bool"),
        ("Less", "float32 int16 int32 int64"),
        ("LessOrEqual", "float32 int32 int64"),
        ("BitwiseXor", "int8 uint8 int16 int32"),
        ("BitwiseAnd", ""),
        ("Pow", "float32"),
    ],
)
def test_an_op_has_the_element_types_that_are_converted(op: str, types: str) -> None:
    numbers = set(TYPES) - ({"bool"} if op != "Equal" else set())
    if op.startswith("Bitwise"):
        numbers = {name for name in numbers if "int" in name}
    if op == "Pow":
        numbers = {name for name in numbers if name not in ("int8", "uint8", "int16")}
    for name in sorted(numbers):
        finding = _of(op, (TYPES[name], (2, 3)), (TYPES[name], (3,)))
        divided = op == "Div" and name == "int32"
        narrow = "same_here" if name == "int64" or divided else "same"
        expected = narrow if name in types.split() else "refused"
        assert finding.verdict == expected, (name, finding.message)
        assert expected != "refused" or f"of {name}" in finding.message


@pytest.mark.parametrize(
    ("op", "axes"), [("Add", 6), ("Mul", 6), ("Max", 5), ("Pow", 4), ("Less", 8)]
)
def test_operands_that_stretch_have_fewer_axes_than_on_the_engine(op: str, axes: int) -> None:
    def verdict(rank: int, other: int) -> str:
        return str(_of(op, (F, (2,) * rank), (F, (other,) * rank)).verdict)

    assert (verdict(axes, 1), verdict(axes + 1, 1), verdict(axes + 1, 2)) == (
        "same",
        "refused",
        "same",
    )


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [((3,), (4, 3, 2), "same"), ((4, 2, 3), (3,), "same"), ((4, 2, 3), (1, 3, 2), "refused")],
)
def test_integers_are_multiplied_by_a_vector_alone(first: Any, second: Any, verdict: str) -> None:
    inputs = {"a": (WHOLE, first), "b": (WHOLE, second)}
    (finding,) = _findings([small.node("MatMul", "a b")], inputs)
    assert finding.verdict == verdict, finding.message


def test_compound_ops_mean_what_they_mean_in_pytorch() -> None:
    """LiteRT's own rule of such an op is that of a file's node; the converter writes it out."""
    weights = {"s": (F, (3,)), "b": (F, (3,))}
    node = [small.node("InstanceNormalization", "x s b")]
    (written,) = _findings(node, {"x": (F, (2, 3, 4, 3))}, weights)
    (by_hand,) = _findings(node, {"x": (F, (2, 3, 4, 3))}, weights, "none")
    assert (written.verdict, by_hand.verdict) == ("same", "different")
    halves = {name: (H, shape) for name, (_, shape) in weights.items()}
    for samples, verdict in ((1, "same"), (2, "refused")):
        assert _findings(node, {"x": (H, (samples, 3, 4))}, halves)[0].verdict == verdict


def test_operands_that_the_exporter_widens_have_their_own_type() -> None:
    def compared(output: str, to: int) -> str:
        casts = [small.node("Cast", f"x{k}", f"{output}_{k}", to=to) for k in "ab"]
        equal = small.node("Equal", f"{output}_a {output}_b")
        return str(_findings([*casts, equal], {"xa": (H, (2,)), "xb": (H, (1,))})[-1].verdict)

    assert compared("convert_element_type_default", F) == "refused"
    assert compared("_to_copy", F) == "same"  # `x.float()` of the user
    # A promotion of one operand is in the module, too.
    nodes = [small.node("Cast", "a", "val_0", to=F), small.node("Mul", "val_0 b")]
    assert _findings(nodes, {"a": (TYPES["int8"], (2,)), "b": (F, (1,))})[-1].verdict == "same"


def test_it_reads_modules_alone() -> None:
    model = small.model([small.node("Add", "x c")], {"x": (2, 3)}, {"c": (3,)})
    assert small.audit(model, "litert").via is None
    with pytest.raises(ZerostrideError, match="reads modules of PyTorch, not ONNX"):
        small.audit(model, "litert", "litert-torch")


@pytest.mark.parametrize(
    ("op", "kind", "number", "verdict"),
    [("Mul", "int8", 1, "same"), ("Mul", "int8", 3, "refused"), ("BitwiseOr", "int32", 0, "same")],
)
def test_a_node_that_changes_nothing_is_left_out(
    op: str, kind: str, number: int, verdict: str
) -> None:
    weights = {"c": (TYPES[kind], (1,), number)}
    (finding,) = _findings([small.node(op, "x c")], {"x": (TYPES[kind], (2,))}, weights)
    assert finding.verdict == verdict


@pytest.mark.parametrize(
    ("base", "exponent", "verdict"),
    [
        ("int64", "float32", "same_here"),
        ("float16", "float32", "same"),
        ("float32", "int32", "same"),
        ("float32", "float64", "refused"),
        ("int32", "int64", "refused"),
    ],
)
def test_a_power_has_the_wider_type(base: str, exponent: str, verdict: str) -> None:
    finding = _of("Pow", (TYPES[base], (2, 3)), (TYPES[exponent], (3,)))
    assert finding.verdict == verdict, finding.message


#: Shapes, and whether litert-torch converts the op of float32 and of float16 (0.10.0, run).
STRETCHED = [
    ("MatMul", [(5, 3, 2), (5, 2, 4)], "same", "same"),
    ("MatMul", [(5, 3, 2), (1, 2, 4)], "same", "same"),
    ("MatMul", [(2, 5, 3, 2), (2, 4)], "same", "same"),
    ("MatMul", [(5, 3, 2), (2, 5, 2, 4)], "same", "refused"),
    ("MatMul", [(3, 2), (2, 5, 2, 4)], "same", "refused"),
    ("MatMul", [(2,), (2, 5, 2, 4)], "same", "same"),
    ("MatMul", [(2, 3, 2, 2, 3, 2), (1, 3, 2, 2, 2, 3)], "same", "refused"),
    ("MatMul", [(2, 3, 2, 2, 2, 2), (2, 2)], "refused", "refused"),
    ("MatMul", [(1, 5, 1, 2), (2, 4)], "refused", "refused"),
    ("MatMul", [(2, 5, 1, 2), (2, 4)], "same", "same"),
    ("MatMul", [(1, 2, 3, 1, 2), (2, 4)], "same", "same"),
    ("MatMul", [(1, 2, 1, 1, 2), (2, 4)], "refused", "refused"),
    ("Max", [(2, 3, 2, 2, 4), (1, 3, 2, 2, 1)], "same", "same"),
    ("Max", [(1, 3, 2, 2, 4), (2, 1, 2, 2, 4)], "same", "refused"),
    ("Max", [(1, 1, 1, 1, 1), (1, 1, 2)], "same", "same"),
    ("Div", [(1, 3, 2, 2, 4), (2, 1, 2, 2, 4)], "same", "same"),
    ("Div", [(2, 1, 2, 1, 2, 1), (1, 3, 1, 2, 1, 4)], "same", "refused"),
    ("Where", [(2, 1), (1, 3), (2, 1)], "same", "same"),
    ("Where", [(2, 1), (2, 1), (1, 3)], "same", "refused"),
    ("Where", [(1, 1, 2, 4), (), (2, 3, 2, 4)], "same", "same"),
    ("Where", [(1, 2), (2,), (1, 2)], "same", "refused"),
    ("Where", [(2, 3, 2, 2, 2, 4), (), ()], "same", "refused"),
]


@pytest.mark.parametrize(("op", "shapes", "single", "half"), STRETCHED)
def test_halves_are_not_stretched_by_an_op_of_its_own(
    op: str, shapes: Any, single: str, half: str
) -> None:
    for kind, expected in ((F, single), (H, half)):
        kinds = [kind] * len(shapes)
        if op == "Where":
            kinds[0] = TYPES["bool"]
        finding = _of(op, *zip(kinds, shapes, strict=True))
        assert finding.verdict == expected, (kind, finding.message)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ((2, 3), (2, 3), "same"),
        ((1, 3), (2, 3), "refused"),
        ((1, 3, 2, 2, 4), (2, 3, 2, 2, 4), "same"),
        ((2, 3, 2, 2, 4), (1, 3, 2, 2, 4), "refused"),
        ((1, 3, 2, 2, 4), (2, 1, 2, 2, 4), "refused"),
    ],
)
def test_remainders_of_int16_have_operands_of_one_shape(
    first: Any, second: Any, verdict: str
) -> None:
    finding = _of("Mod", (TYPES["int16"], first), (TYPES["int16"], second))
    assert finding.verdict == verdict, finding.message
