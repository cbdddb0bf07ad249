"""RNN, GRU and LSTM, step by step; each direction is computed separately."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.graph import Array
from .call import MULTIPLICATIONS, NodeCall, Unfit, effort, room

_Function = Callable[[Array], Array]


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


#: Activations without parameters of their own.
_FUNCTIONS: Mapping[str, _Function] = MappingProxyType(
    {
        "sigmoid": _sigmoid,
        "tanh": np.tanh,
        "relu": lambda x: np.maximum(x, 0),
        "softsign": lambda x: x / (1 + np.abs(x)),
        "softplus": lambda x: np.logaddexp(x, 0),
    }
)
#: Number of gates by op, and the default activations of a direction.
_GATES = {"RNN": (1, ("Tanh",)), "GRU": (3, ("Sigmoid", "Tanh")),
          "LSTM": (4, ("Sigmoid", "Tanh", "Tanh"))}  # fmt: skip


def _functions(call: NodeCall, directions: int) -> list[list[_Function]]:
    """The activations of each direction."""
    defaults = _GATES[call.node.op][1]
    names = call.attribute("activations") or list(defaults) * directions
    rows = [str(name.decode() if isinstance(name, bytes) else name).lower() for name in names]
    if len(rows) != len(defaults) * directions or not {*rows} <= {*_FUNCTIONS}:
        raise Unfit(f"activations {rows} are not computed here")
    count = len(defaults)
    return [[_FUNCTIONS[name] for name in rows[k * count : (k + 1) * count]]
            for k in range(directions)]  # fmt: skip


def _rnn(x: Array, h: Array, c: Array, r: Array, b: Array, f: list[_Function], _: Any) -> Any:
    return f[0](x + h @ r.T + b), c


def _gru(x: Array, h: Array, c: Array, r: Array, b: Array, f: list[_Function], first: Any) -> Any:
    n = h.shape[-1]
    zr = f[0](x[:, : 2 * n] + h @ r[: 2 * n].T + b[: 2 * n])
    z, reset = zr[:, :n], zr[:, n:]
    if first:  # linear_before_reset
        new = f[1](x[:, 2 * n :] + reset * (h @ r[2 * n :].T + b[2 * n :]))
    else:
        new = f[1](x[:, 2 * n :] + (reset * h) @ r[2 * n :].T + b[2 * n :])
    return (1 - z) * new + z * h, c


def _lstm(x: Array, h: Array, c: Array, r: Array, b: Array, f: list[_Function], peeps: Any) -> Any:
    n = h.shape[-1]
    gates = x + h @ r.T + b
    i, o, forget, new = (gates[:, k * n : (k + 1) * n] for k in range(4))
    pi, po, pf = peeps.reshape(3, n)
    cell = f[0](forget + pf * c) * c + f[0](i + pi * c) * f[1](new)
    return f[0](o + po * cell) * f[2](cell), cell


_STEPS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
)


def run_recurrent(call: NodeCall) -> tuple[Array, ...]:
    """All steps of all directions: every state, the last ones, and the last cells of an LSTM."""
    op = call.node.op
    x, w, r = call[0], call[1], call[2]
    if call.attribute("layout", 0):
        raise Unfit("layout 1 is not computed here")
    if call.attribute("clip") is not None or call.attribute("input_forget", 0):
        raise Unfit("clip and input_forget are not computed here")
    if x.ndim != 3 or w.ndim != 3 or r.ndim != 3:
        raise Unfit(f"data of shape {x.shape}, weights of {w.shape} and {r.shape}")
    steps, batch, _ = x.shape
    directions, gates, hidden = r.shape
    if gates != _GATES[op][0] * hidden or w.shape != (directions, gates, x.shape[2]):
        raise Unfit(f"weights of {w.shape} and {r.shape} for data of shape {x.shape}")
    name = call.attribute("direction", "forward")
    way = name.decode() if isinstance(name, bytes) else name
    if way not in ("forward", "reverse", "bidirectional") or directions != 1 + (way[0] == "b"):
        raise Unfit(f"direction {way!r} with weights for {directions}")
    functions = _functions(call, directions)
    # Each step costs at least one pass of a loop.
    effort(steps, directions, max(MULTIPLICATIONS, batch * gates * (x.shape[2] + hidden)))
    bias = call.maybe(3)
    bias = np.zeros((directions, 2 * gates), x.dtype) if bias is None else bias
    lengths = call.maybe(4)
    counts = np.full(batch, steps) if lengths is None else lengths.reshape(-1).astype(int)
    state = (directions, batch, hidden)
    first, cells = (
        np.zeros(state, x.dtype) if array is None else array
        for array in (call.maybe(5), call.maybe(6) if op == "LSTM" else None)
    )
    peeps = call.maybe(7) if op == "LSTM" else None
    states = np.zeros(room((steps, directions, batch, hidden), x.dtype), x.dtype)
    last, ends = np.zeros(state, x.dtype), np.zeros(state, x.dtype)
    for d in range(directions):
        backwards = way == "reverse" or d == 1
        extra: Any = call.attribute("linear_before_reset", 0)
        if op == "LSTM":
            extra = np.zeros(3 * hidden, x.dtype) if peeps is None else peeps[d]
        inner, outer = bias[d, :gates].copy(), bias[d, gates:].copy()
        if op != "GRU" or not extra:  # otherwise the reset also applies to the state's last bias
            inner, outer = inner + outer, np.zeros_like(outer)
        h, c = first[d], cells[d]
        for turn in range(steps):
            at = steps - 1 - turn if backwards else turn
            new, cell = _STEPS[op](x[at] @ w[d].T + inner, h, c, r[d], outer, functions[d], extra)
            live = (at < counts)[:, None]
            h, c = np.where(live, new, h), np.where(live, cell, c)
            states[at, d] = np.where(live, new, 0)
        last[d], ends[d] = h, c
    return (states, last, ends) if op == "LSTM" else (states, last)
