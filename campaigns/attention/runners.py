"""Attention on each engine: a call gives an array, or raises what the engine says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerostride.attention.stored import Stored

from ..models.mnn_writer import attention as mnn_attention
from .draw import Call

Array = NDArray[Any]


def run_torch(call: Call) -> Array:
    """PyTorch's function."""
    import torch

    arrays = [torch.from_numpy(call.arrays[name]) for name in ("query", "key", "value")]
    mask = call.arrays.get("mask")
    result = torch.nn.functional.scaled_dot_product_attention(
        *arrays,
        attn_mask=None if mask is None else torch.from_numpy(mask),
        is_causal=call.arguments["causal"],
        scale=call.arguments.get("scale"),
        enable_gqa="enable_gqa" in call.arguments["op"],
    )
    return np.asarray(result)


_FLOAT32 = {"INFERENCE_PRECISION_HINT": "f32"}


def run_openvino(call: Call) -> Array:
    """OpenVINO's op, or ONNX's by its frontend, on the CPU in float32."""
    import openvino as ov
    from openvino import opset13
    from openvino.utils.node_factory import NodeFactory

    if call.arguments["op"] != "ScaledDotProductAttention":
        model, feeds = onnx_model(call)
        core = ov.Core()
        read = core.read_model(model.SerializeToString())
        return np.array(core.compile_model(read, "CPU", _FLOAT32)(feeds)[0])
    arrays = [
        call.arrays[name] for name in ("query", "key", "value", "mask") if name in call.arrays
    ]
    inputs = [opset13.parameter(array.shape, array.dtype) for array in arrays]
    operands = list(inputs)
    sink, factor = call.beside.get("sink"), call.arguments.get("scale")
    if sink is not None and factor is None:
        factor = arrays[0].shape[-1] ** -0.5
    if factor is not None:
        if len(operands) == 3:
            operands.append(opset13.constant(np.float32(0)))
        operands.append(opset13.constant(np.float32(factor)))
    if sink is not None:
        outer = (1, -1, 1, 1) if arrays[0].ndim == 4 else (1, 1, 1)
        operands.append(opset13.constant(sink.reshape(outer)))
    attributes = {"causal": call.arguments["causal"]}
    factory = NodeFactory("opset13")  # the function of this name takes no sink
    node = factory.create("ScaledDotProductAttention", operands, attributes)
    compiled = ov.Core().compile_model(ov.Model([node], inputs), "CPU", _FLOAT32)
    return np.array(compiled(arrays)[0])


def onnx_model(call: Call) -> tuple[Any, dict[str, Array]]:
    """The model of one node, and its inputs."""
    from onnx import TensorProto, helper

    arguments = call.arguments
    name, _, version = arguments["op"].partition("-")
    op = name.removeprefix("com.microsoft.").partition("(")[0]
    where = _INPUTS[name]
    attributes, feeds = where(call)
    names = [name if array is not None else "" for name, array in feeds]
    while names and not names[-1]:
        names.pop()
    local = name != "Attention"
    domain = "com.microsoft" if local else ""
    outputs = ["y"]
    if "past" in names:
        outputs = ["y", "present"]
    elif "past_key" in names or op == "GroupQueryAttention":
        outputs = ["y", "present_key", "present_value"]
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    past = dict(feeds).get("past_key")
    kind = TensorProto.FLOAT if past is None else helper.np_dtype_to_tensor_dtype(past.dtype)
    graph = helper.make_graph(
        [node],
        "attention",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in feeds
            if array is not None
        ],
        [
            helper.make_tensor_value_info(name, kind if number else TensorProto.FLOAT, None)
            for number, name in enumerate(outputs)
        ],
    )
    opset = int(version or (21 if local else _opset(call, names)))
    opsets = [helper.make_opsetid("", opset)]
    if local:
        opsets.append(helper.make_opsetid(domain, 1))
    model = helper.make_model(graph, opset_imports=opsets, ir_version=11 if not local else 10)
    return model, {name: array for name, array in feeds if array is not None}


def _opset(call: Call, names: list[str]) -> int:
    """24, and 23 where the engine's op means the same in both."""
    one = call.arguments["engine"] == "openvino" or "lengths" in names
    return 24 if one else 23 + call.number % 2


def _standard(call: Call) -> tuple[dict[str, Any], list[tuple[str, Array | None]]]:
    """ONNX's Attention."""
    attributes: dict[str, Any] = {"is_causal": int(call.arguments["causal"])}
    for name in ("scale", "softcap"):
        if name in call.arguments:
            attributes[name] = call.arguments[name]
    if "heads" in call.arguments:
        query, key = call.arguments["heads"]
        attributes |= {"q_num_heads": query, "kv_num_heads": key}
    if "window" in call.arguments:
        attributes["left_window_size"] = call.arguments["window"] - 1
    if "ahead" in call.parts:
        attributes["right_window_size"] = call.parts["ahead"]
    names = ("query", "key", "value", "mask", "past_key", "past_value")
    feeds = [(name, call.arrays.get(name)) for name in names]
    return attributes, [*feeds, ("lengths", call.beside.get("lengths"))]


def _multi_head(call: Call) -> tuple[dict[str, Any], list[tuple[str, Array | None]]]:
    """com.microsoft.MultiHeadAttention."""
    attributes: dict[str, Any] = {
        "num_heads": call.arguments["heads"][0],
        "unidirectional": int(call.arguments["causal"]),
    }
    if "scale" in call.arguments:
        attributes["scale"] = call.arguments["scale"]
    mask = call.arrays.get("mask")
    kept = call.arguments.get("mask_type") == "bool"
    feeds = [(name, call.arrays[name]) for name in ("query", "key", "value")]
    return attributes, [
        *feeds,
        ("bias", None),
        ("key_padding", mask.astype(np.int32) if mask is not None and kept else None),
        ("mask", None if kept else mask),
        ("past_key", call.arrays.get("past_key")),
        ("past_value", call.arrays.get("past_value")),
    ]


def _group_query(call: Call) -> tuple[dict[str, Any], list[tuple[str, Array | None]]]:
    """com.microsoft.GroupQueryAttention."""
    query, key = call.arguments["heads"]
    attributes: dict[str, Any] = {"num_heads": query, "kv_num_heads": key}
    for name in ("scale", "softcap"):
        if name in call.arguments:
            attributes[name] = call.arguments[name]
    if "window" in call.arguments:
        attributes["local_window_size"] = call.arguments["window"]
    total = call.arrays["key"].shape[1] + call.arguments.get("past", 0)
    batch = call.arrays["query"].shape[0]
    if "causal=0" in call.arguments["op"]:
        attributes["causal"] = 0
    angles, sink = call.beside.get("angles"), call.beside.get("sink")
    if angles is not None:
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(call.neighbours)}
    if sink is not None and not sink.any():
        attributes["smooth_softmax"], sink = 1, None
    pasts = {f"past_{name}": _past(call, name, total) for name in ("key", "value")}
    stored, room = call.parts.get("stored"), call.parts.get("room")
    if room is not None:
        attributes["sliding_window_cache"] = 1
    if stored is not None:
        kind = "PER_CHANNEL" if stored.by_feature else "PER_TENSOR"
        attributes |= {"kv_cache_bit_width": stored.bits}
        attributes |= {"k_quant_type": kind, "v_quant_type": kind}
    return attributes, [
        *((name, call.arrays[name]) for name in ("query", "key", "value")),
        *pasts.items(),
        ("seqlens", np.full(batch, total - 1, np.int32)),
        ("total", np.array([total], np.int32)),
        ("cos", None if angles is None else np.cos(angles)),
        ("sin", None if angles is None else np.sin(angles)),
        ("positions", None),
        ("mask", call.arrays.get("mask")),
        ("sink", sink),
        ("k_scale", call.beside.get("key_scale")),
        ("v_scale", call.beside.get("value_scale")),
    ]


def _past(call: Call, name: str, total: int) -> Array | None:
    """The past keys or values as the op is given them; OpenVINO writes new ones behind them."""
    stored, room = call.parts.get("stored"), call.parts.get("room")
    past = call.arrays.get(f"past_{name}")
    if stored is not None and past is not None:
        past = call.beside[f"{name}_codes"]
    if room is None and stored is None and call.arguments["engine"] != "openvino":
        return past
    query, heads = call.arrays["query"], call.arguments["heads"]
    sizes = (query.shape[0], heads[1], room or total, query.shape[2] // heads[0])
    held = np.zeros(sizes, np.float32)
    if past is not None:
        count = past.shape[2]
        if room is not None:  # so many are left of them
            step = max(1, room - call.arguments["window"] + 1)
            count -= step * max(0, -(-(count - room) // step))
        held[:, :, :count] = past[:, :, past.shape[2] - count :]
    return held if stored is None else _packed(held, stored)


def _packed(numbers: Array, stored: Stored) -> Array:
    """Whole numbers as the op stores them."""
    if stored.bits == 8:
        return numbers.astype(np.int8)
    halves = (numbers + stored.bias).astype(np.uint8)
    return np.asarray(halves[..., ::2] | halves[..., 1::2] << 4)


def _projected(call: Call) -> tuple[dict[str, Any], list[tuple[str, Array | None]]]:
    """com.microsoft.Attention: its weights take query, key and value out of one input."""
    attributes, feeds = _multi_head(call)
    arrays = dict(feeds)
    parts = [call.arrays[name] for name in ("query", "key", "value")]
    sizes = [part.shape[2] for part in parts]
    past = None
    if "past_key" in call.arrays:
        past = np.stack([call.arrays["past_key"], call.arrays["past_value"]])
    mask = arrays["mask"]
    if sizes[0] != sizes[2]:
        attributes["qkv_hidden_sizes"] = sizes
    return attributes, [
        ("input", np.concatenate(parts, 2)),
        ("weights", np.eye(sum(sizes), dtype=np.float32)),
        ("bias", np.zeros(sum(sizes), np.float32)),
        ("mask_index", arrays["key_padding"]),
        ("past", past),
        ("mask", mask),
    ]


_INPUTS: Mapping[str, Callable[[Call], tuple[dict[str, Any], list[tuple[str, Array | None]]]]] = (
    MappingProxyType(
        {
            "Attention": _standard,
            "MultiHeadAttention": _multi_head,
            "GroupQueryAttention": _group_query,
            "GroupQueryAttention(causal=0)": _group_query,
            "com.microsoft.Attention": _projected,
        }
    )
)


def run_onnxruntime(call: Call) -> Array:
    """ONNX Runtime on the CPU."""
    import onnxruntime

    model, feeds = onnx_model(call)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(["y"], feeds)[0])


def run_reference(call: Call) -> Array:
    """ONNX's own evaluator."""
    from onnx.reference import ReferenceEvaluator

    model, feeds = onnx_model(call)
    results: Any = ReferenceEvaluator(model).run(["y"], feeds)
    return np.asarray(results[0])


def run_ncnn(call: Call) -> Array:
    """ncnn's layers SDPA and MultiHeadAttention, in float32."""
    import ncnn

    names = [name for name in ("query", "key", "value", "mask") if name in call.arrays]
    parameters, weights = _ncnn_layer(call)
    layers = [f"Input {name} 0 1 {name}" for name in names]
    layers.append(
        f"{call.arguments['op']} attention {len(names)} 1 {' '.join(names)} y {parameters}"
    )
    net = ncnn.Net()
    for option in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage"):
        setattr(net.opt, f"use_{option}", False)
    text = f"7767517\n{len(layers)} {len(names) + 1}\n" + "\n".join(layers) + "\n"
    if net.load_param_mem(text) != 0:
        raise RuntimeError("the layer does not load")
    with tempfile.NamedTemporaryFile() as file:  # load_model_mem reads no weights
        file.write(weights)
        file.flush()
        net.load_model(file.name)
    extractor = net.create_extractor()
    mats = [ncnn.Mat(np.ascontiguousarray(call.arrays[name])).clone() for name in names]
    for name, mat in zip(names, mats, strict=True):
        extractor.input(name, mat)
    status, result = extractor.extract("y")
    if status != 0:
        raise RuntimeError(f"extract returns {status}")
    return np.array(result)


def _ncnn_layer(call: Call) -> tuple[str, bytes]:
    """The parameters of a layer and its weights, which leave their inputs as they are."""
    parameters = f"5={int('mask' in call.arrays)}"
    if "scale" in call.arguments:
        parameters += f" 6={call.arguments['scale']}"
    if call.arguments["op"] == "SDPA":
        return parameters, b""
    width = call.arrays["query"].shape[1]
    if call.arrays["value"].shape[1] != width:
        raise RuntimeError("no weights leave such values as they are")
    sizes = f"0={width} 1={call.arguments['heads'][0]} 2={width * width} 3={width} 4={width}"
    matrix, bias = np.eye(width, dtype=np.float32), np.zeros(width, np.float32)
    return f"{sizes} {parameters}", (bytes(4) + matrix.tobytes() + bias.tobytes()) * 4


def run_mnn(call: Call) -> Array:
    """MNN's op Attention, in a file of its own."""
    from MNN import expr, nn

    names = ("query", "key", "value", "mask")
    arrays: dict[str, Array] = {name: call.arrays[name] for name in names if name in call.arrays}
    if "sink" in call.beside:
        arrays.setdefault("mask", np.zeros((), np.float32))  # which stands for none
        arrays["sink"] = call.beside["sink"]
    with tempfile.NamedTemporaryFile(suffix=".mnn") as file:
        file.write(mnn_attention({name: array.shape for name, array in arrays.items()}))
        file.flush()
        net = nn.load_module_from_file(file.name, list(arrays), ["y"])
        tensors = [
            expr.const(np.ascontiguousarray(array), list(array.shape), expr.NCHW)
            for array in arrays.values()
        ]
        (result,) = net.forward(tensors)
        return np.array(expr.convert(result, expr.NCHW).read()).reshape(result.shape)


#: The runners by engine.
RUNNERS: Mapping[str, Callable[[Call], Array]] = MappingProxyType(
    {
        "onnx.reference": run_reference,
        "onnxruntime": run_onnxruntime,
        "torch": run_torch,
        "openvino": run_openvino,
        "ncnn": run_ncnn,
        "mnn": run_mnn,
    }
)
