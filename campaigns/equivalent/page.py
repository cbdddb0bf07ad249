"""docs/optimisers.md: what each optimiser and each pass made of real models.

Only the standard library is needed: docs/generate.py makes the page of docs/optimisers.json.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .result import COMPARED, DIFFERENT, ENDS, NOT_MADE, REFUSED, UNDECIDED, Result, results_of

COMMAND = "python -m campaigns equivalent --passes --write MODEL.onnx ..."
_ABOUT = """An optimiser makes a new file of a model. Each real model here was compared with what
each optimiser made of it, and with what each pass made alone, for every value of its open sizes
([equivalent.md](equivalent.md) has the verdicts). A pass that left the nodes, constants, inputs and
outputs as they were is `unchanged`, without a comparison. A comparison that takes longer than
{limit:g} s is `undecided`. `different` always has a run that shows it. NchwcTransformer of ONNX
Runtime is left out: it writes weights in blocks as wide as the vectors of one processor."""
_AGAIN = """Repeat it with models of your own; a second call goes on where the first stopped:

```sh
{command}
python docs/generate.py
```
"""
_COLUMNS = (*ENDS, "undecided pairs", "undecided outputs")


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one step of an optimiser for a model."""

    model: str
    optimiser: str
    result: Result

    @property
    def name(self) -> str:
        """The optimiser, with the pass."""
        step = self.result.step
        return f"{self.optimiser}: {step}" if step else self.optimiser


def page(record: Path) -> str:
    """The page of a record; of no record, a page without results."""
    data: dict[str, Any] = json.loads(record.read_text("utf-8")) if record.exists() else {}
    return "\n".join(_lines(data)) + "\n"


def steps_of(data: dict[str, Any]) -> list[Step]:
    """The results of finished rows."""
    return [
        Step(row["model"], row["optimiser"], result)
        for row in data.get("rows", ())
        if row["done"]
        for result in results_of(row, data["optimisers"][row["optimiser"]]["passes"])
    ]


def _lines(data: dict[str, Any]) -> Iterator[str]:
    steps = steps_of(data)
    whole = [step for step in steps if not step.result.step]
    passes = [step for step in steps if step.result.step]
    yield from ("# Optimisers on real models", "")
    yield from ("<!-- Made by docs/generate.py from docs/optimisers.json. -->", "")
    yield from (_ABOUT.format(limit=data.get("seconds", 120)), "")
    yield from _summary(data, steps)
    yield from ("", _AGAIN.format(command=COMMAND))
    yield from ("## By optimiser", "")
    yield from _table(("optimiser", *_COLUMNS), _sums(whole, lambda step: step.optimiser))
    yield from ("", "Passes alone:", "")
    yield from _table(("passes of", *_COLUMNS), _sums(passes, lambda step: step.optimiser))
    yield from ("", "## By pass", "", "Passes that changed a model.", "")
    changed = {step.name for step in passes if step.result.end in (*COMPARED, REFUSED, NOT_MADE)}
    listed = [step for step in passes if step.name in changed]
    yield from _table(("pass", *_COLUMNS), _sums(listed, lambda step: step.name))
    yield from ("", "## By model", "")
    yield from _by_model(data, whole)
    yield from _named(steps)


def _summary(data: dict[str, Any], steps: Sequence[Step]) -> Iterator[str]:
    ends = Counter(step.result.end for step in steps)
    pairs = sum(ends[end] for end in COMPARED)
    releases = {
        row["package"]: row["release"] for _, row in sorted(data.get("optimisers", {}).items())
    }
    models = {step.model for step in steps}
    regions, outputs = _regions(steps)
    counts = ", ".join(f"{ends[end]:,} {end}" for end in COMPARED)
    yield f"In all: {len(models)} models, {pairs:,} pairs compared: {counts}. "
    yield (
        f"{_share(ends[UNDECIDED], pairs)} of the pairs and {_share(regions, outputs)} of their "
        "outputs are undecided."
    )
    if releases:
        named = ", ".join(f"{package} {release}" for package, release in releases.items())
        yield from ("", f"Measured with {named}.")
    skipped = data.get("skipped", {})
    if skipped:
        yield from ("", f"{len(skipped)} larger models were left out: {', '.join(skipped)}.")


def _regions(steps: Iterable[Step]) -> tuple[int, int]:
    """Undecided outputs, and all outputs that were compared."""
    results = [step.result for step in steps]
    lost = sum(one.end == UNDECIDED and not one.outputs for one in results)
    return (
        sum(one.regions for one in results) + lost,
        sum(one.outputs for one in results) + lost,
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def _sums(steps: Sequence[Step], key: Any) -> Iterator[tuple[str, ...]]:
    """The counts of each group of steps, and of all."""
    groups: dict[str, list[Step]] = {}
    for step in steps:
        groups.setdefault(key(step), []).append(step)
    for name, group in [*sorted(groups.items()), ("all", list(steps))]:
        ends = Counter(step.result.end for step in group)
        pairs = sum(ends[end] for end in COMPARED)
        regions, outputs = _regions(group)
        shares = (_share(ends[UNDECIDED], pairs), _share(regions, outputs))
        yield (name, *(f"{ends[end]:,}" for end in ENDS), *shares)


def _by_model(data: dict[str, Any], whole: Sequence[Step]) -> Iterator[str]:
    names = sorted(data.get("optimisers", {}))
    ends = {(step.model, step.optimiser): step.result.end for step in whole}
    models = sorted({step.model for step in whole})
    rows = ((model, *(ends.get((model, name), "") for name in names)) for model in models)
    yield from _table(("model", *names), rows)


def _named(steps: Sequence[Step]) -> Iterator[str]:
    """The pairs that are different, undecided or not compared, each with its reason."""
    alone: dict[tuple[str, str], list[str]] = {}
    for step in steps:
        if step.result.step and step.result.end == DIFFERENT:
            alone.setdefault((step.model, step.optimiser), []).append(step.result.step)
    yield from ("", "## Different", "")
    rows = (
        (step.model, step.optimiser, step.result.why, _alone(alone, step))
        for step in steps
        if step.result.names_passes
    )
    yield from _table(("model", "optimiser", "a run shows", "passes that do it alone"), rows)
    whole = {(step.model, step.optimiser) for step in steps if step.result.names_passes}
    others = (
        (step.model, step.name, step.result.why)
        for step in steps
        if step.result.step
        and step.result.end == DIFFERENT
        and (step.model, step.optimiser) not in whole
    )
    yield from ("", "A pass alone is different, and the whole optimiser is not:", "")
    yield from _table(("model", "pass", "a run shows"), others)
    yield from ("", "## Undecided", "")
    rows_of_regions = (
        (step.model, step.name, _region(step.result), step.result.why)
        for step in steps
        if step.result.end == UNDECIDED
    )
    yield from _table(("model", "by", "nodes", "reason"), rows_of_regions)
    yield from ("", "## Not compared", "")
    left = (
        (step.model, step.name, step.result.end, step.result.why)
        for step in steps
        if step.result.end in (REFUSED, NOT_MADE)
    )
    yield from _table(("model", "by", "end", "reason"), left)


def _alone(alone: dict[tuple[str, str], list[str]], step: Step) -> str:
    return ", ".join(alone.get((step.model, step.optimiser), ())) or "no pass does it alone"


def _region(result: Result) -> str:
    """How large the largest undecided region is."""
    return f"{result.first} of {result.nodes}" if result.nodes else ""


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    for row in rows:
        cells = (cell.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;") for cell in row)
        lines.append(f"| {' | '.join(cells)} |")
    return lines if len(lines) > 2 else ["None."]
