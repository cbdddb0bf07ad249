"""Dask arrays on clusters of real worker processes, and in bounded memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs

dask = pytest.importorskip("dask", reason="Dask's arrays are an optional library")
da = pytest.importorskip("dask.array", reason="Dask's arrays are an optional library")
distributed = pytest.importorskip("distributed", reason="clusters are an optional library")

HERE = Path(__file__).parent
GB = 1 << 30


def cluster(workers: int) -> Any:
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        memory_limit="1GiB",
    )


def test_killed_worker_does_not_change_the_result() -> None:
    def slowly(block: np.ndarray) -> np.ndarray:
        time.sleep(0.1)
        return block

    numbers = da.arange(4800, chunks=80, dtype="int64").map_blocks(
        slowly, meta=np.empty(0, "int64")
    )
    with cluster(2) as addresses, distributed.Client(addresses) as client:
        client.wait_for_workers(2, timeout=300)
        lazy = zs.fuse(lambda x: (x * 2 + 1).sum())(numbers)
        future = client.compute(lazy)
        victim = next(iter(client.run(os.getpid).values()))
        deadline = time.monotonic() + 300
        done = 0
        while done < 8 and time.monotonic() < deadline:
            time.sleep(0.05)
            done = sum(client.run(_has_done).values())
        assert done >= 8, "nothing was computed before the worker was to be killed"
        assert not future.done()
        os.kill(victim, signal.SIGKILL)
        assert future.result(timeout=300) == 4800**2
        assert victim not in client.run(os.getpid).values()


def _has_done(dask_worker: Any) -> int:
    return len(dask_worker.data)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
def test_sum_of_20_gb_takes_less_than_2_gb() -> None:
    elements = 20 * GB // 8
    done = subprocess.run(
        [sys.executable, "-W", "error", str(HERE / "dask_child.py"), str(elements)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["right"]
    assert document["bytes"] == 20 * GB
    assert document["peak"] < 2 * GB


@pytest.fixture(scope="module", params=[2, 4])
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    with cluster(request.param) as addresses, distributed.Client(addresses) as connected:
        connected.wait_for_workers(request.param, timeout=300)
        yield connected


@zs.fuse
def normalised(x: Any, gamma: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * gamma


def test_worker_processes_give_the_same_results(client: Any) -> None:
    rng = np.random.default_rng(0)
    x, gamma = rng.random((400, 64), np.float32), rng.random(64, np.float32)
    lazy = da.from_array(x, chunks=(50, -1))
    # Lambdas, and functions of a module that no worker can import: the program travels.
    scaled = zs.fuse(lambda x, g, *, by: (x * g * by, (x * by).sum(0)))
    result = dask.compute(normalised(lazy, gamma), *scaled(lazy, gamma, by=2.0))
    wanted = (normalised(x, gamma), *scaled(x, gamma, by=2.0))
    for one, eager in zip(result, wanted, strict=True):
        assert one.dtype == eager.dtype
        np.testing.assert_allclose(one, eager, rtol=1e-5)
    modules = client.run(lambda: [name for name in sys.modules if "test_dask" in name])
    assert all(not names for names in modules.values())
    np.testing.assert_array_equal(zs.add(lazy, gamma).compute(), x + gamma)
    assert zs.argmax(lazy).compute() == x.argmax()
    np.testing.assert_allclose(zs.logsumexp(lazy).compute(), zs.logsumexp(x), rtol=1e-6)
    softmax = zs.fuse(lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum())
    np.testing.assert_allclose(softmax(lazy).sum().compute(), 1, rtol=1e-5)


def test_task_on_a_worker_has_one_engine_thread(client: Any) -> None:
    def threads(block: np.ndarray) -> np.ndarray:
        from zerostride.arrays.dask.tasks import one_thread_each

        with one_thread_each():
            return np.full_like(block, zs.get_num_threads())

    assert (da.ones(8, chunks=1).map_blocks(threads, meta=np.empty(0)).compute() == 1).all()


def test_workers_read_files_themselves(client: Any, tmp_path: Path) -> None:
    from zerostride.arrays.dask.mapped_files import from_memmap

    x = np.random.default_rng(1).random((512, 96), np.float32)
    mapped = np.memmap(tmp_path / "x.bin", np.float32, "w+", shape=x.shape)
    mapped[:] = x
    mapped.flush()
    gamma = x[0].copy()
    lazy = normalised(from_memmap(mapped, chunks=(64, -1)), gamma)
    # The graph has the file's name, and not what is in it.
    assert len(distributed.protocol.pickle.dumps(lazy)) < x.nbytes / 4
    np.testing.assert_allclose(lazy.compute(), normalised(x, gamma), rtol=1e-5)
    beside = zs.add(da.ones(x.shape, chunks=(100, -1), dtype="float32"), mapped)
    assert len(distributed.protocol.pickle.dumps(beside)) < x.nbytes / 4
    np.testing.assert_array_equal(beside.compute(), 1 + x)
    with pytest.raises(TypeError, match=r"whole numpy\.memmap"):
        from_memmap(mapped[3:], chunks=64)


def test_zarr_store_is_computed_into_a_zarr_store(client: Any, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="stores of chunks are an optional library")
    x = np.random.default_rng(1).random((512, 96), np.float32)
    names = [str(tmp_path / name) for name in ("x.zarr", "y.zarr")]
    store = zarr.open_array(names[0], mode="w", shape=x.shape, chunks=(64, 96), dtype="f4")
    store[:] = x
    normalised(da.from_zarr(names[0]), x[0]).to_zarr(names[1], compute=True)
    np.testing.assert_allclose(zarr.open_array(names[1])[:], normalised(x, x[0]), rtol=1e-5)
