"""LiteRT's CPU runtime on files: a whole one, or one that holds a single op of a model."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...models.formats.tflite.reader import tensor_numbers
from ...models.formats.tflite.schema import NUMBERS, options_of
from ..task import Array, Task
from . import Absent, ModelFile, Refused

#: The version of the file format, and its mark.
_VERSION, _MARK = 3, b"TFL3"


def _package() -> SimpleNamespace:
    names = {"schema": "schema_py_generated", "interpreter": "interpreter"}
    parts = {key: importlib.import_module(f"ai_edge_litert.{name}") for key, name in names.items()}
    return SimpleNamespace(flatbuffers=importlib.import_module("flatbuffers"), **parts)


def open_file(path: str, names: Sequence[str]) -> ModelFile:
    """A file whose first subgraph runs; it hands out every tensor, by its name in the graph."""
    package = _package()
    numbers = {name: at[1] for name, at in tensor_numbers(Path(path)).items() if not at[0]}
    bare = package.interpreter.Interpreter(
        model_path=path,
        # A delegate would keep the tensors inside of it to itself.
        experimental_op_resolver_type=(
            package.interpreter.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        ),
        experimental_preserve_all_tensors=True,
        num_threads=1,
    )
    by_number = {number: name for name, number in numbers.items()}
    details = bare.get_input_details()
    inputs = [entry["index"] for entry in details]
    outputs = [entry["index"] for entry in bare.get_output_details()]

    def compute(feeds: Mapping[int, Array], wanted: Sequence[int | str]) -> Sequence[Array]:
        places = [outputs[t] if isinstance(t, int) else numbers.get(t) for t in wanted]
        if None in places:
            raise Absent(f"{wanted[places.index(None)]!r} is not of the first subgraph")
        try:
            return _run(bare, details, feeds, places)
        except RuntimeError:
            if not all(isinstance(one, int) for one in wanted):
                raise
        # XNNPACK, which is the default, has kernels of float16 that the others lack.
        whole = package.interpreter.Interpreter(model_path=path, num_threads=1)
        return _run(whole, details, feeds, places)

    listed = [[(by_number[number],) for number in every] for every in (inputs, outputs)]
    return ModelFile(listed[0], listed[1], compute)


def _run(
    interpreter: Any, details: Any, feeds: Mapping[int, Array], places: Sequence[int | None]
) -> Sequence[Array]:
    """The arrays at these places of the graph."""
    for k, array in feeds.items():
        interpreter.resize_tensor_input(details[k]["index"], array.shape)
    interpreter.allocate_tensors()
    for k, array in feeds.items():
        interpreter.set_tensor(details[k]["index"], _narrowed(array, details[k]["dtype"]))
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(number)) for number in places]


def _narrowed(array: Array, dtype: Any) -> Array:
    """An array in the type of a file's input, if its converter writes another one, as it does.

    litert-torch keeps no 64 bits, and onnx2tf gets floats for some whole numbers.

    >>> _narrowed(np.array([3]), np.int32).dtype
    dtype('int32')
    >>> _narrowed(np.array([2**31]), np.int32)
    Traceback (most recent call last):
    zerostride.runtimes.runners.Refused: an input of int32 does not hold numbers of this int64
    """
    narrow = np.dtype(dtype)
    if narrow.name not in _NARROWER.get(array.dtype.name, ()):
        return array  # an array of another type is the engine's to refuse
    if array.dtype.kind != "f" and (array != array.astype(narrow).astype(array.dtype)).any():
        raise Refused(f"an input of {narrow} does not hold numbers of this {array.dtype}")
    return array.astype(narrow)


#: The types that converters write for a type.
_NARROWER: Mapping[str, tuple[str, ...]] = {
    "float64": ("float32",),
    "int64": ("int32", "float32"),
    "int32": ("float32",),
    "bool": ("float32",),
}


def run_layer(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
    """One builtin op with its options and the quantisation of its tensors."""
    package = _package()
    model, fed = _one_op(package, task, arrays)
    interpreter = package.interpreter.Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    for entry, array in zip(interpreter.get_input_details(), fed, strict=True):
        interpreter.set_tensor(entry["index"], array)
    interpreter.invoke()
    (output,) = interpreter.get_output_details()
    return [np.array(interpreter.get_tensor(output["index"]))]


def _one_op(
    package: SimpleNamespace, task: Task, arrays: Sequence[Array]
) -> tuple[bytes, list[Array]]:
    """A file of one op, and the data of its inputs."""
    schema = package.schema
    numbers = task.attributes["numbers"]
    left = list(zip(arrays, task.constant, task.attributes["stored"][:-1], strict=True))
    graph, model = schema.SubGraphT(), schema.ModelT()
    graph.tensors, graph.inputs, fed = [], [], []
    model.buffers = [schema.BufferT()]  # buffer 0 is reserved
    for k in range(len(arrays) + len(numbers)):
        if str(k) in numbers:
            listed = np.array(numbers[str(k)], np.int32).reshape(len(numbers[str(k)]))
            array, constant, stored = listed, True, ["int32", []]
        else:
            array, constant, stored = left.pop(0)
        tensor = _tensor(schema, f"x{k}", array.shape, stored)
        if constant:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(array.tobytes(), np.uint8)
            tensor.buffer = len(model.buffers)
            model.buffers.append(buffer)
        else:
            graph.inputs.append(k)
            fed.append(array)
        graph.tensors.append(tensor)
    longest = max((array.shape for array in arrays), key=len)
    graph.tensors.append(_tensor(schema, "y", longest, task.attributes["stored"][-1]))
    node, code = schema.OperatorT(), schema.OperatorCodeT()
    node.inputs, node.outputs = list(range(len(graph.tensors) - 1)), [len(graph.tensors) - 1]
    code.builtinCode, code.version = NUMBERS[task.op], int(task.attributes["version"])
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    options = options_of(task.op)
    if options is not None:
        node.builtinOptionsType = getattr(schema.BuiltinOptions, options)
        node.builtinOptions = _options(schema, options, task.attributes["data"])
    graph.outputs, graph.operators = node.outputs, [node]
    model.version, model.operatorCodes, model.subgraphs = _VERSION, [code], [graph]
    builder = package.flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), _MARK)
    return bytes(builder.Output()), fed


def _options(schema: Any, name: str, data: Mapping[str, Any]) -> Any:
    """An op's options, from attributes under the schema's names."""
    options = getattr(schema, f"{name}T")()
    for key, value in data.items():
        if key == "fused_activation_function":
            value = getattr(schema.ActivationFunctionType, value)
        first, *rest = key.split("_")
        own = "".join((first, *map(str.capitalize, rest)))
        if hasattr(options, own):
            setattr(options, own, value)
    return options


def _tensor(schema: Any, name: str, shape: Sequence[int], stored: Sequence[Any]) -> Any:
    dtype, quantised = stored
    tensor = schema.TensorT()
    tensor.name, tensor.type = name, getattr(schema.TensorType, dtype.upper())
    tensor.shape, tensor.hasRank = list(shape), True
    if quantised:
        parameters = tensor.quantization = schema.QuantizationParametersT()
        parameters.scale, parameters.zeroPoint, parameters.quantizedDimension = quantised
    return tensor
