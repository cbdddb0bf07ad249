"""Compound ops that an engine lacks; :mod:`.compound_engines` has those that it has."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_INTEGER = ("ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul")
_QUANTISED = ("QuantizeLinear", "DequantizeLinear")
_NO_OPERANDS = "scales and zero points belong to tensors there, and are no operands"
#: Ops that an engine certainly lacks, with the reason or the source that was searched.
ABSENT: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        **{(op, "numpy"): "NumPy has no quantisation" for op in _QUANTISED},
        **{(op, "jax"): "jax.numpy, jax.lax and jax.nn have no quantisation" for op in _QUANTISED},
        **{(op, "ncnn"): "its layers of int8 hold their scales as weights" for op in _QUANTISED},
        **{
            (op, engine): reason
            for op in _INTEGER
            for engine, reason in (
                ("mnn", "MNN's converter refuses it"),
                ("ncnn", "its layers of int8 hold their scales as weights"),
                ("onnx-parser", "its ONNX parser does not take it"),
                ("litert", _NO_OPERANDS),
                ("litert-gpu", _NO_OPERANDS),
                ("stablehlo", _NO_OPERANDS),
                ("coreml", "coremltools 8.3, mil/ops/defs, has none"),
                ("tensorrt", "it fuses products of 8 bits from its quantising layers"),
            )
        },
        **{
            (f"{name}Normalization", "litert-gpu"): "converters write MUL and ADD, which are judged"
            " there"
            for name in ("Batch", "Instance", "Group", "Layer", "RMS")
        },
        **{
            (f"{name}Normalization", "coreml"): "coremltools 8.3, mil/ops/defs, has none"
            for name in ("Group", "RMS")
        },
        **{
            ("FakeQuantize", engine): reason
            for engine, reason in (
                ("ncnn", "its layers of int8 hold their scales as weights"),
                ("mnn", "its op set has none with ranges as operands"),
                ("tosa", "TOSA 1.0 lists no such operator"),
                ("stablehlo", "StableHLO 1.9 has quantised types, and no such op"),
                ("litert", "its FAKE_QUANT has one range, as attributes"),
                ("tensorrt", "its quantising layers have scales, and no ranges"),
                ("coreml", "coremltools 8.3, mil/ops/defs, has none"),
            )
        },
        # A Mean of three operands and more is a row of `MANY`.
        ("Mean", "mnn"): "the converter writes a division without divisor, which ends the process",
        ("GroupNormalization", "mnn"): "MNN's converter refuses it",
        ("RMSNormalization", "mnn"): "MNN's converter refuses it",
        ("RMSNormalization", "paddle"): "rms_norm of 3.3.1 has no kernel for the CPU (run)",
        ("RMSNormalization", "tensorrt"): "its Normalization layer subtracts the mean; converters"
        " write it in several",
        ("RMSNormalization", "onnx-parser"): "onnx/onnx-tensorrt 10.1 takes op sets up to 20",
        **{
            ("RotaryEmbedding", engine): reason
            for engine, reason in (
                ("mnn", "MNN's converter refuses it"),
                ("ncnn", "pnnx writes a layer of this name, which ncnn does not know"),
                ("onnx-parser", "onnx/onnx-tensorrt 10.1 takes op sets up to 20"),
                ("litert", "converters write products, a sum and a difference"),
                ("litert-gpu", "converters write products, a sum and a difference"),
                ("tosa", "TOSA 1.0 lists no such operator"),
                ("stablehlo", "StableHLO 1.9 lists no such op"),
                ("coreml", "coremltools 8.3, mil/ops/defs, has none"),
            )
        },
        ("PRelu", "tosa"): "TOSA 1.0 lists no such operator; converters write it in several",
        ("PRelu", "stablehlo"): "StableHLO 1.9 lists no such op; converters write it in several",
    }
)

#: Engines that were read about, whose list of element-wise ops of two operands was read in full.
LISTED: Mapping[str, str] = MappingProxyType(
    {
        "tensorrt": "NvInfer.h of TensorRT 10, ElementWiseOperation, lists none",
        "tosa": "TOSA 1.0 lists no such operator",
        "coreml": "coremltools 8.3, mil/ops/defs/iOS15/elementwise_binary.py, has none",
        "stablehlo": "StableHLO 1.9 lists no such op",
    }
)
