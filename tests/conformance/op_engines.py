"""Real engines, asked for an op by the name that the op table has for it.

`ask(engine)` gives a function of (op's row, operands) that returns an array, or raises whatever the
engine raises. Only engines whose refusals are exceptions may be handed data that they refuse; ncnn
and MNN get what they take.
"""

import functools
import importlib
import os
import warnings

import numpy as np

COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}


def ask(engine):
    """The engine's function, or ImportError where it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ENGINES[engine]()


def result_dtype(op, operands):
    return np.dtype(bool) if op.name in COMPARISONS else operands[0].dtype


def _torch():
    torch = importlib.import_module("torch")

    def run(op, operands):
        return getattr(torch, op.names["torch"][0])(*map(torch.tensor, operands)).numpy()

    return run


def _jax():
    numpy = importlib.import_module("jax.numpy")

    def run(op, operands):
        return np.asarray(getattr(numpy, op.names["jax"][0])(*map(numpy.asarray, operands)))

    return run


def _tensorflow():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    tf = importlib.import_module("tensorflow")

    def run(op, operands):
        name = op.names["tensorflow"][0]
        if name == "truncatemod":  # has no public name outside raw_ops
            return tf.raw_ops.TruncateMod(x=operands[0], y=operands[1]).numpy()
        home = next(h for h in (tf, tf.math, tf.bitwise) if hasattr(h, name))
        return getattr(home, name)(*map(tf.constant, operands)).numpy()

    return run


def _onnxruntime():
    ort = importlib.import_module("onnxruntime")
    helper = importlib.import_module("onnx.helper")
    ort.set_default_logger_severity(4)
    more = {
        "fmod": {"fmod": 1},
        "bitwise_left_shift": {"direction": "LEFT"},
        "bitwise_right_shift": {"direction": "RIGHT"},
    }

    def run(op, operands):
        names = [f"x{k}" for k in range(len(operands))]
        inputs = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in zip(names, operands, strict=True)
        ]
        returned = helper.np_dtype_to_tensor_dtype(result_dtype(op, operands[-2:]))
        node = helper.make_node(op.names["onnx"][0], names, ["y"], **more.get(op.name, {}))
        output = helper.make_tensor_value_info("y", returned, None)
        graph = helper.make_graph([node], "g", inputs, [output])
        opset = [helper.make_opsetid("", 21)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=10)
        session = ort.InferenceSession(model.SerializeToString())
        return session.run(None, dict(zip(names, operands, strict=True)))[0]

    return run


def _openvino():
    ov = importlib.import_module("openvino")
    factory = importlib.import_module("openvino.opset15.ops").__dict__["_get_node_factory_opset15"]
    ops = importlib.import_module("openvino.opset15")
    core = ov.Core()

    def run(op, operands):
        inputs = [ops.parameter(list(x.shape), dtype=x.dtype) for x in operands]
        node = factory().create(op.names["openvino"][0], inputs)
        return core.compile_model(ov.Model([node], inputs), "CPU")(list(operands))[0].copy()

    return run


def _paddle():
    paddle = importlib.import_module("paddle")
    paddle.enable_static()
    executor = paddle.static.Executor(paddle.CPUPlace())
    slots = {
        "atan2": (("X1", "X2"), "Out"),
        "bitwise_left_shift": (("x", "y"), "out"),
        "bitwise_right_shift": (("x", "y"), "out"),
        "where": (("Condition", "X", "Y"), "Out"),
    }

    def run(op, operands):
        ins, out = slots.get(op.name, (("X", "Y"), "Out"))
        with paddle.pir_utils.OldIrGuard():
            program = paddle.static.Program()
            with paddle.static.program_guard(program, paddle.static.Program()):
                block = program.global_block()
                variables = {
                    slot: [paddle.static.data(slot, x.shape, str(x.dtype))]
                    for slot, x in zip(ins, operands, strict=True)
                }
                dtype = str(result_dtype(op, operands[-2:]))
                result = block.create_var(name="result", dtype=dtype)
                block.append_op(
                    type=op.names["paddle"][0], inputs=variables, outputs={out: [result]}
                )
                feed = dict(zip(ins, operands, strict=True))
                return np.asarray(executor.run(program, feed=feed, fetch_list=[result])[0])

    return run


def _ncnn():
    ncnn = importlib.import_module("ncnn")

    def run(op, operands):
        net = ncnn.Net()
        layer = f"BinaryOp op 2 1 a b c 0={op.names['ncnn'][0]}"
        net.load_param_mem(f"7767517\n3 3\nInput a 0 1 a\nInput b 0 1 b\n{layer}\n")
        extractor = net.create_extractor()
        for name, x in zip("ab", operands, strict=True):
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
}


def _mnn():
    expr = importlib.import_module("MNN.expr")
    kinds = {np.dtype("int32"): expr.int, np.dtype("float32"): expr.float}

    def run(op, operands):
        name = op.names["mnn"][0]
        function = getattr(expr, _MNN_FUNCTIONS.get(name, name.lower()))
        constants = [
            expr.const(x.ravel().tolist(), list(x.shape), expr.NCHW, kinds[x.dtype])
            for x in operands
        ]
        return np.array(function(*constants).read())

    return run


ENGINES = {
    "torch": _torch,
    "jax": _jax,
    "tensorflow": _tensorflow,
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
    "paddle": _paddle,
    "ncnn": _ncnn,
    "mnn": _mnn,
}
ask = functools.cache(ask)
