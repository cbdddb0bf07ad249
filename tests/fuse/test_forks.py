"""Forks during first fused calls of threads; the campaign ``forks`` makes thousands."""

import os
import sys
import threading
from pathlib import Path

import pytest

from sampled import few

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from campaigns.forks import nursery

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
