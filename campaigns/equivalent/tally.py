"""The counts of a campaign, and the pairs that its table names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .result import COMPARED, DIFFERENT, EQUAL, REFUSED, ROUNDED, UNDECIDED, Result

#: The name of mutants where the optimiser's name would be.
MUTANT = "mutant"
#: What runs show where nothing was run.
NOT_RUN = "not run"


@dataclass
class Tally:
    """The results of a campaign.

    Attributes:
        counts: by who made the second model, the end, and what runs show.
        faults: verdicts that runs contradict.
        undecided: pairs that are undecided, with the reason.
        different: differences in what an optimiser made, with the passes that make them alone.
        regions: undecided outputs, and all outputs that were compared.
    """

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    regions: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, name: str, case: str, results: Sequence[tuple[Result, str]]) -> None:
        """Counts the results of an optimiser's steps.

        Args:
            name: the optimiser, or `MUTANT`.
            case: the model, in words.
            results: each with what runs show: "same", "differs", "fails" or "not run".
        """
        for result, shown in results:
            self._count(name, case, result, shown)
        whole = next((one for one, _ in results if one.names_passes), None)
        if whole is not None and name != MUTANT:
            alone = passes_alone((one.step, one.end) for one, _ in results)
            self.different.append(f"{name} {case}: {whole.why}; {alone}")

    def _count(self, name: str, case: str, result: Result, shown: str) -> None:
        maker = f"{name}: {result.step}" if result.step else name
        if shown == "fails":
            self.counts[maker, "no model", shown] += 1
            return
        self.counts[maker, result.end, shown] += 1
        self.regions[0] += result.regions
        self.regions[1] += result.outputs
        where = f"{maker}, {case}"
        equal = result.end in (EQUAL, ROUNDED)
        if (equal and shown == "differs") or (result.end == DIFFERENT and shown == "same"):
            self.faults.append(f"{where}: {result.end}, and runs show {shown}")
        elif result.end == REFUSED and shown == "same":
            self.faults.append(f"{where}: refused: {result.why}")
        elif result.end == UNDECIDED:
            begins = f", from {result.begins}" if result.begins else ""
            self.undecided.append(f"{where}: runs show {shown}; {result.why}{begins}")

    @property
    def pairs(self) -> int:
        """How many pairs were compared."""
        return sum(n for (_, end, _), n in self.counts.items() if end in COMPARED)

    @property
    def words(self) -> str:
        """The counts in one line."""
        ends: Counter[str] = Counter()
        for (_, end, _), count in self.counts.items():
            ends[end] += count
        listed = ", ".join(f"{count:,} {end}" for end, count in sorted(ends.items()))
        return f"{self.pairs:,} pairs, {len(self.faults)} contradicted by runs: {listed}"


def passes_alone(ends: Iterable[tuple[str, str]]) -> str:
    """The passes that make another meaning alone, in words.

    Args:
        ends: the pass and the end of each step.
    """
    names = [step for step, end in ends if step and end == DIFFERENT]
    return f"alone: {', '.join(names)}" if names else "no pass does it alone"
