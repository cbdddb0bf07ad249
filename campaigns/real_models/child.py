"""One model on many targets in one process: ``python -m campaigns.real_models.child STEP ...``.

The steps are the functions of `STEPS`, and their arguments are the words that follow. Prints JSON.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import zerostride as zs
from zerostride.models.formats import read_model

#: The package imports a function's modules on first use: here, before anything is timed.
_COMMANDS = (zs.audit, zs.port, zs.verify)


def audits(model: str, targets: str, repeats: str) -> dict[str, Any]:
    """CPU seconds of loading and, for each target, of the audit; its verdicts and a digest."""
    loading = _loading(model)
    answers: dict[str, list[dict[str, Any]]] = {}
    for _ in range(int(repeats)):
        for target in targets.split(","):
            answers.setdefault(target, []).append(_audited(model, target, loading))
    return {"loading": loading, "answers": answers}


def ports(model: str, targets: str, folder: str, *shapes: str) -> dict[str, Any]:
    """CPU seconds of the port to each target, its changes, what is left; writes to a folder."""
    loading = _loading(model)
    return {"answers": {target: _ported(model, target, folder, shapes, loading)
                        for target in targets.split(",")}}  # fmt: skip


def verifications(model: str, engines: str, *shapes: str) -> dict[str, Any]:
    """Each engine's results, node by node."""
    return {"answers": {engine: _verified(model, engine, shapes) for engine in engines.split(",")}}


def _loading(model: str) -> float:
    """CPU seconds of reading a model."""
    read_model(model)  # imports
    start = time.process_time()
    read_model(model)
    return time.process_time() - start


def _audited(model: str, target: str, loading: float) -> dict[str, Any]:
    start = time.process_time()
    try:
        report = zs.audit(model, target=target)
    except zs.ZerostrideError as error:
        return {"error": str(error)[:300]}
    seconds = time.process_time() - start
    unknown = [finding for finding in report.findings if finding.verdict == "unknown"]
    reasons = Counter(
        f"{finding.op} {finding.reason}: {finding.message[:120]}" for finding in unknown
    )
    return {
        "seconds": max(0.0, seconds - loading),
        "counts": {verdict: count for verdict, count in report.counts.items() if count},
        "unknown": dict(reasons.most_common(5)),
        "digest": hashlib.sha256(report.to_json().encode()).hexdigest(),
    }


def _ported(
    model: str, target: str, folder: str, shapes: Sequence[str], loading: float
) -> dict[str, Any]:
    goal = Path(folder) / f"{target}{Path(model).suffix}"
    start = time.process_time()
    try:
        report = zs.port(model, target, goal, input_shapes=_input_shapes(shapes))
    except zs.ZerostrideError as error:
        return {"error": str(error)[:300]}
    seconds = time.process_time() - start
    left = sum(finding.verdict != "same" for finding in report.findings)
    for written in goal.parent.glob(f"{goal.stem}.*"):
        written.unlink()
    readings = 2 if report.changes else 1  # a file with changes is read again
    seconds = max(0.0, seconds - readings * loading)
    return {"seconds": seconds, "rewrites": len(report.changes), "left": left}


def _verified(model: str, engine: str, shapes: Sequence[str]) -> dict[str, Any]:
    try:
        report = zs.verify(model, engine, cache=False, input_shapes=_input_shapes(shapes))
    except zs.ZerostrideError as error:
        return {"error": str(error)[:300]}
    return {
        "outcomes": dict(Counter(check.outcome for check in report.checks)),
        "contradictions": [note for note in report.notes if note.startswith("WRONG VERDICT")],
    }


def _input_shapes(shapes: Sequence[str]) -> dict[str, list[int]]:
    pairs = [shape.rpartition("=") for shape in shapes]
    return {name: [int(size) for size in sizes.split(",") if size] for name, _, sizes in pairs}


STEPS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "audits": audits, "ports": ports, "verifications": verifications,
}  # fmt: skip


def main(step: str, *words: str) -> int:
    """Prints what a step answers."""
    warnings.simplefilter("ignore")
    print(json.dumps(STEPS[step](*words)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
