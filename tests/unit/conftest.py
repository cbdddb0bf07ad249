"""Shared fixtures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import pytest
from commandline import Run

from warm import Answer
from zerostride.cli import main as command


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command line in this process, several models too: starting others takes longer."""
    monkeypatch.setattr("zerostride.models.audit.many.cores", lambda: 1)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "ZEROSTRIDE_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> Answer:
        with pytest.raises(SystemExit) as stop:
            command([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert isinstance(stop.value.code, int)
        assert "Traceback" not in out + err
        return Answer(stop.value.code, out, err)

    return call


@pytest.fixture
def run_watched(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., pytest.RunResult]:
    """Runs pytest with the plugin on files of a project, in this process."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def runner(
        files: Mapping[str, str], *options: str, ini: str = "strict_broadcast = on"
    ) -> pytest.RunResult:
        pytester.makeini(f"[pytest]\npythonpath = .\n{ini}\n")
        for name, text in files.items():
            path = pytester.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return pytester.runpytest_inprocess(
            "-p", "zerostride.pytest_plugin", "-p", "no:cacheprovider", "--no-header", *options
        )

    return runner
