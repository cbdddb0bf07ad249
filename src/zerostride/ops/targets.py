"""The columns of targets that have few ops, or that we have only read about."""

from __future__ import annotations

from types import MappingProxyType

#: Columns of targets for which only the ops of two operands were read: the op, and its name there.
FEW = MappingProxyType(
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
        "logical_and:logical_and logical_or:logical_or logical_xor:logical_xor where:select",
        "tosa": "add:ADD subtract:SUB multiply:MUL divide:INTDIV pow:POW maximum:MAXIMUM "
        "minimum:MINIMUM "
        "equal:EQUAL greater:GREATER greater_equal:GREATER_EQUAL logical_and:LOGICAL_AND "
        "logical_or:LOGICAL_OR logical_xor:LOGICAL_XOR bitwise_and:BITWISE_AND "
        "bitwise_or:BITWISE_OR bitwise_xor:BITWISE_XOR bitwise_left_shift:LOGICAL_LEFT_SHIFT "
        "bitwise_right_shift:ARITHMETIC_RIGHT_SHIFT where:SELECT",
        # All comparisons are one op there, with a direction attribute.
        "stablehlo": "add:add subtract:subtract multiply:multiply divide:divide fmod:remainder "
        "pow:power maximum:maximum minimum:minimum atan2:atan2 equal:compare not_equal:compare "
        "less:compare less_equal:compare greater:compare greater_equal:compare logical_and:and "
        "logical_or:or logical_xor:xor bitwise_and:and bitwise_or:or bitwise_xor:xor "
        "bitwise_left_shift:shift_left bitwise_right_shift:shift_right_arithmetic where:select",
    }
)
