"""The child process: loads one engine and answers cases until its input ends.

Run as ``python -m zerostride.runtimes.probe.worker ENGINE``. Frames go to the standard output; what
the engine itself prints is discarded.
"""

from __future__ import annotations

import sys
from typing import Any

from . import wire
from .case import Answer, BadInput, Case, EngineOutcome, as_values
from .catalogue import Form, row_of
from .kinds import KINDS
from .runners import Refused, Runner, load_runner


def main(engine: str) -> int:
    """Answers cases from the standard input; returns the exit status."""

    def answer(runner: Runner, header: dict[str, Any], _: bytes) -> tuple[dict[str, Any], bytes]:
        return wire.pack_outcome(run(runner, Case.from_json(header)))

    return wire.serve(lambda: load_runner(engine), answer)


def run(runner: Runner, case: Case) -> EngineOutcome:
    """The engine's outcome of a case: every pass of its kind, one after the other."""
    try:
        row = row_of(case)
        perform = runner.ops[case.op]
    except (BadInput, KeyError) as error:
        return EngineOutcome(Answer.BROKEN, message=f"no runner for {case.op}: {error}")
    kind = KINDS[row.kind]
    shapes = [case.a, case.b, *(() if case.c is None else (case.c,))]
    target = case.b if row.form is Form.TO else ()
    results = []
    refusals: tuple[type[BaseException], ...] = (Refused, *runner.refusals)
    try:
        for operands in kind.operands(shapes[:1] if row.form is Form.TO else shapes, case.dtype):
            results.append(perform(case.attrs, operands, target))
        values = as_values(results)
    except refusals as error:
        return EngineOutcome(Answer.REFUSED, message=_first_line(error))
    except Exception as error:  # noqa: BLE001 - the runner's own fault is an outcome, not an end
        return EngineOutcome(Answer.BROKEN, message=f"{type(error).__name__}: {_first_line(error)}")
    return EngineOutcome(Answer.RESULT, *values)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:200]}" if lines else type(error).__name__


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
