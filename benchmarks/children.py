"""Measurements in new processes: first calls, and peaks of memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
#: A compiler that takes longer has hung.
_SECONDS = 300


def in_fresh_process(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Any:
    """Runs `python -m benchmarks ARGUMENTS`, and reads the last line that it prints as JSON.

    Raises:
        RuntimeError: it failed; the text is the last line that it complained with.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=_ROOT,
            env=os.environ | (environment or {}),
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{' '.join(arguments)}: not done after {_SECONDS} s") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise RuntimeError(f"{' '.join(arguments)}: {said[0]}")
    return json.loads(done.stdout.strip().splitlines()[-1])
