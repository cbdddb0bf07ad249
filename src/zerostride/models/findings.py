"""Findings of an audit, a port or a verification, and the report that holds them."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from ..attention.plan import AttentionPlan
from ..core.hooks import render_report
from ..core.plan import Plan
from ..derive.counterexample import Witness
from ..derive.express import Expression
from ..engines.model import Divergence
from ..errors import BroadcastError
from ..sizes.condition import Condition
from .bisection import Bisection, Culprit
from .equivalence import Equivalence
from .ir.memory import uncollected
from .ir.origin import Origin
from .needs import Need
from .reasons import Cause, code_of
from .report_json import json_number, json_text, plan_dict

#: Version of the JSON form. It grows by one when a field changes its meaning or is removed.
SCHEMA = 1


class Verdict(StrEnum):
    """A broadcast's meaning on the target, compared with its meaning in the model."""

    SAME = "same"
    SAME_HERE = "same_here"  # only at these sizes
    DIFFERENT = "different"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One broadcast of the model, judged.

    Attributes:
        node: the node's path.
        op: its op type in the model.
        operands: names and shapes of the operands.
        source: its Plan in the model, an AttentionPlan of an attention, a BroadcastError if the
            model itself is wrong there, None if shapes are not known.
        target: its Plan on the target, or the BroadcastError that the target's rule gives.
        verdict: see :class:`Verdict`.
        reason: a name of `reasons.REASONS`: of :class:`~zerostride.models.reasons.Cause` or of
            :class:`~zerostride.errors.Reason`.
        message: the finding in a sentence.
        fix: the change after which the target has the source's plan, if there is one.
        witness: a counter-example, computed.
        notes: what else a reader should know, such as what older releases did.
        when: with open sizes: the condition under which the target does not mean the same; None
            where sizes do not decide it.
        values: example sizes for which it holds, by name.
        divergences: the rows of the engine's table behind it.
        origin: the line of PyTorch source that the node was exported from, if the file names it.
        source_fix: that line after the fix, as PyTorch code.
    """

    node: str
    op: str
    operands: tuple[tuple[str, tuple[Any, ...] | None], ...]
    source: Plan | AttentionPlan | BroadcastError | None
    target: Plan | AttentionPlan | BroadcastError | None
    verdict: Verdict
    reason: str
    message: str
    fix: Expression | None = None
    witness: Witness | None = None
    notes: tuple[str, ...] = ()
    when: Condition | None = None
    values: Mapping[str, int] | None = None
    divergences: tuple[Divergence, ...] = ()
    origin: Origin | None = None
    source_fix: str | None = None

    @property
    def code(self) -> str:
        """The stable code of the reason, such as ZS103."""
        return code_of(self.reason)

    @property
    def holds(self) -> bool:
        """Whether it means the same at its sizes, for whole numbers that fit on the engine."""
        if self.verdict is not Verdict.SAME_HERE:
            return self.verdict is Verdict.SAME
        if self.reason == Cause.NARROWED:
            kinds = (kind for row in self.divergences for kind in row.dtypes)
            return all(kind.startswith(("int", "uint")) for kind in kinds)
        shapes = (shape for _, shape in self.operands)
        return all(isinstance(size, int) for shape in shapes for size in shape or (None,))

    @property
    def names(self) -> tuple[str, ...]:
        """The operands' names."""
        return tuple(name for name, _ in self.operands)

    def parts(self) -> dict[str, Callable[[], Any]]:
        """The fields of its JSON form, each with the function that computes it."""
        fix, witness, values = self.fix, self.witness, self.values
        return {
            "node": lambda: self.node,
            "op": lambda: self.op,
            "operands": lambda: [{"name": name, "shape": shape} for name, shape in self.operands],
            "source": lambda: plan_dict(self.source),
            "target": lambda: plan_dict(self.target),
            "verdict": lambda: self.verdict,
            "reason": lambda: self.reason,
            "code": lambda: self.code,
            "message": lambda: self.message,
            "fix": lambda: fix and {**fix.as_dict(), "words": fix.describe(self.names)},
            "witness": lambda: witness and _witness_dict(witness),
            "notes": lambda: self.notes,
            "when": lambda: None if self.when is None else str(self.when),
            "values": lambda: None if values is None else dict(values),
            "origin": lambda: self.origin and asdict(self.origin),
            "source_fix": lambda: self.source_fix,
        }

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {key: part() for key, part in self.parts().items()}


def _witness_dict(witness: Witness) -> dict[str, Any]:
    return {
        "shapes": witness.shapes,
        "op": witness.op,
        "index": witness.index,
        "source": json_number(witness.source),
        "target": json_number(witness.target),
    }


def need_dict(need: Need) -> dict[str, Any]:
    """A need for JSON."""
    return {
        "node": need.node_path,
        "op": need.op,
        "condition": str(need.condition),
        "words": need.words,
        "certain": need.certain,
    }


@dataclass(frozen=True, slots=True)
class Change:
    """One node that a port rewrote.

    Attributes:
        node, op: the node.
        by: the name of the pass.
        words: the change, in a sentence.
        before, after: the node in the file, line by line, before and after.
        elements: how many numbers were computed before and after and found equal.
        every_size: whether it gives the same for every size: "equal", "rounded" (equal but for
            rounding) or "undecided" (not proven, or nothing was written).
    """

    node: str
    op: str
    by: str
    words: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    elements: int
    every_size: str = "undecided"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Outcome(StrEnum):
    """An engine's answer, compared with zerostride's own."""

    AGREES = "agrees"
    DIFFERS = "differs"
    REFUSED = "refused"  # the engine refused
    CRASHED = "crashed"  # its process ended, or did not answer in time
    NOT_RUN = "not_run"  # the engine was not asked; the detail says why


@dataclass(frozen=True, slots=True)
class Check:
    """One broadcast, or one output of a model, computed on a real engine.

    Attributes:
        node, op: the computed node; "" and the model's output for a whole model.
        operands: names and shapes of its operands.
        outcome: see :class:`Outcome`.
        detail: the difference, or the engine's message, in a sentence.
        elements: how many numbers were compared.
        error: the largest difference, relative to the larger of 1 and the expected number.
        release: the engine's release that answered.
        cached: whether the answer is one of an earlier run.
    """

    node: str
    op: str
    operands: tuple[tuple[str, tuple[Any, ...] | None], ...]
    outcome: Outcome
    detail: str = ""
    elements: int = 0
    error: float = 0.0
    release: str = ""
    cached: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **{key: value for key, value in asdict(self).items() if key != "operands"},
            "operands": [{"name": name, "shape": shape} for name, shape in self.operands],
            "error": json_number(self.error),
        }


@dataclass(frozen=True, slots=True)
class Conversion:
    """How a model was converted, so that it can be done again.

    Attributes:
        converter: the program and its release; "" for a file that was ported alone.
        digest: the SHA-256 of the model's file; "" for a module.
        options: what a user said of the model, as words of the command line.
        seed: of the random inputs.
        given: whether a user gave inputs.
        inputs: the names of the files with the inputs of each run; none if they are too large.
        floats: the name of the copy in floats that was converted, of a quantised model; or "".
        quantised: the quantised ops of a model that was converted as it is.
    """

    converter: str
    digest: str
    options: tuple[str, ...]
    seed: int
    given: bool
    inputs: tuple[str, ...]
    floats: str = ""
    quantised: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """A report's findings compared with a baseline.

    Attributes:
        accepted: positions in `findings` of those that the baseline has.
        stale: entries of the baseline that the model no longer has, a line each.
    """

    accepted: frozenset[int] = frozenset()
    stale: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"accepted": sorted(self.accepted), "stale": self.stale}


@dataclass(frozen=True, slots=True)
class Unread:
    """One of several models, which could not be read.

    Attributes:
        model: the file.
        detail: why not, in a sentence.
    """

    model: str
    detail: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"ok": False, "reason": "bad_input", "detail": self.detail, "model": self.model}


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The findings of one audit, and what a port or a verification adds to them.

    Attributes:
        model: the file.
        target: the engine that was asked.
        via: the converter whose output is judged, or None.
        release: the release of the engine that was measured.
        findings: one for each node that may broadcast, in the model's order.
        notes: notes on the whole model.
        needs: with open sizes: the model's own needs, node by node.
        command: "audit", "port", "convert", "verify", "bisect" or "equivalent".
        before: of a port, the findings of the model as it was; `findings` are those of the result.
        changes: of a port, the rewrites.
        output: of a port or a conversion, the file that was written, or None.
        checks: of a verification or a conversion, the engine's results.
        baseline: the comparison with a baseline, where one was given.
        bisection: of a bisection, its stages and culprits.
        equivalence: of two models compared for all sizes, the verdict of each output.
        arrival: how the model arrives on the engine, in words: "as pnnx writes it", or "".
        lacks: the ops for which the converter refuses the whole model, each with its nodes.
        conversion: of a conversion, how it was done.
        result: of a port of a model in memory, the ported model: an object of the same kind. None
            for a file, a module and a dry run.
    """

    model: str
    target: str
    via: str | None
    release: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    command: str = "audit"
    before: tuple[Finding, ...] = ()
    changes: tuple[Change, ...] = ()
    output: str | None = None
    checks: tuple[Check, ...] = ()
    baseline: Known | None = None
    bisection: Bisection | None = None
    equivalence: Equivalence | None = None
    arrival: str = ""
    lacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    conversion: Conversion | None = None
    result: Any = field(default=None, compare=False, repr=False)

    @property
    def culprit(self) -> Culprit | None:
        """Of a bisection, the first node that differs; None where both sides agree."""
        culprits = self.bisection.culprits if self.bisection is not None else ()
        return next(iter(culprits), None)

    @property
    def ok(self) -> bool:
        """Whether every broadcast means the same on the target, and its converter lacks no op.

        Of a verification: whether all that ran agrees, and something ran if there was anything.
        Of a conversion: whether every broadcast means the same at the file's sizes and for whole
        numbers that fit, something ran, and all that ran agrees.
        Of a bisection: whether tensors were compared and all agree.
        Of two models: whether they mean the same for every size for which either works.
        """
        if self.equivalence is not None:
            return self.equivalence.ok
        if self.bisection is not None:
            return not self.bisection.culprits and self.bisection.compared > 0
        ran = {check.outcome for check in self.checks} - {Outcome.NOT_RUN}
        if self.command == "verify":
            return ran <= {Outcome.AGREES} and (bool(ran) or not self.checks)
        if self.command == "convert":
            return not self.fresh and ran == {Outcome.AGREES}
        same = all(finding.verdict is Verdict.SAME for finding in self.findings)
        return same and not self.lacks

    @property
    def place(self) -> str:
        """The target and its release, as text."""
        return f"{self.target.partition('@')[0]} {self.release} {self.arrival}".rstrip()

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """Number of findings for each verdict, all verdicts named."""
        counts = Counter(finding.verdict for finding in self.findings)
        return {verdict: counts[verdict] for verdict in Verdict}

    def worst(self) -> Sequence[Finding]:
        """The findings that are not `same`, those that go wrong silently first."""
        order = (Verdict.DIFFERENT, Verdict.REFUSED, Verdict.SAME_HERE, Verdict.UNKNOWN)
        return sorted(
            (finding for finding in self.findings if finding.verdict in order),
            key=lambda finding: order.index(finding.verdict),
        )

    @property
    def fresh(self) -> Sequence[Finding]:
        """The findings that are in the way, in the model's order.

        They are not `same`, and no baseline accepts them. Those that hold for the file that a
        conversion wrote are not in the way.
        """
        accepted = self.baseline.accepted if self.baseline is not None else frozenset()
        proven = self.command == "convert" and self.output is not None
        return [
            finding
            for k, finding in enumerate(self.findings)
            if finding.verdict is not Verdict.SAME
            and k not in accepted
            and not (proven and finding.holds)
        ]

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `docs/schema/report.schema.json` describes it."""
        data = self.fields()
        data["findings"] = [finding.as_dict() for finding in self.findings]
        data["before"] = [finding.as_dict() for finding in self.before]
        return data

    def fields(self) -> dict[str, Any]:
        """The same, with empty lists for the findings."""
        data = {
            "schema": SCHEMA,
            "model": self.model,
            "target": self.target,
            "via": self.via,
            "release": self.release,
            "ok": self.ok,
            "counts": self.counts,
            "findings": [],
            "notes": self.notes,
            "needs": [need_dict(need) for need in self.needs],
            "command": self.command,
            "before": [],
            "changes": [change.as_dict() for change in self.changes],
            "output": self.output,
            "checks": [check.as_dict() for check in self.checks],
        }
        if self.lacks:
            data["lacks"] = self.lacks
        if self.conversion is not None:
            data["conversion"] = asdict(self.conversion)
        if self.baseline is not None:
            data["baseline"] = self.baseline.as_dict()
        if self.bisection is not None:
            data["bisection"] = self.bisection.as_dict()
        if self.equivalence is not None:
            data["equivalence"] = self.equivalence.as_dict()
        return data

    def to_json(self, indent: int | None = 2) -> str:
        """The report as JSON, its form numbered by "schema"."""
        with uncollected():
            return json_text(self, indent)

    def to_html(self) -> str:
        """The report as one self-contained HTML document."""
        return render_report(self, "html")

    def to_markdown(self) -> str:
        """The report as Markdown for a pull request, short enough for a comment."""
        return render_report(self, "markdown")

    def __str__(self) -> str:
        with uncollected():
            return render_report(self, "text")

    def __repr__(self) -> str:
        return (
            f"<Report: {self.command} of {self.model!r} on {self.target!r}, {len(self.findings)} "
            f"findings, ok={self.ok}; print it to read them>"
        )

    def _repr_html_(self) -> str:
        """The document in a frame, for notebooks: its styles stay its own."""
        page = html.escape(self.to_html())
        return f'<iframe srcdoc="{page}" style="width:100%;height:32em;border:0"></iframe>'
