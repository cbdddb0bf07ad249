"""Make the networks and export them to ONNX with both of PyTorch's exporters.

    python examples/networks/make.py FOLDER [--check] [--only NAME ...]

Writes FOLDER/NAME.onnx (torch.export) and FOLDER/NAME_script.onnx (TorchScript) for each of the
networks of blocks.py, their weights made up from a seed, their sizes fixed. With --check each is
also run in ONNX Runtime and compared with PyTorch. Needs torch, onnx and onnxscript.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from pathlib import Path

import torch
from blocks import NETWORKS

#: An op set that every converter reads, with layer normalisation as one op.
OPSET = 18


def export(name: str, folder: Path, *, script: bool) -> Path:
    """Writes one network; returns the file."""
    torch.manual_seed(0)
    network, inputs = NETWORKS[name].make().eval(), NETWORKS[name].inputs()
    file = folder / f"{name}{'_script' if script else ''}.onnx"
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            tuple(inputs.values()),
            str(file),
            input_names=list(inputs),
            output_names=["y"],
            opset_version=OPSET,
            dynamo=not script,
            external_data=False,
            **({} if script else {"verbose": False}),
        )
    return file


def compare(name: str, file: Path) -> float:
    """The largest difference between ONNX Runtime and PyTorch."""
    import onnxruntime

    torch.manual_seed(0)
    network, inputs = NETWORKS[name].make().eval(), NETWORKS[name].inputs()
    with torch.no_grad():
        expected = network(*inputs.values()).numpy()
    session = onnxruntime.InferenceSession(str(file))
    found = session.run(None, {key: value.numpy() for key, value in inputs.items()})[0]
    return float(abs(found - expected).max())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="compare with ONNX Runtime")
    parser.add_argument("--only", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # what torch says of packages that are not there
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        weights = sum(part.numel() for part in NETWORKS[name].make().parameters())
        for script in (False, True):
            file = export(name, options.folder, script=script)
            said = f"{file.name}: {weights} weights, {file.stat().st_size} bytes"
            if options.check:
                apart = compare(name, file)
                said += f", {apart:.1e} from PyTorch"
                if not apart < 1e-3:
                    sys.exit(f"{said}: not the same")
            print(said, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
