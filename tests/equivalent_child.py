"""A child of the campaign over real models that answers, hangs and dies, step by step."""

from __future__ import annotations

import os
import sys
import time

from zerostride.system import frames

#: What each step of the made-up optimiser does.
STEPS = ("answers", "hangs", "dies", "hangs in the comparison", "answers")


def main() -> int:
    """Carries out tasks until the input ends."""
    questions, answers = os.dup(0), frames.take_output(errors=False)
    while True:
        try:
            task, _ = frames.receive(questions)
        except frames.Closed:
            return 0
        if task["model"] == "unreadable":
            frames.send(answers, {"end": "DecodeError: no model"})
            continue
        for number, step in enumerate(STEPS):
            if number < task["begin"] or f"{number} {step}" in task["without"]:
                continue
            _act(answers, number, step)
        frames.send(answers, {"end": ""})


def _act(answers: int, number: int, step: str) -> None:
    at = {"number": number, "step": f"{number} {step}"}
    frames.send(answers, {**at, "what": "makes"})
    if step == "dies":
        os._exit(3)
    if step == "hangs":
        time.sleep(60)
    frames.send(answers, {**at, "what": "compares"})
    if step == "hangs in the comparison":
        time.sleep(60)
    frames.send(answers, {"result": {"step": f"{number} {step}", "end": "equal"}})


if __name__ == "__main__":
    sys.exit(main())
