"""Compares a call with a library's arrays with the reference's result for NumPy arrays.

Values, dtype and shape are the reference's; the type and the device are the operands'. What a
library cannot hold is refused, and the refusal has to say so.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerostride import plan, plan_to
from zerostride.arrays.packing import mapped
from zerostride.compute import reference
from zerostride.compute.outputs import as_target
from zerostride.compute.semantics import WEAK
from zerostride.compute.special import is_float
from zerostride.fusion import function as fusing
from zerostride.fusion import reductions
from zerostride.fusion.reference import evaluate
from zerostride.ops import ops_with

from ..native.cases import CallArrays, View, dtype_of
from ..native.command import public
from ..native.judge import BOUND, FAMILIES, judge, outcome, ulps
from .draw import ArrayCase
from .libraries import Library
from .own import computed_in, own_values, rounded_twice

#: Words of a refusal for what a library lacks: a dtype, a function.
LACKS = ("does not have", " has no ", "is not there for")
#: Words of the one refusal for values.
_FOR_VALUES = "Integers to negative integer powers"
#: In units in the last place, of functions that a library computes itself.
OWN_BOUND = 64.0
#: By op and bytes, where it is another. The argument of erfc is rounded before, and that error
#: counts as many times as its square is large, up to 745. A GPU rounds a
#: product and a sum together, which shows where the sum is near 0.
OWN_BOUNDS: Mapping[tuple[str, int], float] = MappingProxyType(
    {
        ("gelu", 8): 2500.0,
        **{(op, size): 2500.0 for op in ("hard_swish", "hard_sigmoid") for size in (4, 8)},
    }
)
#: Reductions that round, of what are not whole numbers.
_ROUNDED = frozenset({"sum", "mean", "prod", "sum_of_squares", "logsumexp"})
#: Reductions whose result may be small beside what was added up, and how large that is.
_ADDED: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"sum": np.sum, "mean": np.mean, "logsumexp": lambda x, **how: np.max(x, **how) + 1}
)
#: Dtypes that bfloat16 holds.
_WITHIN = frozenset({"bfloat16", "bool", "int8", "uint8"})
#: Sums that may cancel.
_SCALED = frozenset({"logaddexp", "logaddexp2"})
#: Products with x, which is a few hundred where the factor is below the smallest normal number: it
#: has few digits there, or none.
_FADING = frozenset({"gelu_tanh", "mish", "swish"})


@dataclass(frozen=True, slots=True)
class ArrayJudged:
    """The result of a case.

    Attributes:
        difference: what is not as it should be; "" if all is.
        refused: whether the reference refuses it, too.
        lacking: whether the library lacks something, and the refusal says so.
    """

    difference: str = ""
    refused: bool = False
    lacking: bool = False


def judged(case: ArrayCase, library: Library) -> ArrayJudged:
    """Runs a case with a library's arrays and by the reference."""
    if case.kind == "op" and library.exact:
        return _op(case, library)
    if _is_open(case, library):
        return ArrayJudged(lacking=True)
    expected, refusal = outcome(lambda: _expected(case, library))
    try:
        ours = _Ours(case, library)
        result = ours.run()
        # Lazy arrays raise where they are read.
        values = mapped(result, lambda one: np.asarray(library.read(one)))
    except Exception as error:  # noqa: BLE001 - what is raised is what is compared
        return _refusals(error, refusal, library)
    if refusal is not None:
        if library.blind and _FOR_VALUES in str(refusal):
            return ArrayJudged(lacking=True)
        return ArrayJudged(f"the reference raises {refusal!r}, {library.name} does not")
    if isinstance(expected, tuple):
        if not isinstance(result, tuple) or len(result) != len(expected):
            return ArrayJudged(
                f"the result is a {type(result).__name__}, not {len(expected)} arrays"
            )
        triples = zip(result, values, expected, strict=True)
        differences = [_differing(case, library, *triple, ours) for triple in triples]
        return ArrayJudged(next(filter(None, differences), ""))
    return ArrayJudged(_differing(case, library, result, values, expected, ours))


def _is_open(case: ArrayCase, library: Library) -> bool:
    """Whether what is asked has no one answer of the library's."""
    kinds = dict(library.open).get(case.call.op, "") if case.kind in ("op", "fused") else ""
    views = [one for one in case.call.operands if isinstance(one, View)]
    return any(dtype_of(view.dtype).kind in kinds for view in views)


def _made(case: ArrayCase, library: Library) -> CallArrays:
    """The call's arrays, as far as the library tells them apart."""
    arrays = case.call.make()
    if not library.flushes:
        return arrays
    operands = [one if type(one) in WEAK else _flushed(one) for one in arrays.operands]
    return CallArrays(arrays.op, arrays.memories, operands, arrays.out, arrays.options)


def _told(arrays: CallArrays, library: Library) -> CallArrays:
    """The call as NumPy is told what a library knows: a Python float beside bfloat16 is that."""
    values = arrays.operands[arrays.op == "where" :]
    dtypes = {value.dtype.name for value in values if type(value) not in WEAK}
    meets = "bfloat16" in dtypes and dtypes <= _WITHIN
    if not (library.promotes and meets) or "engine" in arrays.options:
        return arrays
    dtype = np.dtype(arrays.options.get("dtype", dtype_of("bfloat16")))
    if arrays.op in ops_with("comparison"):  # the dtype is the answer's
        dtype = dtype_of("bfloat16")
    if dtype.kind in "biu":
        return arrays
    with np.errstate(all="ignore"):
        operands = [
            np.asarray(one, dtype) if type(one) is float else one for one in arrays.operands
        ]
    return CallArrays(arrays.op, arrays.memories, operands, arrays.out, arrays.options)


def _flushed(array: Any) -> Any:
    """Without numbers below the smallest normal one."""
    if array.dtype.kind not in "fc" and array.dtype.name != "bfloat16":
        return array
    least = 2.0**-126 if array.dtype.name == "bfloat16" else np.finfo(array.dtype).tiny
    with np.errstate(all="ignore"):
        if array.dtype.kind == "c":
            return _flushed(array.real) + 1j * _flushed(array.imag).astype(array.real.dtype)
        return np.where(np.abs(array) < least, np.zeros((), array.dtype), array)


def _refusals(error: Exception, refusal: Exception | None, library: Library) -> ArrayJudged:
    if refusal is not None and not library.exact:
        return ArrayJudged(
            refused=True
        )  # for a shape or for a dtype: which is seen first may differ
    if isinstance(error, type(refusal)) or isinstance(refusal, type(error)):
        return ArrayJudged(refused=True)
    if isinstance(error, TypeError) and any(word in str(error) for word in LACKS):
        return ArrayJudged(lacking=True)
    return ArrayJudged(f"raised {error!r}, the reference {refusal!r}")


# An op by the engine: to the bit, or as near as the engine is.


def _op(case: ArrayCase, library: Library) -> ArrayJudged:
    lacking: list[bool] = []
    unlike: list[str] = []

    def function(*operands: Any, out: Any = None, **options: Any) -> Any:
        listed = [one if type(one) in WEAK else library.made(one) for one in operands]
        more = {} if out is None else {"out": library.made(np.array(out))}
        try:
            result = public(case.call.op)(*listed, **options, **more)
        except TypeError as error:
            lacking.append(any(word in str(error) for word in LACKS))
            raise
        arrays = [one for one in listed if type(one) not in WEAK]
        if arrays:
            unlike.append(library.differs(result, arrays[0]))
        values = library.read(result) if arrays else result
        if out is None:
            return values[()] if isinstance(values, np.ndarray) and not values.ndim else values
        if result is not more["out"]:
            unlike.append("the result is not out")
        out[...] = values
        return out

    if library.name == "numpy":
        function = public(case.call.op)
    verdict = judge(
        case.call,
        function,
        layout=False,
        reference=lambda listed: _told(listed, library).by_reference(),
    )
    if any(lacking) and not verdict.refused:
        return ArrayJudged(lacking=True)
    return ArrayJudged(verdict.difference or next(filter(None, unlike), ""), verdict.refused)


# The rest: what is asked, of the reference and of the library.


def _expected(case: ArrayCase, library: Library) -> Any:
    operands = _told(_made(case, library), library)
    if case.kind == "op":
        return operands.by_reference()
    if case.kind == "broadcast":
        return _broadcast(operands, case)
    if case.kind == "reduction":
        reduced = reductions._fused(
            case.more["name"], axis=case.more["axis"], keepdims=case.more["keepdims"]
        )
        return evaluate(reduced.graph(operands.operands[0]), operands.operands[:1])[0]
    laid = plan(*map(np.shape, operands.operands), **_rule(case))
    if case.kind == "views":
        return laid.views(*operands.operands)
    if case.kind == "unbroadcast":
        return reference.unbroadcast(laid, _gradient(case, laid.shape), case.more["k"])
    return tuple(evaluate(_fused(case).graph(*operands.operands), operands.operands))


def _broadcast(arrays: CallArrays, case: ArrayCase) -> Any:
    (data,) = arrays.operands
    more = case.more
    laid = plan_to(data.shape, more["target_shape"], more["mode"], more.get("axes_mapping"))
    view = laid.view(0, data)
    if arrays.out is None:
        return view
    target = as_target(arrays.out, laid.shape, laid)
    np.copyto(target, view, casting="same_kind")  # type: ignore[arg-type]
    return arrays.out


def _rule(case: ArrayCase) -> dict[str, Any]:
    return {name: value for name, value in case.call.options.items() if name != "dtype"}


def _gradient(case: ArrayCase, shape: Sequence[int]) -> Any:
    count = int(np.prod(shape, dtype=np.int64))
    return (np.arange(count) % 3).astype(dtype_of(case.more["dtype"])).reshape(shape)


def _fused(case: ArrayCase) -> Any:
    function = public(case.call.op)
    rule, axis = _rule(case), case.more["axis"]

    def whole(x: Any, y: Any) -> Any:
        return function(x, y, **rule)

    def reduced(x: Any, y: Any) -> Any:
        value = function(x, y, **rule)
        return reductions.max(value, axis=axis, keepdims=True)

    def several(x: Any, y: Any) -> Any:
        value = function(x, y, **rule)
        return value, value * 2, reductions.min(value, axis=axis)

    return fusing.Fused((whole, reduced, several)[case.more["body"]])


class _Ours:
    """A case with a library's arrays."""

    def __init__(self, case: ArrayCase, library: Library) -> None:
        operands = _made(case, library)
        self.case, self.library = case, library
        self.operands = [
            one if type(one) in WEAK else library.made(one) for one in operands.operands
        ]
        self.out = None if operands.out is None else library.made(np.array(operands.out))
        self.options = operands.options

    def run(self) -> Any:
        """The result, an array or a tuple of them."""
        case, more = self.case, self.case.more
        options = dict(self.options)
        if self.out is not None:
            options["out"] = self.out
        if case.kind == "op":
            return self._called(functools.partial(public(case.call.op), **options), self.operands)
        if case.kind == "broadcast":
            from zerostride.compute.functions import broadcast

            return self._called(functools.partial(broadcast, **more, **options), self.operands)
        if case.kind == "reduction":
            function = getattr(reductions, more["name"])
            given = {name: more[name] for name in ("axis", "keepdims")}
            return self._called(functools.partial(function, **given), self.operands[:1])
        laid = plan(*map(np.shape, self.operands), **_rule(case))
        if case.kind == "views":
            return self._called(laid.views, self.operands)
        if case.kind == "unbroadcast":
            grad = self.library.made(_gradient(case, laid.shape))
            return self._called(lambda given: laid.unbroadcast(given, more["k"]), [grad])
        result = self._called(_fused(case), self.operands)
        return result if isinstance(result, tuple) else (result,)

    def _called(self, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
        arrays = [one for one in operands if type(one) not in WEAK]

        def of_arrays(*given: Any) -> Any:
            rest = iter(given)
            return function(*(one if type(one) in WEAK else next(rest) for one in operands))

        return self.library.call(of_arrays, *arrays)


def _differing(
    case: ArrayCase, library: Library, result: Any, values: Any, expected: Any, ours: _Ours
) -> str:
    like = next((one for one in ours.operands if type(one) not in WEAK), None)
    if like is not None and library.name != "numpy":
        unlike = library.differs(result, like)
        if unlike:
            return unlike
    if ours.out is not None and result is not ours.out:
        return "the result is not out"
    wanted = np.asarray(expected)
    if values.dtype != wanted.dtype:
        return f"dtype {values.dtype}, the reference's {wanted.dtype}"
    if values.shape != wanted.shape:
        return f"shape {values.shape}, the reference's {wanted.shape}"
    if library.flushes:
        values, wanted = _flushed(values), _flushed(wanted)
    difference = _values_of(case, library, values.reshape(-1), wanted.reshape(-1))
    return "" if difference and _cancels(case, library, values, wanted) else difference


def _values_of(case: ArrayCase, library: Library, values: Any, wanted: Any) -> str:
    with np.errstate(all="ignore"):
        wrong = ~_same(values, wanted)
        if not wrong.any():
            return ""
        # Infinite ones are a library's own; an `out` may have taken their real parts.
        parts = values.dtype.kind == "c" or (case.kind == "op" and _is_complex(case))
        if parts and not library.exact:
            wrong &= np.isfinite(values) & np.isfinite(wanted)
        wrong &= ~_near(case, library, values, wanted)
        if wrong.any() and case.kind == "op":
            wrong &= ~_of_its_own(case, library, values)
    if not wrong.any():
        return ""
    k = int(np.argmax(wrong))
    return f"element {k}: {values[k]!r}, the reference's {wanted[k]!r} ({int(wrong.sum())} differ)"


def _same(values: Any, wanted: Any) -> NDArray[np.bool_]:
    return np.asarray((values == wanted) | ((values != values) & (wanted != wanted)))


def _of_its_own(case: ArrayCase, library: Library, values: Any) -> NDArray[np.bool_]:
    """Marks the elements that are equal to the library's own function, or conversion."""
    operands = _told(_made(case, library), library)
    shape = plan(*map(np.shape, operands.operands), **_rule(case)).shape
    array = np.zeros(values.shape, bool)
    for own in (
        own_values(library, operands, shape),
        rounded_twice(operands) if library.rounds_twice else None,
    ):
        if own is not None:
            array |= _same(values, np.broadcast_to(own, shape).reshape(-1))
    return array


def _near(case: ArrayCase, library: Library, values: Any, wanted: Any) -> NDArray[np.bool_]:
    """Marks the elements within the bound of the op."""
    bound, dtype = _bound(case, library), values.dtype
    computes = case.kind in ("op", "fused") and not library.exact
    if dtype.kind == "c":
        near = np.isclose(values, wanted, rtol=1e-4, equal_nan=True)
        return near if bound else np.zeros(values.shape, bool)
    if not bound or not is_float(dtype):
        return np.zeros(values.shape, bool)
    if computes:
        dtype = _rounded_to(case, library, dtype)
        values, wanted = values.astype(dtype), wanted.astype(dtype)
        bound = OWN_BOUNDS.get((case.call.op, dtype.itemsize), bound) if dtype.itemsize > 2 else 1.0
    near = ulps(values, wanted) <= bound
    if not computes:
        return near
    double = dtype.itemsize == 8
    if case.call.op in _SCALED:
        digits = 1e-12 if double else 1e-5
        near |= np.isclose(values, wanted, rtol=digits, atol=digits, equal_nan=True)
    if case.call.op in _FADING:
        near |= np.abs(values - wanted) <= 1000 * (2.0**-1022 if double else 2.0**-126)
    return near


def _rounded_to(case: ArrayCase, library: Library, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of floats that a result was rounded to before it became `out`'s."""
    if case.call.out is None or case.kind != "op":
        return dtype
    names = computed_in(_told(_made(case, library), library))
    own = dtype if names is None else dtype_of(names[-1])
    return own if is_float(own) and own.itemsize < dtype.itemsize else dtype


def _cancels(case: ArrayCase, library: Library, values: Any, wanted: Any) -> bool:
    """Whether sums differ by little of what was added up, in an order of the library's own."""
    if case.kind != "reduction" or case.more["name"] not in _ADDED:
        return False
    if values.dtype.kind not in "fc":
        return False
    (axis, keepdims), x = (case.more[name] for name in ("axis", "keepdims")), case.call.make()
    with np.errstate(all="ignore"):
        sizes = np.abs(np.asarray(x.operands[0])).astype(np.float64)
        added = _ADDED[case.more["name"]]
        total = added(sizes, axis=axis, keepdims=keepdims)
        apart = np.abs(values - wanted)
        return bool(np.all(~(apart > 8 * np.finfo(values.dtype).eps * total)))


def _bound(case: ArrayCase, library: Library) -> float:
    """The bound of an op: the distance from the reference, in units in the last place."""
    if case.kind in ("views", "unbroadcast", "broadcast"):
        return 0.0  # of whole numbers, whose sums are exact
    summed = case.kind == "reduction" and case.more["name"] in _ROUNDED
    if summed or (case.kind != "reduction" and FAMILIES[case.call.op] == "functions"):
        return BOUND if library.exact else OWN_BOUND
    if library.exact or case.kind == "reduction":
        return 0.0
    return 4.0 if _rounds(case) or case.call.op in library.rounds else 0.0


def _rounds(case: ArrayCase) -> bool:
    """Whether it is a few roundings, whose order is a library's own; or of complex numbers."""
    return FAMILIES[case.call.op] == "lines" or _is_complex(case)


def _is_complex(case: ArrayCase) -> bool:
    """Whether an operand is of complex numbers."""
    return any(isinstance(one, View) and one.dtype[:7] == "complex" for one in case.call.operands)
