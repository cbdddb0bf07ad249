"""What each engine's measured release makes of quantisation: a row an engine.

Numbers of cases are those of ``python -m campaigns quantisation``, which repeats the measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ..errors import BroadcastError, Reason
from ..sizes import brief
from .model import (
    Divided,
    Huge,
    NotANumber,
    Placement,
    Quantizer,
    Rounding,
    Shifted,
    Subtracted,
    Ties,
)

#: The opsets of ONNX that have QuantizeLinear.
OLDEST_OPSET, NEWEST_OPSET = 10, 25

BYTES = frozenset({"int8", "uint8"})
SHORT = frozenset({"int16", "uint16"})
NIBBLES = frozenset({"int4", "uint4"})
PAIRS = frozenset({"int2", "uint2"})
FLOAT8 = frozenset({"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"})
_ALL = BYTES | SHORT | NIBBLES | PAIRS | FLOAT8
_WIDE = frozenset({"int32"})

_ONNX = MappingProxyType({Placement.TENSOR: 10, Placement.AXIS: 13, Placement.BLOCK: 21})
_ONNX_EARLY = MappingProxyType({Placement.TENSOR: 10, Placement.AXIS: 10, Placement.BLOCK: 21})

#: ONNX's document, with scales that repeat along several axes, as arrays have them.
STANDARD = Quantizer(
    "onnx",
    "opset 25",
    "ONNX, QuantizeLinear-25 and DequantizeLinear-25; NaN in whole numbers is left open there",
    run=False,
    stores=_ALL,
    reads=_ALL | _WIDE,
    floats=frozenset({"float32", "float16", "bfloat16", "float64"}),
    placements=MappingProxyType({**_ONNX, Placement.AXES: 0}),
    own=OLDEST_OPSET,
    shared=True,
)

_ROWS = (
    Quantizer(
        "onnxruntime",
        "1.32.0",
        "run: ONNX Runtime 1.32.0, CPUExecutionProvider, x86-64",
        stores=_ALL,
        reads=_ALL | _WIDE,
        floats=frozenset({"float32", "float16"}),
        placements=_ONNX_EARLY,
        own=23,
        subtracts=Subtracted.WRAPS,
        vectors=True,
        notes=(
            "it takes a vector of scales in opset 10, along axis 1, though opset 10 has no axis",
            "float16 is divided in float32 before opset 23 and in float16 from then on",
            "int32 minus its zero point wraps around",
            "saturate=0: infinity and numbers beyond the type become NaN",
        ),
    ),
    Quantizer(
        "onnx.reference",
        "1.23.2",
        "run: onnx 1.23.2, ReferenceEvaluator, x86-64",
        rounding=Rounding(huge=Huge.LOWEST),
        stores=_ALL,
        reads=_ALL | _WIDE,
        floats=frozenset({"float32", "float16"}),
        placements=_ONNX_EARLY,
        own=OLDEST_OPSET,
        shared=True,
        subtracts=Subtracted.DOUBLES,
        reads_from=19,
        notes=(
            "DequantizeLinear begins with opset 19",
            "numbers from 2^31 on, infinity and NaN become the least int32: 3e9 quantises to -128, "
            "and with a zero point below 0 to 127",
        ),
    ),
    Quantizer(
        "openvino",
        "2026.4.1",
        "run: OpenVINO 2026.4.1, CPU, float32, ONNX files; microsoft/onnxruntime#25045",
        rounding=Rounding(divided=Divided.RANGE, shifted=Shifted.BEFORE),
        stores=BYTES | SHORT | NIBBLES,
        reads=BYTES | SHORT | NIBBLES | _WIDE,
        placements=_ONNX,
        divides=True,
        subtracts=Subtracted.FUSED,
        notes=(
            "blocks divide their axis and have a zero point; other ones are refused",
            "a tensor that is computed is dequantised as q * scale - (zero point * scale), the "
            "product and the difference rounded once (fma); a constant one as in ONNX",
            "QuantizeLinear becomes FakeQuantize: the zero point is added before rounding, so each "
            "tie is one off with an odd zero point (0.5 / 1, zero point 3: 4; ONNX: 3)",
            "int16 and uint16 of scale 1 and zero point 0 are cut off and wrap around: 2.5 gives "
            "2, -1.5 gives -1, 40000 gives -25536",
        ),
    ),
    Quantizer(
        "torch",
        "2.13.0",
        "run: PyTorch 2.13.0, torch.quantize_per_tensor and quantize_per_channel, x86-64 (AVX2)",
        rounding=Rounding(
            divided=Divided.RECIPROCAL, shifted=Shifted.FUSED, nan=NotANumber.HIGHEST
        ),
        special=MappingProxyType(
            {
                "axis": Rounding(
                    divided=Divided.RECIPROCAL, shifted=Shifted.BEFORE, nan=NotANumber.ZERO
                )
            }
        ),
        stores=BYTES,
        reads=BYTES,
        placements=MappingProxyType({Placement.TENSOR: 0, Placement.AXIS: 0}),
        default_axis=None,
        notes=(
            "one scale: the product and the sum are rounded once (fma), NaN gives the highest "
            "number; a scale per axis: they are rounded each, NaN gives 0",
        ),
    ),
    Quantizer(
        "torch.pt2e",
        "2.13.0",
        "run: PyTorch 2.13.0, torch.ops.quantized_decomposed, which exported modules have",
        rounding=Rounding(divided=Divided.RECIPROCAL, nan=NotANumber.ZERO),
        stores=BYTES | frozenset({"int16"}),
        reads=BYTES | frozenset({"int16"}),
        placements=MappingProxyType({Placement.TENSOR: 0, Placement.AXIS: 0}),
        default_axis=None,
        notes=("x is multiplied by 1 / scale, so ties of a scale such as 0.1 differ from ONNX",),
    ),
    Quantizer(
        "litert",
        "2.3.0",
        "run: LiteRT 2.3.0, QUANTIZE and DEQUANTIZE, the default delegate, x86-64",
        rounding=Rounding(divided=Divided.RECIPROCAL, nan=NotANumber.HIGHEST),
        special=MappingProxyType(
            {
                "axis": Rounding(ties=Ties.AWAY, huge=Huge.LOWEST),
                "tensor int16": Rounding(divided=Divided.RECIPROCAL, huge=Huge.LOWEST, lanes=8),
            }
        ),
        stores=BYTES | frozenset({"int16"}),
        reads=BYTES | frozenset({"int16"}),
        placements=MappingProxyType({Placement.TENSOR: 0, Placement.AXIS: 0}),
        default_axis=None,
        notes=(
            "one scale: ties to even, NaN gives the highest number; a scale per axis: ties away "
            "from 0, and 3e9 gives the lowest number",
            "int16 with one scale: the last elements of a tensor, up to 7, are divided in float64 "
            "and round ties away from 0, the others to even; int16 has no zero point, and is not "
            "dequantised by axis",
        ),
    ),
    Quantizer(
        "mnn",
        "3.6.1",
        "run: MNN 3.6.1, quant and dequant of its expressions, x86-64",
        rounding=Rounding(divided=Divided.RECIPROCAL, ties=Ties.HALF, nan=NotANumber.HIGHEST),
        stores=frozenset({"int8"}),
        reads=frozenset({"int8"}),
        placements=MappingProxyType({Placement.TENSOR: 0, Placement.AXIS: 0}),
        zeros=False,
        vector_axis=1,
        packs=8,
        least_rank=2,
        notes=(
            "its scale is the reciprocal of ONNX's when it quantises",
            "a tensor of one axis corrupts memory",
            "a vector of more than 8 scales (as many as the processor packs; 8 with AVX2) for two "
            "samples or more gives wrong numbers, and no error",
            "on x86-64 the bytes that a program reads have the top bit exchanged",
        ),
    ),
    Quantizer(
        "ncnn",
        "1.0.20261020",
        "run: ncnn 1.0.20261020, layers Quantize and Dequantize, x86-64",
        rounding=Rounding(
            divided=Divided.RECIPROCAL,
            ties=Ties.HALF,
            huge=Huge.LOWEST,
            symmetric=True,
            row_lanes=4,
        ),
        stores=frozenset({"int8"}),
        reads=_WIDE,
        placements=MappingProxyType({Placement.TENSOR: 0, Placement.AXIS: 0}),
        default_axis=0,
        zeros=False,
        vector_axis=0,
        notes=(
            "its scale is the reciprocal of ONNX's; -127 is the lowest number, and what 3e9 gives",
            "of a tensor of one axis it reads the first scale alone, and says nothing",
            "it adds 0.5 and cuts off in lanes of four, and rounds the rest of a row exactly",
        ),
    ),
)

#: The rows by name.
QUANTIZERS: Mapping[str, Quantizer] = MappingProxyType({row.name: row for row in _ROWS})


def find_quantizer(name: Any) -> Quantizer:
    """The row of an engine; raises BroadcastError if there is none.

    >>> find_quantizer("onnxruntime").release
    '1.32.0'
    """
    row = QUANTIZERS.get(name) if isinstance(name, str) else None
    if row is None:
        raise BroadcastError(
            f"no quantisation was measured on {brief(name)}",
            reason=Reason.UNKNOWN_ENGINE,
            hint=f"engines are {', '.join(QUANTIZERS)}",
        )
    return row
