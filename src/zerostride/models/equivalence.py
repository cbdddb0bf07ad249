"""The result of a comparison of two models for all sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from .report_json import json_number


class Sameness(StrEnum):
    """Whether an output of one model is that of the other, for every value of the open sizes."""

    EQUAL = "equal"
    ROUNDED = "rounded"  # equal but for rounding: sums in another order, constants folded
    DIFFERENT = "different"  # a run shows it
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Region:
    """A part of two models that is not shown to be the same: it begins at tensors that are.

    Attributes:
        first: the nodes of the first model whose operands both models have, and whose results the
            second has not.
        others: the same of the second model.
        count, other_count: how many nodes follow from there to the output, these included.
        begins: tensors that both models have, by their names in the first.
        why: what is not known, in a sentence.
    """

    first: tuple[str, ...]
    others: tuple[str, ...]
    count: int
    other_count: int
    begins: tuple[str, ...]
    why: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Difference:
    """A run in which two outputs differ.

    Attributes:
        sizes: the open sizes of the run, by name.
        inputs: the shapes of its inputs, by name.
        index: where the outputs differ most; empty where their shapes differ.
        ours, theirs: the numbers there, or the shapes.
        error: the largest difference, relative.
        engine: what computed both, with its release.
        detail: the difference in a sentence.
    """

    sizes: Mapping[str, int]
    inputs: Mapping[str, tuple[int, ...]]
    index: tuple[int, ...]
    ours: Any
    theirs: Any
    error: float
    engine: str
    detail: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        data = asdict(self)
        error = json_number(self.error)
        return {**data, "ours": str(self.ours), "theirs": str(self.theirs), "error": error}


@dataclass(frozen=True, slots=True)
class Output:
    """One output of both models.

    Attributes:
        name: its name in the first model.
        other: its name in the second; "" if that lacks it.
        verdict: see :class:`Sameness`.
        region: where it is undecided or different, the part that the difference comes from.
        difference: a run that shows the difference.
    """

    name: str
    other: str
    verdict: Sameness
    region: Region | None = None
    difference: Difference | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "other": self.other,
            "verdict": self.verdict,
            "region": self.region and self.region.as_dict(),
            "difference": self.difference and self.difference.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Two models compared for every value of their open sizes.

    Attributes:
        outputs: one for each output.
        condition: the sizes for which the verdicts hold, in words; "" if they hold for all.
        fixed: sizes that the first model leaves open and the second file fixes, in words, if the
            engines of that file resize models; "" for no such sizes.
        only_ours, only_theirs: sizes for which one model works and the other does not, in words; ""
            if no such sizes are known.
        narrower: a run that shows that the first model works for sizes for which the second does
            not.
        tried: the sizes of the runs that confirm the verdicts, by name.
        engine: what ran them.
        error: the largest relative difference in these runs.
        rounding: how far rounding alone moves the outputs of the first model, relative, as measured
            in one of these runs: every tensor is moved by one rounding, up or down. None where
            nothing is equal but for rounding, or only an engine runs the model.
        arrays: inputs and results of the run that shows a difference.
        regions: ONNX files of an output's region, by "first.onnx" and "second.onnx"; none where the
            nodes are not in an ONNX file as they are, or their constants are large.
    """

    outputs: tuple[Output, ...]
    condition: str = ""
    fixed: str = ""
    only_ours: str = ""
    only_theirs: str = ""
    narrower: Difference | None = None
    tried: tuple[Mapping[str, int], ...] = ()
    engine: str = ""
    error: float = 0.0
    rounding: float | None = None
    arrays: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    regions: Mapping[str, bytes] = field(default_factory=dict, compare=False, repr=False)

    @property
    def verdict(self) -> Sameness:
        """The worst of all outputs."""
        order = list(Sameness)
        order.remove(Sameness.DIFFERENT)
        order.append(Sameness.DIFFERENT)
        if self.narrower is not None:
            return Sameness.DIFFERENT
        verdicts = [output.verdict for output in self.outputs]
        return max(verdicts, key=order.index, default=Sameness.UNDECIDED)

    @property
    def ok(self) -> bool:
        """Whether both mean the same wherever either works."""
        return self.verdict in (Sameness.EQUAL, Sameness.ROUNDED)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "verdict": self.verdict,
            "outputs": [output.as_dict() for output in self.outputs],
            "condition": self.condition,
            "fixed": self.fixed,
            "only_ours": self.only_ours,
            "only_theirs": self.only_theirs,
            "narrower": self.narrower and self.narrower.as_dict(),
            "tried": [dict(sizes) for sizes in self.tried],
            "engine": self.engine,
            "error": json_number(self.error),
            "rounding": None if self.rounding is None else json_number(self.rounding),
        }
