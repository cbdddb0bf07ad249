# /// script
# dependencies = ["ggml-python"]
# ///
"""ggml on the CPU (PyPI: ggml-python): a graph of one call. Its tensors have four axes, always."""

import ctypes

import ggml
import numpy as np

NAME = "ggml"
DISTRIBUTION = "ggml-python"

OWN = {"add": "ggml_add", "subtract": "ggml_sub", "multiply": "ggml_mul", "divide": "ggml_div"}
TYPES = {"float32": ggml.GGML_TYPE_F32, "float16": ggml.GGML_TYPE_F16}
MEMORY = 64 << 20


def run(op, arrays, target=None):
    """One op; `target` is the shape, for broadcast_to."""
    context = ggml.ggml_init(
        ggml.ggml_init_params(mem_size=MEMORY, mem_buffer=None, no_alloc=False)
    )
    try:
        return computed(context, op, [tensor(context, array) for array in arrays], arrays, target)
    finally:
        ggml.ggml_free(context)


def tensor(context, array):
    """An array as a tensor: the last axis is its first."""
    if array.ndim > 4:
        raise ValueError("ggml has tensors of four axes")
    sizes = (ctypes.c_int64 * max(array.ndim, 1))(*(array.shape[::-1] or (1,)))
    result = ggml.ggml_new_tensor(context, TYPES[array.dtype.name], max(array.ndim, 1), sizes)
    ctypes.memmove(ggml.ggml_get_data(result), array.ctypes.data, array.nbytes)
    return result


def computed(context, op, operands, arrays, target):
    """The result, of the rank of the largest operand: ggml has no ranks."""
    if op == "broadcast_to":
        operands.append(tensor(context, np.zeros(target, arrays[0].dtype)))
        call, small, large = ggml.ggml_repeat, *operands
    else:
        call, large, small = getattr(ggml, OWN[op]), *operands
    if not ggml.ggml_can_repeat(small, large):  # what ggml asserts; it would end the process
        raise ValueError("ggml_can_repeat says no")
    result = call(context, *operands)
    graph = ggml.ggml_new_graph(context)
    ggml.ggml_build_forward_expand(graph, result)
    ggml.ggml_graph_compute_with_ctx(context, graph, 1)
    rank = max([len(target or ()), *(array.ndim for array in arrays)])
    shape = tuple(result.contents.ne[:rank])[::-1]
    content = ctypes.string_at(ggml.ggml_get_data(result), ggml.ggml_nbytes(result))
    kinds = {number: name for name, number in TYPES.items()}
    return np.frombuffer(content, kinds[result.contents.type]).reshape(shape).copy()
