"""ncnn on the CPU, in single precision, one thread. It may read beyond its memory."""

from __future__ import annotations

import importlib
import signal
import subprocess
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.rules import NCNN_RANK
from ...models.formats.ncnn.embedding import index_blobs
from ...models.formats.ncnn.text import in_order, read_text
from ...ops import Op
from ..convert.converters import batches_of, pnnx_words
from ..task import Array, Form, Task
from . import Absent, Attrs, ModelFile, Refused, Runner, Shape, epsilon_of
from .onnx_node import fed, one_node

_MAGIC = "7767517"
_TAG = b"\0\0\0\0"  # the storage type of weights: float32
#: A layer's type and parameters, its weights, and how many operands are blobs.
Layer = tuple[str, bytes, int]


def _named(op: Op, attrs: Attrs) -> tuple[str, Attrs]:
    number = op.names["ncnn"][0]
    if op.operands != 2 or not isinstance(number, int):
        raise Absent(f"no layer runs {op.name} on blobs")
    return "BinaryOp", {"op_type": number}


class _Ncnn:
    """ncnn, loaded, with the nets that it keeps."""

    def __init__(self) -> None:
        self.ncnn: Any = importlib.import_module("ncnn")
        self.nets: dict[tuple[str, int], Any] = {}

    def _new_net(self) -> Any:
        net = self.ncnn.Net()
        net.opt.num_threads = 1
        net.opt.use_vulkan_compute = False
        net.opt.use_fp16_storage = net.opt.use_fp16_packed = net.opt.use_fp16_arithmetic = False
        return net

    def _from_file(self, load: Callable[[str], int], content: bytes, what: str) -> None:
        """Loads from a file; releases before 2024 load nothing from memory."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "content")
            file.write_bytes(content)
            if load(str(file)) != 0:
                raise Refused(f"{what} were not taken")

    def _net_of(self, layer: Layer) -> Any:
        """A net of one layer; one without weights is kept for the next call."""
        text, weights, count = layer
        if (text, count) in self.nets:
            return self.nets[text, count]
        kind, _, parameters = text.partition(" ")
        names = [f"x{k}" for k in range(count)]
        lines = [f"Input {name} 0 1 {name}" for name in names]
        lines.append(f"{kind} op {count} 1 {' '.join(names)} y {parameters}")
        net = self._new_net()
        head = f"{_MAGIC}\n{len(lines)} {count + 1}\n"
        content = head + "\n".join(lines) + "\n"
        self._from_file(net.load_param, content.encode(), "the layer's parameters")
        self._from_file(net.load_model, weights, "the weights")
        if not weights:
            self.nets[text, count] = net
        return net

    def _mat(self, array: Array, *, whole: bool) -> Any:
        if array.ndim > NCNN_RANK:
            raise Refused(f"a Mat has at most {NCNN_RANK} axes, not {array.ndim}")
        # A Mat has no rank 0, and does not keep the array alive whose memory it reads. Clone,
        # because layers in place crash on memory of NumPy's. The clone of an empty blob loses its
        # axes, so that layers divide by them.
        kind = "i4" if whole else "f4"
        numbers = np.ascontiguousarray(array.reshape(array.shape or (1,)), kind)
        blob = self.ncnn.Mat(numbers.view("f4"))
        return blob.clone() if array.size else blob

    def _extract(
        self,
        net: Any,
        feeds: Mapping[str, Array],
        wanted: Sequence[str],
        whole: Collection[str] = (),
    ) -> list[Array]:
        """The wanted blobs; inputs of the names `whole` hold 32-bit whole numbers."""
        extractor = net.create_extractor()
        blobs = {name: self._mat(array, whole=name in whole) for name, array in feeds.items()}
        for name, blob in blobs.items():
            if extractor.input(name, blob) != 0:
                raise Refused(f"there is no input {name!r}")
        results = []
        for name in wanted:
            status, blob = extractor.extract(name)
            if status != 0:
                raise Refused(f"extract returned status {status}")
            results.append(np.array(blob))
        return results

    def _one_layer(self, layer: Layer, arrays: Sequence[Array]) -> Array:
        feeds = {f"x{k}": array for k, array in enumerate(arrays[: layer[2]])}
        return self._extract(self._net_of(layer), feeds, ["y"])[0]

    def call(self, name: str, attrs: Attrs, arrays: Sequence[Array], target: Shape) -> Array:
        if name == "BinaryOp":
            return self._one_layer((f"BinaryOp 0={attrs['op_type']}", b"", 2), arrays)
        if name != "PReLU":
            raise Absent(f"no layer {name} is written here")
        data, slope = arrays
        if slope.ndim > 1:
            raise Refused("the slopes are a flat list")
        if not (data.size and slope.size):
            raise Refused("no empty blobs or weights")
        return self._one_layer(_layer(Task(Form.COMPOUND, "PRelu"), arrays), arrays)

    def compound(self, task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        return [self._one_layer(_layer(task, arrays), arrays)]

    def open_file(self, path: str, _: Sequence[str]) -> ModelFile:
        net = self._new_net()
        net.opt.lightmode = False  # keeps the blobs between inputs and outputs
        if net.load_param(path) != 0:
            raise Refused("the net was not taken")
        weights = Path(path).with_suffix(".bin")
        if not weights.is_file():
            self._from_file(net.load_model, b"", "the weights")
        elif net.load_model(str(weights)) != 0:
            raise Refused("the weights were not taken")
        whole = index_blobs(read_text(Path(path)).layers)
        inputs = in_order(net.input_names())
        # An input that no layer reads counts as an output; a net without layers has no others.
        every = in_order(net.output_names())
        outputs = [name for name in every if name not in inputs] or every

        def compute(feeds: Mapping[int, Array], wanted: Sequence[int | str]) -> Sequence[Array]:
            names = [outputs[name] if isinstance(name, int) else name for name in wanted]
            named = {inputs[k]: array for k, array in feeds.items()}
            return self._extract(net, named, names, whole)

        return ModelFile([[name] for name in inputs], [[name] for name in outputs], compute)

    def node(self, task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        """Runs an ONNX node on ncnn, as pnnx converts it."""
        try:
            program = importlib.import_module("pnnx").EXEC_PATH
        except ImportError:
            raise Absent("pnnx is not installed") from None
        feeds = fed(task, arrays)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "m.onnx").write_bytes(one_node(task, arrays))
            words = [program, "m.onnx", *pnnx_words("m", feeds)]
            done = subprocess.run(words, cwd=folder, capture_output=True, check=False)
            if done.returncode < 0:
                raise Refused(f"pnnx was ended by {signal.Signals(-done.returncode).name}")
            net = self._new_net()
            if net.load_param(f"{folder}/m.param") != 0 or net.load_model(f"{folder}/m.bin") != 0:
                raise Refused("the engine does not load what pnnx wrote")
            told = batches_of(Path(folder, "m.param"), len(feeds))
            batch = [None] * len(feeds) if told is None else told.inputs
        blobs = {
            f"in{k}": array if axis is None or array.shape[axis] != 1 else array.squeeze(axis)
            for k, (array, axis) in enumerate(zip(feeds.values(), batch, strict=True))
        }
        return self._extract(net, blobs, ["out0"])


def load() -> Runner:
    """Imports ncnn."""
    engine = _Ncnn()
    forms = {Form.COMPOUND: engine.compound, Form.NODE: engine.node}
    return Runner(
        str(engine.ncnn.__version__), engine.call, (), _named, "", forms, engine.open_file
    )


def _flat(*arrays: Array) -> bytes:
    return b"".join(np.ascontiguousarray(array, "<f4").tobytes() for array in arrays)


def _gemm(task: Task, x: Sequence[Array]) -> Layer:
    if not task.constant[2]:
        return "Gemm 2=0 3=0", b"", 3
    (k, n), c = x[1].shape, x[2]
    m = x[0].shape[-2] if x[0].ndim > 1 else 1
    kinds = {(n,): 4, (1, n): 4, (m, 1): 2, (m, n): 3}
    kind = 0 if c.size == 1 else kinds.get(c.shape)
    if kind is None:
        raise Absent(f"no kind of C is {c.shape}")
    rows = m if kind in (2, 3) else 0
    text = f"Gemm 2=0 3=1 5=1 6=1 7={rows} 8={n} 9={k} 10={kind}"
    return text, _TAG + _flat(x[1].T) + _TAG + _flat(c), 1


def _layer(task: Task, x: Sequence[Array]) -> Layer:
    """The layer of an ONNX op on these operands."""
    op, epsilon = task.op, epsilon_of(task.attributes)
    if op == "MatMul":
        return "MatMul", b"", 2
    if op == "Clip":
        low, *above = (float(bound.ravel()[0]) for bound in x[1:3])
        high = "".join(f" 1={number}" for number in above)  # default: the largest float
        return f"Clip 0={low}{high}", b"", 1
    if op == "Gemm":
        return _gemm(task, x)
    if op == "BatchNormalization":
        scale, bias, mean, variance = x[1:]
        return f"BatchNorm 0={scale.size} 1={epsilon}", _flat(scale, mean, variance, bias), 1
    if op == "GroupNormalization":
        groups = task.attributes["num_groups"]
        return f"GroupNorm 0={groups} 1={x[1].size} 2={epsilon} 3=1", _flat(*x[1:]), 1
    if op in _NORMS:
        return f"{_NORMS[op]} 0={x[1].size} 1={epsilon} 2=1", _flat(*x[1:]), 1
    if op == "PRelu":
        return f"PReLU 0={x[1].size}", _flat(x[1]), 1
    raise Absent(f"no layer runs {op} by itself")


#: Normalisations with parameters size, epsilon, affine and weights scale, bias.
_NORMS: Mapping[str, str] = {
    "InstanceNormalization": "InstanceNorm",
    "LayerNormalization": "LayerNorm",
    "RMSNormalization": "RMSNorm",
}
