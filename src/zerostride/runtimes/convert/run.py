"""A model brought to an engine: audited, ported, converted, and run beside itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...core.hooks import render_report
from ...models.arguments import checked
from ...models.findings import Conversion, Report
from ...models.flow.input_sizes import InputShapes, Sizes
from ...models.formats.model_file import form_and_label, model_file
from ...models.formats.torch_export import Example
from ...models.options import ModelOptions, command_words
from ..equivalent.converted import converted_words
from ..feeds import fed, said_of_sizes
from ..verify.checks import verify
from ..verify.site_checks import Progress
from .converters import (
    SECONDS,
    converter_to,
    interpreter_of,
)
from .dequantise import dequantise, quantised_ops
from .folder import (
    PAGE,
    RECORD,
    digest,
    folder_at,
    input_files,
    put,
    scratch_folder,
)
from .torch_program import archive_of
from .tries import Job, Try, best_of, held, report_of


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
        model: an ONNX file, a .pt2 file, a model in memory, or a module or program of PyTorch, as
            for :func:`~zerostride.audit`; for LiteRT also a .tflite file, which is ported and not
            converted.
        to: the engine: "ncnn" (by pnnx), "openvino" (by OpenVINO's converter), "mnn" (by
            mnnconvert), "litert" or "litert-gpu" (by litert-torch, and ONNX files by onnx2tf),
            "executorch" (and ONNX files by onnx2torch).
        output: the folder for the ported model, the converted files and the report; it is made.
        args, kwargs, dynamic_shapes: a module's inputs, as for :func:`~zerostride.audit`.
        inputs: arrays, lists or numbers by the names of the model's inputs; the others are chosen.
        seed: of the random inputs.
        timeout: seconds for the conversion, and for the run on the engine; by default 600 and 300.
        batch_axis, facts, sizes, input_shapes: as for :func:`~zerostride.audit`.
        dequantize: convert a copy of a quantised ONNX model in which its ops are those of floats,
            without the rounding. The report says how far its outputs are from the model's.
        pythons: interpreters by name, for engines and converters that need an environment of their
            own ("onnx2tf", "executorch").
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
    form, label = form_and_label(model)
    row = converter_to(to, form, label)
    with model_file(model, Example(args, kwargs, dynamic_shapes)) as source:
        known = batch_axis, facts, sizes, input_shapes
        options = ModelOptions(None, *known, form=source.form)
        # 2. The inputs, whose shapes the converted files have.
        path, stem = Path(source.path), source.stem
        given = fed(options, path, inputs or {}, seed)
        arrays, every = given.runs[0], {**(sizes or {}), **given.sizes}
        if row.fixes_sizes:
            options = replace(options, sizes=every)
        folder = folder_at(Path(output))
        python = interpreter_of(row, pythons) if form != row.own else None
        is_program = row.of_programs and form != row.own
        archive = archive_of(model, source.program) if is_program else None
        if python is not None and row.engine == row.name:  # it is the engine, too
            pythons = {**(pythons or {}), row.name: python}
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
            job = Job(
                *(row, form, path, folder, scratch, stem, arrays),
                *(options, how_long, progress, python, archive, proof),
            )
            # 3. The port, the conversion, and the outputs of both on the engine.
            best = best_of(job)
            apart = f"{to} does not run here: the outputs are {row.runner}'s"
            report = report_of(
                job,
                best,
                before=(
                    *said_of_sizes(given.sizes, fixed=row.fixes_sizes),
                    *moved,
                    *held(best.report),
                ),
                after=(
                    *((apart,) if row.runner != to else ()),
                    *_every_size(job, best, options),
                ),
            )
            files = input_files(given.runs)
            conversion = Conversion(
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
            report = source.named(replace(report, model=str(source.path), conversion=conversion))
            # 4. All files at once.
            texts = {PAGE: report.to_html(), RECORD: render_report(report, "record")}
            others = {
                name: text.encode("utf-8", "backslashreplace") for name, text in texts.items()
            }
            put(best.folder, folder, (*job.names, copy.name), {**files, **others})
        return report


def _every_size(job: Job, best: Try, options: ModelOptions) -> tuple[str, ...]:
    """A note if the converted file is proven to mean the same as the model for every size."""
    if best.failure is not None or job.form not in ("onnx", job.row.own):
        return ()
    return converted_words(job.model, best.folder / job.goal, options)
