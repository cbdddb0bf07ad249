"""One model file on every target: the audit in several processes, ports, engines' answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Hash seeds of the processes that audit; under the second, targets come in the other order, and in
#: the third each audit is asked twice.
SEEDS = (0, 1, 2)
#: Seconds for one step of one file.
SECONDS = 1800.0


@dataclass
class Target:
    """Measurements of one file and one target.

    Attributes:
        counts: findings by verdict.
        unknown: reasons of findings that are unknown, with their number.
        audit: CPU seconds of the audit, beyond loading.
        answers: how many different reports the same question got; 1 is right.
        port: CPU seconds of the port, beyond loading.
        rewrites, left: nodes that it changed, and findings that are not `same` after it.
        outcomes: what the engine answered, node by node; empty where it was not asked.
        contradictions: nodes of which the audit and the engine say opposite things.
        missing: what could not be done, with the reason, by step.
    """

    counts: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    audit: float = 0.0
    answers: int = 0
    port: float = 0.0
    rewrites: int = 0
    left: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    contradictions: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


@dataclass
class Measured:
    """Measurements of one file.

    Attributes:
        file, converter: which; converter is "" for the file that was fetched.
        loading: CPU seconds of reading it.
        targets: by name.
        whole: how the converted file's outputs compare with the model's, on the real engine.
        missing: what could not be done, with the reason, by step.
    """

    file: str
    converter: str = ""
    loading: float = 0.0
    targets: dict[str, Target] = field(default_factory=dict)
    whole: str = ""
    missing: dict[str, str] = field(default_factory=dict)


def read_measured(file: Path) -> Measured:
    """The measurements that an earlier run wrote."""
    fields = json.loads(file.read_text())
    targets = {name: Target(**target) for name, target in fields.pop("targets").items()}
    return Measured(**fields, targets=targets)


def audit_everywhere(file: Path, targets: Sequence[str], measured: Measured) -> None:
    """Audits a file for every target, in processes with other hash seeds, orders and histories."""
    digests: dict[str, set[str]] = {target: set() for target in targets}
    for turn, seed in enumerate(SEEDS):
        order = list(targets) if turn != 1 else list(reversed(targets))
        words = (file, ",".join(order), "2" if turn == 2 else "1")
        answer = _child("audits", *words, seed=seed)
        if isinstance(answer, str):
            measured.missing[f"audit, seed {seed}"] = answer
            continue
        measured.loading = answer["loading"]
        for name, audits in answer["answers"].items():
            target = measured.targets.setdefault(name, Target())
            for audit in audits:
                if "error" in audit:
                    target.missing["audit"] = audit["error"]
                    digests[name].add(audit["error"])
                    continue
                digests[name].add(audit["digest"])
                target.counts, target.unknown = audit["counts"], audit["unknown"]
                target.audit = max(target.audit, audit["seconds"])
    for name, target in measured.targets.items():
        target.answers = len(digests[name])


def port_everywhere(file: Path, measured: Measured, shapes: Sequence[str]) -> None:
    """Ports a file to every target that was audited, and counts what that changed."""
    with tempfile.TemporaryDirectory() as folder:
        answer = _child("ports", file, ",".join(measured.targets), folder, *shapes)
    for name, target in measured.targets.items():
        ported: dict[str, Any] = (
            {"error": answer} if isinstance(answer, str) else answer["answers"][name]
        )
        if "error" in ported:
            target.missing["port"] = ported["error"]
        else:
            target.port, target.rewrites = ported["seconds"], ported["rewrites"]
            target.left = ported["left"]


def verify_everywhere(
    file: Path, measured: Measured, engines: Sequence[str], shapes: Sequence[str]
) -> None:
    """Runs every broadcast of a file on real engines; what contradicts the audit is a fault."""
    answer = _child("verifications", file, ",".join(engines), *shapes)
    for engine in engines:
        target = measured.targets[engine]
        checked: dict[str, Any] = (
            {"error": answer} if isinstance(answer, str) else answer["answers"][engine]
        )
        if "error" in checked:
            target.missing["verify"] = checked["error"]
        else:
            target.outcomes = checked["outcomes"]
            target.contradictions = checked["contradictions"]


def whole(model: Path, converted: Path, engine: str, shapes: Sequence[str]) -> str:
    """A converted file's outputs, compared with those of its model."""
    command = [sys.executable, "-m", "zerostride", "verify", str(model), "--engine", engine]
    command += ["--against", str(converted), "--json"]
    for shape in shapes:
        command += ["--input-shape", f"{shape}scalar" if shape.endswith("=") else shape]
    answer = _run(command, {})
    if isinstance(answer, str):
        return answer
    return ", ".join(
        f"{check['operands'][0]['name']} {check['outcome']} {check['detail']}".rstrip()
        for check in answer["checks"]
    )


def _child(step: str, *words: object, seed: int | None = None) -> dict[str, Any] | str:
    """The answer of one step, in a process of its own, or the reason of its failure."""
    command = [sys.executable, "-m", "campaigns.real_models.child", step, *map(str, words)]
    return _run(command, {} if seed is None else {"PYTHONHASHSEED": str(seed)})


def _run(command: Sequence[str], environment: dict[str, str]) -> dict[str, Any] | str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            env={**os.environ, **environment},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {SECONDS:.0f} s"
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines() or done.stdout.strip().splitlines() or ["nothing"]
        return f"status {done.returncode}: {lines[-1][:300]}"
    if isinstance(answer, dict) and ("answers" in answer or "findings" in answer):
        return answer
    detail = answer.get("detail", answer) if isinstance(answer, dict) else answer
    return f"status {done.returncode}: {str(detail)[:300]}"
