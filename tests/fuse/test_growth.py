"""Tracing, lowering and explaining take steps in proportion to a program's nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from sampled import few
from work import calls_of
from zerostride.compute import native

Job = Callable[[], Any]
#: Calls of twice the nodes, at most so many times those of the half. A square is 4 times.
_MOST = 2.4


def _same_axis(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x - np.mean(x, axis=1, keepdims=True)
    return x


def _both_axes(x: Any, n: int) -> Any:
    for k in range(n):
        x = x / np.sum(x, axis=k % 2, keepdims=True)
    return x


def _scalars(x: Any, n: int) -> Any:
    total = 0.0
    for k in range(n):
        x = np.exp(x * 0.5)
        total = total + np.sum(x * total + k)
    return total


def _stretched(x: Any, n: int) -> Any:
    for k in range(n):
        largest = np.exp(np.max(x, axis=k % 2))
        x = (largest[:, None] if k % 2 else largest[None]) / 9 + x
    return x


def _apart(x: Any, n: int) -> Any:
    return [np.sum(x * (k + 0.5), axis=k % 2) for k in range(n)]


def _each_link(x: Any, n: int) -> Any:
    links = []
    for _ in range(n):
        x = np.exp(x - np.mean(x, axis=1, keepdims=True))
        links.append(x)
    return links


def _elementwise(x: Any, n: int) -> Any:
    for k in range(n):
        x = np.sin(x.T if k % 2 else x) + x
    return x


def _many(n: int) -> Iterator[Any]:
    return (np.full((6, 6), k + 0.5) for k in range(n))


def _operands(*arrays: Any) -> Any:
    total = arrays[0]
    for one in arrays[1:]:
        total = total + np.sum(total * one, axis=1, keepdims=True)
    return total


_CHAINS = (_same_axis, _both_axes, _scalars, _stretched, _apart, _each_link, _elementwise)


def _explained(chain: Callable[..., Any], n: int, shape: tuple[int, ...]) -> Job:
    x = np.ones(shape)
    fused = zs.fuse(lambda x: chain(x, n))
    return lambda: fused.explain(x).to_json()


@pytest.mark.parametrize("shape", few(1, [(6, 6), (512, 512)]))
@pytest.mark.parametrize("chain", few(4, _CHAINS))
def test_chains_compile_in_linear_time(chain: Callable[..., Any], shape: tuple[int, ...]) -> None:
    _assert_grows(lambda n: _explained(chain, n, shape))


def test_many_operands_compile_in_linear_time() -> None:
    _assert_grows(lambda n: lambda: zs.fuse(_operands).explain(*_many(n)).to_json())


def test_captured_arrays_compile_in_linear_time() -> None:
    def job(n: int) -> Job:
        arrays = list(_many(n))
        return lambda: zs.fuse(lambda x: _operands(x, *arrays)).explain(np.ones((6, 6)))

    _assert_grows(job)


@pytest.mark.parametrize("chain", few(1, [_both_axes, _same_axis, _scalars]))
def test_gradients_compile_in_linear_time(chain: Callable[..., Any]) -> None:
    def job(n: int) -> Job:
        x = np.ones((6, 6))

        def pulled() -> None:
            result, pullback = zs.fuse(lambda x: chain(x, n)).vjp(x)
            pullback(result)

        return pulled

    _assert_grows(job, (24, 48))


def _assert_grows(job: Callable[[int], Job], counts: Sequence[int] = (48, 96)) -> None:
    """Asserts that a job's calls are in proportion to its number of links."""
    job(2)()  # what is imported and cached is of no size
    few, many = (calls_of(job(n)) for n in counts)
    assert many <= _MOST * few, f"{few} calls for {counts[0]}, {many} for {counts[1]}"


def test_comparison_finds_quadratic_growth() -> None:
    def square(n: int) -> Job:
        return lambda: [abs(k) for k in range(n * n)]

    with pytest.raises(AssertionError, match="calls for 48"):
        _assert_grows(square)


@pytest.mark.parametrize("shape", [(6, 6), (300, 300)], ids=["small", "large"])
@pytest.mark.parametrize("chain", _CHAINS)
def test_long_chains_match_the_reference(chain: Callable[..., Any], shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(5).uniform(0.5, 1.5, shape)
    with np.errstate(all="ignore"):
        expected = chain(x, 40)
        given = zs.fuse(lambda x: chain(x, 40))(x)
    np.testing.assert_allclose(given, expected, rtol=1e-8, atol=1e-12)


def test_no_value_is_recomputed_in_every_phase() -> None:
    fused = zs.fuse(lambda x: _both_axes(x, 100))
    fused(np.random.default_rng(3).uniform(0.5, 1.5, (300, 300)))
    if native.backend() == "reference":
        return  # which has no programs
    program = fused.latest.ready.program  # type: ignore[union-attr]
    assert program is not None
    steps = [len(phase.steps) for phase in program.phases]
    assert len(steps) > 90
    assert max(steps) <= 34
