"""Values in LLVM's intermediate representation, in which the compiled tier writes programs.

A value belongs to a row (a vector of lanes), or is the same for a whole row and is then computed
once, before the loop; numbers are written where they are used. Operators append instructions
without fast-math flags: each rounds as in IEEE 754 and nothing is contracted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from ...compute import limits
from ..trace.graph import Number

#: LLVM's scalar types. A "mask" is a comparison's result; a "bool" is a byte, true unless 0.
TYPES = {
    "mask": "i1",
    "bool": "i8",
    **{f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float16": "i16",
    "bfloat16": "i16",
    "half": "half",
    "float32": "float",
    "float64": "double",
}
BYTES = {"bool": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8} | {
    f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_ORDERED = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_MANTISSA = {"float32": 23, "float64": 52}


def is_float(dtype: str) -> bool:
    """Whether a dtype is one of LLVM's IEEE floats."""
    return dtype in ("float32", "float64")


def is_signed(dtype: str) -> bool:
    """Whether a dtype is a signed integer."""
    return dtype.startswith("int")


def bits_of(dtype: str) -> int:
    """The width of a number in bits."""
    return 8 * BYTES[dtype]


def _text(dtype: str, number: Number) -> str:
    """A number of a dtype in LLVM's syntax."""
    if dtype == "mask":
        return "true" if number else "false"
    if not is_float(dtype):
        return str(int(number))
    (bits,) = struct.unpack("<Q", struct.pack("<d", rounded(dtype, float(number))))
    return f"0x{bits:016X}"


def rounded(dtype: str, number: float) -> float:
    """A number rounded to a float type."""
    if dtype == "float64" or number != number:
        return number
    try:
        (short,) = struct.unpack("<f", struct.pack("<f", number))
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    return float(short)


@dataclass(slots=True)
class Code:
    """The instructions of one function while they are written.

    Attributes:
        lanes: the current number of elements of a row's value.
        rounds: whether the processor has an instruction that rounds floats to integers.
        halves: whether it has instructions that convert 16-bit floats.
        fused: whether it has fused multiplications.
        divides: whether it divides in no more time than an exact product with an inverse takes.
        once: the instructions before the loop.
        body: the instructions of the loop.
        block: the label under which instructions are appended to the body now.
    """

    lanes: int
    rounds: bool = True
    halves: bool = True
    fused: bool = False
    divides: bool = False
    once: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)
    block: str = ""
    _names: int = 0
    _spread: dict[tuple[str, int], str] = field(default_factory=dict)

    def name(self) -> str:
        """A new name."""
        self._names += 1
        return f"%v{self._names}"

    def type(self, dtype: str, lanes: int) -> str:
        """LLVM's type of this many lanes."""
        scalar = TYPES[dtype]
        return scalar if lanes == 1 else f"<{lanes} x {scalar}>"

    def number(self, dtype: str, number: Number) -> Emitted:
        """A number written into the program."""
        return Emitted(self, _text(dtype, number), dtype, "number")

    def emit(self, dtype: str, form: str, *args: Emitted) -> Emitted:
        """Appends an instruction: `form` with {0}, {1}, ... for operands, {t} for the first one's
        type and {r} for the result's."""
        in_row = any(arg.kind == "row" for arg in args)
        lanes = self.lanes if in_row else 1
        names = [arg.at(lanes) for arg in args]
        name = self.name()
        line = form.format(*names, t=self.type(args[0].dtype, lanes), r=self.type(dtype, lanes))
        (self.body if in_row else self.once).append(f"  {name} = {line}")
        return Emitted(self, name, dtype, "row" if in_row else "once")

    def call(self, function: str, dtype: str, *args: Emitted) -> Emitted:
        """Appends a call of an intrinsic, whose name ends in its type (in both types of a
        conversion)."""
        lanes = self.lanes if any(arg.kind == "row" for arg in args) else 1
        kinds = [dtype] if dtype == args[0].dtype else [dtype, args[0].dtype]
        full = ".".join([f"@llvm.{function}", *(self._suffix(kind, lanes) for kind in kinds)])
        result = self.type(dtype, lanes)
        self.declared.add(
            f"declare {result} {full}({', '.join(self.type(arg.dtype, lanes) for arg in args)})"
        )
        operands = ", ".join(f"{self.type(arg.dtype, lanes)} {{{k}}}" for k, arg in enumerate(args))
        return self.emit(dtype, f"call {result} {full}({operands})", *args)

    def _suffix(self, dtype: str, lanes: int) -> str:
        scalar = {"float": "f32", "double": "f64"}.get(TYPES[dtype], TYPES[dtype])
        return scalar if lanes == 1 else f"v{lanes}{scalar}"

    def either(
        self, test: Emitted, yes: Callable[[], Emitted], no: Callable[[], Emitted]
    ) -> Emitted:
        """One of two values of a row, by a branch: `yes` if any lane of the test is set."""
        name, mask, lanes = self.name()[1:], self.type("mask", self.lanes), self.lanes
        self.body += [
            f"  %{name}.lanes = bitcast {mask} {test.at(lanes)} to i{lanes}",
            f"  %{name}.any = icmp ne i{lanes} %{name}.lanes, 0",
            f"  br i1 %{name}.any, label %{name}.yes, label %{name}.no",
        ]
        ends = []
        for branch, make in (("yes", yes), ("no", no)):
            self.block = f"{name}.{branch}"
            self.body.append(f"{self.block}:")
            value = make()
            self.body.append(f"  br label %{name}.end")
            ends.append(f"[{value.at(lanes)}, %{self.block}]")
        self.block = f"{name}.end"
        chosen = self.type(value.dtype, lanes)
        self.body += [f"{self.block}:", f"  %{name} = phi {chosen} {', '.join(ends)}"]
        return Emitted(self, f"%{name}", value.dtype, "row")

    def spread(self, name: str, dtype: str, lanes: int) -> str:
        """One value in all lanes, computed before the loop."""
        cached = self._spread.get((name, lanes))
        if cached is not None:
            return cached
        scalar, row = self.type(dtype, 1), self.type(dtype, lanes)
        first, all_of_it = self.name(), self.name()
        self.once.append(f"  {first} = insertelement {row} poison, {scalar} {name}, i64 0")
        self.once.append(
            f"  {all_of_it} = shufflevector {row} {first}, {row} poison, "
            f"<{lanes} x i32> zeroinitializer"
        )
        self._spread[name, lanes] = all_of_it
        return all_of_it


@dataclass(frozen=True, slots=True)
class Emitted:
    """A number ("number"), one value for a row ("once") or a row's ("row")."""

    code: Code
    text: str
    dtype: str
    kind: str

    def at(self, lanes: int) -> str:
        """Its text where a value of this many lanes is read."""
        if lanes == 1 or self.kind == "row":
            return self.text
        if self.kind == "number":
            return f"splat ({TYPES[self.dtype]} {self.text})"
        return self.code.spread(self.text, self.dtype, lanes)

    def like(self, number: Number) -> Emitted:
        """A number of this value's dtype."""
        return self.code.number(self.dtype, number)

    def _of(self, other: Emitted | Number) -> Emitted:
        return other if isinstance(other, Emitted) else self.like(other)

    def _two(self, of_floats: str, of_integers: str, other: Emitted | Number) -> Emitted:
        word = of_floats if is_float(self.dtype) else of_integers
        return self.code.emit(self.dtype, word + " {t} {0}, {1}", self, self._of(other))

    def __add__(self, other: Emitted | Number) -> Emitted:
        return self._two("fadd", "add", other)

    def __sub__(self, other: Emitted | Number) -> Emitted:
        return self._two("fsub", "sub", other)

    def __mul__(self, other: Emitted | Number) -> Emitted:
        return self._two("fmul", "mul", other)

    def __truediv__(self, other: Emitted | Number) -> Emitted:
        """The quotient of floats."""
        by, code = self._of(other), self.code
        inverse = code.fused and not code.divides and code.lanes > 1
        if inverse and self.kind == "row" and by.kind != "row":
            return _divided_by_one(self, by)
        return self._two("fdiv", "fdiv", by)

    def __and__(self, other: Emitted | Number) -> Emitted:
        return self._two("and", "and", other)

    def __or__(self, other: Emitted | Number) -> Emitted:
        return self._two("or", "or", other)

    def __xor__(self, other: Emitted | Number) -> Emitted:
        return self._two("xor", "xor", other)

    def __invert__(self) -> Emitted:
        return self ^ (1 if self.dtype == "mask" else -1)

    def __neg__(self) -> Emitted:
        if is_float(self.dtype):
            return self.code.emit(self.dtype, "fneg {t} {0}", self)
        return self.like(0) - self

    def __lshift__(self, count: Emitted | Number) -> Emitted:
        """Shifts by less than the width."""
        return self._two("shl", "shl", count)

    def __rshift__(self, count: Emitted | Number) -> Emitted:
        """Shifts by less than the width; signed integers are extended by their sign."""
        word = "ashr" if is_signed(self.dtype) else "lshr"
        return self._two(word, word, count)

    def _compare(self, word: str, other: Emitted | Number) -> Emitted:
        if is_float(self.dtype):
            test = f"fcmp {_ORDERED[word]}"
        elif word in ("eq", "ne"):
            test = f"icmp {word}"
        else:
            test = f"icmp {'s' if is_signed(self.dtype) else 'u'}{word}"
        return self.code.emit("mask", test + " {t} {0}, {1}", self, self._of(other))

    def __lt__(self, other: Emitted | Number) -> Emitted:
        return self._compare("lt", other)

    def __le__(self, other: Emitted | Number) -> Emitted:
        return self._compare("le", other)

    def __gt__(self, other: Emitted | Number) -> Emitted:
        return self._compare("gt", other)

    def __ge__(self, other: Emitted | Number) -> Emitted:
        return self._compare("ge", other)

    def eq(self, other: Emitted | Number) -> Emitted:
        """A mask of equal elements."""
        return self._compare("eq", other)

    def ne(self, other: Emitted | Number) -> Emitted:
        """A mask of elements that differ or hold a NaN."""
        return self._compare("ne", other)

    def where(self, yes: Emitted | Number, no: Emitted | Number) -> Emitted:
        """Selects by a mask: `yes` where it is set, else `no`. One at least is Emitted."""
        typed = yes if isinstance(yes, Emitted) else no
        if not isinstance(typed, Emitted):
            raise TypeError("a number or a number: of which dtype?")
        a, b = typed._of(yes), typed._of(no)
        if a is b:
            return a
        lanes = self.code.lanes if "row" in (self.kind, a.kind, b.kind) else 1
        mask, chosen = self.code.type("mask", lanes), self.code.type(a.dtype, lanes)
        form = f"select {mask} {{0}}, {chosen} {{1}}, {chosen} {{2}}"
        return self.code.emit(a.dtype, form, self, a, b)

    def nan(self) -> Emitted:
        """A mask of the NaNs."""
        return self.ne(self)

    def by(self, word: str, dtype: str) -> Emitted:
        """Converted by an instruction: "sext", "uitofp", "bitcast", ..."""
        return self.code.emit(dtype, word + " {t} {0} to {r}", self)

    def call(self, function: str, *more: Emitted) -> Emitted:
        """Calls an intrinsic of LLVM whose result has this dtype."""
        return self.code.call(function, self.dtype, self, *more)

    def magnitude(self) -> Emitted:
        """A float without its sign."""
        return self.call("fabs")

    def with_sign(self, sign: Emitted) -> Emitted:
        """A float with another's sign."""
        return self.call("copysign", sign)

    def bits(self) -> Emitted:
        """The bits of a float as an unsigned integer."""
        return self.by("bitcast", f"uint{bits_of(self.dtype)}")

    # Rounding: without an instruction for it, as in native/vmath/base.h.

    def round_even(self) -> Emitted:
        """Rounds to the nearest integer, ties to even."""
        if self.code.rounds:
            return self.call("rint")
        integers = float(2 ** _MANTISSA[self.dtype])
        a = self.magnitude()
        near = ((a + integers) - integers).with_sign(self)
        return (a < integers).where(near, self)

    def floor(self) -> Emitted:
        """Rounds down."""
        if self.code.rounds:
            return self.call("floor")
        r = self.round_even()
        return (r - (r > self).where(self.like(1), 0)).with_sign(self)

    def ceil(self) -> Emitted:
        """Rounds up."""
        if self.code.rounds:
            return self.call("ceil")
        r = self.round_even()
        return (r + (r < self).where(self.like(1), 0)).with_sign(self)

    def trunc(self) -> Emitted:
        """Rounds towards zero."""
        if self.code.rounds:
            return self.call("trunc")
        a = self.magnitude()
        r = a.round_even()
        return (r - (r > a).where(self.like(1), 0)).with_sign(self)


#: Largest absolute exponents of dividends and divisors whose quotients take the quick way.
_QUICK = {
    "float32": (limits.QUICK_DIVIDENDS, limits.QUICK_DIVISORS),
    "float64": (limits.QUICK_WIDE_DIVIDENDS, limits.QUICK_WIDE_DIVISORS),
}
_BIAS = {"float32": 127, "float64": 1023}


def _divided_by_one(x: Emitted, d: Emitted) -> Emitted:
    """Divides by one number without a division, where that is exact (native/kernels/divisor.h)."""
    one, dividends, divisors = x.like(1), *_QUICK[x.dtype]
    place, bias = _MANTISSA[x.dtype], _BIAS[x.dtype]
    inverse = one / d
    rest = (-inverse).call("fma", d, one) * inverse
    quick = d.bits() - ((bias - divisors) << place) < (2 * divisors) << place
    bits = d.bits()
    span = quick.where(bits.like((2 * dividends) << place), 0)
    zero = quick.where(bits.like(0), 1 << (bits_of(x.dtype) - 1))
    size = x.bits() & ((1 << (bits_of(x.dtype) - 1)) - 1)
    slow = (size - ((bias - dividends) << place) >= span) & size.ne(zero)

    def quotient() -> Emitted:
        near = x.call("fma", inverse, x * rest)
        left = (-near).call("fma", d, x)
        return left.call("fma", inverse, near).with_sign(x)

    return x.code.either(slow, lambda: x._two("fdiv", "fdiv", d), quotient)


def convert_number(x: Emitted, dtype: str) -> Emitted:
    """C++'s static_cast of a number; undefined for floats beyond an integer's range."""
    if dtype == x.dtype:
        return x
    if is_float(x.dtype):
        if is_float(dtype):
            return x.by("fpext" if dtype == "float64" else "fptrunc", dtype)
        return x.by("fptosi" if is_signed(dtype) else "fptoui", dtype)
    if is_float(dtype):
        return x.by("sitofp" if is_signed(x.dtype) else "uitofp", dtype)
    if bits_of(dtype) == bits_of(x.dtype):
        return Emitted(x.code, x.text, dtype, x.kind)
    if bits_of(dtype) < bits_of(x.dtype):
        return x.by("trunc", dtype)
    return x.by("sext" if is_signed(x.dtype) else "zext", dtype)
