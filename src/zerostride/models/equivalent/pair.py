"""Two models with one set of open sizes: their inputs paired, their conditions compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import ModelError, printable
from ...sizes import Answer
from ...sizes.condition import ALWAYS, Condition, all_of, eq
from ...sizes.dim import Dim, Symbol, dim
from ...sizes.solve import decide, values_for
from ..flow.input_sizes import named_inputs, sized
from ..flow.resolved import resolved
from ..format_table import lowered
from ..ir.graph import Graph, Value

#: Names of inputs that an error lists.
_MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class Pair:
    """Two models whose inputs have the same names and sizes.

    Attributes:
        ours, theirs: the graphs with the sizes of every tensor, in ONNX's ops. A size that is a
            number in one of them is that number in both.
        files: the same graphs without the sizes of tensors inside.
        original: the first model with all of its open sizes.
        needs: the conditions of `ours` and `theirs` on sizes, those of tensors inside included.
        works: for which sizes of the inputs each model works.
        fixed: sizes that are a number in the first model and open in the second, in words.
        names: the names of the second model's inputs in its file, by those of the first.
        outputs: pairs of names of outputs.
    """

    ours: Graph
    theirs: Graph
    files: tuple[Graph, Graph]
    original: Graph
    needs: tuple[Condition, Condition]
    works: tuple[Condition, Condition]
    fixed: tuple[str, ...]
    names: Mapping[str, str]
    outputs: tuple[tuple[str, str], ...]

    @property
    def condition(self) -> Condition:
        """What both need of the sizes of the inputs that are open in both."""
        own = set(self.symbols)
        clauses = [clause for need in self.needs for clause in need.clauses]
        return all_of(clause for clause in clauses if own.issuperset(clause.symbols))

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The sizes of the inputs that are open in both."""
        return _symbols(self.ours)

    @property
    def words(self) -> str:
        """For which sizes both work; "" for all."""
        whole = all_of(self.works)
        return "" if whole.always else str(whole)

    def only_ours(self) -> Iterator[tuple[Condition, dict[Symbol, int]]]:
        """Yield what the second model needs and the first does not, with sizes that show it."""
        return _more(self.works[1], self.works[0], _symbols(self.original))

    def only_theirs(self) -> str:
        """Sizes for which only the second model works, in words; "" if none are known."""
        more = _more(self.works[0], self.works[1], _symbols(self.original))
        words = [f"sizes that do not meet {clause}" for clause, _ in more]
        return "; ".join([*(f"{name} other than that" for name in self.fixed), *words])


def _more(
    needs: Condition, beside: Condition, symbols: Sequence[Symbol]
) -> Iterator[tuple[Condition, dict[Symbol, int]]]:
    """Yield clauses that another condition does not imply, with sizes that show it."""
    for clause in needs.clauses:
        if decide(clause, beside).answer is Answer.YES:
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
    names = _names("input", ours.inputs, theirs.inputs, ours.path, theirs.path)
    outputs = _names("output", ours.outputs, theirs.outputs, ours.path, theirs.path)
    original = _bare(ours)
    numbers, narrowed, fixed = _compared(original, theirs, names)
    first = sized(original, numbers) if numbers else original
    shapes = dict(zip((v.name for v in first.inputs), named_inputs(first), strict=True))
    back = {other: name for name, other in names.items()}
    inputs = {id(value) for value in theirs.inputs}

    def change(value: Value, _: int) -> Value:
        shape = shapes.get(back.get(value.name, "")) if id(value) in inputs else None
        return value if shape is None else replace(value, shape=shape, declared=shape)

    second = _bare(replace(theirs.with_values(change), sized=True))
    whole, needs = zip(*(_with_sizes(graph, facts) for graph in (first, second)), strict=True)
    own = set(_symbols(original))
    all_needs = (
        (_with_sizes(original, facts)[1] if numbers else needs[0]),
        all_of([*narrowed, needs[1]]),
    )
    works = [
        all_of(clause for clause in need.clauses if own.issuperset(clause.symbols))
        for need in all_needs
    ]
    return Pair(
        whole[0],
        whole[1],
        (first, second),
        original,
        (needs[0], needs[1]),
        (works[0], works[1]),
        fixed,
        names,
        tuple(outputs.items()),
    )


def _with_sizes(graph: Graph, facts: Condition) -> tuple[Graph, Condition]:
    whole, needs, _ = resolved(graph, facts)
    return lowered(whole), needs


def _compared(
    ours: Graph, theirs: Graph, names: Mapping[str, str]
) -> tuple[dict[str, int], list[Condition], tuple[str, ...]]:
    """The sizes that only one model leaves open.

    Returns:
        Numbers for sizes of the first model, what the second so needs of them, and the sizes that
        the first alone fixes, in words.
    """
    others = dict(zip((v.name for v in theirs.inputs), named_inputs(theirs), strict=True))
    numbers: dict[str, int] = {}
    narrowed: list[Condition] = []
    fixed: list[str] = []
    for value, shape in zip(ours.inputs, named_inputs(ours), strict=True):
        other = others.get(names.get(value.name, ""))
        if shape is None or other is None:
            continue
        where = printable(value.name)
        if len(shape) != len(other):
            raise ModelError(
                f"the input {where!r} has {len(shape)} axes in {ours.path}, and {len(other)} in "
                f"{theirs.path}"
            )
        for axis, (size, its) in enumerate(zip(shape, other, strict=True)):
            if isinstance(size, int) and isinstance(its, int) and size != its:
                raise ModelError(
                    f"the input {where!r} has the size {size} along axis {axis} in {ours.path}, "
                    f"and {its} in {theirs.path}"
                )
            if isinstance(its, int) and not isinstance(size, int):
                numbers[f"{value.name}[{axis}]"] = its
                narrowed.append(eq(dim(size), its))
            elif isinstance(size, int) and not isinstance(its, int):
                fixed.append(f"{where}[{axis}]={size}")
    return numbers, narrowed, tuple(fixed)


def _names(
    kind: str, ours: Sequence[Value], theirs: Sequence[Value], model: str, other: str
) -> dict[str, str]:
    """Names of one model with those of the other: by name, or by position.

    An optimiser may drop an input that nothing reads; an output is never dropped.
    """
    own, its = [value.name for value in ours], [value.name for value in theirs]
    common = {name: name for name in own if name in its}
    if len(common) == len(its) and (kind == "input" or len(common) == len(own)):
        return common
    if len(own) == len(its):
        return dict(zip(own, its, strict=True))
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
