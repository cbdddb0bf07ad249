"""Count the nodes of an ONNX file that may broadcast, with nothing but the `onnx` package.

This is the independent count that an audit's findings are checked against, so it shares no code
with zerostride, and what it counts is written down here.

THE CONVENTION: one site per node that may broadcast, judged by its op type and by which inputs
are present, whatever the extents of its shapes.

1. An op type may broadcast when at least one version of its document lets an operand be smaller
   than what it is combined with: by a broadcasting rule, by a legacy `broadcast` attribute, along
   a named axis, or as "a scalar or a vector". Then every version counts: an opset-6 Add without
   `broadcast=1` is a site too (its rule is "identical shapes", and a target may differ on that).
2. One node is one site, however many operands it has: a Max of five inputs, a Clip with two
   bounds, a Where, a BatchNormalization and a QuantizeLinear are one each.
3. Inputs present. A variadic op or a Clip needs two inputs that are not empty; a Gemm its C; an
   Attention its mask; a LinearAttention its decay or beta; a ConvInteger the zero point of w; an
   Einsum two operands with an ellipsis (the only broadcast in its document).
4. MatMul broadcasts its batch axes, so it counts unless both ranks are known to be 2 or less
   (known: from initialisers, declared types, or `onnx.shape_inference`). That is a question
   about ranks, not extents: (1,4,4) times (4,4) is a site. MatMulInteger counts in the same way,
   and always when a zero point is given, for that may be one number or one per row or column.
5. A model-local function counts once per call, in its body (called twice: its sites twice; never
   called: not at all). The bodies of If, Loop, Scan and SequenceMap count once each. A standard
   op that the documents define as a function (LayerNormalization ...) stays one node.
6. A node whose domain is not ai.onnx, or whose op type ai.onnx never had, is listed apart as
   "custom": nothing is known about it. It is not a site.

Why the borderline ops are in or out is said at COUNTED and NOT_COUNTED below. Every op type of
ai.onnx, opset 1 to 28, is in exactly one of the two; a test compares them with `onnx.defs`.

    python examples/count_broadcasts.py model.onnx [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import onnx
import onnx.inliner
import onnx.shape_inference

LAST_OPSET_READ = 28  # the newest ai.onnx opset whose operators were gone through by hand


def _given(node: onnx.NodeProto, index: int) -> bool:
    """An optional input is absent when the list is too short or the name is empty."""
    return index < len(node.input) and node.input[index] != ""


def _rank(node: onnx.NodeProto, index: int, ranks: Mapping[str, int]) -> int | None:
    return ranks.get(node.input[index]) if _given(node, index) else None


Condition = Callable[[onnx.NodeProto, Mapping[str, int]], bool]


def always(node: onnx.NodeProto, ranks: Mapping[str, int]) -> bool:
    return True


def two_operands(node: onnx.NodeProto, ranks: Mapping[str, int]) -> bool:
    return sum(1 for name in node.input if name) >= 2


def has_input(*indices: int) -> Condition:
    def condition(node: onnx.NodeProto, ranks: Mapping[str, int]) -> bool:
        return any(_given(node, index) for index in indices)

    return condition


def batch_axes(node: onnx.NodeProto, ranks: Mapping[str, int]) -> bool:
    left, right = _rank(node, 0, ranks), _rank(node, 1, ranks)
    return left is None or right is None or max(left, right) > 2


def batch_axes_or_zero_point(node: onnx.NodeProto, ranks: Mapping[str, int]) -> bool:
    return _given(node, 2) or _given(node, 3) or batch_axes(node, ranks)


def ellipsis(node: onnx.NodeProto, ranks: Mapping[str, int]) -> bool:
    equation = next((a.s.decode() for a in node.attribute if a.name == "equation"), "")
    return sum("..." in term for term in equation.split("->")[0].split(",")) > 1


@dataclass(frozen=True)
class Group:
    """Op types that are counted under one condition, for one reason."""

    family: str
    ops: tuple[str, ...]
    condition: Condition
    when: str
    why: str


COUNTED: tuple[Group, ...] = (
    Group(
        "element-wise, two operands",
        (
            *("Add", "Sub", "Mul", "Div", "Pow", "Mod", "And", "Or", "Xor", "BitShift"),
            *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater", "Less"),
            *("GreaterOrEqual", "LessOrEqual", "StringConcat"),
        ),
        two_operands,
        "always (both inputs are required)",
        "the NumPy rule from opset 7 on; `broadcast` and `axis` before. Mod, BitShift, the "
        "bitwise ops, the OrEqual pair and StringConcat are newer and never had another rule",
    ),
    Group(
        "element-wise, variadic",
        ("Max", "Min", "Sum", "Mean"),
        two_operands,
        "two or more inputs",
        "the NumPy rule from opset 8 on, identical shapes before (point 1); one site for all",
    ),
    Group("selection", ("Where",), always, "always", "three operands under the NumPy rule"),
    Group(
        "explicit",
        ("Expand",),
        always,
        "always",
        "data against a target shape, both ways (the result may be larger than the target)",
    ),
    Group(
        "slope",
        ("PRelu",),
        two_operands,
        "always (the slope is required)",
        "one-way in its document since opset 7; one slope or one per channel before",
    ),
    Group(
        "bounds",
        ("Clip",),
        two_operands,
        "min or max is an input (opset 11 on)",
        "a scalar against a tensor; before opset 11 the bounds are attributes, no operands",
    ),
    Group(
        "product plus C",
        ("Gemm",),
        has_input(2),
        "C is given",
        "C goes one way to (M, N); with `broadcast=1` before opset 7",
    ),
    Group(
        "batch axes",
        ("MatMul",),
        batch_axes,
        "a rank above 2, or one that is not known",
        "the axes before the last two follow the NumPy rule, as numpy.matmul",
    ),
    Group(
        "batch axes, quantised",
        ("MatMulInteger",),
        batch_axes_or_zero_point,
        "as MatMul, or a zero point is given",
        "a zero point is one number, or one per row of A or per column of B",
    ),
    Group(
        "quantised product",
        ("QLinearMatMul", "QLinearConv"),
        always,
        "always (scales and zero points are required)",
        "per-axis quantisation inside: scale and zero point are a scalar or a vector",
    ),
    Group(
        "quantised product",
        ("ConvInteger",),
        has_input(3),
        "the zero point of w is given",
        "a scalar or one per output channel; the zero point of x can only be a scalar",
    ),
    Group(
        "quantisation",
        ("QuantizeLinear", "DequantizeLinear"),
        always,
        "always (the scale is required)",
        "scalar, vector at `axis`, or blocks; which of them it is depends on the shapes",
    ),
    Group(
        "normalisation",
        ("BatchNormalization", "InstanceNormalization", "GroupNormalization"),
        always,
        "always (scale and bias are required)",
        "a vector placed at the channel axis; its form is fixed, but engines and their layouts "
        "disagree on that axis, so it is judged",
    ),
    Group(
        "normalisation",
        ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"),
        always,
        "always (the scale is required)",
        "scale and bias go one way to the tensor, under the NumPy rule",
    ),
    Group(
        "attention",
        ("Attention",),
        has_input(3),
        "attn_mask is given",
        "the mask broadcasts to (batch, heads, queries, keys). The sharing of K and V among "
        "heads is grouping by an attribute, not a broadcast",
    ),
    Group(
        "attention",
        ("LinearAttention",),
        has_input(4, 5),
        "decay or beta is given",
        "beta may have one column for all heads, decay one number per head",
    ),
    Group(
        "contraction",
        ("Einsum",),
        ellipsis,
        "two or more terms of the equation have `...`",
        "the document broadcasts ellipses only; lettered axes have one extent each. (Runtimes also "
        "stretch a letter's 1, which no valid model asks for; an audit says unknown there)",
    ),
)

# Why an op type is not counted -> the op types. Read with point 1: *no* version broadcasts.
NOT_COUNTED: dict[str, str] = {
    "one tensor in; attributes or scalars configure it (CastLike's second input lends a type)": """
        Abs Acos Acosh Asin Asinh Atan Atanh Bernoulli BitCast BitwiseNot Cast CastLike Ceil Celu
        Cos Cosh CumProd CumSum DFT Det Dropout DynamicQuantizeLinear Elu Erf Exp Floor Gelu
        HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LRN LeakyRelu Log LogSoftmax
        LpNormalization MeanVarianceNormalization Mish Multinomial Neg Not Reciprocal Relu Round
        Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh
        ThresholdedRelu""",
    "reduces or pools": """
        ArgMax ArgMin AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool
        MaxRoiPool RoiAlign ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
        ReduceMin ReduceProd ReduceSum ReduceSumSquare NonMaxSuppression TopK Unique NonZero""",
    "moves or picks elements; further inputs are indices, sizes, pads, or tensors of exact "
    "extents (Tile's document says it does not broadcast: it repeats)": """
        CenterCropPad Col2Im Compress Concat DepthToSpace Flatten Gather GatherElements GatherND
        GridSample MaxUnpool Pad Reshape Resize ReverseSequence Scatter ScatterElements ScatterND
        Shape Size Slice SpaceToDepth Split Squeeze TensorScatter Tile Transpose Trilu Unsqueeze
        Upsample""",
    "makes a tensor from scalars, sizes or a seed": """
        AffineGrid BlackmanWindow Constant ConstantOfShape EyeLike HammingWindow HannWindow
        ImageDecoder MelWeightMatrix OneHot RandomNormal RandomNormalLike RandomUniform
        RandomUniformLike Range""",
    "every operand has one exact shape, also a convolution's bias: (M), always the channel axis; "
    "SwiGLU's document rules broadcasting out; RotaryEmbedding's caches follow the sequence; a "
    "loss looks its weights up by class": """
        CausalConvWithState Conv ConvTranspose DeformConv GRU LSTM RNN NegativeLogLikelihoodLoss
        RotaryEmbedding STFT SoftmaxCrossEntropyLoss SwiGLU""",
    "control flow: not a site itself, its bodies are walked": "If Loop Scan SequenceMap",
    "sequences, optionals and strings": """
        ConcatFromSequence Optional OptionalGetElement OptionalHasElement RegexFullMatch
        SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength
        SplitToSequence StringNormalizer StringSplit TfIdfVectorizer""",
}

CONDITIONS: dict[str, Condition] = {op: group.condition for group in COUNTED for op in group.ops}
SILENT: frozenset[str] = frozenset(op for ops in NOT_COUNTED.values() for op in ops.split())


@dataclass(frozen=True)
class Site:
    """One node: in which graph, its name, what it is, and its inputs ("" is an absent one)."""

    graph: str
    node: str
    op: str
    domain: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Count:
    """The sites of a model; `notes` has unknown parts with reasons."""

    sites: tuple[Site, ...]
    custom: tuple[Site, ...]
    notes: tuple[str, ...] = field(default=())

    def by_op(self) -> dict[str, int]:
        names = [site.op for site in self.sites]
        return {op: names.count(op) for op in sorted(set(names))}


def count(model: onnx.ModelProto) -> Count:
    """List the sites and the custom nodes of a model."""
    notes: list[str] = []
    flat = onnx.inliner.inline_local_functions(model) if model.functions else model
    flat = _with_shapes(flat, notes)
    # What the inliner leaves (a function written for another opset) is expanded by the walk.
    functions = {(f.domain, f.name, _overload(f)): f for f in flat.functions}
    nodes = list(_walk_graph(flat.graph, "", ChainMap[str, int](), functions))
    sites = tuple(site for site, broadcasts in nodes if broadcasts)
    custom = tuple(site for site, broadcasts in nodes if broadcasts is None)
    return Count(sites, custom, tuple(notes))


def count_file(path: str | Path) -> Count:
    """Count in a file; the tensors it keeps outside are not read."""
    return count(onnx.load(str(path), load_external_data=False))


def _with_shapes(model: onnx.ModelProto, notes: list[str]) -> onnx.ModelProto:
    """Ranks decide only about MatMul, so a model that defeats inference is still counted."""
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        notes.append(f"no shape inference, ranks are as declared: {error}")
        return model


Functions = Mapping[tuple[str, str, str], onnx.FunctionProto]
Found = tuple[Site, bool | None]  # True: a site; False: another standard op; None: custom


def _walk_graph(
    graph: onnx.GraphProto, where: str, outer: ChainMap[str, int], functions: Functions
) -> Iterator[Found]:
    ranks = outer.new_child(_ranks(graph))
    for index, node in enumerate(graph.node):
        yield from _walk_node(node, index, where, ranks, functions)


def _walk_node(
    node: onnx.NodeProto, index: int, where: str, ranks: ChainMap[str, int], functions: Functions
) -> Iterator[Found]:
    domain = "" if node.domain == "ai.onnx" else node.domain
    label = node.name or f"{node.op_type}#{index}"
    function = functions.get((node.domain, node.op_type, _overload(node)))
    if function is not None:
        for inner_index, inner in enumerate(function.node):
            # Names inside mean other tensors than outside, so no rank is known there.
            place = f"{where}/{label}"
            yield from _walk_node(inner, inner_index, place, ChainMap[str, int](), functions)
        return
    yield Site(where, label, node.op_type, domain, tuple(node.input)), _judge(node, domain, ranks)
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs) if _holds_graphs(attribute) else ():
            yield from _walk_graph(body, f"{where}/{label}.{attribute.name}", ranks, functions)


def _judge(node: onnx.NodeProto, domain: str, ranks: Mapping[str, int]) -> bool | None:
    condition = CONDITIONS.get(node.op_type)
    if domain or (condition is None and node.op_type not in SILENT):
        return None
    return condition is not None and condition(node, ranks)


def _holds_graphs(attribute: onnx.AttributeProto) -> bool:
    return attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def _overload(proto: onnx.NodeProto | onnx.FunctionProto) -> str:
    return getattr(proto, "overload", "")  # the field came with IR version 10


def _ranks(graph: onnx.GraphProto) -> dict[str, int]:
    ranks = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.HasField("shape"):
            ranks[value.name] = len(value.type.tensor_type.shape.dim)
    return ranks


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Count the nodes that may broadcast.")
    parser.add_argument("files", nargs="+", type=Path, metavar="model.onnx")
    parser.add_argument("--json", action="store_true", help="one JSON object, file -> count")
    options = parser.parse_args(arguments)
    counts = {str(path): count_file(path) for path in options.files}
    if options.json:
        print(json.dumps({path: asdict(found) for path, found in counts.items()}, indent=2))
        return 0
    for path, found in counts.items():
        print(f"{path}: {len(found.sites)} sites, {len(found.custom)} custom")
        for kind, listed in (("site", found.sites), ("custom", found.custom)):
            for site in listed:
                inputs = ", ".join(name or "-" for name in site.inputs)
                print(f"  {kind:<7}{site.op:<22}{site.graph}/{site.node}  ({inputs})")
        for note in found.notes:
            print(f"  note: {note}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
