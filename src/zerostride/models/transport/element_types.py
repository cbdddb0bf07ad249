"""Element types that an engine's compound ops refuse or get wrong, as measured.

The engine table has no row for a compound op (a product, a clamp), so its element types are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ...engines.model import Divergence, always
from ...engines.rows_litert import beyond_eight
from ...errors import Reason

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
        ("mnn", "PRelu"): _unfit("slopes of whole numbers", Reason.DTYPE, _MNN, f"int8 {_WHOLE}"),
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
