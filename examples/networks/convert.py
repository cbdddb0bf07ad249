"""Turn ONNX files into the formats of other engines, with the engines' own converters.

    python examples/networks/convert.py FOLDER [--to ir ncnn mnn tflite] [--python tflite=PYTHON]

For every FOLDER/NAME.onnx writes FOLDER/NAME.xml and .bin (OpenVINO), FOLDER/NAME.ncnn.param and
.bin (pnnx) and FOLDER/NAME.mnn, as far as the converter is installed and gets through. A .tflite
file is made from PyTorch by litert-torch, of the networks of blocks.py alone; it pins other
releases of torch, so it may have an interpreter of its own.

Each conversion is a process of its own with a time limit: converters crash, and one that does not
come back is ended. Weights stay float32, so that numbers can be compared.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: A conversion of these networks takes seconds.
SECONDS = 120

_IR = """
import sys, openvino
model = openvino.convert_model(sys.argv[1])
openvino.save_model(model, sys.argv[2], compress_to_fp16=False)
"""
_PNNX = """
import subprocess, sys, pnnx
sys.exit(subprocess.call([pnnx.EXEC_PATH, sys.argv[1], "fp16=0"]))
"""
# MNN.tools would install what it misses; the compiled module beside it is the converter itself.
_MNN = """
import sys, MNN, _tools
_tools.mnnconvert(
    ["mnnconvert", "-f", "ONNX", "--modelFile", sys.argv[1], "--MNNModel", sys.argv[2],
     "--bizCode", "z"]
)
"""
_TFLITE = """
import sys
sys.path.insert(0, sys.argv[3])
import torch, litert_torch
from blocks import NETWORKS
torch.manual_seed(0)
row = NETWORKS[sys.argv[4]]
network, inputs = row.make().eval(), row.inputs()
litert_torch.convert(network, tuple(inputs.values())).export(sys.argv[2])
"""


@dataclass(frozen=True)
class Converter:
    """How files of a format are made.

    Attributes:
        suffix: of the file that is made.
        program: a Python program: the ONNX file and the file to make are its arguments.
        beside: the end of the name of the file with its weights, where that is another.
    """

    suffix: str
    program: str
    beside: str = ""


CONVERTERS: Mapping[str, Converter] = {
    "ir": Converter(".xml", _IR, ".bin"),
    "ncnn": Converter(".ncnn.param", _PNNX, ".ncnn.bin"),
    "mnn": Converter(".mnn", _MNN),
    "tflite": Converter(".tflite", _TFLITE),
}


def convert(
    file: Path, to: str, *, python: str = sys.executable, seconds: float = SECONDS
) -> tuple[Path | None, str]:
    """Converts one ONNX file.

    Returns:
        The file that was made, or None; and what the converter said where it made none.
    """
    row = CONVERTERS[to]
    result = file.with_name(file.name.removesuffix(".onnx") + row.suffix)
    with tempfile.TemporaryDirectory() as folder:
        # Converters leave more files than are asked for.
        given, made = Path(folder) / "m.onnx", Path(folder) / f"m{row.suffix}"
        shutil.copyfile(file, given)
        name = result.name.removesuffix(row.suffix)
        command = [
            python,
            "-c",
            row.program,
            str(given),
            str(made),
            str(Path(__file__).parent),
            name,
        ]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            return None, f"no answer within {seconds:.0f} s"
        if not made.is_file() or done.returncode < 0:
            said = (done.stderr + done.stdout).decode("utf-8", "replace").strip().splitlines()
            last = next((line for line in reversed(said) if line.strip()), "")
            return None, f"status {done.returncode}: {last[:160]}"
        if to == "ncnn":
            _give_sizes(made, Path(folder) / "m_ncnn.py")
        for end in filter(None, (row.suffix, row.beside)):
            if (Path(folder) / f"m{end}").is_file():
                shutil.copyfile(Path(folder) / f"m{end}", result.with_name(name + end))
    return result, ""


#: How pnnx's script makes an input: its name and shape.
_MADE = re.compile(r"^    (in\d+) = torch\.rand(?:int)?\((?:\d+, \()?([\d, ]+)\)?, dtype", re.M)
#: Parameters of ncnn's Input layer for the sizes of a blob of so many axes, outermost first.
_SIZES = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (2, 11, 1, 0)}


def _give_sizes(param: Path, script: Path) -> None:
    """Writes the sizes of the inputs into a .param file: pnnx leaves them out.

    It says them in the script that it writes beside it, with the axis of the batch (233: none).
    """
    said = script.read_text("utf-8") if script.is_file() else ""
    shapes = _MADE.findall(said)
    batches = dict(re.findall(r'ex\.input\("(in\d+)".*batch_index=(\d+)\)', said))
    lines = param.read_text("utf-8").splitlines()
    for name, text in shapes:
        shape = [int(size) for size in text.split(",") if size.strip()]
        batch = int(batches.get(name, 233))
        kept = [size for axis, size in enumerate(shape) if axis != batch]
        places = _SIZES.get(len(kept))
        for k, line in enumerate(lines):
            words = line.split()
            if places and words[:1] == ["Input"] and words[1] == name and len(words) == 5:
                sizes = zip(places, kept, strict=True)
                lines[k] = " ".join([line, *(f"{key}={size}" for key, size in sorted(sizes))])
    param.write_text("\n".join(lines) + "\n", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", nargs="+", choices=CONVERTERS, default=["ir", "ncnn", "mnn"])
    parser.add_argument("--python", action="append", default=[], metavar="FORMAT=PATH")
    parser.add_argument("--json", action="store_true", help="print what failed as JSON")
    options = parser.parse_args()
    chosen = dict(pair.split("=", 1) for pair in options.python)
    failed = {}
    for file in sorted(options.folder.glob("*.onnx")):
        for to in options.to:
            if to == "tflite" and file.stem.endswith("_script"):
                continue  # made from PyTorch, not from the file
            made, said = convert(file, to, python=chosen.get(to, sys.executable))
            if made is None:
                failed[f"{file.name} to {to}"] = said
            if not options.json:
                print(f"{file.name} to {to}: {made.name if made else said}", flush=True)
    if options.json:
        print(json.dumps(failed, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
