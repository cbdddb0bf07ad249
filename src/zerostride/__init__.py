"""zerostride: tensor broadcasting as one thing.

*Broadcasting is a stride of zero.* A rule decides which result axis each operand axis lands on.
That decision is a :class:`Plan`, and everything else is derived from it.

>>> import zerostride as zs
>>> zs.plan((5, 5), (5,)) == zs.plan((5, 5), (5,), engine="ncnn")
False
"""

from __future__ import annotations

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
    "EngineVersionWarning",
    "ModelError",
    "NotExpressible",
    "Plan",
    "Reason",
    "ZerostrideError",
    "plan",
    "plan_to",
    "supports",
    "whdc",
]
