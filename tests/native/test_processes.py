"""Threads, forks, signals, exits, and settings in the environment."""

from __future__ import annotations

import hashlib
import itertools
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from campaigns.native.command import public
from campaigns.native.draw import calls
from campaigns.native.judge import FAMILIES, judge
from native_scripts import needs_native, run, start

import zerostride as zs
from sampled import few
from zerostride.compute import native

pytestmark = needs_native
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="there are no forks and POSIX signals")
#: Elements that several threads are worth.
LARGE = 300_000
#: fmod of these takes microseconds an element, so that a result of some megabytes takes long.
SLOW = "x, y = np.full(({n}, 1), 1e308), np.linspace(1e-300, 2e-300, 1000)\n"


@pytest.fixture(autouse=True)
def _same_threads_afterwards():
    before = native.get_num_threads()
    yield
    native.set_num_threads(before)


# Threads


def _together(count: int, work) -> None:
    """Runs work(k) in threads that begin at once; fails as the first of them does."""
    failures: list[BaseException] = []
    barrier = threading.Barrier(count)

    def body(k: int) -> None:
        try:
            barrier.wait(30)
            work(k)
        except BaseException as error:  # noqa: BLE001 - raised again by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=body, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_thirty_two_threads_compute_on_shared_and_private_arrays():
    native.set_num_threads(4)
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((600, 500)).astype(np.float32)
    bias = rng.standard_normal(500).astype(np.float32)
    sums, tall = shared + bias, np.ascontiguousarray(shared.T)

    def work(k: int) -> None:
        private = shared + np.float32(k)
        out = np.empty_like(private)
        for _ in range(6):
            np.testing.assert_array_equal(zs.add(shared, bias), sums)
            np.testing.assert_array_equal(zs.add(shared, tall.T, out=out), shared * 2)
            np.testing.assert_array_equal(zs.multiply(private, bias), private * bias)
            np.testing.assert_array_equal(zs.add(private[:3, :5], 1), private[:3, :5] + 1)

    _together(32, work)


def test_generated_calls_are_right_in_many_threads():
    native.set_num_threads(3)

    def work(k: int) -> None:
        for _, call in calls(40_000 + 150 * k, 150, seed=1):
            if FAMILIES[call.op] in ("arithmetic", "choice", "comparison"):
                assert judge(call, public(call.op)).difference == ""

    _together(8, work)


def test_set_num_threads_is_safe_during_calls():
    a = np.arange(LARGE, dtype=np.int64).reshape(-1, 100)
    counts = itertools.cycle((1, 7, 2, 16, 3))

    def work(k: int) -> None:
        for _ in range(40):
            if k == 0:
                native.set_num_threads(next(counts))
            np.testing.assert_array_equal(zs.add(a, a[0]), a + a[0])

    _together(4, work)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_number_of_threads_is_kept(count):
    native.set_num_threads(count)
    assert native.get_num_threads() == count
    a = np.arange(LARGE, dtype=np.float64)
    np.testing.assert_array_equal(zs.add(a, 1), a + 1)


@pytest.mark.parametrize("count", [0, -1, 2**40])
def test_number_of_threads_out_of_range(count):
    with pytest.raises(ValueError, match="threads"):
        native.set_num_threads(count)


@pytest.mark.parametrize("count", [1.0, "2", None, True])
def test_number_of_threads_of_another_type(count):
    with pytest.raises(TypeError, match="integer"):
        native.set_num_threads(count)


def test_calls_release_the_lock():
    """Another thread makes progress while one computes."""
    x, y = np.full((600, 1), 1e308), np.linspace(1e-300, 2e-300, 100)
    native.set_num_threads(1)
    call, enough = 0, threading.Event()

    def work() -> None:
        nonlocal call
        while not enough.is_set() and call < 100:
            zs.fmod(x, y)
            call += 1

    thread = threading.Thread(target=work)
    thread.start()
    steps: Counter[int] = Counter()  # of this thread during each call
    while thread.is_alive() and not enough.is_set():
        time.sleep(0.001)  # needs the lock afterwards
        steps[call] += 1
        if steps[call] > 5:  # a call that keeps the lock leaves one before it and one after it
            enough.set()
    thread.join()
    assert enough.is_set(), steps


# Forks


@POSIX
def test_fork_after_use_starts_new_workers():
    """A child has no workers; it starts its own, and so does its child."""
    out = run(
        """
        import os, warnings
        warnings.simplefilter("ignore")
        zs.set_num_threads(4)
        a = np.arange(600_000.0).reshape(600, 1000)
        def right():
            return all((zs.add(a, a[0]) == a + a[0]).all() for _ in range(5))
        def forked(depth):
            assert right()
            child = os.fork()
            if child == 0:
                os._exit(0 if (forked(depth - 1) if depth else right()) else 1)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and right()
        print(all(forked(2) for _ in range(5)))
        """
    )
    assert out == "True\n"


@POSIX
def test_fork_while_others_compute_works():
    out = run(
        """
        import os, signal, threading, warnings
        warnings.simplefilter("ignore")
        zs.set_num_threads(3)
        a = np.arange(400_000.0).reshape(400, 1000)
        expected, stop = a + a[0], threading.Event()
        def work():
            while not stop.is_set():
                assert (zs.add(a, a[0]) == expected).all()
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads: thread.start()
        good = 0
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                os._exit(0 if (zs.add(a, a[0]) == expected).all() else 1)
            good += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        for thread in threads: thread.join()
        print(good)
        """
    )
    assert out == "20\n"


@POSIX
def test_multiprocessing_fork_works():
    out = run(
        """
        import multiprocessing, warnings
        warnings.simplefilter("ignore")
        a = np.arange(300_000.0)
        def work(k):
            return bool((zs.add(a, k) == a + k).all() and (zs.exp(a[:9]) > 0).all())
        work(0)
        with multiprocessing.get_context("fork").Pool(3) as pool:
            print(all(pool.map(work, range(30))))
        """
    )
    assert out == "True\n"


# Signals and ends


@POSIX
@pytest.mark.clock
def test_ctrl_c_ends_a_call_within_a_second():
    """Computing goes on afterwards."""
    process = start(
        SLOW.format(n=40_000)
        + """if True:
        zs.add(1, 2)
        print("begun", flush=True)
        try:
            zs.fmod(x, y)
            print("not interrupted")
        except KeyboardInterrupt:
            a = np.arange(300_000.0)
            print("interrupted", (zs.add(a, a) == 2 * a).all(), flush=True)
        """
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.3)
        begun = time.perf_counter()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted True\n"
        assert time.perf_counter() - begun < 1
        process.communicate(timeout=300)
    finally:
        process.kill()


@POSIX
def test_a_signal_handler_may_compute():
    """In the middle of a computation, with more scratch than that one has."""
    out = run(
        """
        import signal
        rng = np.random.default_rng(0)
        a, b = rng.random((2000, 60)), rng.random((60, 2000)).T
        big = rng.random((900, 900)).astype(np.float16)
        seen = []
        def handler(*_):
            seen.append(bool((zs.add(big.T[::-1], big) == big.T[::-1] + big).all()))
            signal.setitimer(signal.ITIMER_REAL, 0.05)  # again, however slow this was
        signal.signal(signal.SIGALRM, handler)
        x = np.full((2000, 60), 1e308)
        zs.add, zs.fmod  # a handler cannot use a module that Python is still importing
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        for _ in range(40):
            result = zs.fmod(x, b + 1e-300)
            if len(seen) > 5: break
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        print(all(seen), len(seen) > 1, (result == np.fmod(x, b + 1e-300)).all())
        """
    )
    assert out == "True True True\n"


ENDS = {
    "end": "",
    "exit": "import sys; sys.exit(0)",
    "_exit": "import os; os._exit(0)",
    "sleeping workers": "import time; time.sleep(0.3)",
    "reloaded": "import gc; del zs; gc.collect()",
    "daemon": """
import threading
def work():
    while True: zs.fmod(x, y)
for _ in range(3): threading.Thread(target=work, daemon=True).start()
import time; time.sleep(0.2)""",
    "atexit": "import atexit; atexit.register(lambda: zs.add(a, a))",
}


@pytest.mark.parametrize("end", few(4, ENDS))
def test_process_can_end_during_a_call(end):
    head = "zs.set_num_threads(4)\na = np.arange(300_000.0)\nzs.add(a, a)\n" + SLOW.format(n=200)
    run(head + ENDS[end], timeout=300)


# The environment


def _digest() -> str:
    """Of results that no backend may have otherwise."""
    digest = hashlib.sha256()
    for _, call in calls(0, 1200, seed=7):
        if FAMILIES[call.op] in ("functions", "choice") or call.op == "sign":
            continue
        arrays = call.make()
        try:
            result = np.asarray(arrays.by(public(call.op)))
        except Exception as error:  # noqa: BLE001 - what is raised is what is compared
            digest.update(type(error).__name__.encode())
            continue
        if result.dtype.char in "gG":  # long doubles have bytes that mean nothing
            continue
        nan = np.zeros((), bool) if result.dtype.kind in "biuO" else result != result
        values = np.where(nan, np.zeros((), result.dtype), result)
        digest.update(values.reshape(-1).tobytes())  # before NumPy 2.4, of 32 axes at most
    return digest.hexdigest()


def test_reference_backend_gives_the_same_results():
    out = run(
        f"""
        import sys
        sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}
        from test_processes import _digest
        from zerostride.compute import native
        print(native.backend(), _digest())
        """,
        ZEROSTRIDE_BACKEND="reference",
    )
    assert out == f"reference {_digest()}\n"


def test_unknown_backend_warns():
    process = start("zs.backend()", ZEROSTRIDE_BACKEND="fortran")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0
    assert "ZEROSTRIDE_BACKEND is 'fortran'; it is native, reference or unset" in err


def test_unknown_instruction_set_warns():
    process = start(
        "from zerostride.compute import native; print(native.backend(), zs.add(1, 2))",
        ZEROSTRIDE_ISA="mmx",
    )
    out, err = process.communicate(timeout=300)
    assert out == f"native {native._native.available_isas()[0]} 3\n"
    assert "ZEROSTRIDE_ISA='mmx' is not available here; these are: " in err


@pytest.mark.parametrize("isa", native._native.available_isas() if native._IN_USE else [])
def test_each_instruction_set_can_be_selected(isa):
    code = "from zerostride.compute import native; print(native.backend(), zs.exp(0.0))"
    assert run(code, ZEROSTRIDE_ISA=isa) == f"native {isa} 1.0\n"
    assert run(code, ZEROSTRIDE_ISA=isa.upper()) == f"native {isa} 1.0\n"


@pytest.mark.parametrize(("asked", "had"), [("1", "1"), ("3", "3"), ("64", "64")])
def test_environment_sets_the_number_of_threads(asked, had):
    code = "print(zs.get_num_threads())"
    assert run(code, ZEROSTRIDE_NUM_THREADS=asked) == f"{had}\n"


@pytest.mark.parametrize("asked", few(3, ["0", "many", "9" * 5000, "-2", "2.5", "3x", "5000", "٣"]))
def test_non_numeric_number_of_threads_warns(asked):
    code = "from zerostride.compute import native; print(native.get_num_threads() >= 1)"
    process = start(code, ZEROSTRIDE_NUM_THREADS=asked)
    out, err = process.communicate(timeout=300)
    assert out == "True\n"
    assert f"ZEROSTRIDE_NUM_THREADS={asked!r} is no positive number" in err


@pytest.mark.skipif(sys.platform != "linux", reason="sched_setaffinity is Linux's")
def test_default_threads_do_not_exceed_processors():
    code = """
    import os
    one = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {one})
    print(zs.get_num_threads())
    """
    assert run(code, ZEROSTRIDE_NUM_THREADS="") == "1\n"


#: A fork after so many milliseconds of another thread's first fused call, and one in the child.
FIRST_CALL = """
import os, threading, time
x = np.ones((64, 64), np.float32)
first = zs.fuse(lambda a, b: zs.maximum(a * b + a, 0.5) - b)
second = zs.fuse(lambda a, b: zs.minimum(a - b * a, 0.5))
thread = threading.Thread(target=first, args=(x, x[0]))
thread.start()
time.sleep({delay} / 1000)
child = os.fork()
if child == 0:
    ok = second(x, x[0])[0, 0] == 0 and first(x, x[0])[0, 0] == 1
    os._exit(0 if ok else 3)
thread.join()
assert os.waitpid(child, 0)[1] == 0
"""


@POSIX
@pytest.mark.parametrize("delay", few(2, [0, 3, 1, 10, 30]))
@pytest.mark.parametrize("jit", ["eager", "0"])
def test_fork_during_another_threads_first_fused_call_works(delay: int, jit: str) -> None:
    run(FIRST_CALL.format(delay=delay), ZEROSTRIDE_JIT=jit)
