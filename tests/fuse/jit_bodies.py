"""Bodies of phases, compiled, and by the engine's own kernels step by step."""

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from zerostride.compute import native
from zerostride.fusion.jit import phases as jit_ir
from zerostride.fusion.jit import tier as jit
from zerostride.fusion.jit.instruction_sets import TARGETS
from zerostride.fusion.schedule.program import Literal, Load, Phase, Step, value_dtype
from zerostride.ops import TRUTHS

_native = pytest.importorskip(
    "zerostride.compute._native", reason="bodies are the engine's", exc_type=ImportError
)

native.find_bfloat16()  # the engine knows it by the number that NumPy gave it

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float32", "float64")
DTYPES = ("bool", *INTEGERS, *FLOATS)
#: The dtypes of a step of one float32 operand, and of two.
F, F32 = ("float32",) * 2, ("float32",) * 3
#: Ops whose results are truth values.
PREDICATES = TRUTHS | {"isnan", "isinf", "isfinite"}
_ROW = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_BODY = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _NUMBER, _POINTER, _NUMBER, _POINTER, _NUMBER)


def dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


def forms(op: str, of: str) -> tuple[int, ...]:
    return _native.kernel_forms(_native.isa(), op, of)


def _addresses(arrays: Sequence[np.ndarray]) -> ctypes.Array:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


def by_kernel(step: Step, args: Sequence[np.ndarray]) -> np.ndarray:
    """What the engine computes, of rows."""
    n = min(map(len, args)) and max(map(len, args))
    rows = [np.ascontiguousarray(np.broadcast_to(arg, n)) for arg in args]
    out = np.empty(len(rows[0]), dtype(step.dtypes[-1]))
    if step.op == "convert":
        assert _native.convert(rows[0], out.dtype, out) is out
        return out
    kernel = _ROW(forms(step.op, step.dtypes[-2])[0])
    at = _addresses(rows)
    kernel(ctypes.addressof(at), out.ctypes.data, len(out))
    return out


@functools.lru_cache(64)
def assemble(text: str, isa: str) -> jit.Code:
    return jit.assemble(text, TARGETS[isa])


def call(
    function: jit_ir.Function,
    operands: Sequence[np.ndarray],
    outs: Sequence[np.ndarray],
    n: int,
    rows: int = 1,
    steps: Sequence[int] = (),
    past: bool = False,
) -> None:
    """Runs a function on rows that begin where these arrays do."""
    code = assemble(function.text, _native.isa())
    room = np.full(function.scratch + 64, 0xA5, np.uint8)
    scratch = room.ctypes.data + -room.ctypes.data % 64
    ins, into = _addresses(operands), _addresses(outs)
    behind = (ctypes.c_int64 * len(steps))(*steps)
    at = (ctypes.addressof(ins), ctypes.addressof(into))
    _BODY(code.address)(*at, n, scratch, rows, ctypes.addressof(behind), past)


@dataclass(frozen=True)
class Case:
    """A phase's steps on operands, of which those of one element are splats."""

    phase: Phase
    results: tuple[int, ...]
    operands: tuple[np.ndarray, ...]
    n: int

    @property
    def splats(self) -> int:
        return sum(1 << k for k, one in enumerate(self.operands) if len(one) == 1 != self.n)

    def expected(self) -> list[np.ndarray]:
        values = [*self.operands]
        values += [np.array([one.value], dtype(one.dtype)) for one in self.phase.literals]
        for step in self.phase.steps:
            values.append(by_kernel(step, [values[arg] for arg in step.args]))
        return [np.array(np.broadcast_to(values[result], self.n)) for result in self.results]

    def function(
        self, streamed: bool = False, row: int = 0, divides: bool = False
    ) -> jit_ir.Function | None:
        target = TARGETS[_native.isa()]
        facts = self.phase, self.results, self.splats, target, forms, streamed, row, divides
        return jit_ir.write(*facts)

    def compiled(self, in_place: bool = False, past: bool = False, at: int = 1) -> list[np.ndarray]:
        function = self.function(past)
        assert function is not None
        assert function.past == past
        # A border on both sides, that must stay as it is.
        outs = [
            np.full(self.n + at + 1, 77, dtype(value_dtype(self.phase, v))) for v in self.results
        ]
        inner = [out[at:-1] for out in outs]
        operands = [*self.operands]
        if in_place:
            inner[0][:] = operands[0]
            operands[0] = inner[0]
        call(function, operands, inner, self.n, past=past)
        for out in outs:
            assert (out[:at] == np.array(77, out.dtype)).all()
            assert out[-1] == np.array(77, out.dtype)
        return inner

    def check(self, in_place: bool = False, past: bool = False, at: int = 1) -> None:
        for result, got, wanted in zip(
            self.results, self.compiled(in_place, past, at), self.expected(), strict=True
        ):
            assert_same_bits(got, wanted, f"{_native.isa()} {self.what(result)}")

    def what(self, result: int) -> str:
        first = len(self.phase.loads) + len(self.phase.literals)
        step = self.phase.steps[result - first] if result >= first else result
        return f"{step} of splats {self.splats:b}, n = {self.n}"


def assert_same_bits(got: np.ndarray, wanted: np.ndarray, what: str = "") -> None:
    """Bit for bit; NaN is NaN, whatever its bits."""
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    got, wanted = np.ravel(got), np.ravel(wanted)
    bits = f"u{got.dtype.itemsize}"
    same = np.ascontiguousarray(got).view(bits) == np.ascontiguousarray(wanted).view(bits)
    if not (got.dtype == bool or got.dtype.kind in "iu"):
        with np.errstate(invalid="ignore"):
            same |= np.isnan(got) & np.isnan(wanted)
    if not same.all():
        at = int(np.argmin(same))
        raise AssertionError(f"{what}: element {at} is {got[at]!r}, not {wanted[at]!r}")


def loads(*dtypes: str) -> tuple[Load, ...]:
    return tuple(Load(k, (0,), name) for k, name in enumerate(dtypes))


def beside_a_row(loop: Phase) -> Phase:
    """With one more operand, which comes last, and one more step, on it: were all operands splats,
    the interpreter would be left to fill rows."""
    first = len(loop.loads)
    steps = [
        Step(step.op, tuple(arg + (arg >= first) for arg in step.args), step.dtypes)
        for step in loop.steps
    ]
    steps.append(Step("logical_not", (first,), ("bool", "bool")))
    return phase([*(load.dtype for load in loop.loads), "bool"], loop.literals, steps)


def phase(operands: Sequence[str], literals: Sequence[Literal], steps: Sequence[Step]) -> Phase:
    return Phase((1,), loads(*operands), tuple(literals), tuple(steps), ())


def specials(name: str) -> np.ndarray:
    """Values at which ops have corners."""
    if name == "bool":
        return np.array([0, 1, 2, 255], np.uint8).view(bool)
    kind = dtype(name)
    if name in INTEGERS:
        info = np.iinfo(kind)
        bits = info.bits
        some = [0, 1, 2, 3, 5, 7, bits - 1, bits, bits + 1, info.max, info.max - 1, info.max // 2]
        some += [info.min, info.min + 1, -1 % (info.max + 1) if info.min == 0 else -1]
        some += [] if info.min == 0 else [-2, -3, -7, -bits]
        return np.array([one for one in some if info.min <= one <= info.max], kind)
    info = ml_dtypes.finfo(kind)
    some = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 6.0, 1e-3, 126.7, 127.5, 255.5, 32767.5, 65519.0, 65520.0]
    some += [2.0**23 - 0.5, 2.0**24 + 2, 2.0**31 - 128, 2.0**31, 2.0**32, 2.0**52, 2.0**63, 2.0**64]
    some += [float(info.max), float(info.tiny), float(info.smallest_subnormal), 1 / 3]
    some += [1 + float(info.eps), np.inf]
    with np.errstate(all="ignore"):
        return np.array([*some, *(-one for one in some), np.nan], kind)


def drawn(name: str, n: int, random: np.random.Generator) -> np.ndarray:
    """Specials, numbers of many sizes, and small ones."""
    if name == "bool":
        return random.integers(0, 2, n).astype(bool)
    kind = dtype(name)
    if name in INTEGERS:
        any_bits = random.integers(0, 256, n * kind.itemsize, np.uint8).view(kind)
        values = np.where(random.random(n) < 0.5, any_bits, any_bits % kind.type(17))
    else:
        sizes = random.integers(-12, 12, n)
        values = (random.standard_normal(n) * 2.0**sizes).astype(kind)
    known = specials(name)
    return np.where(random.random(n) < 0.3, known[random.integers(0, len(known), n)], values)
