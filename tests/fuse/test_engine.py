"""Programs in the native engine: arrays of any layout, and refusals."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

from zerostride.compute import native
from zerostride.fusion.schedule.engine import make, spec_of
from zerostride.fusion.schedule.program import Literal, Load, Phase, Program, Slot, Step, Store

pytestmark = pytest.mark.skipif(native.backend() == "reference", reason="the engine is not in use")

F32 = ("float32",) * 3
SHAPE = (6, 50)
ROWS = Load(1, (0, 1), "float32")
COLUMN = Load(2, (0, 1), "float32")


def scaled(shape: tuple[int, ...] = SHAPE, dtype: str = "float32", out: str = "") -> Program:
    """(x - row) * column, of a matrix, a row and a column."""
    slots = (
        Slot("input", 0, dtype, shape),
        Slot("input", 1, "float32", (1, shape[1])),
        Slot("input", 2, "float32", (shape[0], 1)),
        Slot("output", 0, out or "float32", shape),
    )
    steps = (Step("subtract", (0, 1), F32), Step("multiply", (3, 2), F32))
    loads = (Load(0, (0, 1), "float32"), ROWS, COLUMN)
    return Program(slots, (Phase(shape, loads, (), steps, (Store(4, 3, (0, 1)),)),))


def operands(shape: tuple[int, ...] = SHAPE, dtype: str = "float32") -> tuple[Any, ...]:
    random = np.random.default_rng(3)
    x = (random.standard_normal(shape) * 8).astype(dtype)
    row = random.standard_normal((1, shape[1])).astype("float32")
    return x, row, random.standard_normal((shape[0], 1)).astype("float32")


def expected(x: Any, row: Any, column: Any) -> Any:
    return (x.astype("float32") - row) * column


def view_of(kind: str, x: Any) -> Any:
    """The same values, lying in another way."""
    if kind == "transposed":
        return np.asfortranarray(x)
    if kind == "backwards":
        return np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]
    if kind == "strided":
        wide = np.zeros((x.shape[0] * 2, x.shape[1] * 3), x.dtype)
        wide[::2, ::3] = x
        return wide[::2, ::3]
    if kind == "unaligned":
        raw = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
        raw[...] = x
        return raw
    return x


@pytest.mark.parametrize("kind", ["dense", "transposed", "backwards", "strided", "unaligned"])
@pytest.mark.parametrize("into", ["", "dense", "transposed", "backwards", "strided", "unaligned"])
@pytest.mark.parametrize("shape", [SHAPE, (1, 1), (3, 5000), (700, 90)])
def test_operands_and_outputs_may_have_any_layout(
    kind: str, into: str, shape: tuple[int, ...]
) -> None:
    x, row, column = operands(shape)
    program = make(scaled(shape))
    out = view_of(into, np.zeros(shape, "float32")) if into else None
    (result,) = program.run((view_of(kind, x), row, column), (out,))
    np.testing.assert_array_equal(result, expected(x, row, column))
    assert result is out or not into


def test_new_output_has_numpys_layout() -> None:
    x, row, column = operands()
    (result,) = make(scaled()).run((np.asfortranarray(x), row, column))
    assert result.strides == (np.asfortranarray(x) - row).strides == (4, 24)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float64"])
def test_dtypes_are_converted_when_loaded(dtype: str) -> None:
    x, row, column = operands((40, 300), dtype)
    (result,) = make(scaled((40, 300), dtype)).run((x, row, column))
    np.testing.assert_array_equal(result, expected(x, row, column))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_results_are_rounded_once(dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    target = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x, row, column = operands()
    (result,) = make(scaled(out=dtype)).run((x, row, column))
    assert result.dtype == target
    np.testing.assert_array_equal(result, expected(x, row, column).astype(target))


@pytest.mark.parametrize("shift", [0, 1, -1, 50, 7])
def test_output_may_overlap_operands(shift: int) -> None:
    x, row, column = operands()
    memory = np.zeros(x.size + 200, "float32")
    source = memory[100 : 100 + x.size].reshape(x.shape)
    target = memory[100 + shift : 100 + shift + x.size].reshape(x.shape)
    source[...] = x
    make(scaled()).run((source, row, column), (target,))
    np.testing.assert_array_equal(target, expected(x, row, column))


def test_output_may_be_a_reversed_or_stretched_operand() -> None:
    x, row, column = operands((1, 50))
    before = row.copy()
    make(scaled((1, 50))).run((x, row, column), (row,))
    np.testing.assert_array_equal(row, expected(x, before, column))
    x, row, column = operands()
    backwards = x[::-1]
    wanted = expected(x, row, column)
    make(scaled()).run((x, row, column), (backwards,))
    np.testing.assert_array_equal(backwards, wanted)


def swap() -> Program:
    """x + y and x - y."""
    slots = tuple(Slot(kind, k, "float32", (300,)) for kind in ("input", "output") for k in (0, 1))
    loads = (Load(0, (0,), "float32"), Load(1, (0,), "float32"))
    steps = (Step("add", (0, 1), F32), Step("subtract", (0, 1), F32))
    stores = (Store(2, 2, (0,)), Store(3, 3, (0,)))
    return Program(slots, (Phase((300,), loads, (), steps, stores),))


def test_two_outputs_may_overwrite_two_operands() -> None:
    x, y = np.arange(300, dtype="float32"), np.ones(300, "float32") * 3
    a, b = x + y, x - y
    results = make(swap()).run((x, y), (y, x))
    assert results[0] is y
    assert results[1] is x
    np.testing.assert_array_equal(y, a)
    np.testing.assert_array_equal(x, b)


def test_array_used_as_two_outputs_holds_the_last() -> None:
    x, y = np.arange(300, dtype="float32"), np.ones(300, "float32")
    out = np.zeros(300, "float32")
    make(swap()).run((x, y), (out, out))
    np.testing.assert_array_equal(out, x - y)


def test_output_dtype_may_differ_within_its_kind() -> None:
    x, row, column = operands()
    out = np.zeros(SHAPE, "float64")
    make(scaled()).run((x, row, column), (out,))
    np.testing.assert_array_equal(out, expected(x, row, column))


def test_numbers_scalars_and_rank_0_are_operands() -> None:
    slots = (Slot("input", 0, "float64", ()), Slot("output", 0, "float32", ()))
    steps = (Step("convert", (0,), ("float64", "float32")), Step("add", (2, 1), F32))
    phase = Phase(
        (), (Load(0, (), "float64"),), (Literal(2, "float32"),), steps, (Store(3, 1, ()),)
    )
    program = make(Program(slots, (phase,)))
    for given in (1.5, np.float64(1.5), np.array(1.5)):
        (result,) = program.run((given,))
        assert isinstance(result, np.float32)
        assert result == 3.5
    out = np.zeros((), "float32")
    assert program.run((1.5,), (out,))[0] is out
    assert out == 3.5


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_empty_shapes_give_empty_results(shape: tuple[int, ...]) -> None:
    x, row, column = operands(shape)
    assert make(scaled(shape)).run((x, row, column))[0].shape == shape


def test_phases_pass_values_to_later_phases() -> None:
    slots = (
        Slot("input", 0, "float32", (40,)),
        Slot("temp", 0, "float32", (40,)),
        Slot("output", 0, "float32", (30, 40)),
    )
    row = Phase(
        (40,), (Load(0, (0,), "float32"),), (), (Step("exp", (0,), F32[:2]),), (Store(1, 1, (0,)),)
    )
    whole = Phase(
        (30, 40),
        (Load(1, (-1, 0), "float32"),),
        (Literal(1, "float32"),),
        (Step("add", (0, 1), F32),),
        (Store(2, 2, (0, 1)),),
    )
    x = np.linspace(0, 1, 40, dtype="float32")
    (result,) = make(Program(slots, (row, whole))).run((x,))
    np.testing.assert_allclose(result, np.broadcast_to(np.exp(x) + 1, (30, 40)), rtol=1e-6)


# What is refused


@pytest.mark.parametrize(
    ("given", "outs", "error", "words"),
    [
        (lambda x, r, c: (x, r), None, ValueError, "2 operands; this program has 3"),
        (lambda x, r, c: (x, r, c[:3]), None, ValueError, r"operand 2 .* float32 \(6, 1\)"),
        (lambda x, r, c: (x.astype("int32"), r, c), None, ValueError, "operand 0 is int32"),
        (lambda x, r, c: (x.astype(">f4"), r, c), None, ValueError, "operand 0 is another dtype"),
        (lambda x, r, c: ([1], r, c), None, TypeError, "operand 0 is a list"),
        (lambda x, r, c: (x, r, c), (1,), TypeError, "output 0 is a int"),
        (lambda x, r, c: (x, r, c), (), ValueError, "0 outputs; this program has 1"),
        (
            lambda x, r, c: (x, r, c),
            (np.zeros(3, "f4"),),
            ValueError,
            r"output 0 is float32 \(3,\)",
        ),
        (lambda x, r, c: (x, r, c), (np.zeros(SHAPE, "i4"),), ValueError, "output 0 is int32"),
        (
            lambda x, r, c: (x, r, c),
            (np.broadcast_to(np.float32(0), SHAPE),),
            ValueError,
            "read-only",
        ),
    ],
)
def test_calls_with_wrong_operands_are_refused(
    given: Any, outs: Any, error: Any, words: str
) -> None:
    with pytest.raises(error, match=words):
        make(scaled()).run(given(*operands()), outs)


def test_result_beyond_memory_is_refused() -> None:
    shape = (1 << 25, 1 << 25)
    x = np.broadcast_to(np.float32(1), shape)
    row, column = x[:1], x[:, :1]
    with pytest.raises(MemoryError, match=r"33554432, 33554432"):
        make(scaled(shape)).run((x, row, column))


def test_more_operands_than_the_limit_are_refused() -> None:
    slots = (
        *(Slot("input", k, "float32", (3,)) for k in range(40)),
        Slot("output", 0, "bool", (3,)),
    )
    loads = tuple(Load(k, (0,), "float32") for k in range(40))
    phase = Phase(
        (3,), loads, (), (Step("isnan", (0,), ("float32", "bool")),), (Store(40, 40, (0,)),)
    )
    with pytest.raises(NotImplementedError, match="more than 32"):
        make(Program(slots, (phase,)))


def damaged(value: Any, random: np.random.Generator) -> Any:
    """A nested tuple with one part replaced, dropped or doubled."""
    if isinstance(value, tuple) and value and random.random() < 0.9:
        k = int(random.integers(len(value)))
        part = damaged(value[k], random)
        choice = random.random()
        middle = (part,) if choice < 0.9 else () if choice < 0.95 else (value[k], value[k])
        return (*value[:k], *middle, *value[k + 1 :])
    others = [None, -1, 0, 1, 2, 7, 1 << 70, "float32", "sum", "add", (), (0,), b"1234", 1.5, True]
    return others[int(random.integers(len(others)))]


def test_damaged_specs_are_refused_or_run() -> None:
    random = np.random.default_rng(5)
    spec = spec_of(scaled())
    arrays = operands()
    refused = 0
    for _ in range(3000):
        try:
            native._native.Program(damaged(spec, random)).run(arrays)
        except (ValueError, NotImplementedError):
            refused += 1
    assert refused > 2000


def test_literals_have_their_dtype() -> None:
    slots = (Slot("output", 0, "uint8", (2,)),)
    phase = Phase((2,), (), (Literal(300, "uint8"),), (), (Store(0, 0, (0,)),))
    with pytest.raises(ValueError, match="300 is beyond the range of uint8"):
        make(Program(slots, (phase,)))


@pytest.mark.parametrize(
    ("fold", "dtype", "out"), [("sum", "bool", "bool"), ("any", "float32", "bool")]
)
def test_unknown_fold_is_refused(fold: str, dtype: str, out: str) -> None:
    slots = (Slot("input", 0, dtype, (8,)), Slot("output", 0, out, ()))
    phase = Phase((8,), (Load(0, (0,), dtype),), (), (), (Store(0, 1, (-1,), fold),))
    with pytest.raises(NotImplementedError, match=f"no such fold of {dtype}"):
        make(Program(slots, (phase,)))


def test_temporaries_beyond_memory_are_refused() -> None:
    large = Slot("temp", 0, "int8", (1 << 59,))
    slots = (large, large, large, Slot("input", 0, "int8", (8,)), Slot("output", 0, "int8", (8,)))
    phase = Phase((8,), (Load(3, (0,), "int8"),), (), (), (Store(0, 4, (0,)),))
    with pytest.raises(NotImplementedError, match="temporaries of more bytes than there are"):
        make(Program(slots, (phase,)))


def test_results_are_invisible_before_they_are_computed() -> None:
    slots = (*(Slot("output", k, "float32", (1 << 20,)) for k in range(2)),)
    load = Load(2, (0,), "float32")
    steps = (Step("exp", (0,), F32[:2]), Step("sin", (1,), F32[:2]))
    phase = Phase((1 << 20,), (load,), (), steps, (Store(1, 0, (0,)), Store(2, 1, (0,))))
    program = make(Program((*slots, Slot("input", 0, "float32", (1 << 20,))), (phase,)))
    x = np.ones(1 << 20, np.float32)
    worker = threading.Thread(target=lambda: [program.run((x,)) for _ in range(20)])
    worker.start()
    while worker.is_alive():
        for one in gc.get_objects(0):
            if type(one) is tuple and len(one) == 2:
                repr(type(one[0]))
    worker.join()
