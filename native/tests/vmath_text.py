"""Writes src/zerostride/fusion/jit/vmath.ll: kernels' functions of floats, for the compiled tier.

    python native/tests/vmath_text.py [--check]

Each functor that has no branches, as clang's intermediate representation of one element: with fused
multiplications and instructions that round (AVX2 on), and without (baseline). fusion/jit/vmath.py
reads it. Needs clang 14 or newer; `--check` writes nothing, and fails if the file is another.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

NATIVE = Path(__file__).resolve().parents[1]
TARGET = NATIVE.parent / "src" / "zerostride" / "fusion" / "jit" / "vmath.ll"
#: Name, functor, operands.
FUNCTIONS = (
    *((name, name.capitalize(), 1) for name in ("exp", "expm1", "log", "log1p", "log2", "log10")),
    *((name, name.capitalize(), 1) for name in ("asin", "acos", "atan", "sinh", "cosh", "tanh")),
    *((name, name.capitalize(), 1) for name in ("asinh", "acosh", "atanh", "erf", "sigmoid")),
    *((name, name.capitalize(), 1) for name in ("gelu", "softplus", "mish")),
    ("gelu_tanh", "GeluTanh", 1),
    ("swish", "Swish", 2),
    ("elu", "Elu", 2),
    ("celu", "Celu", 2),
    ("selu", "Selu", 3),
    ("atan2", "Atan2", 2),
    ("logaddexp", "LogAddExp", 2),
    ("logaddexp2", "LogAddExp2", 2),
)
FLAGS = "-std=c++20 -O2 -fno-vectorize -fno-slp-vectorize -fno-unroll-loops -fno-exceptions"
#: The last two: conditional expressions stay what they are, however long.
FLAGS += " -fno-rtti -ffp-contract=off -fno-math-errno -fno-trapping-math -S -emit-llvm"
FLAGS += (
    " -mllvm -phi-node-folding-threshold=1000 -mllvm -two-entry-phi-node-folding-threshold=1000"
)
VARIANTS = {"plain": "", "fused": "-mavx2 -mfma -mf16c -mbmi -mbmi2"}


def source() -> str:
    """A C++ function of each."""
    lines = ['#include "kernels/activations.h"', '#include "kernels/elementary.h"']
    for name, functor, count in FUNCTIONS:
        for dtype, word in (("float32", "float"), ("float64", "double")):
            args = ["x", "y", "z"][:count]
            given = ", ".join(f"{word} {arg}" for arg in args)
            lines.append(
                f'extern "C" {word} {name}_{dtype}({given}) '
                f"{{ return zs::ZS_ISA::{functor}::of({', '.join(args)}); }}"
            )
    return "\n".join(lines)


def functions(text: str, variant: str) -> list[str]:
    """The bodies of those that are one block, without what is no instruction's."""
    found = []
    for name, args, body in re.findall(
        r"^define [^@]*@(\w+)\(([^)]*)\)[^{]*\{\n(.*?)^\}", text, re.M | re.S
    ):
        lines = [
            re.sub(r"(, !\S+ !\d+)|( #\d+)|;.*", "", line).strip() for line in body.splitlines()
        ]
        lines = [line for line in lines if line and not line.endswith(":")]
        # Promises to an optimiser, which is not asked.
        lines = [re.sub(r"\b(tail|nuw|nsw|exact) ", "", line) for line in lines]
        if any(re.match(r"(br|switch|%\d+ = (phi|load|alloca))\b", line) for line in lines):
            print(f"{variant} {name} has branches or memory: left to its kernel", file=sys.stderr)
            continue
        read = re.findall(r"%\d+", args)
        found.append("\n".join([f"{variant} {name} {' '.join(read)}", *lines, ""]))
    return found


def main() -> int:
    """Writes the file, or compares it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--clang", default="clang++")
    options = parser.parse_args()
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "functions.cpp"
        file.write_text(source())
        for variant, flags in VARIANTS.items():
            command = [options.clang, *FLAGS.split(), *flags.split(), f"-DZS_ISA={variant}"]
            command += [f"-I{NATIVE}", str(file), "-o", "-"]
            made = subprocess.run(command, check=True, capture_output=True, text=True)
            parts += functions(made.stdout, variant)
    text = "\n".join(parts)
    if options.check:
        return int(TARGET.read_text() != text)
    TARGET.write_text(text)
    print(f"{TARGET}: {len(parts)} functions, {len(text)} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
