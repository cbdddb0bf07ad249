"""The op table: one row per op, with its name on every engine.

Names are the Python array API's. A row gives the NumPy function that defines the op's values, its
name on each engine, the engines whose values differ (`variants`), and facts that other rooms need.
Each variant was measured. `arithmetic`, `logic`, `unary` and `activations` hold the rows; `model`
defines a row; `formulas` has ops in the common functions of array libraries.
In: a name of any engine. Out: its row.
"""

from .model import Names, Op
from .table import (
    BROADCAST_OPS,
    COLUMNS,
    COMPARISONS,
    OPS,
    TRUTHS,
    column_of,
    find_op,
    find_reversed,
    ops_with,
    take_names,
    translated,
)
from .targets import FEW

__all__ = [
    "BROADCAST_OPS",
    "COLUMNS",
    "COMPARISONS",
    "FEW",
    "OPS",
    "TRUTHS",
    "Names",
    "Op",
    "column_of",
    "find_op",
    "find_reversed",
    "ops_with",
    "take_names",
    "translated",
]
