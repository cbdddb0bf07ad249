"""The compiled tier in processes that fork, end or are interrupted while it compiles."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="the compiled tier is made by llvmlite")
pytest.importorskip("zerostride.compute._native", reason="the engine calls machine code")

import zerostride as zs
from zerostride.fusion.jit import tier as jit

_HEAD = """
import os, threading, time
import numpy as np
import zerostride as zs
from zerostride.fusion.jit import tier as jit
from zerostride.fusion.jit.instruction_sets import TARGETS
jit.HOT = 1e5

def made(k):
    return zs.fuse(lambda x: ((x + k) * x - k) * x)

x = np.arange(30000, dtype=np.float32)
"""


def run(text: str) -> str:
    environment = {**os.environ, "ZEROSTRIDE_JIT": "1", "ZEROSTRIDE_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", _HEAD + text],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork_during_compilation_works() -> None:
    text = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads: what this is about
for k in range(12):
    f = made(float(k))
    for _ in range(4):
        r = f(x)
    child = os.fork()
    if child == 0:
        g = made(k + 0.5)
        want = ((x + np.float32(k + 0.5)) * x - np.float32(k + 0.5)) * x
        for _ in range(4):
            assert np.array_equal(g(x), want)
        jit.WORKER.wait()
        assert np.array_equal(g(x), want) and np.array_equal(f(x), r)
        os._exit(len(jit._known) == 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("done")
"""
    assert run(text) == "done\n"


def test_exit_during_compilation_works() -> None:
    text = """
functions = [made(float(k)) for k in range(30)]
for f in functions:
    for _ in range(4):
        f(x)
print(jit.WORKER._thread.is_alive())
"""
    assert run(text) == "True\n"


def test_llvm_is_not_imported_before_it_is_needed() -> None:
    text = """
import sys
jit.HOT = 1e12
made(1.0)(x)
print("llvmlite" in sys.modules, threading.active_count())
"""
    assert run(text) == "False 1\n"


def test_interrupt_during_compilation_ends_the_call(monkeypatch):
    def interrupted(self, native):
        raise KeyboardInterrupt

    monkeypatch.setattr(jit, "mode", lambda: "eager")
    monkeypatch.setattr(jit.Tier, "compile", interrupted)
    fused = zs.fuse(lambda x: x * 2 + 1)
    with pytest.raises(KeyboardInterrupt):
        list(map(fused, [np.ones(100_000, np.float32)] * 2))
    monkeypatch.undo()
    assert fused(np.ones(2, np.float32)).tolist() == [3, 3]
