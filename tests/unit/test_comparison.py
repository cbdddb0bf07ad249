"""The table of rules and engines."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zerostride as zs
from sampled import few
from zerostride.core.rules import RULES
from zerostride.derive.comparison import Compared, Comparison
from zerostride.derive.samples import one_sample
from zerostride.engines import ENGINES
from zerostride.ops import OPS


def row(comparison: Comparison, kind: str, name: str, rule: str | None = None) -> Compared:
    (one,) = (
        r for r in comparison.rows if (r.kind, r.name) == (kind, name) and rule in (None, r.rule)
    )
    return one


def test_every_rule_and_every_engines_rule_has_a_row() -> None:
    comparison = zs.compare((2, 3), (3,))
    rules = [r.rule for r in comparison.rows if r.kind == "rule"]
    assert rules == [rule.name for rule in RULES.values() if not rule.to_target]
    engines = [(r.name, r.rule) for r in comparison.rows if r.kind == "engine"]
    assert engines == [
        (engine.name, rule) for engine in ENGINES.values() for rule in engine.elementwise
    ]
    assert row(comparison, "engine", "ncnn").release == ENGINES["ncnn"].release


@pytest.mark.parametrize(
    ("shapes", "verdict"),
    [
        # Tencent/ncnn#3924 and #2837: a vector along a square's rows.
        (((5, 5), (5,)), "different"),
        (((3, 5), (5,)), "same_here"),
        (((2, 3, 4), (2, 3, 4)), "same"),
        # Tencent/ncnn#4803: the shapes one would write in NumPy are left-aligned there.
        (((3, 3, 4), (3, 4)), "refused"),
        (((2, 3, 4), (4, 1, 1)), "refused"),
    ],
)
def test_ncnn_row_has_the_verdict(shapes: tuple[tuple[int, ...], ...], verdict: str) -> None:
    one = row(zs.compare(*shapes), "engine", "ncnn")
    assert one.verdict == verdict
    assert one.silent == (verdict in ("different", "refused"))


def test_silent_difference_is_marked() -> None:
    lines = str(zs.compare((5, 5), (5,))).splitlines()
    (marked,) = (line for line in lines if " ncnn  " in line and "engine" in line)
    assert marked.startswith("!  engine  ncnn")
    assert marked.endswith("different")
    assert "(5, 5) (5, 1)" in marked
    assert any(line.startswith("  ! silent:") for line in lines)


def test_nonsense_is_not_called_a_refusal() -> None:
    text = str(zs.compare((2, 3, 4), (3, 4)))
    (line,) = (line for line in text.splitlines() if " engine  ncnn" in line)
    assert "nonsense: 2 against 3" in line
    (line,) = (line for line in text.splitlines() if "openvino none" in line)
    assert "refused: " in line
    assert line.startswith(" ")


def test_size_trap_is_marked_and_explained_once() -> None:
    text = str(zs.compare((3, 5), (5,)))
    assert "\n~  rule    ncnn" in text
    assert text.count("for example (5, 5) and (5,)") == 1


def test_columns_are_aligned() -> None:
    lines = str(zs.compare((2, 3, 4, 5), (3, 4), axis=1)).splitlines()
    heading = lines[2]
    for word, cell in (("kind", "rule"), ("meaning", "refused")):
        (numpy,) = (line for line in lines if line.strip().startswith("rule    numpy"))
        assert numpy.index(cell) == heading.index(word)


def test_axis_is_passed_to_rules_that_have_one() -> None:
    comparison = zs.compare((2, 3, 4, 5), (3, 4), reference="pdpd", axis=1)
    assert comparison.reference.rule == "pdpd"
    same = {(r.name, r.rule) for r in comparison.rows if r.verdict == "same"}
    assert same == {
        ("pdpd", "pdpd"),
        ("paddle", "paddle"),
        ("onnx6", "onnx6"),
        ("openvino", "pdpd"),
    }
    assert row(comparison, "rule", "pdpd").attributes == {"axis": 1}
    assert row(comparison, "rule", "numpy").attributes == {}


def test_engine_may_be_the_reference() -> None:
    comparison = zs.compare((5, 5), (5,), reference="ncnn")
    assert row(comparison, "rule", "ncnn").verdict == "same"
    assert row(comparison, "rule", "numpy").verdict == "different"
    assert zs.compare((2, 3), (3,), reference="torch").reference.kind == "engine"


def test_reference_may_refuse() -> None:
    comparison = zs.compare((3, 5), (3,))
    assert comparison.reference.verdict == "refused"
    assert row(comparison, "rule", "ncnn").verdict == "only_here"
    assert "only here" in str(comparison)


def test_json_is_complete() -> None:
    comparison = zs.compare((3, 5), (5,))
    data = json.loads(comparison.to_json())
    assert data == comparison.as_dict()
    assert data["shapes"] == [[3, 5], [5]]
    assert len(data["rows"]) == len(comparison.rows)
    ncnn = next(r for r in data["rows"] if r["kind"] == "engine" and r["name"] == "ncnn")
    assert ncnn["verdict"] == "same_here"
    assert ncnn["plan"]["aligned"] == [[3, 5], [1, 5]]
    assert ncnn["traps"][0]["shapes"] == [[5, 5], [5]]
    none = next(r for r in data["rows"] if r["rule"] == "none")
    assert none["plan"] is None
    assert none["refusal"]["reason"] == "not_identical"


@pytest.mark.parametrize(
    ("args", "kwargs", "reason"),
    [
        (((2, -1), (3,)), {}, "bad_extent"),
        (((2, 3.5),), {}, "bad_extent"),
        ((5, (5,)), {}, "bad_extent"),
        ((), {}, "operand_count"),
        (((2,), (2,)), {"reference": "nunpy"}, "unknown_rule"),
        (((2,), (2,)), {"reference": "explicit"}, "unknown_rule"),
        (((2,), (2,)), {"axis": "one"}, "attribute"),
        (((2,), (2,)), {"axis": True}, "attribute"),
    ],
)
def test_bad_input_is_refused(
    args: tuple[object, ...], kwargs: dict[str, object], reason: str
) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.compare(*args, **kwargs)  # type: ignore[arg-type]
    assert caught.value.reason == reason
    assert str(caught.value)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 4), max_size=5), min_size=1, max_size=3),
    st.sampled_from([None, -1, 0, 1]),
)
def test_any_shapes_give_a_table(shapes: list[list[int]], axis: int | None) -> None:
    comparison = zs.compare(*shapes, axis=axis)
    assert str(comparison)
    assert json.loads(comparison.to_json()) == comparison.as_dict()
    for one in comparison.rows:
        if one.verdict in ("same", "same_here"):
            assert one.answer == comparison.reference.answer
            assert bool(one.traps) == (one.verdict == "same_here")


def test_engine_of_samples_is_asked_without_the_batch() -> None:
    shapes = ((1, 16, 8, 8), (16, 1, 1))
    plain, told = zs.compare(*shapes), zs.compare(*shapes, batch_axis=0)
    for before, after in zip(plain.rows, told.rows, strict=True):
        if (before.kind, before.name) == ("engine", "ncnn"):
            assert (before.verdict, after.verdict) == ("different", "same")
            assert "(16, 8, 8) and (16, 1, 1)" in after.notes[0]
        else:
            assert before.as_dict() == after.as_dict()
    with pytest.raises(zs.BroadcastError, match="batch axis 4"):
        zs.compare(*shapes, batch_axis=4)


@pytest.mark.parametrize(
    ("shapes", "axis", "left"),
    [
        (((2, 3, 4), (3, 4)), 0, ((3, 4), (3, 4))),
        (((2, 3, 4), (1, 3, 1)), 0, ((3, 4), (3, 1))),
        (((3, 2, 4), (2, 4), (4,), ()), 1, ((3, 4), (4,), (4,), ())),
        (((2, 3), (3,)), 1, ((2,), ())),
    ],
)
def test_one_sample_removes_the_batch_axis(shapes: Any, axis: int, left: Any) -> None:
    assert one_sample(shapes, axis) == left


def test_a_sample_is_not_stretched_along_the_batch() -> None:
    shapes = (1, 64, 8, 8), (64, 1, 1, 1)
    with pytest.raises(zs.BroadcastError, match="operand 0 has one sample along axis 0"):
        one_sample(shapes, 0)
    rows = {row.name: row for row in zs.compare(*shapes, batch_axis=0).rows}
    assert (rows["ncnn"].verdict, rows["ncnn"].silent) == ("refused", True)
    assert rows["torch"].verdict == "same"


@pytest.mark.parametrize("op", few(3, [op.name for op in OPS.values() if op.tensors == 2]))
def test_an_op_is_asked_as_plan_asks_it(op: str) -> None:
    for shapes in (((2, 3), (3,)), ((2, 3, 4), (3,)), ((5, 5), (5,)), ((3,), (2, 3))):
        first: dict[str, Compared] = {}
        for row in zs.compare(*shapes, op=op).rows:
            if row.kind == "engine":
                first.setdefault(row.name, row)
        for name, row in first.items():
            if isinstance(row.answer, zs.BroadcastError):
                with pytest.raises(zs.BroadcastError) as refused:
                    zs.plan(*shapes, engine=name, op=op)
                assert row.answer.detail == refused.value.detail, (name, shapes)
            else:
                assert row.answer == zs.plan(*shapes, engine=name, op=op), (name, shapes)


def test_an_op_that_engines_lack_or_that_was_not_read_is_said() -> None:
    rows = {row.name: row for row in zs.compare((2, 3, 4), (3,), op="prelu").rows}
    assert rows["openvino"].verdict == "only_here"
    assert rows["mlx"].verdict == "refused"
    assert "has no op for prelu" in rows["mlx"].answer.detail
    assert rows["tensorrt"].verdict == "unknown"
    assert "nothing was read about prelu" in rows["tensorrt"].answer.detail


def test_an_element_type_that_an_op_does_not_take_is_refused() -> None:
    rows = {row.name: row for row in zs.compare((2, 3), (3,), op="pow", dtype="uint8").rows}
    assert rows["tensorflow"].verdict == "refused"
    assert rows["numpy"].verdict == "same"
    rows = {row.name: row for row in zs.compare(("N", 3), (3,), op="pow", dtype="uint8").rows}
    assert rows["tensorflow"].verdict == "refused"
    with pytest.raises(zs.BroadcastError, match="no op 'nix'"):
        zs.compare((2, 3), (3,), op="nix")
    with pytest.raises(zs.BroadcastError, match="no dtype 'nix'"):
        zs.compare((2, 3), (3,), dtype="nix")


@pytest.mark.parametrize("op", ["expand", "Broadcast", "broadcast_to"])
def test_an_op_that_broadcasts_to_a_target_is_no_elementwise_op(op: str) -> None:
    for engine in (None, "tract"):
        with pytest.raises(zs.BroadcastError, match=f"no op '{op}'") as caught:
            zs.compare((2, 3), (3,), op=op, engine=engine)
        assert "plan_to" in str(caught.value)


def test_a_rank_that_depends_on_sizes_is_judged_by_size() -> None:
    table = zs.compare(("H", "N"), ("W", 2, 1, 1), engine="keras-tensorflow", op="add")
    (row,) = table.rows
    assert (row.verdict, row.needs_sizes) == ("same_here", True)
    assert [str(part.when) for part in row.parts] == ["W == 1 and N == 2"]
    assert "same here: the result has 2 or 4 axes" in str(table)
    assert "different when W == 1 and N == 2" in str(table)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ((("N", "C", "H", "W"), ("C", 1, 1)), "C != 1 and C == W"),
        (((1, 1, "H", "C", "H", "C"), ("C", 1, "N", "W")), "C != 1 and N == 1 and W == 1"),
    ],
)
def test_a_condition_names_only_what_decides(shapes: Any, words: str) -> None:
    (row,) = zs.compare(*shapes, engine="keras-tensorflow", op="add").rows
    assert [str(part.when) for part in row.parts] == [words]


@pytest.mark.parametrize("engine", few(8, ENGINES))
def test_open_sizes_are_judged_as_their_numbers_are(engine: str) -> None:
    rng = random.Random(engine)
    for _ in range(6):
        op = rng.choice([None, "add", "prelu", "floor_divide", "equal"])
        shapes = [
            tuple(rng.choice(["N", "C", "W", 1, 1, 2, 3]) for _ in range(rng.randint(0, 4)))
            for _ in "xy"
        ]
        table = zs.compare(*shapes, engine=engine, op=op)
        for _ in range(4):
            values = {name: rng.choice([1, 1, 2, 3]) for name in "NCW"}
            known = [tuple(values.get(size, size) for size in shape) for shape in shapes]
            numbers = zs.compare(*known, engine=engine, op=op)
            if numbers.reference.verdict == "refused":
                continue  # the reference has no meaning to compare with
            for row, other in zip(table.rows, numbers.rows, strict=True):
                assert _kind_at(row, values) == _kind(other), (shapes, values, str(table))


def _kind(row: Compared) -> str:
    return "same" if row.verdict == "same_here" else row.verdict


def _kind_at(row: Compared, values: dict[str, int]) -> str:
    """The verdict of open sizes at some of their values."""
    for part in row.parts:
        if part.when.evaluate({symbol: values[symbol.name] for symbol in part.when.symbols}):
            return "refused" if part.kind == "silent" else part.kind
    return "same" if row.parts else _kind(row)
