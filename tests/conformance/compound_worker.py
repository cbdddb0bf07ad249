"""The child process of test_compounds: one engine, one compound op a question.

Run as ``python compound_worker.py ENGINE``; it needs the engine and NumPy. LiteRT, whose models of
one op zerostride writes, and libraries that normalise by hand need zerostride as well.
A question is a pickled dict (op, opset, attributes, arrays, constant); the answer is the result as
an array, or the line with which the engine refused. A death is an answer too, seen by the parent.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from asked import Absent, serve

Arrays = Sequence[Any]
Run = Callable[[Mapping[str, Any]], Any]


class Refused(Exception):  # noqa: N818 - an answer
    """The engine said no in its own way."""


# Engines that are libraries of functions: op to a call.


def _by_function(table: Mapping[str, Callable[[Mapping[str, Any], Arrays], Any]]) -> Run:
    def run(question: Mapping[str, Any]) -> Any:
        if question["op"] not in table:
            raise Absent(question["op"])
        return table[question["op"]](question["attributes"], question["arrays"])

    return run


def _scaled(attrs: Mapping[str, Any], x: Arrays) -> Any:
    """A batch normalisation written out: vectors go where NumPy's rule puts them."""
    data, scale, bias, mean, variance = x
    return (data - mean) / (variance + attrs["epsilon"]) ** 0.5 * scale + bias


def load_numpy() -> Run:
    from zerostride.runtimes.runners.written_out import normalisations

    return _by_function(
        {
            **normalisations(np.asarray),
            "BatchNormalization": _scaled,
            "Gemm": lambda attrs, x: np.matmul(x[0], x[1]) + x[2],
            "MatMul": lambda attrs, x: np.matmul(*x),
            "Clip": lambda attrs, x: np.clip(*x),
        }
    )


def load_torch() -> Run:
    import torch
    import torch.nn.functional as F  # noqa: N812 - as torch's own documentation writes it

    def group_norm(attrs: Mapping[str, Any], x: Arrays) -> Any:
        return F.group_norm(x[0], attrs["num_groups"], x[1], x[2])

    def quantised(attrs: Mapping[str, Any], x: Arrays) -> Any:
        points = x[2].to(torch.int32)
        if x[1].numel() == 1:
            number = x[1].reshape(()), points.reshape(())
            return torch.quantize_per_tensor(x[0], *number, torch.qint8).int_repr()
        axis = attrs["axis"] % x[0].dim()
        return torch.quantize_per_channel(x[0], x[1], points, axis, torch.qint8).int_repr()

    def dequantised(attrs: Mapping[str, Any], x: Arrays) -> Any:
        import torch.ao.quantization.fx._decomposed  # registers the ops

        ops, ends, points = torch.ops.quantized_decomposed, (-128, 127, torch.int8), x[2].int()
        if x[1].numel() == 1:
            return ops.dequantize_per_tensor(x[0], float(x[1]), int(points), *ends)
        return ops.dequantize_per_channel(x[0], x[1], points, attrs["axis"], *ends)

    def shape_of(attrs: Mapping[str, Any], data: Any) -> list[int]:
        return list(data.shape[attrs.get("axis", -1) :])

    table = _by_function(
        {
            "Gemm": lambda attrs, x: torch.addmm(x[2], x[0], x[1]),
            "MatMul": lambda attrs, x: torch.matmul(*x),
            "Clip": lambda attrs, x: torch.clamp(*x),
            "BatchNormalization": lambda attrs, x: F.batch_norm(
                x[0], x[3], x[4], x[1], x[2], eps=attrs["epsilon"]
            ),
            "InstanceNormalization": lambda attrs, x: F.instance_norm(
                x[0], None, None, x[1], x[2], eps=attrs["epsilon"]
            ),
            "GroupNormalization": group_norm,
            "LayerNormalization": lambda attrs, x: F.layer_norm(
                x[0], shape_of(attrs, x[0]), *x[1:]
            ),
            "RMSNormalization": lambda attrs, x: F.rms_norm(
                x[0], shape_of(attrs, x[0]), x[1], eps=1e-5
            ),
            "PRelu": lambda attrs, x: F.prelu(*x),
            "QuantizeLinear": quantised,
            "DequantizeLinear": dequantised,
        }
    )

    def run(question: Mapping[str, Any]) -> Any:
        arrays = [torch.from_numpy(np.array(array)) for array in question["arrays"]]
        return table({**question, "arrays": arrays}).numpy()

    return run


def load_tensorflow() -> Run:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    from zerostride.runtimes.runners.written_out import normalisations

    def batch_norm(attrs: Mapping[str, Any], x: Arrays) -> Any:
        data, scale, bias, mean, variance = map(tf.constant, x)
        return tf.nn.batch_normalization(data, mean, variance, bias, scale, attrs["epsilon"])

    def uniform(attrs: Mapping[str, Any], x: Arrays) -> dict[str, Any]:
        number = x[1].size == 1
        return {
            "input": x[0],
            "scales": x[1].reshape(()) if number else x[1],
            "zero_points": x[2].astype(np.int32).reshape(() if number else x[2].shape),
            "quantization_min_val": -128,
            "quantization_max_val": 127,
            "quantization_axis": -1 if number else attrs["axis"] % x[0].ndim,
        }

    def quantised(attrs: Mapping[str, Any], x: Arrays) -> Any:
        whole = tf.raw_ops.UniformQuantize(**uniform(attrs, x), Tout=tf.qint8)
        return tf.bitcast(whole, tf.int8)

    def dequantised(attrs: Mapping[str, Any], x: Arrays) -> Any:
        given = uniform(attrs, x)
        given["input"] = tf.bitcast(tf.constant(x[0]), tf.qint8)
        return tf.raw_ops.UniformDequantize(**given, Tout=tf.float32)

    table = _by_function(
        {
            "QuantizeLinear": quantised,
            "DequantizeLinear": dequantised,
            "Gemm": lambda attrs, x: tf.linalg.matmul(x[0], x[1]) + x[2],
            "MatMul": lambda attrs, x: tf.linalg.matmul(*x),
            "Clip": lambda attrs, x: tf.clip_by_value(*x),
            **normalisations(tf.constant),
            "BatchNormalization": batch_norm,
        }
    )
    return lambda question: table(question).numpy()


def load_jax() -> Run:
    import jax.numpy as jnp

    from zerostride.runtimes.runners.written_out import normalisations

    table = _by_function(
        {
            **normalisations(jnp.asarray),
            "Gemm": lambda attrs, x: jnp.matmul(x[0], x[1]) + x[2],
            "MatMul": lambda attrs, x: jnp.matmul(*x),
            "BatchNormalization": _scaled,
            "Clip": lambda attrs, x: jnp.clip(*x),
        }
    )
    return lambda question: np.asarray(table(question))


def load_paddle() -> Run:
    import paddle
    import paddle.nn.functional as F  # noqa: N812 - as paddle's own documentation writes it

    table = _by_function(
        {
            "Gemm": lambda attrs, x: paddle.addmm(x[2], x[0], x[1]),
            "MatMul": lambda attrs, x: paddle.matmul(*x),
            "Clip": lambda attrs, x: paddle.clip(*x),
            "BatchNormalization": lambda attrs, x: F.batch_norm(
                x[0], x[3], x[4], x[1], x[2], epsilon=attrs["epsilon"]
            ),
            "InstanceNormalization": lambda attrs, x: F.instance_norm(
                x[0], weight=x[1], bias=x[2], eps=attrs["epsilon"]
            ),
            "GroupNormalization": lambda attrs, x: F.group_norm(
                x[0], attrs["num_groups"], weight=x[1], bias=x[2]
            ),
            "LayerNormalization": lambda attrs, x: F.layer_norm(
                x[0], list(x[0].shape[attrs.get("axis", -1) :]), *x[1:]
            ),
            "PRelu": lambda attrs, x: F.prelu(*x),
        }
    )

    def run(question: Mapping[str, Any]) -> Any:
        arrays = [paddle.to_tensor(array) for array in question["arrays"]]
        return table({**question, "arrays": arrays}).numpy()

    return run


def load_litert() -> Run:
    from zerostride.runtimes.runners import load_runner
    from zerostride.runtimes.task import Form, Task

    runner = load_runner("litert")

    def run(question: Mapping[str, Any]) -> Any:
        task = Task(Form.COMPOUND, question["op"], question["attributes"])
        return runner.run(task, question["arrays"])[0]

    return run


# Engines that read ONNX: a model of one node.


def _onnx_model(question: Mapping[str, Any]) -> bytes:
    from onnx import TensorProto, helper, numpy_helper

    names = [f"x{k}" for k in range(len(question["arrays"]))]
    inputs, constants = [], []
    for name, array, constant in zip(names, question["arrays"], question["constant"], strict=True):
        if constant:
            constants.append(numpy_helper.from_array(np.asarray(array), name))
        else:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
    node = helper.make_node(question["op"], names, ["y"], **question["attributes"])
    kind = TensorProto.INT8 if question["op"] == "QuantizeLinear" else TensorProto.FLOAT
    result = helper.make_tensor_value_info("y", kind, None)
    graph = helper.make_graph([node], "g", inputs, [result], constants)
    opset = [helper.make_opsetid("", question["opset"])]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    content: bytes = model.SerializeToString()
    return content


def _feeds(question: Mapping[str, Any]) -> dict[str, Any]:
    pairs = zip(question["arrays"], question["constant"], strict=True)
    return {f"x{k}": array for k, (array, constant) in enumerate(pairs) if not constant}


def load_onnxruntime() -> Run:
    import onnxruntime as ort

    ort.set_default_logger_severity(4)

    def run(question: Mapping[str, Any]) -> Any:
        session = ort.InferenceSession(_onnx_model(question), providers=["CPUExecutionProvider"])
        return session.run(None, _feeds(question))[0]

    return run


def load_openvino() -> Run:
    import openvino

    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    def run(question: Mapping[str, Any]) -> Any:
        compiled = core.compile_model(core.read_model(_onnx_model(question)), "CPU")
        return np.array(compiled(_feeds(question))[0])

    return run


def load_mnn() -> Run:
    """The model goes through MNN's own converter; matmul and the like also exist as expressions."""
    import _tools  # MNN's converter: importing MNN.tools would run pip
    import MNN.nn
    from MNN import expr

    def run(question: Mapping[str, Any]) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "m.onnx"), Path(folder, "m.mnn")
            whole = question["op"] == "file"  # a model as it is, operands in its own types
            source.write_bytes(question["model"] if whole else _onnx_model(question))
            arguments = ["-f", "ONNX", "--modelFile", str(source), "--MNNModel", str(target)]
            _tools.mnnconvert(["mnnconvert", *arguments, "--bizCode", "z"])
            if not target.is_file():
                raise Refused("the converter wrote no model")
            feeds = question["feeds"] if whole else _feeds(question)
            net = MNN.nn.load_module_from_file(str(target), list(feeds), ["y"])
            variables = []
            for array in feeds.values():
                whole_numbers = whole and array.dtype.kind != "f"
                flat = np.ascontiguousarray(array, np.int32 if whole_numbers else np.float32)
                kind = expr.int if whole_numbers else expr.float
                variables.append(
                    expr.const(flat.ravel().tolist(), list(array.shape), expr.NCHW, kind)
                )
            result = expr.convert(net.forward(variables)[0], expr.NCHW)
            if not result.valid or result.shape is None:
                raise Refused("the result is an invalid variable")
            return np.array(result.read()).reshape(result.shape)

    return run


# ncnn: a net of one layer, weights beside it.


def load_ncnn() -> Run:
    import ncnn

    def flat(*arrays: Any) -> bytes:
        return b"".join(np.ascontiguousarray(array, "<f4").tobytes() for array in arrays)

    def run_net(question: Mapping[str, Any]) -> Any:
        """A whole net, as files: {"param": text, "bin": bytes, "inputs": {name: array}}."""
        net = ncnn.Net()
        net.opt.num_threads = 1
        net.opt.use_fp16_storage = net.opt.use_fp16_packed = net.opt.use_fp16_arithmetic = False
        if net.load_param_mem(question["param"]) != 0:
            raise Refused("the net was not taken")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "weights.bin")
            file.write_bytes(question["bin"])
            if net.load_model(str(file)) != 0:
                raise Refused("the net's weights were not taken")
        extractor = net.create_extractor()
        for name, array in question["inputs"].items():
            if array.ndim > 4:
                raise Refused("a Mat has at most 4 axes")
            data = np.ascontiguousarray(array.reshape(array.shape or (1,)), np.float32)
            extractor.input(name, ncnn.Mat(data).clone())
        status, result = extractor.extract("out0")
        if status != 0:
            raise Refused(f"status {status}")
        return np.array(result)

    def layer(question: Mapping[str, Any]) -> tuple[str, bytes, int]:
        """The layer's type and parameters, its weights, and how many operands are blobs."""
        op, attrs, x = question["op"], question["attributes"], question["arrays"]
        tag = b"\0\0\0\0"  # weights that may be stored in several ways say: float32
        if op == "MatMul":
            return "MatMul", b"", 2
        if op == "Clip":
            return f"Clip 0={float(x[1].ravel()[0])} 1={float(x[2].ravel()[0])}", b"", 1
        if op == "Gemm" and question["constant"][2]:
            (k, n), c = x[1].shape, x[2]
            m = x[0].shape[-2] if x[0].ndim > 1 else 1
            kind = 0 if c.size == 1 else {(n,): 4, (1, n): 4, (m, 1): 2, (m, n): 3}[c.shape]
            text = f"Gemm 2=0 3=1 5=1 6=1 7=0 8={n} 9={k} 10={kind}"
            if kind in (2, 3):
                text = text.replace("7=0", f"7={m}")
            return text, tag + flat(x[1].T) + tag + flat(c), 1
        if op == "Gemm":
            return "Gemm 2=0 3=0", b"", 3
        if op == "BatchNormalization":
            scale, bias, mean, variance = x[1:]
            return (
                f"BatchNorm 0={scale.size} 1={attrs['epsilon']}",
                flat(scale, mean, variance, bias),
                1,
            )
        if op == "InstanceNormalization":
            return f"InstanceNorm 0={x[1].size} 1={attrs['epsilon']} 2=1", flat(*x[1:]), 1
        if op == "GroupNormalization":
            groups = attrs["num_groups"]
            return f"GroupNorm 0={groups} 1={x[1].size} 2=1e-5 3=1", flat(*x[1:]), 1
        if op == "LayerNormalization":
            return f"LayerNorm 0={x[1].size} 1=1e-5 2=1", flat(*x[1:]), 1
        if op == "RMSNormalization":
            return f"RMSNorm 0={x[1].size} 1=1e-5 2=1", flat(x[1]), 1
        if op == "PRelu":
            return f"PReLU 0={x[1].size}", flat(x[1]), 1
        raise Absent(op)

    def run(question: Mapping[str, Any]) -> Any:
        if question["op"] == "net":
            return run_net(question)
        text, weights, blobs = layer(question)
        kind, _, parameters = text.partition(" ")
        names = [f"x{k}" for k in range(blobs)]
        lines = [f"Input {name} 0 1 {name}" for name in names]
        lines.append(f"{kind} op {blobs} 1 {' '.join(names)} y {parameters}")
        net = ncnn.Net()
        net.opt.num_threads = 1
        net.opt.use_fp16_storage = net.opt.use_fp16_packed = net.opt.use_fp16_arithmetic = False
        net.opt.use_packing_layout = question.get("packing", True)
        header = f"7767517\n{len(lines)} {blobs + 1}\n"
        if net.load_param_mem(header + "\n".join(lines) + "\n") != 0:
            raise Refused("the layer's parameters were not taken")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "weights.bin")
            file.write_bytes(weights)
            if net.load_model(str(file)) != 0:
                raise Refused("the layer's weights were not taken")
        extractor = net.create_extractor()
        for name, array in zip(names, question["arrays"], strict=False):
            if array.ndim > 4:
                raise Refused("a Mat has at most 4 axes")
            data = np.ascontiguousarray(array.reshape(array.shape or (1,)), np.float32)
            extractor.input(name, ncnn.Mat(data).clone())
        status, result = extractor.extract("y")
        if status != 0:
            raise Refused(f"status {status}")
        return np.array(result)

    return run


LOADERS: Mapping[str, Callable[[], Run]] = {
    "numpy": load_numpy,
    "torch": load_torch,
    "tensorflow": load_tensorflow,
    "jax": load_jax,
    "onnxruntime": load_onnxruntime,
    "openvino": load_openvino,
    "paddle": load_paddle,
    "ncnn": load_ncnn,
    "mnn": load_mnn,
    "litert": load_litert,
}


def main(engine: str) -> None:
    def load() -> Callable[[Mapping[str, Any]], tuple[str, Any]]:
        run = LOADERS[engine]()
        return lambda question: ("result", np.asarray(run(question)))

    serve(load)


if __name__ == "__main__":
    main(sys.argv[1])
