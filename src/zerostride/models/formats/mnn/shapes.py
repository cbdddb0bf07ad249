"""The shapes of an .mnn file's tensors, inferred by MNN in a child process."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Mapping
from pathlib import Path

from ...ir.graph import FileShape
from .. import child

#: Inference takes milliseconds for a network of thousands of ops; loading MNN a tenth of a second.
SECONDS = 20.0
#: Memory of the child beyond its memory at the start and four times the file.
MEMORY = 1 << 29
_CHILD = """
from MNN import expr
path, size = sys.argv[1], os.path.getsize(sys.argv[1])
limit_memory(int(sys.argv[2]) + 4 * size)
found = expr.load_as_list(path)
for var in found:
    # The order matters: anything but the shape of a tensor without one ends the process.
    shape = var.shape
    line = [var.name, None if shape is None else [int(size) for size in shape]]
    answer.write((json.dumps(line) + "\\n").encode())
    answer.flush()
os._exit(0)  # not through MNN's destructors
"""


class Unanswered(Exception):  # noqa: N818 - an answer
    """MNN gave no shapes; the message is the reason."""


@functools.cache
def installed() -> bool:
    """Whether the MNN package is installed."""
    return importlib.util.find_spec("MNN") is not None


def of_tensors(file: Path) -> Mapping[str, FileShape]:
    """The shapes of a file's tensors by name; no entry for a shape that MNN does not know.

    Raises:
        Unanswered: MNN is not installed, or gives no shape for this file.
    """
    if not installed():
        raise Unanswered("it is not installed (pip install 'zerostride[mnn]')")
    output, failure = child.ask(
        _CHILD,
        str(file.resolve()),
        str(MEMORY),
        seconds=SECONDS,
        environment={"OMP_NUM_THREADS": "1"},
    )
    inferred = child.shapes_in(output)
    if not inferred:
        raise Unanswered(failure or "it does not take the file")
    return inferred
