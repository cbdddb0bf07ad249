"""A model brought to an engine: audited, ported, converted, and run beside itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

from ...errors import ModelError
from ...models.findings import Check, Outcome, Report
from ...models.flow.input_sizes import InputShapes, Sizes
from ...models.formats import format_of
from ...models.formats.torch_export import Example, model_file
from ...models.options import ModelOptions
from ...models.port.run import port_model
from ...models.transport.converters import CONVERTERS as JUDGED
from ...system.whole_files import write_whole
from ..feeds import fed
from ..task import Array
from ..verify.checks import verify
from ..verify.site_checks import Progress
from .converters import CONVERTERS, SECONDS, EngineConverter, converter_to, files_of, run_converter

#: The file that says which conversions in a folder are whole, for the next run.
STATE = "convert.json"


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
    the converted files run on the engine on the same inputs as the model. A second call with equal
    inputs does not convert again.

    Args:
        model: an ONNX file, or a module or program of PyTorch.
        to: the engine: "ncnn" (by pnnx), "openvino" (by OpenVINO's converter) or "mnn" (by
            mnnconvert).
        output: the folder for the ported model and the converted files; it is made.
        args, kwargs, dynamic_shapes: a module's inputs, as for :func:`~zerostride.audit`.
        inputs: arrays, lists or numbers by the names of the model's inputs; the others are random.
        seed: of the random inputs.
        timeout: seconds for the conversion, and for the run on the engine; by default 600 and 300.
        batch_axis, facts, sizes, input_shapes: as for :func:`~zerostride.audit`.
        pythons: interpreters by engine, for engines that need an environment of their own.
        progress: called with the number of nodes done and of all, while the model is ported.

    Returns:
        The port's report. Its `output` is the converted file, and its `checks` compare the outputs;
        a conversion that failed is a check with the converter's message, and has no output.

    Raises:
        ModelError: the file cannot be read or written.
        ZerostrideError: no converter to the engine runs here, or a size of an input is not known.
        BroadcastError: there is no such engine.
    """
    row = converter_to(to)
    options = ModelOptions(_way(row), batch_axis, facts, sizes, input_shapes)
    with model_file(model, Example(args, kwargs, dynamic_shapes)) as source:
        path, stem = Path(source.path), Path(source.label or source.path).stem
        if format_of(path).name != "onnx":
            raise ModelError(f"{path}: {row.name} reads ONNX models, not {format_of(path).name}")
        _, arrays = fed(options, path, inputs or {}, seed)
        folder = _folder(Path(output))
        ported, goal = folder / f"{stem}.{to}.onnx", folder / _name(stem, row)
        report = port_model(path, to, ported, options, progress=progress)
        failed = _converted(row, ported, goal, arrays, timeout or SECONDS)
        if failed is not None:
            check = Check("", row.name, (), *failed, release=metadata.version(row.modules[0]))
            return source.named(replace(report, command="convert", checks=(check,), output=None))
        checked = verify(
            path,
            to,
            against=goal,
            inputs=inputs,
            seed=seed,
            timeout=timeout,
            batch_axis=batch_axis,
            facts=facts,
            sizes=sizes,
            input_shapes=input_shapes,
            pythons=pythons,
        )
        notes = dict.fromkeys((*report.notes, *checked.notes))
        return source.named(
            replace(
                report,
                command="convert",
                checks=checked.checks,
                notes=tuple(notes),
                release=checked.release,
                output=str(goal),
            )
        )


def _name(stem: str, row: EngineConverter) -> str:
    """The converted file's name; two engines have files that end in .bin."""
    own = row.suffix == f".{row.engine}"
    return f"{stem}{row.suffix}" if own else f"{stem}.{row.engine}{row.suffix}"


def _way(row: EngineConverter) -> str | None:
    """The audit's name of the converter; None where it judges the engine's own reading of ONNX."""
    return row.name if row.name in JUDGED else None


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{path}: no folder can be made there: {reason}") from None
    return path


def _converted(
    row: EngineConverter, model: Path, goal: Path, inputs: Mapping[str, Array], seconds: float
) -> tuple[Outcome, str] | None:
    """Converts, unless an earlier run did; the outcome and the reason where that failed."""
    key = _key(row, model, inputs)
    state = _read(goal.with_name(STATE))
    if state.get(goal.name) == [key, *map(_digest, files_of(row, goal))]:
        return None
    failed = run_converter(row, model, goal, inputs, seconds)
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
    prefixes = tuple(f"{stem}.{engine}" for engine in CONVERTERS)
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
