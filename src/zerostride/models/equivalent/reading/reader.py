"""A graph as terms: every tensor of a model in normal form."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ....errors import ModelError
from ....sizes.condition import Condition
from ....sizes.dim import Dim, Number, Symbol, of_atom, plain
from ...execute.program import readable
from ...ir.graph import Array, Body, Graph, Node, Value
from ...onnx_ops.kernels.call import NodeCall
from ...onnx_ops.kernels.pointwise import UNARY
from ...onnx_ops.sizes.facts import SURPRISES
from ...onnx_ops.table import op_row, run_op
from ..terms.builder import Builder
from ..terms.matching import Matching
from ..terms.term import INPUT, SIZES, Shape, Term, numbers_of
from .call import Call, Opaque
from .computing import COMPUTED
from .forms import broadcast, unary
from .fused_ops import unfused
from .moving import MOVES
from .operands import operands_of
from .opsets import attributes_of, document, frozen

#: Element-wise ops that have a row of their own, or none of the op table's.
_UNARY = frozenset(
    ["Cast", "Not", "IsNaN", "IsInf", "Gelu", "BitwiseNot", "Dropout", *UNARY, "Sign", "Swish"]
)
#: Ops that are not taken apart whose attribute is an axis of their first operand.
_OF_AN_AXIS = frozenset(
    [
        *("Gather", "GatherElements", "ScatterElements", "TopK", "Compress", "Unique"),
        *("QuantizeLinear", "DequantizeLinear", "Concat", "Split", "ConcatFromSequence"),
    ]
)
#: Ops that draw numbers: two are not alike because they are asked for the same.
_RANDOM = frozenset(
    {
        *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        *("Bernoulli", "Multinomial", "Dropout"),
    }
)
#: Elements of a tensor that an op makes of constants.
_MOST_FOLDED = 1 << 24


class _Fails(Exception):  # noqa: N818 - an answer, not a fault
    """A body has a node that fails for all sizes."""


@dataclass
class Reader:
    """Reads a graph with the sizes that flow through it.

    Attributes:
        builder: builds the terms; two graphs that are compared share it.
        graph: with its sizes, in ONNX's ops.
        inputs: the terms of its inputs, by name.
        own: the sizes of the inputs.
        needs: what the model needs of sizes; those of sizes inside are learnt when these are named.
        matching: finds terms that are the same.
        failing: the paths of nodes that fail for all sizes.
        sizes: the names of sizes that depend on data, by those in the file.
        terms: of each tensor, by identity.
        bodies: how deep the walk is inside bodies.
    """

    builder: Builder
    graph: Graph
    inputs: Mapping[str, Term]
    own: frozenset[Symbol]
    needs: Condition
    matching: Matching
    failing: frozenset[str] = frozenset()
    terms: dict[int, Term] = field(default_factory=dict)
    sizes: dict[Symbol, Number] = field(default_factory=dict)
    bodies: int = 0
    # Terms are kept by identity, so that the nodes that are written must live as long.
    _alive: list[Sequence[Node]] = field(default_factory=list)
    #: The results of bodies, by identity; None for one that always fails.
    _read: dict[int, list[Term] | None] = field(default_factory=dict)

    def read(self) -> dict[str, Term]:
        """The terms of the outputs, by name."""
        for value in self.graph.inputs:
            self.terms[id(value)] = self.inputs[value.name]
        for node in self.graph.nodes:
            if not node.scope:
                try:
                    self.nodes(node)
                except _Fails:
                    self.terms |= {id(value): self._nothing() for value in node.outputs}
        return {value.name: self.term(value) for value in self.graph.outputs}

    def term(self, value: Value) -> Term:
        """The term of a tensor."""
        term = self.terms.get(id(value))
        if term is None:
            term = self.terms[id(value)] = self._constant(value)
        return term

    def _constant(self, value: Value) -> Term:
        if readable(value) or value.constant:
            return self.builder.terms.constant(np.asarray(value.data()))
        # A tensor that the file names and nothing makes.
        return self.builder.terms.get(INPUT, (), shape_of(value), (value.name,))

    def nodes(self, node: Node) -> None:
        """Gives the results of a node their terms, or of those that it stands for."""
        parts = unfused(node)
        self._alive.append(parts)
        for part in parts:
            self.node(part)

    def node(self, node: Node) -> None:
        """Gives the results of a node their terms."""
        if node.path in self.failing and node.scope:
            raise _Fails
        args = tuple(None if value is None else self.term(value) for value in node.inputs)
        shapes = self._named_shapes(node, args, [shape_of(value) for value in node.outputs])
        known = self._of_content(node, shapes) or self._of_constants(node, args)
        results: Sequence[Term] = known or self._by_row(
            Call(self.builder, node, args, shapes, self.sizes)
        )
        for value, term in zip(node.outputs, results, strict=False):
            self.terms[id(value)] = term

    def _of_content(self, node: Node, shapes: Sequence[Shape | None]) -> list[Term] | None:
        """The term of a tensor of sizes that are known."""
        value = node.outputs[0] if len(node.outputs) == 1 else None
        if value is None or value.content is None or shapes[0] is None:
            return None
        numbers = self.renamed(tuple(value.content)) or ()
        sizes = [int(size) for size in shapes[0] if isinstance(size, int)]
        if len(sizes) < len(shapes[0]):
            return None
        if all(isinstance(number, int) for number in numbers):
            try:
                array = np.array(numbers, value.dtype or "int64").reshape(sizes)
            except OverflowError:
                return None  # more than the type holds
            return [self.builder.terms.constant(array)]
        kind = value.dtype or "int64"
        return [self.builder.terms.get(SIZES, (), sizes, (*numbers, kind), dtype=value.dtype)]

    def _of_constants(self, node: Node, args: Sequence[Term | None]) -> list[Term] | None:
        """The results of an op of constants alone; None if it is not computed here."""
        if node.bodies or (not args and node.op != "Constant"):
            return None
        if node.op == "Constant":
            return [self._written_constant(node, value) for value in node.outputs]
        if any(arg is not None and not arg.constant for arg in args):
            return None
        row = op_row(node.op, node.domain)
        if row.kernel is None or node.op in _UNARY or (row.values is not None and len(args) > 1):
            return None
        arrays: list[Array | None] = []
        for arg in args:
            array = None if arg is None else numbers_of(arg, _MOST_FOLDED)
            if arg is not None and array is None:
                return None
            arrays.append(array)
        try:
            results = run_op(NodeCall(node, tuple(arrays)))
        except SURPRISES:
            return None
        if len(results) < sum(bool(value.name) for value in node.outputs):
            return None
        constant = self.builder.terms.constant
        return [constant(np.asarray(result), computed=True) for result in results]

    def _written_constant(self, node: Node, value: Value) -> Term:
        try:
            return self._constant(value)
        except ModelError:  # strings are read; others are not the same, even in the same model
            strings = node.attributes.get("value_strings") or node.attributes.get("value_string")
            key = (value.name, id(self)) if strings is None else (frozen(strings),)
            return self.builder.terms.get("Constant", (), shape_of(value), key, dtype=value.dtype)

    def _by_row(self, call: Call) -> Sequence[Term]:
        node = call.node
        ranked = all(arg is None or arg.ranked for arg in call.args)
        try:
            if node.domain == "" and _is_same(node, call.args):
                return [call.arg(0)]
            if not ranked:
                raise Opaque
            if node.domain == "" and node.op in MOVES:
                return MOVES[node.op](call)
            if (node.domain, node.op) in COMPUTED:
                return COMPUTED[node.domain, node.op](call)
            if node.domain == "" and node.op == "ConstantOfShape":
                return self._filled(call)
            if node.domain == "" and node.op == "Dropout":
                return self._kept(call)
            if node.domain == "" and node.op in _UNARY and len(call.args) == 1:
                return unary(call)
            if node.domain == "" and op_row(node.op).values is not None:
                return broadcast(call)
            if node.domain == "" and node.op == "If":
                return self._branch(call)
            if node.domain == "" and node.op in ("Loop", "Scan"):
                return self._loop(call)
        except Opaque:
            pass
        except (RecursionError, MemoryError):
            raise
        except SURPRISES:
            pass  # constants that an op does not take, say
        return self._opaque(call)

    def _filled(self, call: Call) -> list[Term]:
        value = call.attribute("value")
        number = np.float32(0) if value is None else np.asarray(value).reshape(-1)[0]
        return [call.view(self.builder.terms.constant(np.asarray(number)), ())]

    def _kept(self, call: Call) -> list[Term]:
        """Dropout outside of training."""
        if call.node.version < 7:
            raise Opaque
        if len(call.node.outputs) > 1 and call.node.outputs[1].name:
            raise Opaque
        if call.has(2) and not _false(call.arg(2)):
            raise Opaque
        return [call.arg(0)]

    # Bodies.

    def _branch(self, call: Call) -> list[Term]:
        """If: each result is one of the branches' results."""
        taken = call.arg(0).number_of
        if taken is not None:
            wanted = "then_branch" if taken else "else_branch"
            results = self._once(next(b for b in call.node.bodies if b.name == wanted))
            if results is None:
                raise _Fails
            return results
        bodies = {body.name: self._attempt(body) for body in call.node.bodies}
        one, other = bodies["then_branch"], bodies["else_branch"]
        results = []
        for k, (a, b) in enumerate(zip(one, other, strict=True)):
            shape = call.shapes[k]
            if shape is None and a.ranked and b.ranked and a.shape == b.shape:
                shape = a.shape
            args = [call.arg(0), a, b]
            results.append(a if a is b else self.builder.terms.get("If", args, shape))
        return results

    def _loop(self, call: Call) -> list[Term]:
        """Loop and Scan: their body as terms of what it is handed."""
        (body,) = call.node.bodies
        results = self._of_handed(body)
        missing, args = _those_there(call.args)
        args += results
        attributes = tuple(
            sorted((k, frozen(v)) for k, v in call.node.attributes.items() if k != "body")
        )
        return [
            self.builder.terms.get(
                call.node.op,
                args,
                shape,
                (missing, attributes, len(results), k),
                dtype=value.dtype,
            )
            for k, (value, shape) in enumerate(zip(call.node.outputs, call.shapes, strict=True))
        ]

    def _of_handed(self, body: Body) -> list[Term]:
        """The results of a body, as terms of what it is handed."""
        known = self._read.get(id(body))
        if known is not None:
            return list(known)
        self.bodies += 1
        handed = [
            self.builder.terms.get("handed", (), self.renamed(shape_of(value)), (self.bodies, k))
            for k, value in enumerate(body.inputs)
        ]
        try:
            results = self._read[id(body)] = self._body(body, handed)
            return list(results)
        except _Fails:
            raise Opaque from None  # it may run no step
        finally:
            self.bodies -= 1

    def _attempt(self, body: Body) -> list[Term]:
        """The results of a body that may not run; where it always fails, they are nothing."""
        results = self._once(body)
        return [self._nothing()] * len(body.outputs) if results is None else results

    def _nothing(self) -> Term:
        return self.builder.terms.get("fails", (), None)

    def _once(self, body: Body) -> list[Term] | None:
        """The results of a body that is handed nothing; None if it always fails."""
        if id(body) not in self._read:
            try:
                self._read[id(body)] = self._body(body, ())
            except _Fails:
                self._read[id(body)] = None
        results = self._read[id(body)]
        return None if results is None else list(results)

    def _body(self, body: Body, handed: Sequence[Term]) -> list[Term]:
        for value, term in zip(body.inputs, handed, strict=True):
            self.terms[id(value)] = term
        for node in body.nodes:
            self.nodes(node)
        if any(value is None for value in body.outputs):
            raise Opaque
        return [self.term(value) for value in body.outputs if value is not None]

    # Ops that are not taken apart.

    def _opaque(self, call: Call) -> list[Term]:
        node = call.node
        _, since = document(node.op, node.domain, node.version)
        attributes: tuple[object, ...] = attributes_of(node)
        attributes = _counted(attributes, node, call.args)
        missing, args = _those_there(operands_of(call))
        if node.op in _RANDOM:
            attributes = (*attributes, node.scope, node.outputs[0].name)
        for body in sorted(node.bodies, key=lambda body: body.name):
            attributes = (*attributes, (body.name, len(body.outputs)))
            try:
                args += self._of_handed(body)
            except (Opaque, *SURPRISES):
                # Bodies that are not read are not the same, even in the same model.
                attributes = (*attributes, len(self.builder.terms.every), id(self))
        return [
            self.builder.terms.get(
                f"{node.domain}:{node.op}" if node.domain else node.op,
                args,
                shape,
                (since, attributes, missing, k),
                dtype=value.dtype,
            )
            for k, (value, shape) in enumerate(zip(node.outputs, call.shapes, strict=True))
        ]

    def _named_shapes(
        self,
        node: Node,
        args: Sequence[Term | None],
        shapes: Sequence[Shape | None],
    ) -> tuple[Shape | None, ...]:
        """The shapes of results, their new sizes named after what they are computed of.

        A size that depends on data has the name of its tensor, which an optimiser may change.
        """
        name = ""
        for k, shape in enumerate(shapes):
            for axis, size in enumerate(shape or ()):
                for symbol in size.symbols if isinstance(size, Dim) else ():
                    if symbol not in self.sizes and symbol not in self.own:
                        name = name or self._name_of(node, args)
                        whole = f"{name}.{k}[{axis}]"
                        new = Symbol(whole, symbol.low, symbol.high, named=False)
                        self.sizes[symbol] = of_atom(new)
                        self._learn(symbol)
        return tuple(self.renamed(shape) for shape in shapes)

    def _name_of(self, node: Node, args: Sequence[Term | None]) -> str:
        """A name of what a node computes: of its op, its operands, its attributes and bodies."""
        _, since = document(node.op, node.domain, node.version)
        key: tuple[object, ...] = (node.domain, since, attributes_of(node))
        parts = list(args)
        for body in sorted(node.bodies, key=lambda body: body.name):
            key = (*key, (body.name, len(body.outputs)))
            try:
                read = self._of_handed if node.op in ("Loop", "Scan") else self._attempt
                parts += read(body)
            except (Opaque, *SURPRISES):
                key = (*key, len(self.builder.terms.every), id(self))
        if node.op in _RANDOM:
            key = (*key, node.scope, node.outputs[0].name)
        first = ["" if part is None else str(self.matching.first(part)) for part in parts]
        return f"{node.op}({', '.join(first)}){hash_of(key)}"

    def _learn(self, new: Symbol) -> None:
        """Learns what the model needs of a size that has its name now."""
        for clause in self.needs.clauses:
            rest = set(clause.symbols) - self.own
            if new in rest and rest <= set(self.sizes):
                self.builder.learn(clause.substitute(self.sizes))

    def renamed(self, shape: Shape | None) -> Shape | None:
        """A shape with these names."""
        if shape is None or not self.sizes:
            return shape
        return tuple(
            plain(size.substitute(self.sizes)) if isinstance(size, Dim) else size for size in shape
        )


def hash_of(attributes: tuple[object, ...]) -> str:
    """Attributes as a short name."""
    return hashlib.sha256(repr(attributes).encode()).hexdigest()[:12]


def shape_of(value: Value) -> Shape | None:
    """The sizes of a tensor; None where its rank, or a size, has no name."""
    if value.shape is None:
        return None
    sizes: list[Number] = []
    for size in value.shape:
        if size is None or isinstance(size, str):
            return None
        sizes.append(size)
    return tuple(sizes)


def _is_same(node: Node, args: Sequence[Term | None]) -> bool:
    """Whether an op gives back its operand, of whatever rank."""
    first = args[0] if args else None
    if first is None or node.op not in ("Identity", "Cast"):
        return False
    return node.op == "Identity" or (
        first.dtype is not None and first.dtype == node.outputs[0].dtype
    )


def _counted(
    attributes: tuple[object, ...], node: Node, args: Sequence[Term | None]
) -> tuple[object, ...]:
    """Attributes with an axis of the first operand counted from 0."""
    axis = node.attributes.get("axis")
    first = args[0] if args else None
    if node.domain or node.op not in _OF_AN_AXIS or first is None or not first.ranked:
        return attributes
    rank = len(first.shape)
    if not isinstance(axis, int) or not -rank <= axis < 0:
        return attributes
    return tuple(("axis", axis + rank) if row == ("axis", axis) else row for row in attributes)


def _those_there(args: Sequence[Term | None]) -> tuple[tuple[int, ...], list[Term]]:
    """The positions that are left out before the last operand, and the operands."""
    there = [arg for arg in args if arg is not None]
    last = max((k for k, arg in enumerate(args) if arg is not None), default=0)
    return tuple(k for k, arg in enumerate(args[:last]) if arg is None), there


def _false(term: Term) -> bool:
    return term.number_of is not None and not term.number_of


__all__ = ["Reader", "shape_of"]
