"""Other tools' inferred shapes of open sizes, in one form.

Each tool is asked about one op, in its own words: OpenVINO with a node of partial shapes, onnx and
ONNX Runtime with a model of one node. An answer is a tuple of claims, one for each axis of the
result; None where the tool does not even know the rank; or a :class:`NotInferred`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from zerostride.engines.planning import plan, plan_to
from zerostride.errors import BroadcastError
from zerostride.sizes.dim import Dim, dim

from .expressions import Values, expression

#: What this package is called among the tools.
ZEROSTRIDE = "zerostride"
Sizes: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: an op with its rule, and the shapes of its operands.

    Attributes:
        op: "add", or "broadcast" (of `first` to the target shape `second`).
        rule: "none", "numpy", "pdpd"; of broadcast "numpy", "bidirectional", "explicit".
        first: sizes as text: "2", "N", "?", "1..8".
        second: likewise.
        axis: of pdpd.
        axes: the axes_mapping of "explicit".
    """

    op: str
    rule: str
    first: Sizes
    second: Sizes
    axis: int | None = None
    axes: tuple[int, ...] | None = None

    def __str__(self) -> str:
        attributes = "" if self.axis is None else f" axis={self.axis}"
        attributes += "" if self.axes is None else f" axes_mapping={list(self.axes)}"
        second = f"{'to ' if self.op == 'broadcast' else '+ '}{written(self.second)}"
        return f"{self.op} {self.rule}{attributes}: {written(self.first)} {second}"

    @property
    def shapes(self) -> tuple[Sizes, Sizes]:
        """Both shapes."""
        return self.first, self.second

    @property
    def names(self) -> frozenset[str]:
        """The names in the shapes."""
        return frozenset(size for shape in self.shapes for size in shape if size.isidentifier())


def written(sizes: Sequence[object]) -> str:
    """A shape as a person writes it."""
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


@dataclass(frozen=True, slots=True)
class Claim:
    """A tool's claim about one size.

    Attributes:
        low: its least value.
        high: its greatest value, or None.
        value: the number that it is for numbers of the sizes; None where that is not said.
        text: how the tool writes it.
        named: whether `value` is said in names alone.
    """

    low: int = 0
    high: int | None = None
    value: Callable[[Values], int] | None = None
    text: str = "?"
    named: bool = True

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class NotInferred:
    """The tool says that there is no result."""

    message: str


Answer: TypeAlias = tuple[Claim, ...] | NotInferred | None
UNKNOWN = Claim()


def number(size: int) -> Claim:
    """The claim that it is this number."""
    return Claim(size, size, lambda values: size, str(size))


def name(text: str) -> Claim:
    """The claim that it is the size of this name."""
    return Claim(value=lambda values: values[text], text=text)


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that infers shapes.

    Attributes:
        name: what the table calls it.
        ask: its answer to a question.
        bounds: whether it can be told "1..8"; otherwise it is told "?", and judged by that.
        ops: the pairs of op and rule that it has.
        refuses: whether refusing is one of its answers.
    """

    name: str
    ask: Callable[[Asked], Answer]
    bounds: bool = False
    ops: frozenset[tuple[str, str]] = frozenset({("add", "numpy"), ("broadcast", "bidirectional")})
    refuses: bool = True

    def has(self, asked: Asked) -> bool:
        """Whether the question can be put to it."""
        return (asked.op, asked.rule) in self.ops


#: Every op and rule that is asked about.
OPS = (
    ("add", "numpy"),
    ("add", "none"),
    ("add", "pdpd"),
    ("broadcast", "numpy"),
    ("broadcast", "bidirectional"),
    ("broadcast", "explicit"),
)


def bounds_of(size: str) -> tuple[int, int | None]:
    """The least and greatest value of a size that is written as a number, name or bounds."""
    if size.isdigit():
        return int(size), int(size)
    low, _, high = size.partition("..")
    return (int(low) if low.isdigit() else 0), (int(high) if high else None)


def key(label: str, axis: int, size: str) -> str:
    """The name of an open size, or "x[0]" without a name."""
    return size if size.isidentifier() else f"{label}[{axis}]"


def unknowns(asked: Asked) -> dict[str, tuple[int, int | None]]:
    """The sizes that are not known, with their bounds."""
    return {
        key(label, axis, size): bounds_of(size)
        for label, shape in zip("xy", asked.shapes, strict=True)
        for axis, size in enumerate(shape)
        if not size.isdigit()
    }


def tools() -> list[Tool]:
    """Every tool that is installed, this package first."""
    chosen = [Tool(ZEROSTRIDE, ask_zerostride, bounds=True, ops=frozenset(OPS))]
    for make in (_openvino, _onnx, _symbolic, _session):
        with contextlib.suppress(ImportError):
            chosen += make()
    return chosen


# This package.


def ask_zerostride(asked: Asked) -> Answer:
    """The shape of the plan."""
    try:
        if asked.op == "broadcast":
            result = plan_to(*asked.shapes, mode=asked.rule, axes_mapping=asked.axes)
        else:
            engine = "openvino" if asked.rule == "pdpd" else None
            result = plan(*asked.shapes, rule=asked.rule, axis=asked.axis, engine=engine)
    except BroadcastError as error:
        return NotInferred(error.detail)
    return tuple(_of_dim(dim(size)) for size in result.shape)


def _of_dim(size: Dim) -> Claim:
    low, high = size.interval

    def value(values: Values) -> int:
        return size.evaluate({symbol: values[_operand(symbol.name)] for symbol in size.symbols})

    named = all(symbol.named for symbol in size.symbols)
    return Claim(low or 0, high, value, str(size), named)


def _operand(name: str) -> str:
    return name.replace("data[", "x[").replace("target[", "y[")


# OpenVINO.


def _openvino() -> list[Tool]:
    importlib.import_module("openvino")
    ops = frozenset(OPS)
    named = functools.partial(ask_openvino, every=False)
    return [
        Tool("openvino", ask_openvino, bounds=True, ops=ops),
        Tool("openvino names", named, bounds=True, ops=ops),
    ]


def ask_openvino(asked: Asked, every: bool = True) -> Answer:
    """The output's partial shape of one node; names are OpenVINO's symbols.

    Its own pass over a model gives every size a symbol that is not known; without `every` only
    names have one, as where a caller sets them on some inputs.
    """
    ov: Any = importlib.import_module("openvino")
    symbols = {label: ov.Symbol() for label in unknowns(asked) if every or label in asked.names}
    try:
        shape = openvino_node(asked, symbols).output(0).partial_shape
    except RuntimeError as error:
        return NotInferred(_last_line(error))
    if shape.rank.is_dynamic:
        return None
    return tuple(openvino_claim(size, symbols) for size in shape)


def openvino_node(asked: Asked, symbols: Mapping[str, Any]) -> Any:
    """The node that is asked about, its inputs parameters."""
    ov: Any = importlib.import_module("openvino")
    ops: Any = importlib.import_module("openvino.opset13")

    def parameter(label: str, sizes: Sizes) -> Any:
        dimensions = []
        for axis, size in enumerate(sizes):
            low, high = bounds_of(size)
            dimension = ov.Dimension(low, -1 if high is None else high)
            symbol = symbols.get(key(label, axis, size))
            if symbol is not None:
                dimension.set_symbol(symbol)
            dimensions.append(dimension)
        return ops.parameter(ov.PartialShape(dimensions), np.float32)

    first, second = parameter("x", asked.first), parameter("y", asked.second)
    if asked.op == "broadcast":
        target = ops.shape_of(second)
        if all(size.isdigit() for size in asked.second):
            target = ops.constant(np.array(asked.second, np.int64))
        axes = None if asked.axes is None else ops.constant(np.array(asked.axes, np.int64))
        return ops.broadcast(first, target, axes, broadcast_spec=asked.rule.upper())
    if asked.rule != "pdpd":
        return ops.add(first, second, auto_broadcast=asked.rule)
    # Told its rule after it is made, as it can be told the axis; checked with its inputs then.
    node = ops.add(ops.parameter([], np.float32), ops.parameter([], np.float32))
    node.set_attribute("auto_broadcast", "pdpd")
    if asked.axis is not None:
        node.set_attribute("auto_broadcast.auto_broadcast_axis", asked.axis)
    node.input(0).replace_source_output(first.output(0))
    node.input(1).replace_source_output(second.output(0))
    node.validate_and_infer_types()
    return node


def openvino_claim(size: Any, symbols: Mapping[str, Any]) -> Claim:
    """The claim of one dimension."""
    low = int(size.get_min_length())
    high = int(size.get_max_length())
    if low == high:
        return number(low)
    symbol_name = None
    if size.has_symbol():
        symbol = size.get_symbol()
        symbol_name = next((name for name, given in symbols.items() if given == symbol), None)
    ends = (low, None if high < 0 or high >= 2**62 else high)
    text = f"{ends[0]}..{'' if ends[1] is None else ends[1]}" if ends != (0, None) else "?"
    if symbol_name is None:
        return Claim(*ends, text=text)
    label = symbol_name if ends == (0, None) else f"{symbol_name} in {text}"
    return Claim(*ends, lambda values: values[symbol_name], label, named=symbol_name.isidentifier())


# onnx and ONNX Runtime.


def _onnx() -> list[Tool]:
    importlib.import_module("onnx.shape_inference")
    return [
        Tool("onnx strict", functools.partial(ask_onnx, strict=True)),
        Tool("onnx", functools.partial(ask_onnx, strict=False), refuses=False),
    ]


def _symbolic() -> list[Tool]:
    importlib.import_module("onnxruntime.tools.symbolic_shape_infer")
    return [
        Tool("ort symbolic", functools.partial(ask_symbolic, auto_merge=False)),
        Tool("ort auto_merge", functools.partial(ask_symbolic, auto_merge=True)),
    ]


def _session() -> list[Tool]:
    importlib.import_module("onnxruntime")
    return [Tool("ort session", ask_session)]


@functools.lru_cache(1)
def onnx_model(asked: Asked) -> Any:
    """A model of one node, or of Shape and Expand; sizes without a name have none there either."""
    onnx: Any = importlib.import_module("onnx")
    helper = onnx.helper

    def info(label: str, sizes: Sizes) -> Any:
        shape = [int(s) if s.isdigit() else (s if s in asked.names else None) for s in sizes]
        return helper.make_tensor_value_info(label, onnx.TensorProto.FLOAT, shape)

    inputs, constants = [info("x", asked.first)], []
    if asked.op == "add":
        inputs.append(info("y", asked.second))
        nodes = [helper.make_node("Add", ["x", "y"], ["z"])]
    elif all(size.isdigit() for size in asked.second):
        target = np.array(asked.second, np.int64)
        constants.append(onnx.numpy_helper.from_array(target, "target"))
        nodes = [helper.make_node("Expand", ["x", "target"], ["z"])]
    else:
        inputs.append(info("y", asked.second))
        nodes = [
            helper.make_node("Shape", ["y"], ["target"]),
            helper.make_node("Expand", ["x", "target"], ["z"]),
        ]
    output = helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "one", inputs, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def ask_onnx(asked: Asked, strict: bool) -> Answer:
    """`onnx.shape_inference.infer_shapes`, with data propagation."""
    inference: Any = importlib.import_module("onnx.shape_inference")
    try:
        array = inference.infer_shapes(onnx_model(asked), True, strict, True)
    except inference.InferenceError as error:
        return NotInferred(_last_line(error))
    return _of_output(array, asked.names)


def ask_symbolic(asked: Asked, auto_merge: bool) -> Answer:
    """ONNX Runtime's symbolic shape inference, what it has found where it gives up too."""
    onnx: Any = importlib.import_module("onnx")
    model = onnx.ModelProto()
    model.CopyFrom(onnx_model(asked))
    with quiet():
        try:
            inferred = infer_symbolic(model, auto_merge=auto_merge)
        except AssertionError:
            return NotInferred("an assertion")
        except Exception as error:  # noqa: BLE001 - whatever it raises, it has not answered
            return NotInferred(f"{type(error).__name__}: {_last_line(error)}")
    return _of_output(inferred, asked.names)


def infer_symbolic(model: Any, auto_merge: bool = False) -> Any:
    """The model with all that it finds.

    Its own `infer_shapes` writes a file into the working directory and raises where one shape is
    not complete; these are the lines before that.
    """
    module: Any = importlib.import_module("onnxruntime.tools.symbolic_shape_infer")
    inference = module.SymbolicShapeInference(2**31 - 1, auto_merge, False, 0)
    inference._preprocess(model)
    while inference.run_:
        inference._infer_impl()
    inference._update_output_from_vi()
    return inference.out_mp_


def ask_session(asked: Asked) -> Answer:
    """The output's shape of an ONNX Runtime session."""
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    model = onnx_model(asked).SerializeToString()
    try:
        session = runtime.InferenceSession(model, options, ["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - its errors have no common class that it exports
        return NotInferred(_last_line(error))
    outputs = session.get_outputs()[0].shape
    # A session says "no rank" and "rank 0" alike; only one of them is known to exist.
    if not outputs and (asked.first or asked.second):
        return None
    return tuple(onnx_claim(size, asked.names) for size in outputs)


def _of_output(model: Any, names: frozenset[str]) -> Answer:
    tensor = model.graph.output[0].type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple(onnx_claim(onnx_size(size), names) for size in tensor.shape.dim)


def onnx_size(size: Any) -> int | str | None:
    """A dimension of a file: a number, a text, or None."""
    if size.HasField("dim_value"):
        return int(size.dim_value)
    return str(size.dim_param) or None


def onnx_claim(size: int | str | None, names: frozenset[str]) -> Claim:
    """The claim of a dimension: a number, an expression in the inputs' names, or nothing."""
    if isinstance(size, int):
        return number(size)
    if size is None:
        return UNKNOWN
    if size in names:
        return name(size)
    value = expression(size, names)
    return Claim(value=value, text=size if value else "?")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings that the symbolic inference logs for each node."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:160] if lines else type(error).__name__
