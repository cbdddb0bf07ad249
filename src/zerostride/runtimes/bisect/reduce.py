"""The smallest part of a model that still differs where it is converted and run alone."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...errors import ZerostrideError
from ...models.bisect.sides import Fault
from ...models.bisection import Fetch
from ...models.execute.cut import Tensor, cut_out
from ...models.execute.part import Part, Parts
from ...models.execute.program import readable
from ...models.findings import Outcome
from ...models.formats import format_of, read_model
from ...models.ir.graph import Array, Graph, Value
from ..convert.converters import ENGINE_CONVERTERS, converter_to, run_converter
from ..process import running
from ..runners import RUNNERS
from ..task import ReplyKind
from ..verify.rounding import compared, like
from ..verify.whole_model import feed_of

#: Runs of parts for one fault; the most nodes of a part; how often the nodes before a part that is
#: right alone are added to it.
_MOST_RUNS, _MOST_NODES, _MOST_TIMES = 48, 64, 6


@dataclass(frozen=True, slots=True)
class Alone:
    """The result of a fault's part, run alone on the other side's engine.

    Attributes:
        words: the result, in words.
        fault: of the smallest part that differs; None where no part does.
    """

    words: str
    fault: Fault | None = None


class Reduction:
    """Parts of a model, each converted and run alone.

    Args:
        graph: a model with known sizes.
        reference: its tensors by its own engine.
        file: the other side's file.
        engine: what runs it.
        seconds: the limit for one conversion and for one run.
        pythons: interpreters by engine.
    """

    def __init__(
        self,
        graph: Graph,
        reference: Fetch,
        file: Path,
        engine: str,
        seconds: float,
        pythons: dict[str, str] | None = None,
    ) -> None:
        self._parts, self._reference = Parts(graph), reference
        self._engine, self._seconds, self._pythons = engine, seconds, pythons
        self._tensors = {id(value): value for value in graph.values() if not readable(value)}
        self._runs = 0
        form = format_of(file).name
        self._converted = form != "onnx"
        row = ENGINE_CONVERTERS.get(engine)
        convertible = row is not None and "onnx" in row.reads and form == engine
        self._able = graph.format == "onnx" and (
            convertible if self._converted else "onnx" in RUNNERS[engine].files
        )

    def smallest(self, fault: Fault) -> Alone:
        """The smallest part around a fault that differs alone; no words where none can be run."""
        if not self._able or fault.expected is None or fault.actual is None:
            return Alone("")
        self._runs = 0
        try:
            differing = next(filter(None, map(self._differing, self._grown(fault))), None)
            if differing is None:
                nodes = ", ".join(node.path for node in fault.part.nodes)
                return Alone(f"{self._how()} computes {nodes} right")
            differing = self._earliest(self._shrunk(differing))
        except ZerostrideError:
            return Alone("")  # no converter is installed, or it takes no such part
        nodes = ", ".join(node.path for node in differing.part.nodes)
        least = ", and no smaller part" if len(differing.part.nodes) > 1 else ""
        return Alone(f"{self._how()} computes {nodes} wrong{least}", differing)

    def _how(self) -> str:
        by = f" converted by {ENGINE_CONVERTERS[self._engine].name}," if self._converted else ""
        return f"alone,{by} {self._engine}"

    def _grown(self, fault: Fault) -> Iterator[Fault]:
        """Yield the fault, then with the nodes before it, and those before these."""
        yield fault
        part = fault.part
        for _ in range(_MOST_TIMES):
            makers = [self._parts.maker_of(value) for value in part.operands]
            nodes = [*part.nodes, *(node for node in makers if node is not None)]
            larger = self._part(part.result, {id(v) for node in nodes for v in node.outputs})
            if len(larger.nodes) == len(part.nodes) or len(larger.nodes) > _MOST_NODES:
                return
            part = larger
            if (grown := self._fault(fault, part)) is not None:
                yield grown

    def _shrunk(self, fault: Fault) -> Fault:
        """The fault without each node before its result that it does not need."""
        for node in fault.part.nodes[:-1]:
            inner = {id(v) for one in fault.part.nodes if one is not node for v in one.outputs}
            smaller = self._fault(fault, self._part(fault.part.result, inner))
            fault = (smaller and self._differing(smaller)) or fault
        return fault

    def _earliest(self, fault: Fault) -> Fault:
        """The fault, or the first tensor inside of it that differs alone."""
        inner = {id(value) for node in fault.part.nodes for value in node.outputs}
        for node in fault.part.nodes[:-1]:
            for value in node.outputs:
                earlier = self._fault(fault, self._part(value, inner))
                if earlier is not None and (differing := self._differing(earlier)) is not None:
                    return differing
        return fault

    def _part(self, result: Value, inner: set[int]) -> Part:
        """The part that ends in a tensor, with the nodes that make these tensors."""
        return self._parts.before(result, self._tensors.keys() - inner)

    def _fault(self, fault: Fault, part: Part) -> Fault | None:
        """A fault of another part, on numbers as the model means them."""
        values = {}
        for operand in part.operands:
            array = fault.values.get(id(operand))
            if array is None and any(operand in node.outputs for node in fault.part.nodes):
                array = fault.part.run(fault.values, operand)
            if array is None:
                array = self._reference(operand.name)
            if array is None:
                return None
            values[id(operand)] = array
        return replace(fault, part=part, values=values, expected=part.run(values), actual=None)

    def _differing(self, fault: Fault) -> Fault | None:
        """The fault with the engine's numbers, where its part is converted and run alone."""
        self._runs += 1
        if self._runs > _MOST_RUNS:
            return None
        assert fault.expected is not None
        arrays = {f"x{k}": fault.values[id(v)] for k, v in enumerate(fault.part.operands)}
        ends = {key: Tensor.of(array) for key, array in arrays.items()}
        data = cut_out(fault.part, ends, ("y", Tensor.of(fault.expected)))
        if data is None:
            return None
        with tempfile.TemporaryDirectory(prefix="zerostride-") as folder:
            model = Path(folder, "part.onnx")
            model.write_bytes(data)
            actual = self._run(model, arrays, fault.expected)
        if actual is None:
            return None
        expected = like(fault.expected, actual.shape)
        if compared(expected, actual, self._engine).outcome is not Outcome.DIFFERS:
            return None
        return replace(fault, actual=actual)

    def _run(self, model: Path, arrays: Mapping[str, Array], expected: Array) -> Array | None:
        """The engine's result; None where it gives none, or the converter takes no such part."""
        file = model
        if self._converted:
            row = converter_to(self._engine)
            file = model.with_suffix(row.suffix)
            if run_converter(row, model, file, arrays, self._seconds) is not None:
                return None
        with running(self._engine, self._seconds, self._pythons) as process:
            graph = read_model(model)
            _, reply = feed_of(graph, file, process, arrays, None, {"y": expected})
        return np.asarray(reply.arrays[0]) if reply.kind is ReplyKind.RESULT else None
