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
    run_converter,
)
from .prepare import prepared
from .torch_program import archive_of

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
        model: an ONNX file, a .pt2 file, or a module or program of PyTorch. For LiteRT a .pt2 file,
            a module or a program, or a .tflite file, which is ported and not converted.
        to: the engine: "ncnn" (by pnnx), "openvino" (by OpenVINO's converter), "mnn" (by
            mnnconvert), "litert" or "litert-gpu" (by litert-torch).
        output: the folder for the ported model and the converted files; it is made.
        args, kwargs, dynamic_shapes: a module's inputs, as for :func:`~zerostride.audit`.
        inputs: arrays, lists or numbers by the names of the model's inputs; the others are chosen.
        seed: of the random inputs.
        timeout: seconds for the conversion, and for the run on the engine; by default 600 and 300.
        batch_axis, facts, sizes, input_shapes: as for :func:`~zerostride.audit`.
        pythons: interpreters by engine, for engines that need an environment of their own.
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
        chosen = bool(given.sizes)
        job = _Job(row, path, folder, stem, arrays, options, how_long, progress, chosen)
        if row.reads_onnx:
            report = _port_and_convert(job)
        elif form == row.own:
            report = port_model(path, to, job.goal, options, progress=progress)
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
        chosen: whether sizes were chosen that the file leaves open.
    """

    row: EngineConverter
    model: Path
    folder: Path
    stem: str
    inputs: Mapping[str, Array]
    options: ModelOptions
    seconds: float
    progress: Progress | None
    chosen: bool

    @property
    def goal(self) -> Path:
        """The file for the engine."""
        return self.folder / _name(self.stem, self.row)

    @property
    def ported(self) -> Path:
        """The ported ONNX model."""
        return self.folder / f"{self.stem}.{self.row.engine}.onnx"


def _port_and_convert(job: _Job) -> Report:
    """The port of an ONNX model, and its conversion; without an output where that failed.

    A model that the converter refuses is tried again as another one (`prepare`).
    """
    report = port_model(job.model, job.row.engine, job.ported, job.options, progress=job.progress)
    failed = _converted(job.row, job.ported, job.goal, job.inputs, job.seconds)
    if failed is None:
        return report
    try:
        again, how = _second_try(job, failed[1])
    except ZerostrideError:
        return _failure(job.row, report, failed)
    failed_again = _converted(job.row, job.ported, job.goal, job.inputs, job.seconds)
    if failed_again is not None:
        reason = failed[1] if failed_again == failed else f"{failed[1]}; {how}: {failed_again[1]}"
        return _failure(job.row, report, (failed_again[0], reason))
    note = f"{job.row.name} does not convert the file as it is: converted {how}"
    return replace(again, model=report.model, notes=(note, *again.notes))


def _proven(job: _Job, report: Report, proof: Callable[[], Report]) -> tuple[Report, Report]:
    """The report and the proof of a conversion, or of another one whose outputs agree.

    Another one (:func:`prepared`) is tried once where nodes differ, or where sizes were chosen and
    outputs differ or broadcasts are left.
    """
    checked = proof()
    wrong = [check for check in checked.checks if check.outcome is Outcome.DIFFERS]
    ops = dict.fromkeys(check.op for check in wrong if check.node)
    left = any(not finding.holds for finding in report.findings)
    if not job.row.reads_onnx or not (ops or (job.chosen and (wrong or left))):
        return report, checked
    with suppress(ZerostrideError):
        again, how = _second_try(job, " ".join(ops))
        if _converted(job.row, job.ported, job.goal, job.inputs, job.seconds) is None:
            better = proof()
            agree = all(check.outcome is Outcome.AGREES for check in better.checks)
            if agree and all(finding.holds for finding in again.findings):
                what = f"the results of {', '.join(ops)} differ" if ops else "open sizes do not do"
                note = f"{what}: converted {how}"
                return replace(again, model=report.model, notes=(note, *again.notes)), better
    return _port_and_convert(job), checked


def _second_try(job: _Job, said: str) -> tuple[Report, str]:
    """The port of the model as :func:`prepared` writes it, and how that is, in words.

    Args:
        job: the conversion.
        said: a text with the names of the ops that are written as others.
    """
    with tempfile.TemporaryDirectory(prefix="zerostride-") as place:
        model = Path(place, job.model.name)
        ops = prepared(job.row.name, said, job.model, model, job.inputs, job.seconds)
        options = replace(job.options, sizes=None, input_shapes=None)
        report = port_model(model, job.row.engine, job.ported, options, progress=job.progress)
    return report, "with fixed sizes" + (f", and {', '.join(ops)} as other ops" if ops else "")


def _convert_and_port(job: _Job, archive: bytes) -> Report:
    """The port of the file that a program is converted to.

    Where the conversion failed, the report has no output, and the audit of the program's ONNX model
    in place of a port: it may name the node that the engine lacks.
    """
    written = job.folder / f"{job.stem}.{job.row.name}{job.row.suffix}"
    with tempfile.TemporaryDirectory(prefix="zerostride-") as place:
        program = Path(place, "program.pt2")
        write_scratch(program, lambda file: file.write_bytes(archive))
        failed = _converted(job.row, job.model, written, job.inputs, job.seconds, program)
    if failed is not None:
        report = audit_model(job.model, job.row.engine, job.options)
        return _failure(job.row, report, failed)
    # The names and sizes of the file's inputs are its own.
    return port_model(written, job.row.engine, job.goal, ModelOptions(), progress=job.progress)


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


def _failure(row: EngineConverter, report: Report, failed: tuple[Outcome, str]) -> Report:
    check = Check("", row.name, (), *failed, release=metadata.version(row.modules[0]))
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
    row: EngineConverter,
    model: Path,
    goal: Path,
    inputs: Mapping[str, Array],
    seconds: float,
    program: Path | None = None,
) -> tuple[Outcome, str] | None:
    """Converts, unless an earlier run did; the outcome and the reason where that failed.

    Args:
        row: the converter.
        model: the ONNX model that decides whether to convert again.
        goal: the file to write.
        inputs: arrays of the model's inputs.
        seconds: the longest time.
        program: what is converted, if not the model itself. The bytes of an archive differ from
            run to run.
    """
    key = _key(row, model, inputs)
    state = _read(goal.with_name(STATE))
    if state.get(goal.name) == [key, *map(_digest, files_of(row, goal))]:
        return None
    failed = run_converter(row, program or model, goal, inputs, seconds)
    if failed is None:
        state[goal.name] = [key, *map(_digest, files_of(row, goal))]
        text = json.dumps(state, indent=1).encode()
        try:
            write_whole((goal.with_name(STATE), lambda file: file.write(text)))
        except OSError as error:
            raise ModelError(f"{goal.parent}: {error.strerror or error}") from None
    return failed


def _key(row: EngineConverter, model: Path, inputs: Mapping[str, Array]) -> str:
    """Everything that a conversion depends on."""
    shapes = [(name, array.shape, str(array.dtype)) for name, array in inputs.items()]
    releases = [metadata.version(name) for name in row.modules]
    files = filter(Path.is_file, sorted(model.parent.rglob("*")))
    data = [file for file in files if not _is_ours(file, model)]  # numbers beside the model
    words = [row.name, releases, shapes, *map(_digest, (model, *data))]
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
