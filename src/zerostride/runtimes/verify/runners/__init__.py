"""The runners of engines, for the child process. Loading a runner imports its engine."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ....ops import OPS, Op
from ..task import Array, Form, Task

#: A task on operands; the results in the order of the outputs.
Perform = Callable[[Task, Sequence[Array]], Sequence[Array]]
#: An op of the op table on operands, with attributes of the engine's own.
Call = Callable[[Op, Sequence[Array], Mapping[str, Any]], Array]


class Absent(Exception):  # noqa: N818 - an answer
    """The runner cannot call the engine for this task."""


@dataclass(frozen=True, slots=True)
class Runner:
    """An engine, loaded.

    Attributes:
        version: its release.
        forms: the functions that carry out tasks, by form.
    """

    version: str
    forms: Mapping[Form, Perform]

    def run(self, task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        """The engine's results.

        Raises:
            Absent: it cannot be called for this; any other exception is a refusal.
        """
        if task.form not in self.forms:
            raise Absent(f"{task.op} cannot be run by itself")
        return self.forms[task.form](task, arrays)


#: Engine to the module that calls it. To add an engine: a module with `load_ENGINE`, and a row.
MODULES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("numpy", "torch", "jax", "tensorflow", "paddle"), "libraries"),
        **dict.fromkeys(("onnxruntime", "openvino"), "graphs"),
        **dict.fromkeys(("ncnn", "mnn"), "nets"),
        "litert": "lite",
    }
)


def load_runner(engine: str) -> Runner:
    """The engine, imported.

    Raises:
        ImportError: it is not installed for this interpreter.
    """
    module = importlib.import_module(f"{__name__}.{MODULES[engine]}")
    loaded: Runner = getattr(module, f"load_{engine}")()
    return loaded


def by_op(call: Call) -> Perform:
    """Tasks of the form OP: more than two operands are taken two by two."""

    def perform(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        row = OPS[task.op]
        result = call(row, arrays[: row.operands], task.attributes)
        for array in arrays[row.operands :]:
            result = call(row, (result, array), task.attributes)
        return [result]

    return perform


#: The default epsilon of a normalisation.
_EPSILON = 1e-5


def epsilon_of(attrs: Mapping[str, Any]) -> float:
    """The number that a normalisation adds to the variance."""
    return float(attrs.get("epsilon", _EPSILON))


#: A function of an op's attributes and its operands, of the engine's own type.
Function = Callable[[Mapping[str, Any], Any], Any]


def by_table(
    table: Mapping[str, Function], enter: Callable[[Array], Any], leave: Callable[[Any], Array]
) -> Perform:
    """Tasks of the form COMPOUND: one function per op, between two conversions."""

    def perform(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        if task.op not in table:
            raise Absent(f"nothing runs {task.op} by itself")
        return [leave(table[task.op](task.attributes, [enter(array) for array in arrays]))]

    return perform
