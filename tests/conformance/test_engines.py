"""A sample of generated cases, and every rank of each engine, on the real engines.

The whole: ``python -m campaigns conformance --all --cases 20000``. An engine in another
environment is named by ``ZEROSTRIDE_PYTHON_PADDLE=/path/to/python``.
"""

from __future__ import annotations

import os

import pytest

from zerostride.runtimes.probe.catalogue import CATALOGUE
from zerostride.runtimes.probe.conformance import Judged, run_engine
from zerostride.runtimes.probe.generate import generate
from zerostride.runtimes.probe.ladder import ladder
from zerostride.runtimes.process import Missing, Process, interpreter_for

pytestmark = pytest.mark.conformance

#: How many generated cases an engine; the full number is the command line's.
CASES = int(os.environ.get("ZEROSTRIDE_CONFORMANCE_CASES", "600"))


@pytest.mark.slow
@pytest.mark.parametrize("engine", CATALOGUE)
def test_engine_agrees(engine: str) -> None:
    try:
        with Process(engine, interpreter_for(engine)) as process:
            report = run_engine(process, [*ladder(engine), *generate(engine, CASES, 17)])
    except Missing as missing:
        pytest.skip(f"{engine} is not installed: {missing}")
    assert not report.findings, "\n".join(
        f"{f.case}\n  zerostride: {f.predicted}\n  {engine}: {f.outcome}" for f in report.findings
    )
    assert report.count(Judged.EQUAL) > CASES // 3
    assert report.count(Judged.REFUSE) + report.count(Judged.SILENT) > CASES // 20
