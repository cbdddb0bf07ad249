"""Forks during first fused calls of threads; the campaign ``forks`` makes thousands."""

import importlib
import os
import sys
import threading
from pathlib import Path

import pytest

from sampled import few

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from campaigns.forks import nursery

from zerostride.system import fork_gate
from zerostride.system.fork_gate import _Gate, first_call

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")


@pytest.mark.parametrize("jit", few(1, ["", "eager"]))
def test_no_child_of_a_first_call_hangs(jit):
    counts = nursery(forks=12, threads=8, seed=1, jit=jit)
    inside = counts.pop("inside")
    assert counts == {"right": 12}
    assert inside > 0


def test_gate_shut_twice_waits_once():
    """A fork waits before a lock that a first call takes, and then again for the gate itself."""
    gate, lock = _Gate(), threading.Lock()
    begun, entered = threading.Event(), threading.Event()

    def call():
        begun.set()
        with gate, lock:
            entered.set()

    thread = threading.Thread(target=call)
    gate.shut()
    with lock:
        thread.start()
        assert begun.wait(10)
        gate.shut()
        assert not entered.wait(0.2)
        gate.open()
    gate.open()
    thread.join(10)
    assert entered.is_set()


def test_fork_waits_for_a_thread_inside():
    entered, leave = threading.Event(), threading.Event()

    def call():
        with first_call:
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=call)
    thread.start()
    assert entered.wait(10)
    threading.Timer(0.2, leave.set).start()
    child = os.fork()
    if child == 0:
        os._exit(0 if leave.is_set() and not first_call._inside else 1)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def importing(tmp_path, monkeypatch):
    """Starts a thread that imports a module; the import ends when the event is set."""
    (tmp_path / "slow_import.py").write_text("import sys; sys.importing[0](); sys.importing[1](20)")
    monkeypatch.syspath_prepend(tmp_path)
    begun, end = threading.Event(), threading.Event()
    monkeypatch.setattr(sys, "importing", (begun.set, end.wait), raising=False)
    thread = threading.Thread(target=importlib.import_module, args=("slow_import",))
    thread.start()
    assert begun.wait(10)
    yield end
    end.set()
    thread.join()
    sys.modules.pop("slow_import", None)


def test_fork_of_one_thread_waits_for_nothing():
    child = os.fork()
    if child == 0:  # it has one thread
        fork_gate._imports = lambda me: os._exit(1)
        if os.fork():
            os.wait()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_fork_waits_for_an_import(importing):
    """Also of a module of another package, which may be imported for this one."""
    threading.Timer(0.2, importing.set).start()
    child = os.fork()
    if child == 0:
        os._exit(0 if importing.is_set() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_fork_waits_once_for_an_import_without_end(importing, monkeypatch):
    """As of a program that runs while its main module is imported."""
    looks = []
    look = fork_gate._imports
    monkeypatch.setattr(fork_gate, "_imports", lambda me: looks.append(me) or look(me))
    monkeypatch.setattr(fork_gate, "FOREIGN_SECONDS", 0.05)
    gate = _Gate()
    counts = []
    for _ in range(2):
        gate.shut()
        gate.open()
        counts.append(len(looks))
    assert not importing.is_set()
    assert counts[0] > 1
    assert counts[1] == counts[0] + 1
