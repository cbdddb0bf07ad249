"""Which function computes an op, and on which dtypes, without and under an engine.

Without an engine both are NumPy's. Under an engine, the op's row may name another function. The
engine's row here says which dtypes it combines, which it takes, and which it silently computes in a
smaller dtype. All rows were measured on the releases that the engine table names.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ..core.plan import Plan
from ..errors import BroadcastError, Reason
from ..ops import OPS, Op, column_of
from .dtypes import as_dtype
from .kernels import KERNELS, VARIANTS, Kernel
from .special import is_added_float, keeps_kind

#: Types that NEP 50 keeps weak: they take the other operands' dtype. Subclasses are not weak.
WEAK = frozenset({bool, int, float, complex})
_KINDS = "biufc"


@dataclass(frozen=True, slots=True)
class Dtypes:
    """How an engine treats dtypes.

    Attributes:
        mixes: whether operands of different dtypes are converted to one; refused otherwise. They
            meet by category: bool, integer, float, complex, whatever their widths.
        zero_rank_yields: a rank-0 operand counts only where its category is the highest.
        takes: the dtypes it takes; empty for all.
        computes_in: dtype to the dtype that it is computed in.
        returns: whether the result is converted back from that.
        saturates: dtypes for which these conversions saturate, infinities too; others wrap.
        wraps: ops whose results wrap nevertheless.
        default: category to the dtype of a Python number whose category is above the arrays'.
    """

    mixes: bool = False
    zero_rank_yields: bool = False
    takes: frozenset[str] = frozenset()
    computes_in: Mapping[str, str] = field(default_factory=dict)
    returns: bool = True
    saturates: frozenset[str] = frozenset()
    wraps: frozenset[str] = frozenset()
    default: Mapping[str, str] = field(default_factory=dict)


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SMALL_DEFAULTS = MappingProxyType({"f": "float32", "c": "complex64"})

_TORCH = Dtypes(
    mixes=True,
    zero_rank_yields=True,
    takes=_names("bool int8 uint8 int16 int32 int64 float16 float32 float64 complex64 complex128"),
    default=_SMALL_DEFAULTS,
)
DTYPES: Mapping[str, Dtypes] = MappingProxyType(
    {
        "onnxruntime": Dtypes(),
        "tensorflow": Dtypes(),
        # It computes integers of all widths and signs in int32, float64 in float32.
        "openvino": Dtypes(
            computes_in=MappingProxyType(
                {
                    **dict.fromkeys(_names("int8 uint8 int16 uint16 uint32 int64 uint64"), "int32"),
                    "float16": "float32",
                    "float64": "float32",
                }
            ),
            saturates=_names("int8 uint8 float64"),
            wraps=_names("bitwise_left_shift bitwise_invert"),
        ),
        # In Paddle uint16 holds bfloat16.
        "paddle": Dtypes(takes=_names("bool int8 uint8 int16 int32 int64 float32 float64")),
        "ncnn": Dtypes(takes=_names("float32")),
        # Measured on ADD: operands of two dtypes are refused.
        "litert": Dtypes(),
        "mnn": Dtypes(takes=_names("int32 float32")),
        "torch": _TORCH,
        # Measured on 98 pairs of dtypes: they meet as PyTorch's; complex ones are refused.
        "executorch": replace(_TORCH, takes=_TORCH.takes - {"complex64", "complex128"}),
        # By default (without jax_enable_x64) JAX has no 64-bit dtypes.
        "jax": Dtypes(
            mixes=True,
            computes_in=MappingProxyType(
                {
                    "int64": "int32",
                    "uint64": "uint32",
                    "float64": "float32",
                    "complex128": "complex64",
                }
            ),
            returns=False,
            default=MappingProxyType({"i": "int32", **_SMALL_DEFAULTS}),
        ),
    }
)


def select(
    op: Op, plan: Plan, operands: list[Any], dtype: Any, processor: str = ""
) -> tuple[Kernel, list[Any], np.dtype[Any] | None]:
    """The function that computes `op`, its operands, and its `dtype` argument.

    Args:
        processor: "avx2" for the engine's values on x86 processors without AVX-512.

    Raises:
        BroadcastError: the plan's engine lacks the op, or does not take the dtypes.
        TypeError: the operands do not become `dtype` as a ufunc would convert them.
    """
    asked = None if dtype is None else as_dtype(dtype)
    kernel = KERNELS[op.name]
    # Values are those of the newest release.
    engine = plan.rule.engine and plan.rule.engine.partition("@")[0]
    if op.name == "cast":
        if asked is None:
            raise TypeError("cast takes the dtype to convert to")
        return functools.partial(kernel, dtype=asked), operands, None
    if engine is None or engine == "numpy":
        if asked is not None and not isinstance(kernel, np.ufunc):
            return kernel, cast(op, operands, asked), None
        return kernel, operands, asked
    if column_of(engine) not in op.names:
        raise _refused(Reason.NO_OP, f"{engine} has no op for {op.name}", plan)
    if asked is not None:
        operands = cast(op, operands, asked)
    return (*_under(engine, op, plan, operands, processor), None)


def values_of(op: Op, operands: Sequence[Any]) -> Sequence[Any]:
    """The operands that are values: all but conditions."""
    return operands[op.conditions :]


def variant(op: Op, engine: str, dtype: str) -> str | None:
    """The variant by which an engine computes an op on operands of one dtype.

    Returns:
        "" for NumPy's values, the name of a function of `VARIANTS`, or None: the engine refuses the
        dtype, or computes in another one.
    """
    row = DTYPES.get(engine)
    if row is None or column_of(engine) not in op.names or dtype in row.computes_in:
        return None
    if row.takes and dtype not in row.takes:
        return None
    variants = op.variants.get(engine, {})
    name = variants.get(dtype) or variants.get(np.dtype(dtype).kind) or ""
    return name if name in VARIANTS or not name else None


@functools.lru_cache(1024)
def own_kinds(name: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Kinds of operands in libraries that have their own bfloat16: PyTorch and JAX.

    In these a Python float takes the dtype of any float operand. NumPy does so for its own dtypes;
    bfloat16 comes from a package, so it gives float32, and float64 for `where`.

    Args:
        name: of the op.
        kinds: of each operand, the name of a dtype, or "int", "float" or "complex" of a number.

    Returns:
        The kinds, "float" replaced where NumPy would widen the other operand.

    >>> own_kinds("add", ("float16", "float"))  # NumPy keeps that; ("bfloat16", "float") it widens
    ('float16', 'float')
    """
    first = OPS[name].conditions
    values = kinds[first:]
    arrays = [np.dtype(kind) for kind in values if kind not in ("int", "float", "complex")]
    if "float" not in values or "complex" in values or not arrays:
        return kinds
    try:
        common = np.result_type(*arrays)
    except TypeError:  # they do not combine; the promotion raises the error
        return kinds
    if not is_added_float(common):
        return kinds
    return (*kinds[:first], *(common.name if kind == "float" else kind for kind in values))


def cast(op: Op, operands: Sequence[Any], dtype: np.dtype[Any]) -> list[Any]:
    """Operands cast as a ufunc with `dtype` casts them, within their kind."""
    values = values_of(op, operands)
    for value in values:
        source = np.result_type(dtype, value) if type(value) in WEAK else value.dtype
        if not keeps_kind(source, dtype):
            raise TypeError(f"cannot cast {source} to dtype={dtype} (casting is 'same_kind')")
    kept = operands[: len(operands) - len(values)]
    with np.errstate(all="ignore"):
        return [*kept, *[np.asarray(value, dtype=dtype) for value in values]]


def _under(
    engine: str, op: Op, plan: Plan, operands: list[Any], processor: str
) -> tuple[Kernel, list[Any]]:
    """The engine's function, and the operands in the dtype that it computes in."""
    row = DTYPES.get(engine)
    if row is None:
        detail = f"{engine} was read about, not run: which values it gives is not known"
        raise _refused(Reason.NO_OP, detail, plan)
    values, parameters = values_of(op, operands[: op.tensors]), operands[op.tensors :]
    mixed = engine in op.first_decides
    common = np.result_type(values[0]) if mixed else _meet(row, engine, values, plan)
    if row.takes and common.name not in row.takes:
        raise _refused(Reason.DTYPE, f"{engine} does not take {common}", plan)
    variants = op.variants_on(engine, processor)
    name = variants.get(common.name) or variants.get(common.kind)
    if name == "refused":
        raise _refused(Reason.DTYPE, f"{engine}'s {op.name} does not take {common}", plan)
    if name == "unknown":
        detail = f"what {engine}'s {op.name} gives for {common} is not known; it is not NumPy's"
        raise _refused(Reason.DTYPE, detail, plan)
    inner = np.dtype(row.computes_in.get(common.name, common))
    kernel = KERNELS[op.name] if name in (None, "numpy") else VARIANTS[name]
    saturate = common.name in row.saturates
    if not mixed:
        values = [_convert(np.asarray(value), inner, saturate=saturate) for value in values]
    back = common if row.returns and inner != common else None
    kernel = _finished(kernel, inner, back, saturate=saturate and op.name not in row.wraps)
    kept = operands[: op.tensors - len(values)]
    numbers = [np.asarray(value).item() for value in parameters]
    return kernel, [*kept, *map(np.asarray, values), *numbers]


def _meet(row: Dtypes, engine: str, values: Sequence[Any], plan: Plan) -> np.dtype[Any]:
    """The common dtype of operands; a BroadcastError where the engine needs equal dtypes."""
    arrays = [value for value in values if type(value) not in WEAK]
    dtypes = {value.dtype for value in arrays}
    if len(dtypes) > 1 and not row.mixes:
        names = " and ".join(str(value.dtype) for value in arrays)
        raise _refused(Reason.DTYPE, f"{engine} wants equal dtypes, not {names}", plan)
    common = _by_category(row, arrays) if len(dtypes) > 1 else next(iter(dtypes), None)
    return _with_numbers(row, engine, common, values, plan)


def _by_category(row: Dtypes, arrays: Sequence[Any]) -> np.dtype[Any]:
    top = max(map(_category, (array.dtype for array in arrays)))
    same = [array for array in arrays if _category(array.dtype) == top]
    if row.zero_rank_yields:
        same = [array for array in same if array.ndim] or same
    return np.result_type(*[array.dtype for array in same])


def _with_numbers(
    row: Dtypes, engine: str, common: np.dtype[Any] | None, values: Sequence[Any], plan: Plan
) -> np.dtype[Any]:
    """The dtype with Python numbers: theirs only if their category is higher."""
    numbers = [value for value in values if type(value) in WEAK]
    if common is None:
        joined = np.result_type(*numbers)
        return np.dtype(row.default.get(joined.kind, joined))
    for number in numbers:
        if np.result_type(common, number) == common or common.kind not in _KINDS:
            continue
        default = row.default.get(np.result_type(number).kind)
        if not row.mixes:
            detail = f"{engine} wants equal dtypes, and {number!r} is no {common}"
            raise _refused(Reason.DTYPE, detail, plan)
        if _category(np.result_type(number)) > _category(common):
            common = np.dtype(default) if default else np.result_type(common, number)
    return common


def _category(dtype: np.dtype[Any]) -> int:
    """The rank of bool, integer, float, complex; any other kind counts as float."""
    return {"b": 0, "i": 1, "u": 1, "c": 3}.get(dtype.kind, 2)


def _convert(values: Any, dtype: np.dtype[Any], *, saturate: bool) -> Any:
    """An array in another dtype; values out of range saturate or wrap."""
    if saturate and values.dtype != dtype:
        # Between two floats the limits are those of the narrower one, float32.
        limits = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(np.float32)
        values = np.clip(values, limits.min, limits.max)
    return values.astype(dtype)


def _finished(
    kernel: Kernel, inner: np.dtype[Any], back: np.dtype[Any] | None, *, saturate: bool
) -> Kernel:
    """The engine's function; it converts results back, except those of comparisons."""

    def finished(*values: Any) -> Any:
        result = np.asarray(kernel(*values))
        if back is not None and result.dtype == inner:
            result = _convert(result, back, saturate=saturate)
        return result

    return finished


def _refused(reason: Reason, detail: str, plan: Plan) -> BroadcastError:
    hint = "convert the operands to one dtype that it takes" if reason is Reason.DTYPE else None
    return BroadcastError(detail, reason=reason, rule=plan.rule, shapes=plan.operands, hint=hint)
