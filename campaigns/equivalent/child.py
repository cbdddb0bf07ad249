"""The child process of the campaign over real models: steps of an optimiser, one after another.

It reads frames that name a model, an optimiser and the first step, and writes a frame when a step
begins, when a comparison begins, and for each result. What the libraries print is discarded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import onnx

from zerostride.runtimes.process import engines_kept
from zerostride.system import frames

from .optimisers import optimisers
from .steps import compared, plain_words, results


def main() -> int:
    """Carries out tasks from the standard input until it ends; returns the exit status."""
    questions, answers = os.dup(0), frames.take_output(errors=False)
    every = optimisers()
    with engines_kept():
        while True:
            try:
                task, _ = frames.receive(questions)
                _carry_out(answers, every, task)
            except frames.Closed:
                return 0


def _carry_out(answers: int, every: Mapping[str, Any], task: Mapping[str, Any]) -> None:
    def tell(number: int, what: str, step: str) -> None:
        frames.send(answers, {"number": number, "what": what, "step": step})

    try:
        model = onnx.load(task["model"])
    except Exception as error:  # noqa: BLE001 - whatever a file raises is an answer
        frames.send(answers, {"end": plain_words(f"{type(error).__name__}: {error}")})
        return
    for result, _ in results(
        model,
        every[task["optimiser"]],
        compared,
        passes=task["passes"],
        begin=task["begin"],
        differs=task["differs"],
        without=task["without"],
        tell=tell,
    ):
        frames.send(answers, {"result": result.as_dict()})
    frames.send(answers, {"end": ""})


if __name__ == "__main__":
    sys.exit(main())
