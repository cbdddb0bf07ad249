"""The op table: one row an op, with its name on every engine.

Names are the Python array API's. A row says which NumPy function has the op's values, how every
engine writes it, and (`variants`) where an engine's values differ. Each variant was measured.
`arithmetic`, `logic`, `unary` and `activations` hold the rows; `model` says what a row is.
In: a name, of any engine. Out: its row.
"""

from .model import Names, Op
from .table import COLUMNS, OPS, column_of, find_op, find_reversed, take_names
from .targets import FEW

__all__ = [
    "COLUMNS",
    "FEW",
    "OPS",
    "Names",
    "Op",
    "column_of",
    "find_op",
    "find_reversed",
    "take_names",
]
