"""The native backend: which calls the C++ engine takes, and with which dtypes.

The engine knows no rule and no promotion. It calls this module once for each combination, for the
plan and for the dtypes that an op computes these kinds of operands in (from NumPy's ufunc, or the
reference's function on empty arrays). The reference backend computes what the engine does not take:
complex numbers, long doubles, subclasses of arrays, byte-swapped data, engines' own semantics.

`ZEROSTRIDE_BACKEND=reference` disables the engine, `native` requires it. `ZEROSTRIDE_ISA` names
an instruction set, `ZEROSTRIDE_NUM_THREADS` how many threads a call may use.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ..core.plan import Plan
from ..core.strict_mode import FAULTS, IN_FORCE, add_holder
from ..engines.planning import plan
from ..ops import OPS, Op
from ..sizes import brief, whole_numbers
from . import reference
from .kernels import KERNELS, VARIANTS
from .limits import MOST_THREADS
from .outputs import as_target
from .semantics import WEAK, cast, values_of, variant
from .special import EXACT_IN_16_BITS, HALVES, keeps_kind

try:
    from . import _native as _native

    _WHY = ""
except ImportError as error:  # installed without a compiler, or for another Python
    _native = None  # type: ignore[assignment]
    _WHY = str(error)

_F = TypeVar("_F", bound=Callable[..., Any])
#: The dtypes of Python numbers without an array.
_NUMBERS = {
    "int": np.dtype(np.int64),
    "float": np.dtype(np.float64),
    "complex": np.dtype(np.complex128),
}
_TYPES: dict[str, type[complex]] = {"int": int, "float": float, "complex": complex}
#: A result's bytes are counted in 63 bits.
_MOST_BYTES = sys.maxsize


def lacking() -> str:
    """That the engine is not installed, and how to have it; "" if it is."""
    if not _WHY:
        return ""
    return (
        "zerostride is installed without its C++ engine: install a wheel for this "
        "Python and processor, or compile one (a C++20 compiler, and ZEROSTRIDE_PURE unset)"
    )


def _choose() -> bool:
    """Whether the native engine is in use."""
    wanted = os.environ.get("ZEROSTRIDE_BACKEND", "").strip().lower()
    if wanted not in ("", "native", "reference"):
        warnings.warn(
            f"ZEROSTRIDE_BACKEND is {wanted!r}; it is native, reference or unset",
            RuntimeWarning,
            stacklevel=2,
        )
    if wanted == "native" and _WHY:
        raise ImportError(f"ZEROSTRIDE_BACKEND=native, but {lacking()} [{_WHY}]")
    return not _WHY and wanted != "reference"


_IN_USE = _choose()


def _check_environment() -> None:
    """Reports once, and ignores, settings of the environment that cannot be met."""
    isa = os.environ.get("ZEROSTRIDE_ISA")
    if isa and isa.lower() not in _native.available_isas():
        have = ", ".join(_native.available_isas())
        warnings.warn(
            f"ZEROSTRIDE_ISA={isa!r} is not available here; these are: {have}. "
            f"Computing with {_native.isa()}",
            RuntimeWarning,
            stacklevel=2,
        )
    threads = os.environ.get("ZEROSTRIDE_NUM_THREADS")
    digits = (threads or "").strip().lstrip("0")
    asked = int(digits) if digits.isdecimal() and len(digits) <= len(str(MOST_THREADS)) else 0
    if threads and asked != _native.num_threads():
        warnings.warn(
            f"ZEROSTRIDE_NUM_THREADS={threads!r} is no positive number up to {MOST_THREADS}; "
            f"using {_native.num_threads()} threads",
            RuntimeWarning,
            stacklevel=2,
        )


if _IN_USE:
    _check_environment()


def backend() -> str:
    """The backend in use: "native" with its instruction set, or "reference".

    >>> backend().split()[0] in ("native", "reference")
    True
    """
    return f"native {_native.isa()}" if _IN_USE else "reference"


def set_num_threads(count: int) -> None:
    """Sets how many threads a call may use, the caller's own included.

    Args:
        count: 1 to 4096. The default is ZEROSTRIDE_NUM_THREADS, or the number of processors that
            the process may run on. The reference backend always uses one.

    Raises:
        TypeError: `count` is no integer.
        ValueError: it is out of range.

    >>> set_num_threads(2)
    >>> get_num_threads() in (1, 2)
    True
    """
    wanted = whole_numbers((count,))
    if wanted is None:
        raise TypeError(f"a number of threads is an integer, not {brief(count)}")
    if not 1 <= wanted[0] <= MOST_THREADS:
        raise ValueError(f"{brief(wanted[0])} threads; 1 to {MOST_THREADS}")
    if _IN_USE:
        _native.set_num_threads(wanted[0])


def get_num_threads() -> int:
    """How many threads a call may use; 1 for the reference backend."""
    return _native.num_threads() if _IN_USE else 1


# Dtypes


def resolve(op: Op, kinds: tuple[str, ...], dtype: str | None) -> tuple[str, ...] | None:
    """The dtypes that an op computes operands of these kinds in, and its result's.

    Args:
        op: a row of the op table.
        kinds: of each operand, the name of a dtype, or "int" or "float" for a Python number.
        dtype: what the call asks to compute in, or None.

    Returns:
        Names of dtypes, the result's last; None where the reference backend has to compute.

    >>> resolve(OPS["add"], ("float32", "int"), None)
    ('float32', 'float32', 'float32')
    >>> resolve(OPS["divide"], ("int8", "int8"), None)
    ('float64', 'float64', 'float64')
    """
    try:
        dtypes = promote(op, kinds, dtype)
    except TypeError:
        return None  # the reference raises the error
    if dtypes is None or any(map(rounds_first, kinds, dtypes)):
        return None
    if "width" in op.facts and dtypes[-1] in HALVES:
        return None
    return dtypes


def promote(op: Op, kinds: tuple[str, ...], dtype: str | None) -> tuple[str, ...] | None:
    """As :func:`resolve`, also for dtypes that the engine lacks; "complex" is a Python number.

    Returns:
        Names of dtypes; None where the operands become `dtype` and the result has another dtype.

    Raises:
        TypeError: the op has no meaning for these operands.

    >>> promote(OPS["multiply"], ("float32", "complex"), None)
    ('complex64', 'complex64', 'complex64')
    """
    kernel = KERNELS[op.name]
    find = _of_ufunc if isinstance(kernel, np.ufunc) else _of_function
    return find(op, kernel, kinds, None if dtype is None else np.dtype(dtype))


def _of_ufunc(
    op: Op, kernel: Any, kinds: tuple[str, ...], dtype: np.dtype[Any] | None
) -> tuple[str, ...] | None:
    operand_types: list[Any] = [_TYPES.get(kind) or np.dtype(kind) for kind in kinds]
    if all(kind in _TYPES for kind in kinds):
        operand_types = [_NUMBERS[kind] for kind in kinds]
    # As NumPy's `dtype` argument: the dtype of the result.
    asked = {} if dtype is None else {"signature": (*[None] * len(kinds), dtype)}
    dtypes = kernel.resolve_dtypes((*operand_types, None), casting="same_kind", **asked)
    return tuple(resolved.name for resolved in dtypes)


def _of_function(
    op: Op, kernel: Any, kinds: tuple[str, ...], dtype: np.dtype[Any] | None
) -> tuple[str, ...] | None:
    values = [_TYPES[kind](1) if kind in _TYPES else np.empty(0, kind) for kind in kinds]
    if dtype is not None:
        values = cast(op, values, dtype)
    with np.errstate(all="ignore"):
        result = np.asarray(kernel(*values)).dtype
    if dtype is not None and result != dtype:
        return None  # narrowed to `dtype` first, then computed in another dtype
    computed = [result.name] * len(values_of(op, values))
    return (*["bool"] * (len(values) - len(computed)), *computed, result.name)


def rounds_first(kind: str, to: str) -> bool:
    """Whether an array's values are rounded to 16 bits before anything is computed."""
    return to in HALVES and kind not in _TYPES and kind != to and kind not in EXACT_IN_16_BITS


def _no_negative_power(op: Op, kinds: tuple[str, ...], dtype: str | None) -> tuple[str, ...] | None:
    """As `resolve`; None for integers, whose exponents `compute` checks for negative values."""
    dtypes = resolve(op, kinds, dtype)
    return None if dtypes is not None and dtypes[-1].startswith("int") else dtypes


def _under_engine(op: Op, engine: str, kinds: tuple[str, ...]) -> str | None:
    """The kernel by which the engine computes operands of one dtype; None for the reference."""
    values = {*values_of(op, kinds)}
    conditions = kinds[: len(kinds) - len(values_of(op, kinds))]
    if len(values) != 1 or any(kind != "bool" for kind in conditions):
        return None
    (kind,) = values
    name = None if kind in _TYPES else variant(op, engine, kind)
    return op.name if name == "" else None if name is None else _variants().get(name)


@functools.cache
def _variants() -> dict[str, str]:
    """The functions of `compute.kernels.VARIANTS` that have a kernel, and the kernel's name."""
    kernels = {name for name, _ in _native.kernels()}
    named = {name: name.removeprefix("checked_") for name in VARIANTS}
    return {name: kernel for name, kernel in named.items() if kernel in kernels}


#: Kernels of these that refuse to divide integers by zero.
_DIVIDES = frozenset({"truncated_divide", "floor_divide", "remainder", "fmod"})
_RESOLVERS = {"pow": _no_negative_power}

# Functions


def bind(
    op: Op, python: _F, *, rules: bool = True, parameters: Mapping[str, Any] | None = None
) -> _F:
    """The public function of an op: the engine's, with `python` behind it; or `python` itself.

    Args:
        op: a row of the op table.
        python: takes the calls that the engine does not. The function has its name and docstring.
        rules: whether it takes a rule and its attributes.
        parameters: its last operands that a call may name or leave out, with their values then;
            None: those of the row.
    """
    if not _IN_USE:
        return python
    configure = functools.partial(_configure, op, rules)
    last = dict(op.parameters if parameters is None else parameters)
    function = _native.Function(op.name, op.operands, python, configure, last)
    return functools.update_wrapper(function, python)  # type: ignore[return-value]


def _configure(
    op: Op,
    rules: bool,
    rule: str | None,
    axis: int | None,
    engine: str | None,
    broadcast: int | None,
) -> tuple[Any, Any] | None:
    """The planner and the resolver of one rule with its attributes; see `_native.Function`."""
    by_numpy = rule is None and axis is None and broadcast is None
    foreign = engine not in (None, "numpy")
    if not rules and not by_numpy:
        return None
    if foreign and (not rules or op.name == "clip"):
        return None  # rules of two operands cover neither one tensor nor limits that are numbers
    if engine is not None and op.operands > op.tensors:
        return None  # under engines parameters have to be numbers, which Python checks
    if engine is None or engine == "numpy":
        resolver = functools.partial(_RESOLVERS.get(op.name, resolve), op)
    else:
        resolver = functools.partial(_for_engine, op, engine)
    if engine is None and by_numpy:
        return None, resolver

    def planner(*shapes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        op_plan = _plan(op, shapes, rule, axis, engine, broadcast)
        axes = (place for mapping in op_plan.axes_mapping for place in mapping)
        return op_plan.shape, tuple(-1 if place is None else place for place in axes)

    return planner, resolver


def _for_engine(
    op: Op, engine: str, kinds: tuple[str, ...], dtype: str | None
) -> tuple[str, ...] | None:
    if dtype is not None or _under_engine(op, engine, kinds) != op.name or op.name in _DIVIDES:
        return None
    return _RESOLVERS.get(op.name, resolve)(op, kinds, None)


def _plan(
    op: Op,
    shapes: Sequence[tuple[int, ...]],
    rule: str | None,
    axis: int | None,
    engine: str | None,
    broadcast: int | None,
) -> Plan:
    name = op.name if engine is not None else None
    return plan(*shapes, rule=rule, axis=axis, broadcast=broadcast, engine=engine, op=name)


@functools.cache
def _function(name: str) -> Any:
    """The engine's function of an op, its operands checked already."""
    op = OPS.get(name)
    resolver = functools.partial(resolve, op) if op else _of_variant
    return _native.Function(name, op.operands if op else 2, _nothing, lambda *_: (None, resolver))


def _of_variant(kinds: tuple[str, ...], dtype: str | None) -> tuple[str, ...] | None:
    """The dtypes of an engine's own function: one for all. None for 16-bit floats, which would be
    rounded once where the engine rounds at each step."""
    return None if dtype is not None or {*kinds} & HALVES else (*kinds, kinds[-1])


def _nothing(*_: Any, **__: Any) -> Any:
    """The fallback of a `_function`, which is never called: `compute` uses evaluate() only, which
    returns NotImplemented, and then goes to the reference."""
    raise AssertionError("a function of compute() was called; evaluate() is what it is for")


def compute(op: Op, plan: Plan, arrays: Sequence[Any], out: Any = None, dtype: Any = None) -> Any:
    """The result of :func:`reference.compute`, by the engine where it takes the operands.

    Raises:
        MemoryError: the result has more bytes than can be counted, or than there are.
    """
    _check_bytes(plan, arrays, out)
    if _IN_USE and len(arrays) == op.operands == len(plan.operands):
        result = _evaluate(op, plan, arrays, out, dtype)
        if result is not NotImplemented:
            return result
    return reference.compute(op, plan, arrays, out, dtype)


def _evaluate(op: Op, plan: Plan, arrays: Sequence[Any], out: Any, dtype: Any) -> Any:
    """The engine's result, or NotImplemented."""
    engine = plan.rule.engine
    numbers = all(type(array) in WEAK for array in arrays)
    if numbers or not all(map(_is_plain, arrays)):
        return NotImplemented  # the rule may give a result of numbers alone axes
    name: str | None = op.name
    if engine is not None and engine != "numpy":
        name = _under_engine(op, engine, tuple(_kind(array) for array in arrays))
        if dtype is not None or name is None or (name in _DIVIDES and _any_zero(arrays[1])):
            return NotImplemented
    if name == "pow" and (dtype is not None or _any_negative(arrays[1])):
        return NotImplemented  # a power that becomes negative in `dtype` is refused too
    if plan.rule == "numpy" and engine in (None, "numpy"):
        views = tuple(arrays)  # the engine's own rule
    else:
        views = tuple(
            array if type(array) in WEAK else plan.view(k, array) for k, array in enumerate(arrays)
        )
    target = as_target(out, plan.shape, plan)
    if op.name == "cast":
        return _native.convert(views[0], dtype, target)
    return _function(name).evaluate(views, target, dtype)


def _is_plain(array: Any) -> bool:
    if type(array) in WEAK:
        return type(array) is not complex
    if array.dtype.kind == "V" and array.dtype.name == "bfloat16":
        _native.register_bfloat16(array.dtype.num)
    return type(array) is np.ndarray


def _kind(array: Any) -> str:
    return type(array).__name__ if type(array) in WEAK else str(array.dtype)


def _any_zero(divisor: Any) -> bool:
    """Whether integers are divided by zero, which engines refuse; floats may be."""
    return divisor.dtype.kind in "iu" and not np.all(divisor)


def _any_negative(power: Any) -> bool:
    """Whether an integer exponent is negative; floats may be."""
    if type(power) in WEAK:
        return not isinstance(power, float) and power < 0
    return power.dtype.kind == "i" and bool(np.any(power < 0))


def _check_bytes(plan: Plan, arrays: Sequence[Any], out: Any) -> None:
    """Refuses a result whose bytes may not be countable, before it is allocated."""
    if out is not None:
        return
    elements = math.prod(plan.shape)
    size = max(1 if type(array) in WEAK else array.itemsize for array in arrays)
    # A result may be wider than its operands, up to complex numbers of 16 bytes.
    if elements * max(size, 16) > _MOST_BYTES:
        raise MemoryError(
            f"the result of shape {plan.shape} would take {elements * size} bytes or more"
        )


def copied(view: Any, out: Any = None) -> Any:
    """A view's elements in `out`, or in a new array in C order; by the engine where it can."""
    target = np.empty(view.shape, view.dtype) if out is None else out
    if out is not None and not keeps_kind(view.dtype, target.dtype):
        raise TypeError(f"the data is {view.dtype}, which does not fit an out of {target.dtype}")
    if _IN_USE and type(view) is type(target) is np.ndarray and view.size:
        result = _native.convert(view, view.dtype, target)
        if result is not NotImplemented:
            return result
    with np.errstate(all="ignore"):
        np.copyto(target, view, casting="same_kind")
    return target


def find_bfloat16() -> None:
    """Registers ml_dtypes' bfloat16, which NumPy knows by a number once that is imported."""
    module = sys.modules.get("ml_dtypes")
    if module is not None:
        _native.register_bfloat16(np.dtype(module.bfloat16).num)


def _watch_strictness() -> None:
    """Sends calls in strict contexts to Python, which checks their plans."""
    if not hasattr(_native, "watch_context"):
        FAULTS.append("the native engine is older than this package; build it again")
        return
    _native.watch_context(IN_FORCE)
    add_holder(_native.hold_context)


if _IN_USE:
    _watch_strictness()
    find_bfloat16()
