"""The engine table: one row an engine, each fact with the release it was measured on.

`rules` has what documents say. Rows here start from those rules and name only what differs.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ..alignment import Attribute, Rule
from ..errors import BroadcastError, Reason
from ..plan import Plan
from ..rules import RULES
from . import aligns
from .model import Divergence, Engine, Rules

_NUMPY, _NONE = RULES["numpy"], RULES["none"]
_ONE_WAY, _BOTH_WAYS = RULES["unidirectional"], RULES["bidirectional"]


def _measured(release: str, count: str) -> str:
    return f"{release}, run: {count} cases, 0 disagreements"


def _rows(*rules: Rule, source: str) -> Rules:
    return MappingProxyType({rule.name: replace(rule, source=source) for rule in rules})


def _modes(source: str, **rules: Rule) -> Rules:
    return MappingProxyType({mode: replace(rule, source=source) for mode, rule in rules.items()})


def _has_zero(plan: Plan) -> bool:
    return 0 in plan.shape or any(0 in shape for shape in plan.operands)


_OPENVINO = _measured("OpenVINO 2026.4.1", "79,000 element-wise and 44,543 Broadcast-3")
_OPENVINO_PDPD = replace(
    RULES["pdpd"],
    align=aligns.openvino_pdpd,
    summary="B is laid over A from `axis` on, trailing ones included; only B stretches.",
    attributes=MappingProxyType({"axis": Attribute(0)}),
)
_OPENVINO_EXPLICIT = replace(
    RULES["explicit"],
    align=aligns.openvino_explicit,
    silent=frozenset({Reason.DUPLICATE_AXES}),
)
_PRELU_CHANNEL = replace(
    RULES["pdpd"],
    align=aligns.prelu_channel,
    attributes=MappingProxyType({}),
    summary="A vector slope goes to axis 1 where it fits there, else right-aligned.",
    one_way="only the slope may stretch, to the data",
)
_NCNN = _measured("ncnn 1.0.20261020", "30,000")
_MNN = _measured("MNN 3.6.1", "14,900")
_PADDLE = _measured("Paddle 3.3.1", "8,000")
_ORT = _measured("ONNX Runtime 1.31.1", "11,500")
_TORCH = _measured("PyTorch 2.13", "6,000")
_NP = _measured("NumPy 2.4", "6,000")
_JAX = _measured("JAX 0.10", "6,000")
_TF = "TensorFlow 2.21, run"

_MNN_RULE = replace(
    RULES["mnn"],
    max_rank=9,
    summary="NumPy's rule, up to 9 axes.",
    silent=frozenset({Reason.RANK_LIMIT}),
)
_IN_DIM = replace(RULES["explicit"], align=aligns.jax_dims)
_LAX = replace(
    _NUMPY, align=aligns.equal_ranks_or_scalar, summary="Operands of one rank, or scalars."
)

ENGINES: Mapping[str, Engine] = MappingProxyType(
    {
        engine.name: engine
        for engine in (
            Engine(
                "numpy",
                "2.4",
                "numpy",
                "numpy",
                _NP,
                _rows(_NUMPY, source=_NP),
                _modes(_NP, numpy=_ONE_WAY),
            ),
            Engine(
                "torch",
                "2.13",
                "torch",
                "torch",
                _TORCH,
                _rows(_NUMPY, source=_TORCH),
                _modes(_TORCH, numpy=_ONE_WAY),
                keeps=True,
            ),
            Engine(
                "tensorflow",
                "2.21",
                "tensorflow-cpu",
                "tensorflow",
                _TF,
                _rows(_NUMPY, source=_TF),
                _modes(_TF, numpy=_ONE_WAY),
            ),
            Engine(
                "jax",
                "0.10",
                "jax",
                "jax",
                _JAX,
                _rows(_NUMPY, source=_JAX),
                _modes(_JAX, numpy=_ONE_WAY, explicit=_IN_DIM),
                ops={"lax.add": _rows(_LAX, source=_JAX)},
            ),
            Engine(
                "onnxruntime",
                "1.31",
                "onnxruntime",
                "onnxruntime",
                _ORT,
                _rows(_NUMPY, source=_ORT),
                _modes(_ORT, bidirectional=_BOTH_WAYS),
                divergences=(
                    Divergence(
                        "PRelu broadcasts both ways; its document, which onnx's shape inference "
                        "follows, says the slope goes one way to the data",
                        Reason.ONE_WAY,
                        _ORT,
                    ),
                ),
            ),
            Engine(
                "openvino",
                "2026.4",
                "openvino",
                "openvino",
                _OPENVINO,
                _rows(_NUMPY, _NONE, _OPENVINO_PDPD, source=_OPENVINO),
                _modes(
                    _OPENVINO,
                    numpy=_ONE_WAY,
                    explicit=_OPENVINO_EXPLICIT,
                    bidirectional=_BOTH_WAYS,
                ),
                ops={"prelu": _rows(_PRELU_CHANNEL, source=_OPENVINO + " (lightly checked)")},
                divergences=(
                    Divergence(
                        "pdpd does not trim B's trailing ones first, as the document says",
                        Reason.OVERRUN,
                        _OPENVINO,
                    ),
                    Divergence(
                        "explicit accepts repeated axes and then computes garbage",
                        Reason.WRONG_RESULT,
                        _OPENVINO,
                    ),
                    Divergence(
                        "a result of rank 13 dies with SIGFPE at compile",
                        Reason.CRASH,
                        _OPENVINO,
                        strikes=lambda plan: plan.rank == 13,
                    ),
                ),
            ),
            Engine(
                "paddle",
                "3.3",
                "paddlepaddle",
                "paddle",
                _PADDLE,
                _rows(replace(RULES["paddle"], silent=frozenset({Reason.OVERRUN})), source=_PADDLE),
                _modes(_PADDLE, numpy=_ONE_WAY),
                keeps=True,
            ),
            Engine(
                "ncnn",
                "1.0.20261020",
                "ncnn",
                "ncnn",
                _NCNN,
                _rows(
                    replace(RULES["ncnn"], silent=frozenset({Reason.EXTENT_MISMATCH})),
                    source=_NCNN,
                ),
            ),
            Engine(
                "mnn",
                "3.6",
                "MNN",
                "MNN",
                _MNN,
                _rows(_MNN_RULE, source=_MNN),
                _modes(_MNN, bidirectional=replace(_BOTH_WAYS, max_rank=9)),
                dtypes=MappingProxyType(
                    {
                        "uint8": "uint8 constants die with SIGSEGV",
                        "int64": "int64 becomes int32",
                        "float64": "float64 reads back as float zeros",
                    }
                ),
            ),
        )
    }
)


def find_engine(name: Any) -> Engine:
    """The row of an engine; a BroadcastError lists the names otherwise."""
    engine = ENGINES.get(name) if isinstance(name, str) else None
    if engine is None:
        close = difflib.get_close_matches(str(name), ENGINES, 1)
        raise BroadcastError(
            f"there is no engine {name!r}",
            reason=Reason.UNKNOWN_ENGINE,
            hint=f"did you mean {close[0]}?" if close else f"one of {', '.join(ENGINES)}",
        )
    return engine
