"""zerostride: tensor broadcasting as one thing.

*Broadcasting is a stride of zero.* A rule decides which result axis each operand axis lands on.
That decision is a :class:`Plan`, and everything else is derived from it.

>>> import zerostride as zs
>>> zs.plan((5, 5), (5,)) == zs.plan((5, 5), (5,), engine="ncnn")
False
"""

from __future__ import annotations

from .compare import Comparison, compare
from .compute.functions import (
    add,
    atan2,
    bitwise_and,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    broadcast,
    divide,
    equal,
    floor_divide,
    fmod,
    greater,
    greater_equal,
    less,
    less_equal,
    logaddexp,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    not_equal,
    pow,
    power,
    prelu,
    remainder,
    squared_difference,
    subtract,
    where,
)
from .errors import (
    BroadcastError,
    EngineVersionWarning,
    ModelError,
    NotExpressible,
    Reason,
    ZerostrideError,
)
from .plan import Plan
from .planner import plan, plan_to, supports
from .rules import whdc

__version__ = "0.1.0"

__all__ = [
    "BroadcastError",
    "Comparison",
    "EngineVersionWarning",
    "ModelError",
    "NotExpressible",
    "Plan",
    "Reason",
    "ZerostrideError",
    "add",
    "atan2",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "broadcast",
    "compare",
    "divide",
    "equal",
    "floor_divide",
    "fmod",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "not_equal",
    "plan",
    "plan_to",
    "pow",
    "power",
    "prelu",
    "remainder",
    "squared_difference",
    "subtract",
    "supports",
    "whdc",
    "where",
]
