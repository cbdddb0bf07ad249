"""Runs of two models on the same inputs: at sizes that hide no broadcast, on the same engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

import numpy as np

from ...errors import ZerostrideError
from ...models.equivalence import Difference
from ...models.equivalent.batch import in_onnx_ops
from ...models.equivalent.pair import Pair
from ...models.execute import Nudge, execute, not_executed
from ...models.execute.chosen_sizes import chosen_sizes
from ...models.execute.random_inputs import RANGES, random_inputs
from ...models.flow.input_sizes import sized
from ...models.ir.graph import Array, Graph
from ...models.judging import relative
from ...sizes.condition import Condition, all_of, ge
from ...sizes.dim import Symbol, dim, of_atom
from ...sizes.solve import values_for
from ..files import tensors
from ..process import MODEL_SECONDS, Process, running
from ..task import ReplyKind
from ..verify.rounding import moved_array

#: The most work of one run here: some seconds. More is left to the engine.
_MOST_WORK = 20_000
#: Elements of all tensors of a run.
_MOST_ELEMENTS = 1 << 24
#: The product of all open sizes: one op may combine them all.
_MOST_TOGETHER = 1 << 30
#: Ways in which a condition can hold for which sizes are tried.
_MOST_ALTERNATIVES = 6
#: An error that rounding does not make: of an output that is not proven, and of one that is proven
#: but for rounding.
FAR, FARTHER = 1e-3, 5e-2
#: The same in roundings of the output's type, where that is a narrow one; and what one rounding is.
_ROUNDINGS = 8
_EPSILONS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
#: Runs in which rounding moves every tensor.
_MOVES = 2
#: The least size of an engine's numbers by which a difference is judged.
_LEAST = 1e-3
_HERE = "zerostride"
_ENGINE = "onnxruntime"


@dataclass
class Run:
    """Both models on the same inputs.

    Attributes:
        sizes: the open sizes, by name.
        inputs: by the first model's names.
        ours, theirs: the outputs in order; None where a model fails.
        refusals: why it fails.
        engine: what ran both.
    """

    sizes: dict[str, int]
    inputs: dict[str, Array]
    ours: list[Array] | None
    theirs: list[Array] | None
    refusals: tuple[str, str]
    engine: str


@dataclass
class Tries:
    """Runs two models.

    An engine is not asked again after it crashed or took too long, and not where a loop does more
    work than is done here.

    Attributes:
        pair: the models.
        paths: their files.
        seed: of the random inputs.
        seconds: for one answer of an engine.
        cases: conditions on sizes, each of a case that is proven by itself.
    """

    pair: Pair
    paths: tuple[str, str]
    seed: int = 0
    seconds: float = MODEL_SECONDS
    cases: tuple[Condition, ...] = ()
    _stack: ExitStack = field(default_factory=ExitStack)
    _processes: list[Process] = field(default_factory=list)
    _endless: bool = False

    def __enter__(self) -> Tries:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def runs(self) -> Iterator[Run]:
        """Yield a run for each size that is tried."""
        for k, sizes in enumerate(self.sizes()):
            try:
                yield self.run(sizes, self.seed + k)
            except ZerostrideError:
                continue  # no input of these sizes, or none that fits

    def sizes(self) -> Iterator[dict[str, int]]:
        """Yield sizes that both models allow: unequal ones, 1, 2, 3 and 0, and typical ones."""
        symbols = self.pair.symbols
        if not symbols:
            yield {}
            yield {}
            return
        count = len(symbols)
        tries = [
            *([k + 2 for k in range(count)], [1] * count, [count + 2 - k for k in range(count)]),
            *([2] * count, [3] * count, [0] * count),
        ]
        every = [dict(zip(symbols, numbers, strict=True)) for numbers in tries]
        allowed = [values for values in every if self._allowed(values)]
        yielded: list[dict[str, int]] = []
        for values in filter(self._fits, [*allowed, *self._alternatives()]):
            sizes = {symbol.name: number for symbol, number in values.items()}
            if sizes not in yielded:
                yielded.append(sizes)
                yield sizes
        if len(yielded) < 2:
            typical = chosen_sizes(self.pair.files[0], facts=self.pair.condition)
            numbers = {symbol: typical.get(symbol.name, 1) for symbol in symbols}
            if typical and typical not in yielded and self._fits(numbers):
                yield typical

    def _alternatives(self) -> Iterator[dict[Symbol, int]]:
        """Yield sizes for each way in which the condition can hold, above 1 where they can be."""
        condition, symbols = self.pair.condition, self.pair.symbols
        parts = [part for clause in condition.clauses for part in clause.parts]
        large = all_of(ge(of_atom(symbol), 2) for symbol in symbols)
        ways: list[list[list[Condition]]] = [[[large], []]]
        for part in parts[:_MOST_ALTERNATIVES]:
            others = [~other for other in parts if other != part]
            ways.append([[part, *others, large], [part, *others], [part]])
        ways += [[[case, large], [case]] for case in self.cases]
        for way in ways:
            for more in way:
                values = values_for(all_of([condition, *more]), symbols)
                if values is not None:
                    yield {symbol: values.get(symbol, 1) for symbol in symbols}
                    break

    def _allowed(self, values: Mapping[Symbol, int]) -> bool:
        for symbol, number in values.items():
            if number < symbol.low or (symbol.high is not None and number > symbol.high):
                return False
        clauses = self.pair.condition.clauses
        return not any(clause.substitute(values).never for clause in clauses)

    def _fits(self, values: Mapping[Symbol, int]) -> bool:
        """Whether a run with these sizes takes little memory."""
        whole = math.prod(max(1, number) for number in values.values())
        return whole <= _MOST_TOGETHER and self._elements(values) <= _MOST_ELEMENTS

    def _elements(self, values: Mapping[Symbol, int]) -> int:
        """The elements of all tensors of the first model, as far as their sizes are known."""
        total = 0
        for value in self.pair.ours.values():
            with suppress(ArithmeticError, KeyError, TypeError):
                sizes = [int(dim(size).evaluate(values)) for size in value.shape or ()]  # type: ignore[arg-type]
                total += math.prod(sizes)
        return total

    def run(
        self,
        sizes: dict[str, int],
        seed: int,
        *,
        whole: bool = False,
        zeros: bool = False,
    ) -> Run:
        """Both models at some sizes.

        Args:
            sizes: the open sizes.
            seed: of the inputs.
            whole: the sizes are all of the first model's, and may be none of the second's.
            zeros: the inputs are 0.
        """
        ours, theirs = self.pair.files
        if whole:
            ours = self.pair.original
        if sizes:
            ours = sized(ours, sizes)
        inputs = random_inputs(ours, seed, ranges=RANGES[0])
        if zeros:
            inputs = {name: np.zeros_like(array) for name, array in inputs.items()}
        if not whole and (sizes or theirs.sized):
            shapes = {
                self.pair.names[n]: a.shape for n, a in inputs.items() if n in self.pair.names
            }
            theirs = sized(theirs, None, shapes)
        run = self._here(ours, theirs, inputs, sizes)
        refused = run is None or (not whole and None in (run.ours, run.theirs))
        if not refused or not self._real or self._endless:
            return run or Run(sizes, inputs, None, None, ("", ""), "")
        return self._on_engine(inputs, sizes)

    def again(self, run: Run) -> Run | None:
        """The same run on the real engine; None where that is not installed."""
        if not self._real or self._endless:
            return None
        return self._on_engine(run.inputs, run.sizes)

    def rounding(self, run: Run) -> float | None:
        """How far rounding alone moves the first model's outputs in a run, relative.

        Every tensor is moved by one rounding, up or down. None where an engine ran the models.
        """
        if run.engine != _HERE or run.ours is None:
            return None
        ours = sized(self.pair.files[0], run.sizes) if run.sizes else self.pair.files[0]
        wanted = [name for name, _ in self.pair.outputs]
        worst = 0.0
        for seed in range(_MOVES):
            numbers = np.random.default_rng(seed)
            nudge: Nudge = lambda _, array: moved_array(numbers, array)  # noqa: E731, B023
            moved = execute(ours, run.inputs, wanted, nudge=nudge)
            for array, name in zip(run.ours, wanted, strict=True):
                if array.shape == moved[name].shape:
                    worst = max(worst, float(error_of(array, moved[name]).max(initial=0.0)))
        return worst

    @property
    def _real(self) -> bool:
        """Whether the engine is installed, and runs files of both formats."""
        return self.pair.formats == {"onnx"} and find_spec(_ENGINE) is not None

    def _renamed(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The inputs by the second model's names; some formats have int32 for int64."""
        names = self.pair.names
        types = {value.name: value.dtype for value in self.pair.files[1].inputs}
        if len(self.pair.formats) == 1:
            types = {}
        return {
            names[name]: array.astype(types.get(names[name]) or array.dtype, copy=False)
            for name, array in inputs.items()
            if name in names
        }

    def _here(
        self, ours: Graph, theirs: Graph, inputs: dict[str, Array], sizes: dict[str, int]
    ) -> Run | None:
        """The run of the executor; None if it cannot run both."""
        ours, theirs = (replace(in_onnx_ops(one), format="onnx") for one in (ours, theirs))
        if not_executed(ours) or not_executed(theirs):
            return None
        results: list[list[Array] | None] = []
        refusals = []
        for k, (graph, arrays) in enumerate(((ours, inputs), (theirs, self._renamed(inputs)))):
            wanted = [names[k] for names in self.pair.outputs]
            try:
                done = execute(graph, arrays, wanted, limit=_MOST_WORK)
                results.append([done[name] for name in wanted])
                refusals.append("")
            except ZerostrideError as error:
                if "more work than the limit" in str(error):
                    loops = any(node.op in ("Loop", "Scan") for node in graph.nodes)
                    self._endless = self._endless or loops
                    return None
                results.append(None)
                refusals.append(str(error))
        return Run(sizes, inputs, results[0], results[1], (refusals[0], refusals[1]), _HERE)

    def _on_engine(self, inputs: dict[str, Array], sizes: dict[str, int]) -> Run:
        if not self._processes:
            self._processes.append(self._stack.enter_context(running(_ENGINE, self.seconds)))
        process = self._processes[0]
        results: list[list[Array] | None] = []
        refusals = []
        for k, arrays in enumerate((inputs, self._renamed(inputs))):
            wanted = [names[k] for names in self.pair.outputs]
            reply = tensors(process, self.paths[k], arrays, wanted, as_written=True)
            done = reply.kind is ReplyKind.RESULT
            # What takes too long once does so for other inputs, too.
            self._endless = self._endless or reply.kind is ReplyKind.CRASHED
            results.append(list(reply.arrays) if done else None)
            refusals.append("" if done else reply.message)
        place = f"{_ENGINE} {process.version}"
        return Run(sizes, inputs, results[0], results[1], (refusals[0], refusals[1]), place)


def difference(run: Run, position: int, most: float) -> Difference | None:
    """The difference of an output in a run, if it is larger than rounding."""
    if run.ours is None or run.theirs is None:
        return None
    ours, theirs = run.ours[position], run.theirs[position]
    shapes = {name: array.shape for name, array in run.inputs.items()}
    if ours.shape != theirs.shape:
        words = f"the shapes {ours.shape} and {theirs.shape}"
        return Difference(
            run.sizes, shapes, (), ours.shape, theirs.shape, np.inf, run.engine, words
        )
    if ours.dtype != theirs.dtype and run.engine != _HERE:
        words = f"the element types {ours.dtype} and {theirs.dtype}"
        types = str(ours.dtype), str(theirs.dtype)
        return Difference(run.sizes, shapes, (), *types, np.inf, run.engine, words)
    error = errors_of(run, position)
    most = max(most, _ROUNDINGS * _EPSILONS.get(ours.dtype.name, 0.0))
    if not error.size or not (worst := float(error.max())) > most:
        return None
    index = tuple(map(int, np.unravel_index(int(error.argmax()), error.shape)))
    one, other = ours[index], theirs[index]
    if isinstance(one, np.number | np.bool):
        one, other = one.item(), other.item()
        words = f"{one:.6g} and {other:.6g}"
    else:
        words = f"{one!r} and {other!r}"
    words += f" at {list(index)}" if index else ""
    return Difference(run.sizes, shapes, index, one, other, worst, run.engine, words)


def errors_of(run: Run, position: int) -> Array:
    """The relative differences of an output that has one shape in both models.

    An engine's numbers that are small are compared as if they were `_LEAST`.
    """
    assert run.ours is not None
    assert run.theirs is not None
    ours, theirs = run.ours[position], run.theirs[position]
    error = error_of(ours, theirs)
    if run.engine != _HERE and ours.dtype.kind == "f":
        # An engine approximates: a sigmoid near 0 is off by more than by its own size.
        with np.errstate(all="ignore"):
            error = np.fmin(error, np.abs(ours.astype(np.float64) - theirs) / _LEAST)
    return error


def error_of(ours: Array, theirs: Array) -> Array:
    """The differences of two arrays of one shape, relative to the larger of the two tensors."""
    if ours.dtype.name == theirs.dtype.name == "bfloat16":
        ours, theirs = ours.astype(np.float32), theirs.astype(np.float32)
    if ours.dtype.kind not in "fc" and theirs.dtype.kind not in "fc":
        apart: Array = (ours != theirs).astype(np.float64)
        return apart
    errors = np.asarray(relative(ours, theirs))
    both = np.isnan(ours) & np.isnan(theirs)
    return np.asarray(np.where(both, 0.0, np.nan_to_num(errors, nan=np.inf, posinf=np.inf)))
