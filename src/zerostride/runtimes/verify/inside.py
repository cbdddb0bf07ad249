"""The tensors inside a model and inside its conversion, compared as `bisect` does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from ...errors import ZerostrideError
from ...models.bisect.sides import has_numbers_for_names
from ...models.bisection import Bisection, Culprit, How
from ...models.findings import Check, Outcome
from ...models.formats import read_model
from ...models.ir.graph import Graph
from ...models.options import ModelOptions
from ..bisect.run import FilePair, bisected, engine_of
from ..feeds import Fed
from ..files import is_sealed
from .compare import WIDEST


def check_inside(
    checks: Sequence[Check],
    model: Path,
    other: Path,
    engine: str,
    given: Fed,
    options: ModelOptions,
    seconds: float,
    pythons: dict[str, str] | None,
    approximated: Mapping[str, str] = MappingProxyType({}),
) -> list[Check]:
    """The checks of the outputs, and one more for each node inside that differs.

    Where all outputs agree, a node counts only if the conversion has a tensor of its name: which
    tensor stands for another one is a guess otherwise.

    If no node does, and the output itself was judged, small differences of all nodes explain one of
    an output, up to `WIDEST`: some engines approximate an exponential or an error function. An
    engine that hands out no tensors, and a model whose own engine is not installed, leave the
    checks as they are.

    Args:
        checks: of the outputs.
        model, other: the model's file, and the conversion that ran.
        engine: what runs the conversion.
        given: the inputs.
        options, pythons: as for :func:`~zerostride.bisect`.
        seconds: for one answer of an engine.
        approximated: by output, the approximations of the engine that explain a larger difference.
    """
    stopped = any(check.outcome in (Outcome.REFUSED, Outcome.CRASHED) for check in checks)
    if stopped or is_sealed(other):
        return list(checks)
    agree = all(check.outcome is Outcome.AGREES for check in checks)
    if agree and not _share_names(given.graph, other):
        return list(checks)
    try:
        engines = engine_of(model, None), engine_of(other, engine)
        pair = FilePair(model, other, engines, options, seconds, pythons)
        runs = [bisected(pair, given, inputs, why=False).bisection for inputs in given.runs]
    except ZerostrideError:
        return list(checks)
    compared = [run for run in runs if run is not None]
    sure = {s.tensor for run in compared for s in run.stages if s.how is How.NAME}
    culprits = [
        culprit
        for run in compared
        for culprit in run.culprits
        if culprit.side == "other" and (culprit.tensor in sure or not agree)
    ]
    if culprits:
        return [*checks, *_differing(culprits, {check.op for check in checks}, checks[0].release)]
    if len(compared) < len(runs):
        return list(checks)
    right = set.intersection(*map(_right, compared))
    return [
        _explained(check, approximated.get(check.op, "")) if check.op in right else check
        for check in checks
    ]


def _share_names(graph: Graph, other: Path) -> bool:
    """Whether a conversion has tensors inside by the model's names."""
    ends = {value.name for value in (*graph.inputs, *graph.outputs)}
    own = {value.name for node in graph.nodes for value in node.outputs} - ends
    converted = read_model(other)
    if has_numbers_for_names([value.name for value in converted.outputs]):
        own = {name for name in own if not name.isdecimal()}
    theirs = (v for node in converted.nodes for v in node.outputs)
    return any(name in own for value in theirs for name in (value.name, *value.aliases))


def _differing(culprits: Iterable[Culprit], outputs: set[str], release: str) -> Iterable[Check]:
    """A check for each node that differs, once."""
    seen = set(outputs)
    for culprit in culprits:
        if culprit.tensor in seen or culprit.judged is None:
            continue
        seen.add(culprit.tensor)
        judged = culprit.judged
        detail = f"inside: {judged.wrong} of {judged.elements} numbers differ: {judged.detail}"
        numbers = (Outcome.DIFFERS, detail, judged.elements, judged.error)
        yield Check(culprit.node, culprit.op, culprit.inputs, *numbers, release)


def _right(run: Bisection) -> set[str]:
    """The tensors that were judged; none of them if one is wrong."""
    judged = [stage for stage in run.stages if stage.judged is not None]
    return {stage.tensor for stage in judged} if all(stage.agrees for stage in judged) else set()


def _explained(check: Check, approximated: str = "") -> Check:
    if check.outcome is not Outcome.DIFFERS or not check.elements:
        return check
    if approximated:
        return replace(check, outcome=Outcome.AGREES, detail=approximated)
    if check.error > WIDEST:
        return check
    detail = f"no node inside differs; small differences of all add up to {check.error:.2g}"
    return replace(check, outcome=Outcome.AGREES, detail=detail)
