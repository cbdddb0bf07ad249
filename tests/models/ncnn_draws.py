"""Random parameters of ncnn layers of every kind, and the layer's .param text."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
from ncnn_models import Shape, inputs, param, sizes
from ncnn_windows import (
    SIZES,
    Drawn,
    convolution,
    deconvolution,
    interp,
    pooling,
    random_shape,
    unfold,
)

KEEPING = (
    "AbsVal",
    "BNLL",
    "CELU",
    "Clip",
    "CumulativeSum",
    "DeepCopy",
    "Dropout",
    "ELU",
    "Erf",
    "Exp",
    "GELU",
    "HardSigmoid",
    "HardSwish",
    "Log",
    "Mish",
    "Noop",
    "Power",
    "ReLU",
    "SELU",
    "Shrink",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Swish",
    "TanH",
    "Threshold",
    "UnaryOp",
)


def _keeps(rng: random.Random) -> Drawn:
    kind = rng.choice(KEEPING)
    shape = random_shape(rng)
    more = {
        "Clip": "0=-1.0 1=1.0",
        "CumulativeSum": f"0={rng.randrange(len(shape))}",
        "Softmax": f"0={rng.randrange(-len(shape), len(shape))} 1=1",
        "UnaryOp": f"0={rng.randrange(20)}",
    }
    return kind, more.get(kind, ""), [shape], 1


def _image(rng: random.Random) -> Drawn:
    kind = rng.choice(("LRN", "MVN", "InstanceNorm", "GroupNorm", "BatchNorm", "Scale", "Bias"))
    ranks = {"LRN": (3,), "MVN": (3, 4), "InstanceNorm": (3, 4)}.get(kind, (1, 2, 3, 4))
    shape = random_shape(rng, *ranks)
    c = shape[0]
    more = {
        "LRN": "1=3",
        "MVN": "0=1 1=0",
        "InstanceNorm": f"0={c} 1=1e-5 2=1",
        "GroupNorm": f"0=1 1={c} 3=1",
        "BatchNorm": f"0={c} 1=1e-5",
        "Scale": f"0={c} 1={rng.randrange(2)}",
        "Bias": f"0={c}",
    }
    return kind, more[kind], [shape], 1


def _trailing(rng: random.Random) -> Drawn:
    shape = random_shape(rng, 2, 3)
    count = shape[-1] if len(shape) < 3 or rng.random() < 0.5 else shape[-1] * shape[-2]
    return rng.choice(("LayerNorm", "RMSNorm")), f"0={count} 1=1e-5 2=1", [shape], 1


def _split(rng: random.Random) -> Drawn:
    return "Split", "", [random_shape(rng)], rng.choice((1, 2, 3))


def _scalar(rng: random.Random) -> Drawn:
    return (
        "BinaryOp",
        f"0={rng.randrange(19)} 1=1 2={rng.uniform(0.5, 2):.3f}",
        [random_shape(rng)],
        1,
    )


def _reshape(rng: random.Random) -> Drawn:
    shape = random_shape(rng)
    count = int(np.prod(shape))
    rank = rng.choice((1, 2, 3, 4))
    target = []
    for _ in range(rank - 1):
        factors = [n for n in range(1, count + 1) if count % n == 0]
        target.append(rng.choice(factors[:6] + factors[-2:]))
        count //= target[-1]
    target.append(count)
    rng.shuffle(target)
    if rng.random() < 0.6:
        target[rng.randrange(rank)] = -1
    if rng.random() < 0.3:
        inner = ",".join(map(str, target[::-1]))
        return "Reshape", f'6="{inner}"', [shape], 1
    return "Reshape", sizes(tuple(target)), [shape], 1


def _keeping_reshape(rng: random.Random) -> Drawn:
    a, b, c = random_shape(rng, 3)
    texts = (
        "0=0 1=-1 2=1",
        "0=-1 1=0",
        "0=0 1=0 2=-1",
        '6="0w,*(0h,0c)"',
        '6="//(*(0w,0c),0c),-1"',
        '6="max(0w,1),0h,0c"',
        "0=0 1=0 11=1 2=-1",
    )
    return "Reshape", rng.choice(texts), [(a, b, c)], 1


def _expand_dims(rng: random.Random) -> Drawn:
    shape = random_shape(rng, 1, 2, 3)
    count = rng.randint(1, 4 - len(shape))
    total = len(shape) + count
    axes = sorted(rng.sample(range(total), count))
    if rng.random() < 0.3:
        axes = [axis - total for axis in axes]
    return "ExpandDims", f"-23303={count},{','.join(map(str, axes))}", [shape], 1


def _squeeze(rng: random.Random) -> Drawn:
    shape = tuple(rng.choice((1, 1, 3, 4)) for _ in range(rng.choice((1, 2, 3, 4))))
    if rng.random() < 0.4:
        flags = " ".join(f"{k}={rng.randrange(2)}" for k in (0, 1, 11, 2))
        return "Squeeze", flags, [shape], 1
    axes = rng.sample(range(len(shape)), rng.randint(1, len(shape)))
    return "Squeeze", f"-23303={len(axes)},{','.join(map(str, axes))}", [shape], 1


def _permute(rng: random.Random) -> Drawn:
    shape = random_shape(rng, 2, 3, 4)
    return "Permute", f"0={rng.randrange({2: 2, 3: 6, 4: 24}[len(shape)])}", [shape], 1


def _flatten(rng: random.Random) -> Drawn:
    return "Flatten", "", [random_shape(rng)], 1


def _concat(rng: random.Random) -> Drawn:
    shape = random_shape(rng)
    axis = rng.randrange(len(shape))
    more = [
        (*shape[:axis], rng.choice(SIZES), *shape[axis + 1 :]) for _ in range(rng.randint(1, 3))
    ]
    given = axis - len(shape) if rng.random() < 0.3 else axis
    return "Concat", f"0={given}", [shape, *more], 1


def _slice(rng: random.Random) -> Drawn:
    rank = rng.choice((1, 2, 3, 4))
    axis = rng.randrange(rank)
    parts = [rng.randint(1, 5) for _ in range(rng.randint(2, 4))]
    shape = tuple(sum(parts) if k == axis else rng.choice(SIZES) for k in range(rank))
    if rng.random() < 0.4:
        places = np.cumsum(parts)[:-1]
        text = f"-23302={len(places)},{','.join(map(str, places))} 1={axis}"
        return "Slice", text, [shape], len(parts)
    written = [p if rng.random() < 0.7 else -233 for p in parts]
    if -233 in written:
        written = [-233] * len(parts)
    text = f"-23300={len(parts)},{','.join(map(str, written))} 1={axis}"
    return "Slice", text, [shape], len(parts)


def _crop(rng: random.Random) -> Drawn:
    rank = rng.choice((1, 2, 3, 4))
    shape = tuple(rng.randint(4, 9) for _ in range(rank))
    if rng.random() < 0.5:
        axes = sorted(rng.sample(range(rank), rng.randint(1, rank)))
        starts = [rng.choice((0, 1, 2, -3)) for _ in axes]
        ends = [rng.choice((-1, shape[k], shape[k] + 5, -233)) for k in axes]
        lists = zip((9, 10, 11), (starts, ends, axes), strict=True)
        text = " ".join(
            f"-{23300 + key}={len(axes)},{','.join(map(str, row))}" for key, row in lists
        )
        return "Crop", text, [shape], 1
    keys = {1: "w", 2: "hw", 3: "chw", 4: "cdhw"}[rank]
    table = {"w": (0, 3, 6), "h": (1, 4, 7), "d": (13, 14, 15), "c": (2, 5, 8)}
    text = []
    for key in keys:
        offset, size, behind = table[key]
        text += [f"{offset}={rng.randint(0, 1)}", f"{size}={rng.choice((2, 3, -233))}"]
        text += [f"{behind}={rng.randint(0, 1)}"]
    return "Crop", " ".join(text), [shape], 1


def _crop_like(rng: random.Random) -> Drawn:
    rank = rng.choice((2, 3, 4))
    shape = tuple(rng.randint(3, 6) for _ in range(rank))
    like = tuple(rng.randint(1, size) for size in shape)
    return "Crop", "", [shape, like], 1


def _padding(rng: random.Random) -> Drawn:
    shape = random_shape(rng)
    text = " ".join(f"{key}={rng.randint(0, 3)}" for key in (0, 1, 2, 3))
    if len(shape) > 2 and rng.random() < 0.6:
        text += f" 7={rng.randint(0, 2)} 8={rng.randint(0, 2)}"
    return "Padding", text, [shape], 1


def _tile(rng: random.Random) -> Drawn:
    shape = tuple(rng.choice((1, 2, 3, 5)) for _ in range(rng.choice((1, 2, 3, 4))))
    if rng.random() < 0.3:
        return "Tile", f"0={rng.randrange(len(shape))} 1={rng.randint(1, 3)}", [shape], 1
    repeats = [rng.randint(1, 3) for _ in range(rng.randint(1, 4))]
    return "Tile", f"-23302={len(repeats)},{','.join(map(str, repeats))}", [shape], 1


def _inner_product(rng: random.Random) -> Drawn:
    shape = random_shape(rng)
    count = rng.choice((1, 3, 4, 8))
    matrix = len(shape) == 2 and rng.random() < 0.7
    wide = shape[-1] if matrix else int(np.prod(shape))
    return "InnerProduct", f"0={count} 1={rng.randrange(2)} 2={count * wide}", [shape], 1


def _gemm(rng: random.Random) -> Drawn:
    m, n, k = (rng.choice(SIZES) for _ in range(3))
    flipped = rng.randrange(2), rng.randrange(2)
    constant = rng.choice(("", "", "A", "B", "B"))
    text = f"2={flipped[0]} 3={flipped[1]}"
    blobs = []
    if constant == "A":
        text += f" 4=1 7={m} 9={k}"
    else:
        blobs.append((k, m) if flipped[0] else (m, k))
    if constant == "B":
        text += f" 5=1 8={n} 9={k}"
    else:
        blobs.append((n, k) if flipped[1] else (k, n))
    if rng.random() < 0.5:
        kind = rng.choice((0, 1, 2, 3, 4))
        text += f" 6=1 10={kind}"
        text = " ".join(p for p in text.split() if p.split("=")[0] not in ("7", "8", "9"))
        text += f" 7={m} 8={n} 9={k}"
    elif rng.random() < 0.4:
        blobs.append(rng.choice([(m, n), (1, n), (n,), (m, 1)]))
    if rng.random() < 0.2:
        text += " 14=1"
    if rng.random() < 0.2:
        text += " 11=1"
    return "Gemm", text, blobs, 1


def _matmul(rng: random.Random) -> Drawn:
    m, n, k = (rng.choice(SIZES) for _ in range(3))
    ranks = rng.choice([(1, 1), (2, 2), (1, 2), (2, 1), (1, 3), (3, 1), (3, 3), (2, 3), (3, 2),
                        (4, 4), (3, 4), (4, 3), (4, 2), (2, 4), (1, 4), (4, 1)])  # fmt: skip
    flipped = rng.randrange(2)
    batch = tuple(rng.choice((1, 2, 3)) for _ in range(2))
    a = (*batch, m, k)[4 - ranks[0] :]
    b = (*batch, *((n, k) if flipped else (k, n)))[4 - ranks[1] :]
    a = (k,) if ranks[0] == 1 else tuple(1 if x < len(a) - 2 and rng.random() < 0.3 else s
                                         for x, s in enumerate(a))  # fmt: skip
    b = (k,) if ranks[1] == 1 else b
    return "MatMul", f"0={flipped}", [a, b], 1


def _embed(rng: random.Random) -> Drawn:
    count, words = rng.randint(1, 9), rng.randint(1, 9)
    return "Embed", f"0={count} 1={words} 2=0 3={count * words}", [random_shape(rng, 1)], 1


def _attention(rng: random.Random) -> Drawn:
    heads, width, q = rng.choice((1, 2)), rng.choice((2, 4)), rng.choice((4, 6))
    embed = heads * width
    rows, columns = rng.randint(1, 6), rng.randint(1, 6)
    k, v = rng.choice((3, 4)), rng.choice((3, 5))
    text = f"0={embed} 1={heads} 2={embed * q} 3={k} 4={v}"
    return "MultiHeadAttention", text, [(rows, q), (columns, k), (columns, v)], 1


def _sdpa(rng: random.Random) -> Drawn:
    heads, width, out = rng.choice((1, 2, 4)), rng.choice((2, 4)), rng.choice((2, 4))
    rows, columns = rng.randint(1, 6), rng.randint(1, 6)
    shapes: list[Shape] = [(heads, rows, width), (heads, columns, width), (heads, columns, out)]
    if rng.random() < 0.4:
        return "SDPA", "5=1", [*shapes, (rows, columns)], 1
    return "SDPA", "", shapes, 1


def _recurrent(rng: random.Random) -> Drawn:
    kind = rng.choice(("RNN", "GRU", "LSTM"))
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    steps, wide = rng.randint(1, 5), rng.randint(1, 5)
    count, way = rng.randint(1, 4), rng.choice((0, 1, 2))
    hidden = rng.randint(1, 4) if kind == "LSTM" and rng.random() < 0.4 else count
    directions = 2 if way == 2 else 1
    text = f"0={count} 1={wide * hidden * gates * directions} 2={way}"
    text += f" 3={hidden}" if kind == "LSTM" else ""
    return kind, text, [(steps, wide)], 1


def _reduction(rng: random.Random) -> Drawn:
    shape = random_shape(rng)
    text = f"0={rng.randrange(11)} 4={rng.randrange(2)} 5=1"
    if rng.random() < 0.3:
        return "Reduction", text, [shape], 1
    axes = rng.sample(range(len(shape)), rng.randint(1, len(shape)))
    axes = [axis - len(shape) if rng.random() < 0.3 else axis for axis in axes]
    return "Reduction", f"{text} 1=0 -23303={len(axes)},{','.join(map(str, axes))}", [shape], 1


def _pixels(rng: random.Random) -> Drawn:
    s = rng.choice((1, 2, 3))
    kind = rng.choice(("PixelShuffle", "Reorg", "ShuffleChannel"))
    if kind == "ShuffleChannel":
        return kind, f"0={s}", [(s * rng.randint(1, 3), 3, 4)], 1
    c, h, w = (rng.randint(1, 3) for _ in range(3))
    shape = (c * s * s, h, w) if kind == "PixelShuffle" else (c, h * s, w * s)
    return kind, f"0={s} 1={rng.randrange(2)}", [shape], 1


def _glu(rng: random.Random) -> Drawn:
    shape = tuple(rng.choice((2, 4, 6)) for _ in range(rng.choice((1, 2, 3))))
    return "GLU", f"0={rng.randrange(len(shape))}", [shape], 1


def _batch_reshape(rng: random.Random) -> Drawn:
    """A Reshape by an expression, with or without a batch axis that is named."""
    c, h, w = (rng.randint(1, 5) for _ in range(3))
    forms = [
        ('6="*(0w,0h),0c"', (c, h, w)),
        ('6="-1,/(0w,1)"', (c, h, w)),
        ('6="*(0w,2),//(0h,2),0c"', (c, 2 * h, w)),
        ('6="round(0.6),max(0w,0h),-1"', (c, h, h)),
        ('12=0 13=0 6="0w,*(0h,0c),0n"', (c, h, w)),
        ('12=0 13=1 6="0w,-1,0n,0c"', (c, h, w)),
        ('13=0 6="-1,1"', (c, h, w)),
    ]
    text, shape = rng.choice(forms)
    return "Reshape", text, [shape], 1


def _crop_by_text(rng: random.Random) -> Drawn:
    shape = tuple(rng.randint(4, 9) for _ in range(3))
    starts = rng.choice(("1", "-(0h,3)", "//(0h,2)", "-2"))
    ends = rng.choice(("0h", "-(0h,1)", "-1", "+(0h,5)", "-233"))
    if (starts == "-2" and ends == "-1") or (starts.startswith("-(") and ends.startswith("-(")):
        ends = "0h"
    return "Crop", f'19="{starts}" 20="{ends}" 21="1"', [shape], 1


def _sampled(rng: random.Random) -> Drawn:
    """Layers that read places or regions of the data."""
    c, h, w = (rng.randint(3, 6) for _ in range(3))
    places = rng.randint(1, 4), rng.randint(1, 5)
    rows: list[Drawn] = [
        ("GridSample", "0=1", [(c, h, w), (*places, 2)], 1),
        ("GridSample", "0=2 3=1", [(c, h, w), (2, *places)], 1),
        ("GridSample", "0=1", [(c, 2, h, w), (3, *places, 3)], 1),
        ("ROIAlign", f"0={places[0]} 1={places[1]} 2=1.0", [(c, h, w), (4,)], 1),
        ("ROIPooling", f"0={places[0]} 1={places[1]} 2=1.0", [(c, h, w), (4,)], 1),
        ("Diag", f"0={rng.randint(-2, 2)}", [(h, w)], 1),
        ("Diag", f"0={rng.randint(-2, 2)}", [(w,)], 1),
        ("StatisticsPooling", f"0={rng.randrange(2)}", [random_shape(rng)], 1),
        ("Fold", "1=2 20=4 21=3", [(4 * c, 6)], 1),
        ("Flip", f"-23300=1,{rng.randrange(-3, 3)}", [(c, h, w)], 1),
        ("CopyTo", "", [(c, h, w), (c - 1, h, w - 2)], 1),
        ("MVN", "0=1 1=0", [random_shape(rng)], 1),
        ("Convolution", f"0=3 1=1 6={3 * c}", [(c,)], 1),
    ]
    return rng.choice(rows)


def _prelu(rng: random.Random) -> Drawn:
    shape = random_shape(rng)
    return "PReLU", f"0={rng.choice((1, shape[0]))}", [shape], 1


def _eltwise(rng: random.Random) -> Drawn:
    shape = random_shape(rng)
    count, kind = rng.choice((2, 3)), rng.randrange(3)
    weights = f" -23301={count},1.0,0.2,-0.5"[: None if count == 3 else -5]
    return "Eltwise", f"0={kind}{weights * rng.randrange(2)}", [shape] * count, 1


DRAWS: Sequence[Callable[[random.Random], Drawn]] = (
    _keeps,
    _keeps,
    _keeps,
    _image,
    _trailing,
    _split,
    _scalar,
    _reshape,
    _keeping_reshape,
    _expand_dims,
    _squeeze,
    _permute,
    _flatten,
    _concat,
    _slice,
    _crop,
    _crop_like,
    _padding,
    _tile,
    convolution,
    deconvolution,
    pooling,
    unfold,
    interp,
    _inner_product,
    _gemm,
    _matmul,
    _embed,
    _attention,
    _sdpa,
    _recurrent,
    _reduction,
    _pixels,
    _glu,
    _prelu,
    _eltwise,
    _batch_reshape,
    _crop_by_text,
    _sampled,
    _sampled,
)


def layer(drawn: Drawn) -> tuple[str, list[Shape]]:
    """The text of one layer between its inputs and a MemoryData, whose weights come last."""
    kind, text, shapes, results = drawn
    blobs = " ".join([f"in{k}" for k in range(len(shapes))] + [f"out{k}" for k in range(results)])
    line = f"{kind} op {len(shapes)} {results} {blobs} {text}".rstrip()
    return param(*inputs(*shapes), line, "MemoryData end 0 1 end 0=5"), shapes
