"""The cause of a difference, as far as the audit of the model names one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...models.bisect.cause import finding_words, first_finding
from ...models.findings import Check, Finding, Outcome
from ...models.format_table import lowered
from ...models.ir.graph import Graph, Node
from ...models.onnx_ops.attention_patterns import attention_roles


def with_causes(
    checks: Sequence[Check], graph: Graph, findings: Sequence[Finding]
) -> Iterator[Check]:
    """Yield the checks; one that differs has what the audit says of its node.

    A node gets its finding, and its part in an attention. An output gets the finding of the nearest
    node before it, if no node inside differs.

    Args:
        checks: of a conversion's outputs, and of nodes inside that differ.
        graph: the model.
        findings: the audit of the model for the conversion's engine.
    """
    inside = any(check.node for check in checks)
    roles = attention_roles(lowered(graph))
    by_path = {node.path: node for node in graph.nodes}
    for check in checks:
        if check.outcome is not Outcome.DIFFERS or (inside and not check.node):
            yield check
            continue
        own = by_path.get(check.node)
        nodes = list(_before(graph, check.op)) if own is None else [own]
        known = (first_finding(findings, [node]) for node in nodes)
        finding = next((each for each in known if each is not None), None)
        words = [] if finding is None else [f"the audit: {finding_words(finding)}"]
        words += [roles[node.path] for node in (own,) if node is not None and node.path in roles]
        yield replace(check, detail="; ".join([check.detail, *words]))


def _before(graph: Graph, output: str) -> Iterator[Node]:
    """Yield the nodes that an output depends on, the last first."""
    needed = {id(value) for value in graph.outputs if value.name == output}
    for node in reversed(graph.nodes):
        if any(id(value) in needed for value in node.outputs):
            needed |= {id(value) for value in node.inputs if value is not None}
            yield node


__all__ = ["with_causes"]
