"""By which rule an engine broadcasts inside its compound ops, as measured.

A compound op (a product with a bias, a normalisation, a clamp) has no row in the engine table; its
operands are broadcast inside it, and engines differ there too: PyTorch wants the scale of a layer
normalisation in exactly the shape that is normalised, ncnn counts its numbers and asks no shape,
MNN's converter takes a column of N numbers for a row. `CARRIERS` has one row for what an engine
does; tests/conformance/test_compounds.py runs every row that says it was run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..alignment import Alignment, Attribute, Attributes, Rule
from ..dims import Asker, Shape
from ..errors import Misfit, Reason
from ..plan import Plan
from ..rules import RULES, right_aligned
from .graph import Node
from .sites import AT_AXIS, ONE_NUMBER, ONE_WAY

_BOTH_WAYS = RULES["numpy"]
#: ncnn reads as many numbers as it needs from wherever the weights are, and checks nothing.
_UNCHECKED = frozenset(
    {Reason.NOT_IDENTICAL, Reason.EXTENT_MISMATCH, Reason.ONE_WAY, Reason.RANK, Reason.AXIS_RANGE}
)


@dataclass(frozen=True, slots=True)
class Carrier:
    """What an engine does inside a compound op.

    Attributes:
        rule: the rule by which it places the operands.
        source: where that is known from, with the function or layer that stands for the op.
        run: whether it was run (True) or only read.
        weights: True: this row holds where every operand but the first is a constant; False: where
            one is not; None: either way.
        needs: says of a node why the engine does not take it, whatever is broadcast, or None.
    """

    rule: Rule
    source: str
    run: bool = True
    weights: bool | None = None
    needs: Callable[[Node], str | None] | None = None


def _matrices(node: Node) -> str | None:
    ranks = [len(value.shape or ()) for value in node.inputs if value is not None]
    return f"an operand has rank {min(ranks)}; it takes matrices" if min(ranks) < 2 else None


def _spatial(node: Node) -> str | None:
    rank = len(node.inputs[0].shape or ()) if node.inputs and node.inputs[0] else 0
    return f"data of rank {rank} have no axis to normalise along" if rank < 3 else None


# How compounds place their operands.


def _vectors(asker: Asker, shapes: tuple[Shape, ...], axis: int) -> Alignment:
    rank = len(shapes[0])
    if not 0 <= axis < rank:
        raise Misfit(Reason.AXIS_RANGE, f"axis {axis} of data of rank {rank}")
    for k, shape in enumerate(shapes[1:], start=1):
        if len(shape) != 1:
            raise Misfit(Reason.RANK, f"operand {k} has rank {len(shape)}; it must be a vector")
    places = (tuple(range(rank)), *[(axis,)] * (len(shapes) - 1))
    return Alignment(rank, places, ((),) * len(shapes))


def _align_outermost(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """ncnn: vectors along the outermost axis of a sample."""
    return _vectors(asker, shapes, 0)


def _align_images(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """ncnn's InstanceNorm: the same, and a sample of one or two axes is one channel to it."""
    if len(shapes[0]) < 3:
        raise Misfit(Reason.RANK, f"a sample of rank {len(shapes[0])} is taken for one channel")
    return _vectors(asker, shapes, 0)


def _align_exact(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Every operand after the first has exactly the shape that is normalised."""
    rank, kept = len(shapes[0]), -attributes["axis"]
    for k, shape in enumerate(shapes[1:], start=1):
        if len(shape) != kept:
            raise Misfit(
                Reason.RANK, f"operand {k} has rank {len(shape)}; {kept} axes are normalised"
            )
    if kept > rank:
        raise Misfit(Reason.AXIS_RANGE, f"{kept} axes of data of rank {rank}")
    places = (tuple(range(rank)), *[tuple(range(rank - kept, rank))] * (len(shapes) - 1))
    return Alignment(rank, places, ((),) * len(shapes))


def _align_flat(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Paddle: a vector of as many numbers as are normalised, so of one axis to be the same."""
    if len(shapes[0]) < 2:
        raise Misfit(Reason.RANK, "data of one axis; one must be left outside")
    if attributes["axis"] != -1:
        raise Misfit(Reason.RANK, "more than one axis is normalised; scale and bias must be flat")
    return _align_exact(asker, shapes, attributes)


def _align_counted(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """ncnn: as exact, but it never normalises a whole sample of two axes or more."""
    if 1 < len(shapes[0]) == -attributes["axis"]:
        raise Misfit(Reason.RANK, "all axes of the sample are normalised; the layer leaves one out")
    return _align_exact(asker, shapes, attributes)


def _align_same_rank(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """OpenVINO's ONNX frontend: one way, and no fewer axes than are normalised."""
    rank, kept = len(shapes[0]), -attributes["axis"]
    for k, shape in enumerate(shapes[1:], start=1):
        outer = shape[: max(0, len(shape) - kept)]
        if len(shape) < kept or not all(map(asker.is_one, outer)):
            raise Misfit(Reason.RANK, f"operand {k} is {shape}; {kept} axes are normalised")
    every = range(rank)
    _, places = right_aligned(shapes)
    return Alignment(rank, places, ((), *[every] * (len(shapes) - 1)))


def _align_addend(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """Paddle's addmm: one way, and a number is not taken."""
    if len(shapes[1]) not in (1, 2):
        raise Misfit(Reason.RANK, f"the addend has rank {len(shapes[1])}; it must be 1 or 2")
    rank, places = right_aligned(shapes)
    return Alignment(rank, places, ((), range(rank)))


def _align_bias(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """MNN's converter: a constant of as many numbers as there are columns is a row, always."""
    product, addend = shapes
    rank, places = right_aligned(shapes)
    column = len(addend) == 2 and asker.is_one(addend[1]) and not asker.is_one(addend[0])
    if column and len(product) == 2 and asker.equal(addend[0], product[1]):
        return Alignment(rank, (tuple(range(rank)), (1, None)), (range(rank), range(rank)))
    return Alignment(rank, places, (range(rank), range(rank)))


def _align_blob(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """ncnn's Gemm with C at run time: a vector goes to the columns if it fits, else to the rows."""
    product, addend = shapes
    rank = len(product)
    every = tuple(range(rank))
    if len(addend) > rank:
        raise Misfit(Reason.RANK, f"the addend has rank {len(addend)}, the product {rank}")
    start = rank - len(addend)
    vector = len(addend) == 1 < rank and not asker.is_one(addend[0])
    if vector and not asker.equal(addend[0], product[1]) and asker.equal(addend[0], product[0]):
        start = 0
    return Alignment(rank, (every, tuple(range(start, start + len(addend)))), ((), every))


def _align_batches(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """MNN: NumPy's rule, unless both batches have as many matrices: then it pairs them in order."""
    rank, places = right_aligned(shapes)
    sizes = [
        dict(zip(axes, shape, strict=True)) for axes, shape in zip(places, shapes, strict=True)
    ]
    a, b = (
        [
            size
            for axis, size in sizes[k].items()
            if not asker.is_one(size) and asker.is_one(sizes[1 - k].get(axis, 1))
        ]
        for k in (0, 1)
    )
    # Extents that only one of them has; one each, and their equality is a question of two sizes.
    if len(a) == len(b) == 1 and asker.equal(a[0], b[0]):
        raise Misfit(Reason.WRONG_RESULT, f"both batches have {a[0]} matrices to a row: paired")
    return Alignment(rank, places, (range(rank), range(rank)))


def _align_list(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """ncnn's PReLU: the slopes are a list of numbers, along the outermost axis of a sample."""
    rank = len(shapes[0])
    long = [axis for axis, size in enumerate(shapes[1]) if not asker.is_one(size)]
    if len(long) > 1:
        raise Misfit(Reason.RANK, f"slopes of shape {shapes[1]} are read as one list")
    places = tuple(0 if axis in long else None for axis in range(len(shapes[1])))
    return Alignment(max(rank, 1), (tuple(range(rank)), places), ((), ()))


def _align_slope(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """MNN's PRelu: slopes that fill their own axis 1 alone, or have one axis, go to axis 1."""
    data, slope = shapes
    every = tuple(range(len(data)))
    long = [axis for axis, size in enumerate(slope) if not asker.is_one(size)]
    if not long:
        return Alignment(len(data), (every, (None,) * len(slope)), ((), every))
    if long == [min(1, len(slope) - 1)]:
        if len(data) < 2:
            raise Misfit(Reason.CRASH, "slopes for data of one axis end the process now and then")
        return Alignment(
            len(data), (every, tuple(1 if k in long else None for k in range(len(slope)))), ((), ())
        )
    rank, places = right_aligned(shapes)
    return Alignment(rank, places, (range(rank), range(rank)))


def _align_number(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """ncnn's Clip: its bounds are parameters; a Mat has one axis at least."""
    placed = ONE_NUMBER.align(asker, shapes, {})
    return Alignment(max(1, placed.rank), placed.mapping, placed.stretch)


# What finished plans an engine does not carry.


def _uneven(plan: Plan, asker: Asker) -> None:
    if not all(plan.stretched):
        return
    counts = [math.prod(shape) for shape in plan.aligned]
    if all(_stretches(plan, k, asker) for k in range(len(plan.aligned))) and asker.equal(*counts):
        raise Misfit(Reason.WRONG_RESULT, f"both batches have {counts[0]} matrices: paired")


def _stretches(plan: Plan, k: int, asker: Asker) -> bool:
    """Whether operand `k` stretches along any axis."""
    return any(
        not asker.equal(plan.aligned[k][axis], plan.shape[axis]) for axis in plan.stretched[k]
    )


def _no_zeros(plan: Plan, asker: Asker) -> None:
    for size in plan.shape:
        asker.forbid(size, 0, lambda: Misfit(Reason.EXTENT_MISMATCH, "an extent of 0 is refused"))


def _no_stretched_zeros(plan: Plan, asker: Asker) -> None:
    for aligned, axes in zip(plan.aligned, plan.stretched, strict=True):
        for axis in axes:
            if asker.equal(plan.shape[axis], 0) and asker.is_one(aligned[axis]):
                raise Misfit(Reason.EXTENT_MISMATCH, "1 does not stretch to 0")


_AXIS = MappingProxyType({"axis": Attribute(required=True)})


def _rule(name: str, like: Rule, summary: str, **changes: object) -> Rule:
    """A rule of an engine's own, named for what is particular about it."""
    rule: Rule = replace(like, name=name, summary=summary, **changes)  # type: ignore[arg-type]
    return rule


_OUTERMOST = _rule(
    "outermost",
    AT_AXIS,
    "Vectors along the outermost axis of a sample; sizes are not checked.",
    align=_align_outermost,
    attributes=MappingProxyType({}),
    silent=_UNCHECKED,
    max_rank=4,
)
_IMAGES = replace(_OUTERMOST, align=_align_images)
_EXACT = _rule(
    "exact",
    AT_AXIS,
    "Scale and bias have exactly the shape that is normalised.",
    align=_align_exact,
    attributes=_AXIS,
)
_COUNTED = _rule(
    "counted",
    _EXACT,
    "Scale and bias are counted, not checked; an axis must be left outside.",
    align=_align_counted,
    silent=_UNCHECKED,
    max_rank=4,
)
_FLAT = _rule("flat", _EXACT, "Scale and bias are vectors.", align=_align_flat)
_SAME_RANK = _rule(
    "one_way_same_rank",
    ONE_WAY,
    "One way to the data, with no fewer axes than are normalised.",
    align=_align_same_rank,
    attributes=_AXIS,
)
_BIAS = _rule(
    "bias",
    _BOTH_WAYS,
    "A constant of as many numbers as there are columns is a row, else NumPy's rule.",
    align=_align_bias,
    operands=(2, 2),
)
_BLOB = _rule(
    "gemm_c",
    ONE_WAY,
    "A vector goes to the columns if it fits there, else to the rows.",
    align=_align_blob,
    operands=(2, 2),
    silent=_UNCHECKED,
)
_LIST = _rule(
    "list",
    ONE_WAY,
    "The slopes are a list of numbers, along the outermost axis of a sample.",
    align=_align_list,
    operands=(2, 2),
    silent=_UNCHECKED,
    max_rank=4,
)
_SLOPE = _rule(
    "slope",
    _BOTH_WAYS,
    "A list of slopes goes to axis 1, anything else is laid out as NumPy would.",
    align=_align_slope,
    operands=(2, 2),
    silent=_UNCHECKED,
)
_PRODUCT = replace(_BOTH_WAYS, operands=(2, 2))
_MNN_PRODUCT = _rule(
    "batches",
    _PRODUCT,
    "NumPy's rule, unless both batches have as many matrices: those are paired.",
    align=_align_batches,
    check=_uneven,
    max_rank=7,  # tensors end at 9 axes, two of them the matrix
    silent=frozenset({Reason.RANK_LIMIT, Reason.WRONG_RESULT}),
)
_NCNN_PRODUCT = replace(
    _PRODUCT, max_rank=2, silent=frozenset({Reason.EXTENT_MISMATCH}), check=_no_zeros
)

# The table.

_OWN = "tests/conformance/test_compounds.py, run: "


def _row(rule: Rule, said: str, **more: object) -> Carrier:
    return Carrier(rule, _OWN + said, **more)  # type: ignore[arg-type]


_WRITTEN_OUT = "written out as a product and an addition"
_ORT, _OPENVINO, _MNN = "ONNX Runtime's kernel", "OpenVINO's ONNX frontend", "MNN's ONNX converter"

_Rows = Mapping[str, tuple[Carrier, ...]]


def _each(engines: str, *rows: Carrier) -> _Rows:
    return dict.fromkeys(engines.split(), rows)


_NORMALISED: _Rows = {
    **_each("onnxruntime", _row(AT_AXIS, _ORT)),
    **_each("openvino", _row(AT_AXIS, _OPENVINO)),
}

#: PRelu is a row of the engine table, as the engines' own functions take it. What a converter makes
#: of an ONNX slope, which has as many axes as it likes, is here.
_SLOPES: _Rows = {
    "ncnn": (_row(_LIST, "PReLU", weights=True),),
    "mnn": (_row(_SLOPE, _MNN, weights=True),),
}

#: ONNX op, then engine. What is missing has not been looked at, and is `unknown`.
CARRIERS: Mapping[str, _Rows] = MappingProxyType(
    {
        "PRelu": _SLOPES,
        "Gemm": {
            **_each("numpy tensorflow jax", _row(_BOTH_WAYS, _WRITTEN_OUT)),
            **_each("torch", _row(ONE_WAY, "torch.addmm")),
            **_each("onnxruntime", _row(ONE_WAY, _ORT)),
            **_each("openvino", _row(_BOTH_WAYS, f"{_OPENVINO}: MatMul and Add")),
            **_each(
                "paddle",
                _row(_rule("addmm", ONE_WAY, "One way.", align=_align_addend), "paddle.addmm"),
            ),
            **_each(
                "ncnn",
                _row(ONE_WAY, "Gemm, constant_broadcast_type_C from C's shape", weights=True),
                _row(_BLOB, "Gemm, C as a blob", weights=False),
            ),
            **_each(
                "mnn",
                _row(_BIAS, f"{_MNN}, C constant", weights=True),
                _row(_BOTH_WAYS, f"{_MNN}, C at run time", weights=False),
            ),
        },
        "MatMul": {
            **_each("numpy", _row(_PRODUCT, "numpy.matmul")),
            **_each("torch", _row(_PRODUCT, "torch.matmul")),
            **_each("jax", _row(_PRODUCT, "jax.numpy.matmul")),
            **_each("tensorflow", _row(_PRODUCT, "tf.linalg.matmul", needs=_matrices)),
            **_each("paddle", _row(_PRODUCT, "paddle.matmul")),
            **_each("onnxruntime", _row(replace(_PRODUCT, check=_no_stretched_zeros), _ORT)),
            **_each("openvino", _row(_PRODUCT, f"{_OPENVINO}: MatMul-1")),
            **_each("ncnn", _row(_NCNN_PRODUCT, "MatMul, samples of up to 4 axes")),
            **_each(
                "mnn",
                _row(_MNN_PRODUCT, f"{_MNN}: MatMul"),
            ),
        },
        "Clip": {
            **_each("numpy", _row(_BOTH_WAYS, "numpy.clip")),
            **_each("torch", _row(_BOTH_WAYS, "torch.clamp")),
            **_each("jax", _row(_BOTH_WAYS, "jax.numpy.clip")),
            **_each("tensorflow", _row(ONE_WAY, "tf.clip_by_value")),
            **_each("paddle", _row(ONE_NUMBER, "paddle.clip")),
            **_each("onnxruntime", _row(ONE_NUMBER, _ORT)),
            **_each(
                "openvino",
                _row(ONE_NUMBER, f"{_OPENVINO}: Clamp", weights=True),
                _row(_BOTH_WAYS, f"{_OPENVINO}: Minimum and Maximum", weights=False),
            ),
            **_each(
                "ncnn",
                _row(
                    replace(ONE_NUMBER, align=_align_number),
                    "Clip, bounds as parameters",
                    weights=True,
                ),
            ),
            **_each(
                "mnn",
                _row(ONE_NUMBER, f"{_MNN}, bounds constant", weights=True),
                _row(_BOTH_WAYS, f"{_MNN}, bounds at run time", weights=False),
            ),
        },
        "BatchNormalization": {
            **_NORMALISED,
            **_each("torch", _row(AT_AXIS, "torch.nn.functional.batch_norm")),
            **_each(
                "paddle",
                _row(replace(AT_AXIS, max_rank=5), "paddle.nn.functional.batch_norm, NCHW"),
            ),
            **_each(
                "tensorflow",
                _row(_BOTH_WAYS, "tf.nn.batch_normalization: vectors go to the last axis"),
            ),
            **_each("ncnn", _row(_OUTERMOST, "BatchNorm", weights=True)),
            **_each("mnn", _row(AT_AXIS, _MNN, weights=True)),
        },
        "InstanceNormalization": {
            **_each("onnxruntime", _row(AT_AXIS, _ORT, needs=_spatial)),
            **_each("openvino", _row(AT_AXIS, _OPENVINO, needs=_spatial)),
            **_each("torch", _row(AT_AXIS, "torch.nn.functional.instance_norm", needs=_spatial)),
            **_each(
                "paddle", _row(replace(AT_AXIS, max_rank=5), "paddle.nn.functional.instance_norm")
            ),
            **_each("ncnn", _row(_IMAGES, "InstanceNorm", weights=True)),
            **_each("mnn", _row(AT_AXIS, _MNN, weights=True)),
        },
        "GroupNormalization": {
            **_NORMALISED,
            **_each("torch", _row(AT_AXIS, "torch.nn.functional.group_norm")),
            **_each("paddle", _row(AT_AXIS, "paddle.nn.functional.group_norm")),
            **_each("ncnn", _row(_OUTERMOST, "GroupNorm", weights=True)),
        },
        "LayerNormalization": {
            **_each("onnxruntime", _row(ONE_WAY, _ORT)),
            **_each("openvino", _row(_SAME_RANK, _OPENVINO)),
            **_each("torch", _row(_EXACT, "torch.nn.functional.layer_norm")),
            **_each("paddle", _row(_FLAT, "paddle.nn.functional.layer_norm")),
            **_each("ncnn", _row(_COUNTED, "LayerNorm", weights=True)),
            **_each(
                "mnn",
                _row(replace(_EXACT, silent=_UNCHECKED), f"{_MNN}: LayerNorm", weights=True),
            ),
        },
        "RMSNormalization": {
            **_each("onnxruntime", _row(ONE_WAY, _ORT)),
            **_each("openvino", _row(ONE_WAY, _OPENVINO)),
            **_each("torch", _row(_EXACT, "torch.nn.functional.rms_norm")),
            **_each("ncnn", _row(_COUNTED, "RMSNorm", weights=True)),
        },
    }
)

_QUANTISED = ("QuantizeLinear", "DequantizeLinear")
#: Quantisation has two rules: one number, or a vector along an axis.
PER_AXIS: Mapping[str, Callable[[Rule], Carrier]] = MappingProxyType(
    {
        "onnxruntime": lambda rule: _row(rule, _ORT),
        "openvino": lambda rule: _row(rule, _OPENVINO),
    }
)

#: Ops that an engine certainly does not have, with what was looked through.
ABSENT: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        **{(op, "numpy"): "NumPy has no quantisation" for op in _QUANTISED},
        **{(op, "jax"): "jax.numpy, jax.lax and jax.nn have no quantisation" for op in _QUANTISED},
        ("GroupNormalization", "mnn"): "MNN's converter refuses it",
        ("RMSNormalization", "mnn"): "MNN's converter refuses it",
    }
)

__all__ = ["ABSENT", "CARRIERS", "PER_AXIS", "Carrier"]
