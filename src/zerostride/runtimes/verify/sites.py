"""A broadcast of a model as a task for an engine, and zerostride's own result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...compute.kernels import KERNELS
from ...derive.size_traps import Side
from ...engines.model import Engine
from ...errors import BroadcastError, ModelError
from ...models.audit.judged_site import sizes_of
from ...models.execute import execute
from ...models.execute.broadcasts import PLANNED, broadcast
from ...models.flow.advice import advice
from ...models.format_table import FormatModule, module_of
from ...models.ir.graph import Graph, Node, Value
from ...models.ir.site import Kind, Site
from ...models.onnx_ops.kernels.call import NodeCall, Unfit
from ...models.onnx_ops.sites import find_site as onnx_site
from ...models.onnx_ops.table import op_row, run_op
from ...models.transport.batch import BATCHLESS, BatchAxes
from ...models.transport.converters import OP_FOR_OP, Converter
from ...models.transport.sample import Sample, contracted_batch, whole, without_batch
from ...models.transport.ways import NotJudged, canonical
from ...ops import OPS, column_of
from ..runners import RUNNERS
from ..task import Array, Form, Task
from .data import operand
from .layers import layer_task

#: The most elements of a checked result.
MAX_ELEMENTS = 2**24
#: The op set of a node whose file has none.
_OPSET = 21
_LOGICAL = ("logical_and", "logical_or", "logical_xor")


class Skip(Exception):  # noqa: N818 - an answer
    """The reason why a site is not run."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A site ready to be filled with numbers.

    Attributes:
        site, task: the site, and its task.
        shapes: of the operands in the model.
        engine_shapes: of the operands as the engine gets them, without a batch axis that it lacks.
        result: the result's shape there; None: as the model has it, but for `dropped`.
        dropped: the axis of the model's result that the engine does not have.
        dtypes: of the operands.
        turned: which operands the engine gets transposed, where the op says so in an attribute.
        onnx_node: of a compound, what it is in ONNX's words.
        layer: of a layer in the engine's own format, the layer as a graph.
        note: a note for the reader, such as a type that replaces another.
    """

    site: Site
    task: Task
    shapes: tuple[tuple[int, ...], ...]
    engine_shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    result: tuple[int, ...] | None = None
    dropped: int | None = None
    onnx_node: Node | None = None
    note: str = ""
    turned: tuple[int, ...] = ()
    layer: Graph | None = None

    @property
    def compound(self) -> bool:
        """Whether it is more than one element-wise operation."""
        return self.site.kind not in PLANNED

    @property
    def op(self) -> str:
        """The op that decides how random data are drawn."""
        if self.onnx_node is not None:
            return self.onnx_node.op
        if self.compound:
            return self.site.stands_for
        return self.task.op if self.task.op in OPS else _canonical(self.site)

    def operands(self, seed: int) -> list[Array]:
        """Random operands in the model's shapes."""
        rng = np.random.default_rng(seed)
        return [
            operand(rng, self.op, k, shape, dtype)
            for k, (shape, dtype) in enumerate(zip(self.shapes, self.dtypes, strict=True))
        ]

    def as_given(self, arrays: Sequence[Array]) -> list[Array]:
        """The operands as the engine gets them."""
        operands = [
            array.reshape(shape) for array, shape in zip(arrays, self.engine_shapes, strict=True)
        ]
        return [array.T if k in self.turned else array for k, array in enumerate(operands)]

    def expected(self, arrays: Sequence[Array]) -> Array:
        """The result in the model, by zerostride's own plan and values."""
        result = self._computed(tuple(arrays))
        if self.result is not None:
            return np.ascontiguousarray(result).reshape(self.result)
        return result if self.dropped is None else result.squeeze(self.dropped)

    def _computed(self, arrays: tuple[Array, ...]) -> Array:
        if self.layer is not None:
            named = {f"x{k}": array for k, array in enumerate(arrays)}
            (alone,) = execute(self.layer, named).values()
            return alone
        if self.onnx_node is None:
            # The engine defines the meaning of its own file format.
            domain = self.site.node.domain
            return broadcast(self.site, NodeCall(self.site.node, arrays), domain or None)
        rest = iter(arrays)
        placed = tuple(None if value is None else next(rest) for value in self.onnx_node.inputs)
        return run_op(NodeCall(self.onnx_node, placed))[0]


def prepare(
    site: Site, engine: Engine, batch: BatchAxes, graph: Graph, way: Converter = OP_FOR_OP
) -> Plain:
    """The site of a graph as a task: a node through the engine's converter, or one of its own ops.

    Args:
        site: the site.
        engine: the engine.
        batch: the batch axes, for an engine without one.
        graph: the graph.
        way: the converter that carries ONNX nodes to the engine.

    Raises:
        Skip: the site cannot be run alone on that engine; says why.
    """
    if site.call is not None:
        if site.node.domain or not RUNNERS[engine.name].onnx_nodes:
            raise Skip(f"{engine.name} runs {site.node.op} in a whole model only: --whole")
        return _compound(site, engine, batch, module_of(graph))
    shapes = _shapes(site, graph)
    try:
        source = site.plan(shapes)
    except BroadcastError as error:
        raise Skip(f"the model itself does not broadcast here: {error.detail}") from None
    elements = math.prod(map(int, source.shape))
    if elements > MAX_ELEMENTS:
        raise Skip(f"its result has {elements} elements; at most {MAX_ELEMENTS} here")
    lost = contracted_batch(site, batch)
    axes = [batch.of_operand(part) for part in site.operands]
    if engine.name in BATCHLESS:
        sample = without_batch(source, axes[: len(source.operands)])
    else:
        sample = whole(source)
    if lost is not None or sample.across is not None:
        raise Skip(f"it broadcasts across the batch axis, which {engine.name} does not have")
    if engine.name in BATCHLESS:
        shapes = _of_one_sample(shapes, axes)
        sample = without_batch(site.plan(shapes), axes[: len(source.operands)])
    if site.node.domain == engine.name and RUNNERS[engine.name].own_layers:
        return _layer(site)
    try:
        side = way.carry(site, way.met(engine))
    except NotJudged as answer:
        raise Skip(str(answer)) from None
    except BroadcastError as error:
        runs = site.kind in PLANNED or RUNNERS[engine.name].onnx_nodes
        if not (runs and _as_node(site, engine, way)):
            raise Skip(f"there is no op to run: {error.detail}") from None
        side = Side(site.rule, {}, engine.name, None)  # the engine refuses it
    if site.kind in PLANNED:
        return _planned(site, engine, side, shapes, sample, way)
    return _compound(site, engine, batch, module_of(graph))


def _shapes(site: Site, graph: Graph) -> tuple[tuple[int, ...], ...]:
    if site.kind in (Kind.CUSTOM, Kind.NOT_MODELLED):
        raise Skip(f"{site.node.op} is not modelled")
    for part in site.operands:
        if part.shape is None:
            raise Skip(with_advice(f"the shape of {part.name!r} is not known", advice(graph)))
    sizes = [size for part in site.operands for size in part.shape or ()]
    unknown = [size for size in sizes if not isinstance(size, int)]
    if unknown:
        whose = next(p.name for p in site.operands if unknown[0] in (p.shape or ()))
        words = f"{whose!r} has a size that is not known"
        raise Skip(with_advice(words, advice(graph, unknown) or advice(graph)))
    return tuple(
        tuple(int(size) for size in sizes_of(part) if isinstance(size, int))
        for part in site.operands
    )


def _of_one_sample(
    shapes: Sequence[tuple[int, ...]], axes: Sequence[int | None]
) -> tuple[tuple[int, ...], ...]:
    """The shapes with a batch of 1, which the engine can hold."""
    return tuple(
        shape if axis is None else (*shape[:axis], 1, *shape[axis + 1 :])
        for shape, axis in zip(shapes, axes, strict=True)
    )


def with_advice(words: str, how: str) -> str:
    """A sentence, followed by the options to give, if any."""
    return f"{words}: {how}" if how else words


def _planned(
    site: Site,
    engine: Engine,
    side: Side,
    shapes: tuple[tuple[int, ...], ...],
    sample: Sample,
    way: Converter,
) -> Plain:
    """An element-wise op or a Broadcast op, in the engine's own terms."""
    engine_shapes = tuple(tuple(map(int, shape)) for shape in sample.shapes)
    result = tuple(map(int, sample.plan.shape))
    if site.kind is Kind.EXPAND:
        task = Task(Form.TO, "expand", {"mode": side.rule.name}, target=shapes[1])
        if _as_node(site, engine, way):
            target = result if engine.name in BATCHLESS else shapes[1]
            task = Task(Form.NODE, "Expand", target=target)
        kinds, note = _dtypes(site, engine, "expand", 1)
        return Plain(site, task, shapes[:1], engine_shapes[:1], kinds, result, note=note)
    op = side.op or "add"
    kinds, note = _dtypes(site, engine, op, len(shapes))
    node = site.node
    if _as_node(site, engine, way):
        attributes = {k: v for k, v in node.attributes.items() if k != "consumed_inputs"}
        constant = tuple(part.constant for part in site.operands)
        if all(constant):  # something is fed
            constant = (False, *constant[1:])
        task = Task(Form.NODE, node.op, attributes, constant=constant, opset=node.version)
        return Plain(site, task, shapes, engine_shapes, kinds, result, note=note)
    if side.op not in OPS:
        form = Form.NODE if RUNNERS[engine.name].onnx_nodes else Form.COMPOUND
        constant = tuple(part.constant for part in site.operands)
        task = Task(form, site.stands_for, constant=constant, opset=max(_OPSET, node.version))
        return Plain(site, task, shapes, engine_shapes, kinds, result, note=note)
    if engine.name == "mnn" and _is_onnx(site) and len(shapes) > OPS[op].operands:
        # One op of MNN takes all operands; a chain of two by two would be another op.
        constant = tuple(part.constant for part in site.operands)
        task = Task(Form.NODE, node.op, dict(node.attributes), (), constant, node.version)
        return Plain(site, task, shapes, engine_shapes, kinds, result, note=note)
    if site.stands_for == "Mean":
        # Engines have no mean of operands; the sum has the same broadcast.
        site, note = replace(site, op="Sum"), "run as the sum"
    if op not in KERNELS or column_of(engine.name) not in ("numpy", *OPS[op].names):
        raise Skip(f"{engine.name} has no single op for {op}")
    task = Task(Form.OP, op, dict(side.attributes))
    return Plain(site, task, shapes, engine_shapes, kinds, result, note=note)


def _as_node(site: Site, engine: Engine, way: Converter) -> bool:
    """Whether an ONNX node is run as it is, by the engine's own reader or its converter."""
    return _is_onnx(site) and (way is not OP_FOR_OP or "onnx" in RUNNERS[engine.name].files)


def _is_onnx(site: Site) -> bool:
    """Whether the node alone is an ONNX model."""
    return site.node.domain == "" and site.node.op == site.stands_for and site.node.version > 0


def _canonical(site: Site) -> str:
    return canonical(site) or "add"


def _dtypes(site: Site, engine: Engine, op: str, count: int) -> tuple[tuple[str, ...], str]:
    """The operands' element types, and a note where one replaces another."""
    types = [None if p.tensor is None else p.tensor.computed_type for p in site.operands]
    common = next((name for name in types[op == "where" :] if name is not None), _usual(op))
    if op == "pow" and engine.name != "onnxruntime":
        types[1:] = [common] * (count - 1)  # converters convert the exponent
    kinds, notes = [], {}
    for k in range(count):
        first = op == "where" and k == 0
        # A condition has truth values; MNN's files have integers.
        name = "bool" if first else types[k] or common
        kinds.append(_standing(engine, name))
        if kinds[-1] != name:
            notes[name] = kinds[-1]
    return tuple(kinds), "; ".join(f"{b} stands for {a}" for a, b in notes.items())


def _standing(engine: Engine, name: str) -> str:
    """The type of a random operand: one of NumPy's that the engine has.

    Raises:
        Skip: the engine has no such tensors, or NumPy has no such type.
    """
    holds = RUNNERS[engine.name].holds
    if holds is None:
        return _numpy_type(name)
    if name not in holds:
        raise Skip(f"{engine.name} holds no tensors of {name}")
    return holds[name]


def _layer(site: Site) -> Plain:
    """A layer of an engine's own file format, on that engine."""
    task, graph = layer_task(site)
    shapes, dtypes = _known_shapes(graph.inputs), []
    known_dtypes = [value.dtype for value in graph.inputs if value.dtype not in (None, "bool")]
    for k, value in enumerate(graph.inputs):
        condition = site.kind is Kind.WHERE and k == 0
        usual = "bool" if condition else next(iter(known_dtypes), _usual(_canonical(site)))
        dtypes.append(_numpy_type(value.dtype or str(usual)))
    return Plain(site, task, shapes, shapes, tuple(dtypes), layer=graph)


def _known_shapes(values: Sequence[Value]) -> tuple[tuple[int, ...], ...]:
    """The values' shapes; Skip if one is not known."""
    for value in values:
        if not value.known:
            raise Skip(f"the shape of {value.name!r} is not known")
    return tuple(tuple(int(str(size)) for size in value.shape or ()) for value in values)


def _usual(op: str) -> str:
    """The element type of an op's operands where the file has none."""
    return "bool" if op in _LOGICAL else "int32" if op.startswith("bitwise") else "float32"


def _numpy_type(dtype: str) -> str:
    """The element type, if NumPy has it."""
    try:
        made = np.dtype(dtype).isbuiltin == 1
    except TypeError:
        made = False
    if not made:
        raise Skip(f"no operands of {dtype} are made here")
    return dtype


def _compound(site: Site, engine: Engine, batch: BatchAxes, module: FormatModule) -> Plain:
    """A product, a normalisation or a clamp, as one node or one layer."""
    lowered = module.lower(site.node)
    if lowered is None or op_row(lowered[-1].op).kernel is None:
        raise Skip(f"{site.node.op} is not one op that is computed here")
    node = lowered[-1]
    if len(lowered) > 1:
        # Earlier nodes (a transpose) broadcast nothing.
        last = onnx_site(node)
        if engine.name in BATCHLESS or last is None or last.kind is not site.kind:
            raise Skip(f"{site.node.op} is several ops in ONNX's words")
    values = [value for value in node.inputs if value is not None]
    shapes = _known_shapes(values)
    # The product on ncnn keeps its single row: to ncnn a blob of one axis is a column.
    kept = site.kind is Kind.GEMM
    axes = [None if kept else batch.of(value) for value in values]
    if site.kind is Kind.MATMUL:
        axes = _both(shapes, axes)
    shapes = _of_one_sample(shapes, axes)
    engine_shapes = tuple(
        shape if axis is None else shape[:axis] + shape[axis + 1 :]
        for shape, axis in zip(shapes, axes, strict=True)
    )
    kinds = tuple(_standing(engine, value.dtype or "float32") for value in values)
    attributes = dict(node.attributes)
    missing = [k for k, value in enumerate(node.inputs) if value is None]
    form = Form.NODE if RUNNERS[engine.name].onnx_nodes else Form.COMPOUND
    if form is Form.NODE and missing:
        attributes[""] = missing
    turned: tuple[int, ...] = ()
    if form is Form.COMPOUND:
        turned = tuple(k for k, name in enumerate(("transA", "transB")) if attributes.pop(name, 0))
        factors = [attributes.pop(name, 1.0) for name in ("alpha", "beta")]
        if missing or any(factor != 1 for factor in factors):
            raise Skip(f"{node.op} with factors or without an operand is no single call")
        if any(len(engine_shapes[k]) != 2 for k in turned):
            raise Skip(f"{node.op} transposes an operand that is no matrix on {engine.name}")
    constant = tuple(value.constant for value in values)
    task = Task(form, node.op, attributes, constant=constant, opset=node.version)
    dropped = batch.of(node.outputs[0]) if node.outputs and not kept else None
    return Plain(site, task, shapes, engine_shapes, kinds, None, dropped, node, turned=turned)


def _both(shapes: Sequence[tuple[int, ...]], axes: Sequence[int | None]) -> list[int | None]:
    """The batch axes of two factors; a factor without one loses a 1 on the other's batch axis."""
    pairs = zip(shapes, axes, strict=True)
    lost = next((axis - len(shape) for shape, axis in pairs if axis is not None), None)
    return [
        len(shape) + lost
        if axis is None and lost is not None and len(shape) >= -lost > 2 and shape[lost] == 1
        else axis
        for shape, axis in zip(shapes, axes, strict=True)
    ]


def fill(plain: Plain, seed: int) -> tuple[list[Array], Array]:
    """Operands as the engine gets them, and the expected result.

    Raises:
        Skip: zerostride itself does not compute this.
    """
    arrays = plain.operands(seed)
    try:
        return plain.as_given(arrays), plain.expected(arrays)
    except (Unfit, ModelError, BroadcastError, ValueError, TypeError) as error:
        raise Skip(f"zerostride does not compute it: {error}") from None


__all__ = ["MAX_ELEMENTS", "Plain", "Skip", "fill", "prepare"]
