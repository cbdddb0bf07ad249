"""Runs the real ncnn for shapes that no table gives, in a child process under limits.

ncnn checks little and may end its process on a file of another release, so it never runs in this
process. A child loads the text with zeros for weights and inputs, and writes one shape after the
other. Shapes that it wrote before it ended are used.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Mapping, Sequence

from .. import child

#: A network of some hundred layers takes a second.
SECONDS = 8.0
#: Memory of the child beyond its memory at the start.
MEMORY = 1 << 30
#: Most numbers in all inputs and blobs for which the child is started.
MAX_NUMBERS = 1 << 26

_CHILD = """
import ncnn
import numpy as np
given = json.loads(sys.stdin.buffer.read())
limit_memory(int(sys.argv[1]))
net = ncnn.Net()
net.opt.num_threads = 1
net.opt.lightmode = False
if net.load_param_mem(given["text"]) != 0:
    sys.exit("it does not load the text")
if net.load_model(ncnn.DataReaderFromEmpty()) != 0:
    sys.exit("it does not load the weights")
for name in given["blobs"]:
    extractor = net.create_extractor()
    for blob, shape in given["inputs"].items():
        zeros = np.zeros(shape, np.float32)  # a Mat does not keep it alive
        extractor.input(blob, ncnn.Mat(zeros).clone())
    status, made = extractor.extract(name)
    shape = list(np.array(made).shape) if status == 0 else None
    answer.write((json.dumps([name, shape]) + "\\n").encode())
    answer.flush()
"""


def installed() -> bool:
    """Whether ncnn is installed."""
    return importlib.util.find_spec("ncnn") is not None


def ask(
    text: str, inputs: Mapping[str, tuple[int, ...]], blobs: Sequence[str]
) -> tuple[dict[str, tuple[int, ...]], str | None]:
    """The shapes of blobs from the real ncnn.

    Args:
        text: the .param's text.
        inputs: the shapes of its inputs.
        blobs: the wanted blobs, in order.

    Returns:
        The shapes that ncnn gave, and the failure or None.
    """
    if sum(map(math.prod, inputs.values())) > MAX_NUMBERS:
        return {}, "the inputs are too large to ask it"
    question = json.dumps({"text": text, "inputs": inputs, "blobs": list(blobs)}).encode()
    output, failure = child.ask(_CHILD, str(MEMORY), seconds=SECONDS, question=question)
    return {name: shape for name, shape in child.shapes_in(output).items() if shape}, failure
