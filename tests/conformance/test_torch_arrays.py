"""Tensors as operands: every dtype and layout, other devices, refusals."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="its tensors are what is tested")

import torch
from campaigns.arrays import draw as arrays_draw
from campaigns.arrays.command import RULES, tallied
from campaigns.arrays.libraries import ROWS

import zerostride as zs

pytestmark = pytest.mark.conformance


class Elsewhere(torch.Tensor):
    """A subclass, which PyTorch's own functions compute, as on a device."""


ELSEWHERE = replace(ROWS["torch elsewhere"], dtypes=ROWS["torch"].dtypes)


@pytest.mark.parametrize("rule", RULES)
def test_generated_cases_match_the_reference(rule):
    tally = tallied(ROWS["torch"], rule, 0, 300, seed=4)
    assert tally.cases == 300
    assert not tally.differing, tally.shown


@pytest.mark.parametrize("rule", RULES)
def test_generated_cases_on_a_device_match_the_reference(rule):
    tally = tallied(ELSEWHERE, rule, 0, 120, seed=5)
    assert tally.cases == 120
    assert not tally.differing, tally.shown


def test_values_on_a_device_are_not_refused():
    x = torch.tensor([0, 1, -1, -1, 5, 2], dtype=torch.int32)
    power = torch.tensor([-1, -7, -2, -3, -1, 3], dtype=torch.int32)
    assert zs.pow(x.as_subclass(Elsewhere), power).tolist() == [0, 1, 1, -1, 0, 8]
    with pytest.raises(ValueError, match="negative integer powers"):
        zs.pow(x, power)


def test_complex_numbers_are_rounded_by_parts():
    x = torch.tensor([0.4 + 2.5j, -1.5 - 0.2j])
    turned = x.conj().resolve_conj().conj()  # whose memory holds the conjugates
    for given in (x, x.as_subclass(Elsewhere), turned, turned.as_subclass(Elsewhere)):
        assert zs.round(given).as_subclass(torch.Tensor).resolve_conj().tolist() == [2j, -2 - 0j]


@pytest.mark.parametrize("like", [ROWS["torch"], ELSEWHERE], ids=lambda row: row.name)
def test_comparison_finds_wrong_results(like):
    def wrong(function, *arrays):
        result = function(*arrays)
        return result + 1 if isinstance(result, torch.Tensor) else result

    row = replace(like, exact=False, call=wrong)
    assert tallied(row, "numpy", 0, 40, seed=6).differing > 10
    assert arrays_draw.ELEMENTWISE


# Where they lie


@zs.fuse
def probed(x, y):
    return x + y


def test_engine_reads_and_returns_memory_without_copies(monkeypatch):
    from zerostride.arrays.torch import adapter as torch_arrays
    from zerostride.arrays.torch import data as torch_data

    read, entries = [], []
    to_numpy, from_numpy = torch_data.to_numpy, torch_data.from_numpy

    def reading(tensor):
        array = to_numpy(tensor)
        read.append((tensor.data_ptr(), array.ctypes.data, array.strides))
        return array

    def making(array):
        tensor = from_numpy(array)
        entries.append((array.ctypes.data, tensor.data_ptr()))
        return tensor

    monkeypatch.setattr(torch_arrays, "to_numpy", reading)
    monkeypatch.setattr(torch_arrays, "from_numpy", making)
    x = torch.arange(12.0).reshape(3, 4).T
    for dtype in (torch.float32, torch.bfloat16, torch.int16, torch.bool):
        result = zs.maximum(x.to(dtype), x.to(dtype)[:, :1])
        assert result.dtype == dtype
    assert all(tensor == array for tensor, array, _ in read)
    assert all(array == tensor for array, tensor in entries)
    assert len(read) == 8
    assert len(entries) == 4
    out = torch.empty(4, 3)
    at = out.data_ptr()
    assert zs.add(x, 1, out=out) is out
    assert out.data_ptr() == at
    assert torch.equal(out, x + 1)
    view = zs.plan((4, 3), (4, 1)).views(x, x[:, :1])[1]
    assert view.data_ptr() == x.data_ptr()
    assert view.stride() == (1, 0)
    assert zs.broadcast(x[0], (5, 3)).data_ptr() == x.data_ptr()


def test_missing_ml_dtypes_is_reported():
    code = (
        "import sys; sys.modules['ml_dtypes'] = None\n"
        "import torch, zerostride as zs\n"
        "assert zs.add(torch.ones(2), 0.5).tolist() == [1.5, 1.5]\n"
        "zs.add(torch.ones(2, dtype=torch.bfloat16), 0.5)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "bfloat16; NumPy has bfloat16 from ml_dtypes: install that" in done.stderr


def test_storage_of_a_result_can_be_resized():
    x = torch.ones(2)
    zs.add(x, x)
    zs.sum(x)
    probed(x, x)
    assert x.resize_(5).shape == (5,)


def test_layouts_and_lazy_bits_are_read():
    x = torch.arange(24.0).reshape(2, 3, 4)
    for given in (x.permute(2, 0, 1), x[:, ::2], x[..., 1:2].expand(2, 3, 4), x[1, 2, 3], x[:0]):
        assert torch.equal(zs.add(given, given), given + given)
        assert torch.equal(probed(given, given), given + given)
    c = torch.tensor([1 + 2j, 3 - 1j])
    assert torch.equal(zs.add(c.conj(), 0), c.conj() + 0)
    assert c.conj().imag.is_neg()
    assert torch.equal(zs.add(c.conj().imag, 0.0), -c.imag)
    with torch.inference_mode():
        inside = torch.ones(3)
        assert zs.add(inside, 1).is_inference()
        zs.add(inside, 1, out=inside)
    assert zs.add(inside, 1).tolist() == [3, 3, 3]


def test_dtypes_are_numpys():
    half, whole = torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.int32)
    assert zs.add(half, whole).dtype == torch.float64
    assert zs.add(half, 2).dtype == torch.float16
    assert zs.add(whole, 2.0).dtype == torch.float64
    assert zs.sum(torch.ones(3, dtype=torch.uint8)).dtype == torch.uint64
    assert zs.cast(whole, torch.bfloat16).dtype == torch.bfloat16
    assert zs.cast(whole, "float64").dtype == torch.float64
    assert zs.add(whole, whole, dtype=torch.float64).dtype == torch.float64
    assert zs.sum(whole, dtype=torch.float32).dtype == torch.float32
    assert zs.clip(torch.tensor([-3, 300], dtype=torch.int16), 0, 255).tolist() == [0, 255]


def test_dtypes_that_numpy_lacks_are_refused():
    x = torch.tensor([1.0, 2.0])
    assert zs.add(x.to(torch.float8_e5m2), x.to(torch.float8_e5m2)).dtype == torch.float8_e5m2
    assert zs.exp(x.bfloat16()).dtype == torch.bfloat16
    with pytest.raises(TypeError, match="does not compute with tensors of"):
        zs.add(torch.empty(3, dtype=torch.uint4), 1)


def test_several_results_and_settings_work():
    @zs.fuse
    def both(x, *, gain=1, bias=None):
        y = x * gain if bias is None else x * gain + bias
        return {"y": y, "sums": (y.sum(-1), y.max())}

    x = torch.arange(6.0).reshape(2, 3)
    result = both(x, gain=3)
    assert result["sums"][0].tolist() == [9, 36]
    assert result["sums"][1].item() == 15
    bias = torch.ones(3, requires_grad=True)
    result = both(x, bias=bias)
    result["y"].sum().backward()
    assert bias.grad.tolist() == [2, 2, 2]
    out = {"y": torch.empty(2, 3)}
    assert both(x, out=out)["y"] is out["y"]
    assert torch.equal(out["y"], x)
    with pytest.raises(TypeError, match="bias= holds tensors in a list"):
        both(x, bias=[bias])


def test_captured_arrays_are_read_in_each_call():
    weights = np.array([1.0, 2.0])

    @zs.fuse
    def weighted(x):
        return x * weights

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert weighted(x).tolist() == [1, 2]
    weights[:] = [3, 4]
    assert weighted(x).tolist() == [3, 4]
    weighted(x).sum().backward()
    assert x.grad.tolist() == [3, 4]


# Elsewhere


def test_meta_tensors_have_shapes():
    x = torch.empty(2, 3, 4, device="meta")
    row = torch.empty(3, device="meta")
    result = zs.add(x, row, rule="pdpd", axis=1)
    assert (result.device.type, result.shape, result.dtype) == ("meta", (2, 3, 4), torch.float32)
    assert probed(x, 1).device.type == "meta"
    assert zs.sum(x, axis=1).shape == (2, 4)
    assert zs.argmax(x, axis=(0, 2)).shape == (3,)
    assert zs.plan((2, 3, 4), (3,), rule="pdpd", axis=1).views(x, row)[1].shape == (2, 3, 4)
    assert zs.broadcast(row, (2, 3), copy=True).device.type == "meta"
    with pytest.raises(TypeError, match="operands are on cpu and meta; move them to one device"):
        zs.add(torch.empty(2, 3, 4), x)
    with pytest.raises(zs.BroadcastError):
        zs.add(x, row)


def test_fake_tensors_have_shapes():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.empty(2, 3)
        result = zs.add(x, torch.empty(2), rule="pdpd", axis=0)
        assert type(result).__name__ == "FakeTensor"
        assert result.shape == (2, 3)
        assert probed(x, 2.0).shape == (2, 3)


def test_jit_trace_and_subclasses_work():
    x = torch.ones(2, 3)
    elsewhere = x.as_subclass(Elsewhere)
    assert type(zs.add(elsewhere, 1)) is Elsewhere
    for answer in (zs.argmin(elsewhere[0, 0]), zs.argmax(elsewhere, axis=())):  # made of no operand
        assert type(answer) is Elsewhere
        assert not answer.any()
    held = zs.fuse(lambda x: (x + 1, np.array([1.0, 2.0]) * 2))(elsewhere)[1]
    assert type(held) is Elsewhere
    assert held.tolist() == [2.0, 4.0]
    parameter = torch.nn.Parameter(torch.ones(3))
    assert type(zs.add(parameter, 1)) is torch.Tensor


# What is refused


def test_out_that_requires_a_gradient_is_refused():
    x = torch.ones(3, requires_grad=True)
    y = torch.ones(3)
    for operand, out in ((x, torch.empty(3)), (y, torch.ones(3, requires_grad=True))):
        with pytest.raises(RuntimeError, match="out= does not take part in automatic"):
            zs.add(operand, 1, out=out)
        with pytest.raises(RuntimeError, match="out= does not take part in automatic"):
            probed(operand, 1, out=out)
        with pytest.raises(RuntimeError, match="out= does not take part in automatic"):
            zs.sum(operand, keepdims=True, out=out)
    with torch.no_grad():
        zs.add(x, 1, out=torch.empty(3))
    with pytest.raises(TypeError, match="operand 0 is an array of torch and operand 1 is"):
        zs.add(y, np.ones(3))
    with pytest.raises(TypeError, match="sparse_coo, and operands are dense"):
        zs.add(y.to_sparse(), 1)
    with pytest.raises(TypeError, match="progress="):
        probed(x, 1, progress=print)
    with pytest.raises(zs.BroadcastError, match="computed of arrays in memory, without gradients"):
        zs.divide(x.double(), x, engine="torch")
    with pytest.raises(zs.BroadcastError, match="own values of divide on int32"):
        zs.divide(
            torch.ones(3, dtype=torch.int32).as_subclass(Elsewhere),
            torch.ones(3, dtype=torch.int32),
            engine="onnxruntime",
        )
    c = torch.tensor([1 + 1j])
    with pytest.raises(TypeError, match="conjugate or negative bit"):
        zs.add(c, c, out=c.clone().conj())
    with pytest.raises(zs.BroadcastError, match="operand 0 has shape"):
        zs.plan((2,), (3,), rule="none") if False else zs.plan((2, 3)).views(y)
    with pytest.raises(zs.BroadcastError, match="grad has shape"):
        zs.plan((2, 3), (3,)).unbroadcast(x, 1)


def test_engine_semantics_are_computed_in_memory():
    x = torch.tensor([7, -7], dtype=torch.int32)
    assert zs.divide(x, torch.tensor([2, 2], dtype=torch.int32), engine="onnxruntime").tolist() == [
        3,
        -3,
    ]
    leaf = torch.ones(5, 5, requires_grad=True)
    aligned = zs.multiply(leaf, torch.arange(5.0), engine="ncnn")
    aligned.sum().backward()
    assert leaf.grad[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_torch_is_not_imported():
    code = """
import sys, numpy as np, zerostride as zs
zs.add(np.ones((2, 3)), 1)
zs.fuse(lambda x: x + 1)(np.ones(3))
zs.sum(np.ones(3))
zs.plan((3,), (1,)).views(np.ones(3), np.ones(1))
print([name for name in sys.modules if name.split(".")[0] in ("torch", "jax", "jaxlib")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


#: Calls with a result of shape (2, 3), by what the caller wrote for `out`.
INTO = {
    "add": ("out", lambda x, out: zs.add(x, 1, out=out)),
    "broadcast": ("out", lambda x, out: zs.broadcast(x[0], (2, 3), out=out)),
    "sum": ("out", lambda x, out: zs.sum(x[None], axis=0, out=out)),
    "fused": ("out", lambda x, out: probed(x, 1, out=out)),
    "fused, two results": (
        "out[1]",
        lambda x, out: zs.fuse(lambda x: (x + 1, x * 2))(x, out=(None, out)),
    ),
}


@pytest.mark.parametrize("kind", [torch.Tensor, Elsewhere])
@pytest.mark.parametrize("call", INTO)
def test_out_that_cannot_hold_a_result_is_refused(kind, call):
    name, function = INTO[call]
    x = torch.ones(2, 3).as_subclass(kind)
    for out in (torch.zeros(1, 3).expand(2, 3), torch.zeros(4).as_strided((2, 3), (1, 1))):
        with pytest.raises(ValueError, match=r"lies on itself: its 2 elements .* axis 0") as caught:
            function(x, out.as_subclass(kind))
        assert str(caught.value).startswith(name)
        assert f"{name}.clone()" in str(caught.value)
        assert not out.any()
    with pytest.raises(zs.BroadcastError) as refused:
        function(x, torch.zeros(2, 4).as_subclass(kind))
    assert refused.value.detail.startswith(f"{name} has shape (2, 4); the result has (2, 3), ")
    assert (refused.value.axis, refused.value.hint) == (1, "give an out of shape (2, 3)")
    # Lattices that lie within each other, and what has no elements at all.
    out = torch.zeros(8).as_strided((2, 3), (3, 2)).as_subclass(kind)
    function(x, out)
    assert out.all()
    zs.add(x[:0], 1, out=torch.zeros(3).expand(0, 3).as_subclass(kind))


@pytest.mark.parametrize("kind", [torch.Tensor, Elsewhere])
def test_no_out_is_written_if_one_is_wrong(kind):
    x, first = (torch.zeros(2, 3).as_subclass(kind) for _ in range(2))
    with pytest.raises(zs.BroadcastError, match=r"out\[1\] has shape \(2, 4\)"):
        zs.fuse(lambda x: (x + 1, x * 2))(x, out=(first, torch.zeros(2, 4).as_subclass(kind)))
    assert not first.any()
