"""The interval of an op; see `bounds`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zerostride.compute.semantics import WEAK
from zerostride.fusion.reference import laid, value_of
from zerostride.fusion.trace.graph import Apply, Node

from ..native.judge import BOUND, BOUNDS, FAMILIES
from .intervals import (
    FLOATS,
    Array,
    Bounds,
    Mask,
    exactly,
    is_float,
    lower,
    moved,
    spacing,
    straddles,
)

#: Ops that rise or fall in each argument all the way: their results at the ends bound them.
_MONOTONE = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "floor_divide", "negative", "positive", "sign"),
        *("sqrt", "reciprocal", "copysign", "heaviside", "where", "maximum", "minimum", "fmax"),
        *("fmin", "clip", "relu", "floor", "ceil", "round", "trunc", "cast", "less", "less_equal"),
        *("greater", "greater_equal", "logical_and", "logical_or", "logical_not"),
    )
)
#: Ops in which integers do not wrap around.
_NEVER_WRAPS = frozenset(
    (
        *("where", "maximum", "minimum", "fmax", "fmin", "clip", "relu", "floor", "ceil", "round"),
        *("trunc", "positive", "sign", "less", "less_equal", "greater", "greater_equal", "equal"),
        *("not_equal", "logical_and", "logical_or", "logical_xor", "logical_not"),
    )
)
#: Ops with a pole where this argument is 0.
_POLES: Mapping[str, int] = {
    **dict.fromkeys(("divide", "floor_divide", "remainder", "fmod"), 1),
    **dict.fromkeys(("reciprocal", "rsqrt", "pow"), 0),
}
#: x times an exponential, which has few digits where it is subnormal.
_TIMES_AN_EXPONENTIAL = frozenset({"mish", "swish", "gelu", "gelu_tanh"})
#: 0 / 0 and 0 times infinity are no numbers.
_NAN_AT_ZERO = frozenset({"multiply", "divide", "floor_divide"})
#: Monotone on either side of 0 alone.
_TURNS_AT_ZERO = frozenset({"copysign", "heaviside"})
#: Of two operands: what they give is new where they are equal.
_WHERE_EQUAL = frozenset({"equal", "not_equal", "squared_difference"})
#: Periodic: an argument that is known to less than this is not known.
_PERIODIC = frozenset({"sin", "cos", "tan"})
_TURN = 0.125
_CHOICES = frozenset({"maximum", "minimum", "fmax", "fmin", "clip"})


class Application:
    """An op on intervals."""

    def __init__(
        self, node: Apply, nodes: Sequence[Node], args: Sequence[Bounds], value: Array
    ) -> None:
        self.node, self.nodes, self.value = node, nodes, value
        self.args = [
            exactly(np.asarray(known.value, nodes[arg].dtype))
            if type(known.value) in WEAK and not known.exact
            else known
            for arg, known in zip(node.args, args, strict=True)
        ]
        self.inexact = sorted(
            {arg for arg, known in zip(node.args, args, strict=True) if not known.exact}
        )
        self.known = dict(zip(node.args, self.args, strict=True))

    def bounds(self) -> Bounds:
        """The result's."""
        low = high = self.value
        opened: Mask | None = None
        if self.inexact:
            low, high, opened = self._at_the_ends()
        if is_float(self.value) and self.node.dtype in FLOATS:
            low, high = self._widened(low, high)
        opened = self._known_differences(opened)
        return Bounds(self.value, low, high, opened)

    def _laid(self, k: int, mask: Any) -> Mask:
        """A mask of an argument, as the result's elements see it."""
        return laid(np.asarray(mask), self.node.axes[k], self.node.shape)

    def _at_the_ends(self) -> tuple[Array, Array, Mask | None]:
        op = self.node.op
        zero = op not in _MONOTONE or op in _NAN_AT_ZERO | _TURNS_AT_ZERO
        zero |= self.node.compute[0] == "bool"
        corners: list[list[Array]] = []
        for arg in self.inexact:
            known = self.known[arg]
            ends = [known.low, known.high]
            if zero and known.low.dtype.kind != "b":
                ends.append(np.clip(np.zeros((), known.low.dtype), known.low, known.high))
            corners.append(ends)
        low = high = self.value
        opened = self._opened()
        if self.node.op == "pow" and self.value.dtype.kind in "iu":
            return low, high, opened  # a base or a power that is not known is open
        held = {arg: known.value for arg, known in self.known.items()}
        for chosen in itertools.product(*corners):
            held.update(zip(self.inexact, chosen, strict=True))
            value = value_of(self.node, self.nodes, held, ())
            if value.dtype.kind in "fc":
                opened |= (value != value) != (self.value != self.value)
            low, high = lower(low, value), lower(high, value, highest=True)
        if self.node.op in _WHERE_EQUAL:
            low, high = self._where_equal(low, high)
        return low, high, opened

    def _opened(self) -> Mask:
        """The elements where an argument is open or may have any value for the op."""
        node = self.node
        opened = np.zeros(node.shape, np.bool_)
        for k, known in enumerate(self.args):
            if known.exact:
                continue
            mask = known.open
            if node.op == "where" and k and mask is not None:
                mask = self._laid(k, mask) & self._may_choose(k)
                opened |= mask
                continue
            if mask is not None:
                opened |= self._laid(k, mask)
            if _POLES.get(node.op) == k and known.low.dtype.kind == "f":
                opened |= self._laid(k, straddles(known))
            if known.low.dtype.kind in "iu" and not self._keeps_integers(k):
                opened |= self._laid(k, known.low != known.high)
            if node.op in _PERIODIC:
                width = np.subtract(known.high, known.low, dtype=np.float64)  # of truth values, too
                opened |= self._laid(k, ~(width <= _TURN) & (known.low != known.high))
        if node.op in ("remainder", "fmod"):
            opened |= self._other_quotient()
        if node.op == "pow" and is_float(self.value):
            # The power of a negative base is a number where the exponent is whole, even or odd.
            base, exponent = self.args
            negative = self._laid(0, base.low < 0)
            opened |= negative & self._laid(1, exponent.low != exponent.high)
        return opened

    def _keeps_integers(self, k: int) -> bool:
        """Whether an integer that is not known may be bounded all the same."""
        to = np.dtype(self.node.compute[k])
        given = np.dtype(self.nodes[self.node.args[k]].dtype)
        if to.kind in "iu" and not np.can_cast(given, to):
            return False
        if self.node.op == "cast":
            target = np.dtype(self.node.dtype)
            return target.kind not in "iu" or np.can_cast(given, target)
        return to.kind not in "iu" or self.node.op in _NEVER_WRAPS

    def _may_choose(self, k: int) -> Mask:
        """Marks the elements at which `where` may take argument k: 1 where the condition holds."""
        condition = self.args[0]
        if condition.exact:
            chosen = np.asarray(condition.value) != 0
            return self._laid(0, chosen if k == 1 else ~chosen)
        ends = [condition.low != 0, condition.high != 0]
        if condition.low.dtype.kind != "b":
            ends.append(~straddles(condition))
        if k == 1:
            return self._laid(0, ends[0] | ends[1])
        return self._laid(0, ~np.logical_and.reduce(ends))

    def _other_quotient(self) -> Mask:
        """The elements with another possible quotient, and so any possible remainder."""
        quotients = []
        a, b = (self.known[arg] for arg in self.node.args)
        for chosen in itertools.product((a.low, a.high), (b.low, b.high)):
            held = dict(zip(self.node.args, chosen, strict=True))
            node = Apply(
                "divide",
                self.node.args,
                self.node.axes,
                self.node.compute,
                self.node.shape,
                self.node.dtype,
            )
            quotient = value_of(node, self.nodes, held, ())
            whole = np.floor(quotient) if self.node.op == "remainder" else np.trunc(quotient)
            # One that is a whole number may have been rounded to it.
            quotients.append(np.where(quotient == np.rint(quotient), np.nan, whole))
        return np.asarray(~np.logical_and.reduce([one == quotients[0] for one in quotients]))

    def _where_equal(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Two intervals with a number in common may be equal."""
        a, b = (self.known[arg] for arg in self.node.args)
        (alow, ahigh), (blow, bhigh) = (
            [laid(np.asarray(end), axes, self.node.shape) for end in (one.low, one.high)]
            for one, axes in zip((a, b), self.node.axes, strict=True)
        )
        common = (alow <= bhigh) & (blow <= ahigh) & ~self._both_exact(alow, ahigh, blow, bhigh)
        if self.node.op == "equal":
            return low, high | common
        least = np.where(common, np.zeros((), low.dtype), low).astype(low.dtype)
        return least, high

    def _both_exact(self, alow: Array, ahigh: Array, blow: Array, bhigh: Array) -> Mask:
        return np.asarray((alow == ahigh) & (blow == bhigh))

    def _widened(self, low: Array, high: Array) -> tuple[Array, Array]:
        op = self.node.op
        if self.inexact and op not in _MONOTONE:
            with np.errstate(all="ignore"):
                width = high - low
            low, high = moved(low, high, np.where(np.isfinite(width), width, 0))
            low, high = moved(low, high, 2 * spacing(low), 2 * spacing(high))
        if op in _CHOICES and self.value.size:
            zero = self.value == 0
            if zero.any():
                low = np.where(zero & (low == 0), np.asarray(-0.0, low.dtype), low)
                high = np.where(zero & (high == 0), np.asarray(0.0, high.dtype), high)
        if FAMILIES[op] != "functions":
            return low, high
        units = 2 * BOUNDS.get((op, self.value.dtype.itemsize), BOUND)
        down, up = spacing(low), spacing(high)
        if op.startswith("logaddexp"):  # near 0 no digits of the operands are left
            for arg, axes in zip(self.node.args, self.node.axes, strict=True):
                operand = np.asarray(self.known[arg].value).astype(low.dtype)
                unit = laid(spacing(operand), axes, self.node.shape)
                down, up = np.fmax(down, unit), np.fmax(up, unit)
        low, high = moved(low, high, units * down, units * up)
        if op in _TIMES_AN_EXPONENTIAL:
            x, axes = np.abs(np.asarray(self.known[self.node.args[0]].value)), self.node.axes[0]
            least = np.finfo(low.dtype).smallest_subnormal
            by = laid(np.where(np.isfinite(x), x, 0), axes, self.node.shape) * (2 * BOUND)
            low, high = moved(low, high, by.astype(np.longdouble) * least)
        return self._at_overflow(low, high)

    def _at_overflow(self, low: Array, high: Array) -> tuple[Array, Array]:
        """A function of finite numbers that is infinite may as well be the largest number."""
        infinite = np.isinf(self.value)
        if not infinite.any():
            return low, high
        finite = np.ones(self.node.shape, np.bool_)
        for k, known in enumerate(self.args):
            finite &= self._laid(k, np.isfinite(np.asarray(known.value, np.float64)))
        largest = np.finfo(self.value.dtype).max
        with np.errstate(all="ignore"):
            low = np.where(finite & (low == np.inf), largest, low).astype(low.dtype)
            high = np.where(finite & (high == -np.inf), -largest, high).astype(high.dtype)
        return low, high

    def _known_differences(self, opened: Mask | None) -> Mask | None:
        """Results that the standard leaves open or that differ in NumPy: see `native.judge`."""
        extra: Mask | None = None
        if self.node.op == "copysign":  # the sign of a NaN is nobody's
            sign = np.asarray(self.known[self.node.args[1]].value)
            extra = self._laid(1, sign != sign)
        if self.node.op == "pow" and is_float(self.value):
            # NumPy takes a square root for the power 0.5: of -inf that is NaN, of -0 it is -0.
            x, power = (
                laid(np.asarray(self.known[arg].value), axes, self.node.shape)
                for arg, axes in zip(self.node.args, self.node.axes, strict=True)
            )
            extra = np.asarray((power == 0.5) & ((x == -np.inf) | (x == 0)))
        if extra is None or not extra.any():
            return opened
        return extra if opened is None else opened | extra
