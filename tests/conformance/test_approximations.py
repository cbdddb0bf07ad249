"""The rows of approximated functions, measured again on the installed engines."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="the models are made with the onnx package")

from campaigns.models.approximations import FUNCTIONS, rows

from zerostride.models.judging import APPROXIMATED
from zerostride.runtimes.process import engines_kept

pytestmark = pytest.mark.conformance

MODULES = {"mnn": "MNN", "ncnn": "ncnn", "openvino": "openvino"}
#: A function without a row is no further off than this.
EXACT = 2e-5


@pytest.mark.slow
@pytest.mark.parametrize("engine", MODULES)
def test_rows_are_as_large_as_the_errors(engine: str) -> None:
    pytest.importorskip(MODULES[engine], reason="runs the functions")
    with engines_kept():
        errors = {name: row[0] for name, row in rows(engine) if not isinstance(row, str)}
    assert len(errors) > len(FUNCTIONS) - 3
    table = APPROXIMATED.get(engine, {})
    for name, error in errors.items():
        assert error <= table.get(FUNCTIONS[name].op, EXACT), (name, error)
    for op, most in table.items():
        largest = max(error for name, error in errors.items() if FUNCTIONS[name].op == op)
        assert most <= 4 * largest, (op, most, largest)
