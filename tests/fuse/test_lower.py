"""Graphs as programs: run with NumPy they give what the graphs give, in the phases they should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphs import random_graph
from numpy_program import evaluate_program

from zerostride.fuse.graph import Graph
from zerostride.fuse.lower import lower
from zerostride.fuse.program import Program
from zerostride.fuse.reference import evaluate


def check(graph: Graph, operands: list[Any]) -> Program:
    """The program, which has to give what the reference gives."""
    program = lower(graph)
    expected = evaluate(graph, operands)
    for given, wanted in zip(evaluate_program(program, operands), expected, strict=True):
        wanted = np.asarray(wanted)
        assert (given.shape, given.dtype) == (wanted.shape, wanted.dtype)
        same = np.array_equal(given, wanted, equal_nan=wanted.dtype.kind == "f")
        # Sums of what tanh gives are taken in another order.
        assert same or np.allclose(given, wanted, rtol=1e-3, atol=1e-6, equal_nan=True)
    return program


@pytest.mark.parametrize("block", range(12))
def test_random_graphs(block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        graph, operands = random_graph(seed)
        try:
            check(graph, operands)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
