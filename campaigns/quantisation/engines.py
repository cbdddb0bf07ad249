"""The real engines: a case becomes an ONNX file or a call, and numbers come back."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from zerostride.compute.quantised import ENDS

from .draw import Array, Case

#: How an engine may refuse: whatever it raises.
Answer = Array | None
Runner = Callable[[Case], Answer]
_FLOATS = frozenset({"float32", "float16"})


def type_number(dtype: Any) -> int:
    """ONNX's number of an element type."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def model(
    op: str,
    operands: Sequence[Array | None],
    attributes: Mapping[str, Any],
    opset: int,
    *,
    outputs: int = 1,
    domain: str = "",
    result: int = TensorProto.UNDEFINED,
    cast: bool = False,
) -> tuple[Any, dict[str, Array]]:
    """A model of one node, and its feeds: operands of NumPy's own types, the first one at least.

    `cast` adds a Cast of the result to float32, for types that NumPy lacks.
    """
    names = [f"x{k}" if array is not None else "" for k, array in enumerate(operands)]
    every = zip(names, operands, strict=True)
    present = [(name, array) for name, array in every if array is not None]
    fed = {name: array for name, array in present[:1] if array.dtype.isbuiltin == 1}
    inputs = [
        helper.make_tensor_value_info(name, type_number(array.dtype), array.shape)
        for name, array in fed.items()
    ]
    constants = [numpy_helper.from_array(array, name) for name, array in present if name not in fed]
    results = [f"y{k}" for k in range(outputs)]
    nodes = [helper.make_node(op, names, results, domain=domain, **attributes)]
    if cast:
        nodes.append(helper.make_node("Cast", ["y0"], ["z"], to=TensorProto.FLOAT))
        results, result = ["z"], TensorProto.FLOAT
    # A type only for the first: others are inferred.
    infos = [helper.make_tensor_value_info(results[0], result, None)]
    infos += [helper.make_empty_tensor_value_info(name) for name in results[1:]]
    graph = helper.make_graph(nodes, "g", inputs, infos, constants)
    sets = [helper.make_opsetid("", opset)]
    sets += [helper.make_opsetid(domain, 1)] if domain else []
    version = 10 if opset < 23 else 11 if opset < 25 else 13
    return helper.make_model(graph, opset_imports=sets, ir_version=version), fed


def case_model(case: Case) -> tuple[Any, dict[str, Array]]:
    """The model of a case."""
    assert case.opset is not None
    attributes: dict[str, Any] = {}
    if case.axis is not None:
        attributes["axis"] = case.axis
    if case.block is not None:
        attributes["block_size"] = case.block
    quantizes = case.op == "quantize"
    kind = type_number(_dtype(case.stored) if quantizes else case.scale.dtype)
    if quantizes and case.zero is None and case.stored != "uint8":
        attributes["output_dtype"] = kind
    own = np.dtype(_dtype(case.stored)).isbuiltin == 1
    return model(
        "QuantizeLinear" if quantizes else "DequantizeLinear",
        [case.x, case.scale, case.zero],
        attributes,
        case.opset,
        result=kind,
        cast=quantizes and not own,
    )


def _dtype(name: str) -> Any:
    from .draw import dtype_of

    return dtype_of(name)


def on_onnxruntime(content: Any, feeds: Mapping[str, Array]) -> list[Array]:
    """The results of ONNX Runtime on the CPU, without its own rewrites."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        content.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(feeds)))


def on_reference(content: Any, feeds: Mapping[str, Array]) -> list[Array]:
    """The results of onnx's reference evaluator."""
    from onnx.reference import ReferenceEvaluator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(ReferenceEvaluator(content).run(None, dict(feeds)))


@cache
def _core() -> Any:
    import openvino

    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    return core


def on_openvino(content: Any, feeds: Mapping[str, Array]) -> list[Array]:
    """The results of OpenVINO on the CPU in float32."""
    compiled = _core().compile_model(_core().read_model(content.SerializeToString(), b""), "CPU")
    return [np.array(value) for value in compiled(dict(feeds)).values()]


def _of_files(run: Callable[[Any, Mapping[str, Array]], list[Array]]) -> Runner:
    def runner(case: Case) -> Answer:
        try:
            return run(*case_model(case))[0]
        except Exception:  # noqa: BLE001 - whatever an engine raises is how it refuses
            return None

    return runner


def on_torch(case: Case) -> Answer:
    """torch.quantize_per_tensor and quantize_per_channel, and their tensors dequantised."""
    import torch

    torch.set_num_threads(1)
    x = torch.from_numpy(np.ascontiguousarray(case.x))
    kind = {"int8": torch.qint8, "uint8": torch.quint8}[case.stored]
    scales = torch.from_numpy(np.atleast_1d(case.scale))
    zeros = np.zeros_like(case.scale) if case.zero is None else case.zero
    shifts = torch.from_numpy(np.atleast_1d(zeros.astype(np.int64)))
    number = (float(case.scale.reshape(-1)[0]), int(zeros.reshape(-1)[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.op == "quantize":
            if case.axis is None:
                return np.asarray(torch.quantize_per_tensor(x, *number, kind).int_repr())
            result = torch.quantize_per_channel(x, scales, shifts, case.axis, kind)
            return np.asarray(result.int_repr())
        if case.axis is None:
            return np.asarray(torch._make_per_tensor_quantized_tensor(x, *number).dequantize())
        axis = case.axis % case.x.ndim
        stored = torch._make_per_channel_quantized_tensor(x, scales, shifts, axis)
        return np.asarray(stored.dequantize())


def on_pt2e(case: Case) -> Answer:
    """torch.ops.quantized_decomposed, which exported quantised modules have."""
    import torch
    import torch.ao.quantization.fx._decomposed

    ops = torch.ops.quantized_decomposed
    x = torch.from_numpy(np.ascontiguousarray(case.x))
    zeros = np.zeros_like(case.scale) if case.zero is None else case.zero
    low, high = ENDS[case.stored]
    kind = {"int8": torch.int8, "uint8": torch.uint8, "int16": torch.int16}[case.stored]
    if case.axis is None:
        number = (float(case.scale.reshape(-1)[0]), int(zeros.reshape(-1)[0]))
        function = ops.quantize_per_tensor if case.op == "quantize" else ops.dequantize_per_tensor
        return np.asarray(function(x, *number, low, high, kind))
    scales = torch.from_numpy(np.atleast_1d(case.scale))
    shifts = torch.from_numpy(np.atleast_1d(zeros.astype(np.int64)))
    axis = case.axis % case.x.ndim
    function = ops.quantize_per_channel if case.op == "quantize" else ops.dequantize_per_channel
    return np.asarray(function(x, scales, shifts, axis, low, high, kind))


def on_litert(case: Case) -> Answer:
    """QUANTIZE and DEQUANTIZE of a .tflite file, with the delegate that is the default."""
    from ..models.tflite_writer import Model

    zeros = np.zeros_like(case.scale) if case.zero is None else case.zero
    stored: dict[str, Any] = {
        "scales": tuple(map(float, np.atleast_1d(case.scale))),
        "zeros": tuple(map(int, np.atleast_1d(zeros))),
        "axis": 0 if case.axis is None else case.axis % case.x.ndim,
    }
    file = Model()
    quantizes = case.op == "quantize"
    own, other = {}, stored
    if not quantizes:
        own, other = other, own
    file.main.input("x", *case.x.shape, dtype=case.x.dtype.name, **own)
    file.main.add("y", case.x.shape, case.stored if quantizes else "float32", **other)
    file.main.op("QUANTIZE" if quantizes else "DEQUANTIZE", "x", "y")
    file.main.output("y")
    package: Any = import_module("ai_edge_litert.interpreter")
    interpreter = package.Interpreter(model_content=file.data(), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], case.x)
    interpreter.invoke()
    return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def on_ncnn(case: Case) -> Answer:
    """The layers Quantize, whose scale is the reciprocal, and Dequantize."""
    import ncnn

    net = ncnn.Net()
    net.opt.num_threads = 1
    net.opt.use_fp16_storage = net.opt.use_fp16_packed = net.opt.use_fp16_arithmetic = False
    scales = np.atleast_1d(case.scale)
    quantizes = case.op == "quantize"
    if quantizes:
        scales = np.float32(1) / scales
    kind = "Quantize" if quantizes else "Dequantize"
    layer = f"{kind} layer 1 1 x y 0={len(scales)}{'' if quantizes else ' 1=0'}"
    if net.load_param_mem(f"7767517\n2 2\nInput x 0 1 x\n{layer}\n") != 0:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "weights.bin")
        file.write_bytes(scales.tobytes())
        if net.load_model(str(file)) != 0:
            return None
    extractor = net.create_extractor()
    extractor.input("x", ncnn.Mat(np.ascontiguousarray(case.x)).clone())
    status, result = extractor.extract("y")
    return np.array(result) if status == 0 else None


def on_mnn(case: Case) -> Answer:
    """`quant` and `dequant` of expressions, in a process that may die."""
    from .mnn_child import answer

    return answer((case.op, case.x.astype(np.float32), np.atleast_1d(case.scale)))


RUNNERS: Mapping[str, Runner] = {
    "onnxruntime": _of_files(on_onnxruntime),
    "onnx.reference": _of_files(on_reference),
    "openvino": _of_files(on_openvino),
    "torch": on_torch,
    "torch.pt2e": on_pt2e,
    "litert": on_litert,
    "mnn": on_mnn,
    "ncnn": on_ncnn,
}

#: The module that an engine is imported by.
MODULES: Mapping[str, str] = {
    "onnxruntime": "onnxruntime",
    "onnx.reference": "onnx",
    "openvino": "openvino",
    "torch": "torch",
    "torch.pt2e": "torch",
    "litert": "ai_edge_litert",
    "mnn": "MNN",
    "ncnn": "ncnn",
}
