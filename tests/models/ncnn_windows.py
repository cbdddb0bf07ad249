"""Random parameters of ncnn layers with windows: convolutions, pooling, unfolding, resizing."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ncnn_models import Shape

#: A random layer: its type, its parameters, its operands' shapes, the number of its results.
Drawn = tuple[str, str, list[Shape], int]
SIZES = (1, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16)


def random_shape(rng: random.Random, *ranks: int) -> Shape:
    """A shape of one of the ranks, of 1 to 4 by default."""
    rank = rng.choice(ranks or (1, 2, 3, 4))
    return tuple(rng.choice(SIZES) for _ in range(rank))


def _window(rng: random.Random, rank: int, keys: dict[str, Sequence[int]]) -> str:
    """Kernel, dilation, stride and pads by axis; some left to their defaults."""
    text = [f"{keys['w'][0]}={rng.randint(1, 3)}"]
    for name in {2: "w", 3: "wh", 4: "whd"}[rank]:
        kernel, dilation, stride, before, after = keys[name]
        if name != "w" and rng.random() < 0.6:
            text.append(f"{kernel}={rng.randint(1, 3)}")
        text += [f"{dilation}={rng.randint(1, 2)}"] * (rng.random() < 0.3)
        text += [f"{stride}={rng.randint(1, 3)}"] * (rng.random() < 0.5)
        text += [f"{before}={rng.randint(0, 2)}"] * (rng.random() < 0.5)
        text += [f"{after}={rng.randint(0, 2)}"] * (rng.random() < 0.3)
    return " ".join(text)


_CONVOLUTION = {"w": (1, 2, 3, 4, 15), "h": (11, 12, 13, 14, 16), "d": (21, 22, 23, 24, 17)}
_RANKS = {"": 3, "1D": 2, "3D": 4}


def _number(text: str, key: int, default: int) -> int:
    numbers = dict(pair.split("=") for pair in text.split())
    return int(numbers.get(str(key), default))


def _unpadded(text: str) -> str:
    pads = (4, 14, 15, 16, 17, 24)
    return " ".join(pair for pair in text.split() if int(pair.split("=")[0]) not in pads)


def convolution(rng: random.Random) -> Drawn:
    end = rng.choice(("", "", "1D", "3D"))
    rank = _RANKS[end]
    deep = rng.random() < 0.4
    shape = (rng.choice((1, 2, 3, 4, 8)), *(rng.randint(7, 12) for _ in range(rank - 1)))
    text = _window(rng, rank, _CONVOLUTION)
    if rng.random() < 0.2:
        text = " ".join(
            p for p in text.split() if int(p.split("=")[0]) not in (4, 14, 15, 16, 17, 24)
        )
        pad = rng.choice((-233, -234))
        text += f" 4={pad}"
    kernel = _number(text, 1, 0)
    total = kernel
    for key in {2: (), 3: (11,), 4: (11, 21)}[rank]:
        total *= _number(text, key, kernel)
    filters = shape[0] if deep else rng.choice((1, 2, 4, 5, 8))
    weights = filters * total * (1 if deep else shape[0])
    text = f"0={filters} {text} 5={rng.randrange(2)} 6={weights}"
    kind = "ConvolutionDepthWise" if deep else "Convolution"
    return kind + end, f"{text} 7={shape[0]}" if deep else text, [shape], 1


def deconvolution(rng: random.Random) -> Drawn:
    end = rng.choice(("", "", "1D", "3D"))
    rank = _RANKS[end]
    shape = (rng.choice((1, 2, 4)), *(rng.randint(4, 6) for _ in range(rank - 1)))
    text = _window(rng, rank, _CONVOLUTION)
    kernel = _number(text, 1, 0)
    total = kernel
    for key in {2: (), 3: (11,), 4: (11, 21)}[rank]:
        total *= _number(text, key, kernel)
    filters = rng.choice((1, 2, 4))
    if rng.random() < 0.3:
        text += f" 18={rng.randint(0, 1)}"
    if rng.random() < 0.3:
        text = " ".join(
            p for p in text.split() if int(p.split("=")[0]) not in (4, 14, 15, 16, 17, 24)
        )
        if rng.random() < 0.5:
            text += " 4=-233"
        wide = 25 if rank == 4 else 20
        text += f" {wide}={rng.randint(3, 4)}"
    if rng.random() < 0.4:
        text = f"0={shape[0]} {text} 5=1 6={shape[0] * total} 7={shape[0]}"
        return f"DeconvolutionDepthWise{end}", text, [shape], 1
    weights = filters * total * shape[0]
    return f"Deconvolution{end}", f"0={filters} {text} 5=1 6={weights}", [shape], 1


def pooling(rng: random.Random) -> Drawn:
    end = rng.choice(("", "", "1D", "3D"))
    rank = _RANKS[end]
    shape = (rng.choice((1, 3, 4, 8)), *(rng.randint(4, 11) for _ in range(rank - 1)))
    kind = rng.choice(("global", "adaptive", "window", "window", "window"))
    average = f"0={rng.randrange(2)}"
    if kind == "global":
        return f"Pooling{end}", f"{average} 4=1", [shape], 1
    if kind == "adaptive":
        keys = {2: (8,), 3: (8, 18), 4: (8, 18, 28)}[rank]
        text = " ".join(f"{k}={rng.choice((1, 2, 3, -233))}" for k in keys)
        return f"Pooling{end}", f"{average} 7=1 {text}", [shape], 1
    keys = {"w": (1, 2, 3, 14), "h": (11, 12, 13, 15), "d": (21, 22, 23, 16)}
    text = [average, f"1={rng.randint(2, 3)}", f"2={rng.randint(1, 3)}", f"5={rng.randrange(4)}"]
    for name in {2: "w", 3: "wh", 4: "whd"}[rank]:
        kernel, stride, before, after = keys[name]
        if name != "w" and rng.random() < 0.4:
            text += [f"{kernel}={rng.randint(2, 3)}", f"{stride}={rng.randint(1, 2)}"]
        text += [f"{before}={rng.randint(0, 1)}"] * (rng.random() < 0.5)
        text += [f"{after}={rng.randint(0, 1)}"] * (rng.random() < 0.3)
    return f"Pooling{end}", " ".join(text), [shape], 1


def unfold(rng: random.Random) -> Drawn:
    shape = (rng.randint(1, 4), rng.randint(5, 8), rng.randint(5, 8))
    return "Unfold", _window(rng, 3, _CONVOLUTION), [shape], 1


def interp(rng: random.Random) -> Drawn:
    shape = random_shape(rng, 1, 2, 3)
    kind = f"0={rng.choice((1, 2))}"
    way = rng.randrange(4)
    if way == 0:
        return "Interp", f"{kind} 3={rng.randint(1, 9)} 4={rng.randint(1, 9)}", [shape], 1
    if way == 1:
        scales = rng.choice((0.5, 2.0, 1.5, 2.7, 3.0)), rng.choice((0.5, 2.0, 1.3))
        return "Interp", f"{kind} 1={scales[0]} 2={scales[1]}", [tuple(s + 1 for s in shape)], 1
    if way == 2:
        return "Interp", f'{kind} 9="*(0w,2),*(0h,2)"', [random_shape(rng, 3)], 1
    return "Interp", f"{kind} 5=1", [random_shape(rng, 3), random_shape(rng, 3)], 1
