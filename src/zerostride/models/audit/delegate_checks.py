"""Checks what LiteRT's GPU delegates require of a node, apart from its shapes.

LiteRT has two delegates, TensorFlow Lite's and the newer ML Drift. A node is carried if both take
it. Sources, read: google-ai-edge/LiteRT of 2026-08, ElementwiseOperationParser and GetOpsToReplace
in tflite/delegates/gpu/common/model_builder.cc and ml_drift_delegate/tflite/model_builder.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from ...engines.model import Engine
from ...errors import Reason
from ...ops import COMPARISONS
from ..findings import Finding, Verdict
from ..ir.graph import Graph, Node, Value
from ..ir.site import Kind, Site
from ..transport.ways import canonical

_FLOATS = frozenset({"float16", "float32"})
_QUANTISED = frozenset({"int8", "uint8"})
#: Ops whose operands or results may be truth values.
_TRUTH = COMPARISONS | {"where", "logical_and"}
#: Ops that may read a comparison's result, in LiteRT and in ONNX.
_READERS = frozenset({"CAST", "SELECT", "SELECT_V2", "Cast", "Where"})
#: Ops of one tensor twice that the delegates rewrite: as a square, and as a product with 2.
_TWICE = frozenset({"add", "multiply"})
_DELEGATE = "TensorFlow Lite's GPU delegate"
#: A message, and the finding's reason.
Problem: TypeAlias = tuple[str, Reason]


class DelegateChecks:
    """The checks of one graph on one engine; other engines than litert-gpu have none."""

    def __init__(self, graph: Graph, engine: Engine) -> None:
        self.engine = engine
        self._active = engine.name == "litert-gpu"
        self._readers: dict[str, list[Node]] = {}
        for node in graph.nodes if self._active else ():
            for name in {value.name for value in node.inputs if value is not None}:
                self._readers.setdefault(name, []).append(node)

    def __call__(self, site: Site, finding: Finding) -> Finding:
        """The finding; refused where shapes fit and a delegate asks for something else."""
        if finding.verdict is not Verdict.SAME:
            return finding
        return self._refused(finding, self._problem(site, (*_OF_SITE, *_OF_GRAPH)))

    def alone(self, site: Site, finding: Finding, readers: Sequence[Node] | None = None) -> Finding:
        """The finding of a site that is not in the graph; `readers` None: they are not known."""
        if finding.verdict is not Verdict.SAME:
            return finding
        problem = self.own_problem(site)
        if problem is None and self._active and readers is not None:
            words = self._read_by(site, readers)
            problem = None if words is None else (f"{self.engine.name}: {words}", Reason.NO_OP)
        return self._refused(finding, problem)

    def moves(self, node: Node) -> bool:
        """Whether the delegates take a node that moves axes: of floats, or of a constant."""
        data = node.inputs[0] if node.inputs else None
        return not self._active or data is None or data.constant or _is_taken(data)

    def own_problem(self, site: Site) -> Problem | None:
        """The delegate's refusal of the site's own tensors, whatever their shapes."""
        return self._problem(site, _OF_SITE)

    def _problem(self, site: Site, checks: _Checks) -> Problem | None:
        for check, reason in checks if self._active else ():
            words = check(self, site)
            if words is not None:
                return f"{self.engine.name}: {words}", reason
        return None

    def _refused(self, finding: Finding, problem: Problem | None) -> Finding:
        if problem is None:
            return finding
        message, reason = problem
        return replace(finding, verdict=Verdict.REFUSED, reason=str(reason), message=message)

    def element_types(self, site: Site) -> str | None:
        """Tensors that are not constants are floats, or quantised numbers of 8 bits."""
        op = canonical(site)
        values = [value for value in site.node.inputs if value is not None and not value.constant]
        for value in (*values, *site.node.outputs):
            if _is_taken(value):
                continue
            if value.dtype != "bool" or op not in _TRUTH:
                return f"a tensor of {value.dtype}; {_DELEGATE} takes floats"
        return None

    def operands(self, site: Site) -> str | None:
        """Both operands may be one tensor in some ops."""
        if site.kind is not Kind.ELEMENTWISE or canonical(site) in _TWICE:
            return None
        names = [part.name for part in site.operands]
        if len(set(names)) == len(names):
            return None
        return f"one tensor, {names[0]!r}, is both operands; the delegates take ADD and MUL so"

    def readers(self, site: Site) -> str | None:
        """The result of a comparison has one reader, which makes floats of it."""
        outputs = site.node.outputs
        return self._read_by(site, self._readers.get(outputs[0].name, [])) if outputs else None

    def _read_by(self, site: Site, readers: Sequence[Node]) -> str | None:
        if canonical(site) not in COMPARISONS:
            return None
        if len(readers) == 1 and readers[0].op in _READERS and _is_float(readers[0].outputs[0]):
            return None
        named = ", ".join(node.path for node in readers) or "none"
        return (
            f"{_DELEGATE} takes a comparison whose result has one reader, a CAST to floats or a "
            f"SELECT of floats; the readers here: {named}"
        )


def _is_taken(value: Value) -> bool:
    return _is_float(value) or _is_eight_bits(value)


def _is_float(value: Value) -> bool:
    return value.dtype is None or value.dtype in _FLOATS


def _is_eight_bits(value: Value) -> bool:
    return value.quantised is not None and value.dtype in _QUANTISED


_Checks: TypeAlias = tuple[tuple[Callable[[DelegateChecks, Site], str | None], Reason], ...]
#: The checks of a node's own tensors, and those that ask about the nodes around it.
_OF_SITE: _Checks = (
    (DelegateChecks.element_types, Reason.DTYPE),
    (DelegateChecks.operands, Reason.NO_OP),
)
_OF_GRAPH: _Checks = ((DelegateChecks.readers, Reason.NO_OP),)
