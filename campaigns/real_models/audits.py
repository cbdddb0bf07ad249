"""One model audited for many targets in this process: ``python -m campaigns.real_models.audits``.

The arguments are a model file, the targets with commas, and how often each is asked. Prints JSON.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import warnings
from collections import Counter
from typing import Any

import zerostride as zs
from zerostride.models.formats import read_model


def main(model: str, targets: str, repeats: str) -> int:
    """Prints seconds of loading and, for each target, of the audit, its verdicts and a digest."""
    warnings.simplefilter("ignore")
    read_model(model)  # imports
    start = time.perf_counter()
    read_model(model)
    loading = time.perf_counter() - start
    answers: dict[str, list[dict[str, Any]]] = {}
    for _ in range(int(repeats)):
        for target in targets.split(","):
            answers.setdefault(target, []).append(_audited(model, target, loading))
    print(json.dumps({"loading": loading, "answers": answers}))
    return 0


def _audited(model: str, target: str, loading: float) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        report = zs.audit(model, target=target)
    except zs.ZerostrideError as error:
        return {"error": str(error)[:300]}
    seconds = time.perf_counter() - start
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


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
