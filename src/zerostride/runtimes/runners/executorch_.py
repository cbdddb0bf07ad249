"""ExecuTorch on the CPU: programs of torch.export, lowered to its portable kernels.

A single op is a module of one call, with the operands' shapes. It runs in an environment of its
own, because ExecuTorch pins releases of packages.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

from ..task import Array, Form, Task
from . import Absent, Attrs, ModelFile, Refused, Runner, Shape, by_table, own_names
from .torch_ import compounds

#: The name of a program's only method, and what its metadata raise for an input or output that is
#: no tensor.
_METHOD, _NO_TENSOR = "forward", RuntimeError
#: PyTorch's names of a broadcast to a target.
_SPREADS = ("expand", "broadcast_to")


class _ExecuTorch:
    """The runtime and the compiler, loaded."""

    def __init__(self) -> None:
        self.runtime: Any = importlib.import_module("executorch.runtime").Runtime.get()
        self.torch: Any = importlib.import_module("torch")
        self.exir: Any = importlib.import_module("executorch.exir")

    def call(self, name: str, attrs: Attrs, arrays: Sequence[Array], target: Shape) -> Array:
        """An op of PyTorch's name."""
        if name in _SPREADS:
            return self._computed(lambda x: getattr(x, name)(target), arrays[:1])
        return self._computed(getattr(self.torch, name), arrays)

    def compound(self, task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        """A compound op, as PyTorch's function."""

        def enter(array: Any) -> Any:
            return array

        functions = compounds(self.torch, importlib.import_module("torch.nn.functional"))

        def function(*tensors: Any) -> Any:
            return by_table(functions, enter, enter)(task, tensors)[0]

        if task.op not in functions:
            raise Absent(f"nothing runs {task.op} by itself")
        return [self._computed(function, arrays)]

    def _computed(self, function: Callable[..., Any], arrays: Sequence[Array]) -> Array:
        torch = self.torch

        class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, *tensors: Any) -> Any:
                return function(*tensors)

        tensors = tuple(map(self._tensor, arrays))
        program = torch.export.export(Module(), tensors)
        lowered = self.exir.to_edge_transform_and_lower(program).to_executorch()
        method = self.runtime.load_program(lowered.buffer).load_method(_METHOD)
        (result,) = method.execute(tensors)
        array: Array = result.numpy()
        return array

    def _tensor(self, array: Array) -> Any:
        """An array as a tensor; NumPy's empty ones have strides of 0, which ExecuTorch refuses."""
        tensor = self.torch.from_numpy(array)
        return tensor if array.size else self.torch.empty(array.shape, dtype=tensor.dtype)

    def open_file(self, path: str, names: Sequence[str]) -> ModelFile:
        """A .pte file; its inputs and outputs have no names, and tensors inside are not read."""
        program = self.runtime.load_program(path)
        method = program.load_method(_METHOD)
        inputs, outputs = method.metadata.num_inputs(), method.metadata.num_outputs()

        def compute(feeds: Mapping[int, Array], wanted: Sequence[int | str]) -> Sequence[Array]:
            if not all(isinstance(one, int) for one in wanted):
                raise Absent("ExecuTorch hands out no tensors inside a program")
            tensors = [self._tensor(feeds[k]) for k in range(inputs)]
            results = [_array(result) for result in method.execute(tensors)]
            return [results[int(k)] for k in wanted]

        return ModelFile([()] * inputs, [()] * outputs, compute)


def _array(result: Any) -> Array:
    if not hasattr(result, "numpy"):
        raise Refused(f"it hands out {type(result).__name__} {result!r} in place of a tensor")
    # A copy: the next run writes into the same memory.
    array: Array = result.numpy().copy()
    return array


def load() -> Runner:
    """Imports ExecuTorch."""
    engine = _ExecuTorch()
    return Runner(
        metadata.version("executorch"),
        engine.call,
        (Exception,),
        own_names("torch"),
        "broadcast_to",
        {Form.COMPOUND: engine.compound},
        engine.open_file,
    )
