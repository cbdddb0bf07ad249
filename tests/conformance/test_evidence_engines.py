"""The reported bugs on the real engines: the audit's findings and fixes are right."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import zerostride as zs
from zerostride.errors import ZerostrideError
from zerostride.models.findings import Outcome, Report

pytest.importorskip("onnx", reason="the reports are ONNX files")
sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

from reported import NAMED, Named, model

pytestmark = pytest.mark.conformance

#: Those whose target can be run.
RUN = [named for named in NAMED if named.target not in ("litert-gpu", "coreml", "opencv")]
AGAINST = {Outcome.DIFFERS, Outcome.REFUSED, Outcome.CRASHED}


def way(named: Named) -> dict[str, Any]:
    """Op for op on ncnn: the reports are of its layers."""
    return {"via": "none"} if named.target == "ncnn" else {}


def verified(file: Path, named: Named, **options: Any) -> Report:
    """The file on the engine; a skip where that is not installed."""
    if file.name.startswith("paddle"):
        options["sizes"] = {"N": 1}
    options |= way(named)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zs.EngineVersionWarning)
        try:
            return zs.verify(file, named.target, cache=False, **options)
        except ZerostrideError as error:
            if "not installed" in str(error) or "does not run here" in str(error):
                pytest.skip(str(error))
            raise


@pytest.mark.parametrize("named", RUN, ids=lambda named: named.bug)
def test_engine_does_what_the_audit_predicts(named: Named) -> None:
    file, options = model(named)
    report = verified(file, named, **options)
    (check,) = report.checks
    verdict = (check.outcome, check.detail)
    if named.reason == "batch_broadcast":
        # There is nothing that the engine could be given.
        assert check.outcome is Outcome.NOT_RUN, verdict
    elif named.verdict in ("same", "same_here"):
        assert check.outcome is Outcome.AGREES, verdict
        assert check.elements
    else:
        assert check.outcome in AGAINST, verdict


@pytest.mark.parametrize("named", [n for n in RUN if n.cured], ids=lambda named: named.bug)
def test_ported_model_gives_the_right_numbers(named: Named, tmp_path: Path) -> None:
    file, options = model(named)
    goal = tmp_path / file.name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zs.EngineVersionWarning)
        assert zs.port(file, named.target, goal, **options, **way(named)).ok
    report = verified(goal, named, **options)
    assert report.checks
    assert {check.outcome for check in report.checks} == {Outcome.AGREES}
