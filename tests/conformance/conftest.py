"""Shared fixtures."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openvino_runs
import pytest
from child import Child
from ncnn_net import Net

from zerostride.runtimes.process import engines_kept


@pytest.fixture(scope="session", autouse=True)
def engines() -> Iterator[None]:
    """Started once for all verifications of a run: loading them takes most of the time."""
    with engines_kept():
        yield


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verifications are not looked up in the user's cache; their warnings are not shown."""
    monkeypatch.setenv("ZEROSTRIDE_CACHE", str(tmp_path / "cache"))
    warnings.simplefilter("ignore")


@pytest.fixture(scope="module")
def ncnn() -> Iterator[Net]:
    """The real ncnn, in a process of its own."""
    with Net() as net:
        if net.missing:
            pytest.skip(f"ncnn is not installed: {net.missing}")
        yield net


@pytest.fixture(scope="module")
def ncnn_ops() -> Iterator[Child]:
    """The real ncnn, asked for one op at a time."""
    with Child("ncnn") as child:
        if child.missing:
            pytest.skip(f"ncnn is not installed: {child.missing}")
        yield child


@pytest.fixture(scope="module")
def core() -> Any:
    """OpenVINO's."""
    return openvino_runs.cpu()


@pytest.fixture
def with_64_bits() -> Iterator[None]:
    """JAX has dtypes of 64 bits."""
    import jax

    with jax.enable_x64(True):
        yield


#: A program for Paddle's own interpreter, not a module of tests.
collect_ignore = ["paddle_worker.py"]
