"""Strict mode with arrays of other libraries."""

import numpy as np
import pytest

import zerostride as zs
from zerostride.core.strict_mode import FAULTS

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(bool(FAULTS), reason="".join(FAULTS)),
]


def torch_arrays():
    torch = pytest.importorskip("torch", reason="tensors of PyTorch")
    return torch.ones(3, 1), torch.ones(3), lambda x: x


def torch_with_gradients():
    torch = pytest.importorskip("torch", reason="tensors of PyTorch")
    return torch.ones(3, 1, requires_grad=True), torch.ones(3), lambda x: x.detach()


def jax_arrays():
    jnp = pytest.importorskip("jax.numpy", reason="arrays of JAX")
    return jnp.ones((3, 1)), jnp.ones(3), lambda x: x


def dask_arrays():
    da = pytest.importorskip("dask.array", reason="arrays of Dask")
    return da.ones((3, 1)), da.ones(3), lambda x: x


@pytest.mark.parametrize("make", [torch_arrays, torch_with_gradients, jax_arrays, dask_arrays])
def test_accidental_broadcasts_are_refused_and_others_computed(make):
    column, vector, plain = make()
    fused = zs.fuse(lambda a, b: (a - b) ** 2)
    assert zs.subtract(column, vector).shape == fused(column, vector).shape == (3, 3)
    for call in (zs.subtract, fused):
        with zs.strict():
            with pytest.raises(zs.BroadcastError) as caught:
                call(column, vector)
            assert caught.value.reason == "two_sided"
            right = call(column, vector[:, None])
        assert np.array_equal(np.asarray(plain(right)), np.zeros((3, 1)))
    with pytest.raises(zs.BroadcastError):
        zs.subtract(column, vector, rule=zs.strict())
    assert zs.subtract(column, vector).shape == fused(column, vector).shape == (3, 3)


def test_gradients_work_in_strict_mode():
    torch = pytest.importorskip("torch", reason="tensors of PyTorch")
    x = torch.ones(3, 2, requires_grad=True)
    scaled = zs.fuse(lambda x, w: (x * w).sum(axis=-1))
    with zs.strict():
        scaled(x, torch.full((1, 2), 3.0)).sum().backward()
    assert x.grad.tolist() == [[3.0, 3.0]] * 3


def test_strict_mode_checks_jax_under_jit_while_it_traces():
    jax = pytest.importorskip("jax", reason="arrays of JAX")
    column, vector = jax.numpy.ones((3, 1)), jax.numpy.ones(3)
    before = jax.jit(lambda a, b: zs.subtract(a, b))
    before(column, vector)
    with zs.strict():
        with pytest.raises(zs.BroadcastError):
            jax.jit(lambda a, b: zs.subtract(a, b))(column, vector)
        assert before(column, vector).shape == (3, 3)  # JAX's own program by now


def test_plugin_sees_tensors():
    torch = pytest.importorskip("torch", reason="tensors of PyTorch")
    from zerostride.lint import checks

    entries = []
    before = checks.WATCH.enabled, checks.WATCH.report
    checks.WATCH.enabled, checks.WATCH.report = True, entries.append
    try:
        checks.against(torch.ones(3, 1), torch.ones(3))
        checks.args(torch.where, torch.ones(3, 1) > 0, torch.ones(3), 0.0)
        checks.args(torch.add, torch.ones(3, 1), torch.ones(3))
        checks.against(torch.ones(3, 1), torch.ones(1, 3))
        checks.args(torch.mm, torch.ones(3, 1), torch.ones(1, 3))
    finally:
        checks.WATCH.enabled, checks.WATCH.report = before
    assert [one.shapes for one in entries] == [
        ((3, 1), (3,)),
        ((3, 1), (3,), ()),
        ((3, 1), (3,)),
    ]
