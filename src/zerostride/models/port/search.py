"""The search for a rewrite of each node, or for the reason why it has none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...core.plan import Plan
from ...errors import BroadcastError, ModelError, Reason
from ...sizes.budget import SpentError, used_up
from ..audit.audited import Audited
from ..findings import Finding, Verdict
from ..ir.graph import Node
from ..ir.rewrite import Editor, Rewrite
from ..ir.site import Site
from ..reasons import Cause
from .numbers import compute
from .passes import PASSES, Pass
from .program import RewriteProgram, Subject, Unwitnessed, Wrong, carry_out, positions_of

#: The most rewrites of one node that a pass proposes; those that work are among the first dozens.
#: With open sizes each takes milliseconds.
MOST_TRIED, MOST_TRIED_OPEN = 300, 30
#: The most operands of a rewritten node: its ops are compared as a tree, one level for each.
MOST_OPERANDS = 100
#: The most restarts of a port without rewrites that failed.
ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Ported:
    """A node's proven rewrite, or the reason why it has none."""

    node: Node
    program: RewriteProgram | None
    by: Pass | None
    why: str = ""
    elements: int = 0

    @property
    def rewrite(self) -> Rewrite:
        """The change, as argument of an editor."""
        return self.of(self.node)

    def of(self, node: Node) -> Rewrite:
        """The same change of a similar node."""
        assert self.program is not None
        assert self.by is not None
        assert node.place is not None
        return Rewrite(node.place, self.program.steps, self.by.name)


@dataclass
class _Search:
    """Finds rewrites; nodes that differ in names alone are searched once."""

    setting: Audited
    refuses: Callable[[Rewrite], str | None]
    left: Mapping[str, str]
    answers: dict[Hashable, Ported] = field(default_factory=dict)

    def __call__(self, site: Site, finding: Finding) -> Ported:
        """The rewrite of a site's node, or the reason why it has none."""
        node, source = site.node, finding.source
        if node.place is None:
            return Ported(node, None, None, "the file has no such node of its own")
        if not node.outputs:
            return Ported(node, None, None, "the node has no output")
        if len(node.inputs) > MOST_OPERANDS:
            return Ported(node, None, None, f"it has more than {MOST_OPERANDS} operands")
        if not isinstance(source, Plan):
            why = _HOPELESS.get(finding.reason, "its meaning in the model is not known")
            return Ported(node, None, None, self.left.get(node.path, why))
        subject = Subject(node, site, source, positions_of(site), finding)
        key = (
            self.setting.judge.key(subject.site),
            tuple(None if value is None else value.dtype for value in subject.node.inputs),
            self.setting.delegate.own_problem(site),
            id(node) in self.setting.joined,
        )
        answer = self.answers.get(key)
        if answer is not None:
            if answer.program is None:
                return replace(answer, node=node)
            # A format may express a change of one tensor and not of another.
            if self.refuses(answer.of(node)) is None:
                # Sites of one key have one result; each is judged and computed again after writing.
                known = answer.program
                program = RewriteProgram(subject, known.steps, values=known.values)
                return replace(answer, node=node, program=program)
        self.answers[key] = answer = self._fresh(subject)
        if answer.program is None and node.path in self.left:
            return replace(answer, why=self.left[node.path])
        return answer

    def _fresh(self, subject: Subject) -> Ported:
        """The rewrite of the first node of its kind."""
        first = self._first(subject)
        if isinstance(first, str):
            return Ported(subject.node, None, None, first)
        by, program = first
        try:
            count = compute(program, self.setting)
        except Unwitnessed as reason:
            return Ported(subject.node, None, None, str(reason))
        except Wrong as wrong:
            who = repr(subject.node.path)
            raise ModelError(f"node {who}: {wrong}; nothing was written") from None
        return Ported(subject.node, program, by, elements=count)

    def _first(self, subject: Subject) -> tuple[Pass, RewriteProgram] | str:
        """The first rewrite, in order of cost, after which the target means the same."""
        refused: str | None = None
        for by, steps in self._proposals(subject):
            if not by.ensures(subject, steps):
                raise ModelError(f"node {subject.node.path!r}: pass {by.name!r} broke its promise")
            try:
                program = carry_out(subject, steps, self.setting)
            except Wrong:
                continue
            if not program.judged(self.setting):
                continue
            assert subject.node.place is not None
            refusal = self.refuses(Rewrite(subject.node.place, steps, by.name))
            if refusal is None:
                return by, program
            refused = refused or refusal
        if refused is not None:
            return refused
        return self._why_not(subject)

    def _why_not(self, subject: Subject) -> str:
        """The reason why the search found no rewrite."""
        problem = self.setting.delegate.own_problem(subject.site)
        if problem is not None and problem[1] != subject.finding.reason:
            return problem[0]
        _, reason = _TRIED.get(subject.finding.reason, _OTHERWISE)
        if 0 in subject.source.shape:
            reason += " (it has no elements)"
        if subject.node.domain == "" and subject.site.rule.name == "onnx6":
            reason += "; convert the model to opset 13 first"
        return reason

    def _proposals(self, subject: Subject) -> Iterator[tuple[Pass, tuple[Any, ...]]]:
        names, _ = _TRIED.get(subject.finding.reason, _OTHERWISE)
        if id(subject.site.node) in self.setting.joined:
            names = _APART
        most = MOST_TRIED if subject.source.open is None else MOST_TRIED_OPEN
        proposed: set[tuple[Any, ...]] = set()
        for row in PASSES:
            tried = names is None or row.name in names
            if tried and row.requires(subject, self.setting):
                for steps in islice(row.propose(subject, self.setting), most):
                    if steps not in proposed:  # a later pass may repeat an earlier one's
                        proposed.add(steps)
                        yield row, steps


#: Why a node without a meaning in the model has no rewrite, by the finding's reason.
_HOPELESS: Mapping[str, str] = {
    Cause.INVALID: "the model itself does not broadcast here",
    Cause.UNKNOWN_SHAPE: "sizes are not known; give them (--set, --input-shape)",
    Cause.MISSING_DATA: "its data are missing",
    Cause.NOT_MODELLED: "the op is not modelled",
    Cause.CUSTOM_OP: "nothing is known about the op",
}
#: By the finding's reason: the passes that are tried (None: all), and the words if none helps.
_TRIED: Mapping[str, tuple[tuple[str, ...] | None, str]] = {
    Reason.NO_OP: (
        ("equivalent", "target"),
        "the engine has no such op, and no other ops compute the same",
    ),
    Reason.DTYPE: (("equivalent",), "the engine does not take the element type"),
    Cause.NOT_MEASURED: (
        ("equivalent", "target"),
        "nothing is known about the op on this engine",
    ),
    Cause.BATCH: (
        None,
        "the engine has no batch axis; if the batch is another axis, name it",
    ),
}
_OTHERWISE = (None, "no rewrite of it means the same there")
#: The passes after which a converter may no longer join a node with its neighbours.
_APART = ("swap", "expand")


def rewritten(
    path: Path,
    old: Audited,
    progress: Callable[[int, int], None] | None = None,
    banned: Mapping[Hashable, str] = MappingProxyType({}),
    left: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Editor, list[Ported]]:
    """The file with rewrites applied, and the search result of each node that needs one.

    An editor may refuse a rewrite only when it applies it; then the port starts again without it.
    `banned` are rewrites (by `key_of`) that are known to fail, and places of nodes that stay as
    they are, each with the reason; `left` are paths of compound nodes that are not written out.
    """
    needed = list(_in_need(old))
    banned = dict(banned)
    for _ in range(ROUNDS):
        editor = _opened(path, old)
        probe = _Probe(editor)
        own = getattr(editor, "refuses", None) or probe
        search = _Search(old, _Refusals(own, banned), left)
        done = []
        for turn, question in enumerate(needed):
            if progress is not None:
                progress(turn, len(needed))
            done.append(search(*question))
        if progress is not None:
            progress(1, 1)
        rewrites = [ported.rewrite for ported in done if ported.program is not None]
        if probe.holds(rewrites):
            return editor, done
        try:
            editor = _opened(path, old) if own is probe else editor
            editor.apply(rewrites)
            return editor, done
        except (ModelError, BroadcastError):  # the op table raises for an op that the format lacks
            bad = _unsaid(path, old, rewrites)
            if not bad:
                raise
            banned |= dict.fromkeys(map(key_of, bad), _UNSAID)
    raise ModelError(f"{path}: too many rewrites cannot be said in this format")


def _opened(path: Path, old: Audited) -> Editor:
    """The file, open for the changes that the target needs."""
    editor = old.module.edit(path)
    if (serve := getattr(editor, "serve", None)) is not None:
        serve(old.judge.engine.name)
    return editor


def carried_out(ported: Ported, old: Audited) -> Ported:
    """The rewrite with its steps carried out for its own node, where nothing is written."""
    if ported.program is None or ported.program.done:
        return ported
    try:
        program = carry_out(ported.program.subject, ported.program.steps, old)
    except Wrong:
        program = ported.program
    if program.done and program.judged(old):
        return replace(ported, program=program)
    if not used_up():
        raise ModelError(f"node {ported.node.path!r}: judged in two ways")
    return Ported(ported.node, None, None, str(SpentError()))


def key_of(rewrite: Rewrite) -> Hashable:
    """The identity of a rewrite."""
    return rewrite.place, rewrite.by, rewrite.describe()


_UNSAID = "the file cannot say the rewrite: the format does not have it"


@dataclass(slots=True)
class _Probe:
    """Tests whether an editor refuses a rewrite, by applying it.

    Attributes:
        editor: the editor.
        tried: all rewrites that it was given, in order; None once it refused one.
    """

    editor: Editor
    tried: list[Rewrite] | None = field(default_factory=list)

    def __call__(self, rewrite: Rewrite) -> str | None:
        """The reason, or None."""
        try:
            self.editor.apply([rewrite])
        except (ModelError, BroadcastError) as error:
            self.tried = None
            return str(error)
        if self.tried is not None:
            self.tried.append(rewrite)
        return None

    def holds(self, rewrites: Sequence[Rewrite]) -> bool:
        """Whether the editor holds these rewrites, and no more."""
        return self.tried == [*rewrites]


@dataclass(frozen=True, slots=True)
class _Refusals:
    """Reasons why an editor refuses rewrites: its own check, or an earlier failure."""

    own: Callable[[Rewrite], str | None]
    banned: Mapping[Hashable, str]

    def __call__(self, rewrite: Rewrite) -> str | None:
        """The reason, or None."""
        refusal = self.banned.get(rewrite.place) or self.banned.get(key_of(rewrite))
        if refusal is None and (own := self.own(rewrite)) is not None:
            return f"the file cannot say the rewrite: {own}"
        return refusal


def _unsaid(path: Path, old: Audited, rewrites: Sequence[Rewrite]) -> list[Rewrite]:
    """The rewrites that an editor refuses individually, found by bisection."""
    try:
        _opened(path, old).apply(rewrites)
    except (ModelError, BroadcastError):
        if len(rewrites) <= 1:
            return list(rewrites)
        half = len(rewrites) // 2
        return [
            *_unsaid(path, old, rewrites[:half]),
            *_unsaid(path, old, rewrites[half:]),
        ]
    return []


def _in_need(old: Audited) -> Iterator[tuple[Site, Finding]]:
    """The findings that are not the same on the target."""
    for node in old.graph.nodes:
        finding = old.findings.get(id(node))
        if finding is not None and finding.verdict is not Verdict.SAME:
            yield old.sites[id(node)], finding
