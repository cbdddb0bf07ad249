"""Small ONNX networks for pnnx: attention, squeeze-excite, heads, reductions, moved batches.

The batch is 1, or open under a name that says so, says nothing, or says something else.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

BATCHES = (1, 1, "batch", "N", "unk__7", "frames")


@dataclass
class Network:
    """A network that is drawn: its nodes, and its last tensor with its shape for one sample.

    Attributes:
        batch: the first size of the input, as the file says it.
        shape: the last tensor's sizes for one sample.
        last: the last tensor.
    """

    draw: random.Random
    batch: int | str
    shape: tuple[int, ...]
    last: str = "x"
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.given = self.shape
        self.numbers = np.random.default_rng(self.draw.randrange(1 << 30))

    def constant(self, shape: Sequence[int]) -> str:
        """A constant of floats from 0.5 to 1.5."""
        return self.put(self.numbers.uniform(0.5, 1.5, tuple(shape)).astype(np.float32))

    def put(self, array: Any) -> str:
        """A constant with these numbers."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def axes(self, *numbers: int) -> str:
        """A constant of whole numbers."""
        return self.put(np.array(numbers, np.int64))

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """A node; its result's name, or names."""
        k = len(self.nodes)
        names = [f"t{k}_{position}" for position in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{op}_{k}", **attributes))
        return names[0] if outputs == 1 else names

    def then(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A node of the last tensor, whose shape stays."""
        self.last = self.add(op, self.last, *inputs, **attributes)
        return self.last

    def reshape(self, shape: Sequence[int]) -> None:
        """The last tensor in another shape; the batch is copied, kept, or worked out."""
        self.shape = tuple(shape)
        target = list(shape)
        target[0] = self.draw.choice([0, -1, 1])
        self.then("Reshape", self.axes(*target))

    def transpose(self, *order: int) -> None:
        """The last tensor transposed."""
        self.then("Transpose", perm=list(order))
        self.shape = tuple(self.shape[axis] for axis in order)

    def model(self) -> ModelProto:
        """The network as a file."""
        sizes = [self.batch, *self.given[1:]]
        graph = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
            [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)],
            self.constants,
        )
        opset = [helper.make_opsetid("", 13)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)

    def feeds(self) -> dict[str, Any]:
        """Numbers for the input, of one sample."""
        return {"x": self.numbers.uniform(0.5, 1.5, self.given).astype(np.float32)}


def open_sizes(batch: int | str, axes: Sequence[int]) -> ModelProto:
    """An image of open sizes through a convolution, less its average over some axes."""
    net = Network(random.Random(0), batch, (1, 3, 4, 4))
    _convolved(net)
    mean = net.add("ReduceMean", net.last, axes=axes, keepdims=0)
    net.then("Sub", net.add("Unsqueeze", mean, net.axes(axes[-1])) if axes[0] > 1 else mean)
    model = net.model()
    for axis, name in ((2, "H"), (3, "W")):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    return model


def fifth_axis(axis: int) -> Network:
    """An image through a convolution, with one axis more, times a number."""
    net = Network(random.Random(0), 1, (1, 6, 4, 4))
    _convolved(net)
    net.then("Unsqueeze", net.axes(axis))
    net.then("Mul", net.constant((1,)))
    return net


def generated(count: int, seed: int) -> list[Network]:
    """Networks of two to five blocks."""
    draw = random.Random(seed)
    return [_network(draw) for _ in range(count)]


def _network(draw: random.Random) -> Network:
    image = draw.random() < 0.6
    width = draw.choice([4, 6])
    shape = (1, width, draw.choice([3, 4, 6]), 4) if image else (1, draw.choice([3, 4, 6]), width)
    net = Network(draw, draw.choice(BATCHES), shape)
    if image and draw.random() < 0.8:
        _convolved(net)
    for _ in range(draw.randint(2, 5)):
        blocks = [block for block, ranks in _BLOCKS.items() if len(net.shape) in ranks]
        draw.choice(blocks)(net)
    draw.choice([_across, _classified, _with_itself, *[_residual] * 3])(net)
    return net


def _convolved(net: Network) -> None:
    channels = net.shape[1]
    net.then("Conv", net.constant((channels, channels, *(1,) * (len(net.shape) - 2))))


def _op(net: Network) -> str:
    return net.draw.choice(["Add", "Sub", "Mul", "Max"])


def _constant_operand(net: Network) -> None:
    """A constant of any rank, with ones anywhere."""
    rank = net.draw.randint(0, len(net.shape))
    sizes = [net.draw.choice([1, size]) for size in net.shape[len(net.shape) - rank :]]
    net.then(_op(net), net.constant(sizes))


def _across(net: Network) -> None:
    """A constant that broadcasts along the batch, which no engine of samples can do."""
    if net.batch == 1:
        net.then("Add", net.constant((2, *(1,) * (len(net.shape) - 1))))
        net.then("Sigmoid")


def _classified(net: Network) -> None:
    """A head of logits."""
    count = int(np.prod(net.shape))
    net.then("Flatten")
    net.shape = (1, count)
    net.then("Gemm", net.constant((count, 4)), net.constant((4,)))
    net.then("Add", net.constant(net.draw.choice([(4,), (1, 4), (1,), ()])))


def _with_itself(net: Network) -> None:
    """The batch of one operand under another axis of the other: its average of lower rank."""
    if net.batch == 1:
        net.then("Mul", net.add("ReduceMean", net.last, axes=[1], keepdims=0))


def _residual(net: Network) -> None:
    kept = net.last
    net.then(net.draw.choice(["Sigmoid", "Relu", "Tanh"]))
    net.then(_op(net), kept)


def _excited(net: Network) -> None:
    """Squeeze and excite, by a pool or by a reduction, with or without its axes."""
    kept, shape = net.last, net.shape
    if net.draw.random() < 0.4:
        net.then("GlobalAveragePool")
    else:
        keep = net.draw.choice([0, 1])
        net.then("ReduceMean", axes=[2, 3], keepdims=keep)
        if not keep:
            net.then("Unsqueeze", net.axes(2, 3))
    net.shape = (*shape[:2], 1, 1)
    if net.draw.random() < 0.5:
        _convolved(net)
    net.then("Sigmoid")
    net.last, net.shape = net.add("Mul", kept, net.last), shape


def _normalised(net: Network) -> None:
    """A layer normalisation written out."""
    mean = net.add("ReduceMean", net.last, axes=[-1], keepdims=1)
    centred = net.add("Sub", net.last, mean)
    square = net.add("Mul", centred, centred)
    variance = net.add("ReduceMean", square, axes=[-1], keepdims=1)
    lifted = net.add("Add", variance, net.put(np.float32(1e-3)))
    net.last = net.add("Div", centred, net.add("Sqrt", lifted))
    net.then("Mul", net.constant(net.shape[-1:]))
    net.then("Add", net.constant(net.shape[-1:]))


def _as_sequence(net: Network) -> None:
    _, channels, height, width = net.shape
    net.reshape((1, channels, height * width))
    net.transpose(0, 2, 1)


def _linear(net: Network) -> None:
    net.then("MatMul", net.constant((net.shape[-1], net.shape[-1])))
    net.then("Add", net.constant(net.shape[-1:]))


def _attended(net: Network) -> None:
    """Attention of two heads, whose batch and heads may be one axis for a while."""
    _, time, width = net.shape
    kept, merged = net.last, net.batch == 1 and net.draw.random() < 0.4
    heads = []
    for _ in range(3):
        net.last, net.shape = kept, (1, time, width)
        net.then("MatMul", net.constant((width, width)))
        if net.draw.random() < 0.5:
            net.then("Add", net.constant((width,)))
        net.reshape((1, time, 2, width // 2))
        net.transpose(0, 2, 1, 3)
        if merged:
            net.shape = (2, time, width // 2)
            net.then("Reshape", net.axes(*net.shape))
        heads.append(net.last)
    query, key, value = heads
    order = [0, 2, 1] if merged else [0, 1, 3, 2]
    scores = net.add("MatMul", query, net.add("Transpose", key, perm=order))
    scores = net.add("Mul", scores, net.put(np.float32(0.5)))
    if net.draw.random() < 0.5:
        mask = [(time, time), (1, time), (1, 1, time, time)][net.draw.randrange(2 + (not merged))]
        scores = net.add("Add", scores, net.constant(mask))
    net.last = net.add("MatMul", net.add("Softmax", scores, axis=-1), value)
    net.shape = (2, time, width // 2) if merged else (1, 2, time, width // 2)
    if merged:
        net.shape = (1, *net.shape)
        net.then("Reshape", net.axes(*net.shape))
    net.transpose(0, 2, 1, 3)
    net.reshape((1, time, width))
    net.then("Add", kept)


def _split_and_joined(net: Network) -> None:
    """Halves along an inner axis, one changed, and joined."""
    axis = net.draw.choice([k for k, size in enumerate(net.shape) if k and size % 2 == 0] or [0])
    if axis == 0:
        return
    halves = net.axes(*(net.shape[axis] // 2,) * 2)  # pnnx takes a Split without sizes for none
    left, right = net.add("Split", net.last, halves, axis=axis, outputs=2)
    left = net.add(_op(net), left, net.add("Sigmoid", right))
    net.last = net.add("Concat", left, right, axis=axis)


def _moved(net: Network) -> None:
    """The batch moved inwards, an op there, and moved back."""
    order = [1, 0, *range(2, len(net.shape))]
    net.transpose(*order)
    _constant_operand(net)
    net.transpose(*order)


def _squeezed(net: Network) -> None:
    """Without the batch for a while, or with one more axis before it."""
    if net.batch != 1 or len(net.shape) == 4:
        return
    kept, shape = net.last, net.shape
    net.then("Squeeze", net.axes(0))
    net.shape = shape[1:]
    _constant_operand(net)
    net.then("Unsqueeze", net.axes(0))
    net.shape = shape
    if net.draw.random() < 0.5:
        net.then("Add", kept)


def _reduced(net: Network) -> None:
    """A reduction of an inner axis, laid over what it came from."""
    axis = net.draw.randrange(1, len(net.shape))
    keep = net.draw.choice([0, 1])
    least = net.add("ReduceMax", net.last, axes=[axis], keepdims=keep)
    if not keep:
        least = net.add("Unsqueeze", least, net.axes(axis))
    net.last = net.add(_op(net), net.last, least)


def _chosen(net: Network) -> None:
    """One row of an inner axis, or some, laid over all."""
    axis = net.draw.randrange(1, len(net.shape))
    if net.draw.random() < 0.5:
        row = net.add("Gather", net.last, net.put(np.array(0)), axis=axis)
        row = net.add("Unsqueeze", row, net.axes(axis))
    else:
        row = net.add("Slice", net.last, net.axes(0), net.axes(1), net.axes(axis), net.axes(1))
    net.last = net.add(_op(net), net.last, row)


_BLOCKS: dict[Callable[[Network], None], tuple[int, ...]] = {
    _constant_operand: (3, 4),
    _residual: (3, 4),
    _excited: (4,),
    _normalised: (3, 4),
    _as_sequence: (4,),
    _linear: (3,),
    _attended: (3,),
    _split_and_joined: (3, 4),
    _moved: (3,),
    _squeezed: (3,),
    _reduced: (3, 4),
    _chosen: (3, 4),
}
