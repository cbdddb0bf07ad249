"""Runs ops on real engines by the names of the op table.

`ask(engine)` gives a function of (op's row, operands) that returns an array, or raises whatever the
engine raises. Only engines whose refusals are exceptions may be handed data that they refuse; ncnn
and MNN get what they take.
"""

import functools
import importlib
import os
import warnings

import numpy as np
import openvino_runs

from zerostride.runtimes.process import Missing, Process
from zerostride.runtimes.task import Form, ReplyKind, Task

COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
#: Ops whose results are truth values.
PREDICATES = COMPARISONS | {"isnan", "isinf", "isfinite", "logical_not"}


class Uncalled(Exception):  # noqa: N818 - an answer
    """The engine's op takes no such parameter."""


def split(op, operands):
    """The tensors, and the parameters by name as Python numbers."""
    numbers = [float(value) for value in operands[op.tensors :]]
    return operands[: op.tensors], dict(zip(op.parameters, numbers, strict=True))


def only_defaults(op, parameters):
    """For functions that have no such parameters."""
    if parameters != dict(op.parameters):
        raise Uncalled(op.name)


def found(name, homes):
    """The function of that name of the first module that has it."""
    return getattr(next(home for home in homes if hasattr(home, name)), name)


def ask(engine):
    """The engine's function, or ImportError where it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ENGINES[engine]()


def result_dtype(op, operands):
    return np.dtype(bool) if op.name in PREDICATES else operands[0].dtype


def _torch(compute=None):
    torch = importlib.import_module("torch")
    homes = (torch, importlib.import_module("torch.nn.functional"))

    def run(op, operands):
        tensors, parameters = split(op, operands)
        if op.name in ("selu", "swish"):  # have none
            only_defaults(op, parameters)
            parameters = {}
        function = found(op.names["torch"][0], homes)
        more = {"approximate": "tanh"} if op.name == "gelu_tanh" else {}
        tensors = tuple(map(torch.tensor, tensors))
        if compute is not None:
            return compute(lambda *them: function(*them, *parameters.values(), **more), tensors)
        return function(*tensors, *parameters.values(), **more).numpy()

    return run


def _executorch():
    """PyTorch's functions, lowered; in the environment that has ExecuTorch."""
    lower = importlib.import_module("executorch.exir").to_edge_transform_and_lower
    runtime = importlib.import_module("executorch.runtime").Runtime.get()
    torch = importlib.import_module("torch")

    def compute(function, tensors):
        class Module(torch.nn.Module):
            def forward(self, *tensors):
                return function(*tensors)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = lower(torch.export.export(Module(), tensors)).to_executorch()
        (result,) = runtime.load_program(program.buffer).load_method("forward").execute(tensors)
        return result.numpy()

    return _torch(compute)


def _jax():
    homes = [importlib.import_module(name) for name in ("jax.numpy", "jax.nn", "jax.lax")]
    asarray = homes[0].asarray
    enable_x64 = importlib.import_module("jax").enable_x64

    def run(op, operands):
        tensors, parameters = split(op, operands)
        more = {"approximate": op.name == "gelu_tanh"} if op.name.startswith("gelu") else {}
        if op.name in ("selu", "swish"):
            only_defaults(op, parameters)
            parameters = {}
        function = found(op.names["jax"][0], homes)
        with enable_x64(False):  # as it is by itself: another test may have said otherwise
            return np.asarray(function(*map(asarray, tensors), *parameters.values(), **more))

    return run


def _tensorflow():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    tf = importlib.import_module("tensorflow")

    def run(op, operands):
        name = op.names["tensorflow"][0]
        if name == "truncatemod":  # has no public name outside raw_ops
            return tf.raw_ops.TruncateMod(x=operands[0], y=operands[1]).numpy()
        tensors, parameters = split(op, operands)
        more = {"approximate": op.name == "gelu_tanh"} if op.name.startswith("gelu") else {}
        if op.name in ("elu", "selu"):
            only_defaults(op, parameters)
            parameters = {}
        function = found(name, (tf, tf.math, tf.bitwise, tf.nn))
        return function(*map(tf.constant, tensors), *parameters.values(), **more).numpy()

    return run


def _onnxruntime():
    ort = importlib.import_module("onnxruntime")
    helper = importlib.import_module("onnx.helper")
    ort.set_default_logger_severity(4)
    more = {
        "fmod": {"fmod": 1},
        "bitwise_left_shift": {"direction": "LEFT"},
        "bitwise_right_shift": {"direction": "RIGHT"},
        "gelu_tanh": {"approximate": "tanh"},
    }

    def run(op, operands):
        operands, parameters = split(op, operands)
        names = [f"x{k}" for k in range(len(operands))]
        inputs = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in zip(names, operands, strict=True)
        ]
        returned = helper.np_dtype_to_tensor_dtype(result_dtype(op, operands[-2:]))
        attributes = {**more.get(op.name, {}), **parameters}
        node = helper.make_node(op.names["onnx"][0], names, ["y"], **attributes)
        output = helper.make_tensor_value_info("y", returned, None)
        graph = helper.make_graph([node], "g", inputs, [output])
        opset = [helper.make_opsetid("", 24 if op.name == "swish" else 21)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=10)
        session = ort.InferenceSession(model.SerializeToString())
        return session.run(None, dict(zip(names, operands, strict=True)))[0]

    return run


def _openvino():
    ov = importlib.import_module("openvino")
    factory = importlib.import_module("openvino.opset15.ops").__dict__["_get_node_factory_opset15"]
    ops = importlib.import_module("openvino.opset15")
    core = openvino_runs.cpu()

    attributes = {
        "gelu": lambda _: {"approximation_mode": "ERF"},
        "gelu_tanh": lambda _: {"approximation_mode": "TANH"},
        "round": lambda _: {"mode": "half_to_even"},
        "elu": dict,
    }

    def run(op, operands):
        tensors, parameters = split(op, operands)
        if op.name == "clip":
            tensors, parameters = tensors[:1], {"min": float(tensors[1]), "max": float(tensors[2])}
        inputs = [ops.parameter(list(x.shape), dtype=x.dtype) for x in tensors]
        if op.name in ("elu", "clip"):
            more, constants = parameters, []
        else:
            more = attributes.get(op.name, lambda _: {})(parameters)
            kind = tensors[0].dtype
            constants = [ops.constant(np.array(v, kind)) for v in parameters.values()]
        node = factory().create(op.names["openvino"][0], [*inputs, *constants], more)
        return core.compile_model(ov.Model([node], inputs), "CPU")(list(tensors))[0].copy()

    return run


def _paddle():
    paddle = importlib.import_module("paddle")
    paddle.enable_static()
    executor = paddle.static.Executor(paddle.CPUPlace())
    slots = {
        "atan2": (("X1", "X2"), "Out"),
        "bitwise_left_shift": (("x", "y"), "out"),
        "bitwise_right_shift": (("x", "y"), "out"),
        "copysign": (("x", "y"), "out"),
        "nextafter": (("x", "y"), "out"),
        "where": (("Condition", "X", "Y"), "Out"),
        "clip": (("X", "Min", "Max"), "Out"),
    }
    #: What Paddle calls a parameter that ONNX calls otherwise.
    words = {
        "gamma": "scale",
        ("thresholded_relu", "alpha"): "threshold",
        ("hard_sigmoid", "alpha"): "slope",
        ("hard_sigmoid", "beta"): "offset",
    }
    more = {"gelu_tanh": {"approximate": True}}

    def run(op, operands):
        operands, parameters = split(op, operands)
        if op.name == "swish":
            only_defaults(op, parameters)
            parameters = {}
        attributes = {
            **more.get(op.name, {}),
            **{words.get((op.name, k), words.get(k, k)): v for k, v in parameters.items()},
        }
        one = op.tensors == 1
        ins, out = slots.get(op.name, (("X",) if one else ("X", "Y"), "Out"))
        with paddle.pir_utils.OldIrGuard():
            program = paddle.static.Program()
            with paddle.static.program_guard(program, paddle.static.Program()):
                block = program.global_block()
                variables = {
                    slot: [paddle.static.data(slot, x.shape or (1,), str(x.dtype))]
                    for slot, x in zip(ins, operands, strict=True)
                }
                dtype = str(result_dtype(op, operands[-2:]))
                result = block.create_var(name="result", dtype=dtype)
                block.append_op(
                    type=op.names["paddle"][0],
                    inputs=variables,
                    outputs={out: [result]},
                    attrs=attributes,
                )
                feed = dict(zip(ins, operands, strict=True))
                return np.asarray(executor.run(program, feed=feed, fetch_list=[result])[0])

    return run


def _ncnn():
    ncnn = importlib.import_module("ncnn")
    #: Layers whose parameters are written in an order or with defaults of their own.
    layers = {
        "leaky_relu": lambda alpha: f"ReLU op 1 1 a c 0={alpha}",
        "gelu": lambda: "GELU op 1 1 a c 0=0",
    }

    def run(op, operands):
        operands, parameters = split(op, operands)
        net = ncnn.Net()
        name = op.names["ncnn"][0]
        inputs = "ab"[: op.tensors]
        if op.tensors == 2:
            layer = f"BinaryOp op 2 1 a b c 0={name}"
        elif op.name == "clip":
            inputs, layer = "a", f"Clip op 1 1 a c 0={operands[1]} 1={operands[2]}"
            operands = operands[:1]
        elif op.name in layers:
            layer = layers[op.name](*parameters.values())
        elif name.startswith("UnaryOp."):
            layer = f"UnaryOp op 1 1 a c 0={name.partition('.')[2]}"
        else:
            values = [f"{k}={value}" for k, value in enumerate(parameters.values())]
            layer = " ".join([f"{name} op 1 1 a c", *values])
        given = "".join(f"Input {name} 0 1 {name}\n" for name in inputs)
        count = len(inputs) + 1
        net.load_param_mem(f"7767517\n{count} {count}\n{given}{layer}\n")
        extractor = net.create_extractor()
        for name, x in zip(inputs, operands, strict=True):
            extractor.input(name, ncnn.Mat(np.ascontiguousarray(x)).clone())
        status, result = extractor.extract("c")
        if status:
            raise ValueError(f"ncnn gives status {status}")
        return np.array(result)

    return run


#: MNN's Python functions, where their names are not the enumeration's in small letters.
_MNN_FUNCTIONS = {
    "REALDIV": "divide",
    "SUB": "subtract",
    "MUL": "multiply",
    "NOTEQUAL": "not_equal",
    "LOGICALOR": "logical_or",
    "SquaredDifference": "squared_difference",
    "Select": "select",
    "NEG": "negative",
    "ReLU": "relu",
    "ELU": "elu",
    "Selu": "selu",
    "GELU": None,
    "GELU_STANDARD": "gelu",
}


def _mnn():
    expr = importlib.import_module("MNN.expr")
    kinds = {np.dtype("int32"): expr.int, np.dtype("float32"): expr.float}

    def run(op, operands):
        operands, parameters = split(op, operands)
        name = op.names["mnn"][0]
        name = _MNN_FUNCTIONS.get(name, name.lower())
        if name is None or not hasattr(expr, name):
            raise Uncalled(op.name)
        if op.name == "selu":  # takes gamma first
            parameters = dict(reversed(parameters.items()))
        function = getattr(expr, name)
        constants = [
            expr.const(x.ravel().tolist(), list(x.shape), expr.NCHW, kinds[x.dtype])
            for x in operands
        ]
        return np.array(function(*constants, *parameters.values()).read())

    return run


def _litert():
    process = Process("litert")
    try:
        process.start()
    except Missing as error:
        raise ImportError(str(error)) from error

    def run(op, operands):
        tensors, parameters = split(op, operands)
        reply = process.ask(Task(Form.OP, op.name), tensors, again=False)
        if parameters or reply.kind in (ReplyKind.ABSENT, ReplyKind.BROKEN):
            raise Uncalled(op.name)
        if reply.kind is not ReplyKind.RESULT:
            raise ValueError(reply.describe())
        return reply.arrays[0]

    return run


ENGINES = {
    "torch": _torch,
    "executorch": _executorch,
    "jax": _jax,
    "tensorflow": _tensorflow,
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
    "paddle": _paddle,
    "ncnn": _ncnn,
    "mnn": _mnn,
    "litert": _litert,
}
ask = functools.cache(ask)
