"""xarray's own arithmetic: seeded DataArrays with coordinates, attributes, options."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from zerostride import plan
from zerostride.errors import BroadcastError
from zerostride.fusion import reductions

from ..native.command import public

#: Ops that xarray has as operators.
OPERATORS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "add": operator.add,
        "subtract": operator.sub,
        "multiply": operator.mul,
        "divide": operator.truediv,
        "less": operator.lt,
        "greater_equal": operator.ge,
        "equal": operator.eq,
        "not_equal": operator.ne,
        "bitwise_and": operator.and_,
        "negative": operator.neg,
        "abs": operator.abs,
    }
)
_UNARY = frozenset({"negative", "abs"})
_REDUCTIONS = ("sum", "prod", "mean", "min", "max", "any", "all")
_NAMES = ("t", "y", "x", "c")
_LABELS = {"t": "abcdef", "y": "ghijkl", "x": "mnopqr", "c": "stuvwx"}


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """A call: the op or reduction, how the arrays are made, and xarray's options."""

    name: str
    arrays: tuple[Mapping[str, Any], ...]
    number: Any
    options: Mapping[str, Any]
    dims: tuple[str, ...] | None
    keepdims: bool


def cases(first: int, count: int, seed: int) -> Iterator[tuple[int, LabelledCase]]:
    """Cases with their numbers; every one has a seed of its own."""
    for k in range(first, first + count):
        yield k, _draw(random.Random(f"xarray:{seed}:{k}"))


def _draw(rng: random.Random) -> LabelledCase:
    sizes = {name: rng.choice((1, 2, 3, 5)) for name in _NAMES}
    name = rng.choice((*OPERATORS, *OPERATORS, *_REDUCTIONS))
    alone = name in _UNARY or name in _REDUCTIONS
    arrays = tuple(_array(rng, sizes, name) for _ in range(1 if alone else 2))
    number = rng.choice((2, -1)) if not alone and rng.random() < 0.15 else None
    options = {
        "keep_attrs": rng.choice(("default", True, False)),
        "arithmetic_join": rng.choice(("inner", "inner", "outer", "left", "right", "exact")),
    }
    dims: tuple[str, ...] | None = None
    if rng.random() < 0.8:
        own = arrays[0]["dims"]
        dims = tuple(rng.sample(own, rng.randint(min(1, len(own)), len(own)))) or None
    return LabelledCase(name, arrays, number, options, dims, rng.random() < 0.3)


def _array(rng: random.Random, sizes: Mapping[str, int], op: str) -> Mapping[str, Any]:
    dims = tuple(rng.sample(_NAMES, rng.randint(0, 3)))
    shape = tuple(sizes[name] + (rng.random() < 0.02) for name in dims)
    dtype = rng.choice(
        ("int64", "int32") if op == "bitwise_and" else ("float64", "float32", "int64")
    )
    coords: dict[str, Any] = {}
    for name, n in zip(dims, shape, strict=True):
        if rng.random() < 0.5:
            labels = list(_LABELS[name][:6])
            begin = rng.choice((0, 0, 1)) if n < 6 else 0
            coords[name] = labels[begin : begin + n]
            if rng.random() < 0.1:
                rng.shuffle(coords[name])
        if rng.random() < 0.2:
            coords[f"of_{name}"] = (name, [rng.choice((1, 2)) for _ in range(n)])
    if rng.random() < 0.2:
        coords["scalar"] = rng.choice((1, 2))
    attrs = {key: rng.choice((1, 2)) for key in ("units", "source") if rng.random() < 0.5}
    data = (np.random.default_rng(rng.randrange(2**32)).integers(-3, 4, shape)).astype(dtype)
    return {
        "data": data,
        "dims": dims,
        "coords": coords,
        "attrs": attrs,
        "name": rng.choice((None, "a", "a", "b")),
    }


def judged(case: LabelledCase) -> tuple[str, bool]:
    """The difference from xarray's own result, or ""; and whether both refuse."""
    import xarray as xr

    chosen = xr.set_options(**case.options)
    with chosen, np.errstate(all="ignore"):
        operands: list[Any] = [xr.DataArray(**one) for one in case.arrays]
        if case.number is not None:
            operands[1] = case.number
        try:
            expected, refusal = _theirs(case, operands), None
        except (ValueError, TypeError) as error:
            expected, refusal = None, error
        try:
            result = _ours(case, operands)
        except (ValueError, TypeError) as error:
            if refusal is None:
                return f"raised {error!r}, xarray nothing", False
            return "", True
        if refusal is not None:
            return f"xarray raises {refusal!r}", False
        return _differing(case, result, expected, operands), False


def _theirs(case: LabelledCase, operands: Sequence[Any]) -> Any:
    if case.name not in _REDUCTIONS:
        return OPERATORS[case.name](*operands)
    skipping = {} if case.name in ("any", "all") else {"skipna": False}
    method = getattr(operands[0], case.name)
    return method(dim=case.dims, keepdims=case.keepdims, **skipping)


def _ours(case: LabelledCase, operands: Sequence[Any]) -> Any:
    if case.name not in _REDUCTIONS:
        return public(case.name)(*operands)
    function = getattr(reductions, case.name)
    return function(operands[0], axis=case.dims, keepdims=case.keepdims)


def _differing(case: LabelledCase, result: Any, expected: Any, operands: Sequence[Any]) -> str:
    if type(result) is not type(expected):
        return f"a {type(result).__name__}, xarray's is a {type(expected).__name__}"
    if not result.identical(expected):
        return f"not identical:\n{result}\nxarray's:\n{expected}"
    if result.dtype != expected.dtype and case.name not in _REDUCTIONS:
        return f"dtype {result.dtype}, xarray's {expected.dtype}"
    if result.attrs != expected.attrs or result.name != expected.name:
        return f"{result.name} {result.attrs}, xarray's {expected.name} {expected.attrs}"
    if case.name in _REDUCTIONS or case.number is not None:
        return ""
    try:
        laid = plan(*operands)
    except BroadcastError as error:
        return f"there is no plan: {error}"
    named = tuple(laid.rule.attributes["axes"])
    if (named, laid.shape) != (expected.dims, expected.shape):
        return f"planned {laid.shape} along {named}, xarray's {expected.shape} of {expected.dims}"
    return ""
