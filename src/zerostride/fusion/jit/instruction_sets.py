"""The engine's instruction sets, as LLVM and the compiled tier know them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """An instruction set of the engine (native/isa.cpp) in LLVM's terms.

    Attributes:
        features: LLVM's features beyond the baseline processor of the architecture.
        vector: bytes of a register.
        masked: whether rows end in a masked vector; otherwise they end element by element.
        rounds: as in `values.Code`.
        halves: as in `values.Code`.
        functions: which of vmath.ll's functions its kernels use: "fused", "plain", or "" for none.
    """

    processor: str
    features: str
    vector: int
    masked: bool = False
    rounds: bool = True
    halves: bool = True
    functions: str = ""


_AVX2 = "+avx2,+fma,+f16c,+bmi,+bmi2"
#: By the engine's names.
TARGETS = {
    "baseline": InstructionSet("x86-64", "", 16, rounds=False, halves=False, functions="plain"),
    "avx2": InstructionSet("x86-64", _AVX2, 32, functions="fused"),
    "avx512": InstructionSet(
        "x86-64",
        _AVX2 + ",+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512cd",
        64,
        masked=True,
        functions="fused",
    ),
    "neon": InstructionSet("generic", "+neon", 16),
}
