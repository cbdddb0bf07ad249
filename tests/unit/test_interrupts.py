"""Interrupts and closed pipes at any moment: a status, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import start

import warm
from zerostride.system import interrupts

VISION = str(Path(__file__).parents[2] / "examples" / "tiny_vision.onnx")


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.parametrize("modules", [0, 3, 20, 60, 120, 200])
def test_interrupt_during_imports_is_silent(modules: int) -> None:
    child = start(
        ["audit", VISION, "--target", "ncnn"], env={"PYTHONPROFILEIMPORTTIME": "1"}, bufsize=0
    )
    assert child.stderr is not None
    assert child.stdout is not None
    for line in child.stderr:
        if b"zerostride.system.interrupts" in line:
            break
    for _ in range(modules):
        child.stderr.readline()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 130
    assert out == b""
    assert all(line.startswith(b"import time:") for line in err.splitlines())


COMMANDS = [
    ["explain", "5,5", "5"],
    ["explain", "5,5", "5", "--json"],
    ["explain", "ZS103"],
    ["compare", "5,5", "5"],
    ["engines"],
    ["engines", "ncnn"],
    ["audit", VISION, "--target", "ncnn"],
    ["audit", VISION, "--target", "ncnn", "--json"],
    ["--help"],
    ["--version"],
    ["completion", "zsh"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_closed_reader_gives_141_and_no_word(words: list[str]) -> None:
    if "audit" in words:
        pytest.importorskip("onnx", reason="audits read ONNX files")
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "wb") as closed:
        done = warm.run(words, stdout=closed)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("argv", "orig", "expected"),
    [
        (["/usr/bin/zerostride", "audit"], ["python", "/usr/bin/zerostride"], True),
        (["-m", "audit"], ["python", "-X", "dev", "-m", "zerostride", "audit"], True),
        (["-m", "x"], ["python", "-m", "pytest", "zerostride"], False),
        (["/x/zerostride/__main__.py"], ["python", "-m", "zerostride"], True),
        (["zerostride.py"], ["python", "zerostride.py"], False),
        (["-c"], ["python", "-c", "import zerostride"], False),
        ([""], ["python"], False),
        ([], ["python"], False),
    ],
)
def test_command_is_told_from_a_library(
    monkeypatch: pytest.MonkeyPatch, argv: list[str], orig: list[str], expected: bool
) -> None:
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", orig)
    assert interrupts.is_command() is expected


def test_handler_is_left_to_who_has_set_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["zerostride"])
    before = signal.getsignal(signal.SIGINT)
    try:
        for mine in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(signal.SIGINT, mine)
            interrupts.end_silently()
            interrupts.raise_again()
            assert signal.getsignal(signal.SIGINT) is mine
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupts.end_silently()
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        interrupts.raise_again()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_interrupt_inside_code_given_as_text_is_a_status(tmp_path: Path) -> None:
    """Dataclasses are such code; `python -m` ended by the signal after an interrupt in one."""
    (tmp_path / "command.py").write_text(
        "import importlib\n"
        "module = importlib.import_module('zerostride.cli.main')\n"
        "def interrupted(*_, **__):\n"
        "    exec('raise KeyboardInterrupt')\n"
        "module.cli.main = interrupted\n"
        "module.main([])\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run([sys.executable, "-m", "command"], env=environment, check=False)
    assert done.returncode == interrupts.INTERRUPTED


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_interrupt_at_pythons_end_changes_nothing(tmp_path: Path) -> None:
    """Python removes handlers before it removes modules; the signal ended the process then."""
    (tmp_path / "zerostride.py").write_text(
        "import os, signal, sys\n"
        f"sys.path[:] = {sys.path!r}\n"
        "class Late:\n"
        "    def __del__(self, kill=os.kill, arguments=(os.getpid(), signal.SIGINT)):\n"
        "        kill(*arguments)\n"
        "late = Late()\n"
        "sys.argv = ['zerostride', '--version']\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import importlib\n"
        "importlib.import_module('zerostride.cli.main').main()\n"
    )
    done = subprocess.run([sys.executable, tmp_path / "zerostride.py"], check=False)
    assert done.returncode == 0
