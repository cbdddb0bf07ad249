"""Faults of OpenVINO's ONNX import that the OpenVINO op itself does not have.

OpenVINO 2026.4.1, run: tests/conformance/test_frontend.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ...derive.size_traps import Side
from ...engines.model import Engine
from ...errors import Reason
from ..ir.site import Kind, Site
from .ways import canonical, refusal, transport


@dataclass(frozen=True, slots=True)
class Fault:
    """The frontend's translation of a node.

    Attributes:
        text: the behaviour, after "openvino's ONNX frontend".
        reason: WRONG_RESULT, or why it refuses.
    """

    text: str
    reason: Reason = Reason.WRONG_RESULT


def read_by_frontend(site: Site, engine: Engine) -> Side:
    """As `transport`, for what the frontend makes of the node."""
    if fault := frontend_fault(site):
        detail = f"openvino's ONNX frontend {fault.text}"
        silent = fault.reason is Reason.WRONG_RESULT
        raise refusal(site, detail, fault.reason, silent=silent)
    legacy = site.node.domain == "" and site.node.version < 7 and site.kind is Kind.ELEMENTWISE
    if legacy and site.node.op in LEGACY_OPENVINO:
        return Side(site.rule, site.attributes, engine.title, canonical(site))
    return transport(site, engine)


def frontend_fault(site: Site) -> Fault | None:
    """The fault of an ONNX node on OpenVINO, or None."""
    fault = FAULTS.get(site.node.op) if site.node.domain == "" else None
    return None if fault is None else fault(site)


def _rank_added(site: Site) -> Fault | None:
    """An Expand whose target is a constant without numbers, of data of rank 0."""
    target = site.node.inputs[1]
    scalar = all(part.shape == () for part in site.operands)
    fixed = scalar and target is not None and target.constant
    text = "expands to (1,) where the constant target has no numbers"
    return Fault(text) if fixed else None


def _shifted(site: Site) -> Fault | None:
    """A BitShift: a product with powers of a constant 2 of shape (1,)."""
    scalar = all(part.shape == () for part in site.operands)
    return Fault("makes the result of two numbers of rank 0 a vector of one") if scalar else None


def _unlike(site: Site) -> Fault | None:
    """Op sets before 8 want identical shapes, and a constant of one number gets another one."""
    single = any(
        part.constant and part.shape not in (None, (1,)) and set(part.shape or ()) <= {1}
        for part in site.operands
    )
    text = "gives a constant of one number another shape, and then wants identical ones"
    return Fault(text, Reason.NOT_IDENTICAL) if single and site.node.version < 8 else None


#: The faults, by ONNX op.
FAULTS: Mapping[str, Callable[[Site], Fault | None]] = MappingProxyType(
    {
        "Expand": _rank_added,
        "BitShift": _shifted,
        **dict.fromkeys(("Max", "Min", "Sum"), _unlike),
    }
)

#: Ops whose `axis` of op sets before 7 it carries out; of others it is left out.
LEGACY_OPENVINO = frozenset({"Add", "And", "Div", "Mul", "Or", "Sub", "Xor"})
