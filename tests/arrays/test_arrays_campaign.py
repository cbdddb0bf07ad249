"""The campaign of arrays: right libraries agree, and a wrong library is found."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from campaigns.__main__ import main
from campaigns.arrays.command import RULES, tallied
from campaigns.arrays.draw import cases
from campaigns.arrays.judge import judged
from campaigns.arrays.libraries import ROWS, installed

from zerostride.errors import BadInput

strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed")
HERE, ELSEWHERE = ROWS["array_api_strict"], ROWS["array_api_strict elsewhere"]


@pytest.mark.parametrize("library", [HERE, ELSEWHERE, ROWS["numpy"]], ids=lambda row: row.name)
@pytest.mark.parametrize("rule", RULES)
def test_arrays_agree_with_the_reference(library, rule):
    tally = tallied(library, rule, 0, 60, seed=2)
    assert tally.cases == 60
    assert not tally.shown
    assert tally.refused + tally.lacking < tally.cases / 2


def _off_by_one(array):
    values = np.array(HERE.read(array))
    if values.dtype.kind == "f" and values.size:
        values.reshape(-1)[-1] += 1
    return values


class Other:
    device = "cpu"


@pytest.mark.parametrize(
    ("faulty", "words"),
    [
        (replace(HERE, read=_off_by_one), "element"),
        (replace(ELSEWHERE, read=_off_by_one), "element"),
        (replace(HERE, read=lambda array: HERE.read(array).astype("complex64")), "dtype"),
        (replace(HERE, read=lambda array: HERE.read(array)[..., None]), "shape"),
        (replace(ELSEWHERE, call=lambda function, *arrays: Other()), "Other"),
    ],
)
def test_comparison_finds_a_wrong_result(faulty, words):
    tally = tallied(faulty, "numpy", 0, 120, seed=0)
    assert tally.differing
    assert any(words in text for _, text in tally.shown)


@pytest.mark.parametrize(("own", "result"), [(1, False), (2, True)])
def test_only_a_librarys_own_functions_may_differ_in_value(own, result):
    def function(op, arrays, dtypes, shape):
        return np.broadcast_to(getattr(np, op)(arrays[0].astype(dtypes[0])), shape) + own

    row = replace(
        ELSEWHERE,
        call=lambda given, *arrays: given(*arrays) + 1.0,
        own=(("sqrt", "one more, for this test"),),
        function=function,
    )
    drawn = (case for _, case in cases("numpy", ("float64",), 0, 900, 0, writes=False))
    roots = [case for case in drawn if case.kind == "op" and case.call.op == "sqrt"]
    assert roots
    assert any(judged(case, row).difference for case in roots) == result
    assert any(judged(case, replace(row, own=())).difference for case in roots)


def test_comparison_finds_a_result_on_another_device():
    here, there = strict.asarray(1.0), strict.asarray(1.0, device=strict.Device("device1"))
    assert "device" in HERE.differs(here, there)
    assert not HERE.differs(there, there)


def test_case_does_not_depend_on_earlier_cases():
    numbered = dict(cases("pdpd", HERE.dtypes, 0, 40, 3, writes=True))
    assert dict(cases("pdpd", HERE.dtypes, 17, 2, 3, writes=True)) == {
        k: numbered[k] for k in (17, 18)
    }


def test_campaign_draws_all_kinds_of_calls():
    kinds = {case.kind for _, case in cases("numpy", HERE.dtypes, 0, 200, 0, writes=True)}
    kinds |= {case.kind for _, case in cases("explicit", HERE.dtypes, 0, 5, 0, writes=True)}
    assert kinds == {"op", "views", "unbroadcast", "fused", "reduction", "broadcast"}


def test_command_prints_tallies_as_json(capsys):
    words = ["arrays", "--library", "array_api_strict", "--rule", "ncnn", "--cases", "20"]
    assert main([*words, "--json"]) == 0
    (tally,) = json.loads(capsys.readouterr().out)
    assert (tally["library"], tally["rule"], tally["cases"]) == ("array_api_strict", "ncnn", 20)
    assert main(words) == 0
    assert "0 differences in 20 cases" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--library", "nope"], ["--rule", "nope"]])
def test_command_refuses_bad_input(words, capsys):
    assert main(["arrays", *words]) == 2
    assert "nope" in capsys.readouterr().err


def test_missing_library_is_reported():
    with pytest.raises(BadInput, match="is not installed"):
        _ = replace(HERE, module="zerostride_has_no_such").imported
    assert HERE in installed(())
