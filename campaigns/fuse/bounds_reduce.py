"""The interval of a reduction; see `bounds`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from zerostride.fusion.reference import value_of
from zerostride.fusion.trace.graph import Node, Reduce

from .intervals import FLOATS, Array, Bounds, Mask, exactly, is_float, moved, straddles


class Reduction:
    """A reduction of intervals. They are laid out as rows, the last axis being reduced."""

    def __init__(self, node: Reduce, nodes: Sequence[Node], given: Bounds, value: Array) -> None:
        self.node, self.nodes, self.given, self.value = node, nodes, given, value
        self.count = math.prod(given.value.shape[axis] for axis in node.over)

    def bounds(self) -> Bounds:
        """The result's."""
        op, given = self.node.op, self.given
        if op in ("sum", "prod") and is_float(self.value) and self.node.dtype in FLOATS:
            return self._sum() if op == "sum" else self._product()
        if op in ("argmin", "argmax"):
            return self._place()
        if given.exact:
            ends = exactly(self.value)
        else:
            if op in ("any", "all"):
                given = self._truths()
            low, high = self._of(given.low), self._of(given.high)
            opened = self._any(given.open)
            if given.low.dtype.kind in "iu" and op in ("sum", "prod"):
                opened = opened | self._any(given.low != given.high)
            ends = Bounds(self.value, low, high, opened)
        if op in ("min", "max") and is_float(self.value) and (self.value == 0).any():
            zero = self.value == 0  # of either sign
            low = np.where(zero & (ends.low == 0), -np.abs(ends.low), ends.low)
            high = np.where(zero & (ends.high == 0), np.abs(ends.high), ends.high)
            ends = Bounds(self.value, low, high, ends.open)
        return ends

    def _of(self, array: Array, op: str | None = None) -> Array:
        """The reduction of other values of the argument's dtype."""
        node = self.node
        if op is not None:
            node = Reduce(
                op, node.arg, node.over, node.keepdims, node.compute, node.shape, node.dtype
            )
        return np.asarray(value_of(node, self.nodes, {node.arg: array}, ()))

    def _rows(self, array: Any) -> Array:
        """Any array of the argument's shape, its reduced axes at the end, made one."""
        array = np.asarray(array)
        kept = [axis for axis in range(array.ndim) if axis not in self.node.over]
        rows = tuple(array.shape[axis] for axis in kept)
        return np.asarray(array.transpose(*kept, *self.node.over).reshape(*rows, self.count))

    def _shaped(self, array: Any) -> Array:
        return np.asarray(array).reshape(self.node.shape)

    def _any(self, mask: Mask | None) -> Mask:
        if mask is None:
            return np.zeros(self.node.shape, np.bool_)
        return self._shaped(self._rows(mask).any(axis=-1))

    def _truths(self) -> Bounds:
        """Whether the elements are true."""
        given = self.given
        low, high = np.asarray(given.low != 0), np.asarray(given.high != 0)
        sure, may = low & high, low | high
        if given.low.dtype.kind != "b":
            sure &= ~straddles(given)
        if given.open is not None:
            sure, may = sure & ~given.open, may | given.open
        # Nodes are evaluated in the dtype that they have.
        dtype = given.value.dtype
        return Bounds(given.value, sure.astype(dtype), may.astype(dtype))

    def _finite_sizes(self) -> tuple[Array, Mask]:
        """The elements' sizes, 0 for those that are infinite or NaN; and which are neither."""
        dtype = np.longdouble if self.value.dtype.itemsize == 8 else np.float64
        sizes = np.fmax(np.abs(self.given.low.astype(dtype)), np.abs(self.given.high.astype(dtype)))
        finite = np.isfinite(sizes)
        return self._rows(np.where(finite, sizes, 0)), self._rows(finite)

    def _uncertain(self) -> Mask:
        """Rows with an element that is open, or that may be infinite or may not."""
        given = self.given
        value = np.asarray(given.value)
        if given.exact or value.dtype.kind != "f":
            return self._any(given.open)
        low, high = np.isfinite(given.low), np.isfinite(given.high)
        same = (low == high) & (low == np.isfinite(value))
        return self._any(given.open) | self._any(~same)

    def _sum(self) -> Bounds:
        sizes, _ = self._finite_sizes()
        total = self._shaped(sizes.sum(axis=-1))
        info = np.finfo(self.value.dtype)
        opened = self._uncertain() | (total >= float(info.max))
        error = (16 + math.log2(max(self.count, 1))) * float(info.eps) * total
        low, high = self._of(self.given.low), self._of(self.given.high)
        if self.count > 1:
            low, high = moved(low, high, np.where(np.isfinite(self.value), error, 0))
        zero = self.value == 0  # of nothing but -0: NumPy's own sums differ
        low = np.where(zero & (low == 0), np.asarray(-0.0, low.dtype), low)
        high = np.where(zero & (high == 0), np.asarray(0.0, high.dtype), high)
        return Bounds(self.value, low, high, opened)

    def _product(self) -> Bounds:
        if self.count <= 1 and self.given.exact:
            return exactly(self.value)
        dtype = self.value.dtype
        info = np.finfo(dtype)
        sizes, finite = self._finite_sizes()
        counted = finite & (sizes != 0)
        known = np.where(counted, sizes, 1)
        # Whatever the order, no partial product may leave the range.
        logs = np.log2(known.astype(np.longdouble))
        above = np.where(logs > 0, logs, 0).sum(axis=-1)
        below = np.where(logs < 0, logs, 0).sum(axis=-1)
        out = (above >= math.log2(float(info.max)) - 1) | (below <= math.log2(float(info.tiny)) + 1)
        opened = self._uncertain() | self._shaped(out)
        error = 2.0 * self.count * float(info.eps)
        if not self.given.exact:
            # Halved and doubled is more than any value whose sign is known may be off by.
            opened |= self._any(
                straddles(self.given)
                | (self.given.low * self.given.high == 0) & (self.given.low != self.given.high)
            )
            width = self._rows(np.abs(self.given.high.astype(np.longdouble) - self.given.low))
            relative = np.where(counted, width / known, 0).sum(axis=-1)
            opened |= self._shaped(relative > 0.125)
            grown = self._shaped(2 * relative) + error
        else:
            grown = np.full(self.node.shape, error, np.longdouble)
        by = np.abs(self.value.astype(np.longdouble)) * grown
        low, high = moved(self.value, self.value, np.where(np.isfinite(self.value), by, 0))
        zero = self.value == 0
        low = np.where(zero, np.asarray(-0.0, dtype), low)
        high = np.where(zero, np.asarray(0.0, dtype), high)
        return Bounds(self.value, low, high, opened)

    def _place(self) -> Bounds:
        """An extremum's place is known where nothing else may be as large."""
        given = self.given
        if given.exact or not self.value.size:
            return exactly(self.value)
        low, high = self._rows(given.low), self._rows(given.high)
        if low.dtype.kind == "b":
            low, high = low.astype(np.int8), high.astype(np.int8)
        if self.node.op == "argmin":
            low, high = (-high, -low) if low.dtype.kind == "f" else (~high, ~low)
        place = np.asarray(self.value).reshape(low.shape[:-1])[..., None]
        best_low = np.take_along_axis(low, place, -1)
        best_high = np.take_along_axis(high, place, -1)
        unsure = (low != high) & (low == low)
        rivals = (high >= best_low) & (unsure | (best_low != best_high))
        np.put_along_axis(rivals, place, False, -1)
        opened = self._shaped(rivals.any(axis=-1)) | self._any(given.open)
        return Bounds(self.value, self.value, self.value, opened)
