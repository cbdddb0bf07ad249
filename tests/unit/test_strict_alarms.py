"""The campaign of strict mode on real packages: its page, and a run that goes on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from campaigns.strict_alarms import command, page
from click.testing import CliRunner, Result


def test_the_page_is_current_and_each_alarm_has_a_verdict() -> None:
    results = json.loads(page.RESULTS.read_text())
    assert page.PAGE.read_text("utf-8") == page.page(results)
    alarms = [alarm for row in results.values() for alarm in row["alarms"]]
    assert alarms
    assert all(alarm["verdict"] in ("accident", "meant") and alarm["why"] for alarm in alarms)


def row(package: str, *sources: str) -> dict[str, Any]:
    alarms = [
        {"file": "a.py", "line": k, "source": source, "shapes": [[3, 1], [3]]}
        for k, source in enumerate(sources)
    ]
    fixed = {"version": "1.0", "calls": 2, "failed": {}, "lines": 10}
    return {"package": package, **fixed, "alarms": alarms}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The answers of the packages' children."""
    answers: dict[str, Any] = {"one": row("one", "a - b"), "two": None}
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(command, "DRIVERS", dict.fromkeys(answers, ("drivers", "one")))
    monkeypatch.setattr(command, "_run", lambda _python, package, _seconds: answers[package])
    return answers


def call(*words: str) -> Result:
    return CliRunner().invoke(
        command.strict_alarms, ["--python", sys.executable, *words], standalone_mode=False
    )


def test_a_run_goes_on_and_keeps_verdicts(runs: dict[str, Any]) -> None:
    assert call().return_value == 1  # the second package has no result
    results = json.loads(command.RESULTS.read_text())
    assert list(results) == ["one"]
    (alarm,) = results["one"]["alarms"]
    assert alarm["verdict"] == "open"
    alarm["verdict"], alarm["why"] = "accident", "A mean over all pairs."
    command.RESULTS.write_text(json.dumps(results))

    runs["one"] = row("one", "c - d", "a - b")
    runs["two"] = row("two")
    assert call().return_value == 0
    assert len(json.loads(command.RESULTS.read_text())["one"]["alarms"]) == 1
    assert call("--again").return_value == 0
    verdicts = [a["verdict"] for a in json.loads(command.RESULTS.read_text())["one"]["alarms"]]
    assert verdicts == ["open", "accident"]
    text = page.PAGE.read_text("utf-8")
    assert "| one | 1.0 | 2 | 10 | 2 | 1 |" in text
    assert "A mean over all pairs." in text


def test_an_unknown_package_is_named(runs: dict[str, Any]) -> None:
    assert "no driver for three; there are: one, two" in str(call("--only", "three").exception)
