"""Any tensors of a model file, computed by its engine in a child process.

A tensor may be an output of the model or lie between inputs and outputs. The process bounds the
time and the memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..models.formats import format_of
from .process import Process
from .runners import RUNNERS
from .task import Array, Form, Reply, Task


def form_of(file: Path) -> str:
    """The format of a file that an engine runs.

    Raises:
        ModelError: its name does not end like a model's.
    """
    return _sealed(file) or format_of(file).name


def is_sealed(file: Path) -> bool:
    """Whether an engine runs the file, and nothing reads what is inside.

    >>> is_sealed(Path("model.pte"))
    True
    """
    return _sealed(file) is not None


def _sealed(file: Path) -> str | None:
    name = file.name.lower()
    rows = RUNNERS.items()
    return next((e for e, row in rows if row.sealed and name.endswith(row.sealed)), None)


def tensors(
    process: Process,
    file: str | Path,
    inputs: Mapping[str, Array],
    wanted: Sequence[str],
    *,
    outputs: bool = False,
    as_written: bool = False,
) -> Reply:
    """The engine's answer, with an array for each wanted tensor.

    Args:
        process: the engine; its limits of time and memory hold.
        file: a file of a format that the engine runs (`runners.RUNNERS`).
        inputs: arrays by input name. If the file has other names, they are matched by order.
        wanted: names of tensors in the file.
        outputs: `wanted` are the outputs of the model that the file was made from: in order where
            the file has other names.
        as_written: without the engine's own optimiser, where that can be left out.
    """
    attributes = {
        "inputs": list(inputs),
        "tensors": list(wanted),
        "outputs": outputs,
        "as_written": as_written,
    }
    path = str(Path(file).absolute())  # the process may have been started in another folder
    return process.ask(Task(Form.FILE, path, attributes), list(inputs.values()))
