"""torch.compile and torch.export of functions that call zerostride's: complete, and equal."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch", reason="its compiler is what is tested")

import torch

import zerostride as zs

pytestmark = [
    pytest.mark.conformance,
    # PyTorch's own, of what it calls itself.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*"),
    pytest.mark.filterwarnings("ignore:Your compiler for AOTAutograd:UserWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning"),
]


@zs.fuse
def scaled(x, bias, gain):
    y = zs.add(x, bias, rule="pdpd", axis=1) * gain
    return y, y.sum(-1)


def by_op(x, bias):
    return zs.relu(zs.add(x, bias, rule="pdpd", axis=1)) * 2


def by_fused(x, bias):
    y, sums = scaled(torch.sin(x), bias, 3.0)
    return y.exp() + sums[..., None]


def by_reduction(x, bias):
    centred = zs.subtract(x, zs.mean(x, axis=-1, keepdims=True))
    return zs.multiply(centred, bias, rule="pdpd", axis=1) + zs.broadcast(bias, (4, 3)).T[0][0]


def by_number(x, bias):
    return zs.where(zs.greater(x, 0.5), x, zs.multiply(x, 2)) + zs.clip(bias, 0.0, 1.0).sum()


FUNCTIONS = (by_op, by_fused, by_reduction, by_number)


def inputs():
    numbers = torch.Generator().manual_seed(0)
    x, bias = torch.randn(2, 3, 4, generator=numbers), torch.randn(3, generator=numbers)
    return x.requires_grad_(), bias.requires_grad_()


def gradients(function):
    given = inputs()
    result = function(*given)
    return result, torch.autograd.grad(torch.tanh(result).sum(), given)


def test_functions_made_before_the_compiler_are_found_after_a_freeze():
    """Of objects that are frozen, Python's garbage collector lists none."""
    code = """
import gc
import torch
import zerostride as zs
@zs.fuse
def scaled(x):
    return x * 2 + 1
gc.freeze()
compiled = torch.compile(lambda x: scaled(x) - 1, fullgraph=True, backend="aot_eager")
assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 2.0))
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_compiled_function_gives_the_same_results_and_gradients(function, backend):
    torch._dynamo.reset()
    compiled = torch.compile(function, fullgraph=True, backend=backend)
    result, slopes = gradients(compiled)
    expected, wanted = gradients(function)
    assert torch.allclose(result, expected, atol=1e-6)
    for one, other in zip(slopes, wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_graph_contains_the_op():
    from torch._dynamo.testing import AotEagerAndRecordGraphs

    torch._dynamo.reset()
    recorded = AotEagerAndRecordGraphs()
    torch.compile(by_fused, fullgraph=True, backend=recorded)(*inputs()).sum().backward()
    assert len(recorded.graphs) == 1
    (forward,) = recorded.fw_graphs
    targets = [str(node.target) for node in forward.graph.nodes]
    assert targets.count("zerostride.run.default") == 1
    (backward,) = recorded.bw_graphs
    assert any("zerostride.run" in str(node.target) for node in backward.graph.nodes)


def test_shapes_and_rules_are_static():
    """A new shape is compiled again, and right; so is one that PyTorch takes for any."""
    torch._dynamo.reset()
    compiled = torch.compile(by_op, fullgraph=True, backend="aot_eager", dynamic=True)
    for columns in (4, 5, 7):
        x, bias = torch.randn(2, 3, columns), torch.randn(3)
        assert torch.equal(compiled(x, bias), by_op(x, bias))


def test_numbers_are_not_constants():
    """PyTorch makes a number that changes a symbol: compiled once more, no third time."""
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter = CompileCounter()
    gained = zs.fuse(lambda x, gain: x * gain)
    compiled = torch.compile(lambda x, gain: gained(zs.add(x, gain), gain), backend=counter)
    for gain in (1.0, 2.5, 3.5, 4.5):
        assert compiled(torch.ones(3), gain).tolist() == [(1 + gain) * gain] * 3
    assert counter.frame_count == 2


def test_narrow_dtypes_and_no_gradients_compile():
    torch._dynamo.reset()
    compiled = torch.compile(by_op, fullgraph=True, backend="aot_eager")
    for dtype in (torch.bfloat16, torch.float64, torch.int32):
        x, bias = torch.arange(24).reshape(2, 3, 4).to(dtype), torch.arange(3).to(dtype)
        result = compiled(x, bias)
        assert result.dtype == by_op(x, bias).dtype
        assert torch.equal(result, by_op(x, bias))
    with torch.no_grad(), torch.inference_mode():
        assert torch.equal(compiled(*inputs()), by_op(*inputs()))


def test_compiled_call_reports_the_broadcast_error():
    torch._dynamo.reset()

    def wrong(x, y):
        return zs.add(x, y)

    with pytest.raises(Exception, match="3 against 4, and neither is 1"):
        torch.compile(wrong, fullgraph=True, backend="aot_eager")(torch.ones(3), torch.ones(4))


def test_op_passes_pytorchs_opcheck():
    from zerostride.arrays.model import FusedCall
    from zerostride.arrays.torch.adapter import ADAPTER
    from zerostride.arrays.torch.custom_op import text_of

    x, bias = inputs()
    prepared = ADAPTER.prepared(FusedCall(scaled, (x, bias, 3.0), {}))
    torch.library.opcheck(
        torch.ops.zerostride.run.default, ([x, bias], [3.0], "ttn", text_of(prepared.program))
    )


def test_exported_program_can_be_loaded():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = torch.nn.Parameter(torch.arange(3.0))

        def forward(self, x):
            return by_fused(x, self.bias)

    model = Model()
    x = torch.randn(2, 3, 4)
    file = io.BytesIO()
    torch.export.save(torch.export.export(model, (x,)), file)
    file.seek(0)
    assert torch.allclose(torch.export.load(file).module()(x), model(x), atol=1e-6)


@pytest.mark.parametrize(
    "order", ["import zerostride as zs, torch", "import torch, zerostride as zs"]
)
def test_import_order_does_not_matter(order):
    code = f"""
{order}
@zs.fuse
def early(x):
    return x + 1
import torch._dynamo
@zs.fuse
def late(x):
    return x * 2
def both(x):
    return late(early(x)) - zs.maximum(x, 0)
x = torch.arange(3.0)
print(torch.compile(both, fullgraph=True, backend="eager")(x).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[2.0, 3.0, 4.0]"


def test_graph_break_keeps_zerostride_uncompiled():
    """Where a graph breaks, zerostride's own code is not compiled."""
    torch._dynamo.reset()

    def broken(x):
        y = zs.add(x, 1)
        torch._dynamo.graph_break()
        return zs.multiply(y, np.float32(2).item())

    x = torch.ones(3, requires_grad=True)
    result = torch.compile(broken, backend="aot_eager")(x)
    result.sum().backward()
    assert result.tolist() == [4, 4, 4]
    assert x.grad.tolist() == [2, 2, 2]


def test_captured_data_is_a_constant_under_compile():
    plain, tensor = np.arange(3.0, dtype=np.float32), torch.arange(3.0)
    weight = torch.nn.Parameter(torch.ones(3))
    x = torch.ones(3, requires_grad=True)
    # Traced for the first time by the compiler, with tensors that are computed on the way.
    fused = zs.fuse(lambda x: x * plain + tensor * (tensor + 1))
    compiled = torch.compile(lambda x: fused(x) + 1, backend="aot_eager", fullgraph=True)
    assert compiled(x).tolist() == [1, 4, 9]
    compiled(x).sum().backward()
    assert x.grad.tolist() == [0, 1, 2]
    assert fused(x).tolist() == [0, 3, 8]
    lost = zs.fuse(lambda x: x * weight)
    with pytest.raises(Exception, match=r"weight \(Parameter of torch\) is taken from outside"):
        torch.compile(lambda x: lost(x), backend="aot_eager", fullgraph=True)(x)
    with torch._subclasses.FakeTensorMode():
        assert fused(torch.ones(2, 3)).shape == (2, 3)
