"""Floor 3: the op table. One row an op: what computes it, and what each engine calls it.

Names are the Python array API's. A row says which NumPy function has the op's values, how every
engine writes it, and (`variants`) where an engine's values are not NumPy's. Every variant was found
by running that engine's release; what was not run is not in the table.

A module a family of ops: `arithmetic`, `logic`, `unary`, `activations`.
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
