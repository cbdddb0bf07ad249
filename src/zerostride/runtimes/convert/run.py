"""A model brought to an engine: audited, ported, converted, and run beside itself."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from ...core.hooks import render_report
from ...errors import ZerostrideError
from ...models.arguments import checked
from ...models.audit.run import audit_model
from ...models.findings import Check, Conversion, Outcome, Report, Verdict
from ...models.flow.input_sizes import InputShapes, Sizes
from ...models.formats import format_of
from ...models.formats.torch_export import Example, is_torch_model, model_file
from ...models.ir.files import write_scratch
from ...models.options import ModelOptions, command_words
from ...models.port.run import port_model
from ...models.reasons import Cause, code_of
from ..feeds import fed, said_of_sizes
from ..task import Array
from ..verify.checks import verify
from ..verify.site_checks import Progress
from .converters import (
    SECONDS,
    EngineConverter,
    Failure,
    converter_to,
    files_of,
    interpreter_of,
    release_of,
    run_converter,
)
from .dequantise import dequantise, quantised_ops
from .folder import (
    PAGE,
    RECORD,
    STATE,
    digest,
    folder_at,
    input_files,
    is_no_room,
    put,
    scratch_folder,
    state_of,
)
from .prepare import prepared
from .torch_program import archive_of

#: A note of an audit; the proof has shown that the converter folds them.
_FOLDED = "from sizes: counted as the same"
#: Outcomes after which a model is tried again as another one.
_WRONG = frozenset({Outcome.DIFFERS, Outcome.REFUSED, Outcome.CRASHED})


@checked
def convert(
    model: Any,
    to: str,
    output: str | Path,
    *,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    inputs: Mapping[str, Any] | None = None,
    seed: int = 0,
    timeout: float | None = None,
    batch_axis: int | None = None,
    facts: Any = None,
    sizes: Sizes | None = None,
    input_shapes: InputShapes | None = None,
    dequantize: bool = False,
    pythons: dict[str, str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Brings a model to an engine: port, the engine's own converter, and the proof on the engine.

    The model is ported (:func:`~zerostride.port`), the result is converted in a child process, and
    the converted files run on the engine on the same inputs as the model. For LiteRT the file that
    the converter writes is ported. A second call with equal inputs does not convert again.

    All files of the folder are written together at the end: a call that is interrupted writes none,
    and each file is whole whenever it ends. Beside the model are the report (report.html), the
    inputs (inputs.npz, and up to two more), and what a colleague needs to do it again (how.txt).

    Args:
        model: an ONNX file, a .pt2 file, or a module or program of PyTorch; for LiteRT also a
            .tflite file, which is ported and not converted.
        to: the engine: "ncnn" (by pnnx), "openvino" (by OpenVINO's converter), "mnn" (by
            mnnconvert), "litert" or "litert-gpu" (by litert-torch, and ONNX files by onnx2tf).
        output: the folder for the ported model, the converted files and the report; it is made.
        args, kwargs, dynamic_shapes: a module's inputs, as for :func:`~zerostride.audit`.
        inputs: arrays, lists or numbers by the names of the model's inputs; the others are chosen.
        seed: of the random inputs.
        timeout: seconds for the conversion, and for the run on the engine; by default 600 and 300.
        batch_axis, facts, sizes, input_shapes: as for :func:`~zerostride.audit`.
        dequantize: convert a copy of a quantised ONNX model in which its ops are those of floats,
            without the rounding. The report says how far its outputs are from the model's.
        pythons: interpreters by name, for engines and converters that need an environment of their
            own ("onnx2tf").
        progress: called with the number of nodes done and of all, while the model is ported.

    Returns:
        The port's report. Its `output` is the converted file, and its `checks` compare the outputs;
        a conversion that failed is a check with the converter's message, and has no output.

    Raises:
        ModelError: the file cannot be read or written, or the converter does not read such files.
        ZerostrideError: no converter to the engine runs here, or a size of an input is not known.
        BroadcastError: there is no such engine.
    """
    # 1. The converter, if one reads the model.
    form = "torch" if is_torch_model(model) else format_of(model).name
    row = converter_to(to, form, str(model) if form != "torch" else type(model).__name__)
    with model_file(model, Example(args, kwargs, dynamic_shapes)) as source:
        known = batch_axis, facts, sizes, input_shapes
        options = ModelOptions(None, *known, form=source.form)
        # 2. The inputs, whose shapes the converted files have.
        path, stem = Path(source.path), Path(source.label or source.path).stem
        given = fed(options, path, inputs or {}, seed)
        arrays, every = given.runs[0], {**(sizes or {}), **given.sizes}
        if row.fixes_sizes:
            options = replace(options, sizes=every)
        folder = folder_at(Path(output))
        python = interpreter_of(row, pythons) if form != row.own else None
        is_program = bool(row.own) and form not in ("onnx", row.own)
        archive = archive_of(model, source.program) if is_program else None
        with scratch_folder() as scratch:
            how_long = timeout or SECONDS
            copy = scratch / f"{stem}.float.onnx"
            moved: tuple[str, ...] = ()
            if dequantize:
                moved = dequantise(path, copy, how_long, given, options)
                path = copy
            proof = partial(
                verify,
                path,
                row.runner,
                inputs=inputs,
                seed=seed,
                timeout=timeout,
                batch_axis=batch_axis,
                facts=facts,
                sizes=every,
                input_shapes=input_shapes,
                pythons=pythons,
            )
            job = _Job(
                *(row, form, path, folder, scratch, stem, arrays),
                *(options, how_long, progress, python, archive, proof),
            )
            # 3. The port, the conversion, and the outputs of both on the engine.
            best = _best(job)
            apart = f"{to} does not run here: the outputs are {row.runner}'s"
            report = _report(
                job,
                best,
                before=(
                    *said_of_sizes(given.sizes, fixed=row.fixes_sizes),
                    *moved,
                    *_held(best.report),
                ),
                after=(apart,) if row.runner != to else (),
            )
            files = input_files(given.runs)
            made = Conversion(
                converter="" if form == row.own else f"{row.name} {job.release}",
                digest=digest(Path(model)) if isinstance(model, str | os.PathLike) else "",
                options=tuple(command_words(ModelOptions(None, *known))),
                seed=seed,
                given=bool(inputs),
                inputs=tuple(files),
                floats=copy.name if dequantize else "",
                quantised=() if dequantize else quantised_ops(given.graph),
            )
            if dequantize:
                shutil.move(copy, best.folder / copy.name)
            report = source.named(replace(report, model=str(source.path), conversion=made))
            # 4. All files at once.
            texts = {PAGE: report.to_html(), RECORD: render_report(report, "record")}
            others = {
                name: text.encode("utf-8", "backslashreplace") for name, text in texts.items()
            }
            put(best.folder, folder, (*job.names, copy.name), {**files, **others})
        return report


@dataclass(frozen=True, slots=True)
class _Job:
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
class _Try:
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
        refused = (check.detail for check in self.wrong if check.outcome is not Outcome.DIFFERS)
        return " ".join(dict.fromkeys([*ops, *refused]))

    def why(self, converter: str) -> str:
        """Why another form was tried, in words."""
        if self.failure is not None:
            return f"{converter} does not convert the file as it is"
        ops = ", ".join(dict.fromkeys(check.op for check in self.wrong if check.node))
        what = f"the results of {ops} differ" if ops else "outputs differ"
        return f"{what if self.wrong else 'broadcasts differ'} in the file as it is"


def _best(job: _Job) -> _Try:
    """The model in the form that is converted and proven, or in the best one that was tried.

    A form that the converter refuses, or whose results differ, is tried again as another one
    (:func:`prepared`). That takes its place if it is better.
    """
    best = _proven(job, _first(job))
    while "onnx" in job.row.reads and (best.failure or best.wrong or best.left):
        try:
            other = _proven(job, _as_another(job, best.named))
        except ZerostrideError as error:  # it cannot be written otherwise
            if is_no_room(str(error)):
                raise
            break
        if other.rank <= best.rank:
            if best.failure and other.failure and best.failure != other.failure:
                best = replace(best, second=(other.how, other.failure))
            break
        note = f"{best.why(job.row.name)}: converted {other.how}"
        notes = (note, *other.report.notes)
        best = replace(other, report=replace(other.report, model=best.report.model, notes=notes))
    return best


def _first(job: _Job) -> _Try:
    """The model as it is, or for a converter that needs that, with fixed sizes."""
    row, folder = job.row, _new_folder(job)
    if job.form == row.own:
        report = port_model(
            job.model, row.engine, folder / job.goal, job.options, progress=job.progress
        )
        return _Try(folder, report)
    if not row.own:
        ported = folder / job.ported
        report = port_model(job.model, row.engine, ported, job.options, progress=job.progress)
        return _Try(folder, report, "", _converted(job, ported, folder / job.goal, job.inputs))
    if job.archive is not None:
        program = folder.with_suffix(".pt2")
        write_scratch(program, lambda file: file.write_bytes(job.archive or b""))
        return _of_written(job, folder, job.model, job.inputs, program=program)
    try:
        first = _as_another(job, "", again=False)
    except ZerostrideError as error:
        failure = Failure(Outcome.REFUSED, str(error))
        return _Try(folder, audit_model(job.model, row.engine, job.options), "", failure)
    if first.failure is not None:
        return first
    note = f"{row.name} converted the file {first.how}"
    return replace(first, report=replace(first.report, notes=(note, *first.report.notes)))


def _as_another(job: _Job, named: str, *, again: bool = True) -> _Try:
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
        return _of_written(job, folder, model, inputs, str(how))
    fixed = replace(job.options, sizes=None, input_shapes=None)
    report = port_model(model, row.engine, folder / job.ported, fixed, progress=job.progress)
    failure = _converted(job, folder / job.ported, folder / job.goal, inputs)
    return _Try(folder, report, str(how), failure)


def _of_written(
    job: _Job,
    folder: Path,
    model: Path,
    inputs: Mapping[str, Array],
    how: str = "",
    program: Path | None = None,
) -> _Try:
    """The port of the file that the converter writes; its inputs' names and sizes are its own.

    Where the conversion failed, the report is the audit of the model: it may name the node that the
    engine lacks.
    """
    engine, written = job.row.engine, folder / job.written
    failure = _converted(job, model, written, inputs, program)
    if failure is not None:
        return _Try(folder, audit_model(job.model, engine, job.options), how, failure)
    options = ModelOptions()
    report = port_model(written, engine, folder / job.goal, options, progress=job.progress)
    return _Try(folder, report, how)


def _proven(job: _Job, done: _Try) -> _Try:
    """The try with the outputs of its file, if it has one."""
    if done.failure is not None:
        return done
    return replace(done, proof=job.proof(against=done.folder / job.goal))


def _report(job: _Job, best: _Try, before: tuple[str, ...], after: tuple[str, ...]) -> Report:
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


def _failures(job: _Job, best: _Try) -> Iterator[Check]:
    """Yield a check for each form that was not converted."""
    failure = best.failure or Failure(Outcome.REFUSED, "")
    yield Check("", job.row.name, (), *failure, release=job.release)
    if best.second is not None:
        how, (outcome, reason) = best.second
        detail = f"{how}: {reason.removeprefix(f'{job.row.name}: ')}"
        yield Check("", job.row.name, (), outcome, detail, release=job.release)


def _limits(job: _Job, best: _Try) -> Iterator[str]:
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
    whose = row.engine if reason.startswith(f"{row.engine} does not load") else row.name
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


def _held(report: Report) -> Iterator[str]:
    """Yield notes on the findings that hold for the file, though not for every size or number."""
    held = [f for f in report.findings if f.verdict is not Verdict.SAME and f.holds]
    narrow = [f for f in held if f.reason == Cause.NARROWED]
    for count, words in (
        (len(narrow), f"as long as whole numbers fit ({code_of(Cause.NARROWED)})"),
        (len(held) - len(narrow), "at the sizes of the file, not at all others"),
    ):
        if count:
            yield f"the same {words}: {count} of {len(report.findings)} broadcasts"


def _new_folder(job: _Job) -> Path:
    """A new folder for the files of one try."""
    folder = job.scratch / f"try{len(list(job.scratch.glob('try*')))}"
    folder.mkdir()
    return folder


def _converted(
    job: _Job, model: Path, goal: Path, inputs: Mapping[str, Array], program: Path | None = None
) -> Failure | None:
    """Converts, or takes the files of an earlier run; the failure if that failed.

    Args:
        job: the conversion.
        model: the ONNX model that decides whether to convert again.
        goal: the file to write.
        inputs: arrays of the model's inputs.
        program: what is converted, if not the model itself. The bytes of an archive differ from
            run to run.
    """
    row, key = job.row, _key(job, model, inputs)
    old, new = (files_of(row, place / goal.name) for place in (job.folder, goal.parent))
    entry = [key, *map(digest, old)]
    if state_of(job.folder).get(goal.name) == entry:
        for file, copy in zip(old, new, strict=True):
            write_scratch(copy, partial(shutil.copyfile, file))
    else:
        failure = run_converter(row, program or model, goal, inputs, job.seconds, job.python)
        if failure is not None:
            return failure
        entry = [key, *map(digest, new)]
    text = json.dumps({goal.name: entry})
    write_scratch(goal.with_name(STATE), lambda file: file.write_text(text))
    return None


def _key(job: _Job, model: Path, inputs: Mapping[str, Array]) -> str:
    """Everything that a conversion depends on; the numbers of a model may lie beside it."""
    shapes = [(name, array.shape, str(array.dtype)) for name, array in inputs.items()]
    others = [metadata.version(name) for name in job.row.modules[1:]]
    data = filter(Path.is_file, sorted(model.parent.rglob("*")))
    words = [job.row.name, job.release, others, shapes, *map(digest, (model, *data))]
    return hashlib.sha256(repr(words).encode()).hexdigest()
