"""Colours on a real terminal, by NO_COLOR and FORCE_COLOR (no-color.org)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import warm

pty = pytest.importorskip("pty", reason="terminals are POSIX's")

ROOT = Path(__file__).parents[2]
#: Select Graphic Rendition with a colour of the foreground or background; bold is none.
COLOUR = re.compile(rb"\x1b\[(?:\d+;)*(?:[349][0-7]|[34]8;[\d;]+|10[0-7])(?:;\d+)*m")


def shown(environment: dict[str, str], terminal: bool) -> bytes:
    """What `zerostride audit` shows of a model, on a terminal or in a pipe."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    model = ROOT / "examples" / "tiny_vision.onnx"
    words = ["audit", model, "--target", "ncnn"]
    environment = {**kept, "TERM": "xterm-256color", **environment}
    if not terminal:
        return warm.run(words, env=environment).stdout.encode()
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "zerostride", *words], env=environment, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # what Linux says of a terminal that nobody writes to any more
            part = b""
        if not part:
            break
        parts.append(part)
    os.close(ours)
    assert child.wait(60) == 1, "the model has findings"
    return b"".join(parts)


@pytest.mark.parametrize(
    ("environment", "terminal", "coloured"),
    [
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),  # set, but empty: nothing is asked
        ({"TERM": "dumb"}, True, False),
        ({}, False, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_colours_follow_terminal_and_environment(
    environment: dict[str, str], terminal: bool, coloured: bool
) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    text = shown(environment, terminal)
    assert b"tiny_vision" in text
    assert bool(COLOUR.search(text)) == coloured
    assert (b"\x1b" in text) == coloured, "an escape that is no colour"
