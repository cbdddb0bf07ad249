"""Measures another release of an engine: an environment for it, and what its row would have to say.

In: an engine, a release. Out: an interpreter that has it; the change to propose.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ...engines.model import Engine
from ...engines.releases import release_before, releases_of, short
from ...engines.table import find_engine
from ...errors import BadInput
from ...system import children
from .conformance import EngineReport, JudgedCase, label

#: Runs a module, as ``python -m`` would.
_RUN = """
import runpy
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
#: What else the runner of an engine imports.
_BESIDE = {"onnxruntime": ("onnx",)}


def environment(engine: Engine, release: str, folder: Path) -> str:
    """Makes an environment with a release of an engine, by pip; returns its interpreter.

    Raises:
        BadInput: pip has no wheel of it for this Python.
    """
    run_words(children.source(_RUN, "venv", str(folder)))
    python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    pip = ("pip", "install", "--quiet", "--only-binary", ":all:")
    wanted = (requirement(engine, release), *_BESIDE.get(engine.name, ()))
    run_words(children.source(_RUN, *pip, *wanted, python=python))
    try:
        run_words(children.source(f"import {engine.module}", python=python))
    except BadInput:  # wheels of 2023 were built against NumPy 1
        run_words(children.source(_RUN, *pip, "numpy<2", python=python))
    return python


def requirement(engine: Engine, release: str) -> str:
    """What pip installs: "ncnn==1.0.20240820"."""
    prefix = engine.release.removesuffix(short(engine.release))
    return f"{engine.distribution}=={prefix}{short(release)}"


def run_words(words: Sequence[str]) -> None:
    """Runs a command; raises BadInput with its last line if it fails."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise BadInput(f"the environment cannot be made: {last}")


def proposal(report: EngineReport) -> str:
    """The rows to add to `engines/changes.py` for the release that ran; "" if there are none."""
    engine, release = find_engine(report.engine), short(report.version.split("-")[0])
    measured = releases_of(engine)
    later = [one for one in measured if release_before(release, one)]
    if not later:
        return ""
    lines = [] if release in measured else [f'MEASURED["{engine.name}"]: add "{release}"']
    groups: dict[tuple[str, str], list[JudgedCase]] = {}
    for finding in report.findings:
        kinds = (_kind(finding.predicted), _kind(finding.outcome))
        groups.setdefault(kinds, []).append(finding)
    for (predicted, outcome), findings in groups.items():
        first = findings[0]
        ops = ", ".join(dict.fromkeys(label(finding.case) for finding in findings))
        lines += [
            f'CHANGES["{engine.name}"]: add, for {len(findings)} cases of {ops}',
            f"    # for example {first.case.a} and {first.case.b} {dict(first.case.attrs)}",
            "    Change(",
            f'        "{later[0]}",',
            f'        "{outcome}",  # predicted: {predicted}',
            "        (),",
            "        strikes,  # to write: whether a plan is affected",
            f'        "{engine.name} {release}, run: {report.cases:,} generated cases by value",',
            *(
                ["        effect=Reason.NO_RULE,", "        silent=frozenset(),"]
                if outcome == "refuses"
                else []
            ),
            "    ),",
        ]
    return "\n".join(lines)


def _kind(words: str) -> str:
    """A prediction or an outcome, without shapes and messages."""
    for begin, kind in (("refused", "refuses"), ("crashed", "ends its process")):
        if words.startswith(begin):
            return kind
    if words.startswith("gave"):
        return "gives another result"
    return words if "refusal" in words else "a result"
