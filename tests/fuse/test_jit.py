"""The compiled tier: when programs are compiled, and that results stay the same."""

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="the compiled tier is made by llvmlite")
pytest.importorskip("zerostride.compute._native", reason="the engine calls machine code")

from jit_bodies import (
    DTYPES,
    F32,
    FLOATS,
    PREDICATES,
    Case,
    F,
    assert_same_bits,
    drawn,
    forms,
    phase,
)

from zerostride.compute import _native
from zerostride.fusion.jit import partition as jit_pieces
from zerostride.fusion.jit import phases as jit_ir
from zerostride.fusion.jit import tier as jit
from zerostride.fusion.jit import vmath as jit_vmath
from zerostride.fusion.jit.instruction_sets import TARGETS
from zerostride.fusion.schedule import engine
from zerostride.fusion.schedule.program import Literal, Load, Phase, Program, Slot, Step, Store

# Chains of compiled steps and kernels


def chain() -> Phase:
    """(sin(x + y) - x) * cos(x + y) + tan(2)"""
    steps = [
        Step("add", (0, 1), F32),
        Step("sin", (3,), F),
        Step("subtract", (4, 0), F32),
        Step("cos", (3,), F),
        Step("multiply", (5, 6), F32),
        Step("tan", (2,), F),
        Step("add", (7, 8), F32),
    ]
    return phase(("float32", "float32"), [Literal(2.0, "float32")], steps)


def test_loops_and_kernels_alternate() -> None:
    parts = jit_pieces.pieces(jit_pieces.Body(chain(), (9,), 0))
    loop, call = jit_pieces.Loop, jit_pieces.KernelCall
    # The subtraction waits for the multiplication: it is needed nowhere else.
    assert parts == [loop((3,), (3,)), call(4), call(6), loop((5, 7, 9), (9,))]


def test_interdependent_functions_get_their_own_loops() -> None:
    loop, call = jit_pieces.Loop, jit_pieces.KernelCall
    names = ("tanh", "exp", "sin", "log", "negative")
    steps = [Step(op, (k,), F) for k, op in enumerate(names)]
    steps += [Step("erf", (0,), F), Step("add", (5, 6), F32)]
    written = jit_vmath.emitters("fused")
    body = jit_pieces.Body(phase(("float32",), (), steps), (7,), 0, written)
    assert jit_pieces.pieces(body) == [
        loop((1, 6), (1, 6)),
        loop((2,), (2,)),
        call(3),
        loop((4, 5, 7), (7,)),
    ]


@pytest.mark.parametrize("n", [1, 63, 64, 1000, 5001])
def test_kernels_between_loops_match(n: int) -> None:
    random = np.random.default_rng(1)
    x, y = drawn("float32", n, random), drawn("float32", n, random)
    for operands in ((x, y), (x, y[:1]), (x[:1], y)):
        if n > 1 or len(operands[0]) == len(operands[1]):
            for results in ((9,), (3, 4, 5, 6, 7, 8, 9), (9, 0, 9, 8, 8, 1)):
                Case(chain(), results, operands, n).check()
    Case(chain(), (9,), (x, y), n).check(in_place=True)


KERNELS = [
    (op, of)
    for op, of in _native.kernels()
    if of in DTYPES and (op != "pow" or of in FLOATS) and op != "integer_pow"
]


def random_phase(random: np.random.Generator) -> Phase:
    """Up to twelve ops of any kind on each other's results, converted where dtypes differ."""
    some = random.choice(DTYPES, random.integers(1, 4))
    operands = [str(one) for one in random.choice(some, random.integers(1, 4))]
    literals = [Literal(drawn(of, 1, random)[0].item(), str(of)) for of in some[:2]]
    dtypes = [*operands, *(literal.dtype for literal in literals)]
    steps: list[Step] = []

    def add(op: str, args: tuple[int, ...], kinds: tuple[str, ...]) -> int:
        steps.append(Step(op, args, kinds))
        dtypes.append(kinds[-1])
        return len(dtypes) - 1

    def value(of: str) -> int:
        number = int(random.integers(0, len(dtypes)))
        if dtypes[number] == of:
            return number
        return add("convert", (number,), (dtypes[number], of))

    for _ in range(int(random.integers(1, 13))):
        of = str(random.choice(some))
        op = str(random.choice([op for op, known in KERNELS if known == of]))
        known = forms(op, of)
        count = 3 if known[4] else 2 if known[2] else 1
        kinds = ("bool", of, of) if op == "where" else (of,) * count
        add(op, tuple(map(value, kinds)), (*kinds, "bool" if op in PREDICATES else of))
    return phase(operands, literals, steps)


@pytest.mark.parametrize("seed", range(40))
def test_random_chains_match_the_interpreter(seed: int) -> None:
    random = np.random.default_rng(seed)
    loop = random_phase(random)
    first = len(loop.loads) + len(loop.literals)
    last = first + len(loop.steps) - 1
    results = (last, *(int(random.integers(0, last + 1)) for _ in range(random.integers(0, 3))))
    n = int(random.choice([2, 17, 128, 1023, 3000]))
    rows = [drawn(load.dtype, n, random) for load in loop.loads]
    splats = int(random.integers(0, 1 << len(rows)))
    operands = tuple(row[:1] if splats >> k & 1 else row for k, row in enumerate(rows))
    case = Case(loop, results, operands, n)
    if case.function() is None:
        written = jit_vmath.emitters(TARGETS[_native.isa()].functions)
        body = jit_pieces.Body(loop, results, splats, written)
        assert not any(map(body.is_written, body.rows()))
    else:
        case.check()


def test_expressions_slow_to_compile_stay_interpreted() -> None:
    def long(op: str, count: int) -> Case:
        args = 2 if op == "add" else 1
        steps = [Step(op, (k, 0)[:args], F32[: args + 1]) for k in range(count)]
        return Case(phase(("float32",), (), steps), (count,), (np.ones(3, np.float32),), 3)

    assert long("add", jit_ir.MOST_VALUES).function() is None
    assert long("gelu", jit_ir.MOST_VALUES - 1).function() is None
    long("add", jit_ir.MOST_VALUES - 1).check()


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_written_code_is_of_the_instruction_set_and_uncontracted(isa: str) -> None:
    if isa not in _native.available_isas():
        pytest.skip(f"this processor has no {isa}")
    target = TARGETS[isa]
    function = jit_ir.write(chain(), (9,), 0, target, lambda op, of: [4096] * 8)
    assert function is not None
    llvm, _ = jit._llvm()
    code = jit._machine(target).emit_assembly(llvm.parse_assembly(function.text))
    assert ("zmm" in code) == (isa == "avx512")
    assert ("ymm" in code) == (isa == "avx2")
    # x * y + z is there to be contracted.
    loop = phase(("float32",) * 3, (), [Step("multiply", (0, 1), F32), Step("add", (3, 2), F32)])
    function = jit_ir.write(loop, (4,), 0, target, forms)
    assert function is not None
    code = jit._machine(target).emit_assembly(llvm.parse_assembly(function.text))
    assert "mulps" in code
    assert "addps" in code
    assert "fma" not in code


# Programs


def program(n: int = 20000, columns: int = 1) -> Program:
    """x * y + 0.5, twice as much of it, and its largest by rows."""
    slots = (
        Slot("input", 0, "float32", (n, columns)),
        Slot("input", 1, "float32", (columns,)),
        Slot("output", 0, "float32", (n, columns)),
        Slot("output", 1, "float32", (n,)),
    )
    loads = (Load(0, (0, 1), "float32"), Load(1, (-1, 0), "float32"))
    steps = (Step("multiply", (0, 1), F32), Step("add", (3, 2), F32), Step("add", (4, 4), F32))
    literals = (Literal(0.5, "float32"),)
    stored = Phase((n, columns), loads, literals, steps, (Store(5, 2, (0, 1)),))
    folded = Phase((n, columns), loads, literals, steps[:2], (Store(4, 3, (0, -1), "max"),))
    return Program(slots, (stored, folded))


@pytest.fixture
def mode(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    def use(name: str) -> None:
        monkeypatch.setenv("ZEROSTRIDE_JIT", name)
        monkeypatch.setenv("ZEROSTRIDE_CACHE", "off")
        jit.mode.cache_clear()

    yield use
    monkeypatch.undo()
    jit.mode.cache_clear()


Mode = Callable[[str], None]


def arrays(n: int = 20000, columns: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(2)
    return drawn("float32", n * columns, random).reshape(n, columns), drawn(
        "float32", columns, random
    )


def check(compiled: Any, operands: tuple[np.ndarray, ...], expected: tuple[Any, ...]) -> None:
    for got, wanted in zip(compiled.run(operands), expected, strict=True):
        assert_same_bits(got, wanted)


def has_machine_code(compiled: Any) -> bool:
    """Whether any body of a program is machine code."""
    return any(is_machine_code for *_, is_machine_code in compiled.machines())


def test_first_calls_are_interpreted_by_default(mode: Mode) -> None:
    mode("0")
    plain = engine.make(program())
    assert plain.watcher() is None
    assert jit.describe(plain) == "interpreted"
    mode("1")
    compiled = engine.make(program())
    compiled.run(arrays())
    assert jit.describe(compiled) == "interpreted"
    assert not has_machine_code(compiled)


def test_eager_mode_compiles_at_the_first_call(mode: Mode) -> None:
    mode("0")
    expected = engine.make(program()).run(arrays())
    mode("eager")
    compiled = engine.make(program())
    check(compiled, arrays(), expected)
    assert has_machine_code(compiled)
    assert jit.describe(compiled).startswith("compiled: ")
    check(compiled, arrays(), expected)


def test_operands_of_another_layout_are_compiled_too(mode: Mode) -> None:
    mode("0")
    plain = engine.make(program(300, 200))
    mode("eager")
    compiled = engine.make(program(300, 200))
    x, y = arrays(300, 200)
    for one, other in itertools.product(
        (x, x[::-1], x.T.copy().T), (y, y[::-1], y[:1].repeat(200))
    ):
        expected = plain.run((one, other))
        for _ in range(2):
            check(compiled, (one, other), expected)
    out = x.copy()
    expected = plain.run((x, y))
    got = compiled.run((out, y), (out, None))
    assert got[0] is out
    assert_same_bits(out, expected[0])
    assert all(one[-1] for one in compiled.machines())


@pytest.mark.parametrize(("rows", "columns", "row"), [(300, 20, 20), (300, 200, 0), (5, 20, 0)])
def test_many_short_rows_have_code_of_their_own(
    mode: Mode, rows: int, columns: int, row: int
) -> None:
    mode("eager")
    compiled = engine.make(program(rows, columns))
    compiled.run(arrays(rows, columns))
    assert [one[5] for one in compiled.machines() if one[1] == 0] == [row]


def test_hot_programs_compile_in_the_background(
    mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode("1")
    monkeypatch.setattr(jit, "HOT", 1e6)
    compiled = engine.make(program())
    expected = compiled.run(arrays())
    calls = 1
    while not has_machine_code(compiled):
        assert calls < 1000, jit.describe(compiled)
        check(compiled, arrays(), expected)
        jit.WORKER.wait()
        calls += 1
    # 20000 elements; steps and loads of both phases are nine.
    assert calls >= 5
    check(compiled, arrays(), expected)


def test_small_calls_count_towards_compilation(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    mode("1")
    monkeypatch.setattr(jit, "HOT", 1e5)
    compiled = engine.make(program(2))
    for _ in range(40):
        compiled.run(arrays(2))
    jit.WORKER.wait()
    assert not compiled.watcher()._error


def test_equal_bodies_are_compiled_once(mode: Mode) -> None:
    mode("eager")
    first, second = engine.make(program(3000)), engine.make(program(4000))
    first.run(arrays(3000))
    second.run(arrays(4000))
    one, other = (compiled.watcher()._made for compiled in (first, second))
    assert one
    assert [id(code) for code in one] == [id(code) for code in other]


def test_code_lives_as_long_as_its_program(mode: Mode) -> None:
    mode("eager")
    compiled = engine.make(program(3001))
    expected = compiled.run(arrays(3001))
    texts = len(jit._known)
    assert texts
    compiled.watcher()._made.clear()  # the program keeps what it runs
    check(compiled, arrays(3001), expected)
    del compiled
    assert len(jit._known) < texts


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fmul", "fmule"),
        # A function that no library has: an error, where LLVM's older linkers abort.
        ("entry:", "entry:\n  call void @zs_nowhere()"),
    ],
)
def test_program_that_fails_to_compile_stays_interpreted(
    old: str, new: str, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode("eager")
    right = jit_ir.write

    def wrong(*args: Any) -> jit_ir.Function | None:
        compiled = right(*args)
        assert compiled is not None
        text = "declare void @zs_nowhere()\n" + compiled.text.replace(old, new)
        return jit_ir.Function(text, compiled.scratch)

    monkeypatch.setattr(jit_ir, "write", wrong)
    compiled = engine.make(program())
    expected = compiled.run(arrays())
    check(compiled, arrays(), expected)
    assert "compiling it failed: RuntimeError: " in jit.describe(compiled)
    assert not has_machine_code(compiled)


def test_kernels_alone_stay_interpreted(mode: Mode) -> None:
    mode("eager")
    slots = (Slot("input", 0, "float32", (9,)), Slot("output", 0, "float32", (9,)))
    only = Phase(
        (9,), (Load(0, (0,), "float32"),), (), (Step("sin", (0,), F),), (Store(1, 1, (0,)),)
    )
    compiled = engine.make(Program(slots, (only,)))
    for _ in range(3):
        compiled.run((np.ones(9, np.float32),))
    assert jit.describe(compiled) == "interpreted, by kernels alone"


def test_machine_code_for_another_phase_is_refused() -> None:
    compiled = engine.make(program())
    code = (0, 4096, 0, False, None)
    assert not compiled.install(_native.isa(), 0, 0, (5,), False, *code)
    with pytest.raises(ValueError, match="no phase"):
        compiled.install(_native.isa(), 7, 0, (5,), False, *code)
    with pytest.raises(ValueError, match="instruction set"):
        compiled.install("risc", 0, 0, (5,), False, *code)
    with pytest.raises(TypeError, match="ten"):
        compiled.install()
    with pytest.raises(ValueError, match="no kernel"):
        _native.kernel_forms(_native.isa(), "add", "complex64")


def test_wrong_setting_warns(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    mode("fast")
    with pytest.warns(RuntimeWarning, match="ZEROSTRIDE_JIT is 'fast'"):
        assert jit.mode() == "1"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    mode("")
    assert jit.mode() == "0"
    mode("eager")
    with pytest.warns(RuntimeWarning, match=r"zerostride\[jit\]"):
        assert jit.mode() == "0"


def test_many_threads_compile_and_run(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    mode("1")
    monkeypatch.setattr(jit, "HOT", 1e5)
    programs = [engine.make(program(1000 + k)) for k in range(6)]
    operands = [arrays(1000 + k) for k in range(6)]
    expected = [compiled.run(given) for compiled, given in zip(programs, operands, strict=True)]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for k in (*range(6),) * 30:
                check(programs[k], operands[k], expected[k])
        except BaseException as error:  # noqa: BLE001 told below
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    jit.WORKER.wait()
    assert not failures
    assert all(has_machine_code(compiled) for compiled in programs)
