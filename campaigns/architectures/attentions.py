"""Modules of PyTorch with attention as people write it, small and with random weights.

Each is called with a batch of two. PyTorch is imported here: only who exports imports this module.
"""

# ruff: noqa: D102 - `forward` does what the class says
# mypy: disable-error-code="misc, no-untyped-call"

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own convention
from torch import nn

_B, _L, _S, _H, _D = 2, 6, 9, 4, 8
_E = _H * _D


def _heads(x: Any, heads: int = _H) -> Any:
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def _merged(x: Any) -> Any:
    return x.transpose(1, 2).flatten(2)


def _rotated(x: Any) -> Any:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def _repeated(x: Any, times: int) -> Any:
    batch, heads, keys, features = x.shape
    x = x[:, :, None].expand(batch, heads, times, keys, features)
    return x.reshape(batch, heads * times, keys, features)


class _Projected(nn.Module):
    """Linear layers around an attention."""

    def __init__(self, key_heads: int = _H) -> None:
        super().__init__()
        self.key_heads = key_heads
        self.q, self.out = nn.Linear(_E, _E), nn.Linear(_E, _E)
        self.k, self.v = nn.Linear(_E, key_heads * _D), nn.Linear(_E, key_heads * _D)

    def split(self, x: Any, y: Any) -> tuple[Any, Any, Any]:
        """Query, key and value by heads."""
        return (
            _heads(self.q(x)),
            _heads(self.k(y), self.key_heads),
            _heads(self.v(y), self.key_heads),
        )


class Own(_Projected):
    """Products and a softmax."""

    def forward(self, x: Any) -> Any:
        q, k, v = self.split(x, x)
        weights = (q @ k.transpose(-2, -1) / math.sqrt(_D)).softmax(-1)
        return self.out(_merged(weights @ v))


class Tril(_Projected):
    """A causal mask from a buffer, as in GPT-2 and its copies."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bias", torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16))

    def forward(self, x: Any) -> Any:
        q, k, v = self.split(x, x)
        length = x.shape[1]
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(_D))
        scores = scores.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
        return self.out(_merged(F.softmax(scores, dim=-1) @ v))


class Extended(_Projected):
    """A padding mask as a large number below 0, as in BERT."""

    def forward(self, x: Any, mask: Any) -> Any:
        q, k, v = self.split(x, x)
        added = (1.0 - mask[:, None, None, :]) * -10000.0
        weights = (q @ k.transpose(-2, -1) / math.sqrt(_D) + added).softmax(-1)
        return self.out(_merged(weights @ v))


class Fused(_Projected):
    """PyTorch's own function."""

    def forward(self, x: Any) -> Any:
        return self.out(_merged(F.scaled_dot_product_attention(*self.split(x, x))))


class Causal(_Projected):
    """The same, causal."""

    def forward(self, x: Any) -> Any:
        heads = F.scaled_dot_product_attention(*self.split(x, x), is_causal=True)
        return self.out(_merged(heads))


class Padded(_Projected):
    """A mask of truth values, (batch, 1, 1, key)."""

    def forward(self, x: Any, keep: Any) -> Any:
        keep = keep[:, None, None, :]
        return self.out(_merged(F.scaled_dot_product_attention(*self.split(x, x), attn_mask=keep)))


class Biased(_Projected):
    """Floats of (query, key) that are added."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(_L, _L))

    def forward(self, x: Any) -> Any:
        heads = F.scaled_dot_product_attention(*self.split(x, x), attn_mask=self.bias)
        return self.out(_merged(heads))


class Grouped(_Projected):
    """Two key heads for four query heads, by PyTorch's own word."""

    def __init__(self) -> None:
        super().__init__(2)

    def forward(self, x: Any) -> Any:
        heads = F.scaled_dot_product_attention(*self.split(x, x), enable_gqa=True)
        return self.out(_merged(heads))


class MultiQuery(_Projected):
    """One key head, which broadcasting repeats."""

    def __init__(self) -> None:
        super().__init__(1)

    def forward(self, x: Any) -> Any:
        q, k, v = self.split(x, x)
        weights = (q @ k.transpose(-2, -1) * _D**-0.5).softmax(-1)
        return self.out(_merged(weights @ v))


class Llama(_Projected):
    """Groups of heads by expand and reshape, rotary positions, a causal mask by triu."""

    def __init__(self) -> None:
        super().__init__(2)
        angles = torch.arange(16)[:, None] / 10000 ** (torch.arange(0, _D, 2) / _D)
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def turned(self, x: Any) -> Any:
        """Turned by the angles of its positions."""
        length = x.shape[2]
        return x * self.cos[:length] + _rotated(x) * self.sin[:length]

    def forward(self, x: Any) -> Any:
        q, k, v = self.split(x, x)
        q, k = self.turned(q), _repeated(self.turned(k), 2)
        length = x.shape[1]
        mask = torch.full((length, length), float("-inf"), device=x.device).triu(1)
        weights = (q @ k.transpose(2, 3) / math.sqrt(_D) + mask).softmax(-1)
        return self.out(_merged(weights @ _repeated(v, 2)))


class Rotated(Llama):
    """The same by PyTorch's own function."""

    def forward(self, x: Any) -> Any:
        q, k, v = self.split(x, x)
        heads = F.scaled_dot_product_attention(
            self.turned(q), self.turned(k), v, is_causal=True, enable_gqa=True
        )
        return self.out(_merged(heads))


class Image(nn.Module):
    """A block of ViT: patches, one packed projection, a class token and positions."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, _E, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, _E))
        self.places = nn.Parameter(torch.randn(1, 17, _E))
        self.norm, self.qkv, self.out = nn.LayerNorm(_E), nn.Linear(_E, 3 * _E), nn.Linear(_E, _E)

    def forward(self, x: Any) -> Any:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.places
        batch, count, width = x.shape
        qkv = self.qkv(self.norm(x)).reshape(batch, count, 3, _H, width // _H)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q * _D**-0.5 @ k.transpose(-2, -1)).softmax(dim=-1)
        return x + self.out((weights @ v).transpose(1, 2).reshape(batch, count, width))


class Standard(nn.Module):
    """PyTorch's own module, with padding."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(_E, _H, batch_first=True)

    def forward(self, x: Any, padded: Any) -> Any:
        return self.attention(x, x, x, key_padding_mask=padded, need_weights=False)[0]


class Weights(nn.Module):
    """PyTorch's own module, with a mask of (query, key) and the mean of the weights."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(_E, _H, batch_first=True, kdim=16, vdim=16)

    def forward(self, x: Any, memory: Any) -> Any:
        mask = torch.arange(_L)[:, None] + 3 < torch.arange(_S)[None]
        result, weights = self.attention(x, memory, memory, attn_mask=mask)
        return result, weights


class Encoder(nn.Module):
    """PyTorch's layer of an encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(_E, _H, 48, batch_first=True, norm_first=True)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


class Decoder(nn.Module):
    """PyTorch's layer of a decoder: causal, and a cross attention with padding."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(_E, _H, 48, batch_first=True)

    def forward(self, x: Any, memory: Any, padded: Any) -> Any:
        causal = torch.triu(torch.full((_L, _L), float("-inf")), diagonal=1)
        return self.layer(x, memory, tgt_mask=causal, memory_key_padding_mask=padded)


class Whisper(_Projected):
    """One step of a decoder: past keys and values come in, and all of them go out."""

    def forward(self, x: Any, past_key: Any, past_value: Any) -> Any:
        q, k, v = self.split(x, x)
        k, v = torch.cat((past_key, k), dim=2), torch.cat((past_value, v), dim=2)
        return self.out(_merged(F.scaled_dot_product_attention(q, k, v))), k, v


class Cross(_Projected):
    """Cross attention whose padding becomes -inf."""

    def forward(self, x: Any, memory: Any, padded: Any) -> Any:
        q, k, v = self.split(x, memory)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * _D**-0.5
        scores = scores.masked_fill(padded[:, None, None, :], float("-inf"))
        heads = torch.einsum("bhqk,bhkd->bqhd", scores.softmax(-1), v)
        return self.out(heads.flatten(2))


class Alibi(_Projected):
    """Slopes by head times distances."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("slopes", 2.0 ** -torch.arange(1.0, _H + 1))

    def forward(self, x: Any) -> Any:
        q, k, v = self.split(x, x)
        places = torch.arange(x.shape[1], device=x.device)
        bias = self.slopes[:, None, None] * (places[None, :] - places[:, None])[None]
        return self.out(_merged(F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None])))


class Window(nn.Module):
    """Windows of an image with a table of relative places, as in Swin."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(_E, 3 * _E), nn.Linear(_E, _E)
        self.table = nn.Parameter(torch.randn(25, _H))
        rows, columns = torch.arange(9) // 3, torch.arange(9) % 3
        places = (rows[:, None] - rows + 2) * 5 + columns[:, None] - columns + 2
        self.register_buffer("places", places)
        self.register_buffer("mask", (torch.rand(4, 9, 9) > 0.7) * -100.0)

    def forward(self, x: Any) -> Any:
        batch, height, width, channels = x.shape
        x = x.view(batch, height // 3, 3, width // 3, 3, channels).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(-1, 9, channels)
        q, k, v = self.qkv(x).view(-1, 9, 3, _H, channels // _H).permute(2, 0, 3, 1, 4)
        scores = q * _D**-0.5 @ k.transpose(-2, -1)
        bias = self.table[self.places.view(-1)].view(9, 9, -1).permute(2, 0, 1)
        scores = scores + bias.unsqueeze(0)
        scores = scores.view(batch, 4, _H, 9, 9) + self.mask.unsqueeze(1).unsqueeze(0)
        weights = scores.view(-1, _H, 9, 9).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(-1, 9, channels))


class Capped(_Projected):
    """Scores through a tangent, and a window of past keys, as in Gemma 2."""

    def __init__(self) -> None:
        super().__init__(2)

    def forward(self, x: Any) -> Any:
        q, k, v = self.split(x, x)
        scores = q @ _repeated(k, 2).transpose(-2, -1) * _D**-0.5
        scores = torch.tanh(scores / 20.0) * 20.0
        places = torch.arange(x.shape[1])
        gap = places[:, None] - places[None, :]
        keep = (gap >= 0) & (gap < 3)
        scores = torch.where(keep, scores, torch.tensor(torch.finfo(x.dtype).min))
        return self.out(_merged(scores.softmax(-1) @ _repeated(v, 2)))


class Cosine(_Projected):
    """Normalised queries and keys with a learnt scale by head, as in Swin V2."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.log(10 * torch.ones(_H, 1, 1)))

    def forward(self, x: Any) -> Any:
        q, k, v = self.split(x, x)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        scores = scores * torch.clamp(self.scale, max=math.log(100.0)).exp()
        return self.out(_merged(scores.softmax(-1) @ v))


def _lengths(size: int) -> Any:
    return torch.arange(size)[None] < torch.tensor([[size], [size - 2]])


def _text() -> Any:
    return torch.randn(_B, _L, _E)


#: Modules by name, each with a function that gives the tensors of a call.
ATTENTIONS: Mapping[str, tuple[Callable[[], Any], Callable[[], tuple[Any, ...]]]] = {
    "alibi": (Alibi, lambda: (_text(),)),
    "biased": (Biased, lambda: (_text(),)),
    "capped": (Capped, lambda: (_text(),)),
    "causal": (Causal, lambda: (_text(),)),
    "cosine": (Cosine, lambda: (_text(),)),
    "cross": (Cross, lambda: (_text(), torch.randn(_B, _S, _E), ~_lengths(_S))),
    "decoder": (Decoder, lambda: (_text(), torch.randn(_B, _S, _E), ~_lengths(_S))),
    "encoder": (Encoder, lambda: (_text(),)),
    "extended": (Extended, lambda: (_text(), _lengths(_L).float())),
    "fused": (Fused, lambda: (_text(),)),
    "grouped": (Grouped, lambda: (_text(),)),
    "image": (Image, lambda: (torch.randn(_B, 3, 16, 16),)),
    "llama": (Llama, lambda: (_text(),)),
    "multi_query": (MultiQuery, lambda: (_text(),)),
    "own": (Own, lambda: (_text(),)),
    "padded": (Padded, lambda: (_text(), _lengths(_L))),
    "rotated": (Rotated, lambda: (_text(),)),
    "standard": (Standard, lambda: (_text(), ~_lengths(_L))),
    "tril": (Tril, lambda: (_text(),)),
    "weights": (Weights, lambda: (_text(), torch.randn(_B, _S, 16))),
    "whisper": (
        Whisper,
        lambda: (torch.randn(_B, 1, _E), *torch.randn(2, _B, _H, _S, _D).unbind()),
    ),
    "window": (Window, lambda: (torch.randn(_B, 6, 6, _E),)),
}


def attention(name: str) -> tuple[Any, tuple[Any, ...]]:
    """A module with random weights of a seed, and the tensors of a call."""
    torch.manual_seed(0)
    maker, inputs = ATTENTIONS[name]
    return maker().eval(), inputs()
