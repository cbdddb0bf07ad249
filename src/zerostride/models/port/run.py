"""The port of a model: audit, rewrite, prove, write, read again, and only then take the name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ...dims import Answer
from ...dims.condition import ALWAYS, Condition
from ...dims.solve import allowance, satisfiable
from ...engines.model import Engine
from ...engines.table import find_engine
from ...engines.versions import warn_if_unmeasured
from ...errors import ModelError, Reason, ZerostrideError
from ...plan import Plan
from ...planner import as_facts
from ..audit import MAX_STEPS, check_via, prepared, reported
from ..findings import Cause, Change, Finding, Report, Verdict
from ..flow import Flow
from ..formats import FORMATS, FormatModule, format_of, read_model
from ..graph import Graph, Node
from ..rewrite import Editor, Rewrite
from ..sites import Site
from .numbers import compute, sizes_for
from .passes import PASSES, Pass
from .program import Program, Setting, Subject, Wrong, carry_out, positions_of
from .replay import Found, check_findings, line_of, lines_of, makers_of, matched, recompute
from .save import check_goal, install, kept_if_done, staging

#: Rewrites of one node that are looked at; what is found is among the first dozens.
MOST_TRIED = 600
#: Times that a port starts again without a rewrite that the format turned out not to have.
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked of the port, the same for the model before and after."""

    engine: Engine
    via: str | None
    batch_axis: int | None
    facts: Condition
    sizes: Mapping[str, int] | None


@dataclass(frozen=True)
class Audited:
    """A graph with its findings by identity of its nodes."""

    graph: Graph
    findings: Mapping[int, Finding]
    sites: Mapping[int, Site]
    setting: Setting
    flow: Flow | None

    def report(self, question: Question) -> Report:
        """The audit's report."""
        found = [self.findings[id(n)] for n in self.graph.nodes if id(n) in self.findings]
        return reported(
            self.graph, question.engine, question.via, question.batch_axis, found, self.flow
        )


@dataclass(frozen=True, slots=True)
class Ported:
    """A node's rewrite, proven, or why there is none."""

    subject: Subject
    program: Program | None
    by: Pass | None
    why: str = ""
    elements: int = 0

    @property
    def rewrite(self) -> Rewrite:
        """The change as an editor takes it."""
        assert self.program is not None
        assert self.by is not None
        assert self.subject.node.place is not None
        return Rewrite(self.subject.node.place, self.program.steps, self.by.name)


def port(
    model: str | Path,
    target: str,
    output: str | Path | None = None,
    *,
    via: str | None = None,
    batch_axis: int | None = None,
    facts: Any = None,
    sizes: Mapping[str, int] | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Rewrites a model so that every broadcast means on `target` what it means in the model.

    Each node that does not is rewritten by the smallest change that is found: a constant reshaped,
    operands exchanged, a Reshape put in, axes merged, an operand broadcast first. Every rewrite is
    proven by planning and by computing before anything is written, and again on the file that was
    written, before that takes its name. What cannot be rewritten stays as it is, and is among the
    findings with the reason.

    Args:
        model: a model file; its format is known by the end of its name, and is the output's.
        target: an engine's name.
        output: where the model goes; it may be the model itself. Not needed for a dry run.
        via: what this converter does by itself is left to it ("pnnx", for ncnn).
        batch_axis, facts, sizes: as for :func:`~zerostride.audit`.
        dry_run: write nothing; `changes` then says what would be done.
        progress: called with the number of nodes done and of all.

    Returns:
        A report whose `before` has the findings of the model as it was, `findings` those of the
        result, and `changes` what was done.

    Raises:
        ModelError: the file cannot be read or written, or a check failed: nothing is written then.
        BroadcastError: there is no such engine.
    """
    engine = find_engine(target)
    check_via(via, target)
    warn_if_unmeasured(target)
    path = Path(model)
    goal = _goal(path, output, dry_run=dry_run)
    known = ALWAYS if facts is None else as_facts(facts)
    if satisfiable(known) is Answer.NO:
        raise ZerostrideError(f"what is given holds for no sizes: {known}")
    question = Question(engine, via, batch_axis, known, sizes)
    with allowance(MAX_STEPS):
        old = audited(read_model(path), question, progress)
        module = old.setting.module
        editor, done = _rewritten(path, module, old)
        if goal is None:
            return _dry(old, question, done)
        return _written(path, goal, editor, old, question, done)


def _goal(path: Path, output: str | Path | None, *, dry_run: bool) -> Path | None:
    row = format_of(path)
    if not row.writable:
        raise ModelError(f"{path}: files of {row.name} are read, not written")
    if dry_run:
        return None
    if output is None:
        raise ModelError("name an output, or ask for a dry run")
    if format_of(output).name != row.name:
        raise ModelError(f"{output}: a model of {row.name} ends in {' or '.join(row.suffixes)}")
    return check_goal(Path(output))


def audited(
    graph: Graph, question: Question, progress: Callable[[int, int], None] | None = None
) -> Audited:
    """A graph's findings."""
    graph, judge, flow = prepared(
        graph,
        question.engine,
        question.via,
        question.batch_axis,
        question.facts,
        question.sizes,
    )
    module = FORMATS[graph.format].load()
    findings: dict[int, Finding] = {}
    sites: dict[int, Site] = {}
    for done, node in enumerate(graph.nodes):
        site = module.find_site(node)
        if site is not None:
            sites[id(node)], findings[id(node)] = site, judge(site)
        if progress is not None:
            progress(done + 1, len(graph.nodes))
    setting = Setting(module, judge, question.batch_axis is not None)
    return Audited(graph, findings, sites, setting, flow)


# Which rewrites.


@dataclass
class _Search:
    """Finds rewrites, for nodes that differ in names alone once."""

    setting: Setting
    refuses: Callable[[Rewrite], str | None]
    known: dict[Hashable, tuple[Pass, tuple[Any, ...]] | str] = field(default_factory=dict)

    def __call__(self, subject: Subject) -> Ported:
        """The node's rewrite, or why there is none."""
        why = _hopeless(subject)
        if why:
            return Ported(subject, None, None, why)
        key = (
            self.setting.judge.key(subject.site),
            tuple(None if value is None else value.dtype for value in subject.node.inputs),
        )
        answer = self.known.get(key)
        if isinstance(answer, str):
            return Ported(subject, None, None, answer)
        if answer is not None:
            by, steps = answer
            program = carry_out(subject, steps, self.setting)
            if not program.judged(self.setting):
                raise ModelError(f"node {subject.node.path!r}: judged in two ways")
            return Ported(subject, program, by, elements=_computed(program, self.setting))
        found = self._first(subject)
        if isinstance(found, str):
            self.known[key] = found
            return Ported(subject, None, None, found)
        by, program = found
        self.known[key] = by, program.steps
        return Ported(subject, program, by, elements=_computed(program, self.setting))

    def _first(self, subject: Subject) -> tuple[Pass, Program] | str:
        """The first rewrite, in order of cost, after which the target means the same."""
        refused: str | None = None
        for by, steps in islice(self._proposals(subject), MOST_TRIED):
            if not by.ensures(subject, steps):
                raise ModelError(f"node {subject.node.path!r}: pass {by.name!r} broke its promise")
            try:
                program = carry_out(subject, steps, self.setting)
            except Wrong:
                continue
            if not program.judged(self.setting):
                continue
            assert subject.node.place is not None
            said = self.refuses(Rewrite(subject.node.place, steps, by.name))
            if said is None:
                return by, program
            refused = refused or said
        if refused is not None:
            return f"the file cannot say the rewrite: {refused}"
        return _why_not(subject)

    def _proposals(self, subject: Subject) -> Iterator[tuple[Pass, tuple[Any, ...]]]:
        allowed = _BY_REASON.get(subject.finding.reason)
        for row in PASSES:
            if allowed is not None and row.name not in allowed:
                continue
            if row.requires(subject, self.setting):
                for steps in row.propose(subject, self.setting):
                    yield row, steps


def _computed(program: Program, setting: Setting) -> int:
    try:
        return compute(program, setting)
    except Wrong as wrong:
        node = program.subject.node
        raise ModelError(f"node {node.path!r}: {wrong}; nothing was written") from None


#: What no rewrite of shapes can change, by the finding's reason.
_HOPELESS: Mapping[str, str] = {
    Cause.INVALID: "the model itself does not broadcast here",
    Cause.UNKNOWN_SHAPE: "sizes are not known; give them (--set)",
    Cause.MISSING_DATA: "its data are missing",
    Cause.NOT_MODELLED: "the op is not modelled",
    Cause.CUSTOM_OP: "nothing is known about the op",
}


#: Where shapes are not what is wrong, only these passes have something to say.
_BY_REASON: Mapping[str, tuple[str, ...]] = {
    Reason.NO_OP: ("equivalent",),
    Reason.DTYPE: ("equivalent",),
    Cause.NOT_MEASURED: ("equivalent", "target"),
}


#: Why nothing was found, by the finding's reason.
_WHY_NOT: Mapping[str, str] = {
    Reason.NO_OP: "the engine has no such op, and no other ops compute the same",
    Reason.DTYPE: "the engine does not take the element type",
    Cause.NOT_MEASURED: "nothing is known about the op on this engine",
    Cause.BATCH: "the engine has no batch axis; if the batch is another axis, name it",
}


def _why_not(subject: Subject) -> str:
    """What to say where no rewrite was found."""
    said = _WHY_NOT.get(subject.finding.reason, "no rewrite of it means the same there")
    if 0 in subject.source.shape:
        said += " (it has no elements)"
    if subject.node.domain == "" and subject.site.rule.name == "onnx6":
        said += "; convert the model to opset 13 first"
    return said


def _hopeless(subject: Subject) -> str:
    """Why no rewrite can help, or nothing."""
    if subject.node.place is None:
        return "the file has no such node of its own"
    if not isinstance(subject.finding.source, Plan):
        return _HOPELESS.get(subject.finding.reason, "its meaning in the model is not known")
    return ""


def _rewritten(path: Path, module: FormatModule, old: Audited) -> tuple[Editor, list[Ported]]:
    """The file with rewrites applied, and what was found for each node that needs one.

    An editor may only find out while it applies rewrites that one cannot be said; then the port
    starts again without it.
    """
    banned: set[tuple[Any, ...]] = set()
    for _ in range(_ROUNDS):
        editor = module.edit(path)
        own = getattr(editor, "refuses", lambda rewrite: None)

        search = _Search(old.setting, _Refusals(own, frozenset(banned)))
        done = [search(subject) for subject in _subjects(old)]
        rewrites = [one.rewrite for one in done if one.program is not None]
        try:
            editor.apply(rewrites)
            return editor, done
        except ModelError:
            bad = _unsaid(path, module, rewrites)
            if not bad:
                raise
            banned |= {(one.place, one.by, one.describe()) for one in bad}
    raise ModelError(f"{path}: too many rewrites cannot be said in this format")


@dataclass(frozen=True, slots=True)
class _Refusals:
    """Why a rewrite cannot be said: the editor knows, or has shown it."""

    own: Callable[[Rewrite], str | None]
    banned: frozenset[tuple[Any, ...]]

    def __call__(self, rewrite: Rewrite) -> str | None:
        """The reason, or None."""
        if (rewrite.place, rewrite.by, rewrite.describe()) in self.banned:
            return "the format does not have it"
        return self.own(rewrite)


def _unsaid(path: Path, module: FormatModule, rewrites: Sequence[Rewrite]) -> list[Rewrite]:
    """The rewrites that an editor refuses each by itself, found by halving."""
    try:
        module.edit(path).apply(rewrites)
    except ModelError:
        if len(rewrites) <= 1:
            return list(rewrites)
        half = len(rewrites) // 2
        return [
            *_unsaid(path, module, rewrites[:half]),
            *_unsaid(path, module, rewrites[half:]),
        ]
    return []


def _subjects(old: Audited) -> Iterator[Subject]:
    for node in old.graph.nodes:
        finding = old.findings.get(id(node))
        if finding is None or finding.verdict is Verdict.SAME:
            continue
        site = old.sites[id(node)]
        source = finding.source
        if isinstance(source, Plan):
            yield Subject(node, site, source, positions_of(site), finding)
        else:
            # Its source is no plan; what stands here is never looked at.
            yield Subject(node, site, _NO_PLAN, (), finding)


_NO_PLAN: Any = None


# What comes of it.


def _dry(old: Audited, question: Question, done: Sequence[Ported]) -> Report:
    """The report of what would be done."""
    report = old.report(question)
    by_node = {id(one.subject.node): one for one in done}
    findings = []
    for node in old.graph.nodes:
        if id(node) in old.findings:
            one = by_node.get(id(node))
            findings.append(_predicted(old.findings[id(node)], one))
    changes = tuple(_change(one, _neutral_lines(one)) for one in done if one.program is not None)
    return replace(
        report,
        command="port",
        before=report.findings,
        findings=tuple(findings),
        changes=changes,
    )


def _predicted(finding: Finding, one: Ported | None) -> Finding:
    if one is None:
        return finding
    if one.program is None:
        return _left(finding, one)
    assert one.program.finding is not None
    return replace(one.program.finding, node=finding.node, op=finding.op)


def _left(finding: Finding, one: Ported) -> Finding:
    return replace(finding, notes=(*finding.notes, f"not ported: {one.why}"))


def _written(
    path: Path,
    goal: Path,
    editor: Editor,
    old: Audited,
    question: Question,
    done: Sequence[Ported],
) -> Report:
    """Writes the model beside its place, reads it again, checks it, and puts it there."""
    with staging(goal) as staged:
        files = editor.save(staged)
        with kept_if_done([file for file in files if file.stem != staged.stem]):
            new = audited(read_model(staged), question)
            changes, findings = _checked(old, new, done)
            report = new.report(question)
            install(staged, goal)
    return replace(
        report,
        model=str(path),
        command="port",
        before=old.report(question).findings,
        findings=findings,
        changes=changes,
        output=str(goal),
    )


def _checked(
    old: Audited, new: Audited, done: Sequence[Ported]
) -> tuple[tuple[Change, ...], tuple[Finding, ...]]:
    """What was changed and what is found now, the written model checked against the old one."""
    places = matched(old.graph, new.graph)
    found = dict(zip(map(id, old.graph.nodes), places, strict=True))
    touched = {id(one.subject.node): one for one in done if one.program is not None}
    check_findings(old.graph, places, old.findings, new.findings, touched.keys())
    changes = []
    makers = makers_of(places)
    for key, one in touched.items():
        count = _recomputed(one, found[key], makers, old.setting)
        one = replace(one, elements=count or one.elements)
        changes.append(_change(one, lines_of(found[key], makers)))
    left = {id(found[id(one.subject.node)].node): one for one in done if one.program is None}
    findings = tuple(
        _left(new.findings[id(node)], left[id(node)])
        if id(node) in left
        else new.findings[id(node)]
        for node in new.graph.nodes
        if id(node) in new.findings
    )
    return tuple(changes), findings


def _recomputed(one: Ported, place: Found, makers: Mapping[int, Node], setting: Setting) -> int:
    assert one.program is not None
    size = sizes_for(one.program, setting)
    return recompute(one.subject, place, makers, setting.module, size)


def _change(one: Ported, lines: Iterator[str]) -> Change:
    assert one.program is not None
    assert one.by is not None
    node = one.subject.node
    words = one.rewrite.describe()
    for place in reversed(range(len(node.inputs))):
        value = node.inputs[place]
        if value is not None:
            words = words.replace(f"operand {place}", repr(value.name))
    words = words.replace("itself(", f"{node.op}(")
    return Change(
        node.path,
        node.op,
        one.by.name,
        f"{one.by.does}: {words}",
        (line_of(node),),
        tuple(lines),
        one.elements,
    )


def _neutral_lines(one: Ported) -> Iterator[str]:
    """How the rewrite reads before a file says it."""
    assert one.program is not None
    last = one.program.done[-1].node
    for done in one.program.done[:-1]:
        yield line_of(done.node)
    yield line_of(_named(last, one.subject.node))


def _named(node: Node, like: Node) -> Node:
    return replace(node, outputs=like.outputs)


__all__ = ["port"]
