"""A finding as labelled parts, made once: text, HTML and Markdown print them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..attention.plan import AttentionPlan
from ..core.plan import Plan
from ..derive.counterexample import Witness
from ..derive.explain import explain
from ..errors import BroadcastError
from ..models.findings import Finding
from ..models.sources import Evidence, sources_of
from .words import after_fix, mark_of, names_for, readable, refusal, shapes_text, shown

#: The label of the condition on sizes; text leaves it out, since the message has it.
WHERE = "not the same where"


@dataclass(frozen=True, slots=True)
class Section:
    """A labelled sentence in spans, each a text and its style: code, good, bad, fix or none."""

    label: str
    spans: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The sentence."""
        return "".join(text for text, _ in self.spans)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plan or a refusal, with its title and the names of its operands."""

    title: str
    plan: Plan | AttentionPlan | BroadcastError
    names: Sequence[str]
    finding: Finding

    def lines(self) -> list[str]:
        """The drawing as text: its title, and indented lines."""
        if isinstance(self.plan, Plan):
            drawn = explain(self.plan, self.names).splitlines()
        else:
            drawn = refusal(self.plan, self.finding)
        return [f"{self.title}:", *(f"  {line}" for line in drawn)]


class Sheet:
    """A finding for readers, with all text from the file made printable.

    Attributes:
        finding: the printable finding.
        target: what the engine is called.
    """

    def __init__(self, finding: Finding, target: str = "the target") -> None:
        self.finding = readable(finding)
        self.target = target

    @property
    def mark(self) -> str:
        """The verdict in a sentence."""
        return mark_of(self.finding.verdict)

    @property
    def shapes(self) -> str:
        """The operands' shapes."""
        return shapes_text(self.finding)

    @property
    def fix(self) -> str:
        """The fix in a sentence, or nothing."""
        fix = self.finding.fix
        return "" if fix is None else shown(fix.describe(self.finding.names))

    @property
    def drawings(self) -> list[Drawing]:
        """The plans in the model and on the target, as far as they exist."""
        finding = self.finding
        sides = [("in the model", finding.source), (f"on {self.target}", finding.target)]
        if finding.source is not None and finding.source == finding.target:
            sides = [(f"in the model and on {self.target}", finding.source)]
        return [
            Drawing(title, plan, names_for(finding, plan), finding)
            for title, plan in sides
            if isinstance(plan, Plan | AttentionPlan) or (plan is not None and plan.rows)
        ]

    @property
    def fixed(self) -> list[Drawing]:
        """The plan on the target after the fix, if there is one."""
        finding, plan = self.finding, after_fix(self.finding)
        if plan is None or finding.fix is None:
            return []
        names = finding.names[: len(plan.operands)]
        names = names[::-1] if finding.fix.swapped else names
        return [Drawing("after the fix", plan, names, finding)]

    @property
    def sections(self) -> list[Section]:
        """Counter-example, fix, conditions, notes."""
        finding = self.finding
        sections = []
        if finding.origin is not None:
            sections.append(Section("written at", ((shown(finding.origin), "code"),)))
        if finding.witness is not None:
            sections.append(Section("shown by", _witness(finding.witness)))
        if finding.fix is not None:
            sections.append(Section("fix", ((self.fix, "fix"),)))
        if finding.source_fix is not None:
            sections.append(Section("fix in PyTorch", ((shown(finding.source_fix), "fix"),)))
        if finding.when is not None:
            spans: tuple[tuple[str, str], ...] = ((shown(finding.when), "code"),)
            if finding.values:
                values = ", ".join(f"{name} = {value}" for name, value in finding.values.items())
                spans += ((" such as ", ""), (shown(values), "code"))
            sections.append(Section(WHERE, spans))
        return [*sections, *(Section("note", ((note, ""),)) for note in finding.notes)]

    @property
    def sources(self) -> list[Evidence]:
        """The documents and runs behind the finding."""
        return sources_of(self.finding, self.target)


def _witness(example: Witness) -> tuple[tuple[str, str], ...]:
    """A counter-example: the inputs, and the differing results."""
    return (
        (f"{shown(example.op)} of ", ""),
        (" and ".join(map(str, example.shapes)), "code"),
        (" counted from 0: ", ""),
        (example.where, "code"),
        (" is ", ""),
        (shown(example.source), "good"),
        (" in the model, ", ""),
        (shown(example.target), "bad"),
        (" on the target", ""),
    )
