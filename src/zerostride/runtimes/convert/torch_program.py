"""A program of torch.export as converters read it, and the conversion for LiteRT.

The parent writes the program's archive. A child process loads it and runs the converter.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...errors import ModelError
from ...models.formats.pt2 import checked_archive
from ...models.formats.torch_export import line_of


def archive_of(model: Any, program: Any) -> bytes:
    """The archive of a model, for a child to load.

    Args:
        model: a .pt2 file, whose parts that may run code are refused; or what the program is of.
        program: the exported program of a module; None for a file.

    Raises:
        ModelError: the file has a part that may run code, or PyTorch does not save the program.
    """
    if program is None:
        return checked_archive(Path(model))
    import torch

    file = io.BytesIO()
    try:
        torch.export.save(program, file)
    except Exception as error:
        label = type(model).__name__
        raise ModelError(f"{label}: torch.export does not save it: {line_of(error)}") from error
    return file.getvalue()


def write_litert(archive: str, goal: str, shapes: Sequence[Sequence[int]]) -> None:
    """Converts an archive with litert-torch, for inputs of these shapes; runs in a child."""
    import litert_torch
    import torch

    program = torch.export.load(archive)
    args, kwargs = example_of(program, shapes)
    litert_torch.convert(program.module(), args, kwargs).export(goal)


def example_of(program: Any, shapes: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """Arguments of a program, positional and by name, whose tensors have these shapes."""
    import torch

    flat = list(_inputs(program, shapes))
    args, kwargs = torch.utils._pytree.tree_unflatten(flat, program.call_spec.in_spec)
    return args, kwargs


def _inputs(program: Any, shapes: Sequence[Sequence[int]]) -> Iterator[Any]:
    """The inputs of a program in order: zeros for tensors, and its own numbers and texts."""
    import torch
    from torch.export.graph_signature import InputKind, TensorArgument

    nodes = {
        node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"
    }
    entries = [
        one for one in program.graph_signature.input_specs if one.kind is InputKind.USER_INPUT
    ]
    tensors = [one for one in entries if isinstance(one.arg, TensorArgument)]
    if len(tensors) != len(shapes):
        raise ValueError(f"it has {len(tensors)} tensors as inputs; its ONNX model {len(shapes)}")
    left = iter(shapes)
    for entry in entries:
        if isinstance(entry.arg, TensorArgument):
            yield torch.zeros(tuple(next(left)), dtype=nodes[entry.arg.name].dtype)
        else:
            yield entry.arg.value


__all__ = ["archive_of", "example_of", "write_litert"]
