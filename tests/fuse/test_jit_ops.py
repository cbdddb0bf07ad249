"""The compiled tier compared with the engine's kernels: every op, bit for bit."""

import itertools
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sampled import few

pytest.importorskip("llvmlite", reason="the compiled tier is made by llvmlite")
pytest.importorskip("zerostride.compute._native", reason="the engine calls machine code")

from jit_bodies import (
    DTYPES,
    FLOATS,
    INTEGERS,
    PREDICATES,
    Case,
    assert_same_bits,
    beside_a_row,
    call,
    drawn,
    dtype,
    forms,
    phase,
    specials,
)

from zerostride.compute import _native
from zerostride.fusion.jit import vmath as jit_vmath
from zerostride.fusion.jit.instruction_sets import TARGETS
from zerostride.fusion.jit.ops import EMITTERS, Emitter
from zerostride.fusion.jit.values import Code, Emitted
from zerostride.fusion.schedule.program import Literal, Phase, Step
from zerostride.ops import OPS

STORED = ("float16", "bfloat16")


#: Ops with a formula that are written for every dtype and instruction set.
_WRITTEN_FORMULAS = {
    *("sign", "heaviside", "squared_difference", "square", "bitwise_left_shift", "relu", "prelu"),
    *("bitwise_right_shift", "leaky_relu", "thresholded_relu", "hard_sigmoid", "hard_swish"),
    *("shrink", "softsign", "rsqrt", "reciprocal"),
}


@pytest.fixture(params=few(1, _native.available_isas()))
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set of this processor, in turn."""
    before = _native.isa()
    assert _native.choose_isa(request.param)
    yield request.param
    _native.choose_isa(before)


def is_best(isa: str) -> bool:
    """Whether it is the one that everything is tested with; of others, less."""
    return isa == _native.available_isas()[0]


def arity(op: str, of: str) -> int:
    known = forms(op, of)
    return 3 if known[4] else 2 if known[2] else 1


def step(op: str, of: str, first: int = 0) -> Step:
    """The op on values 0, 1, ...; of `where` a condition stands before."""
    count = arity(op, of)
    dtypes = ("bool", of, of) if op == "where" else (of,) * count
    args = tuple(range(first, first + count))
    return Step(op, args, (*dtypes, "bool" if op in PREDICATES else of))


def ops(of: str, inputs: set[int]) -> list[str]:
    return [op for op, known in EMITTERS if known == of and arity(op, of) in inputs]


def test_comparison_of_bits_can_fail() -> None:
    assert_same_bits(np.array([1.0, np.nan]), np.array([1.0, -np.nan]))
    for wrong in ([0.0, 1.0], [-0.0, np.nan]):
        with pytest.raises(AssertionError, match="element"):
            assert_same_bits(np.array([0.0, np.nan]), np.array(wrong))


def functions(isa: str) -> dict[tuple[str, str], Emitter]:
    """What is written of vmath.ll."""
    known = jit_vmath.emitters(TARGETS[isa].functions)
    return {key: emitter for key, emitter in known.items() if key not in EMITTERS}


def test_every_written_op_has_a_kernel(isa: str) -> None:
    known = set(_native.kernels())
    assert set(EMITTERS) <= known
    assert set(functions(isa)) <= known
    # What is left to kernels. A new op with a formula may be, until it has instructions.
    left = {op for op, of in known - set(EMITTERS) - set(functions(isa)) if of in DTYPES}
    by_formula = {op.name for op in OPS.values() if op.formula is not None}
    assert left - {"expm1", "erf"} - by_formula == {
        *("sin", "cos", "tan", "pow", "integer_pow", "pow_six_bits", "truncated_divide"),
    }
    # Divisions are left of floats and 64 bits.
    assert by_formula & {*dict(known)} - left >= _WRITTEN_FORMULAS


@pytest.mark.parametrize("of", FLOATS)
def test_functions_match_the_kernels(of: str, isa: str) -> None:
    random = np.random.default_rng(24)
    known = [op for op, kind in functions(isa) if kind == of]
    assert len(known) > 20
    for op in known:
        loop = phase((of,) * arity(op, of), (), [step(op, of)])
        rows = []
        for _ in loop.loads:
            row = np.concatenate([specials(of), drawn(of, 1000, random)])
            rows.append(random.permutation(np.append(row, random.uniform(-30, 30, 700).astype(of))))
        Case(loop, (len(rows),), tuple(rows), len(rows[0])).check()
        if is_best(isa):
            check_splats(loop, tuple(row[5:6] for row in rows), 33)


def test_file_of_functions_is_read_completely() -> None:
    code = Code(4)
    x = Emitted(code, "%x", "float32", "row")
    with pytest.raises(ValueError, match="no instruction that is known: %1 = frem"):
        jit_vmath._write(("%0",), ("%1 = frem float %0, 2.0", "ret float %1"), x)
    with pytest.raises(ValueError, match="without an end"):
        jit_vmath._write(("%0",), ("%1 = fneg float %0",), x)


@pytest.mark.builds
def test_file_of_functions_is_clangs_output() -> None:
    clang = shutil.which("clang++-14")
    if clang is None:
        pytest.skip("vmath.ll was written with clang 14; other releases write it otherwise")
    script = Path(__file__).parents[2] / "native" / "tests" / "vmath_text.py"
    subprocess.run([sys.executable, script, "--check", "--clang", clang], check=True)


def check_splats(loop: Phase, operands: tuple[np.ndarray, ...], n: int) -> None:
    """All results, where every operand is one element."""
    first = len(operands) + len(loop.literals)
    assert Case(loop, (first,), operands, n).function() is None
    more = beside_a_row(loop)
    results = tuple(range(first + 1, first + 1 + len(more.steps)))
    Case(more, results, (*operands, np.arange(n) % 3 == 0), n).check()


def pairs(of: str) -> tuple[np.ndarray, np.ndarray]:
    """Every special value beside every other, and drawn ones."""
    random = np.random.default_rng(17)
    some = specials(of)
    a, b = np.meshgrid(some, some)
    return (
        np.concatenate([a.ravel(), drawn(of, 333, random)]),
        np.concatenate([b.ravel(), drawn(of, 333, random)]),
    )


@pytest.mark.parametrize("of", few(7, DTYPES))
def test_unary_and_binary_ops_match_the_kernels(of: str, isa: str) -> None:
    steps = [step(op, of) for op in ops(of, {1, 2})]
    a, b = pairs(of)
    loop = phase((of, of), (), steps)
    results = tuple(range(2, 2 + len(steps)))
    Case(loop, results, (a, b), len(a)).check()
    for one in specials(of)[:: 1 if is_best(isa) else 7]:
        splat = np.array([one])
        Case(loop, results, (a, splat), len(a)).check()
        if is_best(isa):
            Case(loop, results, (splat, b), len(b)).check()
            check_splats(loop, (splat, splat), 37)


@pytest.mark.parametrize("of", FLOATS)
def test_quotients_by_one_number_have_the_same_bits_either_way(of: str) -> None:
    x, _ = pairs(of)
    loop = phase((of, of), (), [Step("divide", (0, 1), (of,) * 3)])
    for one in specials(of):
        case = Case(loop, (2,), (x, np.array([one])), len(x))
        (wanted,) = case.expected()
        for divides in (False, True):
            function = case.function(divides=divides)
            assert function is not None
            if TARGETS[_native.isa()].functions == "fused":
                assert ("llvm.fma" in function.text) == (not divides)
            out = np.empty(len(x), dtype(of))
            call(function, case.operands, (out,), len(x))
            assert_same_bits(out, wanted, f"{one}, {divides}")


@pytest.mark.parametrize("of", DTYPES)
def test_ternary_ops_match_the_kernels(of: str, isa: str) -> None:
    steps = [step(op, of, 0 if op == "where" else 1) for op in ops(of, {3})]
    loop = phase(("bool", of, of, of), (), steps)
    results = tuple(range(4, 4 + len(steps)))
    random = np.random.default_rng(18)
    n = 1500
    masks = range(16) if is_best(isa) else (0, 12)
    for splats in masks:
        rows = [drawn("bool", n, random), *(drawn(of, n, random) for _ in range(3))]
        operands = tuple(row[:1] if splats >> k & 1 else row for k, row in enumerate(rows))
        if splats == 15:
            check_splats(loop, operands, n)
        else:
            Case(loop, results, operands, n).check()


@pytest.mark.parametrize("of", [*DTYPES, *STORED])
def test_conversions_match_the_kernels(of: str, isa: str) -> None:
    to = [*DTYPES, *STORED]
    loop = phase((of,), (), [Step("convert", (0,), (of, one)) for one in to])
    values = np.concatenate([specials(of), drawn(of, 700, np.random.default_rng(19))])
    if of in STORED:
        values = np.arange(65536, dtype=np.uint16).view(dtype(of))
    results = tuple(range(1, 1 + len(to)))
    Case(loop, results, (values,), len(values)).check()
    for one in range(0, len(values) if is_best(isa) else 0, len(values) // 5):
        check_splats(loop, (values[one : one + 1],), 40)


@pytest.mark.parametrize("of", [*FLOATS, "int32", "uint8", "int16"])
def test_literals_match_the_kernels(of: str) -> None:
    numbers = specials(of)[[0, 2, 4, -1, -3]]
    random = np.random.default_rng(20)
    for number in numbers:
        literal = Literal(number.item(), of)
        steps = [step(op, of) for op in ops(of, {2})]
        loop = phase((of,), (literal,), steps)
        Case(loop, tuple(range(2, 2 + len(steps))), (drawn(of, 200, random),), 200).check()


@pytest.mark.parametrize("of", [of for of in INTEGERS if not of.endswith("64")])
def test_integer_divisions_match_the_kernels(of: str) -> None:
    """Of 8 bits all pairs; of more, those around multiples."""
    info = np.iinfo(of)
    kind = dtype(of)
    if info.bits == 8:
        every = np.arange(info.min, info.max + 1).astype(kind)
        a, b = (one.ravel() for one in np.meshgrid(every, every))
    else:
        random = np.random.default_rng(21)
        b = drawn(of, 20000, random)
        a = (b * drawn(of, 20000, random) + random.integers(0, 3, 20000).astype(kind)).astype(kind)
    names = ("floor_divide", "remainder", "fmod", "truncated_divide")
    loop = phase((of, of), (), [step(op, of) for op in names])
    Case(loop, (2, 3, 4, 5), (a, b), len(a)).check()
    for one in specials(of):
        Case(loop, (2, 3, 4, 5), (a, np.array([one])), len(a)).check()


def mixed() -> tuple[Phase, tuple[int, ...]]:
    """uint8 and float32 in; float32, bool, int16 and float64 out."""
    steps = [
        Step("convert", (0,), ("uint8", "float32")),
        Step("multiply", (3, 1), ("float32",) * 3),
        Step("add", (4, 2), ("float32",) * 3),
        Step("less", (5, 1), ("float32", "float32", "bool")),
        Step("where", (6, 5, 2), ("bool", "float32", "float32", "float32")),
        Step("convert", (7,), ("float32", "int16")),
        Step("convert", (7,), ("float32", "float64")),
        Step("logical_not", (6,), ("bool", "bool")),
    ]
    return phase(("uint8", "float32"), (Literal(0.25, "float32"),), steps), (7, 10, 8, 9)


def test_every_row_length_matches_the_kernels(isa: str) -> None:
    loop, results = mixed()
    random = np.random.default_rng(22)
    for n, splats in itertools.product((*range(131), 1000, 4097), range(3)):
        rows = (drawn("uint8", max(n, 1), random), drawn("float32", max(n, 1), random))
        operands = tuple(row[:1] if splats >> k & 1 else row[:n] for k, row in enumerate(rows))
        if n == 1:  # a row of one element, that is no splat
            operands = rows
        Case(loop, results, operands, n).check()


def test_in_place_rows_match_the_kernels() -> None:
    random = np.random.default_rng(23)
    steps = [Step("add", (0, 1), ("float32",) * 3), Step("exp", (2,), ("float32",) * 2)]
    steps += [Step("multiply", (3, 0), ("float32",) * 3), Step("negative", (4,), ("float32",) * 2)]
    for results in ((2,), (3,), (5,)):
        loop = phase(("float32", "float32"), (), steps)
        operands = (drawn("float32", 3333, random), drawn("float32", 3333, random))
        if results != (3,):  # kernels alone: but for the sum before
            Case(loop, results, operands, 3333).check(in_place=True)
