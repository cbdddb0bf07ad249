"""Arguments of wrong types: each public call answers, or refuses in the package's own words.

A refusal is an exception of the package, or a TypeError, ValueError or KeyError that a `raise`
statement of the package raises. An exception from inside an expression, as "'int' object is not
subscriptable", says nothing to a user.
"""

from __future__ import annotations

import inspect
import linecache
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import zerostride as zs
from zerostride.models.arguments import KINDS

PACKAGE = Path(zs.__file__).parent
WRONG = (
    *(None, 3, -1, 10**6, 2.5, math.nan, 3j, True, "1", "abc", "", b"x", ..., int, object()),
    *((), [], (0,), ["a"], [1, "a"], {"a": 1}, {1}, range(3)),
    *(np.zeros((2, 3)), np.zeros(0), np.array("1"), np.array(["a"]), np.array([None])),
    *(np.float32, np.dtype("float32"), lambda: 0),
)
#: Any value is true or false to these, save an array of several.
FLAGS = {"color", "keepdims", "copy", "releases"}

PLAN = zs.plan((2, 3), (3,))
OPEN = zs.plan(("N", 3), ("M", 3))
TARGET = zs.plan_to((3,), (2, 3))
X, Y = np.ones((2, 3)), np.ones(3)
PRODUCT = zs.fuse(lambda a, b: zs.sum(a * b))
SUM = zs.fuse(lambda a, b: a + b)


class Call(NamedTuple):
    """A right call, from which wrong ones are made."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]


def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Call:
    """The call with all of its other options that have a default."""
    for name, parameter in inspect.signature(function).parameters.items():
        keyword = parameter.kind == parameter.KEYWORD_ONLY
        if keyword and parameter.default is not parameter.empty:
            options.setdefault(name, parameter.default)
    return Call(function, arguments, options)


def calls_of(plan: zs.Plan, *arrays: Any) -> dict[str, Call]:
    return {
        "bind": call(plan.bind, *(array.shape for array in arrays)),
        "guard": call(plan.guard),
        "views": call(plan.views, *arrays),
        "view": call(plan.view, 0, arrays[0]),
        "unbroadcast": call(plan.unbroadcast, np.ones((2, 3)), 0),
        "explain": call(plan.explain, ("a",)),
        "svg": call(plan.svg, ("a",)),
        "express": call(plan.express, "numpy"),
        "code": call(plan.code, "torch", ("a", "b")[: len(arrays)]),
        "strides": call(plan.strides, 0, arrays[0].strides),
        "operand_number": call(plan.operand_number, 0),
    }


#: Methods that need all sizes as numbers.
OF_NUMBERS = {"view", "unbroadcast", "strides"}

CALLS = {
    **{f"plan.{name}": made for name, made in calls_of(PLAN, X, Y).items()},
    **{
        f"open plan.{name}": made
        for name, made in calls_of(OPEN, X, X).items()
        if name not in OF_NUMBERS
    },
    **{f"target plan.{name}": made for name, made in calls_of(TARGET, Y).items()},
    "open plan.bind by name": Call(OPEN.bind, (), {"N": 2, "M": 2}),
    "guard.code": call(OPEN.guard().code, ("a", "b")),
    "a guard": call(OPEN.guard(), (2, 3), (2, 3)),
    "expression.describe": call(PLAN.express("ncnn").describe, ("a", "b")),
    "conditions": Call(OPEN.conditions, (), {"N": 2, "M": 2}),
    "plan": call(zs.plan, (2, 3), (3,)),
    "plan pdpd": call(zs.plan, (2, 3), (3,), rule="pdpd", axis=-1),
    "plan of an engine": call(zs.plan, (2, 3), (3,), engine="ncnn", op="add"),
    "plan_to": call(zs.plan_to, (3,), (2, 3), "numpy", None, None, None, None),
    "plan_to explicit": call(zs.plan_to, (3,), (2, 3), "explicit", (1,), "openvino"),
    "compare": call(zs.compare, (2, 3), (3,)),
    "supports": call(zs.supports, "ncnn", "Add", "float32", [(2, 3), (3,)]),
    "whdc": call(zs.whdc, (2, 3)),
    "strict": call(zs.strict),
    "Dim": call(zs.Dim, "N"),
    "Condition.parse": call(zs.Condition.parse, "N >= 1"),
    "add": call(zs.add, X, Y, None, None, None, None, None, None),
    "add on an engine": call(zs.add, X, Y, "numpy", None, "onnxruntime"),
    "bitwise_and": call(zs.bitwise_and, X > 0, Y > 0, None, None, None, None, None, None),
    "prelu": call(zs.prelu, X, Y, None, None, None, None, None, None),
    "where": call(zs.where, X > 0, X, Y, None, None, None, None, None),
    "exp": call(zs.exp, X),
    "silu": call(zs.silu, X),
    "clip": call(zs.clip, X, 0.0, 1.0),
    "cast": call(zs.cast, X, "float32"),
    "broadcast": Call(zs.broadcast, (Y, (2, 3)), dict.fromkeys(("mode", "engine", "out"))),
    **{
        name: call(getattr(zs, name), X, None)
        for name in ("sum", "max", "mean", "argmin", "any", "logsumexp", "sum_of_squares")
    },
    "set_num_threads": call(zs.set_num_threads, 1),
    "fuse": call(zs.fuse, lambda a, b: a + b),
    "a fused function": Call(SUM, (X, Y), {"out": None}),
    "grad": call(zs.grad, PRODUCT, 0),
    "a gradient": call(zs.grad(PRODUCT), X, Y),
    "value_and_grad": call(zs.value_and_grad, PRODUCT, 0),
    "vjp": call(zs.vjp, SUM, X, Y),
}


def fresh(value: Any) -> Any:
    """The value; a copy of an array, which a call may take for `out` and write."""
    return value.copy() if isinstance(value, np.ndarray) else value


def wrong_calls(right: Call) -> Iterator[tuple[Any, Call]]:
    for k in range(len(right.arguments)):
        for value in map(fresh, WRONG):
            arguments = (*right.arguments[:k], value, *right.arguments[k + 1 :])
            yield (k, value), right._replace(arguments=arguments)
    for name in right.options:
        for value in map(fresh, WRONG):
            if name not in FLAGS or not isinstance(value, np.ndarray):
                yield (name, value), right._replace(options={**right.options, name: value})


def is_explained(error: Exception) -> bool:
    """Whether the package itself raised it."""
    if isinstance(error, zs.BroadcastError | zs.ZerostrideError):
        return bool(str(error))
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None:
        return False
    file = place.tb_frame.f_code.co_filename
    line = linecache.getline(file, place.tb_lineno).strip()
    ours = Path(file).is_relative_to(PACKAGE) and line.startswith("raise ")
    return ours and isinstance(error, TypeError | ValueError | KeyError)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    threads = zs.get_num_threads()
    yield
    zs.set_num_threads(threads)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_wrong_types_are_refused_in_words(name: str) -> None:
    raw: dict[str, str] = {}
    right = CALLS[name]
    right.function(*right.arguments, **right.options)
    for (place, value), wrong in wrong_calls(right):
        X.fill(1)  # `out` may have been written
        Y.fill(1)
        try:
            str(wrong.function(*wrong.arguments, **wrong.options))
        except Exception as error:  # noqa: BLE001 - the kind of exception is what is tested
            if not is_explained(error):
                raw[f"{place}={value!r:.30}"] = repr(error)
    # The function that is differentiated raises these itself.
    if name == "vjp":
        raw = {key: words for key, words in raw.items() if "argument" not in words}
    assert not raw


MODEL_CALLS = {
    function.__name__: (function, arguments)
    for function, *arguments in (
        (zs.audit, "absent.onnx", "ncnn"),
        (zs.port, "absent.onnx", "ncnn"),
        (zs.shapes, "absent.onnx"),
        (zs.verify, "absent.onnx", "onnxruntime"),
        (zs.convert, "absent.onnx", "ncnn", "absent"),
        (zs.bisect, "absent.onnx", "absent.param"),
        (zs.equivalent, "absent.onnx", "other.onnx"),
    )
}


@pytest.mark.parametrize("name", MODEL_CALLS)
def test_wrong_arguments_of_models_are_refused_before_the_model_is_read(name: str) -> None:
    function, arguments = MODEL_CALLS[name]
    parameters = inspect.signature(function).parameters
    options = [name for name in KINDS if name in parameters]
    assert "sizes" in options
    for option in options:
        if list(parameters).index(option) < len(arguments):
            continue
        for value in (object(), 3j, b"x", True, np.array(["a"])):
            with pytest.raises(zs.ZerostrideError, match=f"^{option} is ") as caught:
                function(*arguments, **{option: value})
            assert KINDS[option].words in str(caught.value)


def test_counts_have_a_least_number() -> None:
    with pytest.raises(zs.ZerostrideError, match="seed is -1; it is a whole number from 0"):
        zs.verify("absent.onnx", "onnxruntime", seed=-1)
    with pytest.raises(zs.ZerostrideError, match="cases is 0; it is a whole number from 1"):
        zs.verify("absent.onnx", "onnxruntime", cases=0)


def test_every_method_of_a_plan_is_called() -> None:
    public = {name for name in dir(PLAN) if not name.startswith("_")}
    methods = {name for name in public if callable(getattr(type(PLAN), name, None))}
    assert methods - {"need_numbers"} == set(calls_of(PLAN, X, Y))


def test_raw_exceptions_are_noticed() -> None:
    with pytest.raises(IndexError) as caught:
        ().__getitem__(3)
    assert not is_explained(caught.value)
    with pytest.raises(TypeError) as inside:
        zs.fuse(lambda x: x)(object())
    assert is_explained(inside.value)
