"""The child process: loads one engine and carries out tasks until its input ends.

Run as ``python -m zerostride.runtimes.verify.child ENGINE``. Frames go to the standard output; what
the engine itself prints is discarded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..probe import wire
from .runners import Absent, Runner, load_runner
from .task import Array, Task, pack, unpack

#: Exceptions from bugs of our runners; engines refuse by other exceptions.
_FAULTS = (AttributeError, ImportError, KeyError, NameError, StopIteration)


def main(engine: str) -> int:
    """Carries out tasks from the standard input; returns the exit status."""

    def carry_out(
        runner: Runner, header: dict[str, Any], payload: bytes
    ) -> tuple[dict[str, Any], bytes]:
        task = Task.from_dict(header["task"])
        return answer(runner, task, unpack(header["arrays"], payload))

    return wire.serve(lambda: load_runner(engine), carry_out)


def answer(runner: Runner, task: Task, arrays: Sequence[Array]) -> tuple[dict[str, Any], bytes]:
    """The engine's answer to a task, as a frame."""
    try:
        headers, payload = pack([np.asarray(result) for result in runner.run(task, arrays)])
    except Absent as error:
        return {"answer": "absent", "message": str(error)}, b""
    except _FAULTS as error:
        return {"answer": "absent", "message": f"the runner failed: {_first(error)}"}, b""
    except Exception as error:  # noqa: BLE001 - whatever an engine raises is how it refuses
        return {"answer": "refused", "message": _first(error)}, b""
    return {"answer": "result", "message": "", "arrays": headers}, payload


def _first(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:200]}" if lines else type(error).__name__


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
