"""Faults put into a model, and whether the inputs that zerostride chooses show them.

A mutant is a file of ONNX with one fault in one node: an operand laid along another axis of the
same extent, an operand whose first number is used for a whole axis, two operands exchanged, the
sign of an operand lost. Its shapes are the model's. Both run on ONNX Runtime. A mutant is *killed*
where its numbers differ by more than `bisect` tolerates at the node, or `verify` at an output. It
is *equal* where it provably means the same: constants that do not change, numbers that are never
negative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from zerostride.models.execute.random_inputs import Ranges, random_inputs
from zerostride.models.findings import Outcome
from zerostride.models.flow.resolved import resolved
from zerostride.models.ir.graph import Array, Graph
from zerostride.models.judging import judged
from zerostride.models.onnx_ops.table import OPS
from zerostride.models.options import ModelOptions
from zerostride.runtimes.bisect.run import _tolerance
from zerostride.runtimes.feeds import fed
from zerostride.runtimes.files import tensors
from zerostride.runtimes.process import MODEL_SECONDS, Process, running
from zerostride.runtimes.task import ReplyKind
from zerostride.runtimes.verify.rounding import compared, excused, small_compared
from zerostride.runtimes.verify.whole_model import meant_outputs, moved_outputs
from zerostride.sizes.condition import ALWAYS

#: Ops of operands that broadcast.
_BROADCAST = frozenset(name for name, row in OPS.items() if row.values is not None) - {"Not"}
#: Ops that treat numbers below 0 otherwise than numbers above.
_SIGNED = frozenset(
    {
        *("Abs", "Celu", "Clip", "Elu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mod", "PRelu"),
        *("Relu", "Selu", "Sign", "ThresholdedRelu"),
    }
)
#: Ops whose two first operands must not change places.
_ORDERED = frozenset(
    {"Sub", "Div", "Pow", "Mod", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}
)
#: Ops whose result is never negative, whatever the operand is.
_POSITIVE = frozenset(
    {"Relu", "Sigmoid", "Softmax", "Exp", "Abs", "Sqrt", "HardSigmoid", "Softplus"}
)
#: Ops whose result is never negative if no operand is.
_KEEPS = frozenset(
    {
        *("Add", "Mul", "Div", "Pow", "Max", "Min", "Concat", "Transpose", "Reshape", "Identity"),
        *("Squeeze", "Unsqueeze", "Flatten", "Slice", "Gather", "Expand", "Split", "Cast", "Sum"),
        *(
            "MaxPool",
            "AveragePool",
            "GlobalAveragePool",
            "GlobalMaxPool",
            "ReduceMean",
            "ReduceMax",
        ),
        *("ReduceSum", "Resize", "Upsample", "Floor", "Ceil", "Tile", "Relu", "Dropout", "Pad"),
    }
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault.

    Attributes:
        node: the number of the node in the main graph.
        kind: "axis", "first", "swapped" or "sign".
        operand: the position of the operand.
        axes: the axes of the result that it concerns.
    """

    node: int
    kind: str
    operand: int
    axes: tuple[int, ...] = ()

    def read(self, array: Array, rank: int) -> Array:
        """The operand's numbers as the mutant reads them."""
        if self.kind == "sign":
            return np.abs(array)
        aligned = array.reshape((1,) * (rank - array.ndim) + array.shape)
        if self.kind == "axis":
            return aligned.swapaxes(*self.axes)
        return np.broadcast_to(aligned.take([0], self.axes[0]), aligned.shape)


@dataclass
class Tally:
    """Mutants of one model.

    Attributes:
        equal: those that provably mean the same.
        inner, outputs: those that the tensors inside, and the outputs alone, show.
        asked: all others and these.
        left: those that no tensor inside shows, in words.
    """

    file: str
    asked: int = 0
    equal: int = 0
    inner: int = 0
    outputs: int = 0
    left: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)


def mutants(model: onnx.ModelProto, values: Mapping[str, Array]) -> Iterator[Mutant]:
    """Every mutant of the nodes whose operands and results are known."""
    for number, node in enumerate(model.graph.node):
        names = [name for name in node.input if name]
        if not all(name in values for name in (*names, *node.output)) or not node.output:
            continue
        result = values[node.output[0]]
        if node.op_type in _SIGNED and values[names[0]].dtype.kind in "fi":
            yield Mutant(number, "sign", 0)
        if node.op_type not in _BROADCAST or len(names) < 2 or result.size < 2:
            continue
        shapes = [values[name].shape for name in names]
        for position, name in enumerate(names):
            if position and node.op_type in _SIGNED and values[name].dtype.kind in "fi":
                yield Mutant(number, "sign", position)
            aligned = (1,) * (result.ndim - len(shapes[position])) + shapes[position]
            for k in range(result.ndim):
                if aligned[k] > 1:
                    yield Mutant(number, "first", position, (k,))
            for a, b in combinations(range(result.ndim), 2):
                swapped = list(aligned)
                swapped[a], swapped[b] = aligned[b], aligned[a]
                others = (*shapes[:position], *shapes[position + 1 :])
                if max(aligned[a], aligned[b]) > 1 and _fits(swapped, others, result.shape):
                    yield Mutant(number, "axis", position, (a, b))
        if node.op_type in _ORDERED:
            yield Mutant(number, "swapped", 0)
        if node.op_type == "Where":
            yield Mutant(number, "swapped", 1)


def _fits(shape: Sequence[int], others: Sequence[tuple[int, ...]], result: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(tuple(shape), *others) == result
    except ValueError:
        return False


def mutated(model: onnx.ModelProto, mutant: Mutant, values: Mapping[str, Array]) -> onnx.ModelProto:
    """The model with the fault."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    nodes = list(changed.graph.node)
    node = nodes[mutant.node]
    filled = [k for k, name in enumerate(node.input) if name]
    if mutant.kind == "swapped":
        a, b = filled[mutant.operand], filled[mutant.operand + 1]
        node.input[a], node.input[b] = node.input[b], node.input[a]
        return changed
    place = filled[mutant.operand]
    name, rank = node.input[place], values[node.output[0]].ndim
    if mutant.kind == "sign":
        before = [helper.make_node("Abs", [name], ["mutant"])]
    else:
        array = values[name]
        aligned = (1,) * (rank - array.ndim) + array.shape
        sizes = numpy_helper.from_array(np.array(aligned, np.int64), "mutant sizes")
        changed.graph.initializer.append(sizes)
        before = [helper.make_node("Reshape", [name, "mutant sizes"], ["mutant of rank"])]
        if mutant.kind == "axis":
            order = list(range(rank))
            a, b = mutant.axes
            order[a], order[b] = b, a
            before.append(helper.make_node("Transpose", ["mutant of rank"], ["mutant"], perm=order))
        else:
            index = np.zeros(aligned[mutant.axes[0]], np.int64)
            changed.graph.initializer.append(numpy_helper.from_array(index, "mutant index"))
            read = ["mutant of rank", "mutant index"]
            before.append(helper.make_node("Gather", read, ["mutant"], axis=mutant.axes[0]))
    node.input[place] = "mutant"
    del changed.graph.node[:]
    changed.graph.node.extend([*nodes[: mutant.node], *before, *nodes[mutant.node :]])
    return changed


class Positive:
    """The tensors of a model that are never negative, whatever its inputs are."""

    def __init__(self, model: onnx.ModelProto, constants: Mapping[str, Array]) -> None:
        self.names = {
            n for n, array in constants.items() if array.dtype.kind in "fiu" and (array >= 0).all()
        }
        for node in model.graph.node:
            operands = [name for name in node.input if name]
            square = node.op_type == "Mul" and len(set(operands)) == 1
            even = node.op_type == "Pow" and (constants.get(operands[1], np.ones(1)) % 2 == 0).all()
            data = (
                operands
                if node.op_type in ("Add", "Mul", "Div", "Pow", "Max", "Min", "Concat", "Sum")
                else operands[:1]
            )
            kept = node.op_type in _KEEPS and data and all(n in self.names for n in data)
            least = node.op_type == "Max" and any(n in self.names for n in operands)
            clipped = node.op_type == "Clip" and self._least(node, operands, constants) >= 0
            if node.op_type in _POSITIVE or kept or square or even or least or clipped:
                self.names.update(node.output)

    @staticmethod
    def _least(
        node: onnx.NodeProto, operands: Sequence[str], constants: Mapping[str, Array]
    ) -> float:
        for attribute in node.attribute:
            if attribute.name == "min":
                return float(attribute.f)
        known = constants.get(node.input[1]) if len(node.input) > 1 else None
        return float(known) if known is not None else -1.0


def tally(
    file: Path,
    graph: Graph,
    sets: Sequence[Mapping[str, Array]],
    process: Process,
    most: int,
    seed: int,
) -> Tally:
    """The mutants of a model, on one or more sets of inputs: one that shows a mutant is enough.

    Args:
        file, graph: the model, and what is known of it.
        sets: the inputs.
        process: ONNX Runtime.
        most: mutants that are run; of more, a sample.
        seed: of the sample.
    """
    model = onnx.load(file)
    outputs = [value.name for value in graph.outputs]
    known = [_values(model, file, process, inputs) for inputs in sets]
    varying = _varying(model)
    constants = {name: array for name, array in known[0].items() if name not in varying}
    positive = Positive(model, constants).names
    reading = [node for node in model.graph.node if varying & {*node.output}]
    fixed = {name for node in model.graph.node for name in node.output} - varying
    tables = sorted(fixed & {name for node in reading for name in node.input} & {*known[0]})
    every = list(mutants(model, known[0]))
    chosen = np.random.default_rng(seed).permutation(len(every))[:most]
    found = Tally(file.name)
    meant = [meant_outputs(graph, inputs, "")[0] for inputs in sets]
    moved = [[moved_outputs(graph, inputs, "", k) for k in (0, 1)] for inputs in sets]
    with TemporaryDirectory() as folder:
        path = Path(folder, "mutant.onnx")
        for number in sorted(chosen.tolist()):
            mutant = every[number]
            node = model.graph.node[mutant.node]
            place = [name for name in node.input if name][mutant.operand]
            rank = known[0][node.output[0]].ndim
            same = mutant.kind != "swapped" and all(
                np.array_equal(
                    mutant.read(v[place], rank).reshape(-1),
                    v[place].reshape(-1),
                    equal_nan=v[place].dtype.kind == "f",
                )
                and (
                    mutant.kind != "axis"
                    or mutant.read(v[place], rank).shape == _aligned(v[place], rank)
                )
                for v in known
            )
            if (same and place in constants) or (mutant.kind == "sign" and place in positive):
                found.equal += 1
                continue
            onnx.save(mutated(model, mutant, known[0]), path)
            if node.output[0] not in varying:  # a table that the model computes; does it change?
                got = _run(path, process, sets[0], tables)
                if got is not None and _agree(known[0], got):
                    found.equal += 1
                    continue
            found.asked += 1
            inner = outer = False
            if not same:
                for inputs, values, expected, near in zip(sets, known, meant, moved, strict=True):
                    wanted = list(dict.fromkeys([node.output[0], *outputs]))
                    got = _run(path, process, inputs, wanted)
                    if got is None:  # an engine that refuses shows the fault
                        inner = outer = True
                        break
                    inner |= not _agree(values, {node.output[0]: got[node.output[0]]})
                    outer |= _differ(got, expected, near)
            found.inner += inner
            found.outputs += outer
            if not inner or not outer:
                found.kinds[f"{mutant.kind} {node.op_type}"] += not inner
                where = f"{node.name or node.output[0]} ({node.op_type})"
                shown = "inside" if inner else "nowhere"
                found.left.append(f"{where}: {mutant.kind} {mutant.operand} {mutant.axes}: {shown}")
    return found


def _agree(meant: Mapping[str, Array], got: Mapping[str, Array]) -> bool:
    """Whether tensors inside the model are the same, as `bisect` has it."""
    most = _tolerance("onnxruntime")
    return all(judged(meant[name], array, most).agrees for name, array in got.items())


def _varying(model: onnx.ModelProto) -> set[str]:
    """The tensors whose numbers depend on those of the inputs."""
    stored = {array.name for array in model.graph.initializer}
    names = {value.name for value in model.graph.input} - stored
    for node in model.graph.node:
        read = {*node.input, *(n for g in node.attribute for m in g.g.node for n in m.input)}
        if node.op_type not in ("Shape", "Size") and names & read:
            names.update(node.output)
    return names


def _aligned(array: Array, rank: int) -> tuple[int, ...]:
    return (1,) * (rank - array.ndim) + array.shape


def _differ(
    got: Mapping[str, Array], meant: Mapping[str, Array], moved: Sequence[Mapping[str, Array]]
) -> bool:
    """Whether an output differs, as `verify` has it."""
    answers = {n: compared(array, got[n], "onnxruntime") for n, array in meant.items()}
    judged_outputs = excused(answers, meant, moved, "")
    judged_outputs = {
        n: small_compared(answer, meant[n], got[n], [one[n] for one in moved])
        for n, answer in judged_outputs.items()
    }
    return any(answer.outcome is Outcome.DIFFERS for answer in judged_outputs.values())


def _values(
    model: onnx.ModelProto, file: Path, process: Process, inputs: Mapping[str, Array]
) -> dict[str, Array]:
    """Every tensor of the main graph that ONNX Runtime hands out."""
    values = {array.name: numpy_helper.to_array(array) for array in model.graph.initializer}
    values.update(inputs)
    names = [name for node in model.graph.node for name in node.output if name]
    for start in range(0, len(names), 256):
        values.update(_run(file, process, inputs, names[start : start + 256]) or {})
    return values


def _run(
    file: Path, process: Process, inputs: Mapping[str, Array], wanted: Sequence[str]
) -> dict[str, Array] | None:
    reply = tensors(process, file, inputs, wanted)
    if reply.kind is not ReplyKind.RESULT:
        return None
    return dict(zip(wanted, reply.arrays, strict=True))


#: Inputs as others draw them.
UNIFORM = Ranges(0, 1)


def measure(file: Path, sizes: Mapping[str, tuple[int, ...]], way: str, most: int) -> Tally:
    """The mutants of one model, on inputs of one way."""
    if way == "size 1":
        opened = {v.name: v.shape for v in ModelOptions().read(file).inputs}
        sizes = {name: _of_1(opened.get(name), shape) for name, shape in sizes.items()}
    given = fed(ModelOptions(input_shapes=dict(sizes) or None), file, {}, 0)
    runs: Sequence[Mapping[str, Array]] = given.runs
    if way == "uniform":
        runs = [random_inputs(given.graph, 0, (), UNIFORM)]
    graph = resolved(given.graph, ALWAYS)[0]
    with running("onnxruntime", MODEL_SECONDS) as process:
        return tally(file, graph, runs, process, most, 0)


def _of_1(opened: Sequence[Any] | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with 1 for every size that the file leaves open."""
    if opened is None:
        return shape
    return tuple(n if isinstance(o, int) else 1 for o, n in zip(opened, shape, strict=True))
