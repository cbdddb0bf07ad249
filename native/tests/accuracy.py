"""Measures the errors of native/vmath.h in units in the last place, beside NumPy's.

    python native/tests/accuracy.py                    the table
    python native/tests/accuracy.py --write            ... into docs/accuracy.md
    python native/tests/accuracy.py --all exp sin      all 2^32 floats of these functions (minutes)
    python native/tests/accuracy.py --speed            elements a second instead

Both sides are judged by the same code: a float's results against the C library's double functions,
a double's against its long double functions. An error of 0.5 is a perfectly rounded result. Special
values, signs of zeros, overflow and subnormals are part of it: a wrong one counts as infinite.
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from vmath_library import Emulated, Functions, emulator, instruction_sets

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"

# The largest error allowed, by function: of float32 and of float64.
LIMITS = {
    "exp": (1.2, 1.2),
    "exp2": (1.2, 1.2),
    "expm1": (1.6, 2.2),
    "log": (1.0, 1.0),
    "log2": (1.0, 0.9),
    "log10": (0.9, 0.8),
    "log1p": (1.3, 1.3),
    "sin": (1.8, 0.9),
    "cos": (1.8, 0.9),
    "tan": (3.8, 2.3),
    "sinh": (2.3, 2.5),
    "cosh": (1.6, 1.6),
    "tanh": (2.6, 2.8),
    "asin": (2.5, 2.5),
    "acos": (1.3, 1.3),
    "atan": (2.3, 2.5),
    "asinh": (1.9, 1.9),
    "acosh": (2.3, 2.3),
    "atanh": (2.3, 2.3),
    "erf": (3.3, 2.7),
    "sigmoid": (2.6, 2.6),
    "softplus": (1.9, 1.9),
    "mish": (3.8, 3.8),
    "gelu": (4.0, 4.0),
    "rsqrt": (1.5, 1.5),
    "pow": (2.2, 1.3),
    "atan2": (2.5, 2.6),
    "logaddexp": (2.6, 2.8),
    "sqrt": (0.5, 0.5),
    "floor": (0.0, 0.0),
    "ceil": (0.0, 0.0),
    "trunc": (0.0, 0.0),
    "round_even": (0.0, 0.0),
}

# NumPy's function where it has one.
NUMPY: dict[str, Callable[..., np.ndarray]] = {
    **{name: getattr(np, name) for name in LIMITS if hasattr(np, name)},
    "round_even": np.rint,
}

TEXT = """# Accuracy of the native engine's elementary functions

Made by `python native/tests/accuracy.py --write`. The table shows the largest measured error of
each function, in units in the last place of the exact result. A perfectly rounded result has 0.5.
*With FMA* means AVX2, AVX-512 and NEON, which give the same bits; *without* means the x86-64
baseline. *NumPy* is NumPy {numpy}'s own error, measured in the same way on a processor with {best}
(its functions differ by processor).

The arguments are special values with their neighbours, random bit patterns, and random numbers of
usual sizes, {count} of each kind. A wrong special value (C99, Annex F), sign of zero, overflow or
subnormal would count as an infinite error. The C library's double functions judge float32, and its
long double functions judge float64. For logaddexp the unit is that of its largest argument where
the result is smaller, because near 0 the result has lost all digits of the arguments.

| function | float32 with FMA | without | NumPy | float64 with FMA | without | NumPy |
|---|---|---|---|---|---|---|
{rows}

sin, cos and tan are accurate for angles of every size. float32 angles up to 2^15 are reduced in
floats and up to 2^29 in doubles, float64 angles up to 2^20; beyond that the C library computes. An
element's result does not depend on its neighbours, on the number of threads or on the layout of
its array. [benchmarks/SUMS.md](../benchmarks/SUMS.md) has the accuracy of sums and other
reductions.
"""


@dataclass(frozen=True)
class Error:
    """The largest error of one function, and the arguments that have it."""

    ulp: float = -1.0
    at: tuple[float, ...] = ()

    def or_worse(self, other: tuple[float, tuple[float, ...]]) -> "Error":
        """The larger one."""
        return Error(*other) if other[0] > self.ulp else self


def special(dtype: type) -> np.ndarray:
    """Numbers at which something happens, with their neighbours, of both signs."""
    info = np.finfo(dtype)
    plain = [
        1,
        0.5,
        2,
        3,
        4,
        5,
        7,
        10,
        100,
        1000,
        0.1,
        0.25,
        1 / 3,
        1.5,
        2.5,
        0.75,
        1e4,
        1e10,
        1e22,
    ]
    # Where exponentials overflow, become subnormal and vanish; where angles are reduced otherwise.
    float_edges = [87.33655, 88.72284, 89.41599, 103.97, 103.98, 127, 128, 149, 150]
    double_edges = [
        708.396,
        709.782712893384,
        710.475860073944,
        745.1332191019412,
        1023,
        1074,
        1075,
    ]
    angles = [math.pi / 2, math.pi, 2.0**15, 2.0**20, 2.0**29, 2.0**31]
    ends = [info.max, info.tiny, info.smallest_subnormal, info.eps, info.eps / 2, np.inf, 0]
    powers = [2.0**k for k in range(-30, 60)] + [2.0**k - 1 for k in range(2, 54)]
    all_of_them = [*plain, *float_edges, *double_edges, *angles, *map(float, ends), *powers]
    with np.errstate(over="ignore"):
        at = np.array(all_of_them, dtype)
        near = np.concatenate([at, np.nextafter(at, dtype(0)), np.nextafter(at, dtype(np.inf))])
    both = np.concatenate([near, -near, np.array([np.nan], dtype)])
    return np.unique(both.view(_unsigned(dtype))).view(dtype)


def _unsigned(dtype: type) -> type:
    return np.uint32 if dtype is np.float32 else np.uint64


def unary_samples(dtype: type, count: int) -> Iterator[np.ndarray]:
    """Arguments of functions of one."""
    rng = np.random.default_rng(7)
    yield special(dtype)
    yield _patterns(rng, dtype, count)
    for scale in (0.01, 0.3, 1.0, 4.0, 30.0, 300.0, 1e5):
        yield (rng.standard_normal(count) * scale).astype(dtype)
    yield _near_1(rng, dtype, count)
    yield (rng.integers(1, 2000, count) * (math.pi / 2)).astype(dtype)


def binary_samples(name: str, dtype: type, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Arguments of functions of two."""
    rng = np.random.default_rng(7)
    s = special(dtype)
    few = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2, 3, -2, -3, 0.5, -0.5, 1e300, -1e300]
    with np.errstate(over="ignore"):
        some = np.concatenate([s[:: s.size // 250], np.array(few, dtype)])
    x, y = np.meshgrid(some, some)
    yield x.ravel(), y.ravel()
    yield _patterns(rng, dtype, count), _patterns(rng, dtype, count)
    for scale in (0.1, 1.0, 10.0, 100.0):
        x, y = (rng.standard_normal((2, count)) * scale).astype(dtype)
        yield x, y
        yield np.abs(x), y
    if name == "pow":
        # Exponents that lead to results of every size, subnormal ones too.
        base = np.concatenate([_near_1(rng, dtype, count), np.abs(_patterns(rng, dtype, count))])
        top = 90.0 if dtype is np.float32 else 740.0
        with np.errstate(all="ignore"):
            sizes = rng.uniform(-top, top, base.size)
            exponent = (sizes / np.log(base.astype(np.float64))).astype(dtype)
        yield base, exponent
        yield -base, np.rint(exponent)
        # The largest exponents multiply the logarithm's error most.
        base = rng.uniform(0.85, 1.2, count).astype(dtype)
        sizes = rng.uniform(0.8, 0.98, count) * rng.choice([-top, top], count)
        with np.errstate(all="ignore"):
            exponent = (sizes / np.log(base.astype(np.float64))).astype(dtype)
        yield base, exponent


def _patterns(rng: np.random.Generator, dtype: type, count: int) -> np.ndarray:
    unsigned = _unsigned(dtype)
    return rng.integers(0, np.iinfo(unsigned).max, count, unsigned, endpoint=True).view(dtype)


def _near_1(rng: np.random.Generator, dtype: type, count: int) -> np.ndarray:
    return (1 + rng.uniform(-0.5, 0.5, count) * 2.0 ** -rng.integers(0, 20, count)).astype(dtype)


def samples(
    functions: Functions, name: str, dtype: type, count: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Arguments of a function; of one with one argument the second array says nothing."""
    if functions.inputs(name) == 2:
        yield from binary_samples(name, dtype, count)
    else:
        yield from ((a, a) for a in unary_samples(dtype, count))


def measure(functions: Functions, name: str, dtype: type, count: int) -> Error:
    """The error of native/vmath.h."""
    worst = Error()
    for a, b in samples(functions, name, dtype, count):
        worst = worst.or_worse(functions.judge(name, a, b, functions.compute(name, a, b)))
    return worst


def measure_numpy(functions: Functions, name: str, dtype: type, count: int) -> Error | None:
    """The error of NumPy's function, or None where it has none."""
    if name not in NUMPY:
        return None
    worst = Error()
    for a, b in samples(functions, name, dtype, count):
        with np.errstate(all="ignore"):
            got = NUMPY[name](*(a, b)[: functions.inputs(name)])
        worst = worst.or_worse(functions.judge(name, a, b, got))
    return worst


def exhaust(functions: Functions, name: str) -> Error:
    """The error of a function of one argument over all floats."""
    worst, step = Error(), 1 << 22
    for first in range(0, 1 << 32, step):
        a = np.arange(first, first + step, dtype=np.uint64).astype(np.uint32).view(np.float32)
        worst = worst.or_worse(functions.judge(name, a, a, functions.compute(name, a, a)))
    return worst


def speed(functions: Functions, name: str, dtype: type) -> tuple[float, float]:
    """Thousand million elements a second, on rows of 1024: native/vmath.h and NumPy."""
    rng = np.random.default_rng(1)
    a = rng.uniform(0.1, 0.9, 1024).astype(dtype) + dtype(name == "acosh")
    b = rng.uniform(0.5, 3, 1024).astype(dtype)
    out = np.empty_like(a)

    def best(call: Callable[[], object], repeats: int) -> float:
        rate, end = 0.0, time.perf_counter() + 0.1
        while time.perf_counter() < end:
            start = time.perf_counter()
            call()
            rate = max(rate, repeats * 1024 / (time.perf_counter() - start) / 1e9)
        return rate

    ours = best(lambda: functions.compute(name, a, b, out, 100), 100)
    if name not in NUMPY:
        return ours, math.nan
    function, arguments = NUMPY[name], (a, b)[: functions.inputs(name)]
    return ours, best(lambda: function(*arguments, out=out), 1)


def table(libraries: dict[str, Functions], count: int) -> str:
    """The document."""
    plain, best = libraries["baseline"], list(libraries)[-1]
    rows = []
    for name in LIMITS:
        cells = [f"`{name}`"]
        for dtype in (np.float32, np.float64):
            with_fma = measure(libraries[best], name, dtype, count)
            without = measure(plain, name, dtype, count)
            numpy = measure_numpy(plain, name, dtype, count)
            cells += [f"{e.ulp:.2f}" if e else "" for e in (with_fma, without, numpy)]
        rows.append("| " + " | ".join(cells) + " |")
        print(rows[-1], flush=True)
    return TEXT.format(numpy=np.__version__, best=best, count=f"{count:,}", rows="\n".join(rows))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write docs/accuracy.md")
    parser.add_argument("--all", nargs="+", default=[], metavar="NAME", help="all floats of these")
    parser.add_argument("--speed", action="store_true", help="measure speed")
    parser.add_argument("--sets", help="instruction sets, with commas; neon is emulated")
    parser.add_argument("--only", nargs="+", default=list(LIMITS), metavar="NAME")
    parser.add_argument("--count", type=int, default=100_000, help="arguments of each kind")
    parser.add_argument("--compiler", help="default: g++, or what there is")
    options = parser.parse_args()
    sets = options.sets.split(",") if options.sets else instruction_sets()
    with tempfile.TemporaryDirectory() as folder:
        libraries = {
            name: Emulated(Path(folder))
            if name == "neon" and emulator()
            else Functions(name, Path(folder), options.compiler)
            for name in sets
        }
        if options.write:
            DOCUMENT.write_text(table(libraries, options.count), encoding="utf-8")
            return 0
        for label, functions in libraries.items():
            for name in options.all:
                error = exhaust(functions, name)
                print(f"{label:9} {name:10} {error.ulp:.3f} at {error.at}", flush=True)
        for dtype in () if options.all else (np.float32, np.float64):
            for name in options.only:
                for label, functions in libraries.items():
                    if options.speed:
                        ours, numpy = speed(functions, name, dtype)
                        text = f"{ours:.3f}  numpy {numpy:.3f}"
                    else:
                        error = measure(functions, name, dtype, options.count)
                        text = f"{error.ulp:.2f} at {error.at}"
                    print(f"{dtype.__name__} {name:10} {label:9} {text}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
