"""action.yml: its shell steps run here as GitHub runs them, on the inputs of a workflow."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx", reason="the models are ONNX files")
pytest.importorskip("yaml", reason="reads action.yml")

import yaml
from sarif_pydantic import Sarif

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
INPUT = re.compile(r"\$\{\{ (?:inputs|steps\.(?P<step>\w+)\.outputs)\.(?P<name>[\w-]+) \}\}")
#: What GitHub's runner sets beside the paths; some libraries read it.
GITHUB = {"CI": "true", "GITHUB_ACTIONS": "true", "RUNNER_OS": "Linux", "GITHUB_JOB": "audit"}


@dataclass
class Job:
    """A workflow's job: a folder, and the steps that were run in it."""

    folder: Path

    @property
    def outputs(self) -> dict[str, str]:
        """What the steps wrote to GITHUB_OUTPUT."""
        lines = (self.folder / "output").read_text("utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def step(self, name: str, inputs: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """A step of the action, run by the shell that GitHub's `bash` stands for."""
        (step,) = (one for one in ACTION["runs"]["steps"] if one["name"] == name)
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "an input in a script would be run as code"
        values = {key: row.get("default", "") for key, row in ACTION["inputs"].items()} | inputs

        def value(match: re.Match[str]) -> str:
            return (self.outputs if match["step"] else values)[match["name"]]

        own = {key: INPUT.sub(value, text) for key, text in step.get("env", {}).items()}
        script = self.folder / "step.sh"
        script.write_text(step["run"])
        paths = {
            "RUNNER_TEMP": str(self.folder / "temp"),
            "GITHUB_WORKSPACE": str(self.folder / "work"),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            "PATH": f"{self.folder / 'tools'}{os.pathsep}{os.environ['PATH']}",
        }
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
        return subprocess.run(
            command,
            cwd=self.folder / "work",
            env={**os.environ, **GITHUB, **paths, **own},
            capture_output=True,
            text=True,
            timeout=300,
        )


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job whose install step left this interpreter's zerostride in RUNNER_TEMP."""
    program = tmp_path / "temp" / "zerostride" / "bin" / "zerostride"
    for folder in (program.parent, tmp_path / "work", tmp_path / "tools"):
        folder.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m zerostride "$@"\n')
    program.chmod(0o755)
    (tmp_path / "work" / "models").symlink_to(ROOT / "examples")
    (tmp_path / "output").touch()
    return Job(tmp_path)


def test_the_audit_annotates_and_writes_its_outputs(job: Job) -> None:
    models = "models/clean.onnx\n\nmodels/tiny_vision.onnx\n"
    done = job.step("Audit", {"models": models, "targets": "mnn, openvino"})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    (command, other, *counts) = done.stdout.splitlines()
    place = "file=models/tiny_vision.onnx,title=mnn%3A different [ZS107 silent]"
    assert command.startswith(f"::error {place}::Max stage/floor of (1,16,4,4) (16,1,1) (1): ")
    assert "%0Ashown by: maximum of " in command
    assert other.startswith(f"::error {place}::Sum mlp/residual ")
    assert counts == ["2 models: 61 same, 2 different", "2 models: 63 same"]
    assert job.outputs == {"reports": "zerostride-reports", "status": "1"}
    reports = job.folder / "work" / "zerostride-reports"
    files = {
        f"{target}{end}" for target in ("mnn", "openvino") for end in (".sarif", ".html", ".md")
    }
    assert {file.name for file in reports.iterdir()} == files
    runs = [run_of(reports / f"{target}.sarif") for target in ("mnn", "openvino")]
    # One upload takes runs of different ids only.
    ids = [run["automationDetails"]["id"] for run in runs]
    assert ids == ["zerostride/mnn/", "zerostride/openvino/"]
    assert [len(run["results"]) for run in runs] == [2, 0]
    summary = (job.folder / "summary").read_text("utf-8")
    assert summary == (reports / "mnn.md").read_text("utf-8") + (reports / "openvino.md").read_text(
        "utf-8"
    )
    assert job.step("Status", {}).returncode == 1


def run_of(file: Path) -> dict[str, Any]:
    text = file.read_text("utf-8")
    Sarif.model_validate_json(text)
    (run,) = json.loads(text)["runs"]
    result: dict[str, Any] = run
    return result


def test_known_findings_pass(job: Job) -> None:
    inputs = {"models": "models/tiny_vision.onnx", "targets": "mnn", "baseline": "known.json"}
    program = job.folder / "temp" / "zerostride" / "bin" / "zerostride"
    words = [inputs["models"], "--target", "mnn", "--write-baseline", "known.json"]
    subprocess.run([program, "audit", *words], cwd=job.folder / "work", capture_output=True)
    done = job.step("Audit", inputs)
    assert done.stdout == "1 model: 54 same, 2 different\n"
    assert job.outputs["status"] == "0"
    assert job.step("Status", {}).returncode == 0


def test_options_and_bad_input(job: Job) -> None:
    inputs = {"models": "models/bugs/ncnn-4930.onnx", "targets": "ncnn", "fail-on": "none"}
    job.step("Audit", inputs)
    assert job.outputs["status"] == "0"
    done = job.step("Audit", {**inputs, "options": "--batch-axis\nnonsense"})
    assert "nonsense" in done.stderr
    assert job.outputs["status"] == "2"
    for missing in ("models", "targets"):
        done = job.step("Audit", {**inputs, missing: " \n"})
        assert (done.returncode, done.stdout[:8]) == (2, "::error ")


def test_the_action_installs_itself_without_a_compiler(job: Job) -> None:
    """The commands of the install step; the network is not needed to see them."""
    python = job.folder / "tools" / "python3"
    pip = job.folder / "temp" / "zerostride" / "bin" / "pip"
    pip.write_text('#!/bin/sh\necho "PURE=$ZEROSTRIDE_PURE" "$@"\n')
    pip.chmod(0o755)
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    done = job.step("Install zerostride", {})
    assert done.returncode == 0, done.stderr
    venv, install = done.stdout.splitlines()
    assert venv == f"-m venv {job.folder / 'temp' / 'zerostride'}"
    assert install == f"PURE=1 install --quiet {ROOT}"


def test_the_upload_takes_the_reports() -> None:
    (step,) = (one for one in ACTION["runs"]["steps"] if "uses" in one)
    assert step["uses"] == "github/codeql-action/upload-sarif@v3"
    assert step["with"] == {"sarif_file": "${{ steps.audit.outputs.reports }}"}
    assert "upload == 'true'" in step["if"]
