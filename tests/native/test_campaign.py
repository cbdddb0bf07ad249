"""The native engine compared with the reference on generated calls; wrong results are found."""

from __future__ import annotations

import contextlib
import io
import json
import math
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from campaigns.__main__ import main
from campaigns.native import command as campaign
from campaigns.native.cases import DrawnCall, Number, View, bfloat16, dtype_of, source
from campaigns.native.draw import calls
from campaigns.native.judge import judge, ulps
from native_scripts import needs_native, start

import zerostride as zs
from sampled import few
from zerostride.compute import native
from zerostride.ops import OPS

pytestmark = needs_native
SAMPLE = 8_000


def test_sample_has_no_differences():
    result = campaign.judge_all(calls(0, SAMPLE, seed=1))
    shown = "\n\n".join(f"# case {d.case}: {d.text}\n{d.code}" for d in result.differences)
    assert result.cases == SAMPLE
    assert not result.differing, shown
    assert result.handed_over < 0.6 * SAMPLE  # or it would be the reference against itself


@pytest.mark.slow
def test_command_judges_every_instruction_set(capsys):
    assert main(["native", "--isa", "all", "--cases", "1500", "--seed", "2", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [result["isa"] for result in results] == native._native.available_isas()
    for result in results:
        assert sum(tally["cases"] for tally in result["tallies"].values()) == 1500


def test_unknown_instruction_set_is_refused(capsys):
    assert main(["native", "--isa", "mmx"]) == 2
    assert "no instruction set 'mmx' here; there are " in capsys.readouterr().err


def test_command_without_the_engine_reports_it():
    code = "import sys; from campaigns.__main__ import main; sys.exit(main(['native']))"
    process = start(code, ZEROSTRIDE_BACKEND="reference")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert err == "error: the native engine is not in use here: there is nothing to compare\n"


# The generator


@pytest.fixture(scope="module")
def sample() -> list[DrawnCall]:
    return [call for _, call in calls(0, 10_000, seed=5)]


def test_every_op_and_dtype_is_drawn(sample):
    assert {call.op for call in sample} == set(OPS)
    dtypes = {view.dtype for call in sample for view in call.operands if isinstance(view, View)}
    common = {"bool", "int8", "uint64", "float16", "float32", "float64", "complex64", ">f4"}
    assert dtypes >= common
    assert (bfloat16() is not None) == ("bfloat16" in dtypes)


@pytest.mark.parametrize(
    ("share", "what"),
    [
        (0.02, lambda call, view: 0 in view.shape),
        (0.02, lambda call, view: len(view.shape) > 8),
        (0.002, lambda call, view: len(view.shape) > 32),
        (0.001, lambda call, view: math.prod(view.shape) >= 100_000),
        (0.05, lambda call, view: any(s < 0 for s in view.strides)),
        (0.03, lambda call, view: any(s == 0 < n - 1 for n, s in _axes(view))),
        (0.01, lambda call, view: view.offset % max(dtype_of(view.dtype).itemsize, 1) != 0),
        (0.01, lambda call, view: any(s % dtype_of(view.dtype).itemsize for _, s in _axes(view))),
        (0.05, lambda call, view: call.out is not None and call.out.memory == view.memory),
        (0.005, lambda call, view: call.out == view),
        (0.005, lambda call, view: call.out is not None and len(call.out.shape) > len(view.shape)),
        (0.02, lambda call, view: any(isinstance(other, Number) for other in call.operands)),
        (0.03, lambda call, view: "rule" in call.options or "engine" in call.options),
        (0.02, lambda call, view: call.op != "cast" and "dtype" in call.options),
    ],
)
def test_shares_of_drawn_features_are_large_enough(sample, share, what):
    seen = sum(
        any(what(call, view) for view in call.operands if isinstance(view, View)) for call in sample
    )
    assert seen >= share * len(sample)


def _axes(view: View) -> list[tuple[int, int]]:
    return list(zip(view.shape, view.strides, strict=True))


def test_case_does_not_depend_on_earlier_cases():
    assert list(calls(1003, 5, seed=9)) == list(calls(0, 1008, seed=9))[1003:]
    assert list(calls(0, 5, seed=9)) != list(calls(0, 5, seed=8))


# What is wrong is seen


def _add(change: Any) -> Any:
    """zs.add with its result changed."""
    return lambda *operands, **options: change(zs.add(*operands, **options))


def _last_place(result: Any) -> Any:
    # The sign of one zero, or one bit.
    array = np.asarray(result)
    if array.dtype.kind != "f" or not array.size or array.dtype.itemsize > 8:
        return result
    changed = array.copy(order="K")
    flat = changed.view(f"u{array.dtype.itemsize}").reshape(-1)
    flat[-1] ^= np.array(1, flat.dtype)
    return _as(result, changed)


def _other_dtype(result: Any) -> Any:
    return result.astype(np.float64) if result.dtype == np.float32 else result


def _as(result: Any, changed: Any) -> Any:
    if isinstance(result, np.ndarray) and result.base is not None:  # out
        with contextlib.suppress(ValueError):
            result[...] = changed
        return result
    return changed if isinstance(result, np.ndarray) else changed[()]


def _beside(*operands: Any, out: Any = None, **options: Any) -> Any:
    """Writes a byte before its output's first."""
    result = zs.add(*operands, out=out, **options)
    if out is not None and out.base is not None and out.size:
        memory = out.base if isinstance(out.base, np.ndarray) else np.asarray(out.base)
        at = out.ctypes.data - memory.ctypes.data
        if at > 0:
            memory.reshape(-1).view(np.uint8)[at - 1] ^= 1
    return result


def _input_changed(a: Any, b: Any, **options: Any) -> Any:
    result = zs.add(a, b, **options)
    if isinstance(a, np.ndarray) and a.size and a.dtype != bool and "out" not in options:
        a[(0,) * a.ndim] = a[(0,) * a.ndim] + a.dtype.type(1) if a.dtype.kind in "iu" else 77
    return result


def _warns(*operands: Any, **options: Any) -> Any:
    warnings.warn("overflow", RuntimeWarning, stacklevel=1)
    return zs.add(*operands, **options)


def _refuses_rank_3(a: Any, b: Any, **options: Any) -> Any:
    if np.ndim(a) == 3:
        raise ValueError("rank 3")
    return zs.add(a, b, **options)


PLANTED = {
    "last place": _add(_last_place),
    "dtype": _add(_other_dtype),
    "scalar": _add(lambda r: np.asarray(r) if isinstance(r, np.generic) else r),
    "layout": _add(lambda r: r if r.base is not None else np.array(r, order="C")[...]),
    "shape": _add(lambda r: r.reshape(-1) if isinstance(r, np.ndarray) else r),
    "not out": _add(lambda r: r.copy() if isinstance(r, np.ndarray) else r),
    "beside": _beside,
    "input": _input_changed,
    "refuses": _refuses_rank_3,
    "warns": _warns,
    "accepts": lambda a, b, **o: np.add(a, b) if o.get("rule") != "numpy" else zs.add(a, b, **o),
    "subtracts": lambda *operands, **options: zs.subtract(*operands, **options),
}


@pytest.mark.parametrize("planted", few(4, PLANTED))
def test_planted_error_is_found(planted):
    cases = ((k, call) for k, call in calls(0, 6000, seed=3) if call.op == "add")
    with np.errstate(all="ignore"):
        result = campaign.judge_all(cases, lambda op: PLANTED[planted])
    assert result.cases > 300
    assert result.differing > 2
    assert "np.ndarray" in result.differences[0].code or "zs.add" in result.differences[0].code


def test_difference_is_shrunk_to_code_that_runs():
    def wrong(a: Any, b: Any, **options: Any) -> Any:
        result = zs.add(a, b, **options)
        if isinstance(result, np.ndarray) and result.ndim >= 2 and result.size:
            result[(0,) * result.ndim] ^= 1
        return result

    cases = ((k, call) for k, call in calls(0, 20_000, seed=4) if call.op == "add")
    big = (
        (k, call)
        for k, call in cases
        if all(isinstance(v, View) and v.dtype == "int32" for v in call.operands)
        and math.prod(call.operands[0].shape) > 100  # type: ignore[union-attr]
        and not call.options
    )
    result = campaign.judge_all(big, lambda op: wrong)
    assert result.differing > 3
    code = min((difference.code for difference in result.differences), key=len)
    assert "(1, 1)" in code  # two axes and one element are what it takes
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, {})
    assert out.getvalue().startswith("array([[")


@pytest.mark.parametrize("k", range(12))
def test_printed_source_makes_the_same_call(k):
    ((_, call),) = calls(1000 + k, 1, seed=6)
    text = source(call).rsplit("print(repr(", 1)
    assert text[1].endswith("))")
    names: dict[str, Any] = {}
    exec(text[0], names)
    arrays = call.make()
    for name, operand in zip("abc", arrays.operands, strict=False):
        if isinstance(operand, np.ndarray) and name in names:
            assert names[name].tobytes() == operand.tobytes()
            assert names[name].strides == operand.strides


def test_refusal_by_both_is_no_difference():
    call = DrawnCall("add", (), (Number(1), Number(2)), None, {"rule": "pdpd", "axis": 9})
    verdict = judge(call, zs.add)
    assert verdict.refused
    assert not verdict.difference


def test_ulps_count_steps_between_floats():
    one = np.array([1.0, -1.0, 0.0, np.inf], np.float32)
    other = np.nextafter(one, np.float32(-5))
    assert ulps(one, other).tolist() == [1, 1, 1, 1]
    assert ulps(one, -one)[0] == 2 * 0x3F800000
    assert ulps(np.array([-0.0]), np.array([0.0])).tolist() == [0]
    largest = np.finfo(np.float64).max
    assert ulps(np.array([largest]), np.array([-largest]))[0] > 2**63


def test_crash_is_reported_with_its_case(tmp_path: Path):
    mark = tmp_path / "mark"
    mark.write_bytes((777).to_bytes(8, "little"))
    process = subprocess.Popen(
        [sys.executable, "-c", "import os; os.abort()"], stdout=subprocess.PIPE, text=True
    )
    process.wait()
    result = campaign._result_of(campaign.Part("avx2", process, mark), seed=0)
    process.stdout.close()  # type: ignore[union-attr]
    ((_, call),) = calls(777, 1, seed=0)
    assert result.differing == 1
    assert result.differences[0].case == 777
    assert result.differences[0].text == f"{call.op}: the process ended with status -6"
    assert result.differences[0].code == source(call)


@pytest.mark.slow
def test_parts_add_up_to_the_whole_run(capsys):
    numbers = ["native", "--cases", "2200", "--first", "100", "--json"]
    assert main([*numbers, "--jobs", "2", "--threads", "1"]) == 0
    assert main(numbers) == 0
    out = capsys.readouterr().out
    two, one = (json.loads(part) for part in out.replace("]\n[", "]\0[").split("\0"))
    assert two[0]["tallies"] == one[0]["tallies"]
    assert sum(tally["cases"] for tally in one[0]["tallies"].values()) == 2200


def test_shrinking_keeps_calls_that_it_cannot_shorten():
    ((_, call),) = calls(5, 1, seed=0)
    from campaigns.native.shrink import shrink

    assert shrink(call, lambda other: other == call) == replace(call)
