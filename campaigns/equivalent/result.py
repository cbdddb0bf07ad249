"""The result of a step of an optimiser: how it ended, and the verdict on its model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

EQUAL, ROUNDED, DIFFERENT, UNDECIDED = "equal", "rounded", "different", "undecided"
#: The ends of pairs that were compared.
COMPARED = (EQUAL, ROUNDED, DIFFERENT, UNDECIDED)
#: The pair cannot be compared; the step made no model; it left the model as it was.
REFUSED, NOT_MADE, UNCHANGED = "refused", "not made", "unchanged"
ENDS = (*COMPARED, REFUSED, NOT_MADE, UNCHANGED)
#: The name of the step that reads and writes a model without any pass.
NOTHING = "read and written"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one step of an optimiser on a model.

    Attributes:
        step: the pass; "" for the whole optimiser.
        end: one of `ENDS`.
        why: the run that shows a difference, the reason of another end, or "".
        outputs: how many outputs were compared.
        regions: how many of them are undecided.
        first, other: the nodes of the largest undecided region in each model.
        begins: the first nodes of that region in the first model.
        nodes: the nodes of the first model, where it was compared.
        seconds: of the comparison.
    """

    step: str
    end: str
    why: str = ""
    outputs: int = 0
    regions: int = 0
    first: int = 0
    other: int = 0
    begins: str = ""
    nodes: int = 0
    seconds: float = 0.0

    @property
    def names_passes(self) -> bool:
        """Whether it is a whole that made another meaning, so that passes are asked which."""
        return not self.step and self.end == DIFFERENT

    def as_dict(self) -> dict[str, Any]:
        """For JSON: without what is as it is by default."""
        default = {field.name: field.default for field in fields(self)}
        default["end"] = None
        default["step"] = None
        return {name: value for name, value in asdict(self).items() if value != default[name]}


#: A row of the record: a model, an optimiser, and the results of its steps.
Row = dict[str, Any]


def results_of(row: Row, passes: Sequence[str]) -> list[Result]:
    """The results of a row's steps in order, those that left the model as it was included.

    Args:
        row: of a model and an optimiser.
        passes: the names of the optimiser's passes.
    """
    known = {one["step"]: Result(**one) for one in row["results"]}
    names = ["", NOTHING, *passes][: row["steps"]]
    return [known.get(name, Result(name, UNCHANGED)) for name in names]
