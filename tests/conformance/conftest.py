"""Shared fixtures."""

from __future__ import annotations

import gc
import linecache
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openvino_runs
import pytest
import torch_lines
from child import Child
from ncnn_net import Net
from torch_watched import modes

import zerostride as zs
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


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Runs PyTorch code as a file of a user's project."""
    monkeypatch.chdir(tmp_path)

    def run(code: str, name: str = "train.py") -> dict[str, Any]:
        path = tmp_path / name
        path.write_text(code)
        linecache.checkcache(str(path))
        scope = {**torch_lines.names(), "zs": zs, "__name__": path.stem}
        exec(compile(code, str(path), "exec"), scope)
        return scope

    return run


@pytest.fixture
def empty_stack() -> Iterator[None]:
    """No test leaves a mode on PyTorch's stack. Contexts of other tests may be in garbage."""
    gc.collect()
    assert modes() == 0
    yield
    assert modes() == 0


#: A program for Paddle's own interpreter, not a module of tests.
collect_ignore = ["paddle_worker.py"]
