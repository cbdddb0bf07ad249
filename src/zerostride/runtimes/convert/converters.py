"""The converters of engines, each run in a child process.

They are pnnx, OpenVINO's, mnnconvert and litert-torch.

A converter may crash, hang, print, and leave files beside the model. None installs packages.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ...errors import ModelError, ZerostrideError
from ...models.findings import Outcome
from ...models.formats.child import ask
from ...models.formats.ncnn.embedding import embed_rows
from ...models.formats.onnx.external_files import save_inside
from ...models.formats.onnx.prepared import reads_rows
from ..task import Array

#: Seconds for one conversion.
SECONDS = 600.0
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
        reads_onnx: it converts the ported ONNX model. Otherwise it converts a program of
            torch.export, and the file that it writes is ported.
        fixes_sizes: the files that it writes take inputs of one shape.
        own: the format of the engine's files, if such a file is ported without a conversion.
        runs_on: the engine that runs the files here, if it is another one.
        extra: zerostride's extra with the packages; "": they are installed by their names.
        advice: what to do with a file of another format, by the name of the format.
    """

    name: str
    engine: str
    suffix: str
    modules: tuple[str, ...]
    source: str
    beside: tuple[str, ...] = ()
    load: str = ""
    inside: bool = False
    reads_onnx: bool = True
    fixes_sizes: bool = False
    own: str = ""
    runs_on: str = ""
    extra: str = ""
    advice: Mapping[str, str] = field(default_factory=dict)

    @property
    def runner(self) -> str:
        """The engine that runs the files here."""
        return self.runs_on or self.engine


#: onnx2tf 2.6.9 pins the releases of its packages, so it cannot be installed beside the others.
_ONNX2TF = (
    "give the PyTorch module or its .pt2 file; or run onnx2tf in an environment of its own, on a "
    "copy of the model, because it overwrites its input, then: zerostride verify MODEL --engine "
    "litert --against FILE"
)
_LITERT_TORCH = EngineConverter(
    "litert-torch",
    "litert",
    ".tflite",
    ("litert_torch", "litert_converter", "torch"),
    _LITERT,
    reads_onnx=False,
    fixes_sizes=True,
    own="litert",
    extra="litert-torch",
    advice={"onnx": _ONNX2TF},
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
    )
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
        words = f"; {way}, then: zerostride verify MODEL --engine {engine} --against FILE"
        raise ZerostrideError(f"convert writes for {able}, not {engine}{words if way else ''}")
    if form not in (("onnx", "torch") if row.reads_onnx else ("torch", row.own)):
        reads = "ONNX models" if row.reads_onnx else "PyTorch modules and .pt2 files"
        advice = f"; {row.advice[form]}" if form in row.advice else ""
        raise ModelError(f"{model}: {row.name} reads {reads}, not {form}{advice}")
    modules = () if form == row.own else row.modules
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing and row.extra:
        raise ZerostrideError(f"{row.name} is not installed: pip install 'zerostride[{row.extra}]'")
    if missing:
        names = " ".join(missing)
        raise ZerostrideError(f"{row.name} needs {' and '.join(missing)}: pip install {names}")
    return row


def run_converter(
    row: EngineConverter, model: Path, goal: Path, inputs: Mapping[str, Array], seconds: float
) -> tuple[Outcome, str] | None:
    """Converts a model; the outcome and the reason where that failed.

    Args:
        row: the converter.
        model: an ONNX file, or an archive of torch.export.
        goal: the file to write; further ones get its stem.
        inputs: arrays of the model's inputs, for their shapes and types.
        seconds: the longest time.

    Raises:
        ModelError: pnnx does not read external data, and an ONNX file cannot have as much inside.
    """
    with tempfile.TemporaryDirectory(prefix="zerostride-") as place:
        copy = Path(place, f"inside-{model.name}")
        if row.inside and save_inside(model, copy, f"{row.name} needs its external data inside"):
            model = copy
        litter = model.with_suffix(".pnnxsim.onnx")  # pnnx leaves it beside the model
        kept = litter.exists()
        written = Path(place, goal.name)
        words = _words_of(row, goal.stem, inputs)
        paths = str(model.absolute()), str(written)  # the child works in another folder
        answer = ask(_FOLDER + row.source, place, *paths, *words, seconds=seconds)
        if not kept:
            litter.unlink(missing_ok=True)
        failure = answer.failure
        if not written.is_file() or not written.stat().st_size:
            said = failure or answer.output.decode(errors="replace") or "nothing was written"
            return _outcome(failure), f"{row.name}: {said}"
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


def load(row: EngineConverter, goal: Path, seconds: float) -> tuple[Outcome, str] | None:
    """Loads what a converter wrote, if it does not say what the engine lacks; see above."""
    if not row.load:
        return None
    words = map(str, files_of(row, goal))
    failure = ask(_FOLDER + row.load, str(goal.parent), *words, seconds=seconds).failure
    if failure is None:
        return None
    return _outcome(failure), f"{row.engine} does not load what {row.name} wrote: {failure}"


def _outcome(failure: str | None) -> Outcome:
    crashed = failure is not None and failure.startswith("it was ended by")
    return Outcome.CRASHED if crashed else Outcome.REFUSED


def _words_of(row: EngineConverter, stem: str, inputs: Mapping[str, Array]) -> Sequence[str]:
    """The further words of a converter's child."""
    if row.name == "pnnx":
        return pnnx_words(stem, inputs)
    return [] if row.reads_onnx else [json.dumps([array.shape for array in inputs.values()])]


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
