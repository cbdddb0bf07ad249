"""Faults of OpenVINO's ONNX import that the OpenVINO op itself does not have.

OpenVINO 2026.4.1, run: tests/conformance/test_frontend.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..ir.site import Site


def frontend_fault(site: Site) -> str | None:
    """The fault of an ONNX node on OpenVINO, or None."""
    fault = FAULTS.get(site.node.op) if site.node.domain == "" else None
    return None if fault is None else fault(site)


def _rank_added(site: Site) -> str | None:
    """An Expand whose target is a constant without numbers, of data of rank 0."""
    target = site.node.inputs[1]
    scalar = all(part.shape == () for part in site.operands)
    fixed = scalar and target is not None and target.constant
    return "expands to (1,) where the constant target has no numbers" if fixed else None


#: Element types whose shifts are wrong for some numbers, by direction.
_LOST: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("LEFT", "uint8"): "multiplies by a power of 2: where bits of uint8 are lost, 255",
        (
            "LEFT",
            "uint32",
        ): "multiplies by a power of 2: where bits of a constant are lost, 2^32 - 2",
        ("LEFT", "uint64"): "multiplies by a power of 2, and cuts uint64 off at 32 bits",
        ("RIGHT", "uint32"): "divides by a power of 2, and rounds uint32 beyond 2^24",
        ("RIGHT", "uint64"): "divides by a power of 2, and cuts uint64 off at 32 bits",
    }
)


def _shifted(site: Site) -> str | None:
    """A BitShift: a product with powers of a constant 2 of shape (1,)."""
    if all(part.shape == () for part in site.operands):
        return "makes the result of two numbers of rank 0 a vector of one"
    data = site.operands[0]
    dtype = "" if data.tensor is None else str(data.tensor.dtype)
    key = str(site.node.attributes.get("direction")), dtype
    return None if key == ("LEFT", "uint32") and not data.constant else _LOST.get(key)


#: The faults, by ONNX op.
FAULTS: Mapping[str, Callable[[Site], str | None]] = MappingProxyType(
    {"Expand": _rank_added, "BitShift": _shifted}
)

#: Ops of com.microsoft that OpenVINO's ONNX frontend carries as they are written.
CONTRIB_OPENVINO = frozenset(
    {
        "BiasGelu",
        "DynamicQuantizeLSTM",
        "FastGelu",
        "FusedGemm",
        "FusedMatMul",
        "MatMulIntegerToFloat",
        "SimplifiedLayerNormalization",
        "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
    }
)

#: Ops of com.microsoft that it does not read.
UNREAD_OPENVINO = frozenset({"QGemm"})
