"""Numbers for the open sizes of a model's inputs, where a caller gives none.

They are the smallest of a ladder that meet the model's needs and show its broadcasts: a size is 1
only if it counts samples, no two sizes are alike, and no tensor inside shrinks to 1 where a larger
input keeps it wider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import combinations, islice, product

from ...errors import ZerostrideError
from ...sizes.condition import ALWAYS, Condition
from ...sizes.dim import Dim, Number, Symbol, lone_symbol, plain
from ..flow.advice import SizeOptions
from ..flow.input_sizes import sized
from ..flow.resolved import resolved
from ..ir.graph import Graph
from ..transport.batch_sizes import named_batch, sizes_of_samples

#: The ladder: a size, and the step to the next size of the same model. Words of a text, then
#: multiples of what images are halved by, then frames of sound.
_LADDER = (
    (5, 2), (8, 4), (16, 8), (32, 16), (48, 48), (64, 32), (96, 64), (128, 64), (192, 128),
    (224, 96), (320, 64), (416, 96), (512, 128), (640, 320), (1024, 512), (1600, 800),
    (2048, 1024), (4000, 2000), (8000, 4000), (16000, 8000), (48000, 16000),
)  # fmt: skip
#: Sizes of more symbols climb the ladder together.
_MOST_APART = 2
#: The most sizes that are 1 though nothing says that they count samples.
_MOST_ONES = 2
#: The most numbers that are tried, of expressions that numbers are put into for that, and the most
#: that are asked of the whole graph: fewer of a large one.
_MOST_TRIED, _MOST_PUT, _MOST_ASKED = 1200, 60_000, 16
_LARGE, _MOST_ASKED_OF_LARGE = 2000, 3
#: Numbers of the model's needs that are tried.
_MOST_NAMED = 8
#: Needs that are looked at before the graph is asked.
_MOST_CLAUSES = 200
#: Tensors whose sizes are looked at.
_MOST_TENSORS = 2000

#: Ops whose second last axis of a state counts samples, and their states' operands.
_RECURRENT, _STATES = frozenset({"GRU", "LSTM", "RNN"}), slice(5, 7)

#: Numbers by the names of sizes.
Numbers = dict[str, int]


class Look(IntEnum):
    """How much a run with some sizes shows of the model; more is larger.

    Attributes:
        FAILS: the model does not run.
        PLAIN: it runs, but each result has one number in all places, or one is not finite.
        SHOWS: it runs, its results are finite, and one has different numbers.
    """

    FAILS = 0
    PLAIN = 1
    SHOWS = 2


def chosen_sizes(
    graph: Graph,
    runs: Callable[[Graph], Look] = lambda graph: Look.SHOWS,
    facts: Condition = ALWAYS,
) -> Numbers:
    """A number for each open size of the inputs; none if the rank of an input is not known.

    Args:
        graph: the model.
        runs: what a run of the graph with numbers for its sizes shows; asked last.
        facts: conditions that the caller knows.

    Returns:
        Numbers by the names of sizes, as `sizes` of every command takes them; empty if all sizes
        are known, or no numbers that were tried meet the model's needs.
    """
    symbols = SizeOptions(graph).symbols
    if not symbols or any(value.shape is None for value in graph.inputs):
        return {}
    whole, needs, before = resolved(graph, facts)
    counted = {symbol: max(1, symbol.low or 0) for symbol in _samples(whole) if symbol in symbols}
    free = [symbol for symbol in symbols if symbol not in counted]
    failing = before is not None and not before.ok

    clauses = needs.clauses[:_MOST_CLAUSES]

    def meets(numbers: Mapping[Symbol, int]) -> bool:
        return not any(clause.substitute(numbers).never for clause in clauses)

    def look(numbers: Mapping[Symbol, int]) -> Look:
        return _look(graph, _named(numbers), runs, failing=failing)

    ladder = _ladder(clauses)
    for count in range(min(len(free), _MOST_ONES) + 1):
        for ones in combinations(free, count):  # further sizes may count samples unseen
            fixed = counted | dict.fromkeys(ones, 1)
            best = _smallest(whole, symbols, fixed, ladder, meets, look)
            if best:
                return {symbol.name: best[symbol] for symbol in symbols}
    return {}


def _named(numbers: Mapping[Symbol, int]) -> Numbers:
    return {symbol.name: number for symbol, number in numbers.items()}


def _smallest(
    graph: Graph,
    symbols: Sequence[Symbol],
    fixed: Mapping[Symbol, int],
    ladder: Sequence[tuple[int, int]],
    meets: Callable[[Mapping[Symbol, int]], bool],
    look: Callable[[Mapping[Symbol, int]], Look],
) -> dict[Symbol, int]:
    """The first numbers of the ladder that compute: those that show most and lose fewest sizes.

    Args:
        graph: the graph with its sizes.
        symbols: the sizes.
        fixed: the numbers of some of them.
        ladder: the numbers that are tried.
        meets: whether numbers meet the model's needs.
        look: what a run with numbers shows.
    """
    free = [symbol for symbol in symbols if symbol not in fixed]
    inside = _open_inside(graph, free)
    most = min(_MOST_TRIED, _MOST_PUT // (len(inside) + 1))
    left = _MOST_ASKED if len(graph.nodes) < _LARGE else _MOST_ASKED_OF_LARGE
    most_shown, least, best = Look.FAILS, -1, dict[Symbol, int]()
    for numbers in islice(_tries(free, ladder), most):
        every = {**fixed, **numbers}
        if not _bounded(every) or not meets(every):
            continue
        lost = _lost(inside, numbers)
        if most_shown is Look.SHOWS and lost >= least:
            continue
        if not left:
            break
        left -= 1
        shown = look(every)
        if shown > most_shown or (best and shown == most_shown and lost < least):
            most_shown, least, best = shown, lost, every
        if most_shown is Look.SHOWS and not least:
            break
    return best


def _samples(graph: Graph) -> set[Symbol]:
    """The symbols that count samples: by their names and uses, and those of recurrent states."""
    first = [value.shape[0] for value in graph.inputs if value.shape]
    sizes = [size for size in first if isinstance(size, Dim) and named_batch(size)]
    for node in graph.nodes:
        if node.onnx_op in _RECURRENT:
            shapes = [value.shape or () for value in node.inputs[_STATES] if value is not None]
            sizes += [s[-2] for s in shapes if len(s) > 1 and isinstance(s[-2], Dim)]
    lone = {symbol for symbol in map(lone_symbol, sizes) if symbol is not None}
    return lone | {*sizes_of_samples(graph, None, every=False).ones}


def _ladder(clauses: Sequence[Condition]) -> list[tuple[int, int]]:
    """The ladder, and above it the numbers that the model's needs name: a size is as large as a
    constant that it meets."""
    named = {abs(size.const) for clause in clauses for size in clause.sizes()}
    fixed = [(number, 0) for number in sorted(named) if 1 < number < _LADDER[-1][0]]
    return [*_LADDER, *fixed[:_MOST_NAMED]]


def _tries(
    symbols: Sequence[Symbol], ladder: Sequence[tuple[int, int]]
) -> Iterator[dict[Symbol, int]]:
    """Numbers for sizes: from small to large, no two alike."""
    if not symbols:
        yield {}
    elif len(symbols) <= _MOST_APART:
        steps = range(len(ladder))
        rungs = sorted(product(steps, repeat=len(symbols)), key=lambda rung: (max(rung), rung))
        # All on one rung first; then any.
        together = [(k,) * len(symbols) for k in steps]
        for rung in dict.fromkeys([*together, *rungs]):
            yield _on(symbols, rung, ladder)
    else:
        for k in range(len(ladder)):
            yield _on(symbols, (k,) * len(symbols), ladder)


def _on(
    symbols: Sequence[Symbol], rungs: Sequence[int], ladder: Sequence[tuple[int, int]]
) -> dict[Symbol, int]:
    """Sizes on rungs of the ladder; each takes one step more than the size before it."""
    pairs = enumerate(zip(symbols, rungs, strict=True))
    return {symbol: ladder[rung][0] + k * ladder[rung][1] for k, (symbol, rung) in pairs}


def _bounded(numbers: Mapping[Symbol, int]) -> bool:
    """Whether the numbers are within the bounds that the file gives."""
    return all(
        (symbol.low or 0) <= number and (symbol.high is None or number <= symbol.high)
        for symbol, number in numbers.items()
    )


def _open_inside(graph: Graph, symbols: Sequence[Symbol]) -> list[Dim]:
    """The different sizes of tensors that depend on these sizes."""
    wanted = frozenset(symbols)
    values = islice(graph.values(), _MOST_TENSORS)
    sizes = (size for value in values for size in value.shape or ())
    found = (size for size in sizes if isinstance(size, Dim) and wanted & {*size.symbols})
    return list(dict.fromkeys(found))


def _lost(sizes: Sequence[Dim], numbers: Mapping[Symbol, Number]) -> int:
    """How many sizes do not show a broadcast along them: those that are 1 or less."""
    put = (plain(size.substitute(numbers)) for size in sizes)
    return sum(isinstance(size, int) and size <= 1 for size in put)


def _look(graph: Graph, numbers: Numbers, runs: Callable[[Graph], Look], *, failing: bool) -> Look:
    """What a run of the graph with these numbers shows, if no node fails.

    A graph that fails for all sizes contradicts its file; the run alone decides then.
    """
    try:
        small = sized(graph, numbers)
        _, needs, flow = resolved(small)
        fails = needs.never or not (failing or flow is None or flow.ok)
        return Look.FAILS if fails else runs(small)
    except (ZerostrideError, ArithmeticError):
        return Look.FAILS


__all__ = ["Look", "chosen_sizes"]
