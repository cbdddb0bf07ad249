"""LiteRT's CPU runtime: models of one op, written as flatbuffers, run by its Interpreter.

The schema is the package's own. Sizes are the model's, values are set at run time, and the
delegate is the default one (XNNPACK) unless the case says otherwise.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import metadata
from types import MappingProxyType
from typing import Any

import numpy as np

from ..task import Array, Form
from . import Absent, Attrs, Runner, Shape, by_table, epsilon_of, own_names
from .litert_files import open_file, run_layer
from .written_out import normalisations

#: Builtin operator to the table of its options; None: it has none.
_OPS: Mapping[str, str | None] = MappingProxyType(
    {
        "ADD": "AddOptions",
        "SUB": "SubOptions",
        "MUL": "MulOptions",
        "DIV": "DivOptions",
        "MAXIMUM": "MaximumMinimumOptions",
        "MINIMUM": "MaximumMinimumOptions",
        "POW": "PowOptions",
        "FLOOR_DIV": "FloorDivOptions",
        "FLOOR_MOD": "FloorModOptions",
        "SQUARED_DIFFERENCE": "SquaredDifferenceOptions",
        "ATAN2": None,
        "EQUAL": "EqualOptions",
        "NOT_EQUAL": "NotEqualOptions",
        "LESS": "LessOptions",
        "LESS_EQUAL": "LessEqualOptions",
        "GREATER": "GreaterOptions",
        "GREATER_EQUAL": "GreaterEqualOptions",
        "LOGICAL_AND": "LogicalAndOptions",
        "LOGICAL_OR": "LogicalOrOptions",
        "BITWISE_XOR": None,
        "RIGHT_SHIFT": None,
        "SELECT_V2": "SelectV2Options",
        "BATCH_MATMUL": "BatchMatMulOptions",
        "PRELU": None,
        "BROADCAST_TO": "BroadcastToOptions",
    }
)
#: The first version that is registered, where that is not 1.
_VERSIONS: Mapping[str, int] = MappingProxyType({"BROADCAST_TO": 2})
#: Ops whose results are truth values.
_PREDICATES = frozenset(
    {
        *("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"),
        *("LOGICAL_AND", "LOGICAL_OR"),
    }
)
#: The version of the file format, and its mark.
_FILE_VERSION, _FILE_MARK = 3, b"TFL3"


def load() -> Runner:
    """Imports LiteRT and flatbuffers, which comes with it."""
    schema: Any = importlib.import_module("ai_edge_litert.schema_py_generated")
    interpreters: Any = importlib.import_module("ai_edge_litert.interpreter")
    flatbuffers: Any = importlib.import_module("flatbuffers")

    def model_of(
        op: str, inputs: Sequence[Array], constants: Sequence[Array], result: tuple[str, Shape]
    ) -> bytes:
        """A file of one op; the result's shape in it is replaced when it runs."""
        every = (*inputs, *constants)
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, op)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.version = _VERSIONS.get(op, 1)
        node = schema.OperatorT()
        node.inputs, node.outputs = list(range(len(every))), [len(every)]
        options = _OPS[op]
        if options is not None:
            node.builtinOptionsType = getattr(schema.BuiltinOptions, options)
            node.builtinOptions = getattr(schema, f"{options}T")()
        graph = schema.SubGraphT()
        graph.tensors = [
            tensor(f"x{k}", str(array.dtype), array.shape) for k, array in enumerate(every)
        ]
        graph.tensors.append(tensor("y", *result))
        graph.outputs, graph.operators = node.outputs, [node]
        model = schema.ModelT()
        model.version, model.operatorCodes = _FILE_VERSION, [code]
        model.subgraphs, model.buffers = [graph], [schema.BufferT()]  # buffer 0 is reserved
        graph.inputs = node.inputs[: len(inputs)]
        for place, array in zip(graph.tensors[len(inputs) :], constants, strict=False):
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(array.tobytes(), np.uint8)
            place.buffer = len(model.buffers)
            model.buffers.append(buffer)
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), _FILE_MARK)
        return bytes(builder.Output())

    def tensor(name: str, dtype: str, shape: Shape) -> Any:
        result = schema.TensorT()
        result.name, result.type = name, getattr(schema.TensorType, dtype.upper())
        result.shape, result.hasRank = list(shape), True
        return result

    def run(
        op: str, attrs: Attrs, inputs: Sequence[Array], constants: Sequence[Array], dtype: str
    ) -> Array:
        longest = max((array.shape for array in inputs), key=len)
        resolvers = interpreters.OpResolverType
        plain = attrs.get("delegate") == "none"
        interpreter = interpreters.Interpreter(
            model_content=model_of(op, inputs, constants, (dtype, longest)),
            experimental_op_resolver_type=(
                resolvers.BUILTIN_WITHOUT_DEFAULT_DELEGATES if plain else resolvers.AUTO
            ),
            num_threads=1,
        )
        interpreter.allocate_tensors()
        for place, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(place["index"], array)
        interpreter.invoke()
        return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))

    def call(name: str, attrs: Attrs, arrays: Sequence[Array], target: Shape = ()) -> Array:
        if name not in _OPS:
            raise Absent(f"no model of {name} is written here")
        constants = []
        if name == "BROADCAST_TO":  # the target is a constant, as converters write it
            constants.append(np.array(target, np.int32).reshape(len(target)))
        dtype = "bool" if name in _PREDICATES else str(arrays[-1].dtype)
        return run(name, attrs, arrays, constants, dtype)

    def op(name: str, *arrays: Array) -> Array:
        return call(name, {}, arrays)

    def clip(attrs: Attrs, x: Sequence[Array]) -> Array:
        clipped = x[0]
        for name, bound in zip(("MAXIMUM", "MINIMUM"), x[1:], strict=False):
            clipped = op(name, clipped, bound)
        return clipped

    def batch_norm(attrs: Attrs, x: Sequence[Array]) -> Array:
        data, scale, bias, mean, variance = x
        factor = scale / np.sqrt(variance + epsilon_of(attrs))  # constants: a converter folds them
        return op("ADD", op("MUL", op("SUB", data, mean), factor), bias)

    compounds = {
        "Gemm": lambda attrs, x: op("ADD", op("BATCH_MATMUL", x[0], x[1]), x[2]),
        "MatMul": lambda attrs, x: op("BATCH_MATMUL", *x),
        "Clip": clip,
        "BatchNormalization": batch_norm,
        **normalisations(np.asarray, partial(op, "MUL"), partial(op, "ADD")),
    }
    return Runner(
        metadata.version("ai-edge-litert"),
        call,
        (RuntimeError, ValueError),
        own_names("litert"),
        "BROADCAST_TO",
        {Form.COMPOUND: by_table(compounds, np.asarray, np.asarray), Form.LAYER: run_layer},
        open_file,
    )
