"""The forms in which a model is converted: as it is, then with other ops, until one is proven."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path

from ...errors import ZerostrideError
from ...models.audit.run import audit_model
from ...models.findings import Check, Outcome, Report, Verdict
from ...models.formats.onnx.prepared import COMPOUND_OPS
from ...models.ir.files import write_scratch
from ...models.options import ModelOptions
from ...models.port.run import port_model
from ...models.reasons import Cause, code_of
from ..task import Array
from ..verify.site_checks import Progress
from .converters import EngineConverter, Failure, files_of, release_of, run_converter
from .folder import STATE, digest, is_no_room, state_of
from .prepare import prepared

#: A note of an audit; the proof has shown that the converter folds them.
_FOLDED = "from sizes: counted as the same"
#: How often a model is written with other ops, and how often for a converter that takes minutes.
_MOST_TRIES, _FEW_TRIES = 4, 2
#: Programs that a converter runs, whose failures begin with their names.
_STEPS = frozenset({"onnx2torch", "torch.export"})
#: Outcomes after which a model is tried again as another one.
_WRONG = frozenset({Outcome.DIFFERS, Outcome.REFUSED, Outcome.CRASHED})


@dataclass(frozen=True, slots=True)
class Job:
    """One conversion.

    Attributes:
        row: the converter.
        form: the model's format; "torch" is a module, too.
        model: the model's file, or the ONNX file of a module.
        folder: for the files.
        scratch: a temporary folder; each try has a folder in it.
        stem: of the files' names.
        inputs: arrays of the model's inputs.
        options: what is known of the model.
        seconds: the longest time.
        progress: of the port.
        python: the converter's interpreter, if it has one of its own.
        archive: the program of a module, if the converter reads that.
        proof: compares the outputs of the file `against` with the model's.
    """

    row: EngineConverter
    form: str
    model: Path
    folder: Path
    scratch: Path
    stem: str
    inputs: Mapping[str, Array]
    options: ModelOptions
    seconds: float
    progress: Progress | None
    python: str | None
    archive: bytes | None
    proof: Callable[..., Report]

    @property
    def release(self) -> str:
        """The converter's release."""
        return release_of(self.row, self.python)

    @property
    def goal(self) -> str:
        """The name of the file for the engine; two engines have files that end in .bin."""
        own = self.row.suffix == f".{self.row.engine}"
        return f"{self.stem}{'' if own else f'.{self.row.engine}'}{self.row.suffix}"

    @property
    def written(self) -> str:
        """The name of the file of a converter whose files are ported."""
        return f"{self.stem}.{self.row.name}{self.row.suffix}"

    @property
    def ported(self) -> str:
        """The name of the ported ONNX model."""
        return f"{self.stem}.{self.row.engine}.onnx"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all these files."""
        files = [
            file for name in (self.goal, self.written) for file in files_of(self.row, Path(name))
        ]
        return self.ported, *(file.name for file in files)


@dataclass(frozen=True, slots=True)
class Try:
    """One form of the model: converted, or why not.

    Attributes:
        folder: of its files, which have their final names.
        report: of the port, or the audit of a model that was not ported.
        how: it was written before the conversion, in words; "" as it is.
        failure: why it was not converted; None if it was.
        second: another form, and why that was not converted; None if none was tried.
        proof: the outputs on the engine, if it was.
    """

    folder: Path
    report: Report
    how: str = ""
    failure: Failure | None = None
    second: tuple[str, Failure] | None = None
    proof: Report | None = None

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of its outputs."""
        return () if self.proof is None else self.proof.checks

    @property
    def left(self) -> bool:
        """Whether broadcasts are left that differ."""
        return not all(finding.holds for finding in self.report.findings)

    @property
    def wrong(self) -> list[Check]:
        """The checks whose results differ or are none."""
        return [check for check in self.checks if check.outcome in _WRONG]

    @property
    def rank(self) -> int:
        """0: not converted. 1: converted. 2: all outputs agree, and every broadcast holds."""
        if self.failure is not None:
            return 0
        agrees = all(check.outcome is Outcome.AGREES for check in self.checks)
        return 2 if agrees and not self.left else 1

    @property
    def named(self) -> str:
        """A text with the names of the ops that another form does not have."""
        if self.failure is not None:
            return self.failure.reason
        ops = [check.op for check in self.wrong if check.node]
        left = (finding for finding in self.report.findings if not finding.holds)
        ops += [f.op for f in left if f.reason == Cause.OTHER_ATTENTION or f.op in COMPOUND_OPS]
        refused = (check.detail for check in self.wrong if check.outcome is not Outcome.DIFFERS)
        return " ".join(dict.fromkeys([*ops, *refused]))

    def why(self, converter: str) -> str:
        """Why another form was tried, in words."""
        if self.failure is not None:
            return f"{converter} does not convert the file as it is"
        ops = ", ".join(dict.fromkeys(check.op for check in self.wrong if check.node))
        what = f"the results of {ops} differ" if ops else "outputs differ"
        return f"{what if self.wrong else 'broadcasts differ'} in the file as it is"


def best_of(job: Job) -> Try:
    """The model in the form that is converted and proven, or in the best one that was tried.

    A form that the converter refuses, or whose results differ, is tried again as another one
    (:func:`prepared`), which takes its place if it is better. As long as results differ, the nodes
    that differ next are written as other ops, too.
    """
    best = latest = _proven(job, _first(job))
    named = ""
    for number in range(_FEW_TRIES if job.row.apart else _MOST_TRIES):
        if "onnx" not in job.row.reads or not (latest.failure or latest.wrong or latest.left):
            break
        if number and latest.named in named:
            break  # nothing else is named
        named = f"{named} {latest.named}"
        try:
            latest = _proven(job, _as_another(job, named))
        except ZerostrideError as error:  # it cannot be written otherwise
            if is_no_room(str(error)):
                raise
            break
        if latest.rank > best.rank:
            note = f"{best.why(job.row.name)}: converted {latest.how}"
            notes = (note, *latest.report.notes)
            best = replace(
                latest, report=replace(latest.report, model=best.report.model, notes=notes)
            )
        elif latest.failure:
            if best.failure and best.failure != latest.failure:
                best = replace(best, second=(latest.how, latest.failure))
            break
    return best


def _first(job: Job) -> Try:
    """The model as it is, or for a converter that needs that, with fixed sizes."""
    row, folder = job.row, _new_folder(job)
    if job.form == row.own:
        report = port_model(
            job.model, row.engine, folder / job.goal, job.options, progress=job.progress
        )
        return Try(folder, report)
    if job.archive is not None:
        program = folder.with_suffix(".pt2")
        write_scratch(program, lambda file: file.write_bytes(job.archive or b""))
        if row.own:
            return _of_written(job, folder, job.model, job.inputs, program=program)
        failure = _converted(job, job.model, folder / job.goal, job.inputs, program)
        return Try(folder, audit_model(job.model, row.engine, job.options), "", failure)
    if not row.apart:
        ported = folder / job.ported
        report = port_model(job.model, row.engine, ported, job.options, progress=job.progress)
        return Try(folder, report, "", _converted(job, ported, folder / job.goal, job.inputs))
    try:
        first = _as_another(job, "", again=False)
    except ZerostrideError as error:
        failure = Failure(Outcome.REFUSED, str(error))
        return Try(folder, audit_model(job.model, row.engine, job.options), "", failure)
    if first.failure is not None:
        return first
    note = f"{row.name} converted the file {first.how}"
    return replace(first, report=replace(first.report, notes=(note, *first.report.notes)))


def _as_another(job: Job, named: str, *, again: bool = True) -> Try:
    """The model as :func:`prepared` writes it.

    Args:
        job: the conversion.
        named: a text with the names of the ops that are written as others.
        again: whether this is a second try.
    """
    row, folder = job.row, _new_folder(job)
    before = folder.with_suffix(".before")
    before.mkdir()
    model = before / job.model.name
    how = prepared(row.name, named, job.model, model, job.inputs, job.seconds, again)
    inputs = how.inputs(job.inputs)
    if row.own:
        return _of_written(job, folder, model, inputs, str(how), again=again)
    fixed = replace(job.options, sizes=None, input_shapes=None)
    report = port_model(model, row.engine, folder / job.ported, fixed, progress=job.progress)
    failure = _converted(job, folder / job.ported, folder / job.goal, inputs)
    return Try(folder, report, str(how), failure)


def _of_written(
    job: Job,
    folder: Path,
    model: Path,
    inputs: Mapping[str, Array],
    how: str = "",
    program: Path | None = None,
    again: bool = False,
) -> Try:
    """The port of the file that the converter writes; its inputs' names and sizes are its own.

    Where the conversion failed, the report is the audit of the model: it may name the node that the
    engine lacks.
    """
    engine, written = job.row.engine, folder / job.written
    failure = _converted(job, model, written, inputs, program, again)
    if failure is not None:
        return Try(folder, audit_model(job.model, engine, job.options), how, failure)
    options = ModelOptions()
    report = port_model(written, engine, folder / job.goal, options, progress=job.progress)
    return Try(folder, report, how)


def _proven(job: Job, done: Try) -> Try:
    """The try with the outputs of its file, if it has one."""
    if done.failure is not None:
        return done
    return replace(done, proof=job.proof(against=done.folder / job.goal))


def report_of(job: Job, best: Try, before: tuple[str, ...], after: tuple[str, ...]) -> Report:
    """The report of the best try.

    Args:
        job: the conversion.
        best: the try.
        before, after: notes before and after those of the port.
    """
    report, proof = best.report, best.proof
    if best.failure is not None or proof is None:
        return replace(
            report,
            command="convert",
            checks=tuple(_failures(job, best)),
            notes=(*_limits(job, best), *filter(_is_of_conversion, report.notes)),
            output=None,
        )
    notes = (*before, *report.notes, *after, *proof.notes)
    return replace(
        report,
        command="convert",
        checks=proof.checks,
        lacks={},
        notes=tuple(dict.fromkeys(filter(_is_of_conversion, notes))),
        release=proof.release if job.row.runner == job.row.engine else report.release,
        output=str(job.folder / job.goal),
    )


def _failures(job: Job, best: Try) -> Iterator[Check]:
    """Yield a check for each form that was not converted."""
    failure = best.failure or Failure(Outcome.REFUSED, "")
    yield Check("", job.row.name, (), *failure, release=job.release)
    if best.second is not None:
        how, (outcome, reason) = best.second
        detail = f"{how}: {reason.removeprefix(f'{job.row.name}: ')}"
        yield Check("", job.row.name, (), outcome, detail, release=job.release)


def _limits(job: Job, best: Try) -> Iterator[str]:
    """Yield a note that says whose limit it is, at which nodes, and what a user can do."""
    if best.failure is None:
        return
    row = job.row
    outcome, reason = best.second[1] if best.second is not None else best.failure
    if outcome is Outcome.CRASHED:
        yield f"{row.name} crashed, which is a fault of {row.name}: try another engine"
        return
    if "it took longer than" in reason:
        yield f"{row.name} was stopped after {job.seconds:g} s: --timeout gives it more"
        return
    step = reason.removeprefix(f"{row.name}: ").partition(":")[0]
    loads = reason.startswith(f"{row.engine} does not load")
    whose = step if step in _STEPS else row.engine if loads else row.name
    ops = set(re.findall(r"[A-Z]\w+", reason.rpartition(": ")[2]))
    named: dict[str, list[str]] = {}
    for node in job.options.read(job.model).nodes:
        if node.op in ops:
            named.setdefault(node.op, []).append(node.path)
    nodes = ", ".join(
        f"{op} ({paths[0]}{f' and {len(paths) - 1} more' if paths[1:] else ''})"
        for op, paths in named.items()
    )
    where = f", at {nodes}" if nodes else ""
    yield f"the limit is {whose}'s{where}: compute that part outside, or try another engine"


def _is_of_conversion(note: str) -> bool:
    """Whether an audit's note is of use here: convert has no --via, and has tried other ops."""
    return "--via none" not in note and "zerostride convert" not in note and _FOLDED not in note


def held(report: Report) -> Iterator[str]:
    """Yield notes on the findings that hold for the file, though not for every size or number."""
    held = [f for f in report.findings if f.verdict is not Verdict.SAME and f.holds]
    narrow = [f for f in held if f.reason == Cause.NARROWED]
    for count, words in (
        (len(narrow), f"as long as whole numbers fit ({code_of(Cause.NARROWED)})"),
        (len(held) - len(narrow), "at the sizes of the file, not at all others"),
    ):
        if count:
            yield f"the same {words}: {count} of {len(report.findings)} broadcasts"


def _new_folder(job: Job) -> Path:
    """A new folder for the files of one try."""
    folder = job.scratch / f"try{len(list(job.scratch.glob('try*')))}"
    folder.mkdir()
    return folder


def _converted(
    job: Job,
    model: Path,
    goal: Path,
    inputs: Mapping[str, Array],
    program: Path | None = None,
    again: bool = False,
) -> Failure | None:
    """Converts, or takes the files of an earlier run; the failure if that failed.

    Args:
        job: the conversion.
        model: the ONNX model that decides whether to convert again.
        goal: the file to write.
        inputs: arrays of the model's inputs.
        program: what is converted, if not the model itself. The bytes of an archive differ from
            run to run.
        again: whether the model is written for a second try.
    """
    row, key = job.row, _key(job, model, inputs)
    old, new = (files_of(row, place / goal.name) for place in (job.folder, goal.parent))
    entry = [key, *map(digest, old)]
    if state_of(job.folder).get(goal.name) == entry:
        for file, copy in zip(old, new, strict=True):
            write_scratch(copy, partial(shutil.copyfile, file))
    else:
        # onnx2tf compares all orders of axes of a model as it is, which may take all of the time.
        part = 3 if row.apart and row.own and not again else 1
        seconds = job.seconds / part
        failure = run_converter(row, program or model, goal, inputs, seconds, job.python, again)
        if failure is not None:
            return failure
        entry = [key, *map(digest, new)]
    text = json.dumps({goal.name: entry})
    write_scratch(goal.with_name(STATE), lambda file: file.write_text(text))
    return None


def _key(job: Job, model: Path, inputs: Mapping[str, Array]) -> str:
    """Everything that a conversion depends on; the numbers of a model may lie beside it."""
    shapes = [(name, array.shape, str(array.dtype)) for name, array in inputs.items()]
    others = [metadata.version(name) for name in job.row.modules[1:]]
    data = filter(Path.is_file, sorted(model.parent.rglob("*")))
    words = [job.row.name, job.release, others, shapes, *map(digest, (model, *data))]
    return hashlib.sha256(repr(words).encode()).hexdigest()


__all__ = ["Job", "Try", "best_of", "held", "report_of"]
