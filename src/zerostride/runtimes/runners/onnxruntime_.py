"""ONNX Runtime on the CPU, one thread."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...ops import Op
from ..task import Array, Form, Task
from . import Attrs, ModelFile, Runner, Shape
from .onnx_node import OPSET, fed, one_node

#: ONNX attributes for ops that have their own names in the op table.
_MORE: Mapping[str, Attrs] = {
    "fmod": {"fmod": 1},
    "bitwise_left_shift": {"direction": "LEFT"},
    "bitwise_right_shift": {"direction": "RIGHT"},
}
#: The option with the folder of weights that lie beside a model in memory.
_WEIGHTS = "session.model_external_initializers_file_folder_path"
#: Parts of messages that only its developers read, and words for them: the status and its number,
#: the node that computed, the place in its sources with the condition that failed there.
_INSIDE = (
    (r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", ""),
    (r"Non-zero status code returned while running (\w+) node\. Name:''", r"\1:"),
    (r"Non-zero status code returned while running (\w+) node\. Name:", r"\1 "),
    (r"Load model from (ModelProto '.*?'|\S+) failed: ?", r"\1 does not load: "),
    (r" ?Status Message: ", " "),
    (r"\S+\.(?:h|cc|cpp):\d+ .*? was false\. ", ""),
    (r"\S+\.(?:h|cc|cpp):\d+ ", ""),
    (r"\[ShapeInferenceError\] ", ""),
)
#: The most sessions of calls that are kept.
_MOST_SESSIONS = 1024


def _named(op: Op, attrs: Attrs) -> tuple[str, Attrs]:
    return f"{op.names['onnx'][0]}-{OPSET}", _MORE.get(op.name, {})


def words(error: BaseException) -> str:
    """The message of an exception on one line, without its inner parts.

    >>> words(ValueError("[ONNXRuntimeError] : 1 : FAIL : Node (n) Op (Add) no sizes"))
    'Node (n) Op (Add) no sizes'
    """
    text = " ".join(str(error).split())
    for pattern, better in _INSIDE:
        text = re.sub(pattern, better, text)
    return text.removesuffix("Please fix either the inputs/outputs or the model.").strip()


class _OnnxRuntime:
    """ONNX Runtime, loaded, with the sessions that it keeps."""

    def __init__(self) -> None:
        self.ort: Any = importlib.import_module("onnxruntime")
        self.states: Any = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
        self.onnx: Any = importlib.import_module("onnx")
        self.ort.set_default_logger_severity(4)
        self.sessions: dict[tuple[Any, ...], Any] = {}

    def _session(self, model: bytes | str, folder: str = "", *, optimised: bool = True) -> Any:
        options = self.ort.SessionOptions()
        if not optimised:
            levels = self.ort.GraphOptimizationLevel
            options.graph_optimization_level = levels.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        if folder:
            options.add_session_config_entry(_WEIGHTS, folder)
        return self.ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def call(self, name: str, attrs: Attrs, arrays: Sequence[Array], target: Shape) -> Array:
        """A node of an op set, "Add-14"; an older op set's kernel is another kernel."""
        op, _, opset = name.rpartition("-")
        inputs = list(arrays)
        if op == "Expand":
            attrs, inputs = {}, [*inputs, np.array(target, np.int64).reshape(len(target))]
        key = (name, repr(attrs), *((array.dtype, array.ndim) for array in inputs))
        if key not in self.sessions:
            if len(self.sessions) == _MOST_SESSIONS:
                self.sessions.clear()
            task = Task(Form.NODE, op, attrs, opset=int(opset))
            self.sessions[key] = self._session(one_node(task, inputs, open_sizes=True))
        feeds = {f"x{k}": array for k, array in enumerate(inputs)}
        return np.asarray(self.sessions[key].run(None, feeds)[0])

    def node(self, task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        return [np.asarray(self._session(one_node(task, arrays)).run(None, fed(task, arrays))[0])]

    def open_as_written(self, path: str, names: Sequence[str]) -> ModelFile:
        return self.open_file(path, names, optimised=False)

    def open_file(self, path: str, _: Sequence[str], *, optimised: bool = True) -> ModelFile:
        graph = self.onnx.load(path, load_external_data=False).graph
        constants = {tensor.name for tensor in graph.initializer}
        inputs = [entry.name for entry in graph.input if entry.name not in constants]
        outputs = [entry.name for entry in graph.output]

        def compute(feeds: Mapping[int, Array], wanted: Sequence[int | str]) -> Sequence[Array]:
            named = {inputs[k]: array for k, array in feeds.items()}
            names = [outputs[name] if isinstance(name, int) else name for name in wanted]
            whole = set(names) <= set(outputs)
            if whole:
                chosen = self._session(path, optimised=optimised)
            else:
                chosen = self._with_outputs(path, names)
            return [np.asarray(result) for result in chosen.run(names, named)]

        return ModelFile([[name] for name in inputs], [[name] for name in outputs], compute)

    def _with_outputs(self, path: str, names: Sequence[str]) -> Any:
        """A session of the file whose outputs are any of its tensors, without other nodes.

        A node that is not needed may be one that the runtime refuses.
        """
        model = self.onnx.load(path, load_external_data=False)
        needed, kept = set(names), []
        for node in reversed(model.graph.node):
            if needed.intersection(node.output):
                kept.append(node)
                needed.update(_read_by(node))
        nodes = [
            self.onnx.NodeProto.FromString(node.SerializeToString()) for node in reversed(kept)
        ]
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        del model.graph.output[:]
        model.graph.output.extend(map(self.onnx.helper.make_empty_tensor_value_info, names))
        return self._session(model.SerializeToString(), str(Path(path).resolve().parent))


def load() -> Runner:
    """Imports ONNX Runtime, and onnx to write its models."""
    engine = _OnnxRuntime()
    return Runner(
        str(engine.ort.__version__),
        engine.call,
        (engine.states.InvalidArgument, engine.states.Fail, engine.states.RuntimeException),
        _named,
        "Expand-13",
        {Form.NODE: engine.node},
        engine.open_file,
        engine.open_as_written,
        words,
    )


def _read_by(node: Any) -> Iterator[str]:
    """Yield the names that a node of ONNX and its bodies read."""
    yield from node.input
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            yield from (entry.name for entry in body.output)
            for inner in body.node:
                yield from _read_by(inner)
