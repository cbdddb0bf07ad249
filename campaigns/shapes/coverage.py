"""Sizes of whole models: the number of each tool's claims, and whether they are right.

Each tool reads the same file, stripped of every shape but the inputs'. Looked at are the tensors
that nodes of the main graph make, constants left out. A size is *said* where it is a number or an
expression of the inputs' names; a name that the inputs do not have was made up, and says nothing.
What is said is compared with what ONNX Runtime makes of a few sizes. Run as
``python -m campaigns coverage MODEL...``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from zerostride.errors import BadInput
from zerostride.models.flow import flow
from zerostride.sizes.condition import Condition
from zerostride.sizes.dim import Dim, dim
from zerostride.system import children

from .expressions import Values
from .inferrers import (
    UNKNOWN,
    ZEROSTRIDE,
    Claim,
    infer_symbolic,
    number,
    onnx_claim,
    onnx_size,
    openvino_claim,
    quiet,
)
from .shape_runner import TRIED, names_of, tensors_of

#: Claims of a tensor's sizes by its name; a tensor without a known rank is left out.
Shapes: TypeAlias = Mapping[str, tuple[Claim, ...]]
#: What a model is said to need of its sizes: words, and whether numbers fulfil it.
Needs: TypeAlias = Sequence[tuple[str, Callable[[Values], bool]]]
#: Running a small model at a few sizes takes seconds, most of them to import ONNX Runtime.
RUN_SECONDS = 120.0
#: Wrong sizes that are shown of one tool.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Model:
    """A model file as every tool is given it.

    Attributes:
        path: the stripped file.
        proto: its content.
        names: the names of sizes that its inputs have, in order.
        tensors: what its nodes make, constants left out.
    """

    path: Path
    proto: Any
    names: tuple[str, ...]
    tensors: tuple[str, ...]


@dataclass(slots=True)
class CoverageRow:
    """The claims of one tool about one model.

    Attributes:
        tool: its name.
        seconds: from the file to the shapes.
        tensors: all of them.
        ranks: tensors whose rank it says.
        axes: axes of all tensors, as they are when run.
        numbers: axes of which it says a number.
        expressions: axes of which it says an expression of the inputs' names.
        bounds: axes of which it says no more than an interval with an end.
        wrong: axes of which what it says is not so.
        examples: some of these, in words.
        failed: why it has no answer.
    """

    tool: str
    seconds: float = 0.0
    tensors: int = 0
    ranks: int = 0
    axes: int = 0
    numbers: int = 0
    expressions: int = 0
    bounds: int = 0
    wrong: int = 0
    examples: list[str] = field(default_factory=list)
    failed: str = ""

    @property
    def said(self) -> int:
        """Axes that are a number or an expression."""
        return self.numbers + self.expressions

    def to_json(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "tool": self.tool,
            "seconds": round(self.seconds, 4),
            "tensors": self.tensors,
            "ranks": self.ranks,
            "axes": self.axes,
            "numbers": self.numbers,
            "expressions": self.expressions,
            "bounds": self.bounds,
            "wrong": self.wrong,
            "examples": self.examples,
            "failed": self.failed,
        }


@dataclass(slots=True)
class Coverage:
    """One model, with a row for each tool.

    Attributes:
        path: the file.
        rows: the tools.
        runs: the sizes at which it was run.
        denied: needs that are not fulfilled by sizes at which it ran.
    """

    path: str
    rows: list[CoverageRow]
    runs: list[dict[str, int]]
    denied: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether this package says nothing wrong, and no less than any tool that is right."""
        ours = next(row for row in self.rows if row.tool == ZEROSTRIDE)
        right = [row for row in self.rows if not row.wrong]
        return (
            not ours.failed
            and not ours.wrong
            and not self.denied
            and all(row.said <= ours.said and row.ranks <= ours.ranks for row in right)
        )

    def to_json(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "model": self.path,
            "ok": self.ok,
            "runs": self.runs,
            "denied": self.denied,
            "tools": [row.to_json() for row in self.rows],
        }


def cover(
    path: str | Path,
    tools: Mapping[str, Callable[[Model], Shapes]],
    needs: Callable[[Model], Needs] = lambda model: (),
) -> Coverage:
    """Asks every tool about one model, and runs the model.

    Args:
        path: the model's file.
        tools: what gives the shapes, by name.
        needs: what this package says that the model needs of its sizes.
    """
    with tempfile.TemporaryDirectory() as folder:
        model = stripped(Path(path), Path(folder) / "model.onnx")
        answers = []
        for name, ask in tools.items():
            row, shapes = CoverageRow(name), dict[str, tuple[Claim, ...]]()
            start = time.perf_counter()
            try:
                shapes = dict(ask(model))
            except Exception as error:  # noqa: BLE001 - a tool that fails is a row of its own
                row.failed = f"{type(error).__name__}: {error}".strip()[:200]
            row.seconds = time.perf_counter() - start
            answers.append((row, shapes))
        runs = list(executed(model))
        denied = [
            f"{words}, and it runs at {_listed(values)}"
            for words, holds in needs(model)
            for values, _ in runs
            if not holds(values)
        ]
    ranks = _ranks(model, runs, [shapes for _, shapes in answers])
    for row, shapes in answers:
        count(row, model, shapes, ranks, runs)
    rows = [row for row, _ in answers]
    return Coverage(str(path), rows, [values for values, _ in runs], denied)


def stripped(source: Path, target: Path) -> Model:
    """The model without any shape but the inputs', written to `target`.

    Raises:
        BadInput: it cannot be read.
    """
    onnx: Any = importlib.import_module("onnx")
    try:
        proto = onnx.load(source)
    except Exception as error:  # noqa: BLE001 - protobuf's errors have no common class
        raise BadInput(f"{source} cannot be read: {error}") from None
    del proto.graph.value_info[:]
    for output in proto.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    onnx.save(proto, target)
    return Model(target, proto, names_of(proto), tensors_of(proto))


# What is so.


def executed(model: Model) -> Iterator[tuple[dict[str, int], dict[str, tuple[int, ...]]]]:
    """Every tensor's shape for some sizes, by ONNX Runtime; sizes that it refuses are left out.

    In a process of its own, which some sizes end; a fresh one goes on after these.
    """
    row = 0
    seen = []
    while row < len(TRIED):
        runner = children.module("campaigns.shapes.shape_runner", str(model.path), str(row))
        try:
            done = subprocess.run(
                runner,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=RUN_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return
        lines = done.stdout.splitlines()
        for values, shapes in map(json.loads, lines):
            if shapes is not None and values not in seen:
                seen.append(values)
                yield values, {name: tuple(shape) for name, shape in shapes.items()}
        if done.returncode >= 0:
            return  # all were tried, or the model does not run at all
        row += len(lines) + 1


def _ranks(model: Model, runs: Sequence[Any], answers: Iterable[Shapes]) -> dict[str, int]:
    """Every tensor's rank as it was run, or as somebody says it."""
    table: dict[str, int] = {}
    for shapes in (*(shapes for _, shapes in runs), *answers):
        for name, shape in shapes.items():
            table.setdefault(name, len(shape))
    return {name: table.get(name, 0) for name in model.tensors}


def count(
    row: CoverageRow,
    model: Model,
    shapes: Shapes,
    ranks: Mapping[str, int],
    runs: Sequence[tuple[Mapping[str, int], Mapping[str, tuple[int, ...]]]],
) -> None:
    """Fills the counts of a row."""
    row.tensors = len(model.tensors)
    row.axes = sum(ranks.values())
    for name in model.tensors:
        claims = shapes.get(name)
        if claims is None:
            continue
        row.ranks += 1
        if len(claims) != ranks[name]:
            row.wrong += ranks[name]
            row.examples.append(f"{name} has rank {ranks[name]}, not {len(claims)}")
            continue
        for axis, claim in enumerate(claims):
            if claim.low == claim.high:
                row.numbers += 1
            elif claim.value is not None and claim.named:
                row.expressions += 1
            elif claim.high is not None or claim.low > 1:
                row.bounds += 1
            so = _contradiction(claim, name, axis, runs)
            if so:
                row.wrong += 1
                row.examples.append(so)
    del row.examples[SHOWN:]


def _contradiction(
    claim: Claim,
    name: str,
    axis: int,
    runs: Sequence[tuple[Mapping[str, int], Mapping[str, tuple[int, ...]]]],
) -> str:
    for values, shapes in runs:
        if name not in shapes:
            continue
        size = shapes[name][axis]
        fits = claim.low <= size and (claim.high is None or size <= claim.high)
        if fits and claim.value is not None and claim.named:
            with contextlib.suppress(ArithmeticError):
                fits = claim.value(values) == size
        if not fits:
            return f"{name} axis {axis} is {size} at {_listed(values)}, not {claim}"
    return ""


def _listed(values: Values) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


# The tools.


def installed() -> dict[str, Callable[[Model], Shapes]]:
    """Every tool that is installed, this package first."""
    importlib.import_module(
        "zerostride.models.formats.onnx.reader"
    )  # here, since what follows is timed
    table: dict[str, Callable[[Model], Shapes]] = {ZEROSTRIDE: zerostride_shapes}
    for names, module in (
        ({"openvino": openvino_shapes}, "openvino"),
        ({"onnx": onnx_shapes}, "onnx.shape_inference"),
        (
            {
                "ort symbolic": symbolic_shapes,
                "ort auto_merge": lambda model: symbolic_shapes(model, auto_merge=True),
            },
            "onnxruntime.tools.symbolic_shape_infer",
        ),
    ):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
            table |= names
    return table


def zerostride_shapes(model: Model) -> Shapes:
    """This package's `flow`."""
    from zerostride.models.formats.onnx.reader import read_onnx

    sizes = flow(read_onnx(model.path))
    wanted, names = set(model.tensors), frozenset(model.names)
    shapes: dict[str, tuple[Claim, ...]] = {}
    for node in sizes.graph.nodes:
        if node.scope:
            continue
        for value in node.outputs:
            shape = sizes.shape_of(value)
            if shape is not None and value.name in wanted:
                shapes[value.name] = tuple(_dim_claim(dim(size), names) for size in shape)
    return shapes


def zerostride_needs(model: Model) -> Needs:
    """zerostride's certain needs of the model, where the inputs' names decide them."""
    from zerostride.models.formats.onnx.reader import read_onnx

    names = frozenset(model.names)
    return [
        (str(need), functools.partial(_holds, need.condition))
        for need in flow(read_onnx(model.path)).conditions
        if need.certain and all(symbol.name in names for symbol in need.condition.symbols)
    ]


def _holds(condition: Condition, values: Values) -> bool:
    return condition.evaluate({symbol: values[symbol.name] for symbol in condition.symbols})


def _dim_claim(size: Dim, names: frozenset[str]) -> Claim:
    if size.constant is not None:
        return number(size.constant)
    low, high = size.interval
    named = all(symbol.name in names for symbol in size.symbols)

    def value(values: Values) -> int:
        return size.evaluate({symbol: values[symbol.name] for symbol in size.symbols})

    return Claim(low or 0, high, value, str(size), named)


def openvino_shapes(model: Model) -> Shapes:
    """OpenVINO's ONNX frontend, the inputs' names set as symbols."""
    ov: Any = importlib.import_module("openvino")
    network = ov.Core().read_model(model.path)
    symbols = {name: ov.Symbol() for name in model.names}
    inputs = {entry.name: entry.type.tensor_type.shape.dim for entry in model.proto.graph.input}
    for parameter in network.get_parameters():
        name = next(name for name in parameter.output(0).get_names() if name in inputs)
        sizes = []
        for size, written in zip(parameter.get_partial_shape(), inputs[name], strict=True):
            if written.dim_param:
                size = ov.Dimension(size.get_min_length(), size.get_max_length())
                size.set_symbol(symbols[written.dim_param])
            sizes.append(size)
        parameter.set_partial_shape(ov.PartialShape(sizes))
    network.validate_nodes_and_infer_types()
    shapes: dict[str, tuple[Claim, ...]] = {}
    for node in network.get_ordered_ops():
        for output in node.outputs():
            shape = output.partial_shape
            if not shape.rank.is_dynamic:
                claims = tuple(openvino_claim(size, symbols) for size in shape)
                shapes |= dict.fromkeys(output.get_names(), claims)
    return shapes


def onnx_shapes(model: Model) -> Shapes:
    """onnx's own inference, with data propagation."""
    onnx: Any = importlib.import_module("onnx")
    inference: Any = importlib.import_module("onnx.shape_inference")
    array = inference.infer_shapes(onnx.load(model.path), data_prop=True)
    return _of_graph(array, model)


def symbolic_shapes(model: Model, auto_merge: bool = False) -> Shapes:
    """ONNX Runtime's symbolic shape inference, what it has found where it gives up too."""
    onnx: Any = importlib.import_module("onnx")
    with quiet():
        model_shapes = infer_symbolic(onnx.load(model.path), auto_merge=auto_merge)
    return _of_graph(model_shapes, model)


def _of_graph(proto: Any, model: Model) -> Shapes:
    names = frozenset(model.names)
    shapes: dict[str, tuple[Claim, ...]] = {}
    for entry in (*proto.graph.value_info, *proto.graph.output):
        tensor = entry.type.tensor_type
        if entry.type.HasField("tensor_type") and tensor.HasField("shape"):
            shapes[entry.name] = tuple(
                onnx_claim(onnx_size(size), names) if size.WhichOneof("value") else UNKNOWN
                for size in tensor.shape.dim
            )
    return shapes
