"""Elementary functions for the compiled tier, from vmath.ll, with the kernels' bits.

The file holds clang's output of native/vmath and native/kernels for one element, an instruction a
line, without branches (native/tests/vmath_text.py writes it). This module writes these lines for
values of a row, so that functions also stay in registers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path

from .ops import EMITTERS, Emitter
from .values import Code, Emitted

_DTYPES = {"float": "float32", "double": "float64", "i32": "uint32", "i64": "uint64", "i1": "mask"}
_FORMS = {
    kind: re.compile(r"(?:(%\d+) = )?" + form)
    for kind, form in {
        "two": r"(fadd|fsub|fmul|fdiv|add|sub|shl|lshr|ashr|and|or|xor) (\w+) (\S+), (\S+)",
        "compare": r"((?:fcmp|icmp) \w+) (\w+) (\S+), (\S+)",
        "select": r"select i1 (\S+), (\w+) (\S+), \w+ (\S+)",
        "negate": r"fneg (\w+) (\S+)",
        "convert": r"(bitcast|sext|zext|trunc|fpext|fptrunc|sitofp|uitofp) (\w+) (\S+) to (\w+)",
        "call": r"call (\w+) @llvm\.(\w+)\.\w+\((.*)\)",
        "return": r"ret (\w+) (\S+)",
    }.items()
}


@functools.cache
def emitters(variant: str) -> Mapping[tuple[str, str], Emitter]:
    """The ops that are written for processors with or without fused multiplications ("fused",
    "plain"), or without elementary functions ("")."""
    by_op = dict(EMITTERS)
    text = Path(__file__).with_name("vmath.ll").read_text() if variant else ""
    for block in text.split("\n\n"):
        head, *lines = block.split("\n")
        of, name, *args = head.split() or ("", "")
        if of == variant and name:
            op, dtype = name.rsplit("_", 1)
            by_op[op, dtype] = functools.partial(_write, tuple(args), tuple(lines))
    return by_op


def _write(names: tuple[str, ...], lines: tuple[str, ...], *args: Emitted) -> Emitted:
    """Appends the lines to the code of the arguments, and returns their result."""
    code = args[0].code
    values = dict(zip(names, args, strict=True))
    for line in filter(None, lines):
        name, result = _instruction(code, line, values)
        if name is None:
            return result
        values[name] = result
    raise ValueError("a function without an end")


def _instruction(code: Code, line: str, values: dict[str, Emitted]) -> tuple[str | None, Emitted]:
    """The name that a line defines, and its value; for the last line None and the result."""

    def of(kind: str, text: str) -> Emitted:
        return values[text] if text in values else Emitted(code, text, _DTYPES[kind], "number")

    for kind, form in _FORMS.items():
        match = form.fullmatch(line)
        if match is None:
            continue
        name, *parts = match.groups()
        if kind == "two":
            word, type_, a, b = parts
            return name, code.emit(
                _DTYPES[type_], word + " {t} {0}, {1}", of(type_, a), of(type_, b)
            )
        if kind == "compare":
            word, type_, a, b = parts
            return name, code.emit("mask", word + " {t} {0}, {1}", of(type_, a), of(type_, b))
        if kind == "select":
            mask, type_, a, b = parts
            return name, of("i1", mask).where(of(type_, a), of(type_, b))
        if kind == "negate":
            return name, -of(*parts)
        if kind == "convert":
            word, type_, a, to = parts
            return name, of(type_, a).by(word, _DTYPES[to])
        if kind == "call":
            type_, function, arguments = parts
            args = [of(*arg.split(" ")) for arg in arguments.split(", ")]
            return name, code.call(function, _DTYPES[type_], *args)
        return None, of(*parts)
    raise ValueError(f"no instruction that is known: {line}")
