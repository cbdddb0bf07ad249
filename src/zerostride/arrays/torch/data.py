"""Conversions between tensors in this processor's memory and NumPy's arrays; dtypes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...compute import native
from ..dlpack import CPU

#: PyTorch's dtypes that NumPy has, by name.
_NUMPY = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
#: Dtypes of ml_dtypes.
_ADDED = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
#: By the width in bytes, the integers as which these go through NumPy.
_BITS = {1: torch.uint8, 2: torch.int16}


def as_numpy(dtype: torch.dtype) -> np.dtype[Any]:
    """NumPy's dtype of PyTorch's; ml_dtypes' for 16- and 8-bit floats that NumPy lacks.

    Raises:
        TypeError: neither NumPy nor ml_dtypes has it.

    >>> as_numpy(torch.float16)
    dtype('float16')
    """
    numpy_dtype = _numpy_dtypes().get(dtype)
    if numpy_dtype is None:
        name = str(dtype).removeprefix("torch.")
        needs = f"; NumPy has {name} from ml_dtypes: install that" if name in _ADDED else ""
        raise TypeError(f"zerostride does not compute with tensors of {dtype}{needs}")
    return numpy_dtype


@functools.lru_cache(256)
def as_torch(dtype: np.dtype[Any] | str) -> torch.dtype:
    """PyTorch's dtype of NumPy's, or of its name.

    Raises:
        TypeError: PyTorch has none.
    """
    torch_dtype = getattr(torch, np.dtype(dtype).name, None)
    if not isinstance(torch_dtype, torch.dtype):
        raise TypeError(f"PyTorch has no tensors of {dtype}")
    return torch_dtype


@functools.cache
def _numpy_dtypes() -> dict[torch.dtype, np.dtype[Any]]:
    dtypes = {getattr(torch, name): np.dtype(name) for name in _NUMPY}
    try:
        import ml_dtypes
    except ImportError:  # these tensors are refused
        return dtypes
    if native.backend() != "reference":
        native.find_bfloat16()
    for name in _ADDED:
        if hasattr(torch, name) and hasattr(ml_dtypes, name):
            dtypes[getattr(torch, name)] = np.dtype(getattr(ml_dtypes, name))
    return dtypes


def to_numpy(tensor: torch.Tensor) -> NDArray[Any]:
    """The array of a tensor's memory.

    A tensor whose conjugate or negative bit is set is copied: its memory holds other numbers.
    DLPack and not `Tensor.numpy`, after which a tensor's storage could no more be resized.

    >>> x = torch.ones(3)
    >>> to_numpy(x).ctypes.data == x.data_ptr()
    True
    """
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    dtype = as_numpy(tensor.dtype)
    if dtype.isbuiltin == 1:
        return np.from_dlpack(_lent(tensor))
    return np.from_dlpack(_lent(tensor.view(_BITS[dtype.itemsize]))).view(dtype)


class _Lent:
    """A tensor in this processor's memory for DLPack, without the checks of `Tensor.__dlpack__`.

    Those checks are Python code and take twice as long as all later steps. Tensors that they refuse
    (other devices, gradients, set bits, sparse ones) are excluded before.
    """

    __slots__ = ("_tensor",)

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __dlpack__(self, **_: Any) -> Any:
        return _CAPSULE(self._tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0


#: PyTorch's internal function, which may change between releases; the fallback is the tensor.
_CAPSULE: Any = getattr(torch._C, "_to_dlpack_versioned", None)
_lent: Any = _Lent if _CAPSULE is not None else lambda tensor: tensor


def from_numpy(array: NDArray[Any]) -> torch.Tensor:
    """The tensor of an array's memory. No other code holds the array."""
    if array.dtype.isbuiltin == 1:
        return torch.from_numpy(array)
    bits = _BITS[array.itemsize]
    return torch.from_numpy(array.view(as_numpy(bits))).view(as_torch(array.dtype))
