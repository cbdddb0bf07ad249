"""Element types that an engine's compound ops refuse or get wrong, as measured.

The engine table has no row for a compound op (a product, a clamp), so its element types are here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ...engines.model import Divergence, Engine, always
from ...engines.rows_litert import beyond_eight
from ...errors import Reason
from ..ir.site import Site

_OWN = "tests/conformance/test_compounds.py, run: "
_ORT, _MNN = "ONNX Runtime's kernel", "MNN's ONNX converter"


def _unfit(text: str, effect: Reason, by: str, dtypes: str) -> Divergence:
    names = frozenset(dtypes.split())
    return Divergence(text, effect, _OWN + by, strikes=always, dtypes=names)


_WHOLE = "int32 uint32 int64 uint64"
_NO_KERNEL = "the CPU has no kernel for that element type"
_ZEROS = "a product of matrices of integers is 0 throughout"
_UNQUANTISED = "a product of tensors without quantisation gives wrong numbers"
#: Element types that fail, of ops without a row in the engine table.
UNFIT: Mapping[tuple[str, str], Divergence] = MappingProxyType(
    {
        **{
            ("mnn", op): _unfit(_ZEROS, Reason.WRONG_RESULT, _MNN, f"int8 uint8 {_WHOLE}")
            for op in ("MatMul", "Gemm")
        },
        **{
            ("litert", op): _unfit(_UNQUANTISED, Reason.WRONG_RESULT, "BATCH_MATMUL", "int8 int16")
            for op in ("MatMul", "Gemm")
        },
        **{
            ("onnxruntime", op): _unfit(_NO_KERNEL, Reason.DTYPE, _ORT, dtypes)
            for op, dtypes in (
                ("Mean", "float64"),
                ("MatMul", "bfloat16"),
                ("Gemm", f"bfloat16 {_WHOLE}"),
                ("Clip", "bfloat16 int16 uint16"),
            )
        },
        **{
            ("tensorflow", op): _unfit(_NO_KERNEL, Reason.DTYPE, "tf.linalg.matmul", dtypes)
            for op, dtypes in (
                ("MatMul", "int8 uint8 uint16 uint32 uint64"),
                ("Gemm", "int8 uint8 int16 uint16 uint32 uint64"),
            )
        },
        **{
            ("torch", op): _unfit(_NO_KERNEL, Reason.DTYPE, op_source, dtypes)
            for op, op_source, dtypes in (
                ("MatMul", "torch.matmul", "uint32 uint64"),
                ("Gemm", "torch.addmm", "uint32 uint64"),
                ("Clip", "torch.clamp", "uint16 uint32 uint64"),
            )
        },
    }
)


def _narrow(text: str, by: str, dtypes: str, narrows: str, **more: Any) -> Divergence:
    names = frozenset(dtypes.split())
    source = f"python -m campaigns front-doors, run: {by}"
    return Divergence(text, Reason.WRONG_RESULT, source, dtypes=names, narrows=narrows, **more)


_FRONTEND = "OpenVINO 2026.4.1's ONNX frontend"
_IN_FLOAT = "computed in float32"
#: Element types that ops without a row in the engine table, or nodes of ONNX, compute in a narrower
#: one: by engine, and op in ONNX's words; a shift with its direction, a quantisation with the
#: type of what is quantised.
NARROWED: Mapping[tuple[str, str], tuple[Divergence, ...]] = MappingProxyType(
    {
        **{
            ("openvino", op): (_narrow(_IN_FLOAT, _FRONTEND, _WHOLE, "float32"),)
            for op in ("MatMul", "Gemm")
        },
        ("mnn", "Clip"): (
            _narrow("clipped in float32", "mnnconvert and MNN 3.6.1", _WHOLE, "float32"),
        ),
        **{
            ("ncnn", op): (_narrow("computed in float32", "pnnx and ncnn", _WHOLE, "float32"),)
            for op in ("MatMul", "Gemm", "Clip", "Expand")
        },
        ("openvino", "Clip"): (
            _narrow("64 bits become int32", _FRONTEND, "uint32 int64 uint64", "int32"),
        ),
        ("openvino", "Clip by constants"): (
            _narrow("clamped in float32", _FRONTEND, _WHOLE, "float32"),
        ),
        **{
            ("openvino", f"QuantizeLinear {kind}"): (
                _narrow(
                    "a whole scale times the range of the result is an int32",
                    *(_FRONTEND, "int32", "int32"),
                    most=(2**31 - 1) // (2**bits - 1),
                    constants=True,
                ),
            )
            for bits in (8, 16)
            for kind in (f"int{bits}", f"uint{bits}")
        },
        ("openvino", "Expand"): (
            _narrow("64 bits become int32", _FRONTEND, "int64 uint64", "int32"),
        ),
        ("mnn", "QuantizeLinear uint8"): (
            _narrow(
                "results of uint8 are handed out as int8",
                *("mnnconvert and MNN 3.6.1", "float16 float32", "int8"),
            ),
        ),
        **{
            ("openvino", f"DequantizeLinear {stored}"): (
                _narrow("numbers become float16", _FRONTEND, "float16", "float16"),
            )
            for stored in ("int16", "uint16", "int32")
        },
        ("openvino", "BitShift LEFT"): (
            _narrow("multiplies by a power of 2, up to 255", _FRONTEND, "uint8", "uint8"),
            _narrow(
                "multiplies by a power of 2, which a constant has up to 2^30",
                *(_FRONTEND, "uint32", "int32"),
                most=30,
                constants=True,
            ),
            _narrow("multiplies by a power of 2", _FRONTEND, "uint64", "int32"),
        ),
        ("openvino", "BitShift RIGHT"): (
            _narrow("divides by a power of 2", _FRONTEND, "uint32 uint64", "float32"),
        ),
    }
)


#: Inputs of ONNX ops that have types of their own: a condition, an exponent, a shape.
_FREE: Mapping[str, frozenset[int]] = MappingProxyType(
    {
        "Where": frozenset({0}),
        "Pow": frozenset({1}),
        "Expand": frozenset({1}),
        "BatchNormalization": frozenset({1, 2, 3, 4}),
    }
)
#: ONNX ops whose operands have one element type, but for those of `_FREE`.
_ONE_TYPE = frozenset(
    [
        *("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Sum", "Mean"),
        *("And", "Or", "Xor", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
        *("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Where", "PRelu", "Clip"),
        *("Gemm", "MatMul", "BatchNormalization", "InstanceNormalization"),
    ]
)


def mixed_types(site: Site) -> str | None:
    """The element types of an ONNX node that its document does not allow together, in words.

    Every engine and ONNX's own checker refuse such a model.
    """
    node = site.node
    if node.domain != "" or node.version < 1 or node.op not in _ONE_TYPE:
        return None
    free = _FREE.get(node.op, frozenset())
    if node.op == "Pow" and node.version < 12:
        free = frozenset()
    if node.op == "BatchNormalization" and node.version < 14:
        free = frozenset()
    kinds = [
        value.computed_type
        for k, value in enumerate(node.inputs)
        if value is not None and k not in free and value.computed_type is not None
    ]
    different = sorted(set(kinds))
    if len(different) < 2:
        return None
    return f"operands of {' and '.join(different)}; all operands of {node.op} must have one type"


def narrowed_types(engine: Engine) -> frozenset[str]:
    """The element types for which a verdict may depend on the numbers."""
    compounds = (row for (name, _), rows in NARROWED.items() if name == engine.name for row in rows)
    rows = (*(row for row in engine.divergences if row.narrows), *compounds)
    return frozenset(dtype for row in rows for dtype in row.dtypes)


def narrowing(site: Site, engine: str, element: str | None) -> Iterator[Divergence]:
    """Yield the rows of `NARROWED` for a site's element type."""
    if element is None:
        return
    node = site.node
    key = site.stands_for
    if node.domain == "" and node.op == "BitShift":
        key = f"{key} {node.attributes.get('direction')}"
    bounds = site.operands[1:]
    if node.domain == "" and node.op == "Clip" and all(part.constant for part in bounds):
        yield from _rows(engine, f"{key} by constants", element)
    for op, values in (("QuantizeLinear", node.outputs), ("DequantizeLinear", node.inputs)):
        if node.domain == "" and node.op == op and values[0] is not None:
            key = f"{key} {values[0].dtype}"
    yield from _rows(engine, key, element)


def _rows(engine: str, key: str, element: str) -> Iterator[Divergence]:
    return (row for row in NARROWED.get((engine, key), ()) if element in row.dtypes)


_BY_QUANTISED = "tests/conformance/test_tflite.py, run: LiteRT 2.3.0"


def _quantised(text: str, effect: Reason, dtypes: str) -> Divergence:
    names = frozenset(dtypes.split())
    return Divergence(text, effect, _BY_QUANTISED, strikes=always, dtypes=names)


_NONE = "the op takes no quantised tensor of that type"
_RAW = "the op computes with the stored numbers, and ignores scales and zero points"
_LOOPS = "quantised int16 has no five loops: more than 8 axes end the process"
#: Ops that refuse quantised tensors of these stored types, or get them wrong, by canonical name.
QUANTISED: Mapping[tuple[str, str], tuple[Divergence, ...]] = MappingProxyType(
    {
        **dict.fromkeys(
            (("litert", "add"), ("litert", "multiply")),
            (replace(_quantised(_LOOPS, Reason.CRASH, "int16"), strikes=beyond_eight),),
        ),
        ("litert", "pow"): (_quantised(_NONE, Reason.DTYPE, "int8 uint8 int16"),),
        ("litert", "squared_difference"): (_quantised(_NONE, Reason.DTYPE, "uint8 int16"),),
        **dict.fromkeys(
            (("litert", "floor_divide"), ("litert", "remainder")),
            (
                _quantised(_NONE, Reason.DTYPE, "uint8"),
                _quantised(_RAW, Reason.WRONG_RESULT, "int8 int16"),
            ),
        ),
    }
)
#: Kernels that only some op sets have (True) or lack (False): op sets and element types. The row
#: of the engine describes the newest op set.
KERNELS: Mapping[tuple[str, str], tuple[range, frozenset[str], bool]] = MappingProxyType(
    {
        ("onnxruntime", "PRelu"): (
            range(16, 19),
            frozenset(["float64", "int32", "uint32", "int64"]),
            True,
        ),
        ("onnxruntime", "Max"): (range(1, 8), frozenset({"float64"}), False),
        ("onnxruntime", "Min"): (range(1, 8), frozenset({"float64"}), False),
        ("onnxruntime", "Clip"): (range(11, 12), frozenset({"float64"}), False),
    }
)
_BITS = frozenset(
    ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
_ANY = _BITS | {"float16", "float32", "float64"}
#: Builtin ops of files whose kernel is not that of the op's row: the element types that it takes;
#: none: the interpreter does not register the op. `campaigns litert-graphs` runs them; read:
#: LiteRT's tflite/core/kernels/register.cc, stablehlo_elementwise.h, add_n.cc.
OWN_KERNELS: Mapping[tuple[str, str], frozenset[str]] = MappingProxyType(
    {
        ("litert", "ADD_N"): frozenset({"float32", "int32"}),
        ("litert", "STABLEHLO_AND"): _BITS,
        **{("litert", f"STABLEHLO_{op}"): _ANY for op in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM")},
        **{
            ("litert", f"STABLEHLO_{op}"): frozenset()
            for op in ("SUBTRACT", "DIVIDE", "POWER", "OR")
        },
    }
)
