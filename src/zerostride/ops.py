"""Floor 3: the op table. One row an op: what computes it, and what each engine calls it.

Names are the Python array API's. A row says which NumPy function has the op's values, how every
engine writes it, and (`variants`) where an engine's values are not NumPy's. Every variant was found
by running that engine's release; what was not run is not in the table.

The file is long because the table is one: an op is to be found, and added, in one place.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .errors import BroadcastError, Reason

Name = str | int
#: Kinds of dtype (`numpy.dtype.kind`) by NumPy's name without its width.
_KINDS = MappingProxyType({"bool": "b", "int": "i", "uint": "u", "float": "f", "complex": "c"})
Names = Mapping[str, tuple[Name, ...]]

#: Engines whose op is called as the array API calls it unless a row says otherwise.
API_NAMED = ("torch", "tensorflow", "jax")
#: Columns of the table, in the order in which `find_op` reads them.
COLUMNS = (
    *("onnx", "openvino", "ncnn", "mnn", "paddle", *API_NAMED),
    *("litert", "tensorrt", "coreml", "tosa", "stablehlo"),
)
#: Columns of targets that have few ops: the op here, and its name there.
_FEW = MappingProxyType(
    {
        "litert": "add:ADD subtract:SUB multiply:MUL divide:DIV floor_divide:FLOOR_DIV "
        "remainder:FLOOR_MOD pow:POW maximum:MAXIMUM minimum:MINIMUM atan2:ATAN2 "
        "squared_difference:SQUARED_DIFFERENCE equal:EQUAL not_equal:NOT_EQUAL less:LESS "
        "less_equal:LESS_EQUAL greater:GREATER greater_equal:GREATER_EQUAL "
        "logical_and:LOGICAL_AND logical_or:LOGICAL_OR bitwise_xor:BITWISE_XOR "
        "bitwise_right_shift:RIGHT_SHIFT where:SELECT_V2 prelu:PRELU",
        # Names of ElementWiseOperation, without the k.
        "tensorrt": "add:SUM multiply:PROD maximum:MAX minimum:MIN subtract:SUB divide:DIV pow:POW "
        "floor_divide:FLOOR_DIV logical_and:AND logical_or:OR logical_xor:XOR equal:EQUAL "
        "greater:GREATER less:LESS where:Select",
        # Of MIL, elementwise_binary.
        "coreml": "add:add subtract:sub multiply:mul divide:real_div floor_divide:floor_div "
        "remainder:mod pow:pow maximum:maximum minimum:minimum equal:equal not_equal:not_equal "
        "less:less less_equal:less_equal greater:greater greater_equal:greater_equal "
        "logical_and:logical_and logical_or:logical_or logical_xor:logical_xor",
        "tosa": "add:ADD subtract:SUB multiply:MUL pow:POW maximum:MAXIMUM minimum:MINIMUM "
        "equal:EQUAL greater:GREATER greater_equal:GREATER_EQUAL logical_and:LOGICAL_AND "
        "logical_or:LOGICAL_OR logical_xor:LOGICAL_XOR bitwise_and:BITWISE_AND "
        "bitwise_or:BITWISE_OR bitwise_xor:BITWISE_XOR bitwise_left_shift:LOGICAL_LEFT_SHIFT "
        "bitwise_right_shift:ARITHMETIC_RIGHT_SHIFT where:SELECT",
        # Comparisons are one op there, with a direction.
        "stablehlo": "add:add subtract:subtract multiply:multiply divide:divide fmod:remainder "
        "pow:power maximum:maximum minimum:minimum atan2:atan2 equal:compare not_equal:compare "
        "less:compare less_equal:compare greater:compare greater_equal:compare logical_and:and "
        "logical_or:or logical_xor:xor bitwise_and:and bitwise_or:or bitwise_xor:xor "
        "bitwise_left_shift:shift_left bitwise_right_shift:shift_right_arithmetic where:select",
    }
)


@dataclass(frozen=True, slots=True)
class Op:
    """A row of the op table.

    Attributes:
        name: the array API's name, or the best known one where that has none.
        summary: what it computes, in a line.
        operands: how many operands it takes.
        numpy: the NumPy function that defines its values; "" where NumPy has none.
        names: column (`COLUMNS`) to that engine's names or numbers for the op. An engine without
            the op is absent. MNN's are values of BinaryOpOperation, and types of Op.
        reversed_names: the same, for ops that take the operands the other way round.
        swap: the op that gives the same with operands exchanged, or None.
        variants: engine to dtype, or kind of dtype (`numpy.dtype.kind`), to the name of the
            function of `compute.kernels` that computes what the engine computes, where that is not
            what `numpy` computes; "refused" where the engine does not take the dtype.
        first_decides: engines that take operands of different dtypes and return the first one's.
        aliases: further names that the op goes by.
        example: arguments, and the result as a list; shown and run in the docstring.
    """

    name: str
    summary: str
    operands: int
    numpy: str
    names: Names
    reversed_names: Names
    swap: str | None
    variants: Mapping[str, Mapping[str, str]]
    first_decides: frozenset[str]
    aliases: tuple[str, ...]
    example: tuple[str, str]

    def refuses(self, engine: str, dtype: str) -> bool:
        """Whether an engine does not take the op on a dtype, by NumPy's name; False if unknown."""
        row = self.variants.get(engine, {})
        kind = _KINDS.get(dtype.rstrip("0123456789"), "")
        return row.get(dtype, row.get(kind)) == "refused"

    @property
    def commutes(self) -> bool:
        """Whether exchanging the operands changes nothing."""
        return self.swap == self.name


_PAIR = "[[6, 5], [2, 3]], [1, 2]"


def _row(
    name: str,
    summary: str,
    example: str,
    names: str,
    *,
    args: str = _PAIR,
    numpy: str | None = None,
    operands: int = 2,
    swap: str | None = None,
    aliases: str = "",
    reversed_names: str = "",
    variants: Mapping[str, str] | None = None,
    first_decides: str = "",
) -> Op:
    """A row from words: "onnx:Mul mnn:MUL torch:mul,multiply"; "jax:-" where jax lacks the op."""
    columns = {**dict.fromkeys(API_NAMED, (name,)), **_names(names)}
    columns = {key: words for key, words in columns.items() if words != ("-",)}
    columns |= {key: _names(words)[name] for key, words in _FEW.items() if name in _names(words)}
    return Op(
        name=name,
        summary=summary,
        operands=operands,
        numpy=name if numpy is None else numpy,
        names=MappingProxyType(columns),
        reversed_names=MappingProxyType(_names(reversed_names)),
        swap=swap,
        variants=_variants(variants or {}),
        first_decides=frozenset(first_decides.split()),
        aliases=tuple(aliases.split()),
        example=(args, example),
    )


def _names(words: str) -> dict[str, tuple[Name, ...]]:
    """{"ncnn": (7, "rsub")} from "ncnn:7,rsub"."""
    pairs = (word.split(":") for word in words.split())
    return {
        column: tuple(int(name) if name.isdigit() else name for name in names.split(","))
        for column, names in pairs
    }


def _variants(rows: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    """{"larger": "mnn:if jax:int8"} as {"mnn": {"i": "larger", "f": ...}, "jax": {"int8": ...}}."""
    table: dict[str, dict[str, str]] = {}
    for function, places in rows.items():
        for place in places.split():
            engine, _, given = place.partition(":")
            dtypes = given if set(given) <= set("biufc") else (given,)
            table.setdefault(engine, {}).update(dict.fromkeys(dtypes, function))
    return MappingProxyType({key: MappingProxyType(value) for key, value in table.items()})


#: Arithmetic on truth values is refused.
_NO_BOOL = "onnxruntime:b openvino:b tensorflow:b"
#: Logic on anything else is refused.
_BOOL_ALONE = "onnxruntime:iuf openvino:iuf tensorflow:iuf"
#: The order of truth values is refused.
_NO_ORDER_OF_BOOL = "onnxruntime:b tensorflow:b"
#: Quotients and powers of truth values are refused.
_NO_QUOTIENT_OF_BOOL = "torch:b " + _NO_BOOL
#: Bits of truth values are refused.
_NO_BITS_OF_BOOL = "onnxruntime:b tensorflow:b"

# Measured, and in no row of `variants`. ncnn: what NaN gives in maximum and minimum depends on
# where the element stands in its vector, division is by an approximate reciprocal (so x / 0 is
# NaN), and pow of a negative base is a number that means nothing. MNN's comparisons return int32.
_ROWS = (
    _row(
        "add",
        "a + b",
        "[[7, 7], [3, 5]]",
        "onnx:Add openvino:Add ncnn:0 mnn:ADD paddle:elementwise_add",
        swap="add",
        variants={
            "refused": _NO_BOOL,
        },
    ),
    _row(
        "subtract",
        "a - b",
        "[[5, 3], [1, 1]]",
        "onnx:Sub openvino:Subtract ncnn:1 mnn:SUB paddle:elementwise_sub",
        reversed_names="ncnn:7,rsub",
        variants={
            "refused": _NO_BOOL,
        },
    ),
    _row(
        "multiply",
        "a times b",
        "[[6, 10], [2, 6]]",
        "onnx:Mul openvino:Multiply ncnn:2 mnn:MUL paddle:elementwise_mul",
        swap="multiply",
        variants={
            "multiply_by_float32": "mnn:i",
            "refused": _NO_BOOL,
        },
    ),
    _row(
        "divide",
        "a / b, true division",
        "[[6.0, 2.5], [2.0, 1.5]]",
        "onnx:Div openvino:Divide ncnn:3 mnn:REALDIV,DIV paddle:elementwise_div",
        reversed_names="ncnn:8,rdiv",
        variants={
            "truncated_divide": "onnxruntime:iu paddle:iu mnn:i",
            "divide_by_float32": "openvino:iu",
            "divide_in_float32": "torch:biu jax:biu",
            "divide_in_small_float": "tensorflow:iu",
            "refused": "paddle:b " + _NO_BOOL,
        },
    ),
    _row(
        "floor_divide",
        "a / b, rounded down",
        "[[6, 2], [2, 1]]",
        "ncnn:15 mnn:FLOORDIV paddle:elementwise_floordiv tensorflow:floordiv",
        reversed_names="ncnn:16,rfloor_divide",
        variants={
            "floor_divide_in_int32": "jax:b",
            "checked_floor_divide": "torch:iu jax:iu paddle:iu tensorflow:iu mnn:i",
            "floor_of_quotient": "tensorflow:f ncnn:f",
            "floor_of_float64_quotient": "mnn:f",
            "refused": _NO_QUOTIENT_OF_BOOL,
        },
    ),
    _row(
        "remainder",
        "what floor division leaves: it has the sign of b",
        "[[0, 1], [0, 1]]",
        "onnx:Mod openvino:FloorMod ncnn:17 mnn:FLOORMOD "
        "paddle:elementwise_mod tensorflow:floormod",
        reversed_names="ncnn:18,rremainder",
        variants={
            "remainder_in_int32": "jax:b",
            "checked_remainder": "onnxruntime:iu torch:iu jax:iu paddle:iu tensorflow:iu",
            "checked_fmod": "mnn:i",
            "remainder_of_quotient": "openvino:f mnn:f",
            "remainder_by_float32": "openvino:iu",
            "nearest_remainder": "ncnn:f",
            "refused": "onnxruntime:f " + _NO_QUOTIENT_OF_BOOL,
        },
    ),
    _row(
        "fmod",
        "what truncated division leaves: it has the sign of a",
        "[[0, 1], [0, 1]]",
        "onnx:Mod openvino:Mod ncnn:12 mnn:MOD tensorflow:truncatemod",
        reversed_names="ncnn:13,rfmod",
        variants={
            "fmod_in_int32": "jax:b",
            "fmod_by_float64": "onnxruntime:iu",
            "checked_fmod": "torch:iu jax:iu tensorflow:iu",
            "checked_remainder": "mnn:i",
            "fmod_of_quotient": "openvino:f ncnn:f",
            "fmod_by_float32": "openvino:iu",
            "refused": _NO_QUOTIENT_OF_BOOL,
        },
    ),
    _row(
        "pow",
        "a to the power of b",
        "[[6, 25], [2, 9]]",
        "onnx:Pow openvino:Power ncnn:6 mnn:POW paddle:elementwise_pow jax:power,pow",
        numpy="power",
        aliases="power",
        reversed_names="ncnn:9,rpow",
        variants={
            "pow_by_float64": "onnxruntime:iu mnn:i",
            "pow_of_zero_is_zero": "paddle:iu",
            "pow_in_int32": "jax:b",
            "pow_by_float32": "openvino:iu",
            "integer_pow": "torch:iu",
            "pow_six_bits": "jax:iu",
            "pow_of_first_dtype": "onnxruntime:f",
            "refused": "onnxruntime:int8 onnxruntime:uint8 onnxruntime:int16 onnxruntime:uint16 "
            "onnxruntime:uint32 onnxruntime:uint64 tensorflow:u " + _NO_QUOTIENT_OF_BOOL,
        },
        first_decides="onnxruntime",
    ),
    _row(
        "maximum",
        "The larger of a and b; NaN if either is NaN",
        "[[6, 5], [2, 3]]",
        "onnx:Max openvino:Maximum ncnn:4 mnn:MAXIMUM,MAX_TEMP paddle:elementwise_max",
        swap="maximum",
        variants={
            "larger_or_second": "openvino:f mnn:f",
            "maximum_by_float32": "mnn:i",
            "refused": "onnxruntime:int16 onnxruntime:uint16 " + _NO_BOOL,
        },
    ),
    _row(
        "minimum",
        "The smaller of a and b; NaN if either is NaN",
        "[[1, 2], [1, 2]]",
        "onnx:Min openvino:Minimum ncnn:5 mnn:MINIMUM,MIN_TEMP paddle:elementwise_min",
        swap="minimum",
        variants={
            "smaller_or_second": "openvino:f mnn:f",
            "minimum_by_float32": "mnn:i",
            "refused": "onnxruntime:int16 onnxruntime:uint16 " + _NO_BOOL,
        },
    ),
    _row(
        "atan2",
        "The angle of the point with height a and width b, in radians",
        "[[0.0, 3.141592653589793], [-0.0, -3.141592653589793]]",
        "ncnn:10 mnn:ATAN2 paddle:atan2 jax:arctan2,atan2",
        args="[[0.0], [-0.0]], [1.0, -1.0]",
        numpy="arctan2",
        aliases="arctan2",
        reversed_names="ncnn:11,ratan2",
        variants={
            "atan2_of_float32": "paddle:iu",
            "atan2_in_float32": "torch:biu jax:biu",
            "refused": "tensorflow:biu mnn:i",
        },
    ),
    _row(
        "logaddexp",
        "log(exp(a) + exp(b)), without overflow",
        "[0.6931471805599453, 1.6931471805599454]",
        "ncnn:14 tensorflow:-",
        args="[0.0, 1.0], [0.0, 1.0]",
        swap="logaddexp",
        variants={
            "logaddexp_in_float32": "jax:biu",
            "refused": "torch:biu",
        },
    ),
    _row(
        "squared_difference",
        "(a - b) squared",
        "[[25, 9], [1, 1]]",
        "openvino:SquaredDifference mnn:SquaredDifference torch:- jax:-",
        numpy="",
        swap="squared_difference",
        variants={
            "squared_difference_by_float32": "mnn:i",
            "refused": "openvino:int8 openvino:uint8 tensorflow:u tensorflow:int8 tensorflow:int16 "
            + _NO_BOOL,
        },
    ),
    _row(
        "equal",
        "Whether a equals b",
        "[[False, False], [False, False]]",
        "onnx:Equal openvino:Equal mnn:EQUAL paddle:equal torch:eq",
        swap="equal",
        variants={
            "equal_of_bits": "mnn:f",
        },
    ),
    _row(
        "not_equal",
        "Whether a differs from b",
        "[[True, True], [True, True]]",
        "openvino:NotEqual mnn:NOTEQUAL paddle:not_equal",
        swap="not_equal",
    ),
    _row(
        "less",
        "Whether a is less than b",
        "[[False, False], [False, False]]",
        "onnx:Less openvino:Less mnn:LESS paddle:less_than",
        swap="greater",
        variants={
            "less_of_bits": "mnn:f",
            "refused": _NO_ORDER_OF_BOOL,
        },
    ),
    _row(
        "less_equal",
        "Whether a is at most b",
        "[[False, False], [False, False]]",
        "onnx:LessOrEqual openvino:LessEqual mnn:LESS_EQUAL paddle:less_equal",
        swap="greater_equal",
        variants={"refused": _NO_ORDER_OF_BOOL},
    ),
    _row(
        "greater",
        "Whether a is greater than b",
        "[[True, True], [True, True]]",
        "onnx:Greater openvino:Greater mnn:GREATER paddle:greater_than",
        swap="less",
        variants={"not_less_equal": "openvino:f", "refused": _NO_ORDER_OF_BOOL},
    ),
    _row(
        "greater_equal",
        "Whether a is at least b",
        "[[True, True], [True, True]]",
        "onnx:GreaterOrEqual openvino:GreaterEqual mnn:GREATER_EQUAL paddle:greater_equal",
        swap="less_equal",
        variants={"not_less": "openvino:f", "refused": _NO_ORDER_OF_BOOL},
    ),
    _row(
        "logical_and",
        "Whether a and b are both true",
        "[[True, True], [True, True]]",
        "onnx:And openvino:LogicalAnd paddle:logical_and",
        swap="logical_and",
        variants={
            "refused": _BOOL_ALONE,
        },
    ),
    _row(
        "logical_or",
        "Whether a or b is true",
        "[[True, True], [True, True]]",
        "onnx:Or openvino:LogicalOr mnn:LOGICALOR paddle:logical_or",
        swap="logical_or",
        variants={
            "refused": _BOOL_ALONE,
        },
    ),
    _row(
        "logical_xor",
        "Whether one of a and b is true, not both",
        "[[False, False], [False, False]]",
        "onnx:Xor openvino:LogicalXor mnn:LOGICALXOR paddle:logical_xor",
        swap="logical_xor",
        variants={
            "refused": _BOOL_ALONE,
        },
    ),
    _row(
        "bitwise_and",
        "The bits set in both a and b",
        "[[0, 0], [0, 2]]",
        "onnx:BitwiseAnd openvino:BitwiseAnd mnn:BITWISE_AND paddle:bitwise_and",
        swap="bitwise_and",
        variants={
            "refused": _NO_BITS_OF_BOOL,
        },
    ),
    _row(
        "bitwise_or",
        "The bits set in a or b",
        "[[7, 7], [3, 3]]",
        "onnx:BitwiseOr openvino:BitwiseOr mnn:BITWISE_OR paddle:bitwise_or",
        swap="bitwise_or",
        variants={
            "refused": _NO_BITS_OF_BOOL,
        },
    ),
    _row(
        "bitwise_xor",
        "The bits set in one of a and b, not both",
        "[[7, 7], [3, 1]]",
        "onnx:BitwiseXor openvino:BitwiseXor mnn:BITWISE_XOR paddle:bitwise_xor",
        swap="bitwise_xor",
        variants={
            "refused": _NO_BITS_OF_BOOL,
        },
    ),
    _row(
        "bitwise_left_shift",
        "a shifted left by b bits",
        "[[12, 20], [4, 12]]",
        "onnx:BitShift openvino:BitwiseLeftShift mnn:LEFTSHIFT paddle:bitwise_left_shift "
        "tensorflow:left_shift jax:left_shift,bitwise_left_shift",
        numpy="left_shift",
        aliases="left_shift",
        variants={
            "left_shift_in_int32": "jax:b",
            "clamped_left_shift": "tensorflow:iu",
            "wrapped_left_shift": "openvino:iu",
            "refused": "onnxruntime:i " + _NO_BOOL + " torch:b",
        },
    ),
    _row(
        "bitwise_right_shift",
        "a shifted right by b bits, keeping its sign",
        "[[3, 1], [1, 0]]",
        "onnx:BitShift openvino:BitwiseRightShift mnn:RIGHTSHIFT paddle:bitwise_right_shift "
        "tensorflow:right_shift jax:right_shift,bitwise_right_shift",
        numpy="right_shift",
        aliases="right_shift",
        variants={
            "right_shift_in_int32": "jax:b",
            "clamped_right_shift": "tensorflow:iu",
            "wrapped_right_shift": "openvino:iu",
            "refused": "onnxruntime:i " + _NO_BOOL + " torch:b",
        },
    ),
    _row(
        "where",
        "a where c is true, b elsewhere",
        "[[6, 2], [2, 2]]",
        "onnx:Where openvino:Select mnn:Select paddle:where",
        args="[[True, False], [True, False]], [[6, 5], [2, 3]], [1, 2]",
        operands=3,
    ),
    _row(
        "prelu",
        "x where it is not negative, x times slope where it is",
        "[[-0.5, 2.0], [3.0, -8.0]]",
        "onnx:PRelu openvino:PRelu ncnn:PReLU mnn:PReLU paddle:prelu tensorflow:- jax:-",
        args="[[-1.0, 2.0], [3.0, -4.0]], [0.5, 2.0]",
        numpy="",
        variants={
            "refused": "onnxruntime:iu " + _NO_BOOL,
        },
    ),
)

OPS: Mapping[str, Op] = MappingProxyType({op.name: op for op in _ROWS})


def _index(column: str | None, *, reverse: bool = False) -> dict[Name, Op]:
    """Lower-case name or number to row; of two rows with one name the first has it."""
    found: dict[Name, Op] = {}
    for op in _ROWS:
        names = op.reversed_names if reverse else op.names
        for word in names.get(column, ()) if column else (op.name, *op.aliases):
            found.setdefault(word.lower() if isinstance(word, str) else word, op)
    return found


_BY_COLUMN = {column: _index(column) for column in COLUMNS}
_REVERSED = {column: _index(column, reverse=True) for column in COLUMNS}
_BY_NAME: dict[Name, Op] = {
    name: op
    for index in (*[_BY_COLUMN[column] for column in reversed(COLUMNS)], _index(None))
    for name, op in index.items()
    if isinstance(name, str)
}


def find_op(name: Name, engine: str | None = None) -> Op:
    """The row of an op by any engine's name for it, in any case.

    Engines use some names for different ops ("Mod" is the remainder in ONNX and fmod in OpenVINO).
    Without an engine the array API's name counts first, then the columns in their order.

    Args:
        name: the op's name, or its number where the engine has numbers (ncnn's BinaryOp).
        engine: read only this engine's names.

    Raises:
        BroadcastError: if no row has the name.

    >>> find_op("elementwise_sub").name, find_op(17, "ncnn").name
    ('subtract', 'remainder')
    >>> find_op("Mod").name, find_op("Mod", "openvino").name
    ('remainder', 'fmod')
    """
    index = _BY_NAME if engine is None else _BY_COLUMN.get(column_of(engine), _BY_NAME)
    op = index.get(name.lower() if isinstance(name, str) else name)
    if op is None:
        raise BroadcastError(
            f"there is no op {name!r}" + (f" in {engine}" if engine else ""),
            reason=Reason.UNKNOWN_OP,
            # Searched for when somebody reads it: most that ask go on to ask of another engine.
            hint=lambda: _near(name, index),
        )
    return op


def _near(name: Name, index: Mapping[Name, Op]) -> str:
    known = [word for word in index if isinstance(word, str)]
    # At difflib's own 0.6 "zork" is near to "or".
    close = difflib.get_close_matches(str(name).lower(), known, 3, cutoff=0.7)
    return f"did you mean {' or '.join(close)}?" if close else f"one of {', '.join(OPS)}"


def find_reversed(name: Name, engine: str) -> Op | None:
    """The row whose operands the engine's op `name` takes the other way round, or None.

    >>> find_reversed(7, "ncnn").name
    'subtract'
    >>> find_reversed(1, "ncnn") is None
    True
    """
    index = _REVERSED.get(column_of(engine), {})
    return index.get(name.lower() if isinstance(name, str) else name)


_READS = MappingProxyType({"onnxruntime": "onnx", "litert-gpu": "litert"})


def column_of(engine: str) -> str:
    """The column that has an engine's names: ONNX Runtime reads ONNX's."""
    return _READS.get(engine, engine)
