"""The engine compiled for 64-bit Arm (NEON), in user-mode emulation."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest
from programs import ROOT, build, exact, run

EMULATOR = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")

pytestmark = [
    pytest.mark.builds,
    pytest.mark.skipif(
        not (EMULATOR and all(map(shutil.which, ("aarch64-linux-gnu-g++", "cmake")))),
        reason="needs cmake, g++-aarch64-linux-gnu and qemu-user-static",
    ),
    pytest.mark.skipif(
        platform.machine() in ("aarch64", "arm64"), reason="the other tests run on Arm here"
    ),
]

ARM = ROOT / "build" / "arm"
PATIENCE = 500.0


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build("--arm")


def emulated(program: str, *arguments: str) -> list[str]:
    assert EMULATOR is not None
    command: list[str | Path] = [EMULATOR, "-L", "/usr/aarch64-linux-gnu", ARM / program]
    return run([*command, *arguments], PATIENCE)


def test_emulated_kernels_are_neon() -> None:
    assert emulated("test_kernels", "--list") == ["neon"]


def test_kernels_agree_with_scalar_code_and_with_this_processor() -> None:
    here = ROOT / "build" / "dev"
    build("--build", str(here), "--isa", "all", "--tests")
    arm = exact(emulated("test_kernels"))
    assert arm == exact(run([here / "test_kernels", "baseline"], PATIENCE))


def test_nests_agree_in_emulation() -> None:
    emulated("test_nest_main", "11", "400")


def test_fused_programs_agree_in_emulation() -> None:
    emulated("test_fused_main", "11", "200")


def test_reductions_agree_in_emulation() -> None:
    emulated("test_reduce_main", "11", "150")


def test_launching_works_in_emulation() -> None:
    emulated("test_launch_main")


def test_pool_works_in_emulation() -> None:
    # The emulator forks with locks of its own held by other threads, and the child waits for them.
    emulated("test_harness", "1", "no-forks")
