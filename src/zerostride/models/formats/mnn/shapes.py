"""The shapes of an .mnn file's tensors, inferred by MNN in a child process.

MNN may read past the end of a malformed file, print messages, or hang. It runs in a child process
with limits of time and memory, and its answer is text of bounded length. Tensors that it answered
before it ended are used.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ....system import children
from ...ir.graph import FileShape
from .weights import MAX_AXES

#: Inference takes milliseconds for a network of thousands of ops; loading MNN a tenth of a second.
SECONDS = 20.0
#: Memory of the child beyond its memory at the start and four times the file.
MEMORY = 1 << 29
#: One line per tensor; a model of 100,000 tensors writes about 10 MiB.
MAX_SAID = 1 << 26
#: MNN does not compute with larger sizes.
MAX_SIZE = 2**31 - 1

#: The answer has its own file, since MNN prints to the standard streams.
_CHILD = """
import os
answer = os.fdopen(int(sys.argv[3]), "w")
from MNN import expr
path, size = sys.argv[1], os.path.getsize(sys.argv[1])
limit_memory(int(sys.argv[2]) + 4 * size)
found = expr.load_as_list(path)
for var in found:
    # The order matters: anything but the shape of a tensor without one ends the process.
    shape = var.shape
    line = [var.name, None if shape is None else [int(size) for size in shape]]
    answer.write(json.dumps(line) + "\\n")
    answer.flush()
answer.write(json.dumps(len(found)) + "\\n")
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
    with tempfile.TemporaryFile() as output:
        number = output.fileno()
        command = children.source(_CHILD, str(file.resolve()), str(MEMORY), str(number))
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(number,),
                timeout=SECONDS,
                env={"OMP_NUM_THREADS": "1"},
            )
            ended = _ending(done.returncode)
        except subprocess.TimeoutExpired:
            ended = f"it took longer than {SECONDS:.0f} s"
        except (OSError, ValueError) as error:
            raise Unanswered(f"it could not be started: {error}") from None
        os.lseek(number, 0, os.SEEK_SET)
        lines = output.read(MAX_SAID).decode("utf-8", "replace").splitlines()
    shapes = _parsed(lines)
    if not shapes and ended:
        raise Unanswered(ended)
    if not shapes:
        raise Unanswered("it does not take the file")
    return shapes


def _ending(status: int) -> str:
    """How the child failed; "" if it did not."""
    if not status:
        return ""
    if status < 0:
        return f"its process was ended by {signal.Signals(-status).name}"
    return f"its process ended with status {status}"


def _parsed(lines: list[str]) -> Mapping[str, FileShape]:
    """The shapes, line by line; invalid lines are skipped."""
    shapes: dict[str, FileShape] = {}
    for line in lines:
        try:
            name, shape = json.loads(line)
        except (ValueError, TypeError):
            continue  # the final count, or a line that was cut off
        if isinstance(name, str) and _is_shape(shape):
            shapes[name] = tuple(shape)
    return shapes


def _is_shape(shape: object) -> bool:
    return (
        isinstance(shape, list)
        and len(shape) <= MAX_AXES
        and all(type(size) is int and 0 <= size <= MAX_SIZE for size in shape)
    )
