"""Converts an ONNX model with the real converters: OpenVINO's IR, ncnn's files, MNN's file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from zerostride.models.formats import read_model

#: Seconds for one conversion.
SECONDS = 600.0
#: How pnnx writes element types.
_PNNX_TYPES = {"float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32", "bool": "u8"}
_IR = (
    "import sys, openvino as ov\n"
    "ov.save_model(ov.convert_model(sys.argv[1]), sys.argv[2], compress_to_fp16=False)\n"
)
#: Loads what pnnx wrote, as a user's program does; a layer that ncnn lacks ends it with status 1.
_LOAD = (
    "import sys, ncnn\n"
    "net = ncnn.Net()\n"
    "sys.exit(net.load_param(sys.argv[1]) != 0 or net.load_model(sys.argv[2]) != 0)\n"
)


def _with_openvino(model: Path, goal: Path, inputs: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-I", "-c", _IR, str(model), str(goal)]


def _with_pnnx(model: Path, goal: Path, inputs: tuple[str, ...]) -> list[str]:
    """pnnx needs the shape and type of every input, and writes the ncnn files beside its own."""
    types = {value.name: value.dtype or "float32" for value in read_model(model).inputs}
    pairs = [text.rpartition("=") for text in inputs]
    shapes = ",".join(f"[{sizes}]{_PNNX_TYPES[types[name]]}" for name, _, sizes in pairs)
    stem = goal.name.removesuffix(".param")
    names = {"ncnnparam": goal.name, "ncnnbin": f"{stem}.bin"}
    others = ("pnnxparam", "pnnxbin", "pnnxpy", "pnnxonnx", "ncnnpy")
    names |= {name: f"{stem}.{name}" for name in others}
    files = [f"{name}={file}" for name, file in names.items()]
    return [_program("pnnx"), model.name, f"inputshape={shapes}", "fp16=0", *files]


def _with_mnnconvert(model: Path, goal: Path, inputs: tuple[str, ...]) -> list[str]:
    command = [_program("mnnconvert"), "-f", "ONNX", "--modelFile", model.name]
    return [*command, "--MNNModel", goal.name, "--bizCode", "zerostride"]


def _program(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name) or name


#: Converter to the end of the file that it writes, and its command.
CONVERTERS: Mapping[str, tuple[str, Callable[[Path, Path, tuple[str, ...]], list[str]]]] = {
    "openvino": (".xml", _with_openvino),
    "pnnx": (".pnnx.param", _with_pnnx),
    "mnnconvert": (".mnn", _with_mnnconvert),
}


def convert(model: Path, converter: str, inputs: tuple[str, ...], folder: Path) -> Path | str:
    """The file that a converter makes of a model, or the reason of its failure.

    Converters run in a folder of their own: they leave files beside the model. Files that ncnn
    itself does not load, because pnnx left layers in them that ncnn lacks, count as failures.
    """
    suffix, command_of = CONVERTERS[converter]
    folder = folder.resolve()
    goal = folder / f"{model.stem}{suffix}"
    if goal.is_file():
        return _refusal_of_ncnn(goal) or goal
    place = folder / f"{model.stem}.{converter}"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(model, place / model.name)
    try:
        done = subprocess.run(
            command_of(place / model.name, place / goal.name, inputs),
            cwd=place,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        return f"not installed: {error.filename}"
    except subprocess.TimeoutExpired:
        return f"no answer within {SECONDS:.0f} s"
    if not (place / goal.name).is_file() or (place / goal.name).stat().st_size == 0:
        lines = (done.stderr + done.stdout).strip().splitlines() or ["nothing was written"]
        return f"status {done.returncode}: {lines[-1][:200]}"
    for file in place.glob(f"{goal.name.rsplit('.', 1)[0]}.*"):
        shutil.move(file, folder / file.name)
    shutil.rmtree(place)
    return _refusal_of_ncnn(goal) or goal


def _refusal_of_ncnn(goal: Path) -> str:
    """Why ncnn does not load a file that pnnx wrote; empty where it does, and for other files."""
    if goal.suffix != ".param":
        return ""
    command = [sys.executable, "-I", "-c", _LOAD, str(goal), str(goal.with_suffix(".bin"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
    return f"ncnn does not load the result: {lines[-1][:200]}" if done.returncode else ""
