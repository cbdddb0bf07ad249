"""Fixtures that several files of tests share."""

from __future__ import annotations

import pytest
from commandline import Answer, Run

from zerostride.cli import main as command


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command line in this process."""
    for name in ("NO_COLOR", "FORCE_COLOR", "ZEROSTRIDE_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> Answer:
        with pytest.raises(SystemExit) as stop:
            command([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert isinstance(stop.value.code, int)
        assert "Traceback" not in out + err
        return Answer(stop.value.code, out, err)

    return call
