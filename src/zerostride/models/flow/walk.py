"""The walk through a graph: gives each op's row its operands' facts, and its results the answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ...errors import printable
from ...sizes import MAX_ELEMENTS, MAX_RANK
from ...sizes.budget import FLOW_STEPS, SpentError, allowance, overdrawn
from ...sizes.condition import ALWAYS, Condition, eq, ge
from ...sizes.dim import Dim, Number, Symbol, dim, lone_symbol, of_atom, plain
from ..format_table import FORMATS, module_of
from ..ir.graph import FileShape, Graph, Node, Value
from ..needs import Failure, Ledger, Need, decided, undecided
from ..onnx_ops.sizes.facts import (
    SURPRISES,
    UNKNOWN,
    Fact,
    NoSizes,
    OpCall,
    Open,
    Unclear,
)
from ..onnx_ops.sizes.numbers import exact
from . import bodies
from .answers import RowAnswer, ask, first_line
from .input_sizes import named_inputs, size_in_file
from .result import Flow, known_part
from .truths import truth_of

#: A format's `lower`: a node translated to ONNX ops, or None.
Lower = Callable[[Node], "tuple[Node, ...] | None"]


def flow(graph: Graph, *, given: Condition = ALWAYS, lower: Lower | None = None) -> Flow:
    """The sizes of every tensor of a graph in terms of those of its inputs.

    Args:
        graph: the model.
        given: conditions on its sizes that the caller knows.
        lower: translates each node to ONNX ops when the walk reaches it and its operands' ranks are
            known; without it nodes are used as they are.
    """
    with allowance(FLOW_STEPS):
        return _flow(graph, given, lower)


def _flow(graph: Graph, assumed: Condition, lower: Lower | None) -> Flow:
    walk = Walk(graph, assumed, lower)
    walk.inputs()
    for node in graph.nodes:
        if not node.scope:
            walk.node(node)
    return Flow(
        graph,
        tuple(walk.needs),
        tuple(walk.failures),
        tuple(dict.fromkeys(map(printable, walk.notes))),
        MappingProxyType({symbol.name: size for symbol, size in walk.aliases.items()}),
        tuple(walk.named),
        MappingProxyType(walk.facts),
        tuple(walk.branches),
    )


class Walk:
    """One walk through a model.

    Attributes:
        facts: facts of tensors, by identity.
        needs, failures, notes: the walk's results.
        named: the symbols of the inputs.
        aliases: the sizes for which names inside the model stand.
        unnamed_sizes: the sizes without a name, in the order in which they were made.
        truths: when a truth value that sizes decide is true, by the identity of its tensor.
        branches: these conditions of each If, as far as nothing decides them.
        unsure: number of bodies around the current node that may not run.
        quiet: number of trial passes through bodies around the current node.
        beyond: whether the command's allowance is used up, so that open sizes are not followed.
    """

    def __init__(self, graph: Graph, assumed: Condition, lower: Lower | None = None) -> None:
        self.graph = graph
        self._lower = lower
        # Facts are kept by identity, so the lowered nodes must live as long as the facts.
        self._alive: list[tuple[Node, ...]] = []
        self.ledger = Ledger(assumed)
        self.facts: dict[int, Fact] = {}
        self.needs: list[Need] = []
        self.failures: list[Failure] = []
        self.notes: list[str] = []
        self.named: dict[Symbol, None] = dict.fromkeys(assumed.symbols)
        self.aliases: dict[Symbol, Number] = {}
        self.unnamed_sizes: list[Symbol] = []
        self.truths: dict[int, Condition] = {}
        self.branches: dict[Condition, None] = {}
        self.unsure = 0
        self.quiet = 0
        self.beyond = False
        # The walk passes through each body several times, so nesting multiplies the work: a bound.
        self.steps = 20 * len(graph.nodes) + 1000
        # The format's own rules judge the ops that have no equivalent in ONNX.
        module = None if graph.format == "onnx" else module_of(graph)
        self._find = None if module is None else module.find_site
        self._rows = getattr(module, "SIZES", {})
        self._hints = FORMATS[graph.format].hints
        self._taken: set[str] = set()
        self._answers: dict[Hashable, RowAnswer] = {}
        self._sizes: dict[Hashable, Number] = {}

    # Sizes of the file.

    def inputs(self) -> None:
        """Gives the model's inputs their shapes from the file."""
        for value, shape in zip(self.graph.inputs, named_inputs(self.graph), strict=True):
            if shape is None:
                self.facts[id(value)] = UNKNOWN
                continue
            for number in _ints(value.declared or value.shape):
                self.read(number, value.name)
            for size in shape:
                symbols = dim(size).symbols
                self._taken.update(symbol.name for symbol in symbols)
                self.named.update(dict.fromkeys(s for s in symbols if s.named))
                words = f"the size {size} is not below 0"
                self._require(f"the input {value.name}", "", ge(size, 0), words)
            self.facts[id(value)] = Fact(shape)

    def read(self, size: Any, where: str) -> Number | None:
        """A size of the file; None if it is unknown."""
        extent = size_in_file(size)
        if extent is None and isinstance(size, int):
            self.notes.append(f"{where}: a size of {size} in the file is taken as unknown")
        return extent

    # Facts.

    def fact(self, value: Value | None) -> Fact:
        """The fact of a tensor."""
        if value is None:
            return UNKNOWN
        fact = self.facts.get(id(value))
        if fact is None:
            fact = self.facts[id(value)] = self.constant(value)
        return fact

    def constant(self, value: Value) -> Fact:
        """The fact of a constant of the file; unknown for other values."""
        shape = value.shape if value.constant else None
        if shape is None or not all(isinstance(size, int) for size in shape):
            return UNKNOWN
        if len(shape) > MAX_RANK or any(not 0 <= s <= MAX_ELEMENTS for s in _ints(shape)):
            self.notes.append(f"{value.name}: the constant's shape {shape} is taken as unknown")
            return UNKNOWN
        content: Any = value.content
        if value.reals is not None:
            content = tuple(map(exact, value.reals))
        return Fact(tuple(_ints(shape)), content)

    def close(self, fact: Fact, name: str, opened: dict[int, Symbol]) -> Fact:
        """The fact with a symbol for every open size; `opened` keeps the symbols of one node."""
        if fact.shape is None or not any(isinstance(size, Open) for size in fact.shape):
            return fact
        sizes = []
        for axis, size in enumerate(fact.shape):
            if isinstance(size, Open):
                if id(size) not in opened:
                    opened[id(size)] = self.unnamed(f"{name}[{axis}]", size.low, size.high)
                size = of_atom(opened[id(size)])
            sizes.append(size)
        return Fact(tuple(sizes), fact.content)

    def unnamed(self, name: str, low: int = 0, high: int | None = None) -> Symbol:
        """A new symbol, named after the axis where it appears; names are unique."""
        name = printable(name)
        unique, count = name, 1
        while unique in self._taken:
            count += 1
            unique = f"{name}'{count}"
        if not self.quiet:
            self._taken.add(unique)
        else:
            # It lives for one trial pass; the final pass gives the name that users see.
            unique = f"{unique}~{len(self.unnamed_sizes)}"
        symbol = Symbol(unique, max(low, 0), high, named=False)
        self.unnamed_sizes.append(symbol)
        return symbol

    # Nodes.

    def node(self, node: Node) -> None:
        """Gives the results of a node their facts."""
        if self._lower is not None and node.domain:
            ranked = self._with_ranks(node)
            lowered = self._lower(ranked) or (node,)
            self._alive.append((ranked, *lowered))  # a row may drop operands of `ranked`
            for one in lowered:
                self._node(one)
        else:
            self._node(node)

    def _with_ranks(self, node: Node) -> Node:
        """The node with the known shapes and contents in its operands."""
        inputs = []
        for value in node.inputs:
            fact = self.fact(value)
            if value is not None:
                value = known_part(value, fact)
                self.facts[id(value)] = fact
            inputs.append(value)
        return replace(node, inputs=tuple(inputs))

    def _node(self, node: Node) -> None:
        self.steps -= 1
        facts = tuple(None if value is None else self.fact(value) for value in node.inputs)
        if node.op == "Constant" and node.domain == "" and not node.inputs:
            results: tuple[Fact, ...] = tuple(map(self.constant, node.outputs))
        elif overdrawn() and (node.bodies or any(map(_open, facts))):
            results = self._without_allowance(node)
        elif node.bodies:
            results = self._with_bodies(node, facts)
        else:
            results = self.take(node, self.answer(node, facts))
        truth = truth_of(node, facts, self.truths)
        for value in node.outputs[:1]:  # an earlier pass through a loop may have known more
            self.truths.pop(id(value), None)
            if truth is not None:
                self.truths[id(value)] = truth
        opened: dict[int, Symbol] = {}
        for value, fact in zip(node.outputs, results, strict=False):
            fact = self.settled(self.close(fact, value.name or node.path, opened))
            self.facts[id(value)] = self.claimed(node, value, fact, set(opened.values()))
        for value in node.outputs[len(results) :]:
            self.facts[id(value)] = self.claimed(node, value, UNKNOWN, set())

    def settled(self, fact: Fact) -> Fact:
        """The fact with each max, min and broadcast in its sizes decided where conditions allow."""
        if fact.shape is None or not any(map(undecided, fact.shape)):
            return fact
        sizes = []
        for size in fact.shape:
            if undecided(size):
                key = ("size", size, self.ledger.state)
                if key not in self._sizes:
                    self._sizes[key] = decided(size, self.ledger.implies)
                size = self._sizes[key]
            sizes.append(size)
        return Fact(tuple(sizes), fact.content)

    def _with_bodies(self, node: Node, facts: tuple[Fact | None, ...]) -> tuple[Fact, ...]:
        quiet, unsure = self.quiet, self.unsure
        try:
            return bodies.run(self, node, facts)
        except NoSizes as refusal:
            self.fail(node, str(refusal))
        except Unclear:
            pass
        except SURPRISES as surprise:
            self.note(node, surprise)
        self.quiet, self.unsure = quiet, unsure
        return (UNKNOWN,) * len(node.outputs)

    def take(self, node: Node, answer: RowAnswer) -> tuple[Fact, ...]:
        """Records an answer's failure, needs and notes; returns its facts."""
        if answer.failure is not None:
            self.fail(node, answer.failure)
        for condition, words in answer.needs:
            self.need(node, condition, words)
        if not self.quiet:
            self.notes += [f"{node.path}: {note}" for note in answer.notes]
        return tuple(map(self._by_needs, answer.facts))

    def _by_needs(self, fact: Fact) -> Fact:
        """The fact with each broadcast of sizes replaced by its argument where conditions allow."""
        if fact.shape is None or not any(isinstance(size, Dim) for size in fact.shape):
            return fact
        return Fact(tuple(map(self.ledger.one_of, fact.shape)), fact.content)

    def answer(self, node: Node, facts: tuple[Fact | None, ...]) -> RowAnswer:
        """The answer of the op's row; equal calls share one answer."""
        attributes = tuple(sorted(node.attributes.items())) if node.attributes else ()
        key = (node.op, node.domain, node.version, attributes, facts, len(node.outputs))
        here = (key, self.ledger.state)
        answer = self._answers.get(key) or self._answers.get(here)
        if answer is None:
            call = OpCall(
                node.op, node.domain, node.version, facts, node.attributes, len(node.outputs)
            )
            call.holds = self.ledger.implies
            call.find, call.rows = self._find, self._rows
            answer = ask(call)
            # An answer that used the ledger is valid in this state of the ledger only.
            self._answers[here if call.local else key] = answer
        return answer

    def _without_allowance(self, node: Node) -> tuple[Fact, ...]:
        """Unknown results: the allowance of the command is used up."""
        if not self.beyond:
            self.beyond = True
            self.notes.append(
                f"{node.path}: open sizes are not followed from here on: {SpentError()}"
            )
        return (UNKNOWN,) * len(node.outputs)

    # Results.

    def need(self, node: Node, condition: Condition, words: str) -> None:
        """Records the part of a condition that is not known to hold."""
        if not self.quiet:
            self._require(node.path, node.op, condition, words)

    def _require(self, path: str, op: str, condition: Condition, words: str) -> None:
        new = self.ledger.fresh(condition)
        if new is None:
            contradiction = (
                "" if condition.never else f"; {condition} contradicts what else must hold"
            )
            self.failures.append(
                Failure(path, op, printable(words) + contradiction, not self.unsure)
            )
        elif not new.always:
            self.needs.append(Need(path, op, new, printable(words), not self.unsure))

    def fail(self, node: Node, words: str) -> None:
        """Records that no sizes satisfy a node."""
        if not self.quiet:
            self.failures.append(Failure(node.path, node.op, printable(words), not self.unsure))

    def note(self, node: Node, surprise: BaseException) -> None:
        """Records that a node could not be followed."""
        self.notes.append(f"{node.path}: {node.op} could not be followed: {first_line(surprise)}")

    # Declared sizes.

    def claimed(self, node: Node, value: Value, fact: Fact, opened: set[Symbol]) -> Fact:
        """The fact combined with the sizes that the file declares.

        An unknown size is taken from the file. For a known size both must hold, unless files of
        the format only hint at sizes.
        """
        declared = value.declared
        if declared is None or len(declared) > MAX_RANK:
            return fact
        if fact.shape is None:
            return self._adopted(value, declared, fact)
        if self._hints:
            return self._hinted(fact, declared, opened)
        if len(declared) != len(fact.shape):
            sizes_text = ", ".join(map(str, fact.shape))
            message = f"the file says {value.name} has rank {len(declared)}; it is ({sizes_text})"
            self.fail(node, message)
            return fact
        sizes = tuple(
            self._one_claim(node, value, axis, size, written, opened)
            for axis, (size, written) in enumerate(zip(fact.shape, declared, strict=True))
        )
        return Fact(sizes, fact.content)

    def _hinted(self, fact: Fact, declared: Sequence[Any], opened: set[Symbol]) -> Fact:
        """The fact with the file's numbers for unknown sizes."""
        if fact.shape is None or len(declared) != len(fact.shape):
            return fact
        pairs = zip(fact.shape, declared, strict=True)
        sizes = (n if lone_symbol(s) in opened and isinstance(n, int) else s for s, n in pairs)
        return Fact(tuple(sizes), fact.content)

    def _adopted(self, value: Value, declared: Sequence[Any], fact: Fact) -> Fact:
        sizes = []
        for size in declared:
            extent = self.read(size, value.name)
            if extent is not None:
                extent = self._settled(extent)
                self.named.update(dict.fromkeys(dim(extent).symbols))
            sizes.append(Open() if extent is None else extent)
        return self.close(Fact(tuple(sizes), fact.content), value.name, {})

    def _settled(self, size: Number) -> Number:
        """A size of the file with each known name replaced by its size."""
        if isinstance(size, int) or not self.aliases:
            return size
        try:
            return plain(size.substitute(self.aliases))
        except ArithmeticError:
            return size

    def _one_claim(
        self, node: Node, value: Value, axis: int, size: Number, written: Any, opened: set[Symbol]
    ) -> Number:
        claim = self.read(written, value.name)
        if claim is None:
            return size
        name = lone_symbol(claim)
        claim = self._settled(claim)
        if claim == size:
            return size
        if lone_symbol(size) in opened:
            self.named.update(dict.fromkeys(dim(claim).symbols))
            return claim
        strange = [symbol for symbol in dim(claim).symbols if symbol not in self.named]
        if strange and all(symbol.named for symbol in strange):
            # The file names this size here; later declarations may use the name.
            if name is not None and name == lone_symbol(claim):
                self.aliases[name] = size
            return size
        words = f"the file says {value.name}'s axis {axis} is {written}; it is {size}"
        condition = eq(size, claim)
        self.need(node, condition, words)
        return claim if isinstance(claim, int) and not condition.never else size


def _open(fact: Fact | None) -> bool:
    """Whether a size of a tensor is open, or one of its numbers."""
    numbers = () if fact is None else (*(fact.shape or ()), *(fact.content or ()))
    return any(isinstance(number, Dim) for number in numbers)


def _ints(shape: FileShape) -> Iterator[int]:
    return (size for size in shape or () if isinstance(size, int))
