"""PyTorch's tensors: read without a copy, with gradients, traced, and on devices (`running`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from ...errors import BroadcastError, Reason
from ...fusion.function import Fused
from ...ops import Op
from .. import programs
from ..direct import call, reduced
from ..generic import Generic
from ..model import Fusion, Options
from ..packing import mapped
from .data import as_numpy, from_numpy, to_numpy
from .running import Way, pulled, run, way_of, why_not_plain


class Torch(Generic):
    """The adapter of PyTorch."""

    promotes = True

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

    def from_numpy(self, result: NDArray[Any], like: Any) -> Any:
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

    # The protocol.

    def elementwise(self, op: Op, operands: Sequence[Any], options: Options) -> Any:
        """An op of the table."""
        dtype = None if options.dtype is None else self.as_dtype(options.dtype)
        if _way(operands, options.out) is Way.NATIVE:
            if options.out is not None:
                return _written(super().elementwise(op, operands, options), options.out)
            arrays = [*map(_lowered, operands)]
            return from_numpy(np.asarray(call(op, arrays, options, dtype)))
        function = programs.fused_op(op, options, dtype)
        prepared = self._prepared(function, operands, {}, own=options.engine != "numpy")
        return self._finished(prepared, options.out)

    def broadcast(self, data: Any, plan: Plan, copy: bool, out: Any) -> Any:
        """A view with stride 0 where it stretches."""
        if out is not None:
            if _way((data,), out) is Way.NATIVE:
                return _written(super().broadcast(data, plan, copy, out), out)
            function = programs.fused_broadcast(plan.shape, plan.axes_mapping[0])
            return self._computed(function, (data,), {}, out)
        if copy and _way((data,), None) is Way.NATIVE:
            return from_numpy(copied(plan.view(0, to_numpy(data))))
        (view,) = self.views(plan, (data,))
        return view.clone(memory_format=torch.contiguous_format) if copy else view

    def views(self, plan: Plan, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Views of the plan's shape, which PyTorch differentiates; they must not be written to."""
        return tuple(_view(plan, k, array) for k, array in enumerate(arrays))

    def unbroadcast(self, plan: Plan, grad: Any, k: int) -> Any:
        """`grad` summed to the shape of operand `k`."""
        if _way((grad,), None) is Way.NATIVE:
            return super().unbroadcast(plan, grad, k)
        if tuple(grad.shape) != plan.shape:
            return plan.unbroadcast(programs.stand_in(_shape(grad), self.dtype_of(grad)), k)
        plan.strides(k, (0,) * len(plan.operands[k]) if 0 <= k < len(plan.operands) else ())
        function = programs.fused_adjoint(plan.operands[k], plan.stretched[k])
        return self._computed(function, (grad,), {}, None)

    def reduction(self, name: str, x: Any, options: Mapping[str, Any]) -> Any:
        """A reduction by name."""
        out, dtype = options.get("out"), options.get("dtype")
        if _way((x,), out) is Way.NATIVE:
            if out is None:
                return from_numpy(np.asarray(reduced(name, to_numpy(x), options, self.as_dtype)))
            return _written(super().reduction(name, x, options), out)
        function = programs.fused_reduction(
            name,
            options.get("axis"),
            options.get("keepdims", False),
            None if dtype is None else self.as_dtype(dtype),
        )
        return self._computed(function, (x,), {}, out)

    def fused(
        self,
        function: Fusion,
        operands: Sequence[Any],
        settings: Mapping[str, Any],
        out: Any,
        progress: Any,
    ) -> Any:
        """A call of a fused function."""
        _check_settings(settings)
        if _way((*operands, *settings.values()), out) is Way.NATIVE:
            if out is None:
                return _native(function, operands, settings, progress)
            return _written(super().fused(function, operands, settings, out, progress), out)
        if progress is not None:
            raise TypeError(
                "progress= is told of tensors in memory that need no gradient; leave it out here"
            )
        return self._computed(function, operands, settings, out)

    def vjp(
        self, function: Fusion, operands: Sequence[Any], settings: Mapping[str, Any]
    ) -> tuple[Any, Callable[..., Any]]:
        """A fused function's result, and the function of cotangents that gives gradients."""
        _check_settings(settings)
        prepared = self._prepared(function, operands, settings)
        values = (*prepared.values, *_captured(prepared))
        results = run(prepared.program, values)
        wanted = [k < len(operands) for k in range(len(values))]

        def pull(cotangents: Any) -> tuple[Any, ...]:
            leaves = prepared.compiled.structure.unpack(cotangents, "a cotangent")
            cotangent_tensors = [
                _cotangent(leaf, result, k)
                for k, (leaf, result) in enumerate(zip(leaves, results, strict=True))
            ]
            gradients = pulled(prepared.program, values, cotangent_tensors, wanted)
            pairs = zip(operands, gradients, strict=False)
            return tuple(_gradient(operand, gradient) for operand, gradient in pairs)

        return prepared.compiled.structure.pack(results), pull

    # Programs.

    def _prepared(
        self,
        function: Any,
        operands: Sequence[Any],
        settings: Mapping[str, Any],
        *,
        own: bool = True,
    ) -> programs.Prepared:
        with _untraced():  # the function computes on captured tensors immediately
            return programs.prepared(function, operands, settings, self._shown, own=own)

    def _shown(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return programs.stand_in(_shape(value), as_numpy(value.dtype))
        return _NUMBERS[type(value)][0] if type(value) in _NUMBERS else value

    def _computed(
        self,
        function: Fused | Fusion,
        operands: Sequence[Any],
        settings: Mapping[str, Any],
        out: Any,
    ) -> Any:
        """A fused function's results, by the way that its operands need."""
        return self._finished(self._prepared(function, operands, settings), out)

    def _finished(self, prepared: programs.Prepared, out: Any) -> Any:
        values = (*prepared.values, *_captured(prepared))
        results = run(prepared.program, values)
        structure = prepared.compiled.structure
        named = zip(structure.unpack(out, "out"), structure.named_outs(), strict=True)
        targets = [(k, *pair) for k, pair in enumerate(named) if pair[0] is not None]
        for k, target, name in targets:
            _check_takes(target, results[k], name)
        for k, target, _ in targets:
            results[k] = target.copy_(results[k])
        return structure.pack(results)


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


def _native(
    function: Fusion, operands: Sequence[Any], settings: Mapping[str, Any], progress: Any
) -> Any:
    """A call of a fused function by the engine, without an `out`."""
    more = {name: _lowered(value) for name, value in settings.items()}
    if progress is not None:
        more["progress"] = progress
    result = function.of_library(*map(_lowered, operands), **more)
    return mapped(result, lambda part: from_numpy(np.asarray(part)))


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


def _written(result: Any, out: Any) -> Any:
    """A result, after telling autograd that the memory of `out` was written to."""
    for target in _leaves(out):
        if not target.is_inference():
            torch.autograd.graph.increment_version(target)
    return result


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


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Refuses tensors within tuples, lists and dicts, which would not become operands."""
    for name, value in settings.items():
        if isinstance(value, tuple | list | dict) and _leaves(value):
            raise TypeError(
                f"{name}= holds tensors in a {type(value).__name__}; pass each as an operand"
            )


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


def _cotangent(cotangent: Any, result: Tensor, k: int) -> Tensor | None:
    if cotangent is None:
        return None
    if not result.is_floating_point():
        raise TypeError(
            f"result {k} is of {result.dtype}, which has no gradient: its cotangent is None"
        )
    tensor = (
        cotangent
        if isinstance(cotangent, Tensor)
        else torch.as_tensor(cotangent, device=result.device)
    )
    if tensor.shape != result.shape:
        raise BroadcastError(
            f"the cotangent of result {k} has shape {_shape(tensor)}; the result has "
            f"{_shape(result)}",
            reason=Reason.EXTENT_MISMATCH,
        )
    return tensor.to(result.dtype)


def _gradient(operand: Any, gradient: Tensor | None) -> Any:
    """A gradient; zeros where it is missing, None for integers and truth values."""
    if gradient is not None:
        return gradient
    if isinstance(operand, Tensor):
        return torch.zeros_like(operand) if operand.is_floating_point() else None
    return torch.zeros((), dtype=torch.float64) if type(operand) is float else None
