"""Python numbers beside tensors of 16-bit floats: PyTorch's dtypes in every kind of call."""

from __future__ import annotations

import functools

import numpy as np
import own_numbers
import pytest

pytest.importorskip("torch", reason="its tensors are what is tested")
pytest.importorskip("ml_dtypes", reason="NumPy's bfloat16 is what answers have")

import ml_dtypes
import torch
from own_numbers import NUMBERS, VALUES, expected

import zerostride as zs

pytestmark = pytest.mark.conformance

HALVES = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
SIDES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
CASES = [(half, number) for half in HALVES for number in NUMBERS]


class Elsewhere(torch.Tensor):
    """A subclass, which PyTorch's own functions compute, as on a device."""


def operands(half):
    return torch.tensor(VALUES, dtype=SIDES[half]), torch.arange(len(VALUES)) % 2 == 0


def to_numpy(tensor):
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype == "bfloat16":
        return tensor.detach().view(torch.int16).numpy().view(ml_dtypes.bfloat16), dtype
    return tensor.detach().numpy(), dtype


def check(results, half, number):
    wanted = expected(HALVES[half], number)
    own = torch.result_type(torch.ones(2, dtype=SIDES[half]), number)
    assert own == SIDES[half]
    own_numbers.check(results, wanted, to_numpy, half)
    return wanted


def calls(half, number):
    return tuple(expected(HALVES[half], number))


@pytest.mark.parametrize(("half", "number"), CASES)
def test_every_op_gives_the_dtype_of_pytorch(half, number):
    x, c = operands(half)
    wanted = check(own_numbers.every(x, c, number, calls(half, number)), half, number)
    assert len(wanted) > 70


@pytest.mark.parametrize(("half", "number"), CASES)
def test_every_fused_op_gives_the_dtype_of_pytorch(half, number):
    """The number is an operand of the call, or stands in the function."""
    x, c = operands(half)
    every = functools.partial(own_numbers.every, calls=calls(half, number))
    for _ in range(3):  # the engine answers the later ones alone
        check(zs.fuse(lambda x, c, n: every(x, c, n))(x, c, number), half, number)
        check(zs.fuse(lambda x, c: every(x, c, number))(x, c), half, number)


@pytest.mark.parametrize("half", HALVES)
def test_every_op_that_requires_a_gradient_gives_the_dtype_of_pytorch(half):
    x, c = operands(half)
    x.requires_grad_()
    results = own_numbers.every(x, c, 0.3, calls(half, 0.3))
    check(results, half, 0.3)
    real = [one for one in results if one.requires_grad]
    assert len(real) > 40
    for one in real:
        options = {"retain_graph": True, "allow_unused": True}  # floor_divide has none
        (gradient,) = torch.autograd.grad(one, x, torch.ones_like(one), **options)
        assert gradient is None or gradient.dtype == SIDES[half]


@pytest.mark.parametrize("half", HALVES)
def test_every_compiled_op_gives_the_dtype_of_pytorch(half):
    torch._dynamo.reset()
    x, c = operands(half)
    every = functools.partial(own_numbers.every, calls=calls(half, 0.3))
    compiled = torch.compile(lambda x, c: every(x, c, 0.3), fullgraph=True, backend="aot_eager")
    check(compiled(x, c), half, 0.3)


@pytest.mark.parametrize("half", HALVES)
def test_every_op_on_a_device_or_meta_gives_the_dtype_of_pytorch(half):
    """PyTorch's functions compute it: the same as with the number as a tensor."""
    x, c = operands(half)
    names = calls(half, 0.3)
    given = x.as_subclass(Elsewhere), c.as_subclass(Elsewhere)
    result = own_numbers.every(*given, 0.3, names)
    as_tensor = torch.tensor(0.3, dtype=SIDES[half]).as_subclass(Elsewhere)
    wanted = own_numbers.every(*given, as_tensor, names)
    for call, one, right in zip(names, result, wanted, strict=True):
        plain = one.as_subclass(torch.Tensor), right.as_subclass(torch.Tensor)
        assert one.dtype == right.dtype, call
        assert torch.equal(*(torch.nan_to_num(each.float()) for each in plain)), call
    meta = own_numbers.every(x.to("meta"), c.to("meta"), 0.3, names)
    assert [one.dtype for one in meta] == [one.dtype for one in result]
    mapped = torch.func.vmap(lambda x, c: own_numbers.every(x, c, 0.3, names))(x, c)
    assert [one.dtype for one in mapped] == [one.dtype for one in result]


def test_pytorchs_own_functions_give_the_same_dtype():
    x, c = operands("bfloat16")
    own = {
        "add": torch.add,
        "subtract": torch.subtract,
        "multiply": torch.multiply,
        "divide": torch.divide,
        "floor_divide": torch.floor_divide,
        "remainder": torch.remainder,
        "fmod": torch.fmod,
        "pow": torch.pow,
        "equal": torch.eq,
        "less": torch.lt,
        "greater_equal": torch.ge,
        "leaky_relu": torch.nn.functional.leaky_relu,
    }
    for name, function in own.items():
        for number in (0.5, 0.3, 1):  # it subtracts no truth value
            assert getattr(zs, name)(x, number).dtype == function(x, number).dtype, name
    assert zs.where(c, x, 0.3).dtype == torch.where(c, x, 0.3).dtype == torch.bfloat16
    assert zs.clip(x, 0.1, 0.3).dtype == torch.clip(x, 0.1, 0.3).dtype == torch.bfloat16


def test_other_functions_take_numbers():
    x, _ = operands("bfloat16")
    fused = zs.fuse(
        lambda x, gain=1.0: {
            "power": x**0.5,
            "reflected": 0.3 / x,
            "select": np.select([x > 0], [x], 0.3),
            "rounded": np.round(x * 0.01, 4),
            "degrees": np.deg2rad(x),
            "setting": x * gain,
            "mean": (x * 0.3).mean(),
            "variance": np.var(x * 0.3),
            "clipped": np.clip(x, -0.3, 0.3),
            "inlined": inner(x),
            "met": x.astype(np.result_type(x, 0.3)),
        }
    )
    inner = zs.fuse(lambda x: x - 0.3)
    for result in (
        fused(x),
        fused(x, gain=0.3),
        fused(x, gain=0.3),
        fused(x.as_subclass(Elsewhere)),
    ):
        assert {one.dtype for one in result.values()} == {torch.bfloat16}
    plain = fused(torch.tensor(10.0, dtype=torch.bfloat16))
    assert plain["rounded"].item() == torch.tensor(0.1001, dtype=torch.bfloat16).item()
    out = torch.empty_like(x)
    for written in (zs.multiply(x, 0.3, out=out), zs.fuse(lambda x: x * 0.3)(x, out=out)):
        assert written is out
        assert torch.equal(torch.nan_to_num(out), torch.nan_to_num(zs.multiply(x, 0.3)))
    assert zs.add(x, 0.3, rule="pdpd", axis=0).dtype == torch.bfloat16
    result, pull = zs.vjp(lambda x: x * 0.3, x)
    assert result.dtype == torch.bfloat16
    assert pull(torch.ones_like(result))[0].dtype == torch.bfloat16


def test_traced_dtype_is_the_computed_dtype():
    x, _ = operands("bfloat16")
    fused = zs.fuse(lambda x, gain=0.3: x * gain)
    for given in (x, x.to("meta"), x.clone().requires_grad_()):
        graph = fused.graph(given)
        assert graph.nodes[graph.outputs[0]].dtype == "bfloat16"
    fused(x)
    assert "result bfloat16" in str(fused.explain(x))
    assert str(fused.explain(x)) == str(fused.explain())
    gained = fused.graph(x, gain=torch.ones(2, 1))
    assert gained.nodes[gained.outputs[0]].shape == (2, len(VALUES))
    assert fused.graph(np.ones(2, ml_dtypes.bfloat16)).nodes[-1].dtype == "float32"


def test_requested_dtype_is_used():
    """A number is rounded to that alone, as NumPy's are."""
    x = torch.zeros(1, dtype=torch.bfloat16)
    half = torch.zeros(1, dtype=torch.float16)
    for one in (x, half):
        for given in (one, one.clone().requires_grad_()):
            added = zs.add(given, 0.3, dtype=torch.float32)
            assert added.item() == np.float32(0.3)
    assert zs.add(x, 0.3, dtype=torch.bfloat16).dtype == torch.bfloat16


def test_other_dtypes_promote_as_in_numpy():
    """Of NumPy's own arrays, of integers, and where NumPy's values are asked for."""
    x, c = operands("bfloat16")
    brain = np.ones(2, ml_dtypes.bfloat16)
    fused = zs.fuse(lambda x: x * 0.3)
    for given, dtype in ((x, torch.bfloat16), (brain, np.float32), (x, torch.bfloat16)):
        assert fused(given).dtype == dtype  # a signature of its own for each
        assert fused(given).dtype == dtype
    assert zs.add(brain, 0.3).dtype == np.float32
    assert zs.where(brain > 0, brain, 0.3).dtype == np.float64
    assert zs.add(x, 0.3, engine="numpy").dtype == torch.float32
    assert zs.add(x.detach().requires_grad_(), 0.3, engine="numpy").dtype == torch.float32
    assert zs.add(torch.ones(2, dtype=torch.int32), 0.3).dtype == torch.float64
    assert zs.where(c, 0.3, 0.5).dtype == torch.float64
    assert zs.add(x, 0.3j).dtype == torch.complex64
