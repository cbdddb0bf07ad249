"""The C++ programs: kernels compared with scalar code; nests; the pool."""

from __future__ import annotations

import shutil

import pytest
from programs import ROOT, build, exact, run

pytestmark = [
    pytest.mark.builds,
    pytest.mark.skipif(
        not all(map(shutil.which, ("c++", "cmake"))), reason="needs a C++ compiler and cmake"
    ),
]

HERE = ROOT / "build" / "dev"
# One is slow only where many processes share the processors.
PATIENCE = 300.0


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build("--build", str(HERE), "--isa", "all", "--tests")


def sets() -> list[str]:
    """The instruction sets of this build that this processor has."""
    return run([HERE / "test_kernels", "--list"], PATIENCE)


def test_kernels_agree_with_scalar_code_and_with_each_other() -> None:
    names = sets()
    sums = [exact(run([HERE / "test_kernels", name], PATIENCE)) for name in names]
    assert len(sums[0]) > 500
    for name, other in zip(names[1:], sums[1:], strict=True):
        assert other == sums[0], f"{name} differs from {names[0]}"


def test_nests_agree() -> None:
    run([HERE / "test_nest_main", "7", "6000"], PATIENCE)


def test_fused_programs_agree() -> None:
    run([HERE / "test_fused_main", "7", "2000"], PATIENCE)


def test_reductions_agree() -> None:
    run([HERE / "test_reduce_main", "7", "1200"], PATIENCE)


def test_launching_works() -> None:
    run([HERE / "test_launch_main"], PATIENCE)


def test_pool_works() -> None:
    run([HERE / "test_harness"], PATIENCE)
