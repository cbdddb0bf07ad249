"""The peak memory of a fused call in a new process, as in `python -m benchmarks memory`.

Another expression has been computed before, so that the modules that trace and lower are there.
"""

from __future__ import annotations

from typing import Any

from ..children import in_fresh_process
from ..memory import FREED_AT_ONCE, RESET, Use, use_of
from ..rows import make_operands
from .peers.zerostride_ import fused_function
from .rows import FusedRow, another, make_task

#: What a call may need beyond its operands and its result.
ALLOWED = 2 << 20


def child(row: FusedRow, threads: int) -> Use:
    """Measures a row in this process."""
    import zerostride

    zerostride.set_num_threads(threads)
    before = make_task(another(row), 1, judged=False)
    fused_function(before.row)(*before.inputs)
    function = fused_function(row)
    bases, inputs = make_operands(row)

    def call() -> Any:
        return function(*inputs)

    return use_of(row, bases, call, ALLOWED)


def in_child(row: FusedRow, threads: int) -> Use | str:
    """Has a row measured by a process of its own: its bytes, or why there are none."""
    if not RESET.exists():
        return "only Linux lets a process reset the peak of its memory"
    arguments = ["fuse", "--child", "peak", "--rows", row.name, "--threads", str(threads)]
    try:
        found = in_fresh_process(arguments, FREED_AT_ONCE)
    except RuntimeError as error:
        return str(error)
    return found if isinstance(found, str) else Use(**found)
