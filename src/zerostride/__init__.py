"""zerostride: tensor broadcasting as one thing.

*Broadcasting is a stride of zero.* A rule decides which result axis each operand axis lands on.
That decision is a :class:`Plan`, and everything else is derived from it.

Plans need the standard library alone. Names that need more are imported when they are first used;
`__init__.pyi` has them all, for type checkers.

>>> import zerostride as zs
>>> zs.plan((5, 5), (5,)) == zs.plan((5, 5), (5,), engine="ncnn")
False
"""

from __future__ import annotations

from .system import interrupts as _interrupts  # noqa: F401 - first: Ctrl-C during the others

# isort: split
from importlib import import_module
from typing import Any

from .arrays.torch.watch import watch as _watch
from .attachments import attach as _attach
from .core.plan import Plan
from .core.rules import whdc
from .core.strict_mode import strict
from .engines.planning import plan, plan_to
from .engines.supports import supports
from .errors import (
    AccidentalBroadcastWarning,
    BroadcastError,
    EngineVersionWarning,
    ModelError,
    NotExpressible,
    PluginWarning,
    Reason,
    TraceError,
    ZerostrideError,
)
from .ops import OPS as _OPS
from .system.fork_gate import first_call as _first_call
from .system.version import __version__ as __version__

_REDUCTIONS = (
    *("sum", "prod", "mean", "min", "max", "any", "all", "argmin", "argmax"),
    *("sum_of_squares", "logsumexp"),
)

#: The module of each name that is imported when it is first used. No room may have the name of a
#: function here: its import would put the module in the function's place. (`backend` has it, as
#: ONNX calls its interface so; that module can be called.)
_LATER = {
    "AttentionPlan": "attention",
    "compare_attention": "attention",
    "plan_attention": "attention",
    "Comparison": "derive.comparison",
    "compare": "derive.compare",
    "Condition": "sizes.condition",
    "Dim": "sizes.dim",
    **{
        name: "compute.unary" if op.tensors == 1 else "compute.functions"
        for name, op in _OPS.items()
    },
    **dict.fromkeys(("clip", "silu"), "compute.unary"),
    **dict.fromkeys(("broadcast", "power"), "compute.functions"),
    **dict.fromkeys(("get_num_threads", "set_num_threads"), "compute.native"),
    "fuse": "fusion",
    **dict.fromkeys(("vjp", "grad", "value_and_grad"), "fusion.derivatives"),
    **dict.fromkeys(_REDUCTIONS, "fusion.reductions"),
    "audit": "models.audit.run",
    "bisect": "runtimes.bisect.run",
    "convert": "runtimes.convert.run",
    "equivalent": "runtimes.equivalent.run",
    "Finding": "models.findings",
    "Report": "models.findings",
    "Verdict": "models.findings",
    "plan_quantization": "quantisation.planning",
    "QuantizationPlan": "quantisation.model",
    **dict.fromkeys(("quantize", "dequantize", "fake_quantize"), "fusion.quantised"),
    "port": "models.port",
    "shapes": "models.shapes",
    "verify": "runtimes.verify.checks",
}


class _Backend:
    """`zerostride.backend` before the module of that name is imported, which can be called, too."""

    def __call__(self) -> str:
        from .compute.native import backend

        return backend()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(".backend", __name__), name)


backend = _Backend()

_attach()
_watch()  # for PyTorch's compiler, which has to know the functions above


def __getattr__(name: str) -> Any:
    if name in _LATER:
        with _first_call:
            value = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER} - {"Any", "annotations", "import_module"})


__all__ = [
    "BroadcastError",
    "AccidentalBroadcastWarning",
    "EngineVersionWarning",
    "ModelError",
    "NotExpressible",
    "Plan",
    "PluginWarning",
    "Reason",
    "TraceError",
    "ZerostrideError",
    "backend",
    "plan",
    "plan_to",
    "strict",
    "supports",
    "whdc",
    *_LATER,
]
