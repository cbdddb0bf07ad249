"""Shape inference in a child process, for files with numbers that no exporter writes.

The onnx package's inference has ended the process, and has allocated all memory, on attributes and
sizes that real models do not have (a negative `batch_dims`, a Range to 2^40). Such a file is still
read and audited: its inference runs in a child process under limits, and may fail there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import child

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
    answer.write(model.SerializeToString())
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def infer_apart(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with inferred shapes, from a child process.

    Raises:
        RuntimeError: inference failed, took too long, or ended its process.
    """
    import onnx

    question = model.SerializeToString()
    output, failure = child.ask(
        _CHILD, str(MEMORY), seconds=SECONDS, question=question, most=2**31 - 1
    )
    if failure is not None:
        raise RuntimeError(failure)
    return onnx.load_model_from_string(output)
