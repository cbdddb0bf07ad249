"""The tensors of the other side, which a walk compares, and the faults that it finds there."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ..bisection import Fetch
from ..execute.part import Part
from ..format_table import lowered
from ..ir.graph import Array, Graph, Node
from ..judging import Judged


@dataclass(frozen=True, slots=True)
class Other:
    """The tensors of the other side.

    Attributes:
        names: its computed tensors, in its order.
        fetch: reads one.
        failures: why a tensor has no numbers, by its name.
        outputs: the tensors that are its outputs, in order.
        aliases: its name for a tensor, by each other name that its file gives it.
        inputs: the arrays that it was given, by its names.
        ops: the ops in ONNX's words that make a tensor, by its name.
        approximated: how far its results of an op may be from the exact ones (`judging`).
    """

    names: tuple[str, ...]
    fetch: Fetch
    failures: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Array] = field(default_factory=dict)
    ops: Mapping[str, frozenset[str]] = field(default_factory=dict)
    approximated: Mapping[str, float] = field(default_factory=dict)


def has_numbers_for_names(outputs: Collection[str]) -> bool:
    """Whether a converter gave tensors numbers for names: pnnx does, and calls the outputs out0.

    A model may have such names itself: its tensor 7 is not pnnx's tensor 7.
    """
    return bool(outputs) and all(re.fullmatch(r"out\d+", name) for name in outputs)


def ops_of(graph: Graph, node: Node) -> frozenset[str]:
    """The ops in ONNX's words that a node stands for."""
    return frozenset(part.op for part in lowered(replace(graph, nodes=(node,))).nodes)


@dataclass(frozen=True, slots=True)
class Fault:
    """A tensor that differs though the operands of its part agree."""

    part: Part
    other: str
    judged: Judged
    values: Mapping[int, Array]
    expected: Array | None
    actual: Array | None
