"""The walk over a graph. Values are kept by identity and freed after their last use."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from ...errors import BroadcastError, ModelError, ZerostrideError
from ..format_table import FORMATS
from ..ir.graph import Array, Graph, Value
from ..onnx_ops.kernels.call import (
    MAX_ALIVE,
    MAX_WORK,
    Meter,
    NodeCall,
    Unfit,
    axis_of,
    meter,
    room,
)
from ..onnx_ops.table import run_op
from ..transport.shape_arithmetic import shape_arithmetic
from .broadcasts import broadcast, in_order, measured
from .inputs import check_inputs
from .program import Execution, NodeStep, not_executed, prepare, prepare_part, readable, reads
from .work import UNIT, nanoseconds

#: A change of an array that an op makes.
Nudge = Callable[[str, Array], Array]
#: Arrays by the identity of their values.
_Environment = MutableMapping[int, Array]


def execute(
    graph: Graph,
    inputs: Mapping[str, Any],
    outputs: Sequence[str] | None = None,
    *,
    limit: int | None = None,
    nudge: Nudge | None = None,
) -> dict[str, Array]:
    """Computes a model.

    Nodes that broadcast follow their site's plan, and so the file's rule. Other ops use a table of
    ONNX's ops; ops of other formats are translated to ONNX first.

    Args:
        graph: the model.
        inputs: arrays by the names of the model's inputs; lists and numbers become arrays of the
            input's element type.
        outputs: names of tensors of the main graph; None for the model's outputs. Only the nodes
            that they need are computed.
        limit: the most work, in units of about 100 microseconds: one pass of a loop, one node run
            in it, 2**20 multiplications, or the elements that an op makes and reads in that time
            (`work`); `MAX_WORK` if None.
        nudge: changes each result of floats that is no size, by its op, to measure what rounding
            or an engine's approximation of the op does.

    Returns:
        Arrays by name, in the order of `outputs`.

    Raises:
        ModelError: ops are not executed here (all are named before the computation), or a node
            cannot be computed; names the node, its operands and the reason.
        ZerostrideError: an input is missing, unknown, or not of the shape or element type in the
            file.
    """
    return run_program(graph, prepare(graph, outputs), inputs, limit, nudge)


def run_program(
    graph: Graph,
    program: Execution,
    inputs: Mapping[str, Any],
    limit: int | None = None,
    nudge: Nudge | None = None,
) -> dict[str, Array]:
    """Runs a program of the graph; see :func:`execute`."""
    return _run(_Walk(graph, limit, nudge), program, inputs)


def is_computed(graph: Graph, inputs: Mapping[str, Any], limit: int) -> bool:
    """Whether no node fails, as far as the work of the limit goes; see :func:`execute`.

    Nodes that are not executed here do not fail.
    """
    if not_executed(graph):
        return True
    walk = _Walk(graph, limit)
    try:
        _run(walk, prepare(graph), inputs)
    except ZerostrideError:
        return walk.meter.spent > limit
    return True


def _run(walk: _Walk, program: Execution, inputs: Mapping[str, Any]) -> dict[str, Array]:
    read = program.reads()
    graph = walk.graph
    needed = [value for value in graph.inputs if id(value) in read]
    arrays = check_inputs(graph, needed, inputs)
    environment: _Environment = {
        id(value): arrays[value.name] for value in graph.inputs if value.name in arrays
    }
    token = meter.set(walk.meter)
    try:
        walk.run(program, environment)
    finally:
        meter.reset(token)
    return {
        value.name: _own(walk.fetch(value, environment), arrays.values())
        for value in program.outputs
    }


def run_part(graph: Graph, program: Execution, values: Mapping[int, Array]) -> list[Array]:
    """Runs a program of a part of the graph.

    Args:
        graph: the model.
        program: as `prepare_part` gives it.
        values: arrays by the identity of the values that the part reads.

    Raises:
        ModelError: a node cannot be computed.
    """
    walk, environment = _Walk(graph, None), dict(values)
    token = meter.set(walk.meter)
    try:
        walk.run(program, environment)
        return [walk.fetch(value, environment) for value in program.outputs]
    finally:
        meter.reset(token)


def _own(array: Array, inputs: Any) -> Array:
    """A contiguous, writeable array that shares no memory with the inputs."""
    own = array.base is None and array.flags.c_contiguous and array.flags.writeable
    return array if own and all(array is not other for other in inputs) else np.array(array)


class _Walk:
    """One run of a graph."""

    def __init__(self, graph: Graph, limit: int | None, nudge: Nudge | None = None) -> None:
        self.graph = graph
        self.nudge = nudge
        self.sizes = shape_arithmetic(graph) if nudge is not None else frozenset()
        self.engine = FORMATS[graph.format].engine
        self.meter = Meter(MAX_WORK if limit is None else limit)
        self.alive = 0  # bytes of all tensors that are kept
        self.loops = 0  # depth of nested loops

    def run(self, program: Execution, environment: _Environment) -> None:
        """Computes every step; drops the program's values after their last use."""
        last: dict[int, int] = {}
        for position, step in enumerate(program.steps):
            last.update(dict.fromkeys(reads(step), position))
        last.update((id(value), len(program.steps)) for value in program.outputs)
        own: set[int] = {id(value) for value in program.inputs}
        for position, step in enumerate(program.steps):
            results = self._step(step, environment)
            self._spend(step, self._units(step, results, environment) + (1 if self.loops else 0))
            if len(results) < len([value for value in step.node.outputs if value.name]):
                raise self._error(step, "it hands out fewer tensors than the file takes", ())
            for value, array in zip(step.node.outputs, results, strict=False):
                if self.nudge is not None and array.dtype.kind == "f":
                    array = (
                        array if id(step.node) in self.sizes else self.nudge(step.node.op, array)
                    )
                self._keep(step, value, array, environment)
                own.add(id(value))
            for key in reads(step) | {id(value) for value in step.node.outputs}:
                if last.get(key, -1) <= position and key in own:
                    dropped = environment.pop(key, None)
                    self.alive -= 0 if dropped is None else dropped.nbytes

    def _keep(self, step: NodeStep, value: Value, array: Array, environment: _Environment) -> None:
        self.alive += array.nbytes
        if self.alive > MAX_ALIVE:
            message = f"the tensors of the run would take {self.alive} bytes; at most {MAX_ALIVE}"
            raise self._error(step, message, ())
        environment[id(value)] = array

    def fetch(self, value: Value, environment: Mapping[int, Array]) -> Array:
        """The array of a value: computed, given, or from the file."""
        array = environment.get(id(value))
        if array is not None:
            return array
        if value.reals is not None and value.source is None and value.shape is not None:
            shape = [int(size) for size in value.shape if isinstance(size, int)]
            return np.array(value.reals, value.dtype or np.float32).reshape(shape)
        if readable(value) or value.missing is not None:
            return value.data()
        raise ModelError(f"{self.graph.path}: nothing makes {value.name!r}")

    def _step(self, step: NodeStep, environment: _Environment) -> Sequence[Array]:
        arrays = tuple(
            None if value is None else self.fetch(value, environment) for value in step.node.inputs
        )
        call = NodeCall(step.node, arrays)
        try:
            if step.bodies:
                return self._control(step, call, environment)
            if step.find is not None:
                node = measured(step.node, arrays)
                site = step.find(node)
                if site is None:
                    raise Unfit("with these operands it does not broadcast")
                return (broadcast(site, NodeCall(node, in_order(site, arrays)), self.engine),)
            return run_op(call)
        except ModelError:
            raise
        except BroadcastError as error:
            raise self._error(step, error.detail, arrays) from None
        except _FAULTS as error:
            lines = str(error).splitlines()
            raise self._error(step, lines[0] if lines else type(error).__name__, arrays) from None

    def _error(self, step: NodeStep, message: str, arrays: Sequence[Array | None]) -> ModelError:
        node = step.node
        operands = ", ".join(
            f"{value.name} {array.shape} {array.dtype}"
            for value, array in zip(node.inputs, arrays, strict=False)
            if value is not None and array is not None
        )
        shown = f" (operands: {operands})" if operands else ""
        return ModelError(f"{self.graph.path}: node {node.path!r} ({node.op}): {message}{shown}")

    def _control(
        self, step: NodeStep, call: NodeCall, environment: _Environment
    ) -> Sequence[Array]:
        control = {"If": self._if, "Loop": self._loop, "Scan": self._scan}
        return control[step.node.op](step, call, environment)

    def _body(
        self, body: Execution, arrays: Sequence[Array], environment: _Environment
    ) -> list[Array]:
        if len(arrays) != len(body.inputs):
            raise Unfit(f"its body takes {len(body.inputs)} tensors and gets {len(arrays)}")
        inner: _Environment = ChainMap({}, environment)
        inner.update((id(v), array) for v, array in zip(body.inputs, arrays, strict=True))
        outside = self.alive
        self.run(body, inner)
        self.alive = outside
        return [self.fetch(value, inner) for value in body.outputs]

    def _if(self, step: NodeStep, call: NodeCall, environment: _Environment) -> Sequence[Array]:
        branch = "then_branch" if call.number(0) else "else_branch"
        for body, program in zip(step.node.bodies, step.bodies, strict=True):
            if body.name == branch:
                return self._body(program, (), environment)
        raise Unfit(f"it has no {branch}")

    def _loop(self, step: NodeStep, call: NodeCall, environment: _Environment) -> Sequence[Array]:
        """Carried values pass from turn to turn; the body's other outputs are stacked."""
        (body,) = step.bodies
        most = None if call.maybe(0) is None else call.number(0)
        going = True if call.maybe(1) is None else bool(call.number(1))
        state = [call[k] for k in range(2, len(call.inputs))]
        stacks: list[list[Array]] = [[] for _ in body.outputs[1 + len(state) :]]
        turn, count = 0, body.inputs[0].dtype or "int64"  # MNN counts in int32
        self.loops += 1
        while going and (most is None or turn < most):
            self._spend(step, 1)
            carried = [np.array(turn, count), np.array(going), *state]
            condition, *results = self._body(body, carried, environment)
            going = bool(condition.reshape(-1)[0]) if condition.size == 1 else False
            state = results[: len(state)]
            _gather(stacks, results[len(state) :])
            turn += 1
        self.loops -= 1
        return (*state, *self._stacked(step, stacks))

    def _units(self, step: NodeStep, results: Sequence[Array], environment: _Environment) -> int:
        """The units of work of a node."""
        values = [value for value in step.node.inputs if value is not None]
        operands = [environment.get(id(value)) for value in values]
        return nanoseconds(step.node.op, operands, results) // UNIT

    def _spend(self, step: NodeStep, work: int) -> None:
        try:
            self.meter.spend(work)
        except Unfit as error:
            raise self._error(step, str(error), ()) from None

    def _scan(self, step: NodeStep, call: NodeCall, environment: _Environment) -> Sequence[Array]:
        """Like a Loop, with a slice of each scanned tensor in every turn."""
        (body,) = step.bodies
        count = call.attribute("num_scan_inputs", 0)
        carried = len(call.inputs) - count
        if count < 1 or carried < 0:
            raise Unfit(f"{count} of its {len(call.inputs)} operands are scanned")
        state = [call[k] for k in range(carried)]
        scanned = []
        for k in range(count):
            x, axis, backwards = call[carried + k], *_scan_order(call, "input", k)
            x = np.moveaxis(x, axis_of(axis, x.ndim), 0)
            scanned.append(x[::-1] if backwards else x)
        lengths = [len(x) for x in scanned]
        if len(set(lengths)) != 1:
            raise Unfit(f"what is scanned has different lengths: {lengths}")
        stacks: list[list[Array]] = [[] for _ in body.outputs[carried:]]
        self.loops += 1
        for turn in range(lengths[0]):
            self._spend(step, 1)
            handed = self._body(body, [*state, *(x[turn] for x in scanned)], environment)
            state = handed[:carried]
            _gather(stacks, handed[carried:])
        self.loops -= 1
        results = []
        for k, x in enumerate(self._stacked(step, stacks)):
            axis, backwards = _scan_order(call, "output", k)
            results.append(np.moveaxis(x[::-1] if backwards else x, 0, axis_of(axis, x.ndim)))
        return (*state, *results)

    def _stacked(self, step: NodeStep, stacks: Sequence[Sequence[Array]]) -> list[Array]:
        """The outputs that a body collects, stacked."""
        values = step.bodies[0].outputs[len(step.bodies[0].outputs) - len(stacks) :]
        return [_stack(value, stack) for value, stack in zip(values, stacks, strict=True)]


def _scan_order(call: NodeCall, side: str, position: int) -> tuple[int, bool]:
    """The axis of a Scan for one of its tensors, and whether it runs backwards."""
    axes = call.integers(f"scan_{side}_axes") or ()
    directions = call.integers(f"scan_{side}_directions") or ()
    axis = axes[position] if position < len(axes) else 0
    return axis, position < len(directions) and bool(directions[position])


def _gather(stacks: Sequence[list[Array]], results: Sequence[Array]) -> None:
    """Adds a turn's outputs to the stacks, within the limit of bytes."""
    for stack, array in zip(stacks, results, strict=True):
        stack.append(array)
    room((sum(len(stack) * stack[0].nbytes for stack in stacks),), np.uint8)


def _stack(value: Value, stack: Sequence[Array]) -> Array:
    if stack:
        room((len(stack), *stack[0].shape), stack[0].dtype)
        return np.stack(stack)
    if value.dtype is None or not value.known or value.shape is None:
        raise Unfit("it turns no time, and what it would stack has no known shape")
    return np.zeros((0, *(size for size in value.shape if isinstance(size, int))), value.dtype)


#: Exceptions of NumPy and the tables for operands that do not fit together, or attributes of
#: undocumented types.
_FAULTS = (
    Unfit,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
    ZerostrideError,
)

__all__ = [
    "Execution",
    "execute",
    "not_executed",
    "prepare",
    "prepare_part",
    "run_part",
    "run_program",
]
