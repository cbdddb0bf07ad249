"""The errors of the native engine's elementary functions, compared with the C library."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from programs import ROOT

sys.path.insert(0, str(ROOT / "native" / "tests"))

import accuracy
import vmath_library

if TYPE_CHECKING:
    from pathlib import Path

    from vmath_library import Functions

pytestmark = [
    pytest.mark.builds,
    pytest.mark.skipif(vmath_library.compiler() is None, reason="needs a C++ compiler"),
]

SETS = vmath_library.instruction_sets()
DTYPES = (np.float32, np.float64)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Functions]:
    folder = tmp_path_factory.mktemp("ulp")
    return {name: vmath_library.Functions(name, folder) for name in SETS}


def too_far(functions: Functions, count: int) -> list[str]:
    """Every function whose error is beyond its limit."""
    entries = []
    for name, limits in accuracy.LIMITS.items():
        for dtype, limit in zip(DTYPES, limits, strict=True):
            error = accuracy.measure(functions, name, dtype, count)
            if not error.ulp <= limit:
                entries.append(f"{name} of {dtype.__name__}: {error.ulp} at {error.at}")
    return entries


@pytest.mark.parametrize("name", SETS)
def test_errors_are_within_their_limits(libraries: dict[str, Functions], name: str) -> None:
    assert too_far(libraries[name], 2000) == []


@pytest.mark.skipif(
    vmath_library.emulator() is None or SETS == ["neon"],
    reason="needs g++-aarch64-linux-gnu and qemu-user-static, elsewhere than on Arm",
)
def test_errors_on_arm_are_within_their_limits(tmp_path: Path) -> None:
    assert too_far(vmath_library.Emulated(tmp_path), 300) == []


def test_every_function_has_a_limit(libraries: dict[str, Functions]) -> None:
    assert set(libraries[SETS[0]].names()) == set(accuracy.LIMITS)


@pytest.mark.skipif("avx512" not in SETS, reason="needs a processor with AVX-512")
def test_sets_with_fma_give_the_same_bits(libraries: dict[str, Functions]) -> None:
    narrow, wide = libraries["avx2"], libraries["avx512"]
    for name in accuracy.LIMITS:
        for dtype in DTYPES:
            for a, b in accuracy.samples(wide, name, dtype, 1000):
                one, other = narrow.compute(name, a, b), wide.compute(name, a, b)
                np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("function", ["sin", "cos", "tan"])
def test_angle_does_not_depend_on_its_neighbours(
    libraries: dict[str, Functions], function: str, name: str
) -> None:
    functions = libraries[name]
    for dtype in DTYPES:
        rng = np.random.default_rng(3)
        a = (rng.standard_normal(1500) * 2.0 ** rng.integers(-5, 60, 1500)).astype(dtype)
        row = functions.compute(function, a, a)
        alone = [functions.compute(function, a[i : i + 1], a)[0] for i in range(a.size)]
        np.testing.assert_array_equal(row, np.array(alone, dtype))


@pytest.mark.parametrize("name", SETS)
def test_power_does_not_depend_on_its_neighbours(
    libraries: dict[str, Functions], name: str
) -> None:
    functions = libraries[name]
    for dtype in DTYPES:
        rng = np.random.default_rng(3)
        # Chunks without special cases, with one, and with many.
        x, y = rng.uniform(0.1, 9, (2, 1500)).astype(dtype)
        x[700] = 0
        special = accuracy.special(dtype)[:300]
        x[1100 : 1100 + special.size] = special
        row = functions.compute("pow", x, y)
        alone = [functions.compute("pow", x[i : i + 1], y[i : i + 1])[0] for i in range(x.size)]
        np.testing.assert_array_equal(row, np.array(alone, dtype))


@pytest.mark.parametrize("name", SETS)
def test_small_whole_powers_are_exact(libraries: dict[str, Functions], name: str) -> None:
    for dtype in DTYPES:
        x, y = (grid.ravel().astype(dtype) for grid in np.mgrid[-12:13, 0:20])
        exact = x.astype(np.float64) ** y
        known = np.abs(exact) < 2.0 ** np.finfo(dtype).nmant
        got = libraries[name].compute("pow", x, y)
        np.testing.assert_array_equal(got[known], exact[known])


@pytest.mark.parametrize("name", SETS)
def test_logarithms_of_powers_are_exact(libraries: dict[str, Functions], name: str) -> None:
    for base, function, last in ((2, "log2", 127), (10, "log10", 38)):
        for dtype in DTYPES:
            exact = np.arange(last + 1).astype(dtype)
            powers = (
                dtype(base) ** exact if base == 2 else np.array([10.0**k for k in exact], dtype)
            )
            got = libraries[name].compute(function, powers, powers)
            np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize("name", SETS)
def test_row_may_be_computed_in_place(libraries: dict[str, Functions], name: str) -> None:
    functions = libraries[name]
    for function in accuracy.LIMITS:
        for dtype in DTYPES:
            a = accuracy.special(dtype)
            row = a.copy()
            functions.compute(function, row, a, out=row)
            np.testing.assert_array_equal(row, functions.compute(function, a, a), err_msg=function)


@pytest.mark.parametrize("dtype", DTYPES)
def test_judge_finds_wrong_values(libraries: dict[str, Functions], dtype: type) -> None:
    functions = libraries[SETS[0]]

    def error(x: float, got: float) -> float:
        a = np.array([1.0, x], dtype)
        return functions.judge("trunc", a, a, np.array([1.0, got], dtype))[0]

    two = dtype(2)
    for _ in range(5):
        two = np.nextafter(two, dtype(3))
    assert error(2.5, float(two)) == 5.0
    assert error(2.5, 2.0) == 0.0
    assert error(-0.5, 0.0) == np.inf
    assert error(0.5, np.nan) == np.inf
    assert error(np.nan, 0.0) == np.inf
    assert error(1.0, np.inf) > 1e6
    assert error(np.inf, float(np.finfo(dtype).max)) == np.inf


def test_document_is_within_the_limits() -> None:
    text = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", text, re.MULTILINE)
    assert [name for name, _ in rows] == list(accuracy.LIMITS)
    for name, cells in rows:
        with_fma, without, _, with_fma_64, without_64, _ = cells.split("|")
        limit, limit_64 = accuracy.LIMITS[name]
        assert max(float(with_fma), float(without)) <= limit, name
        assert max(float(with_fma_64), float(without_64)) <= limit_64, name
