"""A model brought to an engine: audited, ported, converted, and run beside itself."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from ...errors import ModelError, ZerostrideError
from ...models.arguments import checked
from ...models.audit.run import audit_model
from ...models.findings import Check, Outcome, Report, Verdict
from ...models.flow.input_sizes import InputShapes, Sizes
from ...models.formats import format_of
from ...models.formats.torch_export import Example, is_torch_model, model_file
from ...models.ir.files import write_scratch
from ...models.options import ModelOptions
from ...models.port.run import port_model
from ...models.reasons import Cause, code_of
from ...system.whole_files import write_whole
from ..feeds import fed, said_of_sizes
from ..task import Array
from ..verify.checks import verify
from ..verify.site_checks import Progress
from .converters import (
    ENGINE_CONVERTERS,
    SECONDS,
    EngineConverter,
    converter_to,
    files_of,
    interpreter_of,
    release_of,
    run_converter,
)
from .prepare import Prepared, prepared
from .torch_program import archive_of

#: Outcomes after which a model is tried again as another one.
_WRONG = frozenset({Outcome.DIFFERS, Outcome.REFUSED, Outcome.CRASHED})
#: The file that says which conversions in a folder are whole, for the next run.
STATE = "convert.json"


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
    pythons: dict[str, str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Brings a model to an engine: port, the engine's own converter, and the proof on the engine.

    The model is ported (:func:`~zerostride.port`), the result is converted in a child process, and
    the converted files run on the engine on the same inputs as the model. For LiteRT the file that
    the converter writes is ported. A second call with equal inputs does not convert again.

    Args:
        model: an ONNX file, a .pt2 file, or a module or program of PyTorch; for LiteRT also a
            .tflite file, which is ported and not converted.
        to: the engine: "ncnn" (by pnnx), "openvino" (by OpenVINO's converter), "mnn" (by
            mnnconvert), "litert" or "litert-gpu" (by litert-torch, and ONNX files by onnx2tf).
        output: the folder for the ported model and the converted files; it is made.
        args, kwargs, dynamic_shapes: a module's inputs, as for :func:`~zerostride.audit`.
        inputs: arrays, lists or numbers by the names of the model's inputs; the others are chosen.
        seed: of the random inputs.
        timeout: seconds for the conversion, and for the run on the engine; by default 600 and 300.
        batch_axis, facts, sizes, input_shapes: as for :func:`~zerostride.audit`.
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
        folder = _folder(Path(output))
        # 3. The port and the conversion.
        how_long = timeout or SECONDS
        python = interpreter_of(row, pythons) if form != row.own else None
        job = _Job(row, path, folder, stem, arrays, options, how_long, progress, python)
        if form == row.own:
            report = port_model(path, to, job.goal, options, progress=progress)
        elif not row.own:
            report = _port_and_convert(job)
        elif form == "onnx":
            report = _convert_onnx_and_port(job)
        else:
            report = _convert_and_port(job, archive_of(model, source.program))
        if report.output is None:
            return source.named(report)
        # 4. The outputs of both on the engine.
        proof = partial(
            verify,
            path,
            row.runner,
            against=job.goal,
            inputs=inputs,
            seed=seed,
            timeout=timeout,
            batch_axis=batch_axis,
            facts=facts,
            sizes=every,
            input_shapes=input_shapes,
            pythons=pythons,
        )
        report, checked = _proven(job, report, proof)
        apart = f"{to} does not run here: the outputs are {row.runner}'s"
        notes = (
            *said_of_sizes(given.sizes, fixed=row.fixes_sizes),
            *_held(report),
            *report.notes,
            *([apart] if row.runner != to else ()),
            *checked.notes,
        )
        return source.named(
            replace(
                report,
                command="convert",
                checks=checked.checks,
                lacks={},
                notes=tuple(dict.fromkeys(notes)),
                release=checked.release if row.runner == to else report.release,
                output=str(job.goal),
            )
        )


@dataclass(frozen=True, slots=True)
class _Job:
    """One conversion.

    Attributes:
        row: the converter.
        model: the model's file, or the ONNX file of a module.
        folder: for the files.
        stem: of the files' names.
        inputs: arrays of the model's inputs.
        options: what is known of the model.
        seconds: the longest time.
        progress: of the port.
        python: the converter's interpreter, if it has one of its own.
    """

    row: EngineConverter
    model: Path
    folder: Path
    stem: str
    inputs: Mapping[str, Array]
    options: ModelOptions
    seconds: float
    progress: Progress | None
    python: str | None

    @property
    def release(self) -> str:
        """The converter's release."""
        return release_of(self.row, self.python)

    @property
    def goal(self) -> Path:
        """The file for the engine."""
        return self.folder / _name(self.stem, self.row)

    @property
    def written(self) -> Path:
        """The file of a converter whose files are ported."""
        return self.folder / f"{self.stem}.{self.row.name}{self.row.suffix}"

    @property
    def ported(self) -> Path:
        """The ported ONNX model."""
        return self.folder / f"{self.stem}.{self.row.engine}.onnx"


def _port_and_convert(job: _Job) -> Report:
    """The port of an ONNX model, and its conversion; without an output where that failed.

    A model that the converter refuses is tried again as another one (`prepare`).
    """
    report = port_model(job.model, job.row.engine, job.ported, job.options, progress=job.progress)
    failed = _converted(job, job.ported, job.goal, job.inputs)
    return report if failed is None else _again_or_failure(job, report, failed)


def _convert_onnx_and_port(job: _Job) -> Report:
    """The port of the file that an ONNX model with fixed sizes is converted to.

    A model that the converter refuses is tried again as another one, whose report has no output
    where that failed, too.
    """
    try:
        report, how, failed = _as_another(job, "", again=False)
    except ZerostrideError as error:
        report, how, failed = None, None, (Outcome.REFUSED, str(error))
    if report is not None:
        note = f"{job.row.name} converted the file {how}"
        return replace(report, notes=(note, *report.notes))
    audit = audit_model(job.model, job.row.engine, job.options)
    return _again_or_failure(job, audit, failed or (Outcome.REFUSED, ""))


def _again_or_failure(job: _Job, report: Report, failed: tuple[Outcome, str]) -> Report:
    """The report of a second try, or that of a failure with the reasons of both."""
    try:
        again, how, failed_again = _as_another(job, failed[1])
    except ZerostrideError:
        return _failure(job, report, failed)
    if again is None or failed_again is not None:
        second = failed_again or failed
        reason = failed[1] if second == failed else f"{failed[1]}; {how}: {second[1]}"
        return _failure(job, report, (second[0], reason))
    note = f"{job.row.name} does not convert the file as it is: converted {how}"
    return replace(again, model=report.model, notes=(note, *again.notes))


def _proven(job: _Job, report: Report, proof: Callable[[], Report]) -> tuple[Report, Report]:
    """The report and the proof of a conversion, or of another one whose outputs agree.

    Another one (:func:`prepared`) is tried once where results differ or are none, or broadcasts
    are left.
    """
    checked = proof()
    wrong = [check for check in checked.checks if check.outcome in _WRONG]
    ops = dict.fromkeys(check.op for check in wrong if check.node)
    left = any(not finding.holds for finding in report.findings)
    if "onnx" not in job.row.reads or not (wrong or left):
        return report, checked
    with suppress(ZerostrideError):
        again, how, failed = _as_another(job, " ".join(ops))
        if again is not None and failed is None:
            better = proof()
            agree = all(check.outcome is Outcome.AGREES for check in better.checks)
            if agree and all(finding.holds for finding in again.findings):
                if ops:
                    what = f"the results of {', '.join(ops)} differ"
                else:
                    what = "outputs differ" if wrong else "broadcasts differ"
                    what += " in the file as it is"
                note = f"{what}: converted {how}"
                return replace(again, model=report.model, notes=(note, *again.notes)), better
    first = _convert_onnx_and_port if job.row.own else _port_and_convert
    return first(job), checked


def _as_another(
    job: _Job, named: str, *, again: bool = True
) -> tuple[Report | None, Prepared, tuple[Outcome, str] | None]:
    """Converts the model as :func:`prepared` writes it: the port's report, how, and the failure.

    Args:
        job: the conversion.
        named: a text with the names of the ops that are written as others.
        again: whether this is a second try.
    """
    row, fixed = job.row, replace(job.options, sizes=None, input_shapes=None)
    with tempfile.TemporaryDirectory(prefix="zerostride-") as place:
        model = Path(place, job.model.name)
        how = prepared(row.name, named, job.model, model, job.inputs, job.seconds, again)
        inputs = how.inputs(job.inputs)
        if not row.own:
            report = port_model(model, row.engine, job.ported, fixed, progress=job.progress)
            return report, how, _converted(job, job.ported, job.goal, inputs)
        failed = _converted(job, model, job.written, inputs)
    return (None if failed else _port_of_written(job)), how, failed


def _port_of_written(job: _Job) -> Report:
    """The port of the file that the converter wrote; its inputs' names and sizes are its own."""
    return port_model(job.written, job.row.engine, job.goal, ModelOptions(), progress=job.progress)


def _convert_and_port(job: _Job, archive: bytes) -> Report:
    """The port of the file that a program is converted to.

    Where the conversion failed, the report has no output, and the audit of the program's ONNX model
    in place of a port: it may name the node that the engine lacks.
    """
    with tempfile.TemporaryDirectory(prefix="zerostride-") as place:
        program = Path(place, "program.pt2")
        write_scratch(program, lambda file: file.write_bytes(archive))
        failed = _converted(job, job.model, job.written, job.inputs, program)
    if failed is not None:
        report = audit_model(job.model, job.row.engine, job.options)
        return _failure(job, report, failed)
    return _port_of_written(job)


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


def _failure(job: _Job, report: Report, failed: tuple[Outcome, str]) -> Report:
    check = Check("", job.row.name, (), *failed, release=job.release)
    return replace(report, command="convert", checks=(check,), output=None)


def _name(stem: str, row: EngineConverter) -> str:
    """The converted file's name; two engines have files that end in .bin."""
    own = row.suffix == f".{row.engine}"
    return f"{stem}{row.suffix}" if own else f"{stem}.{row.engine}{row.suffix}"


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{path}: no folder can be made there: {reason}") from None
    return path


def _converted(
    job: _Job, model: Path, goal: Path, inputs: Mapping[str, Array], program: Path | None = None
) -> tuple[Outcome, str] | None:
    """Converts, unless an earlier run did; the outcome and the reason where that failed.

    Args:
        job: the conversion.
        model: the ONNX model that decides whether to convert again.
        goal: the file to write.
        inputs: arrays of the model's inputs.
        program: what is converted, if not the model itself. The bytes of an archive differ from
            run to run.
    """
    row, key = job.row, _key(job, model, inputs)
    state = _read(goal.with_name(STATE))
    if state.get(goal.name) == [key, *map(_digest, files_of(row, goal))]:
        return None
    failed = run_converter(row, program or model, goal, inputs, job.seconds, job.python)
    if failed is None:
        state[goal.name] = [key, *map(_digest, files_of(row, goal))]
        text = json.dumps(state, indent=1).encode()
        try:
            write_whole((goal.with_name(STATE), lambda file: file.write(text)))
        except OSError as error:
            raise ModelError(f"{goal.parent}: {error.strerror or error}") from None
    return failed


def _key(job: _Job, model: Path, inputs: Mapping[str, Array]) -> str:
    """Everything that a conversion depends on."""
    shapes = [(name, array.shape, str(array.dtype)) for name, array in inputs.items()]
    others = [metadata.version(name) for name in job.row.modules[1:]]
    files = filter(Path.is_file, sorted(model.parent.rglob("*")))
    data = [file for file in files if not _is_ours(file, model)]  # numbers beside the model
    words = [job.row.name, job.release, others, shapes, *map(_digest, (model, *data))]
    return hashlib.sha256(repr(words).encode()).hexdigest()


def _is_ours(file: Path, model: Path) -> bool:
    """Whether a file in the folder is a model, a converted file or a report."""
    stem = model.stem.removesuffix(model.with_suffix("").suffix)
    prefixes = tuple(f"{stem}.{engine}" for engine in ENGINE_CONVERTERS)
    return file.name.startswith((*prefixes, "report.", STATE))


def _digest(file: Path) -> str:
    """The file's hash; "" if it cannot be read."""
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        return ""


def _read(file: Path) -> dict[str, Any]:
    try:
        state = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}
