"""Attention that is written out: products, a sum or a choice for the mask, and a softmax.

Models before fusion have it so. The roles of its nodes are said beside their findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..ir.graph import Graph, Node, Value

#: Ops of one tensor, and of a tensor and numbers, that change no meaning of the scores' axes.
_THROUGH = frozenset(
    {"Cast", "Clip", "Div", "Dropout", "Identity", "Mul", "Reshape", "Tanh", "Unsqueeze"}
)
#: Ops between a product and the key heads that it reads.
_TO_HEADS = frozenset(
    {"Add", "Cast", "Concat", "Expand", "Identity", "Mul", "Reshape", "Transpose", "Unsqueeze"}
)
_PRODUCTS = frozenset({"MatMul", "Einsum"})
#: The axes between samples and queries, by the scores' rank and the axis.
_AXES = {(4, 1): "heads", (5, 1): "key heads", (5, 2): "query heads of a key head"}
#: The most nodes between a product and the softmax, or the key heads.
_FAR = 16


@dataclass(frozen=True, slots=True)
class WrittenAttention:
    """An attention that several nodes compute.

    Attributes:
        softmax: the node of its softmax.
        roles: what each node is in it, by the node's identity: a phrase.
    """

    softmax: Node
    roles: Mapping[int, str]


def written_attentions(graph: Graph) -> Iterator[WrittenAttention]:
    """The attentions that a graph of ONNX's ops writes out, in order."""
    makers = {id(value): node for node in graph.nodes for value in node.outputs}
    readers: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None:
                readers.setdefault(id(value), []).append(node)
    for node in graph.nodes:
        if node.op == "Softmax" and not node.domain and node.inputs[0] is not None:
            roles = _roles(node, makers, readers)
            if roles:
                yield WrittenAttention(node, roles)


def attention_roles(graph: Graph) -> dict[str, str]:
    """What nodes are in attentions that a graph of ONNX's ops writes out: a sentence by path."""
    return {
        node.path: f"in the attention of {each.softmax.path!r}: it {each.roles[id(node)]}"
        for each in written_attentions(graph)
        for node in graph.nodes
        if id(node) in each.roles
    }


def _roles(
    softmax: Node, makers: Mapping[int, Node], readers: Mapping[int, list[Node]]
) -> dict[int, str]:
    """The roles around a softmax; none if it is not between two products."""
    roles: dict[int, str] = {}
    scores = _scores(softmax.inputs[0], makers, roles)
    weighted = _weighted(softmax.outputs[0], readers)
    if scores is None or weighted is None:
        return {}
    roles[id(scores)] = "computes its scores, query by key"
    roles[id(weighted)] = "multiplies its weights by the values"
    for product, place, what in (
        (scores, 0, "query"),
        (scores, -1, "key"),
        (weighted, -1, "value"),
    ):
        way = list(_to_heads(product.inputs[place], makers))
        for node in way:
            if (times := _times(node)) is not None:
                roles[id(node)] = f"repeats each {what} head for {times} query heads"
        for part in _turning(way, makers) if what != "value" else ():
            roles[id(part)] = f"turns the {what} by its positions (rotary)"
    return roles


def _scores(value: Value | None, makers: Mapping[int, Node], roles: dict[int, str]) -> Node | None:
    """The product that scores come from; masks on the way get their roles."""
    for _ in range(_FAR):
        node = None if value is None else makers.get(id(value))
        if node is None or node.domain:
            return None
        if node.op in _PRODUCTS:
            return node
        if node.op in ("Add", "Sub", "Where"):
            pair = node.inputs[-2:]
            value = next((part for part in pair if _from_product(part, makers)), None)
            mask = node.inputs[0] if node.op == "Where" else _other(pair, value)
            verb = "chooses by" if node.op == "Where" else "adds"
            roles[id(node)] = f"{verb} its mask{_lying(mask, node.outputs[0])}"
        elif node.op in _THROUGH and node.inputs:
            value = next((part for part in node.inputs if _from_product(part, makers)), None)
        else:
            return None
    return None


def _lying(mask: Value | None, scores: Value) -> str:
    """A mask's shape, and where its first axis lies if that is not the samples' or the queries'."""
    if mask is None or mask.shape is None:
        return ""
    words, whole = f" of {_written(mask.shape)}", scores.shape
    if whole is None or not 2 < len(mask.shape) < len(whole) or mask.shape[0] == 1:
        return words
    axis = len(whole) - len(mask.shape)
    place = _AXES.get((len(whole), axis))
    if place is None:
        return words
    words += f", whose first axis lies on the {place}"
    if whole[0] == mask.shape[0]:
        wanted = _written((*whole[:1], *[1] * axis, *mask.shape[1:]))
        words += f"; there are as many samples: of a mask for each, make {wanted}"
    return words


def _from_product(value: Value | None, makers: Mapping[int, Node]) -> bool:
    """Whether a value is scores: made by a product, and such ops after it."""
    left = [] if value is None else [value]
    for _ in range(_FAR):
        node = makers.get(id(left.pop())) if left else None
        if node is None or node.domain:
            return False
        if node.op in _PRODUCTS:
            return True
        if node.op not in _THROUGH | {"Add", "Sub", "Where"}:
            return False
        parts = node.inputs[-2:] if node.op == "Where" else node.inputs
        left = [part for part in parts if part is not None and id(part) in makers][:1]
    return False


def _other(pair: tuple[Value | None, ...], value: Value | None) -> Value | None:
    return next((part for part in pair if part is not value), None)


def _weighted(value: Value, readers: Mapping[int, list[Node]]) -> Node | None:
    """The product of the weights with the values."""
    for _ in range(_FAR):
        after = readers.get(id(value), [])
        product = next((node for node in after if node.op in _PRODUCTS), None)
        if product is not None:
            return product if product.inputs[0] is value else None
        # A safe softmax tests its result for NaN, and chooses.
        passed = [node for node in after if node.op in _THROUGH | {"Where"}]
        if len(passed) != 1:
            return None
        value = passed[0].outputs[0]
    return None


def _to_heads(value: Value | None, makers: Mapping[int, Node]) -> Iterator[Node]:
    """The nodes between a product and the heads that it reads, the last one first."""
    for _ in range(_FAR):
        node = None if value is None else makers.get(id(value))
        if node is None or node.domain or node.op not in _TO_HEADS or not node.inputs:
            return
        yield node
        value = node.inputs[0]


def _times(node: Node) -> int | None:
    """How often an Expand repeats each head, along an axis between heads and places."""
    if node.op != "Expand" or node.inputs[0] is None:
        return None
    before, after = node.inputs[0].shape, node.outputs[0].shape
    if before is None or after is None or len(before) != len(after) or len(after) != 5:
        return None
    changed = [k for k, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    times = after[2]
    return times if changed == [2] and isinstance(times, int) else None


def _turning(way: Sequence[Node], makers: Mapping[int, Node]) -> tuple[Node, ...]:
    """The sum of x·cos and turned x·sin on the way, with both products."""
    for node in way:
        parts = tuple(makers.get(id(value)) for value in node.inputs if value is not None)
        products = tuple(part for part in parts if part is not None and part.op == "Mul")
        if node.op == "Add" and len(products) == 2:
            factors = [makers.get(id(value)) for part in products for value in part.inputs]
            if any(part is not None and part.op == "Concat" for part in factors):
                return (node, *products)
    return ()


def _written(shape: tuple[object, ...]) -> str:
    return f"({','.join('?' if size is None else str(size) for size in shape)})"


__all__ = ["WrittenAttention", "attention_roles", "written_attentions"]
