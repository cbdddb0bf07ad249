"""One engine in a process of its own that may die."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from asked import Asked

WORKER = Path(__file__).with_name("compound_worker.py")
SECONDS = 60.0


class Child(Asked):
    """One engine in a process of its own, given up after SECONDS. Use as a context manager.

    ZEROSTRIDE_PYTHON_PADDLE (and so on) names the interpreter of an engine that needs its own.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine
        python = os.environ.get(f"ZEROSTRIDE_PYTHON_{engine.upper()}", sys.executable)
        super().__init__([python, str(WORKER), engine], SECONDS)

    def ask(self, question: dict[str, Any]) -> tuple[str, Any]:
        """("result", array), ("refused", line), ("absent", op) or ("crashed", exit status)."""
        return self.answer(question)
