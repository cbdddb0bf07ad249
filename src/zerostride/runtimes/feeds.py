"""A model with the inputs of a user, and random ones for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ZerostrideError
from ..models.execute import execute
from ..models.execute.inputs import check_inputs
from ..models.execute.random_inputs import random_inputs
from ..models.ir.graph import Array, Graph
from ..models.options import ModelOptions


def fed(
    options: ModelOptions,
    file: Path,
    inputs: Mapping[str, Any],
    seed: int,
    example: Sequence[Array] = (),
) -> tuple[Graph, dict[str, Array]]:
    """The graph with the sizes of its inputs, and every input.

    Args:
        options: what is known of the model.
        file: its file.
        inputs: arrays, lists or numbers by name; the others are random.
        seed: of the random inputs.
        example: an array for each of the model's inputs, in order; those by name come first.

    Raises:
        ZerostrideError: an input is unknown or does not fit, or the size of another is not known.
    """
    graph = options.read(file)
    if len(example) == len(graph.inputs):
        pairs = zip(graph.inputs, example, strict=True)
        inputs = {value.name: array for value, array in pairs} | dict(inputs)
    wanted = [value for value in graph.inputs if value.name in inputs]
    arrays = check_inputs(graph, wanted, inputs)
    if inputs:
        shapes = {name: array.shape for name, array in arrays.items()}
        given = options.input_shapes
        named = dict(given) if isinstance(given, Mapping) else {}
        graph = replace(options, input_shapes={**named, **shapes}).read(file)
    arrays = {**arrays, **_drawn(graph, seed, arrays)}
    return graph, {v.name: arrays[v.name] for v in graph.inputs}


#: The most work of a look at what a model makes of its inputs: some seconds.
_LOOK = 20_000


def _drawn(graph: Graph, seed: int, given: Mapping[str, Array]) -> dict[str, Array]:
    """Random inputs of both signs; of none below 0 where the model makes no numbers of those."""
    arrays = random_inputs(graph, seed, given)
    try:
        results = execute(graph, {**given, **arrays}, limit=_LOOK).values()
    except ZerostrideError:  # ops that are not executed here, or a long computation
        return arrays
    if all(np.isfinite(array).all() for array in results if array.dtype.kind in "fc"):
        return arrays
    return random_inputs(graph, seed, given, signed=False)
