"""Ten networks whose broadcasts differ on ncnn; tests change their source."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812


class MaskedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, x, mask):
        s = self.q(x) @ self.k(x).transpose(-1, -2)
        s = s + mask
        return torch.softmax(s * self.scale, -1) @ self.v(x)


class SqueezeExcite(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Linear(6, 2), nn.Linear(2, 6)

    def forward(self, x):
        gate = torch.sigmoid(self.up(F.relu(self.down(x.mean((2, 3))))))
        return x * gate[:, :, None, None]


class ConvNeXtBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.dw = nn.Conv2d(6, 6, 7, padding=3, groups=6)
        self.norm = nn.LayerNorm(6)
        self.up, self.down = nn.Linear(6, 24), nn.Linear(24, 6)
        self.gamma = nn.Parameter(torch.full((6,), 0.5))

    def forward(self, x):
        y = self.dw(x).permute(0, 2, 3, 1)
        y = self.down(F.gelu(self.up(self.norm(y))))
        y = self.gamma * y
        return x + y.permute(0, 3, 1, 2)


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        t = torch.arange(6.0)[:, None] * torch.tensor([1.0, 0.1, 0.01])
        self.register_buffer("cos", torch.cat((t.cos(), t.cos()), -1))
        self.register_buffer("sin", torch.cat((t.sin(), t.sin()), -1))

    def forward(self, x):
        a, b = x.chunk(2, -1)
        turned = torch.cat((-b, a), -1)
        return x * self.cos + turned * self.sin


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 6, batch_first=True)
        self.bias = nn.Parameter(torch.ones(6))

    def forward(self, x):
        y, _ = self.gru(x)
        return y + self.bias


class YoloHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 12, 1)
        self.register_buffer("grid", torch.rand(5, 5, 2))
        self.register_buffer("anchors", torch.rand(2, 1, 1, 2))

    def forward(self, x):
        y = self.conv(x).view(1, 2, 6, 5, 5).permute(0, 1, 3, 4, 2).sigmoid()
        xy = y[..., :2] * 2 + self.grid
        wh = (y[..., 2:4] * 2) ** 2 * self.anchors
        return torch.cat((xy, wh, y[..., 4:]), -1)


class AffineGroupNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, 6, affine=False)
        self.weight = nn.Parameter(torch.ones(6, 1, 1))
        self.bias = nn.Parameter(torch.ones(6, 1, 1))

    def forward(self, x):
        return self.norm(x) * self.weight + self.bias


class FiLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(4, 12)

    def forward(self, x, c):
        scale, shift = self.project(c).chunk(2, -1)
        return x * scale.unsqueeze(1) + shift.unsqueeze(1)


class LayerScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(6))
        self.inner = nn.Linear(6, 6)

    def forward(self, x):
        return x + self.inner(x) * self.gamma


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(6, 6))
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, x):
        return (x + self.table) * self.scale


r = torch.rand
NETS = {
    MaskedAttention: (r(1, 6, 8), r(6)),
    SqueezeExcite: (r(1, 6, 5, 5),),
    ConvNeXtBlock: (r(1, 6, 6, 6),),
    Rotary: (r(1, 6, 6, 6),),
    Recurrent: (r(1, 6, 6),),
    YoloHead: (r(1, 6, 5, 5),),
    AffineGroupNorm: (r(1, 6, 5, 5),),
    FiLM: (r(1, 6, 6), r(1, 4)),
    LayerScale: (r(1, 6, 6),),
    Positions: (r(1, 6, 6),),
}
