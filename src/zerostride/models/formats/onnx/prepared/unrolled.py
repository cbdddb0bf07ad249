"""Recurrent layers of a few steps, written out as products and gates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .layouts import part

if TYPE_CHECKING:
    from .rewriting import Rewriting

Array = np.ndarray[Any, Any]
#: The most steps that are written out.
_MOST_STEPS = 16


def unrolled(
    nodes: Rewriting, inputs: list[str], outputs: list[str], given: dict[str, Any]
) -> bool:
    """Writes an LSTM or a GRU in one direction, with its usual functions, step by step.

    Args:
        nodes: what writes them.
        inputs, outputs: the node's tensors; "" for one that is left out.
        given: its attributes, and `op`.

    Returns:
        Whether it was written.
    """
    inputs, outputs = [*inputs, *[""] * 8], [*outputs, *[""] * 3]
    data, (w, r), bias = nodes.shape(inputs[0]), map(nodes.array, inputs[1:3]), inputs[3]
    b = nodes.array(bias) if bias else None
    usual = {"hidden_size", "direction", "input_forget", "layout", "linear_before_reset", "op"}
    fails = (
        given.keys() - usual,
        given.get("direction", b"forward") not in (b"forward", "forward"),
        given.get("input_forget"),
        given.get("layout"),
        inputs[4],
        inputs[7],
        data is None or w is None or r is None or (bias and b is None),
    )
    if any(fails) or data is None or w is None or r is None or not 0 < data[0] <= _MOST_STEPS:
        return False
    steps, batch, size = data
    hidden, gates = r.shape[-1], 4 if given["op"] == "LSTM" else 3
    both = np.zeros((2, gates * hidden), w.dtype) if b is None else b.reshape(2, -1)
    zeros = nodes.constant(np.zeros((batch, hidden), w.dtype))
    states = [nodes.reshaped(n, (batch, hidden)) if n else zeros for n in inputs[5:7]]
    cell = _Cell(nodes, w[0], r[0], both, hidden)
    made = []
    for step in range(steps):
        one = part(nodes, inputs[0], data, 0, step, step + 1) if steps > 1 else inputs[0]
        row = nodes.reshaped(one, (batch, size))
        if given["op"] == "LSTM":
            states = cell.lstm(row, *states)
        else:
            states[0] = cell.gru(row, states[0], after=bool(given.get("linear_before_reset")))
        made.append(nodes.reshaped(states[0], (1, batch * hidden)))
    if outputs[0]:
        whole = nodes.add("Concat", *made, axis=1) if steps > 1 else made[0]
        nodes.reshaped(whole, (steps, 1, batch, hidden), to=outputs[0])
    for name, state in zip(outputs[1:3], states, strict=False):
        if name:
            nodes.reshaped(state, (1, batch, hidden), to=name)
    return True


class _Cell:
    """One step; rows of weights are gates in ONNX's order."""

    def __init__(self, nodes: Rewriting, w: Array, r: Array, both: Array, hidden: int) -> None:
        self.nodes, self.w, self.r, self.both, self.hidden = nodes, w, r, both, hidden

    def _linear(self, name: str, weights: Array, bias: Array) -> str:
        product = self.nodes.add("MatMul", name, self.nodes.constant(weights.T.copy()))
        return self.nodes.add("Add", product, self.nodes.constant(bias.copy()))

    def _gate(self, k: int, row: str, state: str) -> str:
        """A gate before its function."""
        rows = slice(k * self.hidden, (k + 1) * self.hidden)
        given = self._linear(row, self.w[rows], self.both[:, rows].sum(0))
        kept = self.nodes.add("MatMul", state, self.nodes.constant(self.r[rows].T.copy()))
        return self.nodes.add("Add", given, kept)

    def lstm(self, row: str, state: str, cell: str) -> list[str]:
        """The next state and cell."""
        add = self.nodes.add
        let, out, keep = (add("Sigmoid", self._gate(k, row, state)) for k in range(3))
        new = add("Mul", let, add("Tanh", self._gate(3, row, state)))
        cell = add("Add", add("Mul", keep, cell), new)
        return [add("Mul", out, add("Tanh", cell)), cell]

    def gru(self, row: str, state: str, *, after: bool) -> str:
        """The next state; `after`: the reset gate follows the product."""
        add = self.nodes.add
        update, reset = (add("Sigmoid", self._gate(k, row, state)) for k in range(2))
        rows = slice(2 * self.hidden, 3 * self.hidden)
        given = self._linear(row, self.w[rows], self.both[0, rows])
        if after:
            kept = add("Mul", reset, self._linear(state, self.r[rows], self.both[1, rows]))
        else:
            kept = self._linear(add("Mul", reset, state), self.r[rows], self.both[1, rows])
        new = add("Tanh", add("Add", given, kept))
        # (1 - z) * new + z * state
        return add("Add", new, add("Mul", update, add("Sub", state, new)))


__all__ = ["unrolled"]
