"""Why a node differs: the audit's finding there, or what the two files say differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...core.plan import Plan
from ...errors import ModelError
from .. import reasons
from ..findings import Finding, Verdict
from ..format_table import lowered
from ..ir.graph import Array, Graph, Node
from ..onnx_ops.attention_patterns import attention_roles
from ..transport.misread_ops import misread_words
from .layouts import layouts
from .readings import reading, reading_in_other
from .sides import Fault, Other
from .written import OtherPart, shown

#: The converters that write formats from ONNX.
_CONVERTERS = {"mnn": "mnnconvert", "ncnn": "pnnx"}
#: Channels in a pack of NC4HW4.
_PACK = 4


@dataclass(frozen=True, slots=True)
class FaultCause:
    """Why a node differs.

    Attributes:
        words, fix: the cause, and what to do; "" where they are not known.
        plans: the node's broadcast in the model and on the other side, if it is one.
        names: of the operands of the plans.
    """

    words: str = ""
    fix: str = ""
    plans: tuple[Plan, Plan] | None = None
    names: tuple[str, ...] = ()


def cause(
    fault: Fault, findings: Sequence[Finding], other: Graph, side: Other, most: float
) -> FaultCause:
    """The cause of a fault.

    Args:
        fault: the fault.
        findings: the audit of the model for the other side's engine.
        other: the other side's file.
        side: the other side's tensors.
        most: the tolerance of one node.
    """
    known = _cause(fault, findings, other, side, most)
    if not known.words:
        return known
    roles = attention_roles(lowered(fault.part.graph))
    role = next((roles[node.path] for node in fault.part.nodes if node.path in roles), "")
    return replace(known, words=f"{known.words}; {role}") if role else known


def _cause(
    fault: Fault, findings: Sequence[Finding], other: Graph, side: Other, most: float
) -> FaultCause:
    if (read := reading(fault, most)) is not None:
        known = first_finding(findings, [read.node])
        words, fix = read.describe(), read.fix()
        if known is not None:
            words, fix = f"{words}. {finding_words(known)}", _fix(known) or fix
        return FaultCause(words, fix, (read.source, read.target), read.names)
    if (read := reading_in_other(fault, other, side, most)) is not None:
        return FaultCause(read.describe(), read.fix(), (read.source, read.target), read.names)
    own = OtherPart(fault, other, side) if other.path != fault.part.graph.path else None
    if (finding := first_finding(findings, fault.part.nodes)) is not None:
        plans = None
        if isinstance(finding.source, Plan) and isinstance(finding.target, Plan):
            plans = finding.source, finding.target
        if own is None or _is_there(finding, plans, own):
            return FaultCause(finding_words(finding), _fix(finding), plans, finding.names)
    if own is not None and (wrong := own.wrong(most)) is not None:
        return FaultCause(wrong.describe(), wrong.fix())
    if own is not None and (broadcast := own.broadcast()) is not None:
        return FaultCause(*broadcast)
    converter = _CONVERTERS.get(other.format, "")
    if words := "; ".join(filter(None, (misread_words(n, converter) for n in fault.part.nodes))):
        return FaultCause(words, "zerostride convert tries another form of it")
    if words := moved(fault) or overwritten(fault, side):
        return FaultCause(words)
    if words := "; ".join(differences(fault, other)):
        return FaultCause(words, "convert the model again, or make the two equal there")
    return FaultCause()


def first_finding(findings: Sequence[Finding], nodes: Sequence[Node]) -> Finding | None:
    """The first finding of nodes that says that something is wrong, if there is one."""
    paths = {node.path for node in nodes}
    fine = (Verdict.SAME, Verdict.UNKNOWN)
    return next((f for f in findings if f.node in paths and f.verdict not in fine), None)


def _is_there(finding: Finding, plans: tuple[Plan, Plan] | None, own: OtherPart) -> bool:
    """Whether the file has the broadcast that a finding tells of."""
    if plans is not None:
        return any(_same_plan(plans[1], plan) for _, plan in own.plans())
    return finding.reason != reasons.Cause.SILENT or own.fails()


def _same_plan(finding: Plan, written: Plan) -> bool:
    """Whether a broadcast of the file is the one that an audit expects there."""
    pairs = ((zip(p.operands, p.aligned, strict=True)) for p in (finding, written))
    return finding.shape == written.shape and sorted(next(pairs)) == sorted(next(pairs))


def finding_words(finding: Finding) -> str:
    """A finding as a cause."""
    return f"{finding.node} ({finding.op}): {finding.message} [{finding.code}]"


def _fix(finding: Finding) -> str:
    return finding.fix.describe(finding.names) if finding.fix is not None else ""


def moved(fault: Fault) -> str:
    """Words on numbers that are all right, in other places; "" where they are not."""
    expected, actual = fault.expected, fault.actual
    if expected is None or actual is None or expected.shape != actual.shape:
        return ""
    if not np.allclose(np.sort(expected, None), np.sort(actual, None), 1e-4, 1e-6, equal_nan=True):
        return ""
    if expected.ndim > 1 and expected.shape[1] % _PACK == 0:
        batch, channels = expected.shape[:2]
        packs = expected.reshape(batch, channels // _PACK, _PACK, -1).swapaxes(2, 3)
        if np.allclose(packs.ravel(), actual.ravel(), 1e-4, 1e-6, equal_nan=True):
            return (
                "the engine reads a tensor in packs of 4 channels (NC4HW4) as if it were not "
                "packed: all numbers are right, in wrong places"
            )
    if all(array.std() == 0 for array in (expected, actual)):
        return ""
    return (
        "all numbers are right, in wrong places: the engine permutes the axes, or splits them "
        "otherwise"
    )


def overwritten(fault: Fault, side: Other) -> str:
    """Words on numbers that are those of a later tensor; "" where they are not."""
    actual = fault.actual
    if actual is None or not actual.size or fault.other not in side.names or actual.std() == 0:
        return ""
    for name in side.names[side.names.index(fault.other) + 1 :]:
        array = side.fetch(name)
        if array is not None and array.size == actual.size:
            layout = next(layouts(array.shape, actual.shape))
            if np.array_equal(layout.read(array), actual):
                return (
                    f"it has the numbers of {name!r}, a later tensor: the engine computes that one "
                    "in the same memory, though this one is still needed"
                )
    return ""


def differences(fault: Fault, other: Graph) -> Iterator[str]:
    """Yield what the two files say differently about a fault's node: constants and attributes."""
    node = fault.part.nodes[-1]
    theirs = next((n for n in other.nodes if any(v.name == fault.other for v in n.outputs)), None)
    if theirs is None:
        return
    yield from _constants(fault.part.nodes, theirs)
    own, others = _alone(fault.part.graph, node), _alone(other, theirs)
    if len(own) == len(others) == 1 and own[0].op == others[0].op:
        for key in sorted(own[0].attributes.keys() | others[0].attributes.keys()):
            a, b = own[0].attributes.get(key), others[0].attributes.get(key)
            if a is not None and b is not None and _listed(a) != _listed(b):
                yield f"{key} of {node.path!r} is {shown(a)}, and {shown(b)} on the other side"


def _alone(graph: Graph, node: Node) -> tuple[Node, ...]:
    return lowered(replace(graph, nodes=(node,))).nodes


def _constants(nodes: Sequence[Node], theirs: Node) -> Iterator[str]:
    # A Pad's margins come in another order by their formats.
    constants = [array for node in nodes if node.op != "Pad" for array in _numbers(node)]
    for name, array in _numbers(theirs):
        fitting = [
            (n, a)
            for n, a in constants
            if a.size == array.size and a.dtype.kind == array.dtype.kind
        ]
        if not fitting or any(_same(a, array) for _, a in fitting):
            continue
        meant, own = min(fitting, key=lambda pair: int((pair[1].ravel() != array.ravel()).sum()))
        changed = own.ravel() != array.ravel()
        first = int(changed.argmax())
        yield (
            f"the constant {meant!r} has other numbers in {name!r}: {int(changed.sum())} of "
            f"{own.size}, the first at [{', '.join(map(str, np.unravel_index(first, own.shape)))}]"
            f": {own.ravel()[first]:g} and {array.ravel()[first]:g}"
        )


def _same(own: Array, array: Array) -> bool:
    return any(
        np.allclose(own, layout.read(array), rtol=1e-3, atol=1e-6, equal_nan=True)
        for layout in layouts(array.shape, own.shape)
    )


def _numbers(node: Node) -> Iterator[tuple[str, Array]]:
    for value in node.inputs:
        if value is None or not value.constant:
            continue
        try:
            yield value.name, value.data()
        except ModelError:
            continue  # not of the file: computed from shapes


def _listed(attribute: object) -> object:
    return list(attribute) if isinstance(attribute, tuple | list) else attribute
