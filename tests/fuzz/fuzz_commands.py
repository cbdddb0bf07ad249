"""Hostile ONNX files through every public function: results, or the package's own errors.

    python tests/fuzz/fuzz_commands.py --cases 200000 --seed 0
    python tests/fuzz/fuzz_commands.py --seed 0 --case 4711     # one case again, with its traceback

The files are those of fuzz_onnx.py. Each is audited, ported (half of them for a file), its shapes
are asked, it is run on random inputs, and some are verified; one after the other, whatever the one
before said. A case fails if any of these raises anything but ZerostrideError or BroadcastError,
takes more than 10 seconds of CPU in all, needs more than a GiB, or kills the process.
"""

from __future__ import annotations

import sys
import warnings

from every_command import kept, use_every
from fuzz_onnx import mutator, not_apart, reader
from hostile_files import scratch

from zerostride.errors import EngineVersionWarning


def run_case(seed: int, number: int) -> str:
    """How a case ended: the functions that gave a result."""
    reader.infer_apart = not_apart  # fuzz_onnx.py has it run apart
    path = scratch() / "case.onnx"
    path.write_bytes(mutator().case(seed, number))
    warnings.simplefilter("ignore", EngineVersionWarning)
    return use_every(path, number)


if __name__ == "__main__":
    sys.exit(kept(__file__, run_case, __doc__.splitlines()[0]))
