"""The rules by which engines broadcast scales and zero points of quantised ops, as measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...errors import Reason
from ..ir.graph import Node
from ..ir.site import BOTH_WAYS, ONE_NUMBER
from .compound_rows import (
    AS_WRITTEN,
    COREML,
    GPU,
    OPENVINO,
    ORT,
    PARSER,
    STABLEHLO,
    TOSA,
    Carrier,
    EngineRows,
    ran,
    read,
)
from .compound_rules import EQUAL_RANKS
from .node_limits import (
    COREML_EIGHT,
    FLOAT_EIGHT,
    TENSORFLOW_EIGHT,
    blocks_along,
    blocks_that_stretch,
    blocks_with_zero_points,
    first_axes,
    first_of,
    interleaved_blocks,
    mnn_dequantised,
    mnn_quantised,
    mnn_scale_fits,
    offset_of_zero,
    one_batch,
    one_number,
    openvino_ties,
    quantised_data,
    whole_blocks,
    without_kernels,
)

_SUBTRACTED = "written out: zero points subtracted, then a product"
_LIBRARIES = ran("numpy torch tensorflow jax paddle", BOTH_WAYS, _SUBTRACTED)


def _written(*scalars: int, openvino: Callable[[Node], str | None] | None = None) -> EngineRows:
    """ONNX Runtime and OpenVINO follow the document, but take one number at some inputs."""
    return {
        **ran("onnxruntime", AS_WRITTEN, ORT, needs=one_number(*scalars)),
        **ran("openvino", AS_WRITTEN, OPENVINO, needs=openvino),
    }


#: Scales of blocks in older releases; openvinotoolkit/openvino#32918.
_OLDER = "OpenVINO 2024.6.0 to 2026.2.1, ONNX frontend, run: campaigns/quantisation/blocks.py"
_ZERO_POINTS = blocks_with_zero_points(1)


def _before(
    release: str,
    *needs: Callable[[Node], str | None],
    wrong: Callable[[Node], str | None] | None = None,
) -> Carrier:
    """OpenVINO's releases before one."""
    return Carrier(AS_WRITTEN, _OLDER, needs=first_of(*needs), wrong=wrong, until=release)


_TOSA_ZEROS = f"{TOSA}CONV2D, MATMUL, RESCALE; llvm/llvm-project, TosaComplianceData.h.inc: read"


def _signed(needs: Callable[[Node], str | None]) -> EngineRows:
    """TOSA's products of integers: no uint8. RESCALE has a scale per tensor, or per last axis."""
    types = without_kernels("uint8")
    return {"tosa": (Carrier(AS_WRITTEN, _TOSA_ZEROS, False, needs=needs, types=types),)}


_GPU_FLOAT = f"{GPU}model_builder.cc, QuantizeOperationParser, in float: read"
_LITERT = "google-ai-edge/LiteRT of 2026-08, tflite/kernels/"
_SCALE_OF_TENSOR = "a scale belongs to a tensor: read"
#: Scales and zero points by engine, where both ops are alike.
_AFFINE: EngineRows = {
    **ran(
        "torch",
        AS_WRITTEN,
        "torch.quantize_per_channel and quantized_decomposed",
        types=FLOAT_EIGHT,
    ),
    **ran(
        "tensorflow",
        AS_WRITTEN,
        "tf.raw_ops.UniformQuantize and UniformDequantize",
        types=TENSORFLOW_EIGHT,
    ),
    **read(
        "paddle",
        AS_WRITTEN,
        "PaddlePaddle/Paddle 3.3, phi/infermeta/unary.cc, quant_axis is 0 or 1: read",
        needs=first_axes,
        because=Reason.AXIS_RANGE,
    ),
    **read(
        "coreml",
        AS_WRITTEN,
        COREML + "iOS17/quantization_ops.py",
        weights=True,
        types=COREML_EIGHT,
    ),
    **read("litert-gpu", ONE_NUMBER, _GPU_FLOAT, weights=True),
    **read("tosa", EQUAL_RANKS, f"{TOSA}written out: CAST, SUB, MUL"),
    **read("stablehlo", AS_WRITTEN, f"{STABLEHLO}uniform_quantize, by its types", weights=True),
}
_MNN_QUANTISED = "MNN 3.6.1, mnnconvert, run: tests/conformance/test_mnnconvert.py"
_PARSED_OFFSET = Carrier(AS_WRITTEN, PARSER, run=False, needs=offset_of_zero, because=Reason.NO_OP)
#: ONNX op, then engine.
QUANTISED: Mapping[str, EngineRows] = {
    "QuantizeLinear": {
        **_AFFINE,
        **_written(),
        **read("litert", ONE_NUMBER, f"{_LITERT}quantize.cc, {_SCALE_OF_TENSOR}", weights=True),
        **ran("onnxruntime", AS_WRITTEN, ORT, needs=quantised_data, because=Reason.DTYPE),
        "openvino": (
            _before("2025.3.0", _ZERO_POINTS, blocks_that_stretch, wrong=openvino_ties),
            _before("2026.1.0", _ZERO_POINTS, whole_blocks, wrong=openvino_ties),
            Carrier(
                AS_WRITTEN,
                OPENVINO,
                needs=first_of(blocks_with_zero_points(2), whole_blocks),
                wrong=openvino_ties,
            ),
        ),
        "onnx-parser": (_PARSED_OFFSET,),
        "mnn": (Carrier(AS_WRITTEN, _MNN_QUANTISED, wrong=mnn_quantised),),
    },
    "DequantizeLinear": {
        **_AFFINE,
        **_written(),
        "openvino": (
            _before("2025.1.0", _ZERO_POINTS, blocks_along(0, most=2), whole_blocks),
            _before("2025.2.0", blocks_along(0, most=2), whole_blocks),
            _before("2025.4.0", blocks_along(0, 1, most=2), whole_blocks, wrong=interleaved_blocks),
            _before("2026.0.0", blocks_along(0, 1), whole_blocks, wrong=interleaved_blocks),
            *ran("openvino", AS_WRITTEN, OPENVINO, needs=whole_blocks)["openvino"],
        ),
        **read("litert", AS_WRITTEN, f"{_LITERT}dequantize.cc, {_SCALE_OF_TENSOR}", weights=True),
        "onnx-parser": (_PARSED_OFFSET,),
        "mnn": (Carrier(AS_WRITTEN, _MNN_QUANTISED, wrong=mnn_dequantised, needs=mnn_scale_fits),),
    },
    "ConvInteger": {
        **_LIBRARIES,
        **_written(2, 3),
        **_signed(one_number(2, 3)),
    },
    "MatMulInteger": {
        **_LIBRARIES,
        **_written(2),
        **_signed(one_batch(1, 2, 3)),
    },
    "QLinearConv": {
        **_LIBRARIES,
        **_written(openvino=one_number(4, 5, as_vector=False)),
        **_signed(one_number(1, 2, 5, 6, 7)),
    },
    "QLinearMatMul": {
        **_LIBRARIES,
        **_written(1, 2, openvino=one_number(1, 2, 4, 5)),
        **_signed(one_batch(3, 1, 2, 5, 6, 7)),
    },
}
