"""ONNX's backend interface over zerostride's own execution of models.

The functions of this module are those of `onnx.backend.base.Backend`, so it can be passed to
anything that takes a backend, such as onnx's own test suite. Needs the onnx package.

>>> import numpy as np
>>> from onnx import TensorProto, helper
>>> from zerostride import backend
>>> add = helper.make_node("Add", ["x", "y"], ["z"])
>>> backend.run_node(add, [np.ones((2, 3), np.float32), np.ones(3, np.float32)])[0].sum()
np.float32(12.0)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from .compute.native import backend as _computing
from .errors import ModelError, ZerostrideError
from .models.execute import Execution, not_executed, run_program
from .models.execute import prepare as program_of
from .models.formats.onnx.functions import MOST_ROUNDS, has_function
from .models.formats.onnx.messages import tensors_of
from .models.formats.onnx.reader import parse, read_message
from .models.ir.graph import Array, Graph
from .models.onnx_ops.validation import text

try:
    import onnx
    import onnx.backend.base
except ImportError:
    raise ImportError("the backend needs the onnx package: pip install onnx") from None

#: The file name of a model in memory, for messages.
NAME = "(model)"

#: A model: an onnx ModelProto, its bytes, or the path of its file.
Model: TypeAlias = "onnx.ModelProto | bytes | str | os.PathLike[str]"


class BackendRep(onnx.backend.base.BackendRep):
    """A prepared model, which can run any number of times.

    Attributes:
        inputs: names of the inputs of :meth:`run`, in order.
        outputs: names of its results, in order.
    """

    def __init__(self, graph: Graph, program: Execution) -> None:
        self._graph = graph
        self._program = program
        self.inputs = tuple(value.name for value in graph.inputs)
        self.outputs = tuple(value.name for value in graph.outputs)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Array, ...]:
        """Runs the model and returns its outputs.

        Args:
            inputs: an array for each input that has no initialiser, in the model's order; or a
                mapping from names; or one array alone.
            kwargs: none are accepted.

        Raises:
            ModelError: a node cannot be computed on these operands. It names the node and the
                reason.
            ZerostrideError: an input is missing, unknown, or of another shape or element type than
                the model says.
        """
        _no_options("run", kwargs)
        results = run_program(self._graph, self._program, self._by_name(inputs))
        return tuple(results[name] for name in self.outputs)

    def _by_name(self, inputs: Any) -> Mapping[str, Any]:
        if isinstance(inputs, Mapping):
            return inputs
        listed = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
        if len(listed) != len(self.inputs):
            raise ZerostrideError(
                f"{self._graph.path}: {len(listed)} inputs are given, and it has "
                f"{len(self.inputs)}: {', '.join(self.inputs) or 'none'}"
            )
        return dict(zip(self.inputs, listed, strict=True))


class Backend(onnx.backend.base.Backend):
    """zerostride as a backend of ONNX models: it runs any graph whose ops it executes, on the CPU.

    An op that zerostride does not execute itself is expanded into the function that ONNX's
    documents give for it. :meth:`prepare` refuses the remaining ones by name.

    Source: ONNX, ImplementingAnOnnxBackend.md, and `onnx.backend.base`.
    """

    @classmethod
    def is_compatible(cls, model: Model, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether :meth:`prepare` takes the model; :func:`refusals` says why not."""
        return not kwargs and cls.supports_device(device) and not refusals(model)

    @classmethod
    def prepare(cls, model: Model, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Prepares a model to run.

        Args:
            model: a ModelProto, its bytes, or a path. External data are read if the path is given.
            device: "CPU".
            kwargs: none are accepted.

        Raises:
            ModelError: it cannot be read, or has nodes or inputs that are not executed; it names
                all of them.
            ZerostrideError: another device, or an option.

        >>> from zerostride import backend
        >>> model = backend.prepare("examples/tiny_vision.onnx")
        >>> model.inputs, model.outputs
        (('image', 'keep'), ('logits', 'accepted'))
        """
        _no_options("prepare", kwargs)
        _check_device(device)
        graph, refused = _read(model)
        if refused:
            raise ModelError(f"{graph.path}: {'; '.join(refused)}")
        return BackendRep(graph, program_of(graph))

    @classmethod
    def run_model(
        cls, model: Model, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Array, ...]:
        """Runs a model: :meth:`prepare`, then :meth:`BackendRep.run`."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Array, ...]:
        """Runs one node.

        Args:
            node: the node; its outputs are returned.
            inputs: an array for each of its inputs that is not left out; or a mapping.
            device: "CPU".
            outputs_info: element types and shapes of the outputs, if known; not needed.
            kwargs: `opset_version`, of the node's op set; the newest one without it.

        Raises:
            ModelError: the node is not executed, or not on these operands.
            ZerostrideError: another device, an option, or inputs that are not the node's.
        """
        version = kwargs.pop("opset_version", None)
        _no_options("run_node", kwargs)
        _check_device(device)
        arrays = _named(node, inputs)
        return cls.prepare(_model_of(node, arrays, version), device).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True only for the CPU.

        >>> from zerostride import backend
        >>> backend.supports_device("CPU"), backend.supports_device("CUDA:1")
        (True, False)
        """
        kind, _, number = device.partition(":")
        return kind == "CPU" and number in ("", "0")


def refusals(model: Model) -> tuple[str, ...]:
    """The reasons why a model is not executed, one sentence each; empty if it is.

    Faults that depend on the operands' values appear only when the model runs.

    >>> from onnx import TensorProto, helper
    >>> from zerostride import backend
    >>> info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 1, 2, 2]) for n in "xy"]
    >>> node = helper.make_node("GridSample", ["x", "x"], ["y"], name="warp")
    >>> model = helper.make_model(helper.make_graph([node], "g", info[:1], info[1:]))
    >>> backend.refusals(model)
    ('GridSample is not executed: warp',)
    """
    try:
        return _read(model)[1]
    except ModelError as error:
        return (str(error),)


def _no_options(where: str, options: Mapping[str, Any]) -> None:
    if options:
        raise ZerostrideError(f"{where} has no option {', '.join(sorted(options))}")


def _check_device(device: str) -> None:
    if not Backend.supports_device(device):
        raise ZerostrideError(f"the device {device!r} is not supported; there is 'CPU'")


def _read(model: Model) -> tuple[Graph, tuple[str, ...]]:
    """The graph, with ops expanded where that makes them executable, and the refusals."""
    proto, name = _message(model)
    reasons = tuple(_no_tensors(proto))
    written: set[tuple[str, str]] = set()
    graph = read_message(proto, name)
    for _ in range(MOST_ROUNDS):
        named = [node.op.rpartition(":") for node in not_executed(graph)]
        more = {
            (domain, op)
            for domain, _, op in named
            if has_function(op, domain, graph.operators.get(domain, graph.version))
        }
        if more <= written:
            break
        written |= more
        graph = read_message(proto, name, written)
    by_op: dict[str, list[str]] = {}
    for node in not_executed(graph):
        by_op.setdefault(node.op + (f" ({node.why})" if node.why else ""), []).append(node.node)
    unsupported = (f"{op} is not executed: {_listed(nodes)}" for op, nodes in by_op.items())
    return graph, (*reasons, *unsupported)


def _message(model: Model) -> tuple[onnx.ModelProto, str]:
    if isinstance(model, str | os.PathLike):
        return parse(Path(model)), str(model)
    if isinstance(model, bytes):
        try:
            model = onnx.load_model_from_string(model)
        except Exception as error:  # noqa: BLE001 - protobuf's, of many kinds
            raise ModelError(f"{NAME}: not a readable ONNX model ({error})") from None
    if not isinstance(model, onnx.ModelProto):
        raise ModelError(
            f"a model is a ModelProto, its bytes or a path, not a {type(model).__name__}"
        )
    for tensor in tensors_of(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise ModelError(
                f"{NAME}: the data of {text(tensor.name)!r} are in another file; hand in the "
                "model's path, or what onnx.load gives"
            )
    return model, NAME


def _no_tensors(model: onnx.ModelProto) -> list[str]:
    """Inputs and outputs that are not tensors of numbers."""
    reasons = []
    for what, entries in (("input", model.graph.input), ("output", model.graph.output)):
        for entry in entries:
            kind = entry.type.WhichOneof("value")
            if kind not in (None, "tensor_type"):
                kind = kind.removesuffix("_type").replace("_", " ")
                reasons.append(
                    f"the {what} {text(entry.name)!r} is no tensor but a value of type {kind}"
                )
            elif entry.type.tensor_type.elem_type == onnx.TensorProto.STRING:
                reasons.append(f"the {what} {text(entry.name)!r} is of strings")
    return reasons


#: Nodes that a sentence names; the rest is counted.
_MOST_NAMED = 5


def _listed(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - _MOST_NAMED} more" if len(nodes) > _MOST_NAMED else ""
    return ", ".join(nodes[:_MOST_NAMED]) + more


def _named(node: onnx.NodeProto, inputs: Any) -> dict[str, Array]:
    """The operands of a node by name."""
    names = list(dict.fromkeys(text(name) for name in node.input if name))
    if not isinstance(inputs, Mapping):
        listed = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
        slots = [text(name) for name in node.input if name]
        if len(listed) != len(slots):
            raise ZerostrideError(f"{len(listed)} inputs for {node.op_type}, which takes {slots}")
        inputs = dict(zip(slots, listed, strict=True))
    if missing := [name for name in names if name not in inputs]:
        raise ZerostrideError(f"{node.op_type}: not given: {', '.join(missing)}")
    return {name: np.asarray(inputs[name]) for name in names}


def _model_of(node: onnx.NodeProto, arrays: Mapping[str, Array], version: Any) -> onnx.ModelProto:
    """A model of one node; its outputs have the types that inference gives."""
    from onnx import TensorProto, helper

    inputs = []
    for name, array in arrays.items():
        try:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        except (KeyError, ValueError, TypeError):
            kind = TensorProto.STRING
        if kind == TensorProto.STRING:
            raise ZerostrideError(
                f"{node.op_type}: input {name!r} is {array.dtype}; it takes numbers"
            )
        inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "node", inputs, outputs)
    newest = onnx.defs.onnx_opset_version()
    imports = [helper.make_opsetid("", newest if version is None else int(version))]
    if node.domain not in ("", "ai.onnx"):
        imports.append(helper.make_opsetid(node.domain, 1))
    return helper.make_model(graph, opset_imports=imports)


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device


class _Module(ModuleType):
    """The module can be called: `zerostride.backend()` says which engine computes."""

    def __call__(self) -> str:
        return _computing()


sys.modules[__name__].__class__ = _Module

__all__ = [
    "Backend",
    "BackendRep",
    "is_compatible",
    "prepare",
    "refusals",
    "run_model",
    "run_node",
    "supports_device",
]
