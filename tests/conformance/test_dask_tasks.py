"""Dask tasks: their names, their pickles, and the engine's threads in them."""

from __future__ import annotations

import operator
import pickle

import numpy as np
import pytest

import zerostride as zs

dask = pytest.importorskip("dask", reason="Dask's arrays are an optional library")
da = pytest.importorskip("dask.array", reason="Dask's arrays are an optional library")


def test_task_names_depend_on_the_computation() -> None:
    x = da.ones((8, 3), chunks=(4, 3))
    assert zs.add(x, 1).name == zs.add(x, 1).name != zs.add(x, 1.0).name
    assert zs.fuse(lambda x: x * 2)(x).name == zs.fuse(lambda x: x * 2)(x).name
    assert zs.fuse(lambda x: x * 2)(x).name != zs.fuse(lambda x: x * 3)(x).name
    # Numbers among the operands are no constants of the program, and part of the name.
    scaled = zs.fuse(operator.mul)
    assert scaled(x, 2.0).name != scaled(x, 3.0).name
    assert scaled(x, 3.0)[0, 0].compute() == 3


def test_tasks_of_lambdas_can_be_pickled() -> None:
    x = da.ones((8, 3), chunks=(4, 3))
    scaled = zs.fuse(lambda x: (x * 2).sum())(x)
    again = pickle.loads(pickle.dumps(scaled))
    assert again.compute() == 48
    (optimised,) = dask.optimize(scaled)
    assert all(len(pickle.dumps(task)) < 8000 for task in dict(optimised.dask).values())


def test_tasks_share_the_engines_threads() -> None:
    from zerostride.arrays.dask.tasks import one_thread_each

    before = zs.get_num_threads()
    zs.set_num_threads(4)
    try:
        with one_thread_each():
            assert zs.get_num_threads() == 4
            with one_thread_each():
                assert zs.get_num_threads() == 2
                with one_thread_each():
                    assert zs.get_num_threads() == 1
            assert zs.get_num_threads() == 4
        assert zs.get_num_threads() == 4
        with one_thread_each():  # whoever sets it meanwhile has the last word
            zs.set_num_threads(3)
        assert zs.get_num_threads() == 3
        x = da.from_array(np.random.default_rng(0).random((400, 500)), chunks=(50, -1))
        with dask.config.set(scheduler="threads", num_workers=4):
            result = zs.fuse(zs.exp)(x).compute()
        assert zs.get_num_threads() == 3
        np.testing.assert_allclose(result, np.exp(x.compute()))
    finally:
        zs.set_num_threads(before)
