"""One module an engine, and one row: `RUNNERS`. Loading a runner imports its engine.

A module's ``load()`` imports the engine (ImportError where it is not installed) and returns a
:class:`Runner`. Only child processes call it. To add an engine: a module, and a row.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ...ops import OPS, Op
from ..task import Array, Form, Task

Attrs = Mapping[str, Any]
Shape = tuple[int, ...]
#: The op of an engine's own name, with attributes, on operands; a target shape where it has one.
Call = Callable[[str, Attrs, Sequence[Array], Shape], Array]
#: A task on operands; the results in the order of the outputs.
Perform = Callable[[Task, Sequence[Array]], Sequence[Array]]


@dataclass(frozen=True, slots=True)
class RunnerRow:
    """A row: how an engine is run here.

    Attributes:
        module: the module of this folder.
        distribution: what pip installs; "": zerostride's extra of the engine's name.
        files: the formats of the model files that it runs.
        sealed: the suffix of files of its own that nothing else reads; its name is their format.
        onnx_nodes: whether it runs a compound as a model of one ONNX node; otherwise as a function
            or a layer of its own.
        own_layers: whether it runs a layer of its own format alone.
        holds: for each NumPy dtype, the dtype in which the engine stores it; None: the same one.
        ulps: the least tolerance of its results, in units in the last place.
        apart: its packages pin releases, so that it has an environment of its own.
    """

    module: str
    distribution: str
    files: frozenset[str] = frozenset()
    sealed: str = ""
    onnx_nodes: bool = False
    own_layers: bool = False
    holds: Mapping[str, str] | None = None
    ulps: int = 0
    apart: bool = False


_FLOATS = dict.fromkeys(("float32", "float16", "bfloat16"), "float32")


def _row(engine: str, *files: str, **columns: Any) -> RunnerRow:
    distribution = columns.pop("distribution", f"zerostride[{engine}]")
    return RunnerRow(f"{engine}_", distribution, frozenset(files), **columns)


#: The engines that run here.
RUNNERS: Mapping[str, RunnerRow] = MappingProxyType(
    {
        "numpy": _row("numpy", distribution="zerostride"),
        "torch": _row("torch"),
        "jax": _row("jax"),
        "tensorflow": _row("tensorflow"),
        "paddle": _row("paddle", "paddle"),
        "onnxruntime": _row("onnxruntime", "onnx", onnx_nodes=True),
        "openvino": _row("openvino", "onnx", "openvino", onnx_nodes=True, own_layers=True),
        # Its division is by an approximate reciprocal, and its powers are approximations.
        "ncnn": _row("ncnn", "ncnn", holds={**_FLOATS, "float64": "float32"}, ulps=8192),
        "mnn": _row(
            "mnn",
            "mnn",
            onnx_nodes=True,  # through its own converter
            holds={**_FLOATS, "int32": "int32", "int64": "int32", "bool": "bool"},
        ),
        "litert": _row("litert", "litert", own_layers=True),
        "executorch": _row(
            *("executorch", "executorch"),
            sealed=".pte",
            distribution="executorch torch",
            apart=True,
        ),
    }
)


class Absent(Exception):  # noqa: N818 - an answer
    """The runner cannot call the engine for this task."""


class Refused(Exception):  # noqa: N818 - the engine's no, where it has no exception for it
    """The engine refused without an exception: by an empty answer, a status, a printed line."""


#: The names of each of several tensors, which may have more than one.
Names = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model file, opened by an engine.

    Attributes:
        inputs, outputs: names of the file's inputs and outputs, in order. None: the engine cannot
            list them; the caller's names are used.
        compute: from arrays by the input's position to the wanted tensors: an output by its
            position, any other tensor by its name.
    """

    inputs: Names | None
    outputs: Names | None
    compute: Callable[[Mapping[int, Array], Sequence[int | str]], Sequence[Array]]


def last_line(error: BaseException) -> str:
    """The last line of an exception's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else ""


@dataclass(frozen=True, slots=True)
class Runner:
    """An engine, loaded.

    Attributes:
        version: the release that is installed.
        call: runs an op by the engine's own name.
        refusals: the exceptions by which the engine refuses. Of a call by name any other exception
            is a bug of the runner; of a model's computation it is a refusal.
        named: an op of the op table, with the attributes of its task, as arguments of `call`.
        spread: the op that broadcasts to a target shape; "": there is no such op.
        forms: the functions that carry out tasks of other forms.
        open_file: opens a model file, for a caller who calls the inputs by these names.
        open_as_written: the same, without what the engine's optimiser makes of it; None where the
            engine has no such choice.
        words: the message of an exception; lines that only its developers read left out.
    """

    version: str
    call: Call
    refusals: tuple[type[BaseException], ...]
    named: Callable[[Op, Attrs], tuple[str, Attrs]]
    spread: str = ""
    forms: Mapping[Form, Perform] = field(default_factory=dict)
    open_file: Callable[[str, Sequence[str]], ModelFile] | None = None
    open_as_written: Callable[[str, Sequence[str]], ModelFile] | None = None
    words: Callable[[BaseException], str] = last_line

    def run(self, task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        """The engine's results.

        Raises:
            Absent: it cannot be called for this; any other exception is a refusal.
        """
        if task.form is Form.CALL:
            return [self.call(task.op, task.attributes, arrays, task.target)]
        if task.form is Form.OP:
            row = OPS[task.op]
            name, attrs = self.named(row, task.attributes)
            result = self.call(name, attrs, arrays[: row.operands], ())
            for array in arrays[row.operands :]:
                result = self.call(name, attrs, (result, array), ())
            return [result]
        if task.form is Form.TO and self.spread:
            return [self.call(self.spread, task.attributes, arrays, task.target)]
        if task.form is Form.FILE and self.open_file is not None:
            opened = self.open_as_written if task.attributes.get("as_written") else None
            file = (opened or self.open_file)(task.op, task.attributes["inputs"])
            return _tensors(file, task.attributes, arrays)
        if task.form not in self.forms:
            raise Absent(f"{task.op} cannot be run by itself")
        return self.forms[task.form](task, arrays)


def load_runner(engine: str) -> Runner:
    """The engine, imported.

    Args:
        engine: a name of `RUNNERS`, or the path of a user's file (`user_file`).

    Raises:
        ImportError: it is not installed for this interpreter.
    """
    if engine.endswith(".py"):
        own: Runner = importlib.import_module(f"{__name__}.user_file").load(engine)
        return own
    module = importlib.import_module(f"{__name__}.{RUNNERS[engine].module}")
    runner: Runner = module.load()
    return runner


def own_names(engine: str) -> Callable[[Op, Attrs], tuple[str, Attrs]]:
    """The engine's names by the op table."""
    return lambda op, attrs: (str(op.names[engine][0]), attrs)


def _tensors(file: ModelFile, attributes: Attrs, arrays: Sequence[Array]) -> Sequence[Array]:
    """The wanted tensors of a file: by name where the file has the names, else in order."""
    asked, wanted = list(attributes["inputs"]), list(attributes["tensors"])
    feeds = dict(enumerate(arrays))
    if file.inputs is not None:
        places = _places(file.inputs)
        if {places.get(name) for name in asked} >= set(range(len(file.inputs))):
            pairs = zip(asked, arrays, strict=True)
            feeds = {places[name]: array for name, array in pairs if name in places}
        elif len(asked) != len(file.inputs):
            raise Refused(f"the file has the inputs {_first(file.inputs)}; the model {asked}")
    if file.outputs is None:
        return file.compute(feeds, wanted)
    places = _places(file.outputs)
    chosen = [places.get(name, name) for name in wanted]
    if attributes["outputs"] and not set(wanted) <= set(places):
        if len(wanted) != len(file.outputs):
            raise Refused(f"the file has the outputs {_first(file.outputs)}; the model {wanted}")
        chosen = list(range(len(wanted)))
    return file.compute(feeds, chosen)


def _places(every: Names) -> dict[str, int]:
    return {name: k for k, names in enumerate(every) for name in names}


def _first(every: Names) -> list[str]:
    return [next(iter(names), "") for names in every]


#: A function of an op's attributes and its operands, of the engine's own type.
Function = Callable[[Attrs, Any], Any]


def by_table(
    table: Mapping[str, Function], enter: Callable[[Array], Any], leave: Callable[[Any], Array]
) -> Perform:
    """Tasks of the form COMPOUND: one function per op, between two conversions."""

    def perform(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        if task.op not in table:
            raise Absent(f"nothing runs {task.op} by itself")
        return [leave(table[task.op](task.attributes, [enter(array) for array in arrays]))]

    return perform


def library(
    version: str,
    refusals: tuple[type[BaseException], ...],
    *,
    functions: Callable[[str], Callable[..., Any]],
    spreads: Mapping[str, Callable[[Any, Shape, Attrs], Any]],
    compounds: Mapping[str, Function],
    enter: Callable[[Array], Any],
    leave: Callable[[Any], Array],
    named: Callable[[Op, Attrs], tuple[str, Attrs]],
) -> Runner:
    """The runner of a library of functions.

    Args:
        version, refusals, named: as of :class:`Runner`.
        functions: the library's function of a name.
        spreads: the functions that take a target shape, by name; "broadcast_to" is among them.
        compounds: functions by ONNX op.
        enter, leave: from NumPy's arrays to the library's, and back.
    """

    def call(name: str, attrs: Attrs, arrays: Sequence[Array], target: Shape) -> Array:
        if name in spreads:
            return leave(spreads[name](enter(arrays[0]), target, attrs))
        return leave(functions(name)(*map(enter, arrays)))

    forms = {Form.COMPOUND: by_table(compounds, enter, leave)}
    return Runner(version, call, refusals, named, "broadcast_to", forms)


#: The default epsilon of a normalisation.
_EPSILON = 1e-5


def epsilon_of(attrs: Attrs) -> float:
    """The number that a normalisation adds to the variance."""
    return float(attrs.get("epsilon", _EPSILON))
