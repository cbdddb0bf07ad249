"""The shapes of layers' results: one function for each kind of layer.

The formulas follow ncnn's document 'operators', and src/layer where the document lacks them.
tests/conformance/test_ncnn_format.py runs each of them in the real ncnn.
"""

from __future__ import annotations

from .....core.rules import NCNN_RANK
from .....engines.planning import engine_plan
from .....errors import BroadcastError
from .....sizes.dim import Dim, Number, dim_of_terms, plain
from .....sizes.functions import minimum
from ....ir.moves import at_rank, inserted, removed, with_kept
from ....onnx_ops.sizes.facts import NoSizes, Unclear, place, places, product
from .call import (
    ABSENT,
    AXES,
    LayerCall,
    Results,
    Sizes,
    called,
    checked,
    divided,
    equal,
    is_unit,
    named_sizes,
    number,
    quotient,
)
from .expression import evaluate


def same(call: LayerCall) -> Results:
    """Every result has the shape of the first operand."""
    return [call.first] * len(call.layer.tops)


def mvn(call: LayerCall) -> Results:
    """MVN: the data's shape with at least three axes."""
    return [at_rank(call.first, 3)]


def softmax(call: LayerCall) -> Results:
    """Softmax: the data's shape. For an inner axis parameter 1 must say that axes count from 0."""
    if call.whole(0) and not call.whole(1):
        raise NoSizes("its axis is of an older form, which ncnn refuses; convert the model again")
    return [call.first]


def opened(call: LayerCall) -> Results:
    """As many axes as the first operand, of unknown sizes."""
    return [called(name, len(call.first)) for name in call.layer.tops]


def each(call: LayerCall) -> Results:
    """Noop: every result is the operand at its position."""
    return [call.operand(k) for k in range(len(call.layer.tops))]


def declared(call: LayerCall) -> Results:
    """Input and MemoryData: the line's sizes; without outer sizes there are fewer axes."""
    sizes = call.params.sizes()
    if not sizes and call.layer.type == "Input":
        raise Unclear("the file does not give its sizes")
    return [checked(sizes or (1,))]


# Element-wise.


def binary(call: LayerCall) -> Results:
    """BinaryOp: one operand and a number, or two by ncnn's rule."""
    if call.whole(1):
        return [call.first]
    return [_combined(*call.shapes[:2], engine="ncnn")]


def _combined(*shapes: Sizes, engine: str) -> Sizes:
    """The shape of an engine's broadcast."""
    try:
        plan = engine_plan(*shapes, engine=engine)
    except BroadcastError as error:
        raise NoSizes(error.detail) from None
    return tuple(dim_of_terms(s.const, s.terms) if isinstance(s, Dim) else s for s in plan.shape)


# Axes.

#: Parameter value for no batch axis.
_NO_BATCH = 233


def reshape(call: LayerCall) -> Results:
    """Reshape: 0 keeps the size of that name, −1 is the remaining size."""
    text = call.params.text(6)
    if text:
        inner = evaluate(text, call.shapes)
    else:
        w, h, d, c = (call.whole(key, ABSENT) for key in (0, 1, 11, 2))
        inner = [w, h, c] if d == ABSENT else [w, h, d, c]
        inner = inner[: inner.index(ABSENT)] if ABSENT in inner[:3] else inner
    if call.params.has(12) or call.params.has(13):
        return [_with_batch(call, inner[::-1])]
    if not 1 <= len(inner) <= NCNN_RANK:
        raise Unclear("a result of no axes")
    own = named_sizes(call.first)
    named = zip(AXES[len(inner)], inner[::-1], strict=True)
    target = [own[name] if size == 0 else size for name, size in named]
    return [checked(_filled(target, call.first))]


def _with_batch(call: LayerCall, target: list[Number]) -> Sizes:
    """A Reshape with a batch axis before or after it; the batch is always one sample."""
    before, after = (call.whole(key, _NO_BATCH) for key in (12, 13))
    shape = list(call.first)
    if before != _NO_BATCH:
        shape.insert(place(before, len(shape) + 1), 1)
    batched = list(_filled(list(with_kept(target, shape)), tuple(shape)))
    if after != _NO_BATCH:
        batch = batched.pop(place(after, len(batched)))
        if equal(batch, 1) is not True:
            raise Unclear(f"a batch of {batch}")
    return checked(tuple(batched))


def _filled(target: list[Number], shape: Sizes) -> Sizes:
    """The target with its −1 replaced by the remaining size of `shape`."""
    total = product(shape)
    if target.count(-1) > 1:
        raise NoSizes("two sizes are to be what is left")
    if -1 in target:
        rest = product([size for size in target if size != -1])
        target[target.index(-1)] = quotient(total, rest)
    if equal(product(target), total) is False:
        raise NoSizes(f"{_words(shape)} has not as many elements as {_words(tuple(target))}")
    return tuple(target)


def _words(shape: Sizes) -> str:
    return f"({', '.join(map(str, shape))})"


def expand_dims(call: LayerCall) -> Results:
    """ExpandDims: adds axes of the result; beyond four axes it does nothing."""
    axes, rank = call.params.wholes(3), len(call.first)
    total = rank + len(axes)
    if total > NCNN_RANK:
        return [call.first]
    return [inserted(call.first, places(axes, total))]


def squeeze(call: LayerCall) -> Results:
    """Squeeze: by axes or by names; axes longer than 1 stay, and at least one axis stays."""
    shape, axes = call.first, call.params.wholes(3)
    if axes:
        places = {axis + len(shape) if axis < 0 else axis for axis in axes}
    else:
        flags = {"w": 0, "h": 1, "d": 11, "c": 2}
        places = {k for k, name in enumerate(AXES[len(shape)]) if call.whole(flags[name])}
    kept = tuple(s for k, s in enumerate(shape) if k not in places or not is_unit(s))
    return [kept or (1,)]


#: Permute's orders, innermost first.
_ORDERS = {
    2: "wh hw",
    3: "whc hwc wch cwh hcw chw",
    4: "whdc hwdc wdhc dwhc hdwc dhwc whcd hwcd wchd cwhd hcwd chwd "
    "wdch dwch wcdh cwdh dcwh cdwh hdcw dhcw hcdw chdw dchw cdhw",
}


def order(rank: int, kind: int) -> tuple[int, ...]:
    """Permute's order as in NumPy's transpose; NoSizes for an unknown kind.

    >>> order(3, 1), order(2, 1)
    ((0, 2, 1), (1, 0))
    """
    if rank == 1:
        return (0,)
    orders = _ORDERS[rank].split()
    if not 0 <= kind < len(orders):
        raise NoSizes(f"order {kind} of data of rank {rank}")
    names = orders[0][::-1]
    return tuple(names.index(name) for name in orders[kind][::-1])


def permute(call: LayerCall) -> Results:
    """Permute: by the number of an order."""
    axes = order(len(call.first), call.whole(0))
    return [tuple(call.first[axis] for axis in axes)]


def flatten(call: LayerCall) -> Results:
    """Flatten: one axis."""
    return [checked((product(call.first),))]


# Joining and cutting.


def concat(call: LayerCall) -> Results:
    """Concat: the sum along one axis; elsewhere a number, where one of the operands gives it."""
    axis = call.axis(0)
    sizes = list(call.first)
    for other in call.shapes[1:]:
        if len(other) != len(sizes):
            raise NoSizes(f"{_words(call.first)} and {_words(other)} are joined")
        for k, (a, b) in enumerate(zip(sizes, other, strict=True)):
            if k == axis:
                sizes[k] = plain(a + b)
            elif equal(a, b) is False:
                raise NoSizes(f"{_words(call.first)} and {_words(other)} are joined at axis {axis}")
            elif isinstance(b, int):
                sizes[k] = b
    return [checked(tuple(sizes))]


def cuts(call: LayerCall) -> list[Number]:
    """Slice: the sizes of its parts."""
    count = len(call.layer.tops)
    size = call.first[call.axis(1)]
    slices, indices = call.params.wholes(0), call.params.wholes(2)
    done: Number = 0
    parts: list[Number] = []
    for k in range(count):
        if indices:
            last = k == count - 1
            if not last and k >= len(indices):
                raise NoSizes(f"{len(indices)} places to cut {count} parts")
            end = size if last else indices[k] + (size if indices[k] < 0 else 0)
            part = plain(end - done)
        else:
            if k >= len(slices):
                raise NoSizes(f"{len(slices)} sizes for {count} parts")
            part = slices[k]
            if part == ABSENT:
                part = divided(plain(size - done), count - k)
        parts.append(part)
        done = plain(done + part)
    if isinstance(done, int) and isinstance(size, int) and done > size:
        raise NoSizes(f"parts of {done} in all are cut from {size}")
    return parts


def slice_(call: LayerCall) -> Results:
    """Slice: parts along one axis."""
    axis, first = call.axis(1), call.first
    return [checked((*first[:axis], part, *first[axis + 1 :])) for part in cuts(call)]


def crop(call: LayerCall) -> Results:
    """Crop: by offsets and sizes, by starts and ends, or to another blob's size."""
    return [checked(tuple(plain(end - start) for start, end in spans(call)))]


def spans(call: LayerCall) -> list[tuple[Number, Number]]:
    """Crop: where each axis starts and ends."""
    shape = call.first
    starts, ends, axes = _places(call)
    if starts and ends:
        axes = axes or list(range(len(shape)))
        if len(axes) > min(len(starts), len(ends)):
            raise NoSizes(f"{len(axes)} axes, {len(starts)} starts and {len(ends)} ends")
        pairs: list[tuple[Number, Number]] = [(0, size) for size in shape]
        for axis, start, end in zip(axes, starts, ends, strict=False):
            here = 0 if len(shape) == 1 else place(number(axis), len(shape))
            size = shape[here]
            first = 0 if start == ABSENT else _from_start(start, size, 0)
            last = size if end == ABSENT else _from_start(end, size, 1)
            pairs[here] = (first, plain(minimum(size, last)))
        return pairs
    keys = {"w": (0, 3, 6), "h": (1, 4, 7), "d": (13, 14, 15), "c": (2, 5, 8)}
    names = AXES[len(shape)]
    if len(call.layer.bottoms) > 1:
        like = call.operand(1)
        if call.whole(0) == ABSENT:
            raise Unclear("its places are data")
        other = named_sizes(like)
        if len(shape) > 2 and len(like) != len(shape):
            other["c"] = shape[0]  # channels stay if the ranks differ
        offsets = [call.whole(keys[name][0]) for name in names]
        return [(at, plain(at + other[name])) for at, name in zip(offsets, names, strict=True)]
    pairs = []
    for name, size in zip(names, shape, strict=True):
        offset, wanted, behind = (call.whole(key) for key in keys[name])
        last = plain(size - behind)
        pairs.append((offset, last if wanted == ABSENT else plain(minimum(offset + wanted, last))))
    return pairs


def _places(call: LayerCall) -> tuple[list[Number], ...]:
    """Starts, ends and axes: expressions, or lists of numbers."""
    texts = [call.params.text(key) for key in (19, 20, 21)]
    if texts[0] and texts[1]:
        return tuple(evaluate(text, call.shapes) if text else [] for text in texts)
    return tuple(list(call.params.wholes(key)) for key in (9, 10, 11))


def _from_start(at: Number, size: Number, least: int) -> Number:
    """A position counted from the start; numbers below `least` count from the end."""
    return plain(size + at) if isinstance(at, int) and at < least else at


def padding(call: LayerCall) -> Results:
    """Padding of rows and columns, and before and behind the channels or depth."""
    if len(call.shapes) > 1:
        raise Unclear("its widths are data")
    around = map(sum, margins(call, len(call.first)))
    return [checked(tuple(plain(s + more) for s, more in zip(call.first, around, strict=True)))]


def margins(call: LayerCall, rank: int) -> list[tuple[int, int]]:
    """Padding: the elements before and behind each axis."""
    pairs = [(call.whole(k), call.whole(k + 1)) for k in (7, 0, 2)]
    if min(map(min, pairs)) < 0:
        raise Unclear("widths below 0")
    return [(0, 0), *pairs][-rank:]


def tile(call: LayerCall) -> Results:
    """Tile: along one axis, or a list from the outermost, by the names of axes."""
    return [checked(tuple(plain(size * times) for size, times in repeated(call)))]


def repeated(call: LayerCall) -> list[tuple[Number, int]]:
    """Tile: each axis of the result, as the data's size and how often it is repeated.

    If the list has four numbers and the data three axes, the first number repeats c; unlike
    numpy.tile it adds no axis.
    """
    repeats = call.params.wholes(2)
    shape = call.first
    if not repeats:
        axis, times = call.whole(0), call.whole(1, 1)
        repeats = tuple(times if k == axis or len(shape) == 1 else 1 for k in range(len(shape)))
    if len(repeats) > NCNN_RANK:
        raise NoSizes(f"{len(repeats)} axes are repeated")
    names = {1: "w", 2: "hw", 3: "dhw" if len(shape) == 4 else "chw", 4: "cdhw"}[len(repeats)]
    by_name = dict(zip(names, repeats, strict=True))
    own = named_sizes(shape)
    return [(own[name], by_name.get(name, 1)) for name in AXES[max(len(shape), len(repeats))]]


# Products.


def inner_product(call: LayerCall) -> Results:
    """InnerProduct: of each row of a matrix that fits, else of all elements."""
    count, weights = call.positive(0), call.whole(2)
    if len(call.first) == 2:
        fits = equal(call.first[1], weights // count)
        if fits is None:
            raise Unclear(f"whether rows of {call.first[1]} fit the weights is not known")
        if fits:
            return [checked((call.first[0], count))]
    return [checked((count,))]


def gemm(call: LayerCall) -> Results:
    """Gemm: rows of A, columns of B; both may be constants."""
    operands = list(call.shapes)

    def part(constant: int, flipped: int, sizes: tuple[int, int]) -> Sizes:
        if call.whole(constant):
            matrix: Sizes = tuple(call.whole(key) for key in sizes)
            return matrix
        if not operands:
            raise NoSizes("an operand is missing")
        shape = operands.pop(0)
        if len(shape) not in (2, 3):
            raise Unclear("a result that depends on how blobs are packed")
        return (shape[-1], shape[0]) if call.whole(flipped) else (shape[0], shape[-1])

    a, b = part(4, 2, (7, 9)), part(5, 3, (9, 8))
    if equal(a[1], b[0]) is False:
        raise NoSizes(f"rows of {a[1]} times columns of {b[0]}")
    m, n = (b[1], a[0]) if call.whole(14) else (a[0], b[1])
    return [checked((m, 1, n) if call.whole(11) else (m, n))]


def matmul(call: LayerCall) -> Results:
    """MatMul: numpy.matmul's shapes."""
    a, b = call.first, call.operand(1)
    transposed = bool(call.whole(0)) and len(b) > 1
    inner = b[-1] if transposed or len(b) == 1 else b[-2]
    if equal(a[-1], inner) is False:
        raise NoSizes(f"rows of {a[-1]} times columns of {inner}")
    rows = a[-2:-1]
    columns = () if len(b) == 1 else (b[-2:-1] if transposed else b[-1:])
    batch = _combined(a[:-2], b[:-2], engine="numpy")
    return [checked((*batch, *rows, *columns) or (1,))]


def diag(call: LayerCall) -> Results:
    """Diag: a matrix with the vector on a diagonal, or a matrix's diagonal."""
    shape, beside = call.of_rank(1, 2), call.whole(0)
    if len(shape) == 1:
        return [checked((plain(shape[0] + abs(beside)),) * 2)]
    rows, columns = plain(shape[0] + min(beside, 0)), plain(shape[1] - max(beside, 0))
    return [checked((plain(minimum(rows, columns)),))]


def statistics(call: LayerCall) -> Results:
    """StatisticsPooling: the means of all channels, then their deviations."""
    channels = call.first[0] if len(call.first) > 2 else 1
    return [(plain(channels * (2 if call.whole(0) else 1)),)]


def grid_sample(call: LayerCall) -> Results:
    """GridSample: the data's channels, the grid's positions."""
    shape, grid = call.of_rank(3, 4), call.operand(1)
    if len(grid) != len(shape):
        raise Unclear(f"a grid of rank {len(grid)}")
    return [(shape[0], *(grid[1:] if call.whole(3) else grid[:-1]))]


def regions(call: LayerCall) -> Results:
    """ROIPooling, ROIAlign and PSROIPooling: the size in the parameters."""
    own = call.of_rank(3)[0]
    channels = call.whole(3) if call.layer.type.startswith("PS") else own
    return [checked((channels, call.whole(1), call.whole(0)))]


def embed(call: LayerCall) -> Results:
    """Embed: a row for each index."""
    return [checked((call.first[-1], call.positive(0)))]


def attention(call: LayerCall) -> Results:
    """MultiHeadAttention: the query's rows, the layer's width."""
    if call.whole(7) or len(call.layer.tops) > 1 or len(call.first) != 2:
        raise Unclear("a cache")
    return [checked((call.first[0], call.whole(2) // call.positive(0)))]


def sdpa(call: LayerCall) -> Results:
    """SDPA: heads and rows of the query, columns of the value."""
    if call.whole(7) or len(call.layer.tops) > 1 or len(call.first) != 3:
        raise Unclear("a cache")
    return [(*call.first[:2], call.operand(2)[-1])]


def recurrent(call: LayerCall) -> Results:
    """RNN, GRU, LSTM: one row per step; states have one row per direction."""
    steps = call.of_rank(2)[0]
    count = call.positive(0)
    directions = 2 if call.whole(2) == 2 else 1
    states: list[Sizes | None] = [(directions, count), (directions, call.whole(3, count))]
    return [checked((steps, count * directions)), *states][: len(call.layer.tops)]


# The rest.


def reduction(call: LayerCall) -> Results:
    """Reduction over all or some axes, which become 1 or are removed."""
    shape, places = call.first, reduced_axes(call, len(call.first))
    if call.params.wholes(3) and not call.whole(5):
        raise NoSizes("its axes are of an older form, which ncnn refuses; convert the model again")
    if call.whole(4):
        return [tuple(1 if k in places else size for k, size in enumerate(shape))]
    return [removed(shape, places) or (1,)]


def reduced_axes(call: LayerCall, rank: int) -> set[int]:
    """Reduction: the axes that it removes."""
    if call.whole(1, 1) or rank == 1:
        return set(range(rank))
    return {place(axis, rank) for axis in call.params.wholes(3)}


def glu(call: LayerCall) -> Results:
    """GLU: half of one axis."""
    axis = call.axis(0)
    half = divided(call.first[axis], 2)
    return [checked((*call.first[:axis], half, *call.first[axis + 1 :]))]
