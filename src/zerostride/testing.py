"""Assertions for test suites: a model means on an engine what it means by itself.

In: a model, an engine. Out: nothing, or an AssertionError with the findings.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .errors import ZerostrideError
from .models.audit.baseline import read_baseline
from .models.audit.run import audit
from .models.findings import Report, Verdict
from .report import finding_text, headline, notes, told

#: The findings that a message has in full; the others are counted.
_MOST = 5


def assert_same_meaning(
    model: Any,
    target: str,
    *,
    allow: Collection[str] = (),
    baseline: Any = None,
    **options: Any,
) -> Report:
    """Asserts that every broadcast of a model means the same on an engine.

    Args:
        model: a model file, a model in memory, or a module or program of PyTorch, as for
            :func:`zerostride.audit`.
        target: the engine's name.
        allow: a verdict that does not fail, or several, such as "same_here" and "unknown".
        baseline: a file of accepted findings, which ``zerostride audit --write-baseline`` writes.
        options: further arguments of :func:`zerostride.audit`: `args`, `via`, `sizes`, …

    Returns:
        The audit's report.

    Raises:
        AssertionError: some finding fails; the message has each with its drawing and fix.
        ModelError: the model or the baseline cannot be read.
        ZerostrideError: `allow` has a word that is no verdict.
        BroadcastError: there is no such engine.

    >>> from zerostride.testing import assert_same_meaning
    >>> assert_same_meaning("examples/clean.onnx", "openvino").ok
    True
    """
    allowed = {allow} if isinstance(allow, str) else set(map(str, allow))
    verdicts = set(map(str, Verdict))
    for word in sorted(allowed - verdicts):
        names = ", ".join(sorted(verdicts))
        raise ZerostrideError(f"allow={word!r} is no verdict; these are: {names}")
    __tracebackhide__ = True  # pytest shows the caller's line
    report = audit(model, target, **options)
    if baseline is not None:
        (judged,) = read_baseline(baseline).judged([report])
        assert isinstance(judged, Report)
        report = judged
    failing = [finding for finding in told(report) if str(finding.verdict) not in allowed]
    if failing:
        parts = [headline(report), *notes(report), *map(finding_text, failing[:_MOST])]
        if len(failing) > _MOST:
            parts.append(f"and {len(failing) - _MOST} more")
        raise AssertionError("\n\n".join(parts))
    return report


__all__ = ["assert_same_meaning"]
