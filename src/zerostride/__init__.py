"""zerostride: tensor broadcasting as one thing.

*Broadcasting is a stride of zero.* A rule decides which result axis each operand axis lands on.
That decision is a :class:`Plan`, and everything else is derived from it.

>>> import zerostride as zs
>>> zs.plan((5, 5), (5,)) == zs.plan((5, 5), (5,), engine="ncnn")
False
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arrays.torch.watch import watch as _watch
from .compute.functions import (
    add,
    atan2,
    bitwise_and,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    broadcast,
    copysign,
    divide,
    equal,
    floor_divide,
    fmax,
    fmin,
    fmod,
    greater,
    greater_equal,
    heaviside,
    hypot,
    less,
    less_equal,
    logaddexp,
    logaddexp2,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    nextafter,
    not_equal,
    pow,
    power,
    prelu,
    remainder,
    squared_difference,
    subtract,
    where,
)
from .compute.native import backend as _computing
from .compute.native import get_num_threads, set_num_threads
from .compute.unary import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_invert,
    cast,
    ceil,
    celu,
    clip,
    cos,
    cosh,
    elu,
    erf,
    exp,
    expm1,
    floor,
    gelu,
    gelu_tanh,
    hard_sigmoid,
    hard_swish,
    isfinite,
    isinf,
    isnan,
    leaky_relu,
    log,
    log1p,
    log2,
    log10,
    logical_not,
    mish,
    negative,
    positive,
    reciprocal,
    relu,
    round,
    rsqrt,
    selu,
    shrink,
    sigmoid,
    sign,
    silu,
    sin,
    sinh,
    softplus,
    softsign,
    sqrt,
    square,
    swish,
    tan,
    tanh,
    thresholded_relu,
    trunc,
)
from .core.plan import Plan
from .core.rules import whdc
from .core.strict_mode import strict
from .engines.planning import plan, plan_to, supports
from .errors import (
    BroadcastError,
    EngineVersionWarning,
    ModelError,
    NotExpressible,
    PluginWarning,
    Reason,
    TraceError,
    ZerostrideError,
)
from .fusion import fuse
from .system.fork_gate import first_call as _first_call

if TYPE_CHECKING:
    from .derive.compare import Comparison, compare
    from .fusion.grad.vjp import vjp
    from .fusion.reductions import (
        all,
        any,
        argmax,
        argmin,
        logsumexp,
        max,
        mean,
        min,
        prod,
        sum,
        sum_of_squares,
    )
    from .models.audit.run import audit
    from .models.findings import Finding, Report, Verdict
    from .models.flow.shapes import shapes
    from .models.port import port
    from .runtimes.verify.checks import verify
    from .sizes.condition import Condition
    from .sizes.dim import Dim

__version__ = "0.1.0"

#: Names that not every user needs: looked up when first used, to keep the import light. No module
#: may have the name of a function here, because importing it would put the module in its place
#: (`backend` has, as ONNX's interface is called, and can be called).
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
    "vjp": "fuse.vjp",
    **dict.fromkeys(
        (
            *("sum", "prod", "mean", "min", "max", "any", "all", "argmin", "argmax"),
            *("sum_of_squares", "logsumexp"),
        ),
        "fuse.reductions",
    ),
}


class _Backend:
    """`zerostride.backend` before the module of that name is imported, which can be called, too."""

    __doc__ = _computing.__doc__

    def __call__(self) -> str:
        return _computing()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from importlib import import_module

        return getattr(import_module(".backend", __name__), name)


backend = _Backend()

_watch()  # for PyTorch's compiler, which has to know the functions above


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        with _first_call:
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
    "PluginWarning",
    "Reason",
    "Report",
    "TraceError",
    "Verdict",
    "ZerostrideError",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "audit",
    "backend",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "broadcast",
    "cast",
    "ceil",
    "celu",
    "clip",
    "compare",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "elu",
    "equal",
    "erf",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "fuse",
    "gelu",
    "gelu_tanh",
    "get_num_threads",
    "greater",
    "greater_equal",
    "hard_sigmoid",
    "hard_swish",
    "heaviside",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "leaky_relu",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mish",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "plan",
    "plan_to",
    "port",
    "positive",
    "pow",
    "power",
    "prelu",
    "prod",
    "reciprocal",
    "relu",
    "remainder",
    "round",
    "rsqrt",
    "selu",
    "set_num_threads",
    "shapes",
    "shrink",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinh",
    "softplus",
    "softsign",
    "sqrt",
    "square",
    "squared_difference",
    "strict",
    "subtract",
    "sum",
    "sum_of_squares",
    "supports",
    "swish",
    "tan",
    "tanh",
    "thresholded_relu",
    "trunc",
    "verify",
    "vjp",
    "whdc",
    "where",
]
