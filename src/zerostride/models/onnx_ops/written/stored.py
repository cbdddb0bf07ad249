"""How a GroupQueryAttention stores its keys and values: as they are, or quantised.

A quantised one is round(x * (1 / scale)), ties to even, saturated; NaN gives the highest number.
Of 4 bits two lie in a byte, the one of the even feature in the low half, each with 8 added. The
scale is one number, or one for each head and feature. New keys are stored before they are read.
Source: ONNX Runtime's schema of com.microsoft.GroupQueryAttention, mlas/lib/qkv_quant.cpp; run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ....attention.stored import Stored, stored_as
from ....errors import Misfit
from .calls import CompoundCall, Form, NotWritten


@dataclass(frozen=True, slots=True)
class Storage:
    """How numbers are stored.

    Attributes:
        form: the bits, and where the scale lies; None: as they are.
        sizes: of the scale, on the axes of the keys.
    """

    form: Stored | None
    sizes: tuple[int, ...] = ()

    def width(self, features: int) -> int:
        """How many numbers the last axis of the past has."""
        return features if self.form is None else self.form.width(features)

    def read(self, call: CompoundCall, name: str, shape: tuple[int, ...]) -> str:
        """Stored numbers as floats of this shape; those of 4 bits have 8 added."""
        if self.form is None:
            return name
        numbers = call.writer.as_float(name)
        if self.form.bits == 8:
            return numbers
        high = call.writer.add("Floor", call.with_number("Mul", numbers, 1 / 16))
        low = call.writer.add("Sub", numbers, call.with_number("Mul", high, 16))
        halves = [call.reshaped(half, *shape[:3], shape[3] // 2, 1) for half in (low, high)]
        return call.reshaped(call.joined(halves, 4), *shape)

    def write(self, call: CompoundCall, name: str, shape: tuple[int, ...]) -> str:
        """Floats of this shape as they are stored."""
        if self.form is None:
            return name
        if self.form.bits == 8:
            return call.writer.as_kind(name, "int8")
        *outer, features = shape
        halves = call.reshaped(name, *outer, features // 2, 2)
        low, high = (call.part(halves, 4, half, half + 1) for half in (0, 1))
        both = call.writer.add("Add", low, call.with_number("Mul", high, 16))
        return call.writer.as_kind(call.reshaped(both, *outer, features // 2), "uint8")

    def stored(self, call: CompoundCall, name: str, which: int) -> str:
        """New keys (`which` 0) or values (1), rounded, as floats."""
        if self.form is None:
            return name
        scaled = call.writer.add("Mul", name, self._inverse(call, which))
        bias = self.form.bias
        rounded = call.writer.add("Round", scaled)
        bounds = (call.writer.constant(np.float32(end)) for end in self.form.ends)
        rounded = call.writer.add("Clip", rounded, *bounds)
        known, highest = call.writer.add("Equal", rounded, rounded), np.float32(self.form.ends[1])
        rounded = call.writer.add("Where", known, rounded, call.writer.constant(highest))
        return call.with_number("Add", rounded, bias) if bias else rounded

    def numbers(self, call: CompoundCall, name: str, which: int) -> str:
        """The numbers that stored ones stand for."""
        if self.form is None:
            return name
        if self.form.bias:
            name = call.with_number("Sub", name, self.form.bias)
        return call.writer.add("Mul", name, self._scale(call, which))

    def _scale(self, call: CompoundCall, which: int) -> str:
        return call.reshaped(call.input(12 + which), *self.sizes)

    def _inverse(self, call: CompoundCall, which: int) -> str:
        """1 / scale; 1 where the scale is 0."""
        scale, one = self._scale(call, which), call.writer.constant(np.float32(1))
        zero = call.writer.add("Equal", scale, call.writer.constant(np.float32(0)))
        return call.writer.add("Div", one, call.writer.add("Where", zero, one, scale))


def check_stored(form: Form) -> None:
    """Raises NotWritten for attributes and scales that ONNX Runtime's CPU refuses."""
    try:
        stored = stored_as(form.attributes)
    except Misfit as misfit:
        raise NotWritten(misfit.detail) from misfit
    form.refuse(
        (stored and not (form.input(12) and form.input(13)), "a quantised past without scales"),
        (stored and not form.input(3), "quantised keys without a past"),
    )


def storage_of(call: CompoundCall, heads: int, features: int) -> Storage:
    """How a call stores its keys and values.

    Raises:
        NotWritten: the past or a scale does not fit.
    """
    form = stored_as(call.attributes)
    if form is None:
        return Storage(None)
    sizes = (1, heads, 1, features) if form.by_feature else (1, 1, 1, 1)
    for position in (3, 4):
        call.refuse((call.kind(position) != form.dtype, f"a past that is not {form.dtype}"))
    for position in (12, 13):
        shape = call.writer.shape(call.input(position))
        fits = shape is not None and math.prod(shape) == math.prod(sizes)
        call.refuse((not fits, f"a scale of other sizes than {sizes}"))
    return Storage(form, sizes)
