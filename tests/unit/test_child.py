"""Child processes: frames, files, limits of time, and how they end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from zerostride.system import children, frames
from zerostride.system.child import Child, Ending

#: Answers each frame with its payload backwards; prints go nowhere.
_ECHO = """
load_package()
from zerostride.system import frames
answers = frames.take_output(errors={errors})
print("it prints again", flush=True)
while True:
    header, payload = frames.receive(0)
    frames.send(answers, header, payload[::-1])
"""


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0


def test_frames_go_to_the_child_and_back() -> None:
    before = open_files()
    child = Child(children.source(_ECHO.format(errors=True)))
    for payload in (b"", b"abc", os.urandom(1 << 22)):
        child.send({"count": len(payload)}, payload, 60)
        assert child.receive(60) == ({"count": len(payload)}, payload[::-1])
    assert not child.ended
    ending = child.end()
    assert (ending.status, ending.signal) == (1, None)
    assert "Closed" in ending.last_line
    assert open_files() == before


def test_prints_are_discarded_with_the_errors() -> None:
    child = Child(children.source(_ECHO.format(errors=False)))
    child.send({}, b"abc", 60)
    assert child.receive(60)[1] == b"cba"
    assert child.end() == Ending(1, "")


@pytest.mark.parametrize("question", [b"", b"x" * (1 << 22)])
def test_output_goes_to_a_file(question: bytes) -> None:
    with tempfile.TemporaryFile() as output:
        copy = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read() + b'end')"
        child = Child(python(copy), output=output)
        assert child.finish(question, 60)
        assert child.end() == Ending(0, "")
        output.seek(0)
        assert output.read() == question + b"end"


def test_late_child_is_killed_and_its_output_kept() -> None:
    with tempfile.TemporaryFile() as output:
        text = "import os, time; os.write(1, b'first'); time.sleep(100)"
        child = Child(python(text), output=output)
        assert not child.finish(b"", 2)
        assert child.end().signal == "SIGKILL"
        output.seek(0)
        assert output.read() == b"first"


def test_silent_child_is_too_late_and_ended_by_force() -> None:
    child = Child(python("import time; time.sleep(100)"))
    with pytest.raises(frames.TooLate):
        child.receive(0.2)
    assert child.end().signal == "SIGKILL"


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("import sys; sys.exit(3)", Ending(3, "")),
        ("import sys; sys.exit('first\\nlast')", Ending(1, "last")),
        ("import os; os.kill(os.getpid(), 11)", Ending(-11, "")),
    ],
)
def test_ending_has_the_status_and_the_last_line(text: str, ending: Ending) -> None:
    child = Child(python(text))
    with pytest.raises(frames.Closed):
        child.receive(60)
    assert child.end() == ending
    assert ending.signal == ("SIGSEGV" if ending.status < 0 else None)


def test_unknown_signal_has_its_number() -> None:
    assert Ending(-99, "").signal == "signal 99"


def test_child_that_does_not_start_leaves_no_file() -> None:
    before = open_files()
    with pytest.raises(OSError, match="nowhere"):
        Child(["/nowhere/python"])
    assert open_files() == before


def test_an_interrupted_question_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryFile() as output:
        child = Child(python("import time; time.sleep(600)"), output=output)

        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            child.finish(b"", 600)
        assert child.ended
        child.end()
