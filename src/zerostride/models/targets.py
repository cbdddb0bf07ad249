"""How a site is carried out on an engine, by kind of site.

Element-wise ops, Expand and PRelu are asked of the engine table. The others are compounds (a Gemm,
a normalisation): `CARRIERS` says by which rule an engine broadcasts inside them, with the source of
that. A kind that has no row for an engine is not judged: the finding is `unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..engines.model import Engine
from ..errors import BroadcastError, Reason
from ..ops import find_op
from ..planner import NAMELESS, rule_row, supports
from ..rules import RULES
from ..traps import Side
from .sites import Kind, Site


@dataclass(frozen=True, slots=True)
class Carrier:
    """How an engine broadcasts inside a compound op: by its add, or as the model's own document."""

    by: str  # "add": the engine's element-wise rule; "document": the source's rule itself
    source: str
    run: bool = False


_ADD = "converters write it as a product and an addition"
_DOCUMENT = "the engine runs ONNX's operator"


def _carriers(by: str, source: str, engines: str) -> dict[str, Carrier]:
    return dict.fromkeys(engines.split(), Carrier(by, source))


#: Kind of site, then engine. What is missing has not been looked at, and is `unknown`.
CARRIERS: Mapping[Kind, Mapping[str, Carrier]] = MappingProxyType(
    {
        Kind.GEMM: {
            **_carriers("add", _ADD, "numpy torch tensorflow jax openvino paddle mnn"),
            **_carriers("document", _DOCUMENT, "onnxruntime"),
        },
        Kind.MATMUL: {
            **_carriers(
                "numpy",
                "matmul's batch axes follow the NumPy rule (numpy.matmul, torch.matmul, "
                "tf.linalg.matmul, jax.numpy.matmul, OpenVINO MatMul-1, paddle.matmul)",
                "numpy torch tensorflow jax openvino paddle",
            ),
            **_carriers("document", _DOCUMENT, "onnxruntime"),
        },
        Kind.CLIP: {
            **_carriers(
                "document",
                "bounds are one number each on every engine",
                "numpy torch tensorflow jax openvino paddle ncnn mnn onnxruntime",
            ),
        },
        Kind.CHANNEL: {
            **_carriers("document", _DOCUMENT, "onnxruntime"),
            **_carriers(
                "document",
                "channels are axis 1 (OpenVINO BatchNormInference-5, torch batch_norm, "
                "paddle batch_norm NCHW; ncnn BatchNorm: the outermost axis of a sample)",
                "openvino torch paddle ncnn",
            ),
        },
        Kind.TRAILING: {
            **_carriers("document", _DOCUMENT, "onnxruntime"),
            **_carriers(
                "add", "imported as MVN, Multiply and Add", "openvino numpy jax tensorflow"
            ),
        },
        Kind.PER_AXIS: {**_carriers("document", _DOCUMENT, "onnxruntime")},
    }
)


class NotJudged(Exception):  # noqa: N818 - an answer, not a fault
    """Nothing is known about this kind of site on this engine."""


def transport(site: Site, engine: Engine) -> Side:
    """The rule and attributes with which a site's node arrives on an engine, op for op.

    A Side without an engine is the model's own rule: the engine carries that out as documented.

    Raises:
        BroadcastError: the engine has no such op.
        NotJudged: nothing is known about it.
    """
    if site.kind is Kind.EXPAND:
        return Side(rule_row(None, engine=engine.name, to_target=True), {}, engine.name)
    if site.kind in (Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU):
        op = canonical(site)
        if engine.name not in NAMELESS and engine.name != "onnxruntime":
            _check_has(engine, site, op)
        _check_opset(engine, site)
        row = rule_row(None, engine=engine.name, op=op)
        kept = {k: v for k, v in site.attributes.items() if k in row.attributes and v is not None}
        return Side(row, kept, engine.name, op)
    carrier = CARRIERS.get(site.kind, {}).get(engine.name)
    if carrier is None:
        raise NotJudged(f"{site.node.op} on {engine.name} has not been looked at")
    if carrier.by == "add":
        return Side(rule_row(None, engine=engine.name), {}, engine.name, "add")
    if carrier.by == "numpy":
        return Side(RULES["numpy"])
    return Side(site.rule, site.attributes)


#: Element-wise ops of ONNX whose broadcast is that of another op of the table.
_ALIKE = MappingProxyType({"Sum": "add", "Mean": "add"})


def canonical(site: Site) -> str | None:
    """The op table's name for the site's op, or None where the table has no row."""
    if site.kind is Kind.WHERE:
        return "where"
    name = _ALIKE.get(site.node.op, site.node.op)
    try:
        return find_op(name).name
    except BroadcastError:
        return None


def _check_has(engine: Engine, site: Site, op: str | None) -> None:
    if op is None:
        raise NotJudged(f"{site.node.op} is not in the op table, so {engine.name} was not asked")
    answer = supports(engine.name, op)
    if not answer.ok:
        raise BroadcastError(
            answer.reason, reason=Reason.NO_OP, shapes=[part.shape for part in site.operands]
        )


def _check_opset(engine: Engine, site: Site) -> None:
    legacy = site.rule.name == "onnx6" or site.kind is Kind.PRELU
    if engine.name == "onnxruntime" and legacy and site.node.version < 7:
        raise BroadcastError(
            f"ONNX Runtime has no kernel for {site.node.op} of opset {site.node.version}",
            reason=Reason.NO_OP,
            shapes=[part.shape for part in site.operands],
            hint="convert the model to opset 7 or later, operands reshaped",
        )
