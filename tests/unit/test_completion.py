"""`zerostride completion SHELL`, sourced by the shells themselves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import Run

from zerostride.derive.code import TARGETS

ROOT = Path(__file__).parents[2]
#: What each shell is told after it has sourced the script: it prints what it offers for a line.
OFFERS = {
    "bash": (
        "COMP_WORDS=(zerostride {before} '{last}'); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1));"
        "complete -p zerostride > /dev/null && _zerostride_completion zerostride;"
        "printf '%s\\n' \"${{COMPREPLY[@]}}\""
    ),
    "fish": "complete -C 'zerostride {before} {last}'",
}


def shell(name: str, script: str, folder: Path) -> str:
    """What a shell prints, where `zerostride` is this interpreter's."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    command = folder / "zerostride"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m zerostride "$@"\n')
    command.chmod(0o755)
    source = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [program, *(["-f"] if name == "zsh" else []), "-c", script],
        env={**os.environ, "HOME": str(folder), "PATH": path, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("name", OFFERS)
@pytest.mark.parametrize(
    ("before", "last", "offered"),
    [
        ("explain --rule", "pd", {"pdpd"}),
        pytest.param(
            *("", "co", {"compare", "completion", "compute", "convert"}), marks=pytest.mark.slow
        ),
        pytest.param("completion", "", {"bash", "zsh", "fish"}, marks=pytest.mark.slow),
    ],
)
def test_shell_completes_words(
    tmp_path: Path, name: str, before: str, last: str, offered: set[str]
) -> None:
    load = "zerostride completion fish | source;"
    if name == "bash":
        load = 'eval "$(zerostride completion bash)";'
    output = shell(name, load + OFFERS[name].format(before=before, last=last), tmp_path)
    assert {line.split("\t")[0] for line in output.splitlines() if line} == offered


def test_zsh_registers_the_completion(tmp_path: Path) -> None:
    # What it offers is seen in a terminal alone; that the script is read and bound, here.
    script = 'autoload -Uz compinit && compinit -D && eval "$(zerostride completion zsh)"'
    output = shell("zsh", f"{script}; print -r -- $_comps[zerostride] $+functions", tmp_path)
    assert output.split()[0] == "_zerostride_completion"


def test_offered_targets_match_the_help(run: Run) -> None:
    results = run("explain", "-h").out.partition("--code")[2].partition("--given")[0]
    words = set(re.findall(r"[a-z][a-z-]+", results.partition("for")[2])) - {"or"}
    assert words == set(TARGETS)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("explain", "5", "5", "--engine", "pytorch"), "Did you mean 'torch'?"),
        (("explain", "5", "5", "--rule", "nump"), "Did you mean 'numpy'?"),
        (("engines", "onnx-runtime"), "Invalid value for '[NAME]'"),
        (("engines", "onnx-runtime"), "Did you mean 'onnxruntime'?"),
        (("explain", "5", "5", "--code", "pytorch"), "did you mean torch?"),
        (("explain", "5", "5", "--express", "pytorch"), "did you mean torch?"),
        (("explain", "5", "5", "--express", "what"), "one of none, numpy,"),
    ],
)
def test_near_name_is_proposed(run: Run, words: tuple[str, ...], meant: str) -> None:
    answer = run(*words)
    assert answer.status == 2
    assert meant in answer.err
