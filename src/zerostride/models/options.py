"""The options that every command on a model shares: what a caller knows about the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..engines.planning import as_facts
from ..errors import ModelError
from ..sizes import Answer, brief, whole_numbers
from ..sizes.condition import ALWAYS, Condition
from ..sizes.solve import satisfiable
from .flow.input_sizes import InputShapes, Sizes, sized
from .formats import read_model
from .formats.onnx.in_memory import Numbers
from .ir.graph import Graph, Value


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """A caller's facts and choices about a model, besides its file and the engine.

    The fields are arguments of :func:`zerostride.audit`, which documents them.

    Attributes:
        form: the form in which the caller has the model, where that is not its file's format:
            "module".
        numbers: of constants that the file lacks, as they are in the caller's object, by name.
    """

    via: str | None = None
    batch_axis: int | None = None
    facts: Any = None
    sizes: Sizes | None = None
    input_shapes: InputShapes | None = None
    layout: str | None = None
    strict: bool = False
    form: str = ""
    numbers: Mapping[str, Numbers] = field(default_factory=dict, compare=False, repr=False)

    def premises(self) -> Condition:
        """The facts as one condition.

        Raises:
            BroadcastError: a fact cannot be read.
            ModelError: the facts contradict one another.
        """
        if self.facts is None:
            return ALWAYS
        condition = as_facts(self.facts)
        if satisfiable(condition) is Answer.NO:
            raise ModelError(f"what is given holds for no sizes: {condition}")
        return condition

    def read(self, model: str | Path) -> Graph:
        """The graph of a file, with the sizes that are given.

        Raises:
            ModelError: the file cannot be read, or the batch axis is no number.
        """
        if self.batch_axis is not None:
            _check_batch_axis(self.batch_axis)
        graph = read_model(model)
        if self.numbers:
            graph = graph.with_values(self._with_numbers)
        return sized(graph, self.sizes, self.input_shapes)

    def _with_numbers(self, value: Value, _: int) -> Value:
        numbers = self.numbers.get(value.name) if value.source is not None else None
        if numbers is None:
            return value
        return replace(value, source=numbers.source, missing=numbers.missing)


def _check_batch_axis(axis: object) -> None:
    if whole_numbers((axis,)) is None:
        words = f"batch_axis is {brief(axis)}; it is a number: 0, 1, ... or -1 for no batch axis"
        raise ModelError(words)


def command_words(options: ModelOptions) -> Iterator[str]:
    """The options of the command line that say the same of the model."""
    if options.via is not None:
        yield from ("--via", options.via)
    if options.batch_axis is not None:
        yield from ("--batch-axis", "none" if options.batch_axis < 0 else str(options.batch_axis))
    for fact in options.facts or ():
        yield from ("--given", str(fact))
    for name, size in (options.sizes or {}).items():
        yield from ("--set", f"{name}={size}")
    shapes = options.input_shapes or {}
    for key, shape in shapes.items() if isinstance(shapes, Mapping) else enumerate(shapes):
        sizes = ",".join("?" if size is None else str(size) for size in shape) or "scalar"
        yield from ("--input-shape", f"{key}={sizes}" if isinstance(key, str) else sizes)
