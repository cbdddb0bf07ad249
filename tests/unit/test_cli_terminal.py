"""The command line and its surroundings: terminals, pipes, interrupts, warnings, errors."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from commandline import Run, start

import zerostride as zs
from zerostride.cli import main as command

EXAMPLES = Path(__file__).parents[2] / "examples"
VISION = str(EXAMPLES / "tiny_vision.onnx")
CLEAN = str(EXAMPLES / "clean.onnx")


def test_colours_follow_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in run("explain", "2,3", "3").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run("explain", "2,3", "3").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run("explain", "2,3", "3").out


def test_internal_error_is_one_line_and_debug_shows_it(
    run: Run,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise AssertionError("first line\nsecond \x1b[31m line")

    monkeypatch.setattr("zerostride.cli.plans.plan", broken)
    answer = run("explain", "2", "2")
    assert answer.status == 2
    assert len(answer.err.splitlines()) == 1
    assert answer.err.isprintable() or "\x1b" not in answer.err
    assert "internal error (AssertionError: first line" in answer.err
    assert "please report" in answer.err
    assert json.loads(run("explain", "2", "2", "--json").out)["ok"] is False
    monkeypatch.setenv("ZEROSTRIDE_DEBUG", "1")
    with pytest.raises(SystemExit):
        command(["explain", "2", "2"])
    assert "Traceback" in capfd.readouterr().err


def test_warnings_are_one_line_without_a_place(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def warns(*_: Any, **__: Any) -> Any:

        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = sys.modules["zerostride.cli.main"]._show_warning
            warnings.warn("another release", zs.EngineVersionWarning, stacklevel=1)
            warnings.warn("noise", RuntimeWarning, stacklevel=1)
        return zs.plan((2,), (2,))

    monkeypatch.setattr("zerostride.cli.plans.plan", warns)
    assert run("explain", "2", "2").err == "warning: another release\n"


def test_closed_reader_is_not_an_error() -> None:
    child = start(["compare", "5,5", "5", "--json"], bufsize=0)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.read(1)
    child.stdout.close()
    errors = child.stderr.read()
    child.stderr.close()
    # All of it may have fitted into the pipe before it was closed.
    assert child.wait(60) in (1, 141)
    assert errors == b""


def test_interrupt_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    script = (
        "import os, signal, threading\n"
        # A job in the background inherits an ignored SIGINT, and Python then leaves it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import zerostride.cli.plans as plans\n"
        "from zerostride.cli import main\n"
        "plans.plan = lambda *a, **k: (os.kill(os.getpid(), signal.SIGINT), __import__('time')"
        ".sleep(30))\n"
        "main(['explain', '2', '2'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=300)
    assert done.returncode == 130
    assert done.stderr.strip() == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        child = start(["explain", "2,3", "3"], stdout=full)
        _, errors = child.communicate(timeout=300)
    assert child.returncode == 2
    assert errors.decode().splitlines() == ["zerostride: No space left on device"]


@pytest.mark.parametrize("closed", [1, 2])
def test_closed_output_is_not_an_internal_error(closed: int) -> None:
    arguments = ["explain", "2,3", "3" if closed == 1 else "4"]
    script = f"import os, sys; os.close({closed}); os.execv(sys.executable, sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", script, sys.executable, "-m", "zerostride", *arguments],
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == (0 if closed == 1 else 1)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_output_without_the_arrow_character_shows_its_escape() -> None:
    child = start(["explain", "2,3", "3"], env={"PYTHONIOENCODING": "latin-1", "NO_COLOR": "1"})
    out, errors = child.communicate(timeout=300)
    assert (child.returncode, errors) == (0, b"")
    assert rb"\u2192" in out


def test_undecodable_arguments_are_shown_escaped() -> None:
    if os.name != "posix":
        pytest.skip("arguments are text on this system")
    child = subprocess.Popen(
        [os.fsencode(sys.executable), b"-m", b"zerostride", b"explain", b"\xff\xfe\x1b[31m"],
        stderr=subprocess.PIPE,
    )
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 2
    assert b"\x1b" not in errors
    assert b"Traceback" not in errors
    assert re.search(rb"is not a shape", errors)


def test_huge_size_is_a_wrong_call(run: Run) -> None:
    audit = ("audit", "examples/clean.onnx", "--target", "numpy")
    answer = run(*audit, "--set", f"N={2**63}")
    assert answer.status == 2
    assert "more than a size can be" in answer.err


def on_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Prints as on a terminal of this width."""
    monkeypatch.setattr("zerostride.cli.tables._is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", str(columns))


def test_a_pipe_gets_whole_lines(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library readline sets COLUMNS for all children of a Python that has loaded it."""
    missing = EXAMPLES / ("no such model " * 10 + ".onnx")
    monkeypatch.setenv("COLUMNS", "80")
    assert run("audit", str(missing), "--target", "ncnn").err.count("\n") == 1
    on_terminal(monkeypatch, 80)
    assert run("audit", str(missing), "--target", "ncnn").err.count("\n") > 1


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", VISION, "--target", "mnn"),
        ("audit", VISION, "--target", "mnn", "--details"),
        ("audit", VISION, "--target", "mnn", "--summary"),
        ("audit", VISION, CLEAN, "--target", "openvino"),
        ("audit", "no such model.onnx", "--target", "ncnn"),
        ("audit", VISION, "--target", "ncn"),
        ("port", VISION, "--target", "ncnn", "--dry-run"),
        ("shapes", VISION),
        ("compare", "2,3,4,5", "3,4"),
        ("compare", "N,3", "M,3"),
        ("explain", "5,4", "5", "--rule", "pdpd"),
        ("explain", "ZS107"),
        ("engines",),
        ("engines", "ncnn"),
    ],
)
def test_lines_fit_the_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], columns: int
) -> None:
    whole = run(*arguments)
    on_terminal(monkeypatch, columns)
    folded = run(*arguments)
    assert folded.status == whole.status
    for line in (folded.out + folded.err).splitlines():
        assert len(line) <= columns or len(line.split()) == 1, line


def test_a_folded_command_can_be_pasted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell reads the words of the whole line."""
    audit = ("audit", VISION, "--target", "ncnn", "--via", "none")
    (line,) = [line for line in run(*audit).out.splitlines() if line.startswith("next: ")]
    on_terminal(monkeypatch, 50)
    out = run(*audit).out
    folded = out[out.index("next: ") :]
    assert folded.count("\n") > 1
    words = subprocess.check_output(
        ["sh", "-c", f"""printf '%s\\n' {folded}"""], text=True
    ).splitlines()
    assert words == shlex.split(line)
