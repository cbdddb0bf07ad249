"""Ops that a converter refuses, whatever they compute: the whole model fails with one of them.

Run: of ONNX's own tests of each op (onnx 1.23) with every choice of constant operands the converter
wrote no file for any (OpenVINO 2026.4.1, MNN 3.6.1). pnnx writes a file for any op, and which of
them ncnn loads depends on the op's form.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..ir.graph import Graph

#: The first op sets of SwiGLU and the like are newer than this release's frontends.
_NEITHER = (
    *("Bernoulli", "BitCast", "CausalConvWithState", "CumProd", "DeformConv", "ImageDecoder"),
    *("LinearAttention", "MelWeightMatrix", "OptionalGetElement", "OptionalHasElement", "SwiGLU"),
    *("TensorScatter", "TfIdfVectorizer"),
)
#: The ops, by the name of the converter.
LACKING: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "onnx-frontend": frozenset({*_NEITHER, "Det", "MaxUnpool"}),
        "mnnconvert": frozenset(
            {
                *_NEITHER,
                *("AffineGrid", "Attention", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"),
                *("BlackmanWindow", "CenterCropPad", "Col2Im", "ConvInteger", "DFT"),
                *("GroupNormalization", "HammingWindow", "HannWindow", "Hardmax", "IsInf", "IsNaN"),
                *("MatMulInteger", "Mish", "QLinearConv", "QLinearMatMul", "RMSNormalization"),
                *("RotaryEmbedding", "Scan", "Swish"),
            }
        ),
    }
)
#: Ops of a tensor's shape alone: a converter computes them where sizes are numbers.
_OF_SHAPES = frozenset({"Shape", "Size"})


def lacking_ops(graph: Graph, converter: str) -> dict[str, tuple[str, ...]]:
    """The ops of a graph that a converter refuses, each with the paths of its nodes.

    Nodes that depend on no input do not count: converters compute those themselves.

    Args:
        graph: the model.
        converter: its name.
    """
    ops = LACKING.get(converter, frozenset())
    if graph.format != "onnx" or not ops:
        return {}
    live = {id(value) for value in graph.inputs}
    found: dict[str, list[str]] = {}
    for node in graph.nodes:
        values = [value for value in node.inputs if value is not None]
        known = node.op in _OF_SHAPES and all(value.known for value in values)
        inner = (id(value) for body in node.bodies for value in body.inputs)
        if known or not (any(id(value) in live for value in values) or node.scope):
            continue
        live.update(id(value) for value in node.outputs)
        live.update(inner)
        if node.op in ops:
            found.setdefault(node.op, []).append(node.path)
    return {op: tuple(paths) for op, paths in found.items()}


__all__ = ["LACKING", "lacking_ops"]
