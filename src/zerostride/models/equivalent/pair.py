"""Two models with one set of open sizes: their inputs paired, their conditions compared."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import ModelError, printable
from ...sizes import Answer
from ...sizes.budget import SpentError
from ...sizes.condition import ALWAYS, NEVER, Condition, all_of, eq
from ...sizes.dim import Dim, Symbol, dim
from ...sizes.simplify import pinning
from ...sizes.solve import decide, values_for
from ..flow.input_sizes import named_inputs, sized
from ..flow.resolved import resolved
from ..ir.graph import Graph, Value
from .batch import in_onnx_ops, with_batch_axes

#: Names of inputs that an error lists.
_MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class Pair:
    """Two models whose inputs have the same names and sizes.

    Attributes:
        ours, theirs: the graphs with the sizes of every tensor, in ONNX's ops. A size that is a
            number in one of them is that number in both.
        files: the same graphs without the sizes of tensors inside.
        read: both models as they were read.
        original: the first model with all of its open sizes.
        needs: the conditions of `ours` and `theirs` on sizes, those of tensors inside included.
        works: for which sizes of the inputs each model works.
        narrowed: what the second needs because its file has numbers for sizes that the first leaves
            open.
        fixed: sizes that are a number in the first model and open in the second, in words.
        names: the names of the second model's inputs in its file, by those of the first.
        outputs: pairs of names of outputs.
        facts: what the caller knows of sizes.
        branches: conditions on sizes that decide which branch of an If runs, in either.
        failing: the paths of nodes of `ours` and of `theirs` that fail for all sizes, also those in
            bodies that may not run.
        fails: whether one of them fails for all sizes.
    """

    ours: Graph
    theirs: Graph
    files: tuple[Graph, Graph]
    read: tuple[Graph, Graph]
    original: Graph
    needs: tuple[Condition, Condition]
    works: tuple[Condition, Condition]
    narrowed: Condition
    fixed: tuple[str, ...]
    names: Mapping[str, str]
    outputs: tuple[tuple[str, str], ...]
    facts: Condition
    branches: tuple[Condition, ...]
    failing: tuple[frozenset[str], frozenset[str]]
    fails: bool

    @property
    def condition(self) -> Condition:
        """The needs of both, of the sizes of the inputs that are open in both."""
        return _about(self.symbols, all_of(self.needs))

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The sizes of the inputs that are open in both."""
        return _symbols(self.files[0])

    @property
    def words(self) -> str:
        """For which sizes both work; "" for all."""
        whole = all_of(self.works)
        return "" if whole.always else str(whole)

    @property
    def formats(self) -> frozenset[str]:
        """The formats of both files."""
        return frozenset(graph.format for graph in self.read)

    @property
    def resized(self) -> bool:
        """Whether an engine of the second file takes other sizes than the numbers in it."""
        return self.read[1].format != "onnx"

    def only_ours(self) -> Iterator[tuple[Condition, dict[Symbol, int]]]:
        """Yield what the second model needs and the first does not, with sizes that show it.

        Numbers in an ONNX file are refused for others; engines of other formats resize a model.
        """
        known = all_of([self.works[0], self.narrowed]) if self.resized else self.works[0]
        return _more(self.works[1], known, _symbols(self.original))

    def only_theirs(self) -> str:
        """Sizes for which only the second model works, in words; "" if none are known."""
        more = _more(self.works[0], self.works[1], _symbols(self.original))
        words = [outside(clause) for clause, _ in more]
        return "; ".join([*(f"{name} other than that" for name in self.fixed), *words])


def outside(condition: Condition) -> str:
    """The sizes that do not meet a condition, in words."""
    return "every size" if condition.never else f"sizes that do not meet {condition}"


def _more(
    needs: Condition, beside: Condition, symbols: Sequence[Symbol]
) -> Iterator[tuple[Condition, dict[Symbol, int]]]:
    """Yield clauses that another condition does not imply, with sizes that show it."""
    there = set(beside.clauses)
    for clause in needs.clauses:
        if clause in there or decide(clause, beside).answer is Answer.YES:
            continue
        values = values_for(all_of([beside, ~clause]), symbols)
        if values is not None:
            yield clause, values


def _symbols(graph: Graph) -> tuple[Symbol, ...]:
    sizes = (size for shape in named_inputs(graph) for size in shape or ())
    found = (symbol for size in sizes if isinstance(size, Dim) for symbol in size.symbols)
    return tuple(dict.fromkeys(found))


def paired(ours: Graph, theirs: Graph, facts: Condition = ALWAYS) -> Pair:
    """Pairs two graphs.

    Args:
        ours, theirs: the graphs as they were read.
        facts: conditions on the sizes of the first that the caller knows.

    Raises:
        ModelError: the models have other inputs or outputs, or sizes that contradict each other.
    """
    names = dict(_names("input", ours.inputs, theirs.inputs, ours.path, theirs.path))
    outputs = _names("output", ours.outputs, theirs.outputs, ours.path, theirs.path)
    original, read = _bare(ours), (ours, theirs)
    theirs = with_batch_axes(theirs, ours, names, dict(outputs))
    numbers, narrowed, fixed = _compared(original, theirs, names, read[0].format == read[1].format)
    if decide(all_of([facts, *narrowed])).answer is Answer.NO:
        raise ModelError(
            f"no size that is given works in both: {theirs.path} needs {all_of(narrowed)}"
        )
    first = sized(original, numbers) if numbers else original
    shapes = dict(zip((v.name for v in first.inputs), named_inputs(first), strict=True))
    back = {other: name for name, other in names.items()}
    inputs = {id(value) for value in theirs.inputs}

    def change(value: Value, _: int) -> Value:
        shape = shapes.get(back.get(value.name, "")) if id(value) in inputs else None
        return value if shape is None else replace(value, shape=shape, declared=shape)

    second = _bare(replace(theirs.with_values(change), sized=True))
    sides = [_side(graph, facts) for graph in (first, second)]
    needs = sides[0].needs, sides[1].needs
    symbols = _symbols(original)
    every = (_side(original, facts).needs if numbers else needs[0], all_of([*narrowed, needs[1]]))
    works = [
        NEVER if side.fails else _about(symbols, need)
        for need, side in zip(every, sides, strict=True)
    ]
    shared = _about(symbols, all_of(needs))
    branches = dict.fromkeys(branch for side in sides for branch in side.branches)
    return Pair(
        _solved(sides[0].graph, shared),
        _solved(sides[1].graph, shared),
        (first, second),
        read,
        original,
        needs,
        (works[0], works[1]),
        all_of(narrowed),
        fixed,
        names,
        outputs,
        facts,
        tuple(branch for branch in branches if set(symbols).issuperset(branch.symbols)),
        (sides[0].failing, sides[1].failing),
        any(side.fails for side in sides),
    )


def _about(symbols: Sequence[Symbol], condition: Condition) -> Condition:
    """The clauses that are about these sizes alone."""
    own = set(symbols)
    return all_of(part for part in condition.clauses if own.issuperset(part.symbols))


@dataclass(frozen=True, slots=True)
class _Side:
    """One model with its sizes.

    Attributes:
        graph: with the size of every tensor, in ONNX's ops.
        needs: what it needs of sizes.
        branches: conditions on sizes that decide which branch of an If runs.
        failing: the paths of nodes that fail for all sizes.
        fails: whether one of these runs in every run.
    """

    graph: Graph
    needs: Condition
    branches: tuple[Condition, ...] = ()
    failing: frozenset[str] = frozenset()
    fails: bool = False


def _side(graph: Graph, facts: Condition) -> _Side:
    graph = in_onnx_ops(graph)
    whole, needs, flow = resolved(graph, facts)
    if flow is None:
        return _Side(whole, needs)
    failing = frozenset(failure.node_path for failure in flow.failures)
    fails = any(failure.certain for failure in flow.failures)
    return _Side(whole, needs, flow.branches, failing, fails)


def _solved(graph: Graph, facts: Condition) -> Graph:
    """The graph with sizes that facts decide in their place: 1 for N where N == 1."""
    if not any(clause.kind == "==" for clause in facts.clauses):
        return graph

    try:
        solved = functools.cache(pinning(facts))
    except SpentError:
        return graph

    def change(value: Value, _: int) -> Value:
        shape = value.shape and tuple(solved(s) if isinstance(s, Dim) else s for s in value.shape)
        content = value.content and tuple(map(solved, value.content))
        if shape == value.shape and content == value.content:
            return value
        return replace(value, shape=shape, content=content)

    return graph.with_values(change)


def _compared(
    ours: Graph, theirs: Graph, names: Mapping[str, str], one_format: bool
) -> tuple[dict[str, int], list[Condition], tuple[str, ...]]:
    """The sizes that only one model leaves open.

    Returns:
        Numbers for sizes of the first model, what the second so needs of them, and the sizes that
        the first alone fixes, in words.
    """
    others = dict(zip((v.name for v in theirs.inputs), named_inputs(theirs), strict=True))
    its = {value.name: value for value in theirs.inputs}
    numbers: dict[str, int] = {}
    narrowed: list[Condition] = []
    fixed: list[str] = []
    for value, shape in zip(ours.inputs, named_inputs(ours), strict=True):
        other = others.get(names.get(value.name, ""))
        if shape is None or other is None:
            continue
        where = printable(value.name)
        if one_format:  # files of other formats may lack some types
            _same_type(where, value, its[names[value.name]], ours, theirs)
        if len(shape) != len(other):
            raise ModelError(
                f"the input {where!r} has {len(shape)} axes in {ours.path}, and {len(other)} in "
                f"{theirs.path}"
            )
        for axis, (size, number) in enumerate(zip(shape, other, strict=True)):
            if isinstance(size, int) and isinstance(number, int) and size != number:
                raise ModelError(
                    f"the input {where!r} has the size {size} along axis {axis} in {ours.path}, "
                    f"and {number} in {theirs.path}"
                )
            if isinstance(number, int) and not isinstance(size, int):
                numbers[f"{value.name}[{axis}]"] = number
                narrowed.append(eq(dim(size), number))
            elif isinstance(size, int) and not isinstance(number, int):
                fixed.append(f"{where}[{axis}]={size}")
    return numbers, narrowed, tuple(fixed)


def _same_type(where: str, value: Value, other: Value, ours: Graph, theirs: Graph) -> None:
    """Refuses inputs of two element types."""
    types = value.dtype, other.dtype
    if None not in types and types[0] != types[1]:
        raise ModelError(
            f"the input {where!r} is of {types[0]} in {ours.path}, and of {types[1]} in "
            f"{theirs.path}"
        )


def _names(
    kind: str, ours: Sequence[Value], theirs: Sequence[Value], model: str, other: str
) -> tuple[tuple[str, str], ...]:
    """Names of one model with those of the other: by name, or by position.

    An optimiser may drop an input that nothing reads; an output is never dropped.
    """
    own, its = [value.name for value in ours], [value.name for value in theirs]
    common = tuple((name, name) for name in dict.fromkeys(own) if name in its)
    if len(common) == len(its) and (kind == "input" or len(common) == len(own)):
        return common
    if len(own) == len(its):
        return tuple(zip(own, its, strict=True))
    lists = [printable(", ".join(names[:_MOST_NAMED])) or "none" for names in (own, its)]
    raise ModelError(f"the {kind}s of {model} are {lists[0]}, and those of {other} {lists[1]}")


def _bare(graph: Graph) -> Graph:
    """The graph without the sizes that the file declares inside: they may be of other inputs."""
    inputs = {id(value) for value in graph.inputs}

    def change(value: Value, _: int) -> Value:
        if id(value) in inputs or value.constant or value.shape is None:
            return value
        return replace(value, shape=None, declared=None)

    return graph.with_values(change)


__all__ = ["Pair", "outside", "paired"]
