"""zerostride: tensor broadcasting as one thing.

*Broadcasting is a stride of zero.* A rule decides which result axis each operand axis lands on.
That decision is a :class:`Plan`, and everything else is derived from it.

>>> import zerostride as zs
>>> zs.plan((5, 5), (5,)) == zs.plan((5, 5), (5,), engine="ncnn")
False
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from .comparison import Comparison, compare
    from .dims.condition import Condition
    from .dims.dim import Dim
    from .models.audit import audit
    from .models.findings import Finding, Report, Verdict
    from .models.port import port
    from .models.shapes import shapes
    from .verification.checks import verify

__version__ = "0.1.0"

#: Names that not every user needs: looked up when first used, to keep the import light. No module
#: may have the name of a function here, because importing it would put the module in its place.
_LATER = {
    "Comparison": "comparison",
    "compare": "comparison",
    "Condition": "dims.condition",
    "Dim": "dims.dim",
    "audit": "models.audit",
    "Finding": "models.findings",
    "Report": "models.findings",
    "Verdict": "models.findings",
    "port": "models.port",
    "shapes": "models.shapes",
    "verify": "verification.checks",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        found = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [
    "BroadcastError",
    "Comparison",
    "Condition",
    "Dim",
    "EngineVersionWarning",
    "Finding",
    "ModelError",
    "NotExpressible",
    "Plan",
    "Reason",
    "Report",
    "Verdict",
    "ZerostrideError",
    "add",
    "atan2",
    "audit",
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
    "port",
    "pow",
    "power",
    "prelu",
    "remainder",
    "shapes",
    "squared_difference",
    "subtract",
    "supports",
    "verify",
    "whdc",
    "where",
]
