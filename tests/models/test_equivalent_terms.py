"""Terms in normal form: replayed on numbers, they are what the model computes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

from campaigns.equivalent.draw import draw
from campaigns.equivalent.mutate import mutate

import zerostride as zs
from zerostride.models.equivalent.pair import paired
from zerostride.models.equivalent.proof import prove
from zerostride.models.equivalent.reading.reader import Reader, shape_of
from zerostride.models.equivalent.terms.builder import Builder
from zerostride.models.equivalent.terms.matching import Matching
from zerostride.models.equivalent.terms.places import evaluated, index
from zerostride.models.equivalent.terms.term import INPUT, Term
from zerostride.models.execute import execute
from zerostride.models.execute.random_inputs import RANGES, random_inputs
from zerostride.models.flow.input_sizes import sized
from zerostride.models.formats.model_file import model_file
from zerostride.models.ir.graph import Node, Value
from zerostride.models.onnx_ops.kernels.call import NodeCall
from zerostride.models.onnx_ops.table import op_row, run_op
from zerostride.models.options import ModelOptions
from zerostride.sizes.dim import dim

Array = NDArray[Any]
SIZES = ({"N": 2, "M": 3}, {"N": 1, "M": 1}, {"N": 3, "M": 2})
_UNARY = {
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Tanh": np.tanh, "Exp": np.exp, "Abs": np.abs,
    "Sqrt": np.sqrt, "Reciprocal": lambda x: 1 / x,
    "Erf": np.vectorize(__import__("math").erf, otypes=[float]),
}  # fmt: skip

_REDUCED = {
    "Mean": np.mean, "Max": np.max, "Sum": np.sum, "Min": np.min, "Prod": np.prod,
    "SumSquare": lambda x, axes: np.sum(x * x, axes),
    "L1": lambda x, axes: np.sum(abs(x), axes),
    "L2": lambda x, axes: np.sqrt(np.sum(x * x, axes)),
    "LogSumExp": lambda x, axes: np.log(np.sum(np.exp(x), axes)),
}  # fmt: skip


def value(
    term: Term, sizes: Mapping[Any, int], x: Mapping[str, Array], known: dict[int, Array]
) -> Array:
    """A term computed with NumPy, by the definition of each op."""
    if term.number not in known:
        if term.op == "If":  # the other branch may not be computable
            taken = value(term.args[0], sizes, x, known)
            return value(term.args[1 if taken.all() else 2], sizes, x, known)
        args = [value(arg, sizes, x, known) for arg in term.args]
        shape = tuple(int(dim(size).evaluate(sizes)) for size in term.shape)
        known[term.number] = np.asarray(_computed(term, args, shape, sizes, x))
        assert known[term.number].shape == shape, term
    return known[term.number]


def _computed(term: Term, args: list[Array], shape: Any, sizes: Any, x: Any) -> Any:
    if term.op == INPUT:
        return x[term.attributes[0]]
    if term.op == "constant":
        return term.data
    if term.op == "view":
        values = dict(sizes)
        for axis, size in enumerate(shape):
            along = [-1 if k == axis else 1 for k in range(len(shape))]
            values[index(axis).symbols[0]] = np.arange(size).reshape(along)
        where = [evaluated(place, values) for place in term.places]
        if not where:
            return np.broadcast_to(args[0], shape)
        return np.broadcast_to(args[0][tuple(np.broadcast_arrays(*where))], shape)
    if term.op in ("sum", "product"):
        return functools.reduce(np.add if term.op == "sum" else np.multiply, args)
    if term.op == "dot":
        return (args[0] * args[1]).sum(-1)
    if term.op == "reduce":
        axes = tuple(range(len(shape), args[0].ndim))
        return _REDUCED[term.attributes[0]](args[0], axes)
    if term.op == "concat":
        return np.concatenate(args, term.attributes[0])
    if term.op == "Softmax":
        (axis,) = term.attributes
        e = np.exp(args[0] - args[0].max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)
    if term.op in ("Max", "Min"):
        return functools.reduce(np.maximum if term.op == "Max" else np.minimum, args)
    if term.op == "Where":
        return np.where(*args)
    if term.op == "Div":
        return args[0] / args[1]
    if term.op == "Pow":
        return args[0] ** args[1]
    if term.op == "sizes":
        numbers = [int(dim(size).evaluate(sizes)) for size in term.attributes[:-1]]
        return np.array(numbers).reshape(shape)
    if term.op in _UNARY:
        return _UNARY[term.op](*args)
    return _by_the_table(term, args)


def _by_the_table(term: Term, args: list[Array]) -> Array:
    """An op that is not taken apart, by the table of ONNX's ops."""
    listed, missing, position = term.attributes, (), 0
    if listed and isinstance(listed[0], int):
        _, listed, missing, position = listed
    inputs = list[Array | None](args)
    for place in missing:
        inputs.insert(place, None)
    values = tuple(Value(f"x{k}", None) for k in range(len(inputs)))
    outputs = (Value("y", None, dtype=term.dtype),) * (position + 1)
    node = Node("n", term.op, "", 17, values, outputs, dict(listed))
    values_of = op_row(term.op).values
    if values_of is not None:
        return np.asarray(values_of(NodeCall(node, tuple(inputs)), args))
    return np.asarray(run_op(NodeCall(node, tuple(inputs)))[position])


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_terms_compute_what_the_model_computes(seed: int, exact: bool) -> None:
    with model_file(draw(seed)) as file:
        graph = ModelOptions().read(file.path)
        pair = paired(graph, graph)
        builder = Builder(pair.condition, exact=exact)
        terms = {
            entry.name: builder.terms.get(
                INPUT, (), shape_of(entry) or (), (entry.name,), dtype=entry.dtype
            )
            for entry in pair.ours.inputs
        }
        own = frozenset(pair.symbols)
        matching = Matching(exact)
        reader = Reader(builder, pair.ours, terms, own, pair.needs[0], matching)
        (result,) = reader.read().values()
        symbols = {symbol.name: symbol for symbol in pair.symbols}
        for sizes in SIZES:
            chosen = {name: sizes[name] for name in symbols}
            small = sized(graph, chosen)
            x = random_inputs(small, seed, ranges=RANGES[0])
            numbers = {symbols[name]: number for name, number in chosen.items()}
            with np.errstate(all="ignore"):
                computed = value(result, numbers, x, {})
                (expected,) = execute(small, x).values()
            scale = np.abs(expected[np.isfinite(expected)]).max(initial=1e-3)
            np.testing.assert_allclose(computed, expected, rtol=2e-3, atol=2e-3 * scale)


@pytest.mark.parametrize("seed", range(0, 120, 3))
def test_a_mutant_is_never_proven_equal(seed: int) -> None:
    """Outputs that the proof calls equal are equal in a run, too."""
    model = draw(seed)
    for k in range(3):
        made = mutate(model, seed * 101 + k)
        if made is None:
            continue
        with model_file(model) as one, model_file(made[0]) as other:
            graphs = [ModelOptions().read(file.path) for file in (one, other)]
            try:
                pair = paired(*graphs)
            except zs.ZerostrideError:
                continue  # the mutant has an output of another rank
            if any(output.verdict == "undecided" for output in prove(pair)):
                continue
            assert _same(graphs, pair.symbols), made[1]


def _same(graphs: list[Any], symbols: Any) -> bool:
    for sizes in SIZES:
        chosen = {symbol.name: sizes[symbol.name] for symbol in symbols}
        results = []
        for graph in graphs:
            small = sized(graph, chosen)
            x = random_inputs(small, 1, ranges=RANGES[0])
            try:
                results.append(next(iter(execute(small, x).values())))
            except zs.ZerostrideError:
                results.append(None)
        one, other = results
        if one is None or other is None:
            continue
        scale = np.abs(one[np.isfinite(one)]).max(initial=1e-3)
        if one.shape != other.shape or not np.allclose(
            one, other, rtol=2e-3, atol=2e-3 * scale, equal_nan=True
        ):
            return False
    return True
