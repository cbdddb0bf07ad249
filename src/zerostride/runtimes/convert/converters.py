"""The converters of engines, each run in a child process.

They are pnnx, OpenVINO's, mnnconvert, litert-torch, and in environments of their own onnx2tf and
ExecuTorch.

A converter may crash, hang, print, and leave files beside the model. None installs packages.
"""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import ModelError, ZerostrideError
from ...models.findings import Outcome
from ...models.formats.child import ask
from ...models.formats.ncnn.embedding import embed_rows
from ...models.formats.onnx.external_files import save_inside
from ...models.formats.onnx.prepared import reads_rows
from ..process import ENVIRONMENT, environment_command, interpreter_for, own_folder
from ..task import Array
from .executorch_child import SOURCE as _EXECUTORCH
from .onnx2tf_child import SOURCE as _ONNX2TF

#: Seconds for one conversion.
SECONDS = 600.0
#: Seconds for an interpreter to say which release it has.
_SECONDS_TO_ASK = 60.0
#: With fewer bytes left after a conversion, its files may have been cut off.
_LEAST_ROOM = 1 << 16
#: Converters whose children get the shapes of the inputs.
_SHAPED = frozenset({"litert-torch", "executorch"})
#: The end of the script in which pnnx writes how its file is fed, and its word for no batch axis.
_SCRIPT, _NO_BATCH = ".py", 233
#: How pnnx writes element types.
_PNNX_TYPES: Mapping[str, str] = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8",
}  # fmt: skip
#: Runs before a converter: all that it prints is its error output, whose last line is its reason.
_FOLDER = """
import os
os.dup2(2, 1)
os.chdir(sys.argv[1])
"""
_OPENVINO = """
import openvino
model = openvino.convert_model(sys.argv[2])
openvino.save_model(model, sys.argv[3], compress_to_fp16=False)
"""
_PNNX = """
import importlib.util
folder = os.path.dirname(importlib.util.find_spec("pnnx").origin)
os.execv(os.path.join(folder, "pnnx"), ["pnnx", *sys.argv[2:3], *sys.argv[4:]])
"""
#: mnnconvert ends well without a file, and says only in passing what it lacks.
_MNN = """
import re
import tempfile
import _tools
words = ["-f", "ONNX", "--modelFile", sys.argv[2], "--MNNModel", sys.argv[3]]
with tempfile.TemporaryFile() as said:
    os.dup2(said.fileno(), 1)
    os.dup2(1, 2)
    _tools.mnnconvert(["mnnconvert", *words, "--bizCode", "zerostride"])
    said.seek(0)
    lacking = re.findall(rb"ONNX::(\\w+)", said.read().rpartition(b"Not Support:")[2])
if lacking and not os.path.exists(sys.argv[3]):
    answer.write(b"no conversion of the ops " + b", ".join(lacking))
"""
_RELEASE = """
from importlib import metadata
answer.write(metadata.version(sys.argv[1]).encode())
"""
_LITERT = """
load_package()
from zerostride.runtimes.convert.torch_program import write_litert
write_litert(*sys.argv[2:4], json.loads(sys.argv[4]))
"""
#: Loads what pnnx wrote, as a user's program does.
_LOAD_NCNN = """
import ncnn
with open(sys.argv[2], errors="replace") as text:
    kinds = dict.fromkeys(line.split()[0] for line in text.readlines()[2:] if line.split())
lacking = [kind for kind in kinds if ncnn.layer_to_index(kind) < 0]
if lacking:
    sys.exit("no layers " + ", ".join(lacking))
net = ncnn.Net()
sys.exit(net.load_param(sys.argv[2]) != 0 or net.load_model(sys.argv[3]) != 0)
"""


class Failure(NamedTuple):
    """Why a model was not converted.

    Attributes:
        outcome: REFUSED or CRASHED.
        reason: in a sentence, with the program's name first.
    """

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class EngineConverter:
    """A converter to the files of one engine.

    Attributes:
        name: of the program.
        engine: the engine that reads the files.
        suffix: the end of the file that it writes.
        modules: the Python packages that it needs.
        source: Python source of the child. Its arguments are a folder of its own, the model, the
            file to write, and further words.
        beside: the ends of further files with the same stem.
        load: Python source that loads the files, for a converter that does not report what the
            engine lacks; or "".
        inside: the converter crashes on external data, so it gets a copy with the data inside.
        reads: the formats of models that it converts: an ONNX file, also that of a program of
            PyTorch, or a program of torch.export.
        fixes_sizes: the files that it writes take inputs of one shape.
        own: the format of the engine's files, if the port is of the file that is written, and such
            a file is ported without a conversion. Otherwise the ported ONNX model is converted.
        runs_on: the engine that runs the files here, if it is another one.
        extra: zerostride's extra with the packages; "": they are installed by their names.
        apart: its packages pin releases, so that it has an environment of its own.
        installs: what pip installs in an environment of its own.
    """

    name: str
    engine: str
    suffix: str
    modules: tuple[str, ...]
    source: str
    beside: tuple[str, ...] = ()
    load: str = ""
    inside: bool = False
    reads: tuple[str, ...] = ("onnx", "torch")
    fixes_sizes: bool = False
    own: str = ""
    runs_on: str = ""
    extra: str = ""
    apart: bool = False
    installs: str = ""

    @property
    def of_programs(self) -> bool:
        """Whether it reads programs of torch.export themselves, not ONNX models of them."""
        return "torch" in self.reads and "onnx" not in self.reads

    @property
    def runner(self) -> str:
        """The engine that runs the files here."""
        return self.runs_on or self.engine


_LITERT_TORCH = EngineConverter(
    "litert-torch",
    "litert",
    ".tflite",
    ("litert_torch", "litert_converter", "torch"),
    _LITERT,
    reads=("torch",),
    fixes_sizes=True,
    own="litert",
    extra="litert-torch",
)
_FROM_ONNX = EngineConverter(
    "onnx2tf",
    "litert",
    ".tflite",
    ("onnx2tf",),
    _ONNX2TF,
    reads=("onnx",),
    fixes_sizes=True,
    own="litert",
    apart=True,
    installs="onnx2tf",
)
#: It is its own runtime; `engine` and its name are one, and so is its environment.
_EXECUTORCH_ROW = EngineConverter(
    "executorch",
    "executorch",
    ".pte",
    ("executorch",),
    _EXECUTORCH,
    reads=("torch",),
    fixes_sizes=True,
    apart=True,
    installs="executorch torch",
)
ENGINE_CONVERTERS: Mapping[str, EngineConverter] = {
    row.engine: row
    for row in (
        EngineConverter("ovc", "openvino", ".xml", ("openvino",), _OPENVINO, (".bin",)),
        EngineConverter(
            *("pnnx", "ncnn", ".param", ("pnnx", "ncnn"), _PNNX, (".bin", _SCRIPT)),
            load=_LOAD_NCNN,
            inside=True,
            fixes_sizes=True,
        ),
        EngineConverter("mnnconvert", "mnn", ".mnn", ("MNN",), _MNN),
        _LITERT_TORCH,
        replace(_LITERT_TORCH, engine="litert-gpu", runs_on="litert"),
        _EXECUTORCH_ROW,
    )
}
#: The converters of ONNX files to engines that have another one for programs of PyTorch.
_OF_ONNX: Mapping[str, EngineConverter] = {
    "litert": _FROM_ONNX,
    "litert-gpu": replace(_FROM_ONNX, engine="litert-gpu", runs_on="litert"),
    "executorch": replace(_EXECUTORCH_ROW, reads=("onnx",), installs="executorch torch onnx2torch"),
}
#: Engines with converters that are not run here, and the way to them.
_ELSEWHERE: Mapping[str, str] = {
    "tensorflow": "convert a copy of the model with onnx2tf, in an environment of its own",
    "coreml": "convert the PyTorch module with coremltools",
    "tensorrt": "build an engine with trtexec --onnx",
    "paddle": "convert the model with x2paddle, in an environment of its own",
}


def converter_to(engine: str, form: str = "onnx", model: str = "the model") -> EngineConverter:
    """The converter to an engine.

    Args:
        engine: the engine's name.
        form: the format of the model; "torch" is a module, too.
        model: what errors call it.

    Raises:
        ModelError: the converter does not read the format.
        ZerostrideError: none is run here, or its packages are not installed.
    """
    row = ENGINE_CONVERTERS.get(engine)
    if row is None:
        able = ", ".join(sorted(ENGINE_CONVERTERS))
        way = _ELSEWHERE.get(engine)
        words = f"; {way}, then: zerostride verify MODEL --target {engine} --against FILE"
        raise ZerostrideError(f"convert writes for {able}, not {engine}{words if way else ''}")
    if form == "onnx":
        row = _OF_ONNX.get(engine, row)
    if form not in (*row.reads, row.own):
        reads = _reads(engine)
        raise ModelError(f"{model}: convert to {engine} reads {reads}, not {form}")
    modules = () if form == row.own or row.apart else row.modules
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing and row.extra:
        raise ZerostrideError(f"{row.name} is not installed: pip install 'zerostride[{row.extra}]'")
    if missing:
        names = " ".join(missing)
        raise ZerostrideError(f"{row.name} needs {' and '.join(missing)}: pip install {names}")
    return row


def _reads(engine: str) -> str:
    """The models that are converted to an engine, in words."""
    words = {
        "onnx": "ONNX models",
        "torch": "PyTorch modules and .pt2 files",
        "litert": ".tflite files",
    }
    rows = filter(None, (ENGINE_CONVERTERS[engine], _OF_ONNX.get(engine)))
    forms = {form for row in rows for form in (*row.reads, row.own)}
    return ", ".join(words[form] for form in words if form in forms)


def interpreter_of(row: EngineConverter, pythons: dict[str, str] | None = None) -> str | None:
    """The interpreter of a converter with an environment of its own; None for the others.

    It is the chosen one, that of the environment's ZEROSTRIDE_PYTHON_NAME, this one if it has the
    converter, or that of the folder that the error names.

    Args:
        row: the converter.
        pythons: interpreters by name.

    Raises:
        ZerostrideError: none has it.
    """
    if not row.apart:
        return None
    python = interpreter_for(row.name, pythons)
    if python == sys.executable and importlib.util.find_spec(row.modules[0]) is None:
        place = own_folder(row.name)
        python = str(place / "bin" / "python")
        if not place.is_dir():
            raise ZerostrideError(
                f"{row.name} is not installed, and its packages pin releases, so it needs an "
                f"environment of its own: {environment_command(row.name, row.installs)}; or name "
                f"an interpreter that has it ({ENVIRONMENT}{row.name.upper()})"
            )
    return python


def release_of(row: EngineConverter, python: str | None = None) -> str:
    """The release of a converter.

    Raises:
        ZerostrideError: its interpreter has none.
    """
    if python is None:
        return metadata.version(row.modules[0])
    answer = ask(_RELEASE, row.modules[0], seconds=_SECONDS_TO_ASK, python=python)
    if answer.failure is not None:
        raise ZerostrideError(f"{python} has no {row.name}: {answer.failure}")
    return answer.output.decode()


def run_converter(
    row: EngineConverter,
    model: Path,
    goal: Path,
    inputs: Mapping[str, Array],
    seconds: float,
    python: str | None = None,
    again: bool = False,
) -> Failure | None:
    """Converts a model; the failure if that failed.

    Args:
        row: the converter.
        model: an ONNX file, or an archive of torch.export.
        goal: the file to write, in a folder that nobody else reads; further ones get its stem.
        inputs: arrays of the model's inputs, for their shapes and types.
        seconds: the longest time.
        python: the interpreter that has the converter; None: this one.
        again: whether the model is written for a second try.

    Raises:
        ModelError: pnnx does not read external data, and an ONNX file cannot have as much inside;
            or the folder of temporary files is full.
    """
    with tempfile.TemporaryDirectory(prefix="zerostride-") as place:
        copy = Path(place, f"inside-{model.name}")
        if row.inside and save_inside(model, copy, f"{row.name} needs its external data inside"):
            model = copy
        litter = model.with_suffix(".pnnxsim.onnx")  # pnnx leaves it beside the model
        kept = litter.exists()
        written = Path(place, goal.name)
        words = _words_of(row, goal.stem, inputs)
        if row.name == "onnx2tf" and again:
            np.savez(Path(place, "inputs.npz"), *inputs.values())
            words = [json.dumps([*inputs])]
        paths = str(model.absolute()), str(written)  # the child works in another folder
        source = _FOLDER + row.source
        answer = ask(source, place, *paths, *words, seconds=seconds, python=python)
        if not kept:
            litter.unlink(missing_ok=True)
        failure = answer.failure
        if shutil.disk_usage(place).free < _LEAST_ROOM:  # not every converter reports it
            raise ModelError(f"{place}: {os.strerror(errno.ENOSPC)}")
        if not written.is_file() or not written.stat().st_size:
            said = failure or answer.output.decode(errors="replace") or "nothing was written"
            return _failed(failure, f"{row.name}: {said}")
        if row.name == "pnnx" and reads_rows(model):
            embed_rows(written)
        failed = load(row, written, seconds)
        if failed is not None:
            return failed
        for file in files_of(row, written):
            shutil.move(file, goal.with_name(file.name))
    return None


def files_of(row: EngineConverter, goal: Path) -> list[Path]:
    """The files of a conversion."""
    return [goal, *(goal.with_name(goal.stem + end) for end in row.beside)]


def load(row: EngineConverter, goal: Path, seconds: float) -> Failure | None:
    """Loads what a converter wrote, if it does not say what the engine lacks; see above."""
    if not row.load:
        return None
    words = map(str, files_of(row, goal))
    failure = ask(_FOLDER + row.load, str(goal.parent), *words, seconds=seconds).failure
    if failure is None:
        return None
    return _failed(failure, f"{row.engine} does not load what {row.name} wrote: {failure}")


def _failed(failure: str | None, reason: str) -> Failure:
    crashed = failure is not None and failure.startswith("it was ended by")
    return Failure(Outcome.CRASHED if crashed else Outcome.REFUSED, reason)


def _words_of(row: EngineConverter, stem: str, inputs: Mapping[str, Array]) -> Sequence[str]:
    """The further words of a converter's child."""
    if row.name == "pnnx":
        return pnnx_words(stem, inputs)
    if row.name not in _SHAPED:
        return []
    return [json.dumps([array.shape for array in inputs.values()])]


def pnnx_words(stem: str, inputs: Mapping[str, Array]) -> Sequence[str]:
    """The shapes and types of the inputs, and a name for each file that pnnx writes.

    It has no words for inputs of rank 0 and for some element types; then it takes the model's own
    shapes.
    """
    arrays = inputs.values()
    kinds = [_PNNX_TYPES.get(str(array.dtype)) for array in arrays]
    shapes = [f"[{','.join(map(str, array.shape))}]" for array in arrays]
    said = all(kinds) and "[]" not in shapes
    words = ",".join(f"{shape}{kind}" for shape, kind in zip(shapes, kinds, strict=True))
    others = ("pnnxparam", "pnnxbin", "pnnxpy", "pnnxonnx")
    names = {"ncnnparam": f"{stem}.param", "ncnnbin": f"{stem}.bin", "ncnnpy": f"{stem}{_SCRIPT}"}
    names |= {other: f"{stem}.{other}" for other in others}
    files = [f"{name}={file}" for name, file in names.items()]
    return [*([f"inputshape={words}"] if said else []), "fp16=0", *files]


class Batches(NamedTuple):
    """The batch axis of each input and output; None for none."""

    inputs: Sequence[int | None]
    outputs: Sequence[int | None]


def batches_of(file: Path, inputs: int) -> Batches | None:
    """The batch axes of a file that pnnx wrote, by the script beside it.

    None: there is no script, or it is of another number of inputs.
    """
    # By itself pnnx writes M.ncnn.param and M_ncnn.py.
    names = file.stem + _SCRIPT, file.stem.removesuffix(".ncnn") + "_ncnn.py"
    for script in filter(Path.is_file, map(file.with_name, names)):
        text = script.read_text("utf-8", "replace")
        given, gives = (
            [None if int(axis) == _NO_BATCH else int(axis) for axis in re.findall(pattern, text)]
            for pattern in (r"ex\.input\(.*batch_index=(\d+)", r"out\d+\.numpy\(.*=(\d+)")
        )
        if len(given) == inputs:
            return Batches(given, gives)
    return None
