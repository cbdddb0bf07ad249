"""Fused programs as data: steps, the operands' memory, and the results' memory.

A program is printed as the Python function that `zerostride.fuse` traces; the same text is run, so
what is shown for a difference is what was done.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerostride.ops import OPS

from ..native.cases import (
    PRINTED,
    Bytes,
    Memory,
    Number,
    View,
    dtype_source,
    memory_source,
    number_source,
    view_source,
)

#: How Python writes an op of two operands.
SYMBOLS: Mapping[str, str] = MappingProxyType(
    {
        "add": "+",
        "subtract": "-",
        "multiply": "*",
        "divide": "/",
        "pow": "**",
        "floor_divide": "//",
        "remainder": "%",
        "less": "<",
        "less_equal": "<=",
        "greater": ">",
        "greater_equal": ">=",
        "equal": "==",
        "not_equal": "!=",
        "bitwise_and": "&",
        "bitwise_or": "|",
        "bitwise_xor": "^",
        "bitwise_left_shift": "<<",
        "bitwise_right_shift": ">>",
    }
)
#: And of one.
SIGNS: Mapping[str, str] = MappingProxyType(
    {"negative": "-", "positive": "+", "bitwise_invert": "~", "abs": "abs"}
)
_LETTERS = "abcdefgh"


@dataclass(frozen=True, slots=True)
class DrawnStep:
    """A line of a program.

    Attributes:
        kind: "op" (of the op table), "reduce", "view", "cast" or "broadcast".
        name: of the op or the reduction; for a view "transpose", "index" or "reshape".
        args: numbers of values (operands first, then steps), or numbers.
        options: its named arguments; those of views are `axes`, `key` or `shape`.
        form: how it is written: "zs", "operator", "numpy" or "method".
    """

    kind: str
    name: str
    args: tuple[int | Number, ...]
    options: Mapping[str, Any]
    form: str = "zs"


@dataclass(frozen=True, slots=True)
class FuseProgram:
    """A function of arrays.

    Attributes:
        operands: how many it takes.
        steps: in order.
        outputs: the values that it returns; one is returned bare.
        dtype: what `zerostride.fuse` is asked to compute in, or None.
    """

    operands: int
    steps: tuple[DrawnStep, ...]
    outputs: tuple[int, ...]
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class FuseCase:
    """A call of a program.

    Attributes:
        program: what is called.
        memories: what the views lie in; views may share one.
        operands: views and numbers. Equal views are one array.
        outs: where the results go: for each a view, or None; () for no `out` at all.
    """

    program: FuseProgram
    memories: tuple[Memory, ...]
    operands: tuple[View | Number, ...]
    outs: tuple[View | None, ...] = ()

    def make(self) -> FuseArrays:
        """The arrays in fresh memory."""
        memories = [memory.make() for memory in self.memories]
        views: dict[View, NDArray[Any]] = {}

        def made(view: View) -> NDArray[Any]:
            if view not in views:
                views[view] = view.of(memories)
            return views[view]

        operands = [
            operand.value if isinstance(operand, Number) else made(operand)
            for operand in self.operands
        ]
        outs = [None if out is None else made(out) for out in self.outs]
        return FuseArrays(memories, operands, outs)


@dataclass(frozen=True, slots=True)
class FuseArrays:
    """A case's arrays."""

    memories: list[Bytes]
    operands: list[Any]
    outs: list[NDArray[Any] | None]

    def out(self) -> Any:
        """The `out` argument."""
        return self.outs[0] if len(self.outs) == 1 else tuple(self.outs)


# As code


def name_of(program: FuseProgram, value: int) -> str:
    """The name of a value in the function."""
    return _LETTERS[value] if value < program.operands else f"t{value - program.operands}"


def function_source(program: FuseProgram) -> str:
    """The function alone.

    >>> step = Step("op", "add", (0, Number(2)), {}, "operator")
    >>> print(function_source(Program(1, (step,), (1,))))
    def fused(a):
        t0 = a + 2
        return t0
    """
    lines = [f"def fused({', '.join(_LETTERS[: program.operands])}):"]
    for k, step in enumerate(program.steps):
        lines.append(f"    t{k} = {_expression(program, step)}")
    lines.append(f"    return {', '.join(name_of(program, value) for value in program.outputs)}")
    return "\n".join(lines)


def _expression(program: FuseProgram, step: DrawnStep) -> str:
    args = [
        number_source(arg.value) if isinstance(arg, Number) else name_of(program, arg)
        for arg in step.args
    ]
    if step.kind == "view":
        return _view(args[0], step)
    if step.form == "operator":
        if step.name in SIGNS:
            sign = SIGNS[step.name]
            return f"{sign}({args[0]})" if sign == "abs" else f"{sign}{args[0]}"
        left, right = (f"({arg})" if arg.startswith("-") else arg for arg in args)
        return f"{left} {SYMBOLS[step.name]} {right}"
    named = [f"{key}={_option(key, value)}" for key, value in step.options.items()]
    if step.kind == "cast":
        target = dtype_source(step.options["dtype"])
        return (
            f"{args[0]}.astype({target})"
            if step.form == "method"
            else (f"zs.cast({args[0]}, {target})")
        )
    if step.kind == "broadcast":
        return f"zs.broadcast({args[0]}, {', '.join(named)})"
    if step.form == "method":
        return f"{args[0]}.{step.name}({', '.join([*args[1:], *named])})"
    name = OPS[step.name].numpy if step.form == "numpy" else step.name
    module = "np" if step.form == "numpy" else "zs"
    return f"{module}.{name}({', '.join([*args, *named])})"


def _view(arg: str, step: DrawnStep) -> str:
    if step.name == "transpose":
        return f"{arg}.transpose({', '.join(map(str, step.options['axes']))})"
    if step.name == "reshape":
        return f"{arg}.reshape({step.options['shape']})"
    keys = ["None" if key is None else ":" if key == ":" else "..." for key in step.options["key"]]
    return f"{arg}[{', '.join(keys)}]"


def _option(key: str, value: Any) -> str:
    return dtype_source(value) if key == "dtype" else repr(value)


@functools.lru_cache(1024)
def function_of(text: str) -> Callable[..., Any]:
    """The function that a text defines. (By its text, since programs of 0.0 and -0.0 are equal.)"""
    names: dict[str, Any] = {"np": np, **_modules()}
    exec(compile(text, "<fused>", "exec"), names)
    function: Callable[..., Any] = names["fused"]
    return function


@functools.cache
def _modules() -> Mapping[str, Any]:
    import zerostride

    try:
        import ml_dtypes
    except ImportError:
        return {"zs": zerostride}
    return {"zs": zerostride, "ml_dtypes": ml_dtypes}


def source(case: FuseCase) -> str:
    """The case as code that runs by itself and prints the results."""
    program = case.program
    text = function_source(program)
    names: dict[View, str] = {}
    lines = [f"m{k} = {memory_source(memory)}" for k, memory in enumerate(case.memories)]
    arguments = []
    for letter, operand in zip(_LETTERS, case.operands, strict=False):
        if isinstance(operand, Number):
            arguments.append(number_source(operand.value))
            continue
        if operand not in names:
            names[operand] = letter
            lines.append(view_source(letter, operand))
        arguments.append(names[operand])
    if case.outs:
        arguments.append(f"out={_outs(case, names, lines)}")
    decorator = "@zs.fuse"
    if program.dtype is not None:
        decorator = f"@zs.fuse(dtype={dtype_source(program.dtype)})"
    lines += ["", decorator, *text.splitlines(), "", f"print(fused({', '.join(arguments)}))"]
    head = ["import numpy as np", "import zerostride as zs"]
    if "bfloat16" in "\n".join(lines):
        head.append("import ml_dtypes")
    if any(memory.size > PRINTED for memory in case.memories):
        head.append("from campaigns.native.cases import Memory")
    return "\n".join([*head, *lines])


def _outs(case: FuseCase, names: dict[View, str], lines: list[str]) -> str:
    shown = []
    for k, out in enumerate(case.outs):
        if out is not None and out not in names:
            names[out] = f"out{k}"
            lines.append(view_source(f"out{k}", out))
        shown.append("None" if out is None else names[out])
    return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"
