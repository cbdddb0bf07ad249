"""The result of a bisection: its stages, its culprits, and the files that repeat them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from ..core.plan import Plan
from .ir.graph import Array
from .ir.origin import Origin
from .judging import Judged
from .report_json import json_number, plan_dict


class How(StrEnum):
    """Why two tensors are taken for one."""

    NAME = "name"
    VALUE = "value"
    POSITION = "position"
    NONE = "none"  # the other side lacks the tensor: fused, or left out


@dataclass(frozen=True, slots=True)
class Stage:
    """One tensor of the model, and the tensor of the other side that holds it.

    Attributes:
        tensor: its name in the model.
        node, op: the node that makes it.
        other: the name on the other side; "" if it is not there.
        how: see :class:`How`.
        sure: 0 to 1: how sure the match is.
        layout: how the other side holds its numbers, in words; "" where the shapes are equal.
        judged: the other side compared with the node's meaning on the other side's own operands;
            None where nothing is compared.
        drift: the largest difference between the two sides; None where one of them lacks it.
    """

    tensor: str
    node: str
    op: str
    other: str = ""
    how: How = How.NONE
    sure: float = 0.0
    layout: str = ""
    judged: Judged | None = None
    drift: float | None = None

    @property
    def agrees(self) -> bool:
        """Whether nothing is wrong here."""
        return self.judged is None or self.judged.agrees

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        judged = self.judged
        return {
            "tensor": self.tensor,
            "node": self.node,
            "op": self.op,
            "other": self.other,
            "how": self.how,
            "sure": self.sure,
            "layout": self.layout,
            "difference": None if judged is None else judged.difference,
            "error": None if judged is None else json_number(judged.error),
            "drift": None if self.drift is None else json_number(self.drift),
        }


@dataclass(frozen=True, slots=True)
class Repro:
    """The operands of a culprit, with what is expected of them and what the engine gives.

    Attributes:
        arrays: the operands `x0`, `x1`, constants `c0`, `c1`, and the two results, `expected` and
            `actual`.
        script: computes the culprit again on either engine, from the files of `save`.
        model: the culprit alone as an ONNX file, if it can be cut out.
    """

    arrays: Mapping[str, Array]
    script: str
    model: bytes | None = field(default=None, repr=False)

    def save(self, folder: str | Path) -> None:
        """Writes `repro.npz`, `repro.py` and `repro.onnx` into a folder."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = dict(self.arrays)
        np.savez(place / "repro.npz", **arrays)
        (place / "repro.py").write_text(self.script, encoding="utf-8")
        if self.model is not None:
            (place / "repro.onnx").write_bytes(self.model)


@dataclass(frozen=True, slots=True)
class Culprit:
    """The first node whose operands agree and whose result does not.

    Attributes:
        node, op: the node of the model.
        nodes: the nodes between the last tensors that both sides have and this one, itself
            included.
        tensor, other: the tensor's names on the two sides.
        inputs: names and shapes of the operands that both sides have.
        error: the largest difference, relative; inf without numbers.
        judged: the comparison.
        side: the side that is wrong: "model" or "other".
        cause: why, in a sentence; "" if it is not known.
        fix: what to do, in words; "" if it is not known.
        plans: the node's broadcast as the model means it and as the other side reads it, if the
            node is one and both are known.
        names: of the operands of the plans.
        alone: what the smallest part does that is converted and run alone, where no cause is known;
            "" if none was.
        origin: the line of PyTorch source that the node was exported from, if the file names it.
        repro: the numbers; None where the engine gave none.
    """

    node: str
    op: str
    nodes: tuple[str, ...]
    tensor: str
    other: str
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    error: float
    judged: Judged
    side: str = "other"
    cause: str = ""
    fix: str = ""
    plans: tuple[Plan, Plan] | None = None
    names: tuple[str, ...] = ()
    alone: str = ""
    origin: Origin | None = None
    repro: Repro | None = field(default=None, compare=False, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        source, target = self.plans or (None, None)
        return {
            "node": self.node,
            "op": self.op,
            "nodes": self.nodes,
            "tensor": self.tensor,
            "other": self.other,
            "inputs": [{"name": name, "shape": shape} for name, shape in self.inputs],
            "error": json_number(self.error),
            "difference": self.judged.difference,
            "wrong": self.judged.wrong,
            "elements": self.judged.elements,
            "detail": self.judged.detail,
            "side": self.side,
            "cause": self.cause,
            "fix": self.fix,
            "alone": self.alone,
            "origin": self.origin and asdict(self.origin),
            "source": plan_dict(source),
            "target": plan_dict(target),
        }


@dataclass(frozen=True, slots=True)
class Bisection:
    """The stages of one side against the model's meaning, and the culprits."""

    stages: tuple[Stage, ...]
    culprits: tuple[Culprit, ...]
    notes: tuple[str, ...] = ()

    @property
    def compared(self) -> int:
        """The number of compared tensors."""
        return sum(stage.judged is not None for stage in self.stages)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "stages": [stage.as_dict() for stage in self.stages],
            "culprits": [culprit.as_dict() for culprit in self.culprits],
        }


#: The array of a tensor by its name, or None.
Fetch = Callable[[str], "Array | None"]
