"""Quantisation as a broadcast: a scale for each tensor, axis or block, and what engines make of it.

A scale repeats along axes as any operand does, with a stride of zero; a block is an axis split in
two. `placing` finds the axes of a scale, `model` has the frozen value and the types of rows, `rows`
what each engine's measured release computes, and `planning` the public function.
In: shapes of a tensor and its scale. Out: a QuantizationPlan, a Plan over split axes.
"""

from .model import QuantizationPlan, Quantizer, Rounding
from .planning import plan_quantization
from .rows import QUANTIZERS, STANDARD, find_quantizer

__all__ = [
    "QUANTIZERS",
    "STANDARD",
    "QuantizationPlan",
    "Quantizer",
    "Rounding",
    "find_quantizer",
    "plan_quantization",
]
