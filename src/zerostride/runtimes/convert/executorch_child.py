"""A program of torch.export, or an ONNX file, as an ExecuTorch program; runs in a child.

The child has an interpreter of its own, with ExecuTorch, and onnx2torch for ONNX files. It imports
this module from the package of the process that calls it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

#: The source of the child.
SOURCE = """
load_package()
from zerostride.runtimes.convert.executorch_child import write
write(answer, *sys.argv[2:4], json.loads(sys.argv[4]))
"""
#: The most characters of a reason.
_SHOWN = 300
#: How messages name an op of PyTorch: aten::add.out, aten.add.Tensor, aten_add_default.
_OP = re.compile(r"\baten(?:::|\.|_)(\w+)")
#: A line of source in a stack trace; code that is generated is in no file.
_LINE = re.compile(r'File "([^"<]+)", line (\d+)')


def write(answer: BinaryIO, model: str, goal: str, shapes: Sequence[Sequence[int]]) -> None:
    """Lowers a model for inputs of these shapes; where that fails, the answer is the reason.

    Args:
        answer: what the caller reads.
        model: an archive of torch.export, or an ONNX file.
        goal: the file to write.
        shapes: of the model's tensors, in order.
    """
    try:
        program = _of_onnx(model, shapes) if model.endswith(".onnx") else _of_archive(model, shapes)
    except Exception as error:  # noqa: BLE001 - packages raise anything
        answer.write(_line(error).encode()[:_SHOWN])
        return
    try:
        content = _lowered(program)
    except Exception as error:  # noqa: BLE001
        answer.write(_reason(error, program).encode()[:_SHOWN])
        return
    lacking = _without_kernels(content, program)
    if lacking:
        answer.write(f"its runtime has no kernel of {lacking}".encode()[:_SHOWN])
        return
    Path(goal).write_bytes(content)


def _of_archive(model: str, shapes: Sequence[Sequence[int]]) -> Any:
    """The program of an archive, with sizes as numbers and tensors as its only inputs."""
    import torch

    from .torch_program import example_of

    program = torch.export.load(model)
    if _is_plain(program):  # its nodes know their lines of source, which another export loses
        return program
    args, kwargs = example_of(program, shapes)
    leaves, tree = torch.utils._pytree.tree_flatten((args, kwargs))
    module = program.module()

    class Module(torch.nn.Module):  # type: ignore[misc]
        """The module with its tensors in order; numbers and texts are part of it."""

        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *tensors: Any) -> Any:
            left = iter(tensors)
            filled = [next(left) if isinstance(one, torch.Tensor) else one for one in leaves]
            own_args, own_kwargs = torch.utils._pytree.tree_unflatten(filled, tree)
            return self.module(*own_args, **own_kwargs)

    return _exported(Module(), [one for one in leaves if isinstance(one, torch.Tensor)])


def _is_plain(program: Any) -> bool:
    """Whether all inputs of a program are tensors, and all of its sizes numbers."""
    from torch.export.graph_signature import InputKind, TensorArgument

    entries = program.graph_signature.input_specs
    return not program.range_constraints and all(
        isinstance(entry.arg, TensorArgument)
        for entry in entries
        if entry.kind is InputKind.USER_INPUT
    )


def _of_onnx(model: str, shapes: Sequence[Sequence[int]]) -> Any:
    """The program of an ONNX file, by onnx2torch."""
    try:
        import onnx
        import onnx2torch
    except ImportError as error:
        words = "convert the PyTorch module or its .pt2 file, or install onnx2torch beside it"
        raise ValueError(f"an ONNX file needs onnx2torch ({error}): {words}") from None
    except RuntimeError as error:  # it imports torchvision, which PyTorch of another build refuses
        words = "install torch and torchvision in one command, from one index"
        raise ValueError(f"onnx2torch does not load ({_line(error)}): {words}") from None
    import torch

    loaded = onnx.load(model)
    weights = {weight.name for weight in loaded.graph.initializer}
    inputs = [v.type.tensor_type for v in loaded.graph.input if v.name not in weights]
    dtypes = [onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).name for kind in inputs]
    _as_older(loaded)
    own = onnx2torch.converter
    own.get_converter = _with_older(own.get_converter)
    try:
        module = onnx2torch.convert(loaded)
    except Exception as error:
        raise ValueError(f"onnx2torch: {_line(error)}") from error
    tensors = [
        torch.zeros(tuple(shape), dtype=getattr(torch, dtype))
        for shape, dtype in zip(shapes, dtypes, strict=True)
    ]
    try:
        traced = _traced(module.eval(), tensors)
    except Exception as error:
        raise ValueError(f"onnx2torch: its module does not run: {_line(error)}") from error
    return _exported(traced, tensors)


def _with_older(get_converter: Callable[..., Any]) -> Callable[..., Any]:
    """onnx2torch's look-up of an op, which takes that of an older op set where it lacks a newer.

    Most new versions of an op add element types alone. The proof shows where one did more.
    """

    def newest(operation_type: str, version: int, domain: str = "") -> Any:
        for older in range(version, 0, -1):
            try:
                return get_converter(operation_type, older, domain)
            except NotImplementedError:  # its word for an op set that it lacks
                continue
        raise NotImplementedError(f"it has no converter of {operation_type}")

    return newest


def _as_older(model: Any) -> None:
    """Ops in forms of older op sets, which onnx2torch has.

    Axes of reductions become attributes, and shapes without a 0 need no word on zeros.
    """
    import onnx

    weights = {weight.name: weight for weight in model.graph.initializer}
    for node in model.graph.node:
        later = node.op_type.startswith("Reduce") and node.op_type != "ReduceSum"
        if later and len(node.input) > 1 and node.input[1] in weights:
            axes = onnx.numpy_helper.to_array(weights[node.input[1]]).tolist()
            node.attribute.append(onnx.helper.make_attribute("axes", axes))
            del node.input[1:]
        if node.op_type == "Reshape" and node.input[1] in weights:
            shape = onnx.numpy_helper.to_array(weights[node.input[1]])
            for attribute in node.attribute:
                if attribute.name == "allowzero" and shape.all():
                    attribute.i = 0


def _traced(module: Any, tensors: Sequence[Any]) -> Any:
    """A module whose shapes are numbers; onnx2torch reads them out of tensors as it runs.

    A number that the tensors of the inputs decide is no constant, and raises ValueError.
    """
    import torch
    from torch.fx.experimental import proxy_tensor
    from torch.utils._python_dispatch import TorchDispatchMode

    def is_constant(tensor: Any) -> bool:
        mode = proxy_tensor.get_proxy_mode()
        slot = proxy_tensor.get_proxy_slot(tensor, mode.tracer, None)
        left, seen = [] if slot is None else [slot.proxy.node], set()
        while left:
            node = left.pop()
            if node.op == "placeholder":
                return False
            if node not in seen:
                seen.add(node)
                left.extend(node.all_input_nodes)
        return True

    class Numbers(TorchDispatchMode):  # type: ignore[misc]
        """Hands out the numbers of tensors that depend on no input."""

        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if function is not torch.ops.aten._local_scalar_dense.default:
                return function(*args, **(kwargs or {}))
            if not is_constant(args[0]):
                raise ValueError("numbers of an input decide a size or a branch")
            with proxy_tensor.disable_proxy_modes_tracing():
                return function(*args)

    def run(*arguments: Any) -> Any:
        with Numbers():
            return module(*arguments)

    with torch.no_grad():
        traced = proxy_tensor.make_fx(run, tracing_mode="real")(*tensors)
    _upsample_by_size(traced.graph)
    traced.recompile()
    return traced


def _upsample_by_size(graph: Any) -> None:
    """Resizes in the form that is in the core of ATen, which alone ExecuTorch lowers.

    Their last operands are the scales; the size before them follows from those.
    """
    import torch

    aten = torch.ops.aten
    forms = {
        aten.upsample_nearest2d.default: (aten.upsample_nearest2d.vec, 2),
        aten.upsample_bilinear2d.default: (aten.upsample_bilinear2d.vec, 3),
    }
    for node in graph.nodes:
        if node.target in forms:
            node.target, kept = forms[node.target]
            node.args, node.kwargs = (*node.args[:kept], None), {}


def _exported(module: Any, tensors: Sequence[Any]) -> Any:
    import torch

    try:
        return torch.export.export(module, tuple(tensors))
    except Exception as error:
        raise ValueError(f"torch.export: {_line(error)}") from error


def _lowered(program: Any) -> bytes:
    """The content of a .pte file, for the portable kernels."""
    from executorch.exir import to_edge_transform_and_lower

    lowered = to_edge_transform_and_lower(program).to_executorch()
    return bytes(lowered.buffer)


def _without_kernels(content: bytes, program: Any) -> str:
    """The ops of a file for which the runtime has no kernel, with their nodes; "" if it has all."""
    from executorch.exir._serialize._program import deserialize_pte_binary
    from executorch.runtime import Runtime

    kernels = Runtime.get().operator_registry.operator_names
    (plan,) = deserialize_pte_binary(content).program.execution_plan
    ops = [f"{op.name}.{op.overload}" if op.overload else op.name for op in plan.operators]
    return ", ".join(_placed(op, program) for op in ops if op not in kernels)


def _reason(error: Exception, program: Any) -> str:
    """Why a program is not lowered: the last words of the message, with the node of each op."""
    reason = _line(error)
    ops = dict.fromkeys(match[0] for match in _OP.finditer(str(error)))
    places = dict.fromkeys(place for op in ops if (place := _place(op, program)))
    return f"{reason} ({'; '.join(places)})" if places else reason


def _placed(op: str, program: Any) -> str:
    place = _place(op, program)
    return f"{op} ({place})" if place else op


def _place(op: str, program: Any) -> str:
    """The first node of an op, and the line of the model's source that wrote it."""
    name = (_OP.search(op) or [op, op])[1].strip("_")
    for node in program.graph.nodes:
        if node.op == "call_function" and _name_of(node.target).strip("_") == name:
            lines = _LINE.findall(node.stack_trace or "")
            line = f", {Path(lines[-1][0]).name}:{lines[-1][1]}" if lines else ""
            return f"node {node.name}{line}"
    return ""


def _name_of(target: Any) -> str:
    """The name of an op without its overload: add of aten.add.Tensor."""
    schema = getattr(target, "_schema", None)
    return str(schema.name).rpartition("::")[2] if schema is not None else str(target)


def _line(error: BaseException) -> str:
    """The first line of an exception that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


__all__ = ["SOURCE", "write"]
