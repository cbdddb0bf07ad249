"""Asks an engine's process: an op on the operands of a function, or on telling numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..process import Process
from ..task import Array, Form, Reply, ReplyKind, Task
from .numbers import Compute, joined, pieces
from .operands import Function
from .shapes import Question, Shape
from .space import CRASHED, REFUSED, RESULT, Answer

#: Kinds of answers; any other reply is a refusal.
_KINDS: Mapping[ReplyKind, str] = MappingProxyType(
    {ReplyKind.RESULT: RESULT, ReplyKind.CRASHED: CRASHED}
)


def ask(process: Process, name: str, function: Function, question: Question) -> Answer:
    """The engine's answer to a question.

    Args:
        process: of the engine.
        name: the op's, as the runner gets it.
        function: the one that the op computes; it gives the operands their values.
        question: the shapes.
    """
    aim = {"target": list(question[1])} if function.op is None else {}
    task = Task(Form.CALL, name, aim)
    passes, results = function.operands(question), []
    for operands in passes:
        reply = _reply(process, task, operands)
        if reply.kind is not ReplyKind.RESULT:
            return Answer(_KINDS.get(reply.kind, REFUSED), message=reply.describe())
        results.append(reply.arrays[0])
    return Answer(RESULT, lambda plan: function.matches(plan, passes, results))


def computer(process: Process, name: str, shape: Shape) -> Compute:
    """Runs an op of two operands on vectors of numbers, laid into tensors of one shape.

    Args:
        process: of the engine.
        name: the op's, as the runner gets it.
        shape: one that the op takes.
    """

    def compute(operands: tuple[Array, ...]) -> tuple[str, Array | None]:
        results = []
        for laid in pieces(operands, shape):
            reply = _reply(process, Task(Form.CALL, name), laid)
            if reply.kind is not ReplyKind.RESULT:
                return _KINDS.get(reply.kind, REFUSED), None
            results.append(reply.arrays[0])
        return RESULT, joined(results, shape, operands[0].size)

    return compute


def _reply(process: Process, task: Task, operands: Sequence[Array]) -> Reply:
    """The reply to a task. A crash counts if it repeats in a new process.

    An earlier task may have corrupted the memory of the process; its crash would be taken for one
    of these shapes. Where the process is new already, once is enough.
    """
    return process.ask(task, operands, again=not process.ended)


__all__ = ["ask", "computer"]
