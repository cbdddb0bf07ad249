"""PyTorch's tensors: read without a copy, with gradients, traced, and on devices (`running`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from ...compute.foreign import NotPlain
from ...compute.native import copied
from ...compute.outputs import check_places, check_shape
from ...compute.special import keeps_kind
from ...core.plan import Plan
from ...fusion.evaluate import Library
from ...fusion.grad.vjp import GraphProgram
from .. import programs
from ..generic import Generic, only
from ..model import FusedCall
from .data import as_numpy, as_torch, from_numpy, to_numpy
from .ops import Torch as TorchLibrary
from .running import Way, run, way_of, why_not_plain


class Torch(Generic):
    """The adapter of PyTorch."""

    promotes = has_engines = True

    # Methods of the generic adapter.

    def is_here(self, array: Any) -> bool:
        """Whether the engine may read a tensor now."""
        return way_of((array,)) in (Way.NATIVE, Way.RECORDED)

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """The array of a tensor's memory."""
        return to_numpy(array)

    def writable(self, array: Any) -> NDArray[Any]:
        """The same of an `out`."""
        return _writable(array)

    def from_numpy(self, result: NDArray[Any], operands: Sequence[Any]) -> Any:
        """The tensor of an answer's memory."""
        return from_numpy(result)

    def dtype_of(self, array: Any) -> np.dtype[Any]:
        """NumPy's dtype of a tensor."""
        return as_numpy(array.dtype)

    def data_of(self, array: Any) -> Any:
        """NumPy's array of the memory of a tensor that a fused function captures."""
        reason = why_not_plain(array)
        if reason:
            raise NotPlain(reason)
        return to_numpy(array)

    def as_dtype(self, dtype: Any) -> np.dtype[Any]:
        """NumPy's dtype of PyTorch's or NumPy's."""
        return as_numpy(dtype) if isinstance(dtype, torch.dtype) else np.dtype(dtype)

    def library(self, like: Any) -> Library:
        """PyTorch's functions on a tensor's device."""
        return TorchLibrary(like.device)

    def readable(self, values: Sequence[Any], out: Any) -> Sequence[Any] | None:
        """Operands for the engine; None where PyTorch differentiates, traces, or has a device."""
        return [*map(_lowered, values)] if _way(values, out) is Way.NATIVE else None

    def shown(self, value: Any) -> Any:
        """What stands for an operand in a signature."""
        if isinstance(value, Tensor):
            return programs.stand_in(_shape(value), as_numpy(value.dtype))
        return _NUMBERS[type(value)][0] if type(value) in _NUMBERS else value

    def array_of(self, value: Any, like: Any) -> Any:
        """A tensor of what a caller gave."""
        return value if isinstance(value, Tensor) else torch.as_tensor(value, device=like.device)

    def zeros(self, shape: tuple[int, ...], dtype: str, like: Any) -> Any:
        """A tensor of zeros."""
        return torch.zeros(shape, dtype=as_torch(np.dtype(dtype)), device=like.device)

    def check_call(self, call: FusedCall) -> None:
        """Refuses tensors within tuples, lists and dicts, which would not become operands."""
        for name, value in call.settings.items():
            if isinstance(value, tuple | list | dict) and _leaves(value):
                raise TypeError(
                    f"{name}= holds tensors in a {type(value).__name__}; pass each as an operand"
                )

    def first(self, values: Sequence[Any]) -> Any:
        """The first tensor; None of numbers alone, which PyTorch traces."""
        return next((value for value in values if isinstance(value, Tensor)), None)

    def answer(self, result: Any, operands: Sequence[Any], out: Any) -> Any:
        """The tensor of NumPy's result; autograd is told that the memory of `out` was written."""
        if out is None:
            return from_numpy(np.asarray(result))
        for target in _leaves(out):
            if not target.is_inference():
                torch.autograd.graph.increment_version(target)
        return only(out)

    # The protocol.

    def broadcast(self, data: Any, plan: Plan, copy: bool, out: Any) -> Any:
        """A view with stride 0 where it stretches."""
        native = (copy or out is not None) and _way((data,), out) is Way.NATIVE
        if out is not None:
            if native:
                return super().broadcast(data, plan, copy, out)
            function = programs.fused_broadcast(plan.shape, plan.axes_mapping[0])
            return self.computed(FusedCall(function, (data,), {}, out))
        if native:
            return from_numpy(copied(plan.view(0, to_numpy(data))))
        (view,) = self.views(plan, (data,))
        return view.clone(memory_format=torch.contiguous_format) if copy else view

    def views(self, plan: Plan, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Views of the plan's shape, which PyTorch differentiates; they must not be written to."""
        return tuple(_view(plan, k, array) for k, array in enumerate(arrays))

    # Programs.

    def prepared(self, call: FusedCall, *, own: bool | None = None) -> programs.Prepared:
        """A fused function for the signature of a call."""
        with _untraced():  # the function computes on captured tensors immediately
            return super().prepared(call, own=own)

    def values_of(self, prepared: programs.Prepared) -> Sequence[Any]:
        """The operands of a prepared call, captured arrays included."""
        return (*prepared.values, *_captured(prepared))

    def run(self, program: GraphProgram, values: Sequence[Any]) -> list[Any]:
        """The results of a program, by the way that its operands need."""
        return run(program, values)

    def deliver(self, results: list[Any], targets: Sequence[Any], names: Sequence[str]) -> None:
        """Writes results to their targets, none before all are checked."""
        for target, result, name in zip(targets, results, names, strict=True):
            if target is not None:
                _check_takes(target, result, name)
        for k, target in enumerate(targets):
            if target is not None:
                results[k] = target.copy_(results[k])


ADAPTER = Torch()

#: Types of numbers that PyTorch traces: an example of each, and the function that evaluates it.
_NUMBERS: dict[type, tuple[Any, Callable[[Any], Any]]] = {
    torch.SymInt: (1, int),
    torch.SymFloat: (1.0, float),
    torch.SymBool: (True, bool),
}


def _untraced_number(value: Any) -> Any:
    return _NUMBERS[type(value)][1](value) if type(value) in _NUMBERS else value


def _lowered(value: Any) -> Any:
    return to_numpy(value) if isinstance(value, Tensor) else _untraced_number(value)


def _tensors(values: Sequence[Any]) -> list[Tensor]:
    return [value for value in values if isinstance(value, Tensor)]


def _way(operands: Sequence[Any], out: Any) -> Way:
    """How a call runs; refused where a gradient would be lost in an `out`."""
    tensors = _tensors(operands)
    if out is None:
        return way_of(tensors)
    targets = _leaves(out)
    way = way_of((*tensors, *targets))
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (*tensors, *targets)):
        raise RuntimeError(
            "out= does not take part in automatic differentiation, and one of the tensors requires "
            "a gradient; leave out= out, or call under torch.no_grad()"
        )
    return way


def _leaves(out: Any) -> list[Tensor]:
    """The tensors of an `out`, packed in any way."""
    if isinstance(out, dict):
        out = tuple(out.values())
    if isinstance(out, tuple | list):
        return [leaf for item in out for leaf in _leaves(item)]
    return [out] if isinstance(out, Tensor) else []


def _check_out(out: Tensor, name: str = "out") -> None:
    if out.is_conj() or out.is_neg():
        raise TypeError(
            f"{name} has its conjugate or negative bit set, and cannot be written to where it "
            "lies; give x.resolve_conj() or x.resolve_neg()"
        )


def _writable(out: Tensor) -> NDArray[Any]:
    _check_out(out)
    return to_numpy(out)


def _check_takes(out: Any, result: Tensor, name: str) -> None:
    """Refuses an `out` that cannot hold a result, before any of several is written."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name} is a tensor, not {type(out).__name__}")
    _check_out(out, name)
    # Traced sizes and strides become numbers only where they are examined.
    if out.shape != result.shape:
        check_shape(_shape(out), _shape(result), name=name)
    if not keeps_kind(as_numpy(result.dtype), as_numpy(out.dtype)):
        raise TypeError(
            f"the result has {result.dtype}, which does not become {name}'s {out.dtype} within its "
            "kind"
        )
    if not out.is_contiguous():
        size = out.element_size()
        check_places(_shape(out), [int(step) * size for step in out.stride()], size, name)


def _shape(tensor: Tensor) -> tuple[int, ...]:
    """A tensor's shape in numbers; traced sizes are evaluated."""
    return tuple(map(int, tensor.shape))


def _captured(prepared: programs.Prepared) -> list[Tensor]:
    """The captured arrays on the operands' device. Tensors are passed themselves, so that autograd
    notices if they are written to before a backward pass."""
    compiled = prepared.compiled
    if not compiled.sources:
        return []
    device = next(value.device for value in prepared.values if isinstance(value, Tensor))
    with _untraced():
        pairs = list(zip(compiled.sources, compiled.captured, strict=True))
    if torch._C._len_torch_dispatch_stack():  # PyTorch traces, and takes new tensors as constants
        return [_shared(data).to(device) for _, data in pairs]
    return [
        (source.given if isinstance(source.given, Tensor) else _shared(data)).to(device)
        for source, data in pairs
    ]


def _untraced() -> AbstractContextManager[Any]:
    """A context without PyTorch's tracing modes."""
    return _disable_current_modes() if torch._C._len_torch_dispatch_stack() else nullcontext()


def _shared(array: NDArray[Any]) -> Tensor:
    return from_numpy(array if array.flags.writeable else array.copy())


def _view(plan: Plan, k: int, array: Any) -> Any:
    if not isinstance(array, Tensor):  # a number
        array = from_numpy(np.array(array))
    if _shape(array) != plan.operands[k]:
        plan.view(k, programs.stand_in(_shape(array), np.dtype(bool)))  # says what is wrong
    return array.reshape(plan.aligned[k]).expand(plan.shape)
