"""Checks of a written model: every node present, no verdict worse, rewritten nodes recomputed.

This is the last check before files get their final names. It does not use the steps. It reads the
file, finds the nodes of the old model by the names of their results, and computes the rewritten
nodes on the same numbers as before, with the files' data for constants.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.alignment import apply
from ...core.plan import Plan
from ...errors import BroadcastError, ModelError, Reason
from ...sizes import elements
from ..findings import Finding, Verdict
from ..format_table import FormatModule
from ..ir.graph import Array, Graph, Node, Value
from ..ir.site import Kind, Site
from ..onnx_ops.kernels.call import NodeCall, Unfit
from ..onnx_ops.table import run_op
from .numbers import identical, operate, outer_axes, random_array
from .program import Subject, positions_of

#: A node with more numbers is not recomputed; its steps were, at smaller sizes.
MOST_ELEMENTS = 1 << 22
#: From the best verdict to the worst.
_WORSE = (
    Verdict.SAME,
    Verdict.SAME_HERE,
    Verdict.UNKNOWN,
    Verdict.REFUSED,
    Verdict.DIFFERENT,
)


class Worse(ModelError):  # noqa: N818 - says what is wrong
    """Nodes whose rewrites do not mean the same in the written file.

    Attributes:
        nodes: what is wrong, by identity of the node in the old graph; empty where a port without
            these rewrites would hide a bug.
    """

    def __init__(self, nodes: Mapping[int, str], words: str) -> None:
        super().__init__(words)
        self.nodes = nodes


#: Verdicts of a rewrite that is `same` alone and not in the whole model. It is taken back.
_OPEN = frozenset({Verdict.SAME_HERE, Verdict.UNKNOWN, Verdict.REFUSED})


@dataclass(frozen=True, slots=True)
class NewPlace:
    """A node of the old model in the new one: the node with its results, and new ones before it."""

    node: Node
    added: tuple[Node, ...]


def matched(old: Graph, new: Graph) -> list[NewPlace]:
    """For each node of the old graph, its place in the new one.

    Raises:
        ModelError: a node is missing.
    """
    rest = iter(new.nodes)
    places = []
    for node in old.nodes:
        names = [value.name for value in node.outputs]
        added: list[Node] = []
        for candidate in rest:
            if [value.name for value in candidate.outputs] == names:
                places.append(NewPlace(candidate, tuple(added)))
                break
            added.append(candidate)
        else:
            raise ModelError(f"{old.path}: node {node.path!r} was not found again after writing")
    return places


def check_findings(
    old: Graph,
    places: Sequence[NewPlace],
    before: Mapping[int, Finding],
    after: Mapping[int, Finding],
    touched: Collection[int],
    joined: Collection[int] = (),
) -> None:
    """Checks that no finding became worse, and that rewritten nodes are `same`.

    Args:
        old: the graph that was read.
        places: its nodes in the new graph.
        before: findings by identity of the old graph's nodes.
        after: findings by identity of the new graph's nodes.
        touched: identities of the old graph's nodes that were rewritten.
        joined: identities of the new graph's nodes that a converter joins with their neighbours.

    Raises:
        Worse: names the first node.
    """
    worse: dict[int, str] = {}
    first, fault = "", False
    for node, place in zip(old.nodes, places, strict=True):
        for now in (*place.added, place.node):
            finding = after.get(id(now))
            if finding is None:
                continue
            was = before.get(id(node)) if now is place.node and id(node) not in touched else None
            least = was.verdict if was is not None else Verdict.SAME
            if _WORSE.index(finding.verdict) > _WORSE.index(least):
                message = f"after writing, {now.path!r} is {finding.verdict} ({finding.message})"
                # A delegate may refuse a node because of what reads its result now.
                readers = _readers(old, node, touched) if finding.reason == Reason.NO_OP else []
                worse |= dict.fromkeys(map(id, readers or [node]), message)
                unread = not readers and id(now) not in joined
                fault = fault or (finding.verdict not in _OPEN and unread)
                first = first or f"{old.path}: node {node.path!r}: {message}"
    if worse:
        raise Worse({} if fault else worse, first)


def _readers(graph: Graph, node: Node, among: Collection[int]) -> list[Node]:
    """The nodes, of these identities, that read a node's results."""
    results = {value.name for value in node.outputs}
    return [
        reader
        for reader in graph.nodes
        if id(reader) in among
        and any(value is not None and value.name in results for value in reader.inputs)
    ]


def makers_of(places: Iterable[NewPlace]) -> Mapping[int, Node]:
    """The nodes that make the new model's additional tensors, by identity of the tensor."""
    return {id(value): node for place in places for node in place.added for value in node.outputs}


def recompute(
    subject: Subject,
    place: NewPlace,
    makers: Mapping[int, Node],
    module: FormatModule,
    size: Callable[[Any], int],
) -> int:
    """Computes a node before and after the rewrite, and compares.

    Args:
        subject: the node before.
        place: its place in the written model.
        makers: the nodes that make additional tensors there.
        module: the format's functions.
        size: a number for each size.

    Returns:
        The number of elements; 0 where the node is too large, or its data are missing.

    Raises:
        ModelError: the two differ.
    """
    _check_shape(subject.node, place.node)
    shapes = [tuple(map(size, shape)) for shape in (*subject.source.operands, subject.source.shape)]
    values = [value for value in subject.node.inputs if value is not None]
    whole = [tuple(map(size, v.shape or ())) for v in values if None not in (v.shape or ())]
    if max(map(elements, (*shapes, *whole))) > MOST_ELEMENTS or any(v.missing for v in values):
        return 0
    arrays: dict[str, Array] = {}
    for k, value in enumerate(subject.node.inputs):
        if value is not None and value.shape is not None and value.name not in arrays:
            arrays[value.name] = _data(value, size, k)
    extra = {
        k: random_array(k, shapes[k], None)
        for k, at in enumerate(positions_of(subject.site))
        if at is None and k < len(shapes) - 1
    }
    inputs = [_of(arrays, v) for v in subject.node.inputs]
    before = _computed(subject.site, inputs, extra, subject.source)
    after = _Replay(place.node, makers, arrays, extra, module).value(place.node.outputs[0])
    if not identical(before, after):
        raise ModelError(
            f"node {subject.node.path!r}: after writing, it computes something else; "
            "nothing was written"
        )
    return int(before.size)


def _check_shape(before: Node, after: Node) -> None:
    """Checks that a node's result keeps its shape, as far as sizes are numbers."""
    for old, new in zip(before.outputs, after.outputs, strict=True):
        if old.shape is None or new.shape is None:
            continue
        same = len(old.shape) == len(new.shape) and all(
            a == b or not (isinstance(a, int) and isinstance(b, int))
            for a, b in zip(old.shape, new.shape, strict=True)
        )
        if not same:
            raise ModelError(
                f"node {before.path!r}: after writing, it makes {new.shape}, not {old.shape}; "
                "nothing was written"
            )


def _of(arrays: Mapping[str, Array], value: Value | None) -> Array | None:
    return None if value is None else arrays.get(value.name)


def _data(value: Value, size: Callable[[Any], int], seed: int) -> Array:
    """The file's numbers for a constant, random numbers for other tensors."""
    shape = tuple(map(size, value.shape or ()))
    if value.constant:
        try:
            if elements(shape) <= MOST_ELEMENTS:
                data = value.data()
                if data.dtype.kind in "biufc":
                    return data
        except ModelError:
            pass  # computed from constants, or missing: the check of plans stands
    return random_array(seed, shape, value.dtype)


def _computed(
    site: Site,
    inputs: Sequence[Array | None],
    extra: Mapping[int, Array],
    known: Plan | None = None,
) -> Array:
    """The result of a site on its node's inputs; `known` is its plan, if it is of these shapes."""
    parts = []
    for k, place in enumerate(positions_of(site)):
        if site.kind is Kind.EXPAND and k:
            break
        array = extra[k] if place is None else inputs[place]
        assert array is not None
        outer = site.operands[k].shape
        parts.append(outer_axes(array, array.ndim if outer is None else len(outer)))
    shapes = [part.shape for part in parts]
    if site.rule.to_target:
        shapes.append(
            tuple(size for size in site.operands[-1].shape or () if isinstance(size, int))
        )
    if known is not None and known.open is None and list(known.operands) == shapes:
        return operate(site, known, parts)
    try:
        plan = apply(site.rule, shapes, site.attributes)
    except BroadcastError as error:
        raise ModelError(f"node {site.node.path!r}: {error.detail}") from None
    return operate(site, plan, parts)


class _Replay:
    """Computes the results of new nodes from the operands of the old node."""

    def __init__(
        self,
        last: Node,
        makers: Mapping[int, Node],
        arrays: Mapping[str, Array],
        extra: Mapping[int, Array],
        module: FormatModule,
    ) -> None:
        self.arrays = arrays
        self.extra = extra
        self.module = module
        self.done: dict[int, Array] = {}
        self.last = last
        self.makers = makers

    def value(self, value: Value) -> Array:
        """The numbers of a tensor."""
        if id(value) not in self.done:
            own = value is self.last.outputs[0]
            maker = self.last if own else self.makers.get(id(value))
            maker = None if value.source is not None else maker  # the file has its numbers
            self.done[id(value)] = self._leaf(value) if maker is None else self._node(maker)
        return self.done[id(value)]

    def _leaf(self, value: Value) -> Array:
        array = self.arrays.get(value.name)
        if array is not None and (not value.constant or array.shape == value.shape):
            return array
        data = value.data()
        if array is not None and not identical(data.reshape(-1), array.reshape(-1)):
            raise ModelError(f"constant {value.name!r} has other numbers after writing")
        return data

    def _node(self, node: Node) -> Array:
        own = self.module.find_site(node)
        nodes = self.module.lower(node) or (node,)
        beside = own is not None and (not own.whole or own.kind is Kind.MATMUL)
        if beside or (own is not None and not all(map(self._is_known, nodes))):
            # What a node does beside its broadcast (an activation, a scale, a transposed matrix) is
            # not rewritten.
            self.done[id(node.outputs[0])] = array = self._site(node)
            return array
        for one in nodes:
            if one.domain == "" and one.op in _MOVES:
                array = self._move(one)
            else:
                # The format finds the site of its own node.
                array = self._site(node if len(nodes) == 1 else one)
            self.done[id(one.outputs[0])] = array
        return array

    def _is_known(self, one: Node) -> bool:
        """Whether a node moves axes or broadcasts."""
        return (one.domain == "" and one.op in _MOVES) or self.module.find_site(one) is not None

    def _site(self, node: Node) -> Array:
        site = self.module.find_site(node)
        if site is None:
            raise ModelError(f"node {node.path!r} is not one that a port writes")
        inputs = [None if value is None else self._operand(value) for value in node.inputs]
        return _computed(site, inputs, self.extra)

    def _operand(self, value: Value) -> Array | None:
        # A lowered node may be several ONNX nodes with values between them.
        computed = id(value) in self.done or id(value) in self.makers
        available = computed or value.name in self.arrays or value.constant
        return self.value(value) if available else None

    def _move(self, node: Node) -> Array:
        """The result of a node that moves axes: its data, and numbers known before it runs."""
        if node.op == "Constant":
            return node.outputs[0].data()
        data, *others = (value for value in node.inputs if value is not None)
        unknown = [value.name for value in others if value.content is None]
        if unknown:
            raise ModelError(f"node {node.path!r}: the numbers of {unknown[0]!r} are not known")
        arrays = [self.value(data), *(np.array(v.content, np.int64) for v in others)]
        if node.op == "Expand":
            return np.broadcast_to(
                arrays[0], np.broadcast_shapes(arrays[0].shape, tuple(arrays[1]))
            )
        try:
            return run_op(NodeCall(node, tuple(arrays)))[0]
        except Unfit as error:
            raise ModelError(f"node {node.path!r}: {error}") from None


#: ONNX ops that move axes.
_MOVES = frozenset({"Constant", "Expand", "Reshape", "Squeeze", "Tile", "Unsqueeze"})


def nodes_of(place: NewPlace, makers: Mapping[int, Node]) -> list[Node]:
    """The new nodes that lead to a node, and the node, in order."""
    chosen: dict[int, Node] = {}
    waiting = [place.node]
    while waiting:
        node = waiting.pop()
        chosen.pop(id(node), None)  # a node comes before all that read it
        chosen[id(node)] = node
        waiting += [makers[id(value)] for value in node.inputs if id(value) in makers]
    return list(reversed(chosen.values()))


def lines_of(nodes: Iterable[Node]) -> Iterator[str]:
    """Nodes, a line each."""
    return (line_of(node) for node in nodes if node.op != "Constant")


def line_of(node: Node) -> str:
    """A node in a line: its results, its op, its operands with their sizes."""
    operands = ", ".join("-" if value is None else _tensor_text(value) for value in node.inputs)
    attributes = "".join(f", {key}={value}" for key, value in sorted(node.attributes.items()))
    results = ", ".join(map(_tensor_text, node.outputs))
    return f"{results} = {node.op}({operands}{attributes})"


def _tensor_text(value: Value) -> str:
    if value.content is not None and len(value.content) <= 8 and value.constant:
        return f"[{', '.join(map(str, value.content))}]"
    sizes = (
        "?" if value.shape is None else ",".join("?" if n is None else str(n) for n in value.shape)
    )
    return f"{value.name}({sizes})"
