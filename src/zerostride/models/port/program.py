"""The meaning of a rewrite: its steps carried out on shapes, and judged on the target one by one.

The steps become nodes of the neutral graph, so the reader of sites and the judge of the audit also
decide here. Each tensor also has the rows of :mod:`.layout`, which say where the operands' axes
are, and the tree of ops that made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ...core.plan import Plan
from ...errors import BroadcastError
from ...ops import COMPARISONS, find_op
from ...sizes import Shape
from ...sizes.dim import Symbol
from ..audit.audited import Audited
from ..audit.judged_site import sizes_of
from ..findings import Finding, Verdict
from ..ir.graph import Node, Value
from ..ir.moves import inserted, moved, removed
from ..ir.rewrite import Input, Ref, RewriteStep
from ..ir.site import Kind, Site
from ..onnx_ops.sites import find_site as find_onnx_site
from ..transport.ways import canonical
from .layout import landed, regrouped

#: An op and its operands: parts of the site by number, or further trees.
Tree: TypeAlias = "int | float | tuple[str, tuple[Any, ...]]"
#: ONNX's current op set, in which the steps are judged.
_OPSET = 21
#: Ops of steps whose results are truth values, whatever the node's type.


class Wrong(Exception):  # noqa: N818 - an answer, not a fault
    """The steps cannot be carried out, or mean something else than the node; says why."""


class Unwitnessed(Wrong):
    """No sizes were found at which the steps could be computed."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A node to be ported.

    Attributes:
        node: the node of the resolved graph.
        site: its broadcast.
        source: its plan in the model.
        positions: for each operand of the site, its place in `Node.inputs`; None where it is not a
            tensor of the model (the product inside a Gemm).
        finding: its finding in the audit.
    """

    node: Node
    site: Site
    source: Plan
    positions: tuple[int | None, ...]
    finding: Finding

    @property
    def op(self) -> str:
        """The op: its name in the op table, or the node's own op where the table lacks it."""
        return op_of(self.site)


@dataclass(frozen=True, slots=True)
class Tracked:
    """A tensor of the program: the value, and for each part of the site its row in it."""

    value: Value
    rows: tuple[tuple[int, Shape], ...]
    tree: Tree

    @property
    def shape(self) -> Shape:
        """Its sizes, all of them numbers or symbols."""
        return tuple(size for size in self.value.shape or () if size is not None)


@dataclass(frozen=True, slots=True)
class Done:
    """A step carried out.

    Attributes:
        step: the step.
        node: the step as a node of the neutral graph.
        site, plan: its broadcast, if it has one.
        parts: for each operand of the plan, its place among the operands of the step; None for a
            part that is not a tensor.
    """

    step: RewriteStep
    node: Node
    site: Site | None = None
    plan: Plan | None = None
    parts: tuple[int | None, ...] = ()


@dataclass
class RewriteProgram:
    """A rewrite's steps, carried out, with the same meaning as the node.

    Attributes:
        subject: the node.
        steps: its replacement.
        done: the steps on the node's shapes; empty where a similar node has them.
        finding: after judging, the finding of the first step that is not the same on the target,
            or of the node's own op.
        values: numbers for its symbols, once found, at which it is computed.
    """

    subject: Subject
    steps: tuple[RewriteStep, ...]
    done: tuple[Done, ...] = ()
    finding: Finding | None = None
    values: Mapping[Symbol, int] | None = None

    def judged(self, setting: Audited) -> bool:
        """Whether the target means the same by every step, and the result keeps its batch axis."""
        judge = setting.judge.aside()
        for k, done in enumerate(self.done):
            if done.site is not None:
                readers = self._readers(k)
                self.finding = setting.delegate.alone(done.site, judge(done.site), readers)
                if self.finding.verdict is not Verdict.SAME:
                    return False
            elif not setting.delegate.moves(done.node):
                return False
            judge.follow(done.node)
        # The findings of the result's readers depend on its batch axis.
        results, own = self.done[-1].node.outputs, self.subject.node.outputs
        return judge.batch.of(results[0]) == judge.batch.of(own[0] if own else None)

    def _readers(self, k: int) -> list[Node] | None:
        """The nodes that read the result of a step; None for the last one, which others read."""
        name = self.done[k].node.outputs[0].name
        later = [done.node for done in self.done[k + 1 :]]
        reading = [node for node in later if any(v and v.name == name for v in node.inputs)]
        return reading if later else None


def positions_of(site: Site) -> tuple[int | None, ...]:
    """For each operand of a site, its place among the node's inputs."""
    positions: list[int | None] = []
    start = 0
    for k, part in enumerate(site.operands):
        place = None
        if part.tensor is not None and not (site.kind is Kind.GEMM and k == 0):
            inputs = site.node.inputs
            place = next((p for p in range(start, len(inputs)) if inputs[p] is part.tensor), None)
        if place is not None:
            start = place + 1
        positions.append(place)
    return tuple(positions)


def op_of(site: Site) -> str:
    """A site's op: its name in the op table, or the node's own op where the table lacks it."""
    if site.kind in (Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU):
        # "Mean" is planned like a sum, but is another op.
        name = canonical(site)
        if name is not None and site.stands_for != "Mean":
            return name
    return site.stands_for


def carry_out(subject: Subject, steps: Sequence[RewriteStep], setting: Audited) -> RewriteProgram:
    """The steps on the node's shapes.

    Raises:
        Wrong: a step does not fit, or the steps together mean something else than the node.
    """
    inputs = _inputs(subject)
    results: list[Tracked] = []
    done: list[Done] = []

    def of(ref: Ref) -> Tracked | None:
        return inputs[ref.position] if isinstance(ref, Input) else results[ref.step]

    for k, step in enumerate(steps):
        operands = [of(ref) for ref in step.operands]
        last = k == len(steps) - 1
        tensor, record = _carry(subject, step, operands, f"t{k}", setting, last=last)
        results.append(tensor)
        done.append(record)
    _check_meaning(subject, results[-1])
    return RewriteProgram(subject, tuple(steps), tuple(done))


def _inputs(subject: Subject) -> list[Tracked | None]:
    """The node's operands; each part of the site is unchanged in its own operand."""
    parts = {place: k for k, place in enumerate(subject.positions) if place is not None}
    inputs: list[Tracked | None] = []
    for place, value in enumerate(subject.node.inputs):
        if value is None:
            inputs.append(None)
            continue
        k = parts.get(place)
        shape = tuple(size for size in value.shape or () if size is not None)
        rows = () if k is None else ((k, shape),)
        inputs.append(Tracked(value, rows, -1 - place if k is None else k))
    return inputs


def _carry(
    subject: Subject,
    step: RewriteStep,
    operands: Sequence[Tracked | None],
    name: str,
    setting: Audited,
    *,
    last: bool,
) -> tuple[Tracked, Done]:
    if step.op == "number":
        number = float(step.attributes["value"])
        value = Value(name, (), True, dtype=step.attributes["dtype"], reals=(number,))
        node = Node(name, "Constant", "", _OPSET, (), (value,))
        return Tracked(value, (), number), Done(step, node)
    if step.op in _MOVES:
        if len(operands) != 1 or operands[0] is None:
            raise Wrong(f"{step.op} takes one operand")
        return _move(step, operands[0], name, setting)
    return _broadcast(subject, step, operands, name, setting, last=last)


# Steps that move axes.

_MOVES: Mapping[str, str] = {
    "reshape": "Reshape",
    "unsqueeze": "Unsqueeze",
    "squeeze": "Squeeze",
    "expand": "Expand",
    "tile": "Tile",
}


def _move(step: RewriteStep, operand: Tracked, name: str, setting: Audited) -> tuple[Tracked, Done]:
    old = operand.shape
    try:
        new = moved(step, old)
    except ValueError as error:
        raise Wrong(str(error)) from None
    assert new is not None  # the rank is known
    value = Value(name, new, operand.value.constant, dtype=operand.value.dtype)
    inputs: tuple[Value, ...] = (operand.value,)
    attributes: dict[str, Any] = {}
    if step.op in ("reshape", "expand", "tile"):
        wanted = tuple(step.shape or ())
        inputs += (Value(f"{name}.shape", (len(wanted),), True, wanted, dtype="int64"),)
    else:
        attributes["axes"] = step.axes
    node = Node(name, _MOVES[step.op], "", _OPSET, inputs, (value,), attributes)
    if step.op == "expand":
        return _expand(step, operand, node, setting)
    rows = []
    for k, row in operand.rows:
        after = _moved_row(step, row, old, new)
        if after is None:
            raise Wrong(f"{step.describe()}: part {k} would no longer lie along whole axes")
        rows.append((k, after))
    return Tracked(value, tuple(rows), operand.tree), Done(step, node)


def _moved_row(step: RewriteStep, row: Shape, old: Shape, new: Shape) -> Shape | None:
    if step.op == "unsqueeze":
        return inserted(row, step.axes)
    if step.op == "squeeze":
        return removed(row, step.axes)
    if step.op == "tile":
        return row  # an operand that is repeated keeps its own size of 1
    return regrouped(row, old, new)


def _expand(
    step: RewriteStep, operand: Tracked, node: Node, setting: Audited
) -> tuple[Tracked, Done]:
    site = find_onnx_site(node)
    assert site is not None
    plan = _plan(site, setting)
    if plan.shape != node.outputs[0].shape:
        raise Wrong(f"{operand.shape} does not expand to {step.shape}")
    rows = tuple((k, landed(row, plan.axes_mapping[0], plan.rank)) for k, row in operand.rows)
    return Tracked(node.outputs[0], rows, operand.tree), Done(step, node, site, plan, (0,))


# Steps that broadcast.


def _broadcast(
    subject: Subject,
    step: RewriteStep,
    operands: Sequence[Tracked | None],
    name: str,
    setting: Audited,
    *,
    last: bool,
) -> tuple[Tracked, Done]:
    values = tuple(None if operand is None else operand.value for operand in operands)
    node = _node_of(subject, step, values, name)
    site = setting.module.find_site(node) if step.op == "self" else find_onnx_site(node)
    if site is None:
        raise Wrong(f"{node.op} of {[v.shape if v else None for v in values]} broadcasts nothing")
    plan = _plan(site, setting)
    landings: Sequence[Sequence[Any]] = plan.axes_mapping
    if any(... in mapping for mapping in landings):  # see symbolic.py
        raise Wrong("where its axes land depends on sizes that are not known")
    places = positions_of(site)
    for place, operand in enumerate(operands if step.op == "self" else ()):
        own = subject.node.inputs[place] if place < len(subject.node.inputs) else None
        if place not in places and (None if operand is None else operand.value) is not own:
            raise Wrong(f"operand {place} is not broadcast, and stays as it is")
    rows: list[tuple[int, Shape]] = []
    trees: list[Tree] = []
    for k, mapping in enumerate(plan.axes_mapping):
        at = places[k]
        operand = None if at is None else operands[at]
        if operand is None:
            rows.append((k, landed(plan.operands[k], mapping, plan.rank)))
            trees.append(k)
            continue
        outer = len(plan.operands[k])  # a part may be a tensor's outer axes alone
        own = subject.site.operands[k].tensor if step.op == "self" else None
        if own is not None and site.kind is Kind.MATMUL:
            inner = (own.shape or ())[len(subject.source.operands[k]) :]
            if operand.shape[outer:] != inner:  # a vector is no matrix of one row
                raise Wrong(f"part {k} has matrices of {operand.shape[outer:]}, not of {inner}")
        rows += [(j, landed(row[:outer], mapping, plan.rank)) for j, row in operand.rows]
        trees.append(operand.tree)
    # The last step has the node's own sizes: those of a product are not the plan's.
    whole = subject.node.outputs[0].shape if last and subject.node.outputs else None
    dtype = "bool" if step.op in COMPARISONS else _dtype(subject)
    value = Value(name, whole if whole is not None else plan.shape, dtype=dtype)
    node = replace(node, outputs=(value,))
    tree = _tree(site, trees)
    record = Done(step, node, replace(site, node=node), plan, places)
    return Tracked(value, tuple(rows), tree), record


def _node_of(
    subject: Subject, step: RewriteStep, values: tuple[Value | None, ...], name: str
) -> Node:
    if step.op != "self":
        words = find_op(step.op).names.get("onnx")
        if words is None:
            raise Wrong(f"ONNX has no {step.op}")
        return Node(name, str(words[0]), "", _OPSET, values, ())
    attributes = {
        key: value
        for key, value in {**subject.node.attributes, **step.attributes}.items()
        if value is not None
    }
    return replace(subject.node, inputs=values, attributes=attributes)


def _dtype(subject: Subject) -> str | None:
    return subject.node.outputs[0].dtype if subject.node.outputs else None


def _plan(site: Site, setting: Audited) -> Plan:
    if any(part.shape is None or None in part.shape for part in site.operands):
        raise Wrong("a size is not known")
    shapes = tuple(map(sizes_of, site.operands))
    try:
        return setting.judge.source(site, shapes)
    except BroadcastError as error:
        raise Wrong(error.detail) from None


# The whole rewrite.


def _check_meaning(subject: Subject, result: Tracked) -> None:
    """Checks that parts lie as in the node's own plan, in the same shape, under the same ops."""
    source = subject.source
    wanted = _tree(subject.site, list(range(len(source.operands))))
    if normal(result.tree) != normal(wanted):
        raise Wrong("the ops are not the node's own")
    rows: dict[int, Shape] = {}
    for k, row in result.rows:
        if rows.setdefault(k, row) != row:
            raise Wrong(f"part {k} lies in two ways")
    whole = subject.site.kind not in (Kind.GEMM, Kind.MATMUL)
    if whole and result.shape != source.shape:
        raise Wrong(f"the result has {result.shape}, not {source.shape}")
    for k, aligned in enumerate(source.aligned):
        if k not in rows or rows[k] != aligned:
            raise Wrong(f"part {k} lies as {rows.get(k)}, not as {aligned}")


def _tree(site: Site, operands: Sequence[Tree]) -> Tree:
    """The tree of a site's op; an Expand adds no op."""
    return operands[0] if site.kind is Kind.EXPAND else _folded(op_of(site), operands)


def _folded(op: str, operands: Sequence[Tree]) -> Tree:
    """The tree of an op; operands beyond those of its row follow one after the other."""
    try:
        count = find_op(op).operands if op.islower() else len(operands)
    except BroadcastError:
        count = len(operands)
    if count != 2 or len(operands) <= 2:
        return (op, tuple(operands))
    tree: Tree = (op, tuple(operands[:2]))
    for operand in operands[2:]:
        tree = (op, (tree, operand))
    return tree


def normal(tree: Tree) -> Tree:
    """The tree in normal form: commuting operands in a fixed order, PRelu written out.

    >>> normal(("greater", (1, 0)))
    ('less', (0, 1))
    """
    if not isinstance(tree, tuple):
        return tree
    op, operands = tree
    operands = tuple(map(normal, operands))
    if op == "prelu":
        data, slope = operands
        product = normal(("multiply", (slope, data)))
        return ("where", (normal(("less", (data, 0.0))), product, data))
    try:
        swap = find_op(op).swap if op.islower() else None
    except BroadcastError:
        swap = None
    if swap is None or len(operands) != 2:
        return (op, operands)
    return min((op, operands), (swap, operands[::-1]), key=lambda way: (repr(way[1]), way[0]))
