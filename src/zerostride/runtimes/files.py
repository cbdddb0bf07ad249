"""Any tensors of a model file, computed by its engine in a child process.

A tensor may be an output of the model or lie between inputs and outputs. The process bounds the
time and the memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from .process import Process
from .task import Array, Form, Reply, Task


def tensors(
    process: Process,
    file: str | Path,
    inputs: Mapping[str, Array],
    wanted: Sequence[str],
    *,
    outputs: bool = False,
) -> Reply:
    """The engine's answer, with an array for each wanted tensor.

    Args:
        process: the engine; its limits of time and memory hold.
        file: a file of a format that the engine runs (`runners.RUNNERS`).
        inputs: arrays by input name. If the file has other names, they are matched by order.
        wanted: names of tensors in the file.
        outputs: `wanted` are the outputs of the model that the file was made from: in order where
            the file has other names.
    """
    attributes = {"inputs": list(inputs), "tensors": list(wanted), "outputs": outputs}
    path = str(Path(file).absolute())  # the process may have been started in another folder
    return process.ask(Task(Form.FILE, path, attributes), list(inputs.values()))
