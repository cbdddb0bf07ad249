"""The array libraries of the campaign: how to make and read their arrays, and exceptions.

A library is imported when its row is asked for. `jax under jit` and `array_api_strict elsewhere`
take the way of arrays that the engine cannot read.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerostride.errors import BadInput

Array = NDArray[Any]

_COMMON = ("float32", "float64", "int32", "int64", "bool", "int8", "uint8", "int16")
_UNSIGNED = ("uint16", "uint32", "uint64")
_HALVES = ("float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class Library:
    """A library.

    Attributes:
        name: what the command calls it.
        module: what has to be imported.
        dtypes: NumPy's names of the dtypes that its arrays may have.
        make: an array of it with NumPy's values, in memory of its own or in the same.
        read: NumPy's values of one.
        writes: whether its arrays may be an `out`.
        exact: whether the engine computes, so that results are those of NumPy's arrays.
        call: a function of its arrays, called; as `jax.jit` does.
        flushes: whether numbers below the smallest normal one count as 0.
        rounds: ops that it rounds more than once where NumPy does it once.
        open: ops, each with kinds of dtype (`numpy.dtype.kind`) for which it has values of its own.
        blind: whether numbers are not looked at, so that nothing is refused for its values.
        rounds_twice: whether float64 becomes 16-bit floats by way of float32.
        absent: why the module cannot be used, or ""; it may find no device.
        own: ops whose values may be those of its own function, each with where these are others.
        function: its own function of an op: of NumPy arrays that are laid out for a shape, each
            converted to a dtype; of 16-bit floats in float32. None: results are the reference's.
    """

    name: str
    module: str
    dtypes: tuple[str, ...]
    make: Callable[[Any, Array], Any]
    read: Callable[[Any], Any]
    writes: bool = True
    exact: bool = True
    call: Callable[..., Any] = lambda function, *arrays: function(*arrays)
    flushes: bool = False
    rounds: frozenset[str] = frozenset()
    open: tuple[tuple[str, str], ...] = ()
    blind: bool = False
    rounds_twice: bool = False
    absent: Callable[[Any], str] = lambda module: ""
    own: tuple[tuple[str, str], ...] = ()
    function: Callable[[str, Sequence[Array], Sequence[str], tuple[int, ...]], Any] | None = None

    @property
    def promotes(self) -> bool:
        """Whether bfloat16 is a dtype of its own, so that a Python float beside it is bfloat16."""
        return self.module in ("torch", "jax")

    @property
    def imported(self) -> Any:
        """The module.

        Raises:
            BadInput: it is not installed, or has not the device.
        """
        try:
            module = importlib.import_module(self.module)
        except ImportError as error:
            raise BadInput(f"{self.name} is not installed: {error}") from error
        if reason := self.absent(module):
            raise BadInput(f"{self.name} cannot be used: {reason}")
        return module

    def made(self, array: Array) -> Any:
        """An array of the library."""
        return self.make(self.imported, array)

    def differs(self, result: Any, like: Any) -> str:
        """A difference of a result from the library's own arrays, or ""."""
        if type(result) is not type(like):
            return f"the result is a {type(result).__name__}, the operand a {type(like).__name__}"
        given, wanted = (getattr(one, "device", None) for one in (result, like))
        return "" if given == wanted else f"the result is on {given}, the operand on {wanted}"


def _plain(array: Array) -> bool:
    """Whether other libraries may read it where it lies."""
    steps = array.itemsize > 0 and all(n >= 0 and n % array.itemsize == 0 for n in array.strides)
    return steps and array.dtype.isnative and array.flags.aligned and array.flags.writeable


def _own(array: Array) -> Array:
    return array if _plain(array) else np.array(array, array.dtype.newbyteorder("="), order="C")


def _torch(torch: Any, array: Array) -> Any:
    array = _own(array)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _from_torch(tensor: Any) -> Any:
    tensor = tensor.detach()
    if str(tensor.dtype) != "torch.bfloat16":
        return tensor.resolve_conj().resolve_neg().numpy()
    import ml_dtypes

    return np.asarray(tensor.view(dtype=_int16())).view(ml_dtypes.bfloat16)


@functools.cache
def _subclass() -> Any:
    """Of tensors: PyTorch's own functions compute those, whatever they do besides."""
    torch = importlib.import_module("torch")
    return type("Elsewhere", (torch.Tensor,), {})


def _torch_elsewhere(torch: Any, array: Array) -> Any:
    return _torch(torch, np.array(array)).as_subclass(_subclass())


def _from_torch_elsewhere(tensor: Any) -> Any:
    return _from_torch(tensor.as_subclass(importlib.import_module("torch").Tensor))


def _function_of_torch(
    op: str,
    arrays: Sequence[Array],
    dtypes: Sequence[str],
    shape: tuple[int, ...],
    device: str = "cpu",
) -> Any:
    torch = importlib.import_module("torch")
    tensors = []
    for array, name in zip(arrays, dtypes, strict=False):
        tensor = _torch(torch, array).to(device).to(getattr(torch, name))
        wide = tensor.to(torch.float32) if name in _HALVES else tensor
        tensors.append(wide.expand(shape))
    return _from_torch(getattr(torch, op)(*tensors).cpu())


def _function_of_cupy(
    op: str, arrays: Sequence[Array], dtypes: Sequence[str], shape: tuple[int, ...]
) -> Any:
    cupy = importlib.import_module("cupy")
    operands = [
        cupy.broadcast_to(cupy.asarray(array).astype(name), shape)
        for array, name in zip(arrays, dtypes, strict=False)
    ]
    return getattr(cupy, {"pow": "power", "atan2": "arctan2"}.get(op, op))(*operands).get()


#: Of CuPy's functions, by the table's names; seen in 14.2.
_OWN_OF_CUPY = (
    ("fmod", "another remainder, or NaN, where the quotient overflows"),
    ("remainder", "another remainder, or NaN, where the quotient overflows"),
    ("nextafter", "numbers below the smallest normal one count as 0"),
    ("atan2", "numbers below the smallest normal one count as 0"),
    ("logical_xor", "of the operands' bits"),
    ("pow", "1 where the base counts as 0"),
)


#: Of PyTorch's functions, by the table's names; seen in 2.13, on x86 with AVX-512.
_OWN_OF_TORCH = (
    ("sqrt", "a vectorised root is not correctly rounded"),
    ("fmod", "NaN where the quotient overflows"),
    ("remainder", "NaN where the quotient overflows"),
    ("fmax", "NaN of a signalling NaN"),
    ("fmin", "NaN of a signalling NaN"),
    ("hypot", "infinity of a signalling NaN and infinity"),
    ("sigmoid", "0 where exp(-x) overflows"),
    ("sinh", "infinity where exp(x) overflows"),
    ("cosh", "infinity where exp(x) overflows"),
    ("copysign", "a 16-bit NaN may lose its sign on the way to float32"),
    ("log1p", "digits of complex numbers beside 1, which NumPy's loses"),
)
_OWN_ON_CUDA = (*_OWN_OF_TORCH, ("pow", "the angle of a complex power loses digits"))


def _no_cuda_of_torch(torch: Any) -> str:
    return "" if torch.cuda.is_available() else "PyTorch finds no CUDA device"


def _no_cuda_of_jax(jax: Any) -> str:
    try:
        jax.devices("cuda")
    except RuntimeError as error:
        return f"JAX finds no CUDA device: {error}"
    return ""


def _no_cuda_of_cupy(cupy: Any) -> str:
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no CUDA device: {error}"
    return ""


def _int16() -> Any:
    return importlib.import_module("torch").int16


def _strict_elsewhere(xp: Any, array: Array) -> Any:
    return xp.asarray(np.array(array), device=xp.Device("device1"))


def _from_strict(array: Any) -> Any:
    return np.from_dlpack(array)


def _dask(module: Any, array: Array) -> Any:
    sizes = tuple(max(1, -(-n // 2)) for n in array.shape)
    return module.from_array(np.array(array), chunks=sizes)


def _under_jit(function: Callable[..., Any], *arrays: Any) -> Any:
    import jax

    return jax.jit(function)(*arrays)


def _with_64_bits(jax: Any, array: Array, device: str = "cpu") -> Any:
    jax.config.update("jax_enable_x64", True)
    return jax.device_put(np.array(array), jax.devices(device)[0])


_JAX = Library(
    "jax",
    "jax",
    (*_COMMON, *_UNSIGNED, *_HALVES, "complex64", "complex128"),
    _with_64_bits,
    np.asarray,
    writes=False,
)
_STRICT = Library(
    "array_api_strict",
    "array_api_strict",
    (*_COMMON, *_UNSIGNED, "complex64", "complex128"),
    lambda xp, array: xp.asarray(_own(array)),
    _from_strict,
)

ROWS: Mapping[str, Library] = MappingProxyType(
    {
        row.name: row
        for row in (
            Library(
                "numpy",
                "numpy",
                (*_COMMON, *_UNSIGNED, *_HALVES, "complex64", "complex128"),
                lambda _, array: array,
                lambda array: array,
            ),
            Library(
                "torch",
                "torch",
                (*_COMMON, *_UNSIGNED, *_HALVES, "complex64", "complex128"),
                _torch,
                _from_torch,
            ),
            Library(
                "torch elsewhere",
                "torch",
                (*_COMMON, *_HALVES, "complex64", "complex128"),
                _torch_elsewhere,
                _from_torch_elsewhere,
                exact=False,
                # As on a device, from which nothing is read back.
                blind=True,
                rounds_twice=True,
                own=_OWN_OF_TORCH,
                function=_function_of_torch,
            ),
            Library(
                "torch on cuda",
                "torch",
                (*_COMMON, *_HALVES, "complex64", "complex128"),
                lambda torch, array: _torch(torch, np.array(array)).to("cuda"),
                lambda tensor: _from_torch(tensor.cpu()),
                exact=False,
                blind=True,
                rounds_twice=True,
                absent=_no_cuda_of_torch,
                own=_OWN_ON_CUDA,
                function=functools.partial(_function_of_torch, device="cuda"),
            ),
            Library(
                "cupy",
                "cupy",
                (*_COMMON, *_UNSIGNED, "float16", "complex64", "complex128"),
                lambda cupy, array: cupy.asarray(np.array(array)),
                lambda array: array.get(),
                exact=False,
                blind=True,
                flushes=True,
                absent=_no_cuda_of_cupy,
                own=_OWN_OF_CUPY,
                function=_function_of_cupy,
            ),
            _JAX,
            Library(
                "jax on cuda",
                _JAX.module,
                _JAX.dtypes,
                functools.partial(_with_64_bits, device="cuda"),
                _JAX.read,
                writes=False,
                exact=False,
                blind=True,
                flushes=True,
                absent=_no_cuda_of_jax,
                rounds=frozenset({"divide", "reciprocal", "rsqrt", "squared_difference"}),
                open=(("pow", "iu"), ("divide", "b")),
            ),
            Library(
                "jax under jit",
                _JAX.module,
                _JAX.dtypes,
                _JAX.make,
                _JAX.read,
                writes=False,
                exact=False,
                call=_under_jit,
                # XLA's own, of jax.numpy's functions under jit, too: a quotient by what is
                # broadcast is a product with its inverse; nothing can be refused for its values.
                flushes=True,
                rounds=frozenset({"divide", "reciprocal", "rsqrt", "squared_difference"}),
                open=(("pow", "iu"), ("divide", "b")),
            ),
            _STRICT,
            Library(
                "array_api_strict elsewhere",
                _STRICT.module,
                _STRICT.dtypes,
                _strict_elsewhere,
                _STRICT.read,
                exact=False,
            ),
            Library(
                "dask",
                "dask.array",
                (*_COMMON, *_UNSIGNED, *_HALVES, "complex64", "complex128"),
                _dask,
                lambda array: array.compute(),
                writes=False,
            ),
        )
    }
)


@functools.cache
def installed(names: Sequence[str]) -> tuple[Library, ...]:
    """The rows of these names; of all that are installed if there are none.

    Raises:
        BadInput: an unknown name, or one that is not installed.
    """
    for name in names:
        if name not in ROWS:
            raise BadInput(f"there is no library {name!r}; there are {', '.join(ROWS)}, xarray")
        _ = ROWS[name].imported
    if names:
        return tuple(ROWS[name] for name in names)
    return tuple(row for row in ROWS.values() if _is_there(row))


def _is_there(row: Library) -> bool:
    if importlib.util.find_spec(row.module.partition(".")[0]) is None:
        return False
    return not row.absent(importlib.import_module(row.module))
