"""The networks: small, with the structures of the published ones in which broadcasts occur.

transformer   encoder and decoder: learnt positions, a padding mask and a causal one, layer
              normalisation written out, a scale for each head
unet          a diffusion U-Net: a time embedding added to maps, group normalisation, attention
              over pixels, skips
mobilenet     MobileNetV3: squeeze-and-excite, hard-swish, inverted residuals
convnext      ConvNeXt: depth-wise convolution, channels-last normalisation, layer scale, and
              the global response normalisation of its second version
swin          Swin: windows, a cyclic shift with its mask, a relative position bias, merging
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

#: Sizes are small, and different from one another where they can be.
WORDS, SOURCE, TARGET, WIDTH, HEADS = 31, 10, 7, 24, 3
IMAGE = 32


class Norm(nn.Module):
    """Layer normalisation, written out: its mean, its spread, its gain and its bias broadcast."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.empty(width).uniform_(0.5, 1.5))
        self.bias = nn.Parameter(torch.empty(width).uniform_(-0.5, 0.5))

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        spread = (centred * centred).mean(-1, keepdim=True)
        return centred / torch.sqrt(spread + 1e-5) * self.gain + self.bias


class Attention(nn.Module):
    """Heads of attention with a learnt scale each, and a mask that is added."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.scale = nn.Parameter(torch.full((heads, 1, 1), (width // heads) ** -0.5))

    def split(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        q, k, v = (
            self.split(self.query(x)),
            self.split(self.key(memory)),
            self.split(self.value(memory)),
        )
        scores = (q @ k.transpose(-1, -2)) * self.scale
        if mask is not None:
            scores = scores + mask
        mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    """Self-attention, attention to a memory where there is one, and a feed-forward part."""

    def __init__(self, width: int, heads: int, *, cross: bool) -> None:
        super().__init__()
        self.attend = Attention(width, heads)
        self.first, self.second = Norm(width), Norm(width)
        self.cross = Attention(width, heads) if cross else None
        self.third = Norm(width) if cross else None
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(
        self, x: Tensor, mask: Tensor | None, memory: Tensor | None, seen: Tensor | None
    ) -> Tensor:
        normal = self.first(x)
        x = x + self.attend(normal, normal, mask)
        if self.cross is not None and self.third is not None and memory is not None:
            x = x + self.cross(self.third(x), memory, seen)
        return x + self.narrow(functional.gelu(self.wide(self.second(x))))


class Transformer(nn.Module):
    """Encoder and decoder, two layers each. `padding` is 1 where the source has a word."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Parameter(torch.randn(1, SOURCE, WIDTH))
        self.encoder = nn.ModuleList(Layer(WIDTH, HEADS, cross=False) for _ in range(2))
        self.decoder = nn.ModuleList(Layer(WIDTH, HEADS, cross=True) for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS)
        causal = torch.triu(torch.full((TARGET, TARGET), -1e4), diagonal=1)
        self.register_buffer("causal", causal)

    def forward(self, source: Tensor, target: Tensor, padding: Tensor) -> Tensor:
        seen = (1 - padding)[:, None, None, :] * -1e4
        memory = self.words(source) * math.sqrt(WIDTH) + self.places
        for layer in self.encoder:
            memory = layer(memory, seen, None, None)
        x = self.words(target) * math.sqrt(WIDTH) + self.places[:, :TARGET]
        for layer in self.decoder:
            x = layer(x, self.causal, memory, seen)
        return self.head(x)


class Residual(nn.Module):
    """A residual block of a diffusion U-Net: the time is added to every pixel of a channel."""

    def __init__(self, before: int, after: int, time: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(4, before), nn.GroupNorm(4, after)])
        self.first = nn.Conv2d(before, after, 3, padding=1)
        self.second = nn.Conv2d(after, after, 3, padding=1)
        self.time = nn.Linear(time, 2 * after)
        self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        shift, scale = self.time(functional.silu(time))[:, :, None, None].chunk(2, dim=1)
        h = self.first(functional.silu(self.norms[0](x)))
        h = self.norms[1](h) * (1 + scale) + shift
        return self.skip(x) + self.second(functional.silu(h))


class Pixels(nn.Module):
    """Attention over the pixels of a map."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, channels)
        self.parts = nn.Conv2d(channels, 3 * channels, 1)
        self.out = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        q, k, v = self.parts(self.norm(x)).reshape(batch, 3, channels, height * width).unbind(1)
        weights = (q.transpose(1, 2) @ k * channels**-0.5).softmax(-1)
        return x + self.out((v @ weights.transpose(1, 2)).reshape(x.shape))


class UNet(nn.Module):
    """A U-Net that removes noise: maps and a time, three levels."""

    def __init__(self) -> None:
        super().__init__()
        low, middle, high, time = 8, 16, 24, 20
        self.frequencies = nn.Parameter(torch.exp(-torch.arange(5.0)))
        self.time = nn.Sequential(nn.Linear(10, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(3, low, 3, padding=1)
        self.down = nn.ModuleList([Residual(low, middle, time), Residual(middle, high, time)])
        self.middle = Residual(high, high, time)
        self.pixels = Pixels(high)
        self.up = nn.ModuleList([Residual(2 * high, middle, time), Residual(2 * middle, low, time)])
        self.last = nn.Conv2d(low, 3, 3, padding=1)

    def forward(self, image: Tensor, time: Tensor) -> Tensor:
        angles = time[:, None] * self.frequencies[None, :]
        embedded = self.time(torch.cat([angles.sin(), angles.cos()], dim=1))
        x, kept = self.first(image), []
        for block in self.down:
            x = block(x, embedded)
            kept.append(x)
            x = functional.avg_pool2d(x, 2)
        x = self.pixels(self.middle(x, embedded))
        for block, skip in zip(self.up, reversed(kept), strict=True):
            x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat([x, skip], dim=1), embedded)
        return self.last(x) * image.std(dim=(1, 2, 3), keepdim=True) + image


class Excite(nn.Module):
    """Squeeze-and-excite: a factor for each channel, from the mean over its pixels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down = nn.Conv2d(channels, channels // 4, 1)
        self.up = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        factor = self.up(functional.relu(self.down(x.mean(dim=(2, 3), keepdim=True))))
        return x * functional.hardsigmoid(factor)


class Inverted(nn.Module):
    """An inverted residual of MobileNetV3."""

    def __init__(self, before: int, wide: int, after: int, stride: int, excite: bool) -> None:
        super().__init__()
        self.adds = stride == 1 and before == after
        self.body = nn.Sequential(
            nn.Conv2d(before, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.Hardswish(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            Excite(wide) if excite else nn.Identity(),
            nn.Hardswish(),
            nn.Conv2d(wide, after, 1, bias=False),
            nn.BatchNorm2d(after),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.adds else self.body(x)


class MobileNet(nn.Module):
    """A small MobileNetV3, its input normalised inside: a mean and a spread for each channel."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).reshape(3, 1, 1))
        self.register_buffer("spread", torch.tensor([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1))
        rows = [(8, 16, 12, 2, True), (12, 36, 12, 1, False), (12, 48, 20, 2, True)]
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.Hardswish())
        self.blocks = nn.Sequential(*(Inverted(*row) for row in rows))
        self.head = nn.Sequential(nn.Linear(20, 32), nn.Hardswish(), nn.Linear(32, 10))

    def forward(self, image: Tensor) -> Tensor:
        x = self.blocks(self.stem((image - self.mean) / self.spread))
        return self.head(x.mean(dim=(2, 3)))


class Response(nn.Module):
    """Global response normalisation: a channel beside the mean over all channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.randn(1, 1, 1, channels))
        self.bias = nn.Parameter(torch.randn(1, 1, 1, channels))

    def forward(self, x: Tensor) -> Tensor:
        size = torch.sqrt((x * x).sum(dim=(1, 2), keepdim=True))
        return self.gain * (x * (size / (size.mean(dim=-1, keepdim=True) + 1e-6))) + self.bias + x


class ChannelsFirst(nn.Module):
    """Layer normalisation over the channels of NCHW maps, as ConvNeXt's stem has it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.empty(channels).uniform_(0.5, 1.5))
        self.bias = nn.Parameter(torch.randn(channels))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(1, keepdim=True)
        spread = (x - mean).pow(2).mean(1, keepdim=True)
        normal = (x - mean) / torch.sqrt(spread + 1e-6)
        return self.gain[:, None, None] * normal + self.bias[:, None, None]


class ConvBlock(nn.Module):
    """A block of ConvNeXt: depth-wise, then channels last, then scaled."""

    def __init__(self, channels: int, *, second: bool) -> None:
        super().__init__()
        self.deep = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.wide, self.narrow = (
            nn.Linear(channels, 4 * channels),
            nn.Linear(4 * channels, channels),
        )
        self.response = Response(4 * channels) if second else nn.Identity()
        self.scale = None if second else nn.Parameter(torch.empty(channels).uniform_(0.1, 1))

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(self.deep(x).permute(0, 2, 3, 1))
        h = self.narrow(self.response(functional.gelu(self.wide(h))))
        if self.scale is not None:
            h = self.scale * h
        return x + h.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    """Two stages of ConvNeXt, blocks of both versions."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 12, 4, 4), ChannelsFirst(12))
        self.one = nn.Sequential(ConvBlock(12, second=False), ConvBlock(12, second=True))
        self.down = nn.Sequential(ChannelsFirst(12), nn.Conv2d(12, 20, 2, 2))
        self.two = nn.Sequential(ConvBlock(20, second=False), ConvBlock(20, second=True))
        self.norm, self.head = nn.LayerNorm(20), nn.Linear(20, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.two(self.down(self.one(self.stem(image))))
        return self.head(self.norm(x.mean(dim=(2, 3))))


def windows(x: Tensor, side: int) -> Tensor:
    """(batch, height, width, channels) as (batch * windows, side * side, channels)."""
    batch, height, width, channels = x.shape
    x = x.reshape(batch, height // side, side, width // side, side, channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, side * side, channels)


def unwindowed(x: Tensor, side: int, shape: torch.Size) -> Tensor:
    """The way back."""
    batch, height, width, channels = shape
    x = x.reshape(batch, height // side, width // side, side, side, channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(shape)


class WindowAttention(nn.Module):
    """Attention inside windows, with a bias for each relative position and, shifted, a mask."""

    def __init__(self, width: int, heads: int, side: int, image: int, shift: int) -> None:
        super().__init__()
        self.heads, self.side, self.shift = heads, side, shift
        self.parts, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.randn((2 * side - 1) ** 2, heads))
        places = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij"))
        apart = (places.reshape(2, -1, 1) - places.reshape(2, 1, -1)) + side - 1
        self.register_buffer("index", apart[0] * (2 * side - 1) + apart[1])
        self.register_buffer("mask", self.masked(image) if shift else None)

    def masked(self, image: int) -> Tensor:
        """(windows, side², side²): −100 between pixels that were not neighbours."""
        regions = torch.zeros(1, image, image, 1)
        cuts = (slice(0, -self.side), slice(-self.side, -self.shift), slice(-self.shift, None))
        for k, (rows, columns) in enumerate((a, b) for a in cuts for b in cuts):
            regions[:, rows, columns] = k
        parts = windows(regions, self.side).squeeze(-1)
        return torch.where(parts[:, None, :] == parts[:, :, None], 0.0, -100.0)

    def forward(self, x: Tensor) -> Tensor:
        shape = x.shape
        if self.shift:
            x = torch.roll(x, (-self.shift, -self.shift), dims=(1, 2))
        x = windows(x, self.side)
        count, pixels, width = x.shape
        parts = self.parts(x).reshape(count, pixels, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q * (width // self.heads) ** -0.5 @ k.transpose(-1, -2)
        bias = self.table[self.index.reshape(-1)].reshape(pixels, pixels, self.heads)
        scores = scores + bias.permute(2, 0, 1)[None]
        if self.mask is not None:
            several = scores.reshape(-1, self.mask.shape[0], self.heads, pixels, pixels)
            scores = (several + self.mask[None, :, None]).reshape(scores.shape)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(count, pixels, width)
        x = unwindowed(self.out(mixed), self.side, shape)
        return torch.roll(x, (self.shift, self.shift), dims=(1, 2)) if self.shift else x


class SwinBlock(nn.Module):
    """A block of Swin."""

    def __init__(self, width: int, heads: int, side: int, image: int, shift: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend = WindowAttention(width, heads, side, image, shift)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.first(x))
        return x + self.narrow(functional.gelu(self.wide(self.second(x))))


class Swin(nn.Module):
    """Two stages of Swin: plain and shifted windows, patches merged between."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 12, 4, 4)
        self.one = nn.Sequential(SwinBlock(12, 2, 4, 8, 0), SwinBlock(12, 2, 4, 8, 2))
        self.norm, self.merge = nn.LayerNorm(48), nn.Linear(48, 24, bias=False)
        self.two = nn.Sequential(SwinBlock(24, 3, 2, 4, 0), SwinBlock(24, 3, 2, 4, 1))
        self.last, self.head = nn.LayerNorm(24), nn.Linear(24, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.one(self.patches(image).permute(0, 2, 3, 1))
        quarters = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        x = self.two(self.merge(self.norm(torch.cat(quarters, -1))))
        return self.head(self.last(x).mean(dim=(1, 2)))


@dataclass(frozen=True)
class Network:
    """A network with what it is given.

    Attributes:
        make: makes it, its weights random.
        inputs: makes its inputs by name.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[], dict[str, Tensor]]


def _image() -> dict[str, Tensor]:
    return {"image": torch.rand(1, 3, IMAGE, IMAGE)}


def _sentences() -> dict[str, Tensor]:
    return {
        "source": torch.randint(0, WORDS, (1, SOURCE)),
        "target": torch.randint(0, WORDS, (1, TARGET)),
        "padding": torch.cat([torch.ones(1, SOURCE - 2), torch.zeros(1, 2)], dim=1),
    }


NETWORKS = {
    "transformer": Network(Transformer, _sentences),
    "unet": Network(UNet, lambda: {**_image(), "time": torch.rand(1)}),
    "mobilenet": Network(MobileNet, _image),
    "convnext": Network(ConvNeXt, _image),
    "swin": Network(Swin, _image),
}
