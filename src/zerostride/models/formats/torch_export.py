"""PyTorch's modules and exported programs as ONNX files, by PyTorch's own exporter.

PyTorch is imported only for a module, for an exported program, or in the child process that reads a
.pt2 file.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError, ModelError, printable
from ..ir.graph import Array
from .torch_reasons import reason_of

#: PyTorch's own names of open sizes.
_SYMBOL = re.compile(r"\bs\d+\b", re.ASCII)
#: Between the name of a model and the reason of the exporter.
NOT_EXPORTED = ": torch.onnx does not export it: "
#: Longest reason of PyTorch that is shown.
MAX_REASON = 300
_NEEDED = "exporting a PyTorch module needs torch and onnxscript: pip install 'zerostride[torch]'"


@dataclass(frozen=True, slots=True)
class Example:
    """The arguments of `torch.export.export`, besides the module.

    The fields are arguments of :func:`zerostride.audit`, which documents them.
    """

    args: tuple[Any, ...] | None = None
    kwargs: Mapping[str, Any] | None = None
    dynamic_shapes: Any = None

    def arrays(self) -> tuple[Array, ...]:
        """The tensors as NumPy arrays, in the order of the exported model's inputs.

        Empty if NumPy lacks an element type of them.
        """
        from torch.utils import _pytree

        leaves = _pytree.tree_leaves((self.args or (), dict(self.kwargs or {})))
        try:
            return tuple(leaf.detach().cpu().numpy() for leaf in leaves if hasattr(leaf, "detach"))
        except TypeError:
            return ()


def is_torch_model(model: object) -> bool:
    """Whether it is a module or an exported program; then PyTorch has been imported."""
    if isinstance(model, str | os.PathLike) or "torch" not in sys.modules:
        return False
    import torch

    return isinstance(model, torch.nn.Module | torch.export.ExportedProgram)


def exported(model: Any, example: Example) -> Any:
    """The exported program of a module, or the program itself."""
    import torch

    label = type(model).__name__
    if isinstance(model, torch.jit.ScriptModule):
        raise ModelError(f"{label}: a TorchScript module; give the nn.Module that it was made from")
    if isinstance(model, torch.export.ExportedProgram):
        if example != Example():
            raise ArgumentError(
                "an ExportedProgram has its inputs: leave out args, kwargs, dynamic_shapes"
            )
        return model
    if example.args is None and example.kwargs is None:
        raise ArgumentError(
            "a module needs example inputs: args=(x,), as torch.export.export takes them"
        )
    arguments = () if example.args is None else example.args
    if not isinstance(arguments, tuple):
        raise ArgumentError(
            f"args is a tuple of example inputs, such as (x,), not {type(arguments).__name__}"
        )
    keywords = None if example.kwargs is None else dict(example.kwargs)
    shapes = example.dynamic_shapes
    with _evaluating(model), _quiet():
        try:
            return torch.export.export(model, arguments, keywords, dynamic_shapes=shapes)
        except Exception as error:
            raise ModelError(f"{label}: torch.export refuses it: {reason_of(error)}") from error


def onnx_bytes(program: Any, label: str, dynamic_shapes: Any = None) -> bytes:
    """The ONNX model of an exported program, weights included; open sizes get the user's names.

    Raises:
        ModelError: PyTorch does not export it, or it is of 2 GiB or more.
    """
    try:
        import onnx  # noqa: F401 - the exporter needs it
        import onnxscript  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise ModelError(f"{label}: {_NEEDED} ({line_of(error)})") from None
    with _quiet():
        try:
            try:
                model = _onnx_model(program, dynamic_shapes)
            except Exception:
                # The exporter computes strides again, and finds others where it fails.
                with _dense_attention(program) as changed:
                    if not changed:
                        raise
                    model = _onnx_model(program, dynamic_shapes)
            return bytes(_with_names(model, program).SerializeToString())
        except Exception as error:
            reason = _named(reason_of(error), _names_of_sizes(program))
            raise ModelError(f"{label}{NOT_EXPORTED}{reason}") from error


def _onnx_model(program: Any, dynamic_shapes: Any) -> Any:
    """PyTorch's ONNX model of an exported program."""
    import torch

    return torch.onnx.export(
        program, dynamo=True, verbose=False, dynamic_shapes=dynamic_shapes
    ).model_proto


@contextmanager
def _dense_attention(program: Any) -> Iterator[bool]:
    """The program with the results of its attentions copied, while the context lasts.

    PyTorch 2.13 plans `attention(...).transpose(1, 2).reshape(...)` for one order of the result in
    memory, and its ONNX exporter checks the plan with another order ("Cannot view a tensor with
    shape ..."). A copy has the same order in both. Whether there are attentions is the value.
    """
    import torch

    attention = torch.ops.aten.scaled_dot_product_attention.default
    copies: list[tuple[Any, Any]] = []
    graphs: list[Any] = [getattr(part, "graph", None) for part in program.graph_module.modules()]
    for graph in filter(None, graphs):
        for node in [node for node in graph.nodes if node.target is attention]:
            users = list(node.users)
            with graph.inserting_after(node):
                order = {"memory_format": torch.contiguous_format}
                copy = graph.call_function(torch.ops.aten.clone.default, (node,), order)
            copy.meta = dict(node.meta)
            for user in users:
                user.replace_input_with(node, copy)
            copies.append((node, copy))
    try:
        yield bool(copies)
    finally:
        for node, copy in copies:
            copy.replace_all_uses_with(node)
            copy.graph.erase_node(copy)


def _with_names(model: Any, program: Any) -> Any:
    """The ONNX model with names for sizes that PyTorch calls s77: the user's, else x_0 for x[0]."""
    names = _names_of_sizes(program)
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if _SYMBOL.fullmatch(dim.dim_param):
                place = re.sub(r"\W", "_", f"{value.name}_{axis}")
                names.setdefault(dim.dim_param, place)
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    for value in (
        *values,
        *(value for function in model.functions for value in function.value_info),
    ):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = _named(dim.dim_param, names)
    return model


def _named(text: str, names: Mapping[str, str]) -> str:
    """A text with names for sizes in the place of PyTorch's."""
    return _SYMBOL.sub(lambda match: names.get(match[0], match[0]), text)


def _names_of_sizes(program: Any) -> dict[str, str]:
    """The names in `dynamic_shapes` that a program was exported with; none if it was loaded.

    The environment of its shapes alone remembers them: "L['x'].size()[0]" is "batch".
    """
    modes = (getattr(node.meta.get("val"), "fake_mode", None) for node in program.graph.nodes)
    mode = next((mode for mode in modes if mode is not None), None)
    environment = getattr(mode, "shape_env", None)
    symbols = getattr(environment, "source_to_var", {})
    names = getattr(environment, "source_name_to_debug_name", {})
    return {str(symbols[source]): str(name) for source, name in names.items() if source in symbols}


def onnx_of_archive(archive: bytes) -> bytes:
    """The ONNX model of a checked archive; see :mod:`.pt2`. Runs in a child process."""
    import io

    import torch

    with _quiet():
        program = torch.export.load(io.BytesIO(archive))
    return onnx_bytes(program, "the exported program")


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """The module as it computes in use; its parts get their modes back."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


@contextmanager
def _quiet() -> Iterator[None]:
    """Without PyTorch's messages about its own parts."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def line_of(error: BaseException) -> str:
    """The first line of an exception."""
    text = str(error).strip() or type(error).__name__
    return printable(text.splitlines()[0])[:MAX_REASON]
