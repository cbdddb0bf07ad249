"""Compiled bodies on many rows, and their stores past the caches."""

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="the compiled tier is made by llvmlite")
pytest.importorskip("zerostride.compute._native", reason="the engine calls machine code")

from jit_bodies import F32, Case, F, assert_same_bits, call, drawn, dtype, phase

import zerostride as zs
from zerostride.compute import _native
from zerostride.fusion.jit import phases as jit_ir
from zerostride.fusion.jit import tier as jit
from zerostride.fusion.jit.instruction_sets import TARGETS
from zerostride.fusion.schedule.program import Literal, Phase, Step


def affine() -> Phase:
    """(x - mean) * gamma + 0.5 + gain * gain; the mean and the gain are one element a row."""
    steps = [
        Step("subtract", (0, 1), F32),
        Step("multiply", (5, 2), F32),
        Step("add", (6, 4), F32),
        Step("multiply", (3, 3), F32),
        Step("add", (7, 8), F32),
    ]
    return phase(("float32",) * 4, [Literal(0.5, "float32")], steps)


def with_kernels() -> Phase:
    """The same, but for kernels that are called on blocks of a row, and on one element of each."""
    loop = affine()
    steps = [*loop.steps, Step("sin", (9,), F), Step("cos", (3,), F), Step("add", (10, 11), F32)]
    return phase(("float32",) * 4, loop.literals, steps)


@pytest.mark.parametrize("loop", [affine(), with_kernels()], ids=["one loop", "kernels"])
@pytest.mark.parametrize("n", [1, 15, 64, 1500])
def test_many_rows_match_the_kernels(loop: Phase, n: int) -> None:
    random, rows, gap = np.random.default_rng(n), 5, 3
    x = drawn("float32", 2 * rows * (n + gap), random).reshape(2 * rows, n + gap)[::2, :n]
    mean, gamma = drawn("float32", rows, random), drawn("float32", n, random)
    gain = drawn("float32", rows, random)[::-1]
    out = np.full((rows, n + gap), 77, np.float32)
    result = len(loop.loads) + len(loop.literals) + len(loop.steps) - 1
    case = Case(loop, (result,), (x[0], mean[:1], gamma, gain[:1]), n)
    function = case.function()
    assert function is not None or n == 1
    if function is None:
        return  # of one element everything is the same for a row: the interpreter's
    steps = [x.strides[0], 4, 0, -4, out.strides[0]]
    call(function, (x, mean, gamma, gain), (out,), n, rows, steps)
    for r in range(rows):
        operands = (x[r], mean[r : r + 1], gamma, gain[r : r + 1])
        (wanted,) = Case(loop, (result,), operands, n).expected()
        assert_same_bits(np.ascontiguousarray(out[r, :n]), wanted, f"row {r}")
    assert (out[:, n:] == 77).all()


def is_loop(function: jit_ir.Function) -> bool:
    """Whether its code counts a row's elements."""
    return "%count" in function.text


@pytest.mark.parametrize("isa", _native.available_isas())
@pytest.mark.parametrize("name", ["int8", "uint16", "float32", "float64"])
def test_rows_of_one_length_match_the_kernels(name: str, isa: str) -> None:
    before = _native.isa()
    assert _native.choose_isa(isa)
    try:
        for n in (1, 2, 3, 4, 7, 8, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128):
            check_rows_of(name, n)
    finally:
        _native.choose_isa(before)


def check_rows_of(name: str, n: int) -> None:
    """Rows of q * scale + shift: rows, one element a row, one row for all."""
    random, rows, gap = np.random.default_rng(n), 5, 3
    steps = [
        Step("convert", (0,), (name, "float32")),
        Step("multiply", (3, 1), F32),
        Step("add", (4, 2), F32),
    ]
    loop = phase((name, "float32", "float32"), (), steps)
    q = drawn(name, rows * (n + gap), random).reshape(rows, n + gap)[:, :n]
    scale, shift = drawn("float32", rows, random), drawn("float32", n, random)
    case = Case(loop, (5,), (q[0], scale[:1], shift), n)
    function = case.function(row=n)
    if n == 1:
        scale = scale[:1].repeat(rows)
    assert function is not None
    assert is_loop(function) == (-(-n // lanes_of(name)) * 3 > 64)
    out = np.full((rows, n + gap), 77, np.float32)
    steps_of_rows = [q.strides[0], 4, 0, out.strides[0]]
    call(function, (q, scale, shift), (out,), n, rows, steps_of_rows)
    for r in range(rows):
        (wanted,) = Case(loop, (5,), (q[r], scale[r : r + 1], shift), n).expected()
        assert_same_bits(np.ascontiguousarray(out[r, :n]), wanted, f"row {r} of {n}")
    assert (out[:, n:] == 77).all()


def lanes_of(name: str) -> int:
    return TARGETS[_native.isa()].vector // max(4, dtype(name).itemsize)


@pytest.mark.parametrize("steps", [["exp"], ["exp", "sin"], ["tanh", "exp"]])
def test_rows_of_one_length_of_functions_match_the_kernels(steps: list[str]) -> None:
    loop = phase(("float32",), (), [Step(op, (k,), F) for k, op in enumerate(steps)])
    for n in (1, 5, 16, 40, 128):
        x = drawn("float32", n, np.random.default_rng(n))
        function = Case(loop, (len(steps),), (x,), n).function(row=n)
        assert function is not None
        out = np.empty(n, np.float32)
        call(function, (x,), (out,), n)
        assert_same_bits(out, Case(loop, (len(steps),), (x,), n).expected()[0], f"{n}")


SUM = {
    name: phase((name, name), (), [Step("add", (0, 1), (name,) * 3)])
    for name in ("int8", "uint16", "int32", "float32", "float64")
}


@pytest.mark.parametrize("name", SUM)
@pytest.mark.parametrize("n", [1, 7, 16, 63, 64, 65, 200, 1000])
def test_streamed_rows_match_the_kernels(name: str, n: int) -> None:
    random = np.random.default_rng(n)
    x, y = drawn(name, n, random), drawn(name, n, random)
    for at in range(0, 65, 1 if n < 100 else 13):  # where in a line the row begins
        Case(SUM[name], (2,), (x, y), n).check(past=True, at=at)
    # The same code, not asked.
    function = Case(SUM[name], (2,), (x, y), n).function(streamed=True)
    assert function is not None
    out = np.empty(n, dtype(name))
    call(function, (x, y), (out,), n)
    assert_same_bits(out, Case(SUM[name], (2,), (x, y), n).expected()[0])


def test_streamed_functions_match_the_kernels() -> None:
    loop = phase(("float32",), (), [Step("exp", (0,), F), Step("add", (1, 0), F32)])
    x = drawn("float32", 777, np.random.default_rng(1))
    for at in (0, 1, 15, 16, 17):
        Case(loop, (2,), (x,), len(x)).check(past=True, at=at)


def test_only_one_loop_of_one_result_is_streamed() -> None:
    x = np.ones(99, np.float32)
    loop = with_kernels()
    operands = (x, x[:1], x, x[:1])
    for case in (
        Case(loop, (12,), operands, 99),  # kernels between
        Case(affine(), (6, 9), operands, 99),  # two results
        Case(affine(), (0,), operands, 99),  # an operand as it is
    ):
        function = case.function(streamed=True)
        assert function is None or not function.past


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_streaming_stores_bypass_the_caches(isa: str) -> None:
    if isa not in _native.available_isas():
        pytest.skip(f"this processor has no {isa}")
    target = TARGETS[isa]
    llvm, _ = jit._llvm()
    for streamed in (False, True):
        function = jit_ir.write(SUM["float32"], (2,), 0, target, lambda *_: [4096] * 8, streamed)
        assert function is not None
        code = jit._machine(target).emit_assembly(llvm.parse_assembly(function.text))
        assert ("movnt" in code) == function.past == streamed


@pytest.mark.parametrize("offset", [0, 4, 16])
def test_large_results_are_streamed_correctly(offset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, columns = 2100, 4101  # 34 MB: with its operand no cache that is looked for keeps it
    memory = np.zeros(rows * columns * 4 + offset + 64, np.uint8)
    begin = -memory.ctypes.data % 64 + offset
    out = memory[begin : begin + rows * columns * 4].view(np.float32).reshape(rows, columns)
    x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    shift = np.arange(rows, dtype=np.float32)[:, None]
    monkeypatch.setenv("ZEROSTRIDE_JIT", "eager")
    jit.mode.cache_clear()
    try:
        fused = zs.fuse(lambda x, shift: (x - shift) * 0.5)
        for _ in range(3):
            out[:] = 0
            assert fused(x, shift, out=out) is out
            np.testing.assert_array_equal(out, (x - shift) * np.float32(0.5))
        assert "compiled: 1" in str(fused.explain(x, shift))
        # What is computed in place is in the caches: it goes back by way of them.
        wanted = (x - shift) * np.float32(0.5)
        fused(x, shift, out=x)
        np.testing.assert_array_equal(x, wanted)
    finally:
        monkeypatch.undo()
        jit.mode.cache_clear()
    assert not memory[:begin].any()
    assert not memory[begin + out.nbytes :].any()


@pytest.mark.parametrize("offset", [0, 4, 16])
@pytest.mark.parametrize("row", [16, 24, 32, 100])
def test_large_results_of_short_rows_are_right(
    row: int, offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = (36 << 20) // 4 // row  # 36 MB: with its operand no cache that is looked for keeps it
    memory = np.zeros(rows * row * 4 + offset + 64, np.uint8)
    begin = -memory.ctypes.data % 64 + offset
    out = memory[begin : begin + rows * row * 4].view(np.float32).reshape(rows, row)
    q = (np.arange(rows * row) % 251 - 125).astype(np.int8).reshape(rows, row)
    scale = (np.arange(rows, dtype=np.float32) % 97)[:, None]
    monkeypatch.setenv("ZEROSTRIDE_JIT", "eager")
    jit.mode.cache_clear()
    try:
        fused = zs.fuse(lambda q, scale: q.astype(np.float32) * scale)
        for _ in range(3):
            out[:] = 0
            assert fused(q, scale, out=out) is out
            np.testing.assert_array_equal(out, q * scale)
        assert "compiled: 1" in str(fused.explain(q, scale))
    finally:
        monkeypatch.undo()
        jit.mode.cache_clear()
    assert not memory[:begin].any()
    assert not memory[begin + out.nbytes :].any()
