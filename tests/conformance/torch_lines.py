"""Lines of PyTorch code: accidents, and idioms that are none.

In all of them `column` is (6, 1), `vector` is (6,), `x` is (6, 4), `batch` is (2, 6, 4); `torch`,
`nn` and `F` are PyTorch's.
"""

from __future__ import annotations

from typing import Any

#: Each with the reason of its refusal.
ACCIDENTS = {
    "column - vector": "two_sided",
    "vector - column": "two_sided",
    "column * 2 / (vector + 1)": "two_sided",
    "column < vector": "two_sided",
    "(column == vector).float().mean()": "two_sided",
    "column.argmax(1, keepdim=True) == vector.long()": "two_sided",
    "column // (vector + 1)": "two_sided",
    "(column + 1) ** vector": "two_sided",
    "(column > 0) & (vector > 0)": "two_sided",
    "column.sub(vector)": "two_sided",
    "column.sub(other=vector)": "two_sided",
    "torch.sub(column, vector)": "two_sided",
    "torch.maximum(column, vector)": "two_sided",
    "torch.where(column > 0, vector, 0.0)": "two_sided",
    "torch.where(column > 0, input=vector, other=column)": "two_sided",
    "column.where(column > 0, vector)": "two_sided",
    "torch.lerp(column, vector, 0.5)": "two_sided",
    "torch.lerp(column, column, vector)": "two_sided",
    "torch.addcmul(column, vector, vector, value=2)": "two_sided",
    "column.masked_fill(vector > 0, 0.0)": "two_sided",
    "torch.clamp(column, max=vector)": "two_sided",
    "torch.allclose(column, vector)": "two_sided",
    "y = column.clone(); y -= vector": "two_sided",
    "y = column.clone(); y.mul_(vector)": "two_sided",
    "y = vector.clone(); y += column": "two_sided",
    "batch[:, :, :1] * x[:, 0]": "two_sided",
    "torch.rand(6, 4, 1) * vector": "two_sided",
    "torch.rand(6, 1, 4) - x": "two_sided",
    "target = vector[:, None]; y = vector * 1; y - target": "two_sided",
    "F.mse_loss(column, vector)": "two_sided",
    "F.mse_loss(input=column, target=vector)": "two_sided",
    "nn.MSELoss()(column, vector)": "two_sided",
    "nn.L1Loss()(column, vector)": "two_sided",
    "nn.SmoothL1Loss()(column, vector)": "two_sided",
    "nn.HuberLoss()(column, vector)": "two_sided",
    "F.kl_div(column.log(), vector, reduction='batchmean')": "two_sided",
    "nn.PoissonNLLLoss()(column, vector)": "two_sided",
    "nn.GaussianNLLLoss()(column, vector, torch.ones(6, 1))": "two_sided",
    "F.mse_loss(column, vector[None, :])": "two_sided",
    "F.mse_loss(column, x)": "not_identical",
    "F.mse_loss(x, x[0])": "not_identical",
    "torch.distributions.Normal(column, 1.0).log_prob(vector)": "two_sided",
}

#: Code that people write on purpose.
IDIOMS = (
    "x + x.mean(0)",
    "x - x.mean(0, keepdim=True)",
    "x - x.mean(1, keepdim=True)",
    "(batch - batch.mean((0, 1))) / batch.std((0, 1))",
    "nn.Linear(4, 3)(x)",
    "x @ torch.rand(4, 3) + torch.rand(3)",
    "torch.rand(2, 3, 5, 5) * torch.rand(3, 1, 1) + torch.rand(3, 1, 1)",
    "nn.LayerNorm(4)(batch) + nn.BatchNorm1d(6)(batch)",
    "x * torch.tensor(2.0) + 1 - torch.rand(1)",
    "2 ** x; 1 / x; -x; x > 0.5; 0 < x",
    "vector[:, None] - vector[None, :]",
    "vector[:, None] - vector",
    "vector - vector[:, None]",
    "vector.unsqueeze(1) * vector",
    "-vector.unsqueeze(1).float() * 2 + vector",
    "torch.unsqueeze(vector, 1) == vector",
    "(x[:, None] - x).pow(2).sum(-1)",
    "rows = vector.unsqueeze(1); rows - vector",
    "torch.arange(6)[:, None] >= torch.arange(6)",
    "i = torch.arange(6).unsqueeze(1)\nj = torch.arange(6)\ni >= j",
    "lengths = torch.tensor([[2], [5]])\ntorch.arange(6) < lengths",
    "position = torch.arange(50.0).view(-1, 1)\n"
    "rate = torch.exp(torch.arange(0.0, 8.0, 2.0))\ntorch.sin(position * rate)",
    "scores = batch @ batch.mT\nscores.masked_fill(torch.ones(6, 6).triu(1) > 0, -1e9).softmax(-1)",
    "torch.rand(2, 3, 6, 6) + torch.rand(2, 1, 1, 6)",
    "torch.rand(2, 3, 6, 6).masked_fill(torch.rand(2, 1, 1, 6) > 0.5, 0.0)",
    "F.scaled_dot_product_attention(batch, batch, batch, attn_mask=torch.rand(6, 6))",
    "nn.MultiheadAttention(4, 2, batch_first=True)(batch, batch, batch)",
    "nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)(batch)",
    "torch.where(x > 0, x, 0.0); torch.where(x > 0, x, torch.zeros(4))",
    "torch.where(vector > 0)",
    "torch.clamp(x, min=0); x.clamp(max=torch.ones(4)); x.clip(0, 1)",
    "F.mse_loss(x, torch.tensor(0.5)); F.mse_loss(x, x); F.mse_loss(x[:1], x[0][None])",
    "F.l1_loss(torch.rand(1, 1), torch.rand(1))",
    "F.cross_entropy(x, torch.tensor([0, 1, 2, 3, 0, 1]))",
    "F.binary_cross_entropy_with_logits(column, column.round())",
    "x / x.norm(dim=-1, keepdim=True)",
    "torch.distributions.Normal(torch.zeros(4), torch.ones(4)).log_prob(x)",
    "torch.cdist(x, x); torch.outer(vector, vector); torch.cartesian_prod(vector, vector)",
    "torch.einsum('ij,kj->ik', x, x) * vector",
    "column - column[0]",
    "column[:1] - vector[:1]",
    "torch.rand(6, 1) - torch.rand(4)",
    "x[x > 0] = 0.0; x[0] = vector[:4]",
    "nn.LSTM(4, 3, batch_first=True)(batch)",
    "F.cosine_similarity(x[:, None], x[None], dim=-1)",
    "w = torch.softmax(column, 0); (w * x).sum(0)",
    "F.embedding(torch.tensor([1, 2]), x) + torch.rand(4)",
    "x.sum(0, keepdim=True).expand(6, 4) + torch.rand(1)",
    "damping = torch.rand(6, 1, 1)\ndamping * torch.eye(6)",
    "torch.complex(x, x) * torch.polar(vector[:4], vector[:4])",
)


def names() -> dict[str, Any]:
    """The names of the lines."""
    import torch
    from torch import nn
    from torch.nn import functional

    torch.manual_seed(0)
    return {
        "torch": torch,
        "nn": nn,
        "F": functional,
        "column": torch.rand(6, 1),
        "vector": torch.rand(6),
        "x": torch.rand(6, 4),
        "batch": torch.rand(2, 6, 4),
    }
