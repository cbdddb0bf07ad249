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
from . import Absent, Attrs, Function, Runner, Shape, by_table, epsilon_of, own_names
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


class _LiteRt:
    """LiteRT's interpreter, loaded, with the schema of its files."""

    def __init__(self) -> None:
        self.schema: Any = importlib.import_module("ai_edge_litert.schema_py_generated")
        self.interpreters: Any = importlib.import_module("ai_edge_litert.interpreter")
        self.flatbuffers: Any = importlib.import_module("flatbuffers")

    def _model_of(
        self,
        op: str,
        inputs: Sequence[Array],
        constants: Sequence[Array],
        result: tuple[str, Shape],
    ) -> bytes:
        """A file of one op; the result's shape in it is replaced when it runs."""
        every = (*inputs, *constants)
        code = self.schema.OperatorCodeT()
        code.builtinCode = getattr(self.schema.BuiltinOperator, op)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.version = _VERSIONS.get(op, 1)
        node = self.schema.OperatorT()
        node.inputs, node.outputs = list(range(len(every))), [len(every)]
        options = _OPS[op]
        if options is not None:
            node.builtinOptionsType = getattr(self.schema.BuiltinOptions, options)
            node.builtinOptions = getattr(self.schema, f"{options}T")()
        graph = self.schema.SubGraphT()
        graph.tensors = [
            self._tensor(f"x{k}", str(array.dtype), array.shape) for k, array in enumerate(every)
        ]
        graph.tensors.append(self._tensor("y", *result))
        graph.outputs, graph.operators = node.outputs, [node]
        model = self.schema.ModelT()
        model.version, model.operatorCodes = _FILE_VERSION, [code]
        model.subgraphs, model.buffers = [graph], [self.schema.BufferT()]  # buffer 0 is reserved
        graph.inputs = node.inputs[: len(inputs)]
        for place, array in zip(graph.tensors[len(inputs) :], constants, strict=False):
            buffer = self.schema.BufferT()
            buffer.data = np.frombuffer(array.tobytes(), np.uint8)
            place.buffer = len(model.buffers)
            model.buffers.append(buffer)
        builder = self.flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), _FILE_MARK)
        return bytes(builder.Output())

    def _tensor(self, name: str, dtype: str, shape: Shape) -> Any:
        result = self.schema.TensorT()
        result.name, result.type = name, getattr(self.schema.TensorType, dtype.upper())
        result.shape, result.hasRank = list(shape), True
        return result

    def _run(
        self, op: str, attrs: Attrs, inputs: Sequence[Array], constants: Sequence[Array], dtype: str
    ) -> Array:
        longest = max((array.shape for array in inputs), key=len)
        resolvers = self.interpreters.OpResolverType
        plain = attrs.get("delegate") == "none"
        interpreter = self.interpreters.Interpreter(
            model_content=self._model_of(op, inputs, constants, (dtype, longest)),
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

    def call(self, name: str, attrs: Attrs, arrays: Sequence[Array], target: Shape = ()) -> Array:
        if name not in _OPS:
            raise Absent(f"no model of {name} is written here")
        constants = []
        if name == "BROADCAST_TO":  # the target is a constant, as converters write it
            constants.append(np.array(target, np.int32).reshape(len(target)))
        dtype = "bool" if name in _PREDICATES else str(arrays[-1].dtype)
        return self._run(name, attrs, arrays, constants, dtype)

    def _op(self, name: str, *arrays: Array) -> Array:
        return self.call(name, {}, arrays)

    def _clip(self, attrs: Attrs, x: Sequence[Array]) -> Array:
        clipped = x[0]
        for name, bound in zip(("MAXIMUM", "MINIMUM"), x[1:], strict=False):
            clipped = self._op(name, clipped, bound)
        return clipped

    def _batch_norm(self, attrs: Attrs, x: Sequence[Array]) -> Array:
        data, scale, bias, mean, variance = x
        factor = scale / np.sqrt(variance + epsilon_of(attrs))  # constants: a converter folds them
        return self._op("ADD", self._op("MUL", self._op("SUB", data, mean), factor), bias)

    def compounds(self) -> Mapping[str, Function]:
        """Functions by ONNX op."""
        return {
            "Gemm": lambda attrs, x: self._op("ADD", self._op("BATCH_MATMUL", x[0], x[1]), x[2]),
            "MatMul": lambda attrs, x: self._op("BATCH_MATMUL", *x),
            "Clip": self._clip,
            "BatchNormalization": self._batch_norm,
            **normalisations(np.asarray, partial(self._op, "MUL"), partial(self._op, "ADD")),
        }


def load() -> Runner:
    """Imports LiteRT and flatbuffers, which comes with it."""
    engine = _LiteRt()
    return Runner(
        metadata.version("ai-edge-litert"),
        engine.call,
        (RuntimeError, ValueError),
        own_names("litert"),
        "BROADCAST_TO",
        {
            Form.COMPOUND: by_table(engine.compounds(), np.asarray, np.asarray),
            Form.LAYER: run_layer,
        },
        open_file,
    )
