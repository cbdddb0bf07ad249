"""Gradients of tensors: torch.autograd through zerostride's functions, first and second."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("torch", reason="its autograd is what is tested")

import torch
from array_samples import UNDER, softmax
from campaigns.gradients.command import BOUND, Result, _alone, check_ops, judge
from campaigns.gradients.draw import draw

import zerostride as zs
from zerostride.fusion.grad.table import RULES

pytestmark = pytest.mark.conformance


def leaves(arrays):
    """Tensors of float64, those of numbers as leaves."""
    tensors = [torch.from_numpy(np.array(array)) for array in arrays]
    return [one.requires_grad_() if one.is_floating_point() else one for one in tensors]


def by_autograd(program, cotangents):
    """Results and gradients of a program by torch.autograd through one fused function."""
    tensors = leaves(program.operands)
    result = zs.fuse(lambda *operands: program(*operands))(*tensors)
    results = [result] if len(program.outputs) == 1 else list(result)
    pairs = [
        (one, torch.from_numpy(np.array(given)))
        for one, given in zip(results, cotangents, strict=True)
        if one.requires_grad
    ]
    wanted = [one for one in tensors if one.requires_grad]
    rest = iter(
        torch.autograd.grad(
            [one for one, _ in pairs], wanted, [given for _, given in pairs], allow_unused=True
        )
        if pairs and wanted
        else [None] * len(wanted)
    )
    gradients = []
    for one in tensors:
        gradient = next(rest) if one.requires_grad else None
        if one.requires_grad and gradient is None:
            gradient = torch.zeros_like(one)
        gradients.append(None if gradient is None else gradient.numpy())
    return [one.detach().numpy() for one in results], gradients


def test_gradients_of_random_programs_match_autograd():
    result = Result()
    for case in range(200):
        judge(draw(11, case), f"11:{case}", result, by_autograd)
    assert not result.differences, result.differences[0]
    assert 0 < result.worst < BOUND


def test_comparison_finds_wrong_gradients():
    def wrong(program, cotangents):
        results, gradients = by_autograd(program, cotangents)
        return results, [None if one is None else one * (1 + 1e-6) for one in gradients]

    result = Result()
    for case in range(10):
        judge(draw(2, case), f"2:{case}", result, wrong)
    assert result.differing > 4


def test_gradients_of_every_op_match_finite_differences():
    result = Result()
    check_ops(3, result, by_autograd)
    assert not result.differences, result.differences[0]


@pytest.mark.parametrize("name", [name for name in RULES if name != "cast"])
def test_second_gradients_of_every_op_match_finite_differences(name):
    program = _alone(name, 5)
    tensors = [
        one[:2, :2].detach().requires_grad_(one.requires_grad) for one in leaves(program.operands)
    ]
    function = getattr(zs, name)
    kept = [one for one in tensors if one.requires_grad]

    def of_leaves(*given):
        results = iter(given)
        return function(*(next(results) if one.requires_grad else one for one in tensors))

    assert torch.autograd.gradcheck(of_leaves, kept, atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gradcheck's, of a second derivative that is 0
        assert torch.autograd.gradgradcheck(of_leaves, kept, atol=1e-5)


@pytest.mark.parametrize(("rule", "one", "other", "more"), UNDER)
@pytest.mark.parametrize("name", ["multiply", "divide", "hypot", "prelu"])
def test_gradients_under_rules_match_finite_differences(name, rule, one, other, more):
    x, y = leaves(
        [np.random.default_rng(k).uniform(0.5, 2, shape) for k, shape in enumerate((one, other))]
    )
    function = getattr(zs, name)
    assert torch.autograd.gradcheck(lambda x, y: function(x, y, rule=rule, **more), (x, y))
    assert torch.autograd.gradgradcheck(lambda x, y: function(x, y, rule=rule, **more), (x, y))


def test_gradients_of_reductions_and_broadcast_match_finite_differences():
    (x,) = leaves([np.random.default_rng(0).uniform(0.5, 2, (2, 3, 4))])
    for name in ("sum", "mean", "prod", "max", "min", "logsumexp", "sum_of_squares"):
        function = getattr(zs, name)
        assert torch.autograd.gradcheck(lambda x: function(x, axis=(0, 2)), (x,))  # noqa: B023
        assert torch.autograd.gradgradcheck(lambda x: function(x, axis=1), (x,))  # noqa: B023
    (row,) = leaves([np.arange(3.0)])

    def laid(row):
        return (
            zs.broadcast(row, (2, 3, 4), mode="explicit", axes_mapping=[1], copy=True) * x.detach()
        )

    assert torch.autograd.gradcheck(laid, (row,))
    plan = zs.plan((2, 3, 4), (3,), rule="pdpd", axis=1)
    assert torch.autograd.gradcheck(lambda x, row: plan.views(x, row)[1] * x, (x, row))
    assert torch.autograd.gradcheck(lambda x: plan.unbroadcast(x, 1) ** 2, (x,))
    total = plan.unbroadcast(torch.ones(2, 3, 4, requires_grad=True), 1)
    assert total.tolist() == [8, 8, 8]
    assert total.requires_grad


def test_fused_function_has_gradients_to_the_third_order():
    (x,) = leaves([np.random.default_rng(0).normal(size=(2, 5))])
    assert torch.allclose(softmax(x, 2.0), torch.softmax(x * 2, -1))

    def third(function):
        value = function(x)[:, 0].sum()
        for _ in range(3):
            (gradient,) = torch.autograd.grad(value, x, create_graph=True)
            value = (gradient * torch.arange(5.0, dtype=torch.float64)).sum()
        return gradient

    expected = third(lambda x: torch.softmax(x * 2, -1))
    assert torch.allclose(third(lambda x: softmax(x, 2.0)), expected, atol=1e-12)


def test_gradients_exist_only_where_requested():
    x, y = torch.ones(3, requires_grad=True), torch.ones(3)
    zs.multiply(x, y).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
    assert y.grad is None
    assert not zs.greater(x, y).requires_grad
    assert not zs.multiply(y, 2).requires_grad
    with torch.no_grad():
        assert not zs.multiply(x, y).requires_grad
    whole = zs.cast(x, torch.int32)
    assert not whole.requires_grad
    assert zs.multiply(whole, x).requires_grad


def test_narrow_tensors_have_gradients_of_their_dtype():
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        x = torch.tensor([0.5, 1.5], dtype=dtype, requires_grad=True)
        zs.exp(x).sum().backward()
        assert x.grad.dtype == dtype
        assert torch.allclose(x.grad, torch.exp(x.detach()), rtol=1e-2)


def test_vjp_of_tensors_matches_autograd():
    x, s = torch.tensor([[1.0, 2.0]]), 2.0
    _, pull = softmax.vjp(x, s)
    gradient, to_number = pull(torch.tensor([[1.0, 0.0]]))
    leaf = x.clone().requires_grad_()
    torch.softmax(leaf * 2, -1)[0, 0].backward()
    assert torch.allclose(gradient, leaf.grad)
    assert to_number.shape == ()
    with pytest.raises(zs.BroadcastError, match="cotangent of result 0 has shape"):
        pull(torch.ones(3))


def test_complex_gradients_match_pytorch():
    x = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    y = torch.tensor([2 + 1j, 1j], requires_grad=True)
    assert torch.autograd.gradcheck(zs.multiply, (x.to(torch.complex128), y.to(torch.complex128)))


def test_writing_to_an_operand_is_noticed():
    x = torch.ones(3, requires_grad=True)
    y = torch.ones(3)
    result = zs.multiply(x, y)
    zs.add(y, 1, out=y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_forward_mode_and_transforms_match_pytorch():
    x, v = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    ours, expected = (lambda x: softmax(x, 1.0)), (lambda x: torch.softmax(x, -1))
    for one, other in zip(
        torch.func.jvp(ours, (x,), (v,)), torch.func.jvp(expected, (x,), (v,)), strict=True
    ):
        assert torch.allclose(one, other)
    assert torch.allclose(torch.func.jacrev(ours)(x), torch.func.jacrev(expected)(x))
    assert torch.allclose(torch.func.hessian(ours)(x[0]), torch.func.hessian(expected)(x[0]))
    row = torch.randn(3, dtype=torch.float64)
    many = torch.func.vmap(lambda a: zs.add(a, row, rule="pdpd", axis=0))(torch.stack([x, v]))
    assert torch.equal(many, torch.stack([x, v]) + row[:, None])
    each = torch.func.vmap(torch.func.grad(lambda a: zs.sum(zs.exp(a))))(x)
    assert torch.allclose(each, torch.exp(x))
