"""The ops that the compiled tier writes itself, with the same bits as the kernels in
native/kernels. For other ops (elementary functions, powers, 64-bit and float remainders) compiled
programs call the kernel.
"""

from __future__ import annotations

from collections.abc import Callable

from .values import Emitted, bits_of, convert_number, is_float, is_signed

#: Writes an op: its operands have one dtype (except a condition).
Emitter = Callable[..., Emitted]

INTEGERS = tuple(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u"))
FLOATS = ("float32", "float64")
_INFINITY = float("inf")


def truth(x: Emitted) -> Emitted:
    """A mask of the values other than 0, NaN included."""
    return x if x.dtype == "mask" else x.ne(0)


def byte(x: Emitted) -> Emitted:
    """A mask as a byte."""
    return x.by("zext", "bool") if x.dtype == "mask" else x


# arithmetic.h


def _second_unless(word: str) -> Emitter:
    return lambda a, b: a._compare(word, b).where(a, b)


_larger, _smaller = _second_unless("gt"), _second_unless("lt")


def _squared_difference(a: Emitted, b: Emitted) -> Emitted:
    difference = a - b
    return difference * difference


def _heaviside(a: Emitted, b: Emitted) -> Emitted:
    step = (a < 0).where(a.like(0), 1)
    return a.nan().where(a, a.eq(0).where(b, step))


def _prelu(x: Emitted, slope: Emitted) -> Emitted:
    return (x < 0).where(x * slope, x) if is_float(x.dtype) or is_signed(x.dtype) else x


# comparison.h


def _equal(a: Emitted, b: Emitted) -> Emitted:
    return ~_not_equal(a, b) if a.dtype in ("mask", "bool") else a.eq(b)


def _not_equal(a: Emitted, b: Emitted) -> Emitted:
    return truth(a) ^ truth(b) if a.dtype in ("mask", "bool") else a.ne(b)


def _less(a: Emitted, b: Emitted) -> Emitted:
    return ~truth(a) & truth(b) if a.dtype in ("mask", "bool") else a < b


def _less_equal(a: Emitted, b: Emitted) -> Emitted:
    return ~truth(a) | truth(b) if a.dtype in ("mask", "bool") else a <= b


def _and(a: Emitted, b: Emitted) -> Emitted:
    return truth(a) & truth(b)


def _or(a: Emitted, b: Emitted) -> Emitted:
    return truth(a) | truth(b)


def _xor(a: Emitted, b: Emitted) -> Emitted:
    return truth(a) ^ truth(b)


def _not(x: Emitted) -> Emitted:
    return ~truth(x)


# bits.h


def _over_wide(count: Emitted) -> Emitted:
    unsigned = convert_number(count, f"uint{bits_of(count.dtype)}")
    return unsigned >= bits_of(count.dtype)


def _wrapped(count: Emitted) -> Emitted:
    return count & (bits_of(count.dtype) - 1)


def _clamped(count: Emitted) -> Emitted:
    highest = bits_of(count.dtype) - 1
    low = (count < 0).where(count.like(0), count) if is_signed(count.dtype) else count
    return (low > highest).where(low.like(highest), low)


def _left_shift(x: Emitted, count: Emitted) -> Emitted:
    return _over_wide(count).where(x.like(0), x << _wrapped(count))


def _right_shift(x: Emitted, count: Emitted) -> Emitted:
    if is_signed(x.dtype):
        return x >> _over_wide(count).where(count.like(bits_of(x.dtype) - 1), _wrapped(count))
    return _over_wide(count).where(x.like(0), x >> _wrapped(count))


# rounding.h


def _abs(x: Emitted) -> Emitted:
    if is_float(x.dtype):
        return x.magnitude()
    return (x < 0).where(-x, x) if is_signed(x.dtype) else x


def _sign(x: Emitted) -> Emitted:
    if is_float(x.dtype):
        return x.nan().where(x, x.eq(0).where(x.like(0), x.like(1).with_sign(x)))
    return (x > 0).where(x.like(1), (x < 0).where(x.like(-1), 0) if is_signed(x.dtype) else 0)


# integer_division.h


def _divided_as(dtype: str) -> str:
    return "float32" if bits_of(dtype) <= 16 else "float64"


def _nearest(x: Emitted, dtype: str) -> Emitted:
    """The integer nearest to a small number, taken from the lowest bits of a sum."""
    shift = 1.5 * 2.0 ** (23 if x.dtype == "float32" else 52)
    return convert_number((x + shift).bits() - x.like(shift).bits(), dtype)


def _quotient(a: Emitted, b: Emitted, down: bool) -> Emitted:
    """The quotient of integers of up to 32 bits; division by 0 gives 0."""
    wide = _divided_as(a.dtype)
    zero = b.eq(0)
    if b.kind == "row":
        exact = convert_number(a, wide) / convert_number(zero.where(b.like(1), b), wide)
        return zero.where(b.like(0), _nearest(exact.floor() if down else exact.trunc(), a.dtype))
    # By one number: multiply and subtract a half (native/kernels/integer_division.h).
    divisor = convert_number(b, wide)
    factor = zero.where(divisor.like(0), divisor.like(1) / divisor)
    size = zero.where(factor.like(0), factor.like(0.5) - factor.like(0.5) * factor.magnitude())
    quotient = convert_number(a, wide) * factor
    return _nearest(quotient - (size if down else size.with_sign(quotient)), a.dtype)


def _division(down: bool, rest: bool) -> Emitter:
    def emitter(a: Emitted, b: Emitted) -> Emitted:
        quotient = _quotient(a, b, down)
        return b.eq(0).where(b.like(0), a - quotient * b) if rest else quotient

    return emitter


# float_division.h


def _floor_of_float64_quotient(x: Emitted, y: Emitted) -> Emitted:
    exact = convert_number(x, "float64") / convert_number(y, "float64")
    return convert_number(exact.floor(), x.dtype)


# elementary.h


def _hypot(x: Emitted, y: Emitted) -> Emitted:
    a, b = x.magnitude(), y.magnitude()
    infinite = a.eq(_INFINITY) | b.eq(_INFINITY)
    if x.dtype == "float32":
        a, b = convert_number(x, "float64"), convert_number(y, "float64")
        length = convert_number((a * a + b * b).call("sqrt"), "float32")
        return infinite.where(x.like(_INFINITY), length)
    larger = (a > b).where(a, b)
    huge, small = larger > 2.0**500, larger < 2.0**-500
    scale = huge.where(a.like(2.0**-600), small.where(a.like(2.0**600), 1))
    back = huge.where(a.like(2.0**600), small.where(a.like(2.0**-600), 1))
    p, q = a * scale, b * scale
    return infinite.where(x.like(_INFINITY), (p * p + q * q).call("sqrt") * back)


def _nextafter(x: Emitted, y: Emitted) -> Emitted:
    bits = x.bits()
    outward = ((x < y) ^ (x > 0)).where(bits.like(-1), 1)
    step = (bits + outward).by("bitcast", x.dtype)
    least = bits.like(1).by("bitcast", x.dtype).with_sign(y)
    number = x.eq(y).where(y, x.eq(0).where(least, step))
    return (x.nan() | y.nan()).where(x + y, number)


# activations.h


def _between_0_and_1(x: Emitted) -> Emitted:
    raised = (x < 0).where(x.like(0), x)
    return (raised > 1).where(x.like(1), raised)


def _hard_swish(x: Emitted) -> Emitted:
    product = x * _between_0_and_1(x / 6 + 0.5)
    return x.eq(-_INFINITY).where(x.like(-0.0), product)


def _softsign(x: Emitted) -> Emitted:
    size = x.magnitude()
    return size.eq(_INFINITY).where(x.like(1).with_sign(x), x / (size + 1))


def _shrink(x: Emitted, bias: Emitted, limit: Emitted) -> Emitted:
    lower = (x > limit).where(x - bias, x.like(0))
    return (x < -limit).where(x + bias, lower)


# select.h


def _where(condition: Emitted, a: Emitted, b: Emitted) -> Emitted:
    if a.dtype == b.dtype == "mask" or a.dtype not in ("mask", "bool"):
        return truth(condition).where(a, b)
    return truth(condition).where(byte(a), byte(b))


def _clip(x: Emitted, low: Emitted, high: Emitted) -> Emitted:
    raised = (x < low).where(low, x)
    limited = (high < raised).where(high, raised)
    if is_float(x.dtype):
        limited = high.nan().where(high, low.nan().where(low, limited))
    return limited


_NUMBERS: dict[str, Emitter] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "squared_difference": _squared_difference,
    "prelu": _prelu,
    "negative": lambda x: -x,
    "abs": _abs,
    "sign": _sign,
    "square": lambda x: x * x,
    "positive": lambda x: x,
    "relu": lambda x: (x <= 0).where(x.like(0), x),
    "clip": _clip,
}
_ANYTHING: dict[str, Emitter] = {
    "equal": _equal,
    "not_equal": _not_equal,
    "less": _less,
    "less_equal": _less_equal,
    "greater": lambda a, b: _less(b, a),
    "greater_equal": lambda a, b: _less_equal(b, a),
    "logical_and": _and,
    "logical_or": _or,
    "logical_xor": _xor,
    "logical_not": _not,
    "where": _where,
}
_OF_FLOATS: dict[str, Emitter] = {
    "divide": lambda a, b: a / b,
    "maximum": lambda a, b: a.nan().where(a, _larger(a, b)),
    "minimum": lambda a, b: a.nan().where(a, _smaller(a, b)),
    "fmax": lambda a, b: b.nan().where(a, _larger(a, b)),
    "fmin": lambda a, b: b.nan().where(a, _smaller(a, b)),
    "larger_or_second": _larger,
    "smaller_or_second": _smaller,
    "heaviside": _heaviside,
    "reciprocal": lambda x: x.like(1) / x,
    "sqrt": lambda x: x.call("sqrt"),
    "rsqrt": lambda x: x.like(1) / x.call("sqrt"),
    "floor": lambda x: x.floor(),
    "ceil": lambda x: x.ceil(),
    "trunc": lambda x: x.trunc(),
    "round": lambda x: x.round_even(),
    "isnan": lambda x: x.nan(),
    "isinf": lambda x: x.magnitude().eq(_INFINITY),
    "isfinite": lambda x: x.magnitude() < _INFINITY,
    "floor_of_quotient": lambda x, y: (x / y).floor(),
    "floor_of_float64_quotient": _floor_of_float64_quotient,
    "remainder_of_quotient": lambda x, y: x - (x / y).floor() * y,
    "fmod_of_quotient": lambda x, y: x - (x / y).trunc() * y,
    "nearest_remainder": lambda x, y: x - (x / y).round_even() * y,
    "hypot": _hypot,
    "copysign": lambda x, sign: x.with_sign(sign),
    "nextafter": _nextafter,
    "leaky_relu": lambda x, alpha: (x < 0).where(alpha * x, x),
    "thresholded_relu": lambda x, alpha: (x > alpha).where(x, 0),
    "softsign": _softsign,
    "hard_sigmoid": lambda x, alpha, beta: _between_0_and_1(alpha * x + beta),
    "hard_swish": _hard_swish,
    "shrink": _shrink,
}
_NEVER: Emitter = lambda x: x.code.number("mask", False)  # noqa: E731
_ALWAYS: Emitter = lambda x: x.code.number("mask", True)  # noqa: E731
_COUNTS: dict[str, Emitter] = {"isnan": _NEVER, "isinf": _NEVER, "isfinite": _ALWAYS}
_OF_INTEGERS: dict[str, Emitter] = {
    **_COUNTS,
    **dict.fromkeys(("maximum", "fmax"), _larger),
    **dict.fromkeys(("minimum", "fmin"), _smaller),
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), lambda x: x),
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "bitwise_invert": lambda x: ~x,
    "bitwise_left_shift": _left_shift,
    "bitwise_right_shift": _right_shift,
    "clamped_left_shift": lambda x, count: _left_shift(x, _clamped(count)),
    "clamped_right_shift": lambda x, count: _right_shift(x, _clamped(count)),
    "wrapped_left_shift": lambda x, count: _left_shift(x, _wrapped(count)),
    "wrapped_right_shift": lambda x, count: _right_shift(x, _wrapped(count)),
}
_OF_NARROW_INTEGERS: dict[str, Emitter] = {
    "floor_divide": _division(down=True, rest=False),
    "remainder": _division(down=True, rest=True),
    "fmod": _division(down=False, rest=True),
    "truncated_divide": _division(down=False, rest=False),
}
_OF_TRUTHS: dict[str, Emitter] = {
    **_COUNTS,
    **dict.fromkeys(("add", "maximum", "fmax", "bitwise_or"), _or),
    **dict.fromkeys(("multiply", "minimum", "fmin", "bitwise_and"), _and),
    "bitwise_xor": _xor,
    "bitwise_invert": _not,
    **dict.fromkeys(("abs", "relu", "floor", "ceil", "trunc"), truth),
    "clip": lambda x, low, high: (truth(low) | truth(x)) & truth(high),
}

#: By op and dtype (of the last operand).
EMITTERS: dict[tuple[str, str], Emitter] = {
    (op, dtype): emitter
    for dtypes, ops in (
        ((*INTEGERS, *FLOATS), _NUMBERS),
        (("bool", *INTEGERS, *FLOATS), _ANYTHING),
        (FLOATS, _OF_FLOATS),
        (INTEGERS, _OF_INTEGERS),
        (INTEGERS[:6], _OF_NARROW_INTEGERS),
        (("bool",), _OF_TRUTHS),
    )
    for dtype in dtypes
    for op, emitter in ops.items()
}


# convert.cpp, half.h


def _widen_half(x: Emitted) -> Emitted:
    if x.code.halves:
        return x.code.emit("half", "bitcast {t} {0} to {r}", x).by("fpext", "float32")
    bits = x.by("zext", "uint32")
    sign, rest = (bits & 0x8000) << 16, bits & 0x7FFF
    finite = ((rest << 13).by("bitcast", "float32") * 2.0**112).bits()
    special = (rest << 13) | 0x7F800000
    return (sign | (rest >= 0x7C00).where(special, finite)).by("bitcast", "float32")


def _narrow_to_half(x: Emitted) -> Emitted:
    if x.code.halves:
        return x.by("fptrunc", "half").by("bitcast", "float16")
    bits = x.bits()
    sign, rest = (bits >> 16) & 0x8000, bits & 0x7FFFFFFF
    normal = (rest - (112 << 23) + 0xFFF + ((rest >> 13) & 1)) >> 13
    half = x.like(0.5)
    tiny = (rest.by("bitcast", "float32") + half).bits() - half.bits()
    nan = ((rest >> 13) & 0x3FF) | 0x7E00
    finite = (rest < 0x38800000).where(tiny, normal)
    bounded = (rest >= 0x47800000).where(rest.like(0x7C00), finite)
    return (sign | (rest > 0x7F800000).where(nan, bounded)).by("trunc", "float16")


def _sticky(x: Emitted) -> Emitted:
    below = (1 << 29) - 1
    bits = x.bits()
    rest = (bits & below).ne(0).where(bits.like(below + 1), 0)
    return convert_number(((bits & ~below) | rest).by("bitcast", "float64"), "float32")


def _narrow_to_brain(x: Emitted) -> Emitted:
    bits = x.bits()
    near = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    nan = ((bits >> 16) & 0x8000) | 0x7FC0
    return x.nan().where(nan, near).by("trunc", "bfloat16")


def convert(x: Emitted, dtype: str) -> Emitted:
    """A value in another dtype, as by `cast`; for bool the result may be a mask."""
    if dtype == ("bool" if x.dtype == "mask" else x.dtype):
        return x
    if x.dtype in ("mask", "bool"):
        if dtype in ("float16", "bfloat16"):
            true_value = x.code.number(dtype, 0x3C00 if dtype == "float16" else 0x3F80)
        else:
            true_value = x.code.number(dtype, 1)
        return truth(x).where(true_value, 0)
    if x.dtype == "float16":
        return convert(_widen_half(x), dtype)
    if x.dtype == "bfloat16":
        wide = (x.by("zext", "uint32") << 16).by("bitcast", "float32")
        return convert(wide, dtype)
    if dtype == "bool":
        return x.ne(0)
    if dtype == "bfloat16":
        return _narrow_to_brain(convert_number(x, "float32"))
    if dtype == "float16":
        short = _sticky(x) if x.dtype == "float64" else convert_number(x, "float32")
        return _narrow_to_half(short)
    if is_float(x.dtype) and not is_float(dtype):
        # Truncates and saturates; NaN is 0.
        return x.code.call("fptosi.sat" if is_signed(dtype) else "fptoui.sat", dtype, x)
    return convert_number(x, dtype)
