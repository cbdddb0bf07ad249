"""Machine code on disk: what is kept, when it is trusted, and that it computes the same bits."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="the compiled tier is made by llvmlite")
pytest.importorskip("zerostride.compute._native", reason="the engine calls machine code")

from jit_bodies import F32, F, assert_same_bits, drawn, forms, phase

from zerostride.compute import _native
from zerostride.fusion.jit import image, kept
from zerostride.fusion.jit import phases as jit_ir
from zerostride.fusion.jit import tier as jit
from zerostride.fusion.jit.instruction_sets import TARGETS
from zerostride.fusion.schedule import engine
from zerostride.fusion.schedule.program import Literal, Load, Phase, Program, Slot, Step, Store

pytestmark = pytest.mark.skipif(
    not _native.isa().startswith(("avx", "baseline")), reason="kept code is x86-64's"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of kept code."""
    monkeypatch.setenv("ZEROSTRIDE_CACHE", str(tmp_path))
    yield tmp_path / "code"
    monkeypatch.undo()
    jit.mode.cache_clear()


def use(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("ZEROSTRIDE_JIT", mode)
    jit.mode.cache_clear()


def chain(*steps: Step, literals: tuple[Literal, ...] = ()) -> Phase:
    return phase(("float32", "float32"), literals, list(steps))


def program(body: Phase, n: int = 3000) -> Program:
    """A program of one phase of two rows of float32."""
    slots = (
        Slot("input", 0, "float32", (n,)),
        Slot("input", 1, "float32", (n,)),
        Slot("output", 0, "float32", (n,)),
    )
    loads = (Load(0, (0,), "float32"), Load(1, (0,), "float32"))
    last = len(loads) + len(body.literals) + len(body.steps) - 1
    stored = Phase((n,), loads, body.literals, body.steps, (Store(last, 2, (0,)),))
    return Program(slots, (stored,))


BODIES = [
    chain(Step("multiply", (0, 1), F32), Step("add", (2, 0), F32)),
    chain(Step("exp", (0,), F), Step("tanh", (1,), F), Step("add", (2, 3), F32)),
    chain(Step("maximum", (0, 2), F32), literals=(Literal(0.5, "float32"),)),
    chain(Step("multiply", (0, 2), F32), literals=(Literal(-0.0, "float32"),)),
    chain(Step("sigmoid", (0,), F), Step("divide", (2, 1), F32), Step("sqrt", (3,), F)),
    chain(Step("log", (0,), F), Step("subtract", (2, 1), F32)),
]


@pytest.mark.parametrize("body", BODIES)
def test_kept_code_computes_the_same_bits(
    body: Phase, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(3)
    operands = tuple(drawn("float32", 3000, random) for _ in range(2))
    use(monkeypatch, "0")
    (expected,) = engine.make(program(body)).run(operands)
    use(monkeypatch, "eager")
    engine.make(program(body)).run(operands)
    assert len(list(folder.iterdir())) == 1
    use(monkeypatch, "1")
    compiled = engine.make(program(body))
    for turn in range(3):
        (got,) = compiled.run(operands)
        assert_same_bits(got, expected)
        assert "from disk" in jit.describe(compiled), turn
    assert compiled.machines()[0][-1]


def test_another_process_loads_it_without_llvm(folder: Path) -> None:
    text = """
import sys, numpy as np, zerostride as zs
f = zs.fuse(lambda x, y: zs.exp(x * y) + zs.maximum(x, 0))
x = np.linspace(-1, 1, 5000, dtype=np.float32)
results = [f(x, x) for _ in range(3)]
assert all(np.array_equal(results[0], one) for one in results)
print("from disk" in str(f.explain(x, x)), "llvmlite" in sys.modules, results[0].sum())
"""
    answers = []
    for mode in ("eager", "1"):
        variables = {**os.environ, "ZEROSTRIDE_JIT": mode, "ZEROSTRIDE_CACHE": str(folder.parent)}
        done = subprocess.run(
            [sys.executable, "-c", text], env=variables, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout.split())
    assert [answer[:2] for answer in answers] == [["False", "True"], ["True", "False"]]
    assert answers[0][2] == answers[1][2]


def test_a_missing_layout_is_compiled_when_it_is_hot(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, "1")
    monkeypatch.setattr(jit, "HOT", 1e5)
    compiled = engine.make(program(BODIES[0]))
    x = np.ones(3000, np.float32)
    calls = 0
    while not compiled.machines() or not compiled.machines()[0][-1]:
        compiled.run((x, x))
        jit.WORKER.wait()
        calls += 1
        assert calls < 1000
    assert calls > 2, "it was interpreted until it was hot"
    assert len(list(folder.iterdir())) == 1
    assert "from disk" not in jit.describe(compiled)


def test_what_calls_kernels_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses of kernels are those of one process."""
    use(monkeypatch, "eager")
    compiled = engine.make(program(chain(Step("sin", (0,), F), Step("add", (2, 1), F32))))
    compiled.run((np.ones(3000, np.float32),) * 2)
    assert compiled.machines()[0][-1]
    assert not folder.exists() or not list(folder.iterdir())


def test_off_keeps_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZEROSTRIDE_CACHE", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent))
    use(monkeypatch, "eager")
    engine.make(program(BODIES[0])).run((np.ones(3000, np.float32),) * 2)
    assert list(folder.parent.iterdir()) == []


def test_names_depend_on_all_that_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    body = BODIES[2]
    facts = ("avx2", 0, (3,), False)
    keys = [kept.key_of(body, *facts)]
    keys += [kept.key_of(other, *facts) for other in (*BODIES[:2], BODIES[3])]
    for literal in (Literal(0.25, "float32"), Literal(0.5, "float64"), Literal(-0.5, "float32")):
        keys.append(kept.key_of(replace(body, literals=(literal,)), *facts))
    zeros = [Literal(value, "float32") for value in (0.0, -0.0)]
    keys += [kept.key_of(replace(body, literals=(literal,)), *facts) for literal in zeros]
    keys += [kept.key_of(body, "avx512", *facts[1:]), kept.key_of(body, "avx2", 1, *facts[2:])]
    keys += [kept.key_of(body, "avx2", 0, (3, 3), False), kept.key_of(body, *facts[:3], True)]
    loads = tuple(replace(load, dtype="float64") for load in body.loads)
    keys.append(kept.key_of(replace(body, loads=loads), *facts))
    monkeypatch.setattr(kept, "_versions", lambda: ("another",))
    keys.append(kept.key_of(body, *facts))
    assert len(set(keys)) == len(keys)
    monkeypatch.undo()
    # Neither the box nor the places of operands are in the code.
    moved = replace(body, shape=(7,), loads=tuple(replace(one, slot=5) for one in body.loads))
    assert kept.key_of(moved, *facts) == keys[0]


@pytest.fixture
def one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of the folder."""
    use(monkeypatch, "eager")
    engine.make(program(BODIES[1])).run((np.ones(3000, np.float32),) * 2)
    (file,) = folder.iterdir()
    assert kept.read(file.name) is not None
    return file


def test_the_folder_and_its_files_are_the_users_own(one: Path) -> None:
    assert one.parent.stat().st_mode & 0o777 == 0o700
    assert one.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("bits", [0o620, 0o602, 0o666])
def test_files_that_others_write_are_not_read(one: Path, bits: int) -> None:
    one.chmod(bits)
    assert kept.read(one.name) is None
    one.chmod(0o600)
    one.parent.chmod(0o770)
    assert kept.read(one.name) is None
    one.parent.chmod(0o700)
    assert kept.read(one.name) is not None


def test_links_and_other_kinds_are_not_read(one: Path) -> None:
    real = one.with_name("real")
    one.rename(real)
    one.symlink_to(real)
    assert kept.read(one.name) is None
    one.unlink()
    one.mkdir()
    assert kept.read(one.name) is None
    assert kept.read("no such file") is None


def test_damaged_files_are_not_read(one: Path) -> None:
    data = one.read_bytes()
    random = np.random.default_rng(5)
    for length in [*range(80), *random.integers(80, len(data), 60).tolist()]:
        one.write_bytes(data[:length])
        assert kept.read(one.name) is None
    for place in random.integers(0, len(data), 200).tolist():
        changed = bytearray(data)
        changed[place] ^= 1 << int(random.integers(8))
        one.write_bytes(changed)
        assert kept.read(one.name) is None
    one.write_bytes(data + b"\0")
    assert kept.read(one.name) is None
    one.write_bytes(data)
    assert kept.read(one.name) is not None


def test_the_folder_is_bounded(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = kept.read(one.name)
    assert body is not None
    monkeypatch.setattr(kept, "MOST_FILES", 5)
    monkeypatch.setattr(kept, "_ROOM", {})  # of the limits above
    for number in range(9):
        kept.write(f"body{number}", body)
        os.utime(one.parent / f"body{number}", (number, number))
    assert sorted(file.name for file in one.parent.iterdir() if "body" in file.name) == [
        f"body{number}" for number in range(5, 9)
    ]
    monkeypatch.setattr(kept, "MOST_BYTES", 2 * one.stat().st_size)
    kept.write("last", body)
    assert "last" in [file.name for file in one.parent.iterdir()]
    assert sum(file.stat().st_size for file in one.parent.iterdir()) <= kept.MOST_BYTES


def test_the_folder_is_listed_seldom_and_stays_bounded(
    one: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = kept.read(one.name)
    assert body is not None
    listings, scandir = [], os.scandir
    monkeypatch.setattr(kept, "MOST_FILES", 80)
    monkeypatch.setattr(kept, "_ROOM", {})
    monkeypatch.setattr(kept.os, "scandir", lambda path: listings.append(path) or scandir(path))
    for number in range(110):
        kept.write(f"body{number}", body)
        assert len(os.listdir(one.parent)) <= kept.MOST_FILES
    assert listings.count(one.parent) == 10  # at the first write, and after each 10 that had room


def test_processes_may_keep_the_same_body_at_once(one: Path) -> None:
    text = f"""
from zerostride.fusion.jit import kept
body = kept.read({one.name!r})
for _ in range(50):
    kept.write({one.name!r}, body)
    assert kept.read({one.name!r}) == body
"""
    children = [subprocess.Popen([sys.executable, "-c", text]) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4
    assert [file.name for file in one.parent.iterdir()] == [one.name]


def objects() -> list[bytes]:
    """The object files of the bodies."""
    target = TARGETS[_native.isa()]
    files = []
    for body in BODIES:
        last = len(body.loads) + len(body.literals) + len(body.steps) - 1
        function = jit_ir.write(body, (last,), 0, target, forms)
        assert function is not None
        files.append(jit.assemble(function.text, target).file)
    return files


def test_damaged_objects_make_no_image_outside_of_its_block() -> None:
    random = np.random.default_rng(6)
    refused = 0
    for data in objects():
        whole = image.image_of(data)
        assert whole is not None
        assert image.image_of(data, b"another") is None
        for _ in range(300):
            changed = bytearray(data)
            for place in random.integers(0, len(data), 3).tolist():
                changed[place] = int(random.integers(256))
            cut = int(random.integers(1, len(data) + 1))
            drawn_image = image.image_of(bytes(changed[:cut]))
            if drawn_image is None:
                refused += 1
                continue
            size = len(drawn_image.data)
            assert all(spot + 8 <= size for spot in drawn_image.moved)
    assert refused > 100


def test_an_object_whose_sections_lie_beyond_any_memory_has_no_image() -> None:
    for data in objects():
        far = bytearray(data)
        far[40:48] = b"\xff" * 8  # the place of the table of sections
        assert image.image_of(bytes(far)) is None


def test_a_system_that_forbids_it_goes_on_interpreted(
    one: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(address: int, size: int) -> None:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(image, "_protect", forbidden)
    use(monkeypatch, "1")
    compiled = engine.make(program(BODIES[1]))
    compiled.run((np.ones(3000, np.float32),) * 2)
    assert jit.describe(compiled) == "interpreted"
