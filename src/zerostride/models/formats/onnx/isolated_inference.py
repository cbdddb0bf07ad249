"""Shape inference in a child process, for files with numbers that no exporter writes.

The onnx package's inference has ended the process, and has allocated all memory, on attributes and
sizes that real models do not have (a negative `batch_dims`, a Range to 2^40). Such a file is still
read and audited: its inference runs in a child process under limits, and may fail there.
"""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

from ....system import children

if TYPE_CHECKING:
    import onnx

#: Inference takes milliseconds for a network of thousands of nodes.
SECONDS = 8.0
#: Memory of the child beyond its memory at the start and four times the model.
MEMORY = 1 << 29

_CHILD = """
import onnx.shape_inference
data = sys.stdin.buffer.read()
limit_memory(int(sys.argv[1]) + 4 * len(data))
try:
    model = onnx.shape_inference.infer_shapes(onnx.load_model_from_string(data))
    sys.stdout.buffer.write(model.SerializeToString())
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def infer_apart(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with inferred shapes, from a child process.

    Raises:
        RuntimeError: inference failed, took too long, or ended its process.
    """
    import onnx

    command = children.source(_CHILD, str(MEMORY))
    try:
        done = subprocess.run(
            command, input=model.SerializeToString(), capture_output=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"it took longer than {SECONDS:.0f} s") from None
    except OSError as error:
        raise RuntimeError(f"it could not be started apart: {error}") from None
    if done.returncode < 0:
        raise RuntimeError(f"it was ended by {signal.Signals(-done.returncode).name}")
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise RuntimeError(last[0] if last else f"it ended with status {done.returncode}")
    return onnx.load_model_from_string(done.stdout)
