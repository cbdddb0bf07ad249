"""onnx's own backend suite, by its stock runner, over zerostride.backend.

Every test passes or is refused, by the reason that `tests/data/onnx_backend.txt` gives for it: a
test that is refused for another reason, that is refused and not listed, or that is listed and
passes, fails here. None fails.
"""

from __future__ import annotations

import re
import unittest
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

onnx = pytest.importorskip("onnx", reason="the suite is onnx's")

from zerostride.backend import Backend, BackendRep  # noqa: E402

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not onnx.__version__.startswith("1.23."), reason="the refused tests listed are onnx 1.23's"
    ),
]

DATA = Path(__file__).parents[1] / "data" / "onnx_backend.txt"
#: How reasons begin that the model alone does not tell: operands decide.
LATER = "at run time: "
#: Half floats: the expected values are rounded at every step, ours fewer times; they lie apart by
#: an ulp, and ours nearer to the exact ones (the last test).
ULP = {"rtol": 1e-3, "atol": 5e-4}
WIDER = {
    "test_attention_4d_causal_fp16": ULP,
    "test_attention_4d_causal_fp16_expanded": ULP,
}
#: Fewest tests that pass: none gets lost.
FEWEST = 1834


class Tried(Backend):
    """Takes every model, so that a refusal has to say its reason."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> BackendRep:
        # The runner hands its tolerances on.
        assert kwargs.keys() <= {"rtol", "atol"}
        return super().prepare(model, device)


class Outcomes(unittest.TestResult):
    """What became of each test: "" where it passed, else the error's words."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, str] = {}

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        self.said[name_of(test)] = ""

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self.said[name_of(test)] = f"{err[0].__name__}: {err[1]}"

    addFailure = addError  # noqa: N815

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self.said[name_of(test)] = f"skipped: {reason}"


def name_of(test: unittest.TestCase) -> str:
    return test.id().rpartition(".")[2]


def cases() -> Iterator[unittest.TestCase]:
    """The tests on the CPU; those on other devices are skipped by the runner."""
    import onnx.backend.test

    runner = onnx.backend.test.BackendTest(Tried, __name__, WIDER)
    for group in runner.test_cases.values():
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(group):
            if name_of(test).endswith("_cpu"):
                yield test


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    tally = Outcomes()
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        # The runner writes operands and results of its whole networks there.
        patch.setenv("ONNX_MODELS", str(tmp_path_factory.mktemp("models")))
        unittest.TestSuite(cases()).run(tally)
    return tally.said


def node_cases() -> list[Any]:
    """The suite's cases of one node; making them overflows, which onnx means."""
    import onnx.backend.test.loader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(onnx.backend.test.loader.load_model_tests(kind="node"))


def listed() -> Mapping[str, str]:
    """The refused tests, each with its reason: a line in brackets above their names."""
    table, reason = {}, ""
    for line in DATA.read_text().splitlines():
        if line.startswith("["):
            reason = line.strip("[]")
        elif line and not line.startswith("#"):
            assert line not in table
            table[line] = reason
    return table


@pytest.mark.slow
def test_every_onnx_test_passes_or_is_refused_by_name(outcomes: Mapping[str, str]) -> None:
    refused, wrong = listed(), []
    for name, outcome in outcomes.items():
        reason = refused.get(name)
        if outcome and reason is None:
            wrong.append(f"{name} fails: {outcome[:300]}")
        elif reason is not None and not outcome:
            wrong.append(f"{name} passes, and is listed as refused: {reason}")
        elif outcome and not (
            reason.removeprefix(LATER) in outcome and re.match("(Model|Zerostride)Error: ", outcome)
        ):
            wrong.append(f"{name} is refused by {outcome[:300]!r}, not by {reason!r}")
    wrong += [f"{name} is listed, and there is no such test" for name in refused.keys() - outcomes]
    passed = sum(not outcome for outcome in outcomes.values())
    print(f"{passed} passed, {len(refused)} refused by name, {len(wrong)} failed")
    for reason, count in Counter(refused.values()).most_common():
        print(f"  {count} {reason}")
    assert not wrong, "\n".join(wrong)
    assert passed >= FEWEST


@pytest.mark.slow
def test_is_compatible_agrees_with_prepare(outcomes: Mapping[str, str]) -> None:
    """`is_compatible` and `prepare` agree, but where operands decide."""
    refused = listed()
    checked = Counter[bool]()
    for case in node_cases():
        reason = refused.get(f"{case.name}_cpu")
        if zlib.crc32(case.name.encode()) % 10 and reason is None:
            continue  # they were run above
        if reason is not None and reason.startswith(LATER):
            continue
        assert Backend.is_compatible(case.model) == (reason is None), case.name
        checked[reason is None] += 1
    assert min(checked.values()) > 100


def test_half_float_results_are_nearer_to_exact_than_expected_values() -> None:
    import numpy as np

    compared = 0
    for case in node_cases():
        if case.name not in WIDER:
            continue
        (operands, (expected,)), *_ = case.data_sets
        output = Backend.run_model(case.model, operands)[0]
        q, k, v = (np.asarray(one, np.float64) for one in operands)
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        scores = np.where(np.tril(np.ones(scores.shape[-2:])) > 0, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        exact = weights / weights.sum(-1, keepdims=True) @ v
        assert abs(output - exact).max() < abs(np.asarray(expected) - exact).max()
        compared += 1
    assert compared == len(WIDER)
