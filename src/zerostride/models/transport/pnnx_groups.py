"""Groups of nodes that pnnx makes one layer of, by which it alone decides their broadcasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from ..findings import Finding
from ..ir.graph import Graph, Node, Value
from .batch import BatchAxes
from .joining import as_same, as_wrong
from .pnnx import BINARY
from .pnnx_rotations import wrong_rotations
from .pnnx_types import cut

#: Ranks of a sample in which ncnn's Normalize computes over the first axis.
_NORMALISED = frozenset({1, 3, 4})
_NORMS = frozenset({"ReduceL1", "ReduceL2"})


def joined(graph: Graph, batch: BatchAxes) -> Mapping[int, Callable[[Finding], Finding]]:
    """The changes that pnnx makes to the findings of nodes, by their identity.

    Args:
        graph: the graph.
        batch: the batch axes of its tensors.
    """
    changes: dict[int, Callable[[Finding], Finding]] = {}
    normed = partial(as_same, words="pnnx makes a GroupNorm of it and of the Reshapes around it")
    changes |= dict.fromkeys(group_norms(graph), normed)
    spread = partial(as_same, words="pnnx leaves one number; every op that reads it stretches it")
    changes |= dict.fromkeys(_spread_again(graph), spread)
    if any(node.onnx_op in _NORMS for node in graph.nodes):
        changes |= {
            id(node): partial(as_wrong, words=words) for node, words in _norms(graph, batch)
        }
    return changes | {
        id(node): partial(as_wrong, words=words) for node, words in wrong_rotations(graph, batch)
    }


def _norms(graph: Graph, batch: BatchAxes) -> Iterator[tuple[Node, str]]:
    """Yield each division by a norm that pnnx writes as a wrong layer, and what is wrong.

    A norm, a Clip and an Expand before a Div become ncnn's Normalize, whatever the norm's axis is
    (run: tests/conformance/test_pnnx.py). PyTorch exports F.normalize so.
    """
    makers = {id(value): node for node in graph.nodes for value in node.outputs}

    def before(node: Node | None, place: int, word: str) -> Node | None:
        value = None if node is None or len(node.inputs) <= place else node.inputs[place]
        maker = makers.get(id(value))
        return maker if maker is not None and maker.onnx_op == word else None

    for node in graph.nodes:
        if node.onnx_op != "Div" or (spread := before(node, 1, "Expand")) is None:
            continue
        clip = before(spread, 0, "Clip")
        norm = next(filter(None, (before(clip, 0, word) for word in _NORMS)), None)
        data = node.inputs[0]
        if norm is None or data is None or norm.inputs[0] is not data or data.shape is None:
            continue
        rank, axes = len(data.shape), _axes(norm)
        if axes is None or len(axes) != 1:
            continue
        gone, axis = batch.of(data), axes[0] % rank
        first = 1 if gone == 0 else 0
        lean = rank - (gone is not None)
        if norm.onnx_op == "ReduceL2" and axis == first and lean in _NORMALISED:
            continue
        kept = axis - (gone is not None and gone < axis)
        yield (
            node,
            f"pnnx makes a Normalize of the {norm.op}, the Clip, the Expand and this Div: ncnn "
            f"computes it over the first axis of 1, 3 or 4, and this is axis {kept} of {lean}; "
            "without the Expand, pnnx makes none",
        )


def _axes(node: Node) -> tuple[int, ...] | None:
    """The axes of a reduction, if they are known."""
    axes = node.attributes.get("axes")
    if axes is None and len(node.inputs) > 1 and node.inputs[1] is not None:
        axes = node.inputs[1].content
    return None if axes is None else tuple(int(axis) for axis in axes)


def group_norms(graph: Graph) -> frozenset[int]:
    """Nodes, by identity, that pnnx makes a GroupNorm of together with the Reshapes around them.

    PyTorch exports a GroupNorm so: an InstanceNormalization of groups, with scales of 1 and biases
    of 0. pnnx needs the sizes of a sample (run: tests/conformance/test_pnnx.py).
    """
    nodes = [node for node in graph.nodes if node.onnx_op == "InstanceNormalization"]
    if not nodes:
        return frozenset()
    makers = {id(value): node for node in graph.nodes for value in node.outputs}
    readers = _readers(graph)
    kept = {id(value) for value in graph.outputs}
    return frozenset(
        id(node)
        for node in nodes
        if len(node.inputs) == 3
        and node.inputs[0] is not None
        and all(isinstance(size, int) for size in (node.inputs[0].shape or (None,))[1:])
        and getattr(makers.get(id(node.inputs[0])), "op", "") == "Reshape"
        and [after.op for after in readers.get(id(node.outputs[0]), ())] == ["Reshape"]
        and id(node.outputs[0]) not in kept
        and _all(node.inputs[1], 1)
        and _all(node.inputs[2], 0)
    )


def _spread_again(graph: Graph) -> Iterator[int]:
    """Yield the Expands of one number that change nothing, by identity.

    pnnx leaves them out; the ops that read them have another operand of the result's shape.
    """
    nodes = [node for node in graph.nodes if node.onnx_op == "Expand" and len(node.inputs) == 2]
    if not nodes:
        return
    readers, kept = _readers(graph), {id(value) for value in graph.outputs}
    for node in nodes:
        data, result = node.inputs[0], node.outputs[0]
        after = readers.get(id(result), ())
        single = data is not None and data.shape == () and id(result) not in kept
        if single and after and all(_fills(reader, result) for reader in after):
            yield id(node)


def _fills(node: Node, aside: Value) -> bool:
    """Whether an operand of an element-wise op, apart from one, has the shape of its result.

    Ones in front do not count: pnnx drops them.
    """
    shapes = [value.shape for value in node.inputs if value is not None and value is not aside]
    whole = node.outputs[0].shape
    fills = whole is not None and cut(whole) in [cut(s) for s in shapes if s is not None]
    return node.onnx_op in BINARY and fills


def _readers(graph: Graph) -> dict[int, list[Node]]:
    """The nodes that read a value, by its identity."""
    readers: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            readers.setdefault(id(value), []).append(node)
    return readers


def _all(value: Value | None, number: float) -> bool:
    """Whether a tensor is a constant of one repeated number."""
    if value is None or not value.constant or value.missing is not None:
        return False
    return bool((value.data() == number).all())
