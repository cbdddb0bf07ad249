"""What the Python array API standard (2024.12) asks of broadcasting, element-wise functions and
promotion, as facts: shapes, tables of values, names. Its words are not here.

A class of numbers stands for samples of it (`SAMPLES`); a row says what all of them give.
"""

import itertools
import math

INF, NAN, PI = math.inf, math.nan, math.pi

# Broadcasting: shapes, and the result's; None where there is none.

SHAPES = (
    (((8, 1, 6, 1), (7, 1, 5)), (8, 7, 6, 5)),
    (((5, 4), (1,)), (5, 4)),
    (((5, 4), (4,)), (5, 4)),
    (((15, 3, 5), (15, 1, 5)), (15, 3, 5)),
    (((15, 3, 5), (3, 5)), (15, 3, 5)),
    (((15, 3, 5), (3, 1)), (15, 3, 5)),
    (((3,), ()), (3,)),
    (((0,), (1,)), (0,)),
    (((2, 0), (1, 1)), (2, 0)),
    (((3,), (4,)), None),
    (((2, 1), (8, 4, 3)), None),
    (((15, 3, 5), (15, 3)), None),
    (((0,), (2,)), None),
)


def shape_of_pair(first, second):
    """The result's shape by the algorithm: from the last axis on, the larger rank's axes stay."""
    rank = max(len(first), len(second))
    sizes = []
    for k in range(1, rank + 1):
        a = first[-k] if k <= len(first) else 1
        b = second[-k] if k <= len(second) else 1
        if a != b and 1 not in (a, b):
            return None
        sizes.insert(0, b if a == 1 else a)
    return tuple(sizes)


# Promotion

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
REAL = ("float32", "float64")
COMPLEX = ("complex64", "complex128")


def _promotions():
    table = {("bool", "bool"): "bool"}
    for family in (SIGNED, UNSIGNED, REAL, COMPLEX):
        for (i, a), (j, b) in itertools.product(enumerate(family), repeat=2):
            table[a, b] = family[max(i, j)]
    # A signed integer that holds both; there is none for uint64.
    for (i, a), (j, b) in itertools.product(enumerate(SIGNED), enumerate(UNSIGNED[:3])):
        table[a, b] = table[b, a] = SIGNED[max(i, j + 1)]
    for (i, a), (j, b) in itertools.product(enumerate(REAL), enumerate(COMPLEX)):
        table[a, b] = table[b, a] = COMPLEX[max(i, j)]
    return table


#: Dtypes of two arrays to that of the result.
PROMOTION = _promotions()

# Functions: which dtypes their arguments may have, and the result's ("same", or a dtype's name).

_NUMERIC = (*SIGNED, *UNSIGNED, *REAL, *COMPLEX)
_ORDERED = (*SIGNED, *UNSIGNED, *REAL)
_FLOATS = (*REAL, *COMPLEX)
_WHOLE = (*SIGNED, *UNSIGNED)
BINARY = {
    **dict.fromkeys(("add", "subtract", "multiply", "pow"), (_NUMERIC, "same")),
    "divide": (_FLOATS, "same"),
    **dict.fromkeys(("floor_divide", "remainder", "maximum", "minimum"), (_ORDERED, "same")),
    **dict.fromkeys(("atan2", "copysign", "hypot", "logaddexp", "nextafter"), (REAL, "same")),
    **dict.fromkeys(("equal", "not_equal"), (("bool", *_NUMERIC), "bool")),
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal"), (_ORDERED, "bool")),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), (("bool",), "bool")),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (("bool", *_WHOLE), "same")),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), (_WHOLE, "same")),
}
UNARY = {
    **dict.fromkeys(
        (
            *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1"),
            *("log", "log1p", "log2", "log10", "reciprocal", "sin", "sinh", "sqrt", "tan", "tanh"),
        ),
        (REAL, "same"),
    ),
    **dict.fromkeys(("abs",), (_ORDERED, "same")),
    **dict.fromkeys(("negative",), ((*SIGNED, *_FLOATS), "same")),
    **dict.fromkeys(("positive", "sign", "square"), (_NUMERIC, "same")),
    **dict.fromkeys(("ceil", "floor", "round", "trunc"), (_ORDERED, "same")),
    **dict.fromkeys(("isfinite", "isinf", "isnan"), (_NUMERIC, "bool")),
    "logical_not": (("bool",), "bool"),
    "bitwise_invert": (("bool", *_WHOLE), "same"),
}
#: Functions of three arguments.
OTHER = ("clip", "where")
#: All functions of the standard that work element by element, `where` among them.
FUNCTIONS = frozenset({*BINARY, *UNARY, *OTHER, "conj", "imag", "real", "signbit"})

#: What is not held to the standard, and why.
EXCLUDED = {
    "conj": "zerostride broadcasts: the parts of complex numbers are not in its op table",
    "imag": "zerostride broadcasts: the parts of complex numbers are not in its op table",
    "real": "zerostride broadcasts: the parts of complex numbers are not in its op table",
    "signbit": "not in the op table: no engine's models have it",
    "complex special cases": "complex numbers are NumPy's, whose C library decides them",
    "complex functions": "those of one argument but arithmetic refuse them or are NumPy's",
    "kinds mixed": "the standard leaves integers beside floats, or uint64 beside signed integers, "
    "to libraries; here they are NumPy's (docs/compute.md)",
    "integers divided by zero": "the standard leaves them open; here they are NumPy's 0",
    "shifts beyond the width": "the standard leaves them open; here they are NumPy's",
}
#: Rows of `SPECIAL` that zerostride answers as NumPy does, and not as the standard: op, classes.
NUMPYS = {
    ("floor_divide", "inf", "positive"): "NumPy's is NaN: it subtracts the remainder, which is NaN",
    ("floor_divide", "inf", "negative"): "NumPy's is NaN: it subtracts the remainder, which is NaN",
    ("floor_divide", "-inf", "positive"): "NumPy's is NaN, as above",
    ("floor_divide", "-inf", "negative"): "NumPy's is NaN, as above",
}

# Special cases of real floats.

_TINY, _LARGE = 2.0**-100, 2.0**100
SAMPLES = {
    "nan": (NAN,),
    "inf": (INF,),
    "-inf": (-INF,),
    "+0": (0.0,),
    "-0": (-0.0,),
    "zero": (0.0, -0.0),
    "one": (1.0,),
    "-1": (-1.0,),
    "positive": (_TINY, 0.5, 1.0, 2.5, 3.0, _LARGE),
    "negative": (-_TINY, -0.5, -1.0, -2.5, -3.0, -_LARGE),
    "finite": (-_LARGE, -1.5, -0.0, 0.0, _TINY, 1.0, _LARGE),
    "nonzero": (-2.5, -_TINY, 0.25, 3.0),
    "number": (-INF, -2.0, -0.0, 0.0, 0.5, 1.0, 3.0, INF),
    "any": (-INF, -2.0, -0.0, 0.0, 0.5, 1.0, 3.0, INF, NAN),
    "not zero": (-INF, -2.0, 0.5, 1.0, INF, NAN),
    "not one": (-INF, -2.0, -0.0, 0.0, 0.5, 3.0, INF, NAN),
    "above 1": (1.5, 2.0, _LARGE, INF),
    "below -1": (-1.5, -2.0, -_LARGE, -INF),
    "below 1": (0.5, 0.0, -1.0, -_LARGE, -INF),
    "below 0": (-_TINY, -1.0, -_LARGE, -INF),
    "above 0": (_TINY, 1.0, _LARGE, INF),
    "large": (-INF, -_LARGE, -1.5, 1.5, _LARGE, INF),
    "small": (-0.5, -_TINY, -0.0, 0.0, _TINY, 0.5),
    "unit": (-1.0, 1.0),
    "odd": (1.0, 3.0, 7.0),
    "not odd": (0.5, 2.0, 4.0, 2.5),
    "-odd": (-1.0, -3.0, -7.0),
    "-not odd": (-0.5, -2.0, -4.0, -2.5),
    "fraction": (0.5, -1.5, 2.25),
    "whole": (-3.0, 0.0, 2.0, 1024.0),
}
_SAME = (("nan", NAN), ("+0", 0.0), ("-0", -0.0), ("inf", INF), ("-inf", -INF))
_OWN = _SAME[:3]
#: By function of one argument: classes, and what they give.
SPECIAL_OF_ONE = {
    "abs": (("nan", NAN), ("-0", 0.0), ("-inf", INF)),
    "acos": (("nan", NAN), ("above 1", NAN), ("below -1", NAN), ("one", 0.0)),
    "acosh": (("nan", NAN), ("below 1", NAN), ("one", 0.0), ("inf", INF)),
    "asin": (*_OWN, ("above 1", NAN), ("below -1", NAN)),
    "asinh": _SAME,
    "atan": (*_OWN, ("inf", PI / 2), ("-inf", -PI / 2)),
    "atanh": (*_OWN, ("above 1", NAN), ("below -1", NAN), ("one", INF), ("-1", -INF)),
    "ceil": _SAME,
    "cos": (("nan", NAN), ("zero", 1.0), ("inf", NAN), ("-inf", NAN)),
    "cosh": (("nan", NAN), ("zero", 1.0), ("inf", INF), ("-inf", INF)),
    "exp": (("nan", NAN), ("zero", 1.0), ("inf", INF), ("-inf", 0.0)),
    "expm1": (*_OWN, ("inf", INF), ("-inf", -1.0)),
    "floor": _SAME,
    "isfinite": (("nan", False), ("inf", False), ("-inf", False), ("finite", True)),
    "isinf": (("nan", False), ("inf", True), ("-inf", True), ("finite", False)),
    "isnan": (("nan", True), ("inf", False), ("-inf", False), ("finite", False)),
    "log": (("nan", NAN), ("below 0", NAN), ("zero", -INF), ("one", 0.0), ("inf", INF)),
    "log10": (("nan", NAN), ("below 0", NAN), ("zero", -INF), ("one", 0.0), ("inf", INF)),
    "log1p": (*_OWN, ("below -1", NAN), ("-1", -INF), ("inf", INF)),
    "log2": (("nan", NAN), ("below 0", NAN), ("zero", -INF), ("one", 0.0), ("inf", INF)),
    "negative": (("nan", NAN), ("inf", -INF), ("-inf", INF), ("+0", -0.0), ("-0", 0.0)),
    "positive": _SAME,
    "reciprocal": (("nan", NAN), ("inf", 0.0), ("-inf", -0.0), ("+0", INF), ("-0", -INF)),
    "round": _SAME,
    "sign": (("nan", NAN), ("below 0", -1.0), ("zero", 0.0), ("above 0", 1.0)),
    "sin": (*_OWN, ("inf", NAN), ("-inf", NAN)),
    "sinh": _SAME,
    "sqrt": (*_OWN, ("below 0", NAN), ("inf", INF)),
    "tan": (*_OWN, ("inf", NAN), ("-inf", NAN)),
    "tanh": (*_OWN, ("inf", 1.0), ("-inf", -1.0)),
    "trunc": _SAME,
}
_NANS = (("nan", "any", NAN), ("any", "nan", NAN))
_SIGNS = (  # of quotients: of a zero, and of an infinity
    ("+0", "positive", 0.0),
    ("-0", "positive", -0.0),
    ("+0", "negative", -0.0),
    ("-0", "negative", 0.0),
    ("positive", "+0", INF),
    ("positive", "-0", -INF),
    ("negative", "+0", -INF),
    ("negative", "-0", INF),
    ("inf", "positive", INF),
    ("inf", "negative", -INF),
    ("-inf", "positive", -INF),
    ("-inf", "negative", INF),
)
_NO_QUOTIENT = tuple(
    (a, b, NAN)
    for a, b in (
        *itertools.product(("inf", "-inf"), repeat=2),
        *itertools.product(("+0", "-0"), repeat=2),
    )
)
#: By function of two arguments: their classes, and what they give; a name is that argument itself.
SPECIAL_OF_TWO = {
    "add": (
        *_NANS,
        ("inf", "-inf", NAN),
        ("-inf", "inf", NAN),
        ("inf", "inf", INF),
        ("-inf", "-inf", -INF),
        ("inf", "finite", INF),
        ("-inf", "finite", -INF),
        ("finite", "inf", INF),
        ("finite", "-inf", -INF),
        ("-0", "-0", -0.0),
        ("-0", "+0", 0.0),
        ("+0", "-0", 0.0),
        ("+0", "+0", 0.0),
        ("zero", "nonzero", "second"),
        ("nonzero", "zero", "first"),
    ),
    "subtract": (
        *_NANS,
        ("inf", "inf", NAN),
        ("-inf", "-inf", NAN),
        ("inf", "-inf", INF),
        ("-inf", "inf", -INF),
        ("inf", "finite", INF),
        ("finite", "inf", -INF),
        ("-0", "+0", -0.0),
        ("-0", "-0", 0.0),
        ("+0", "+0", 0.0),
        ("nonzero", "zero", "first"),
    ),
    "multiply": (
        *_NANS,
        ("inf", "zero", NAN),
        ("-inf", "zero", NAN),
        ("zero", "inf", NAN),
        ("zero", "-inf", NAN),
        ("inf", "inf", INF),
        ("inf", "-inf", -INF),
        ("-inf", "-inf", INF),
        ("inf", "positive", INF),
        ("inf", "negative", -INF),
        ("negative", "inf", -INF),
        ("positive", "-inf", -INF),
        ("-0", "positive", -0.0),
        ("+0", "negative", -0.0),
        ("-0", "negative", 0.0),
    ),
    "divide": (
        *_NANS,
        *_NO_QUOTIENT,
        *_SIGNS,
        ("positive", "inf", 0.0),
        ("positive", "-inf", -0.0),
        ("negative", "inf", -0.0),
        ("negative", "-inf", 0.0),
    ),
    "floor_divide": (
        *_NANS,
        *_NO_QUOTIENT,
        *_SIGNS,
        ("positive", "inf", 0.0),
        ("positive", "-inf", -1.0),
        ("negative", "inf", -1.0),
        ("negative", "-inf", 0.0),
    ),
    "remainder": (
        *_NANS,
        ("inf", "any", NAN),
        ("-inf", "any", NAN),
        ("any", "zero", NAN),
        ("+0", "positive", 0.0),
        ("-0", "positive", 0.0),
        ("+0", "negative", -0.0),
        ("-0", "negative", -0.0),
        ("positive", "inf", "first"),
        ("positive", "-inf", "second"),
        ("negative", "inf", "second"),
        ("negative", "-inf", "first"),
    ),
    "pow": (
        ("not one", "nan", NAN),
        ("any", "zero", 1.0),
        ("nan", "not zero", NAN),
        ("large", "inf", INF),
        ("large", "-inf", 0.0),
        ("unit", "inf", 1.0),
        ("unit", "-inf", 1.0),
        ("one", "any", 1.0),
        ("small", "inf", 0.0),
        ("small", "-inf", INF),
        ("inf", "above 0", INF),
        ("inf", "below 0", 0.0),
        ("-inf", "odd", -INF),
        ("-inf", "not odd", INF),
        ("-inf", "-odd", -0.0),
        ("-inf", "-not odd", 0.0),
        ("+0", "above 0", 0.0),
        ("+0", "below 0", INF),
        ("-0", "odd", -0.0),
        ("-0", "not odd", 0.0),
        ("-0", "-odd", -INF),
        ("-0", "-not odd", INF),
        ("negative", "fraction", NAN),
    ),
    "atan2": (
        *_NANS,
        ("positive", "zero", PI / 2),
        ("negative", "zero", -PI / 2),
        ("+0", "positive", 0.0),
        ("-0", "positive", -0.0),
        ("+0", "negative", PI),
        ("-0", "negative", -PI),
        ("+0", "+0", 0.0),
        ("-0", "+0", -0.0),
        ("+0", "-0", PI),
        ("-0", "-0", -PI),
        ("positive", "inf", 0.0),
        ("negative", "inf", -0.0),
        ("positive", "-inf", PI),
        ("negative", "-inf", -PI),
        ("inf", "finite", PI / 2),
        ("-inf", "finite", -PI / 2),
        ("inf", "inf", PI / 4),
        ("inf", "-inf", 3 * PI / 4),
        ("-inf", "inf", -PI / 4),
        ("-inf", "-inf", -3 * PI / 4),
    ),
    "copysign": (("inf", "-0", -INF), ("-inf", "+0", INF), ("+0", "below 0", -0.0)),
    "equal": (
        ("nan", "any", False),
        ("any", "nan", False),
        ("inf", "inf", True),
        ("-inf", "-inf", True),
        ("-0", "+0", True),
        ("inf", "finite", False),
    ),
    "not_equal": (("nan", "any", True), ("any", "nan", True), ("-0", "+0", False)),
    **dict.fromkeys(
        ("greater", "greater_equal", "less", "less_equal"),
        (("nan", "any", False), ("any", "nan", False)),
    ),
    "hypot": (
        ("inf", "any", INF),
        ("-inf", "any", INF),
        ("any", "inf", INF),
        ("any", "-inf", INF),
        ("nan", "finite", NAN),
        ("finite", "nan", NAN),
        ("+0", "zero", 0.0),
    ),
    "logaddexp": (*_NANS, ("inf", "number", INF), ("number", "inf", INF)),
    "maximum": _NANS,
    "minimum": _NANS,
    "nextafter": (*_NANS, ("-0", "+0", 0.0), ("+0", "-0", -0.0), ("one", "one", 1.0)),
}
