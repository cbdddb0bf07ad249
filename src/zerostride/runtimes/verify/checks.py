"""A model compared with a real engine: each of its broadcasts, or the whole model."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...engines.table import find_engine
from ...engines.versions import warn_if_unmeasured
from ...errors import ZerostrideError
from ...models.audit.audited import drops_batch
from ...models.audit.judge import BATCHLESS
from ...models.audit.run import audit_graph
from ...models.findings import Check, Finding, Outcome, Report, Verdict
from ...models.flow.input_sizes import InputShapes, Sizes
from ...models.flow.resolved import resolved
from ...models.formats import lowered, module_of
from ...models.formats.onnx.sites import Site
from ...models.ir.graph import Graph
from ...models.options import ModelOptions
from ...models.reasons import Cause
from ...models.transport.batch import BatchAxes, batch_axes
from ..probe.isolation import CASE_SECONDS
from .cache import Cache
from .compare import Agreement, compare, tolerance
from .process import Process, Reply, ReplyKind, leave, start
from .runners import MODULES
from .sites import Plain, Skip, fill, prepare
from .task import key_of
from .whole_model import check_whole

Progress = Callable[[int, int], None]
#: Seconds for a whole model.
MODEL_SECONDS = 300.0
#: The limit of one call, in elements of operands and results; each question counts as so many more,
#: for the cost of a call.
MOST_WORK = 1 << 35
ASKING = 1 << 22
_OF_REPLY = {
    ReplyKind.REFUSED: Outcome.REFUSED,
    ReplyKind.CRASHED: Outcome.CRASHED,
    ReplyKind.ABSENT: Outcome.NOT_RUN,
}


def verify(
    model: str | Path,
    engine: str,
    *,
    whole: bool = False,
    against: str | Path | None = None,
    node: str | None = None,
    seed: int = 0,
    timeout: float | None = None,
    cases: int = 1,
    cache: bool = True,
    batch_axis: int | None = None,
    facts: Any = None,
    sizes: Sizes | None = None,
    input_shapes: InputShapes | None = None,
    pythons: dict[str, str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Runs every broadcast of a model on a real engine, or the model as a whole.

    Each broadcast becomes one op in the engine's own terms, as the audit has it, with the node's
    shapes and random operands; its numbers are compared with those that zerostride computes by the
    model's own rule. Engines run in a child process: a crash or a hang is an outcome.

    Args:
        model: a model file.
        engine: an engine that runs here.
        whole: run the file itself, not its broadcasts.
        against: run this file, a conversion of the model, instead of the model; implies `whole`.
        node: check this node alone, named as in a finding.
        seed: of the random operands.
        timeout: seconds for one answer; by default 20, for a whole model 300. Loading the engine
            may take 6 times as long: at least 60 seconds, at most 240.
        cases: how many random operands each broadcast gets.
        cache: use the answers of earlier runs: equal tasks on one release answer equally.
        batch_axis, facts, sizes, input_shapes: as for :func:`~zerostride.audit`.
        pythons: interpreters by engine, for engines that need an environment of their own.
        progress: called with the number of checks done and of all.

    Returns:
        A report with the audit's findings for that engine, and a check for each of them. What one
        call may ask is bounded (2^35 elements, or 8,192 questions); later nodes are `not_run`.

    Raises:
        ModelError: the file cannot be read.
        ZerostrideError: the engine is not installed or does not run here, or there is no such node.
        BroadcastError: there is no such engine.
    """
    row = find_engine(engine)
    if engine not in MODULES:
        raise ZerostrideError(f"{engine} does not run here; these do: {', '.join(MODULES)}")
    if cases < 1:
        raise ZerostrideError(f"cases={cases}; it is 1 or more")
    warn_if_unmeasured(engine)
    options = ModelOptions("none", batch_axis, facts, sizes, input_shapes)
    graph = options.read(model)
    report = audit_graph(graph, row, options)
    whole = whole or against is not None
    findings = report.findings
    if node is not None and not whole:
        findings = tuple(finding for finding in findings if finding.node == node)
    process = start(engine, timeout or (MODEL_SECONDS if whole else CASE_SECONDS), pythons)
    try:
        if whole:
            checks, notes = check_whole(graph, Path(against or model), process, seed, batch_axis)
        else:
            graph = resolved(graph, options.premises())[0]
            keeper = Cache(engine, process.version, on=cache)
            run = _Run(process, keeper, seed, cases, MOST_WORK)
            batch = BatchAxes()
            if drops_batch(graph, engine):
                batch = batch_axes(lowered(graph), batch_axis)
            checks = run.all(_sites(graph, node), findings, graph, batch, progress)
            notes = ()
            keeper.trim()
    finally:
        leave(process)
    loud = () if whole else surprises(findings, checks)
    return replace(
        report,
        findings=findings,
        notes=(*loud, *report.notes, *notes),
        command="verify",
        checks=tuple(checks),
        release=process.version or report.release,
    )


def _sites(graph: Graph, node: str | None) -> list[Site]:
    module = module_of(graph)
    sites = [site for site in map(module.find_site, graph.nodes) if site is not None]
    if node is None:
        return sites
    named = [site for site in sites if site.node.path == node]
    if not named:
        near = difflib.get_close_matches(node, [site.node.path for site in sites], 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ZerostrideError(f"{graph.path}: no node {node!r} broadcasts{hint}")
    return named


def surprises(findings: Sequence[Finding], checks: Sequence[Check]) -> tuple[str, ...]:
    """The disagreements of audit and engine; a `same` that differs is the most serious."""
    bad = (Outcome.DIFFERS, Outcome.REFUSED, Outcome.CRASHED)
    notes = []
    for finding, check in zip(findings, checks, strict=True):
        if finding.verdict is Verdict.SAME and check.outcome in bad:
            notes.append(
                f"WRONG VERDICT: the audit says {finding.node!r} means the same on the engine, "
                f"which {check.outcome}: {check.detail}; please report it with the model"
            )
    for finding, check in zip(findings, checks, strict=True):
        other = finding.verdict in (Verdict.DIFFERENT, Verdict.REFUSED)
        if other and check.outcome is Outcome.AGREES:
            notes.append(
                f"the audit says {finding.node!r} is {finding.verdict} ({finding.reason}), and "
                "with these numbers the engine agrees"
            )
    return tuple(notes)


_USED_UP = "the work that one call may take is used up; check this node alone (node=, --node)"


@dataclass(slots=True)
class _Run:
    """The checks of one model. Equal tasks run once."""

    process: Process
    cache: Cache
    seed: int
    cases: int
    left: int

    def all(
        self,
        sites: Sequence[Site],
        findings: Sequence[Finding],
        graph: Graph,
        batch: BatchAxes,
        progress: Progress | None,
    ) -> list[Check]:
        """A check for each site, in order; `findings` are the audit's of the same sites."""
        engine = find_engine(self.process.engine)
        answers: dict[str, tuple[Agreement, bool]] = {}
        checks = []
        for done, (site, finding) in enumerate(zip(sites, findings, strict=True)):
            try:
                if finding.reason == Cause.FOLDED:
                    raise Skip(finding.message)
                plain = prepare(site, engine, batch, graph)
                checks.append(self._check(plain, answers))
            except Skip as reason:
                checks.append(_check_of(site, Agreement(Outcome.NOT_RUN, str(reason), 0, 0.0)))
            except MemoryError as error:
                detail = f"its operands do not fit into memory: {error}"
                checks.append(_check_of(site, Agreement(Outcome.NOT_RUN, detail, 0, 0.0)))
            if progress is not None:
                progress(done + 1, len(sites))
        return checks

    def _check(self, plain: Plain, answers: dict[str, tuple[Agreement, bool]]) -> Check:
        key = self._key(plain)
        if key not in answers:
            # Cached answers count too, so the limit does not depend on earlier calls.
            self._spend(plain)
            kept = self.cache.get(key)
            answers[key] = (
                (kept, True) if kept is not None else (self._carry_out(plain, key), False)
            )
        answer, cached = answers[key]
        if plain.note:
            answer = replace(answer, detail="; ".join(filter(None, (answer.detail, plain.note))))
        return _check_of(plain.site, answer, self.process.version, cached=cached)

    def _spend(self, plain: Plain) -> None:
        """Counts a question; Skip if it exceeds the limit."""
        results = (value.shape for value in plain.site.node.outputs)
        sizes = [*plain.shapes, *(shape for shape in results if shape is not None)]
        whole = [math.prod(n for n in shape if isinstance(n, int)) for shape in sizes]
        work = self.cases * (ASKING + sum(whole))
        if work > self.left:
            raise Skip(_USED_UP)
        self.left -= work

    def _key(self, plain: Plain) -> str:
        """Everything that the operands, the task and the meaning depend on."""
        site = plain.site
        rule = (site.rule.name, sorted((k, repr(v)) for k, v in site.attributes.items()))
        meant = [
            rule,
            site.stands_for,
            plain.shapes,
            plain.dtypes,
            plain.engine_shapes,
            plain.result,
        ]
        attributes = sorted((k, repr(v)) for k, v in site.node.attributes.items())
        head = key_of(plain.task, ())
        return repr((head, meant, attributes, site.node.version, self.seed, self.cases))

    def _carry_out(self, plain: Plain, key: str) -> Agreement:
        """The first case that does not agree; if all agree, the sum of their elements."""
        elements, error = 0, 0.0
        for case in range(self.cases):
            arrays, expected = fill(plain, self.seed + case)
            reply = self.process.carry_out(plain.task, arrays)
            answer = self._judged(plain, reply, expected)
            if answer.outcome is not Outcome.AGREES:
                break
            elements, error = elements + answer.elements, max(error, answer.error)
            answer = replace(answer, elements=elements, error=error)
        self.cache.put(key, answer)
        return answer

    def _judged(self, plain: Plain, reply: Reply, expected: Any) -> Agreement:
        if reply.answer is not ReplyKind.RESULT:
            return Agreement(_OF_REPLY[reply.answer], reply.message, 0, 0.0)
        engine = self.process.engine
        source = plain.site.node.domain
        most = tolerance(engine, plain.op, expected.dtype, compound=plain.compound, source=source)
        return compare(expected, reply.arrays[0], most, any_rank=engine in BATCHLESS)


def _check_of(
    site: Site, answer: Agreement, release: str = "", *, cached: bool = False
) -> Check:  # fmt: skip
    return Check(
        site.node.path,
        site.node.op,
        tuple((part.name, part.shape) for part in site.operands),
        answer.outcome,
        answer.detail,
        answer.elements,
        answer.error,
        release,
        cached,
    )


__all__ = ["surprises", "verify"]
