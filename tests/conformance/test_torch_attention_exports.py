"""Modules with attention that PyTorch's ONNX exporter fails on, exported all the same."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="exports modules")
ort = pytest.importorskip("onnxruntime", reason="runs what was exported")

import zerostride as zs  # noqa: E402
from zerostride.models.formats.torch_export import onnx_bytes  # noqa: E402


class Heads(torch.nn.Module):  # type: ignore[misc]
    """Attention with a bias, as T5's encoder and Swin have it: heads, then one axis again."""

    def __init__(self, heads: int, size: int, length: int, queries: int) -> None:
        super().__init__()
        self.heads, self.queries = heads, queries
        self.query = torch.nn.Linear(heads * size, heads * size)
        self.key = torch.nn.Linear(heads * size, heads * size)
        self.bias = torch.nn.Parameter(torch.rand(heads, queries, length))

    def forward(self, x: Any) -> Any:
        samples, length, _ = x.shape
        q = self.query(x[:, : self.queries]).view(samples, self.queries, self.heads, -1)
        k = self.key(x).view(samples, length, self.heads, -1).transpose(1, 2)
        y = torch.nn.functional.scaled_dot_product_attention(
            q.transpose(1, 2), k, k, attn_mask=self.bias[None]
        )
        return y.transpose(1, 2).reshape(samples, self.queries, -1) + x[:, : self.queries]


CASES = [(4, 8, 9, 9), (2, 3, 5, 5), (4, 8, 9, 4), (1, 8, 9, 9)]


def program_of(module: Any, x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(module, (x,))


@pytest.mark.parametrize("case", CASES)
def test_exports_compute_the_same(case: tuple[int, int, int, int]) -> None:
    torch.manual_seed(0)
    heads, size, length, _ = case
    module, x = Heads(*case).eval(), torch.rand(2, length, heads * size)
    program = program_of(module, x)
    before = str(program.graph)
    data = onnx_bytes(program, "Heads")
    assert str(program.graph) == before, "the caller's program has changed"
    session = ort.InferenceSession(data)
    (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    np.testing.assert_allclose(got, module(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_pytorch_alone_fails_on_one() -> None:
    """If this fails, PyTorch has mended it: `_dense_attention` can go."""
    torch.manual_seed(0)
    program = program_of(Heads(*CASES[0]).eval(), torch.rand(2, 9, 32))
    with pytest.raises(torch.onnx.errors.OnnxExporterError, match="decompose"):
        torch.onnx.export(program, dynamo=True, verbose=False)


def test_such_modules_are_audited() -> None:
    module, x = Heads(*CASES[0]).eval(), torch.rand(2, 9, 32)
    report = zs.audit(module, "onnxruntime", args=(x,))
    assert [finding.verdict for finding in report.findings] == ["same"] * len(report.findings)
    assert "Add" in {finding.op for finding in report.findings}
