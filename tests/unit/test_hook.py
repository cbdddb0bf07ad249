"""The pre-commit hook of the repository: its entry, its files, its dependencies."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

from zerostride.models.formats.file_search import suffixes

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
CLEAN, VISION = EXAMPLES / "clean.onnx", EXAMPLES / "tiny_vision.onnx"


def hook() -> dict[str, Any]:
    """The one hook of the file, whose values are words or JSON."""
    table: dict[str, Any] = {}
    for line in (ROOT / ".pre-commit-hooks.yaml").read_text().splitlines():
        match = re.fullmatch(r"(?:- |  )(\w+): (.*)", line)
        if match is None:
            assert not line or line.lstrip().startswith("#"), line
            continue
        key, value = match.groups()
        table[key] = json.loads(value) if value[:1] in '["' or value == "true" else value
    return table


def test_hook_runs_its_entry(run: Run) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    words = [*shlex.split(hook()["entry"]), *hook()["args"]]
    assert words[0] == "zerostride"
    assert run(*words[1:], CLEAN).status == 0
    assert run(*words[1:], CLEAN, VISION).status == 1
    assert run(*words[1:], EXAMPLES / "dynamic.onnx").status == 0


def test_hook_matches_model_files() -> None:
    answer = hook()
    assert answer["id"] == "zerostride-audit"
    assert answer["language"] == "python"
    assert answer["require_serial"] is True
    wanted, unwanted = re.compile(answer["files"]), re.compile(answer["exclude"])

    def taken(name: str) -> bool:
        return bool(wanted.search(name)) and not unwanted.search(name)

    assert taken("models/a.onnx")
    assert taken("net.param")
    assert not taken("net.pnnx.param")
    assert not taken("pom.xml")
    assert not taken("weights.bin")
    for name in ("a.onnx", "net.param"):
        if Path(name).suffix in suffixes():
            assert taken(name)
    text = (ROOT / "pyproject.toml").read_text()
    for dependency in answer["additional_dependencies"]:
        assert f'"{dependency}"' in text, "not the extra's own"
