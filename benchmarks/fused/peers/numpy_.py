"""NumPy: the plain expression, or the same with preallocated temporaries."""

from __future__ import annotations

from ...peers.peer import Call, Prepared
from ...rows import Task
from ..namespaces import float32
from ..tape import with_buffers


def prepare(task: Task) -> Prepared:
    """Both ways."""
    assert task.out is not None
    function = task.row.function
    buffered = with_buffers(function, task.inputs, task.out)
    return Prepared((Call(function, (float32, *task.inputs)), Call(buffered)))
