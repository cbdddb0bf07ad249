"""The port of a model: audit, rewrite, prove, write, check the file, give it its name."""

from __future__ import annotations

import filecmp
import functools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...engines.table import find_engine
from ...engines.versions import warn_if_unmeasured
from ...errors import ModelError
from ...sizes.solve import allowance
from ..arguments import checked
from ..audit.audited import Audited, Progress, Question, audited
from ..audit.judge import Judge
from ..audit.symbolic import related
from ..equivalent.node_proofs import NodeProofs
from ..findings import Change, Finding, Report
from ..flow.input_sizes import InputShapes, Sizes
from ..formats import format_of
from ..formats.model_file import model_file
from ..formats.torch_export import Example
from ..ir.graph import Node
from ..ir.memory import uncollected
from ..ir.readings import readings_kept
from ..ir.rewrite import Editor
from ..ir.site import Site
from ..options import ModelOptions
from ..transport.converters import named
from .numbers import sizes_for
from .replay import (
    NewPlace,
    Worse,
    check_findings,
    line_of,
    lines_of,
    makers_of,
    matched,
    nodes_of,
    recompute,
)
from .save import check_goal, install, kept_if_done, staging
from .search import ROUNDS, Ported, carried_out, key_of, rewritten
from .written import Stage, Stays, written_out

#: The name of the file of a ported object.
_IN_MEMORY = "ported"


@checked
def port(
    model: Any,
    target: str,
    output: str | Path | None = None,
    *,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    via: str | None = None,
    batch_axis: int | None = None,
    facts: Any = None,
    sizes: Sizes | None = None,
    input_shapes: InputShapes | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Rewrites a model so that every broadcast means on `target` what it means in the model.

    Each node that does not is rewritten by the smallest change that is found: a constant reshaped,
    operands exchanged, a Reshape put in, axes merged, an operand broadcast first. Attention and
    rotary embeddings of an ONNX file are written out as ops of the standard. Every rewrite is
    proven by planning and by computing before anything is written, and again on the file that was
    written, before that takes its name. What cannot be rewritten stays as it is, and is among the
    findings with the reason.

    Args:
        model: a model file, whose format is known by the end of its name and is the output's; a
            model in memory, as for :func:`~zerostride.audit`, which does not change; or a module or
            program of PyTorch, whose output is an ONNX file.
        target: an engine's name.
        output: where the model goes; it may be the model itself. Not needed for a dry run and a
            model in memory.
        args, kwargs, dynamic_shapes: a module's inputs, as for :func:`~zerostride.audit`.
        via: what this converter does by itself is left to it; as for :func:`~zerostride.audit`.
        batch_axis, facts, sizes, input_shapes: as for :func:`~zerostride.audit`.
        dry_run: write nothing; `changes` then says what would be done.
        progress: called with how much is done and how much there is: every node is audited,
            rewritten if need be, and checked.

    Returns:
        A report whose `before` has the findings of the model as it was, `findings` those of the
        result, and `changes` what was done. For a model in memory, `result` is the ported model: a
        new object of the same kind.

    Raises:
        ModelError: the file cannot be read or written, or a check failed: nothing is written then.
        BroadcastError: there is no such engine.
        TypeError: `model` is no model.

    >>> import onnx
    >>> report = port(onnx.load("examples/bugs/ncnn-4930.onnx"), target="ncnn", via="none")
    >>> [node.op_type for node in report.result.graph.node]
    ['Unsqueeze', 'Add']
    """
    options = ModelOptions(via, batch_axis, facts, sizes, input_shapes)
    example = Example(args, kwargs, dynamic_shapes)
    return port_model(model, target, output, options, example, dry_run=dry_run, progress=progress)


def port_model(
    model: Any,
    target: str,
    output: str | Path | None,
    options: ModelOptions,
    example: Example = Example(),  # noqa: B008 - frozen
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Rewrites a model; see :func:`port`."""
    # Collects again only when the graphs are gone.
    with model_file(model, example) as file, uncollected():
        goal = output
        if file.read is not None and output is None and not dry_run:
            goal = file.path.with_stem(_IN_MEMORY)
        report = file.named(_ported(file.path, target, goal, options, dry_run, progress))
        if file.read is None or goal is None or dry_run:
            return report
        output = None if output is None else report.output
        return replace(report, output=output, result=file.read(Path(goal)))


def _ported(
    path: Path,
    target: str,
    output: str | Path | None,
    options: ModelOptions,
    dry_run: bool,
    progress: Progress | None,
) -> Report:
    engine = find_engine(target)
    named(options.via, engine.name)
    warn_if_unmeasured(target)
    goal = _goal(path, output, dry_run=dry_run)
    question = Question.of(options, engine, format_of(path).name)
    with allowance(), readings_kept():
        phases = _Phases(progress, 2 if goal is None else 3)
        old = audited(options.read(path), question, phases.phase(0))
        stays: dict[int, str] = {}
        while True:  # each turn, fewer nodes are written out
            try:
                with written_out(path, goal, old, options, stays) as stage:
                    report = _ported_stage(stage, goal, options, phases)
            except Stays as words:
                stays |= words.nodes
                continue
            report = stage.report(report, _report(old).findings)
            output = report.output if goal is None else str(output)  # as the caller wrote it
            return replace(report, model=str(path), output=output)


def _ported_stage(
    stage: Stage, goal: Path | None, options: ModelOptions, phases: _Phases
) -> Report:
    """Rewrites the nodes of a stage.

    Raises:
        Stays: a node that stands for another cannot be rewritten.
    """
    path, old = stage.path, stage.audited
    banned: dict[Hashable, str] = {}
    for turn in range(ROUNDS):
        editor, done = rewritten(path, old, phases.phase(1), banned, stage.left)
        stage.check(done)
        if goal is None:
            return _dry(old, done)
        try:
            read = functools.partial(_audited_again, options, old)
            return _written(path, goal, editor, old, read, done, phases.phase(2))
        except Worse as worse:
            bad = [ported for ported in done if ported.program and id(ported.node) in worse.nodes]
            if not bad or turn == ROUNDS - 1:
                raise
            for ported in bad:
                # A node that fails again stays as it is: each other rewrite takes a round.
                rewrite = ported.rewrite
                key = rewrite.place if turn else key_of(rewrite)
                banned[key] = worse.nodes[id(ported.node)]
    raise AssertionError("a port ends in a round")


def _audited_again(options: ModelOptions, old: Audited, path: Path) -> Audited:
    """The findings of a file that shares most of its nodes with an audited graph.

    A site for which everything that a verdict depends on is equal in both keeps its finding.
    """
    known = {_meaning(site, old.judge): old.findings[node] for node, site in old.sites.items()}
    return audited(
        options.read(path),
        old.question,
        known=lambda site, judge: known.get(_meaning(site, judge)),
    )


def _meaning(site: Site, judge: Judge) -> Hashable:
    """Everything that a site's finding depends on, including names."""
    shapes = [part.shape or () for part in site.operands]
    names = tuple((part.name, part.missing) for part in site.operands)
    return site.node.path, names, judge.key(site), related(judge.needs, shapes)


class _Phases:
    """Progress over several rounds, each as long as the model has nodes."""

    def __init__(self, progress: Progress | None, count: int) -> None:
        self.progress = progress
        self.count = count
        self.nodes = 1

    def phase(self, turn: int) -> Progress | None:
        """The callback of one round; the first round visits all nodes."""
        progress = self.progress
        if progress is None:
            return None

        def tell(done: int, total: int) -> None:
            if not turn:
                self.nodes = total
            share = self.nodes * done // max(1, total)
            progress(turn * self.nodes + share, self.count * self.nodes)

        return tell


def _goal(path: Path, output: str | Path | None, *, dry_run: bool) -> Path | None:
    row = format_of(path)
    if not row.writable:
        row.load().edit(path)  # raises, and says what to do instead
        raise ModelError(f"{path}: files of {row.name} are read, not written")
    if dry_run:
        return None
    if output is None:
        raise ModelError("name an output (output=FILE), or ask for a dry run (dry_run=True)")
    if format_of(output).name != row.name:
        raise ModelError(f"{output}: a model of {row.name} ends in {' or '.join(row.suffixes)}")
    return check_goal(Path(output))


# Results.


def _dry(old: Audited, done: Sequence[Ported]) -> Report:
    """The report of what would be done."""
    report = _report(old)
    done = [carried_out(ported, old) for ported in done]
    by_node = {id(ported.node): ported for ported in done}
    predicted = (_predicted(finding, by_node.get(id(node))) for node, finding in old.judged())
    findings = [finding for finding in predicted if finding is not None]
    changes = tuple(
        _change(ported, _neutral_lines(ported)) for ported in done if ported.program is not None
    )
    return replace(
        report,
        command="port",
        before=report.findings,
        findings=tuple(findings),
        changes=changes,
        notes=(*report.notes, *_rank_notes(old, changes)),
    )


def _report(result: Audited) -> Report:
    return result.report([finding for _, finding in result.judged()])


def _rank_notes(old: Audited, changes: Sequence[Change]) -> tuple[str, ...]:
    """Notes on reshapes around merged axes: their tensors still exceed the engine's rank."""
    engine = old.question.engine
    most = engine.tensor_rank
    if most is None or not any(change.by == "merge" for change in changes):
        return ()
    return (
        f"{engine.name} has no tensors of more than {most} axes: the reshapes around "
        "nodes with merged axes still read and make such, so inputs and outputs of the model may "
        "have to be of fewer axes too",
    )


def _predicted(finding: Finding, ported: Ported | None) -> Finding | None:
    """The finding after the port; None where nothing that is left broadcasts."""
    if ported is None:
        return finding
    if ported.program is None:
        return _left(finding, ported)
    after = ported.program.finding
    return after and replace(after, node=finding.node, op=finding.op)


def _left(finding: Finding, ported: Ported) -> Finding:
    return replace(finding, notes=(*finding.notes, f"not ported: {ported.why}"))


def _written(
    path: Path,
    goal: Path,
    editor: Editor,
    old: Audited,
    read: Callable[[Path], Audited],
    done: Sequence[Ported],
    progress: Progress | None,
) -> Report:
    """Writes the model beside its goal, reads and checks it, and moves it there."""
    with staging(goal) as staged:
        files = editor.save(staged)
        with kept_if_done([file for file in files if file.stem != staged.stem]):
            untouched = not any(ported.program is not None for ported in done)
            # The same bytes are the same model.
            unchanged = untouched and filecmp.cmp(path, staged, shallow=False)
            new = old if unchanged else read(staged)
            changes, findings = _checked(old, new, done, progress)
            report = _report(new)
            install(staged, goal)
    return replace(
        report,
        model=str(path),
        notes=(*report.notes, *_rank_notes(old, changes)),
        command="port",
        before=_report(old).findings,
        findings=findings,
        changes=changes,
    )


def _checked(
    old: Audited, new: Audited, done: Sequence[Ported], progress: Progress | None
) -> tuple[tuple[Change, ...], tuple[Finding, ...]]:
    """The changes and the new findings; checks the written model against the old one."""
    places = matched(old.graph, new.graph)
    place_of = dict(zip(map(id, old.graph.nodes), places, strict=True))
    touched = {id(ported.node): ported for ported in done if ported.program is not None}
    check_findings(old.graph, places, old.findings, new.findings, touched.keys(), new.joined)
    changes = []
    makers = makers_of(places)
    proofs = NodeProofs()
    for turn, (key, ported) in enumerate(touched.items()):
        if progress is not None:
            progress(turn, len(touched))
        count = _recomputed(ported, place_of[key], makers, old)
        ported = replace(ported, elements=count or ported.elements)
        nodes = nodes_of(place_of[key], makers)
        change = _change(ported, lines_of(nodes))
        before = ported.node
        shapes = [value.shape or () for value in before.inputs if value is not None]
        facts = related(old.judge.needs, shapes)
        every_size = proofs.verdict((old.graph, before), (new.graph, nodes), facts)
        changes.append(replace(change, every_size=str(every_size)))
    if progress is not None:
        progress(1, 1)
    left = {id(place_of[id(ported.node)].node): ported for ported in done if ported.program is None}
    findings = tuple(
        _left(finding, left[id(node)]) if id(node) in left else finding
        for node, finding in new.judged()
    )
    return tuple(changes), findings


def _recomputed(ported: Ported, place: NewPlace, makers: Mapping[int, Node], old: Audited) -> int:
    assert ported.program is not None
    size = sizes_for(ported.program, old)
    return recompute(ported.program.subject, place, makers, old.module, size)


def _change(ported: Ported, lines: Iterator[str]) -> Change:
    assert ported.program is not None
    assert ported.by is not None
    node = ported.node
    names = [
        f"operand {place}" if value is None else repr(value.name)
        for place, value in enumerate(node.inputs)
    ]
    words = ported.rewrite.describe(names, node.op)
    return Change(
        node.path,
        node.op,
        ported.by.name,
        f"{ported.by.does}: {words}",
        (line_of(node),),
        tuple(lines),
        ported.elements,
    )


def _neutral_lines(ported: Ported) -> Iterator[str]:
    """The rewrite in lines, before it is written in a format."""
    assert ported.program is not None
    last = ported.program.done[-1].node
    for done in ported.program.done[:-1]:
        yield line_of(done.node)
    yield line_of(_named(last, ported.node))


def _named(node: Node, like: Node) -> Node:
    return replace(node, outputs=like.outputs)
