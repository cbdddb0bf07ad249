"""Errors: texts, the caret's place, hints that work, and pickling."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import refused

import zerostride as zs
from zerostride.core.alignment import apply
from zerostride.core.rules import RULES
from zerostride.errors import (
    BroadcastError,
    Misfit,
    NotExpressible,
    Reason,
    column_end,
    columns,
    default_names,
    operand_names,
    printable,
)


def error_of_add(*arrays: Any) -> BroadcastError:
    with pytest.raises(BroadcastError) as caught:
        zs.add(*arrays)
    return caught.value


def error_to(*args: Any, **kwargs: Any) -> BroadcastError:
    with pytest.raises(BroadcastError) as caught:
        zs.plan_to(*args, **kwargs)
    return caught.value


DRAWINGS = {
    "the style's example": (
        lambda: refused((2, 3, 4, 5), (3, 5), rule="paddle", axis=1),
        "rule 'paddle' axis=1 cannot combine x and y\n"
        "  x  2 3 4 5\n"
        "  y  . 3 5 .\n"
        "         ^ result axis 2: 4 against 5, and neither is 1",
    ),
    "sizes of many digits": (
        lambda: refused((100, 1, 12345), (7, 1234)),
        "rule 'numpy' cannot combine x and y\n"
        "  x  100 1 12345\n"
        "  y    . 7  1234\n"
        "               ^ result axis 2: 12345 against 1234, and neither is 1",
    ),
    "a caret under the first axis": (
        lambda: refused((12, 3), (7, 3)),
        "rule 'numpy' cannot combine x and y\n"
        "  x  12 3\n"
        "  y   7 3\n"
        "      ^ result axis 0: 12 against 7, and neither is 1",
    ),
    "three operands": (
        lambda: refused((2, 3), (2, 3, 4), (5, 6)),
        "rule 'numpy' cannot combine x, y and z\n"
        "  x  . 2 3\n"
        "  y  2 3 4\n"
        "  z  . 5 6\n"
        "       ^ result axis 1: 2 against 3, and neither is 1",
    ),
    "rank 8": (
        lambda: refused((2, 1, 3, 1, 4, 1, 5, 60), (7, 5, 6)),
        "rule 'numpy' cannot combine x and y\n"
        "  x  2 1 3 1 4 1 5 60\n"
        "  y  . . . . . 7 5  6\n"
        "                    ^ result axis 7: 60 against 6, and neither is 1",
    ),
    "a target": (
        lambda: error_to((3, 4), (2, 4)),
        "rule 'unidirectional' cannot combine data and target\n"
        "  data    3 4\n"
        "  target  2 4\n"
        "          ^ result axis 0: 3 against 2, and neither is 1",
    ),
    "silent on the engine": (
        lambda: refused((3, 4), (2, 4), engine="ncnn"),
        "ncnn's rule 'ncnn' cannot combine x and y\n"
        "  x  3 4\n"
        "  y  2 4\n"
        "     ^ result axis 0: 3 against 2, and neither is 1\n"
        "  careful: the engine itself does not refuse; it computes nonsense or crashes",
    ),
    # Columns would claim an alignment that the rule never made.
    "never aligned": (
        lambda: refused((2, 3), (2, 3, 4), rule="pdpd"),
        "rule 'pdpd' cannot combine x and y\n"
        "  x  (2, 3)\n"
        "  y  (2, 3, 4)\n"
        "  the second operand has rank 3, more than the first's 2",
    ),
    "not a shape": (
        lambda: refused((2, None), 5),
        "rule 'numpy' cannot combine x and y\n"
        "  x  (2, None)\n"
        "  y  5\n"
        "  a size is a whole number, not None",
    ),
    "no shapes": (lambda: refused(), "rule 'numpy' refuses\n  0 shapes given"),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_error_is_drawn(name: str) -> None:
    make, text = DRAWINGS[name]
    assert str(make()).startswith(text)


def made(**fields: Any) -> BroadcastError:
    return BroadcastError("it does not fit", reason=Reason.EXTENT_MISMATCH, **fields)


def test_names_are_aligned_with_their_columns() -> None:
    refusal = made(
        rule="numpy", shapes=((20, 3), (4,)), rows=((20, 3), (None, 4)), axis=1, names=["mask", "b"]
    )
    assert str(refusal) == (
        "rule 'numpy' cannot combine mask and b\n"
        "  mask  20 3\n"
        "  b      . 4\n"
        "           ^ result axis 1: it does not fit"
    )


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b", "c", "d")])
def test_wrong_number_of_names_still_gives_an_error(names: tuple[str, ...]) -> None:
    for rows in ((), ((2, 3), (2, 4))):
        text = str(made(rule="numpy", shapes=((2, 3), (2, 4)), rows=rows, axis=1, names=names))
        assert text.splitlines()[1].split()[0] == (*names, "x")[0]
        assert "it does not fit" in text


def test_hostile_names_stay_on_their_line() -> None:
    text = str(made(shapes=((2,), (3,)), names=["a\nb", "\x1b[2J"]))
    assert len(text.splitlines()) == 4
    assert "\x1b" not in text
    assert printable("a\ud800") == "a\\ud800"


def test_long_malformed_shapes_are_cut() -> None:
    text = str(made(shapes=("z" * 10_000,)))
    assert max(map(len, text.splitlines())) < 300


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.integers(0, 10**9)), min_size=3, max_size=3),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 2),
)
def test_caret_is_under_the_last_digit(rows: list[list[int | None]], axis: int) -> None:
    names = default_names(len(rows))
    end = column_end(names, rows, axis)
    for line, row in zip(columns(names, rows), rows, strict=True):
        cell = "." if row[axis] is None else str(row[axis])
        assert line[: end + 1].endswith(cell)
        assert line[end + 1 : end + 2] in ("", " ")


def test_operands_have_default_names() -> None:
    assert default_names(6) == ("x", "y", "z", "w", "x4", "x5")
    assert operand_names(["a"], 3) == ("a", "y", "z")


# Hints.


def obey(hint: str, shapes: tuple[Any, ...], kwargs: dict[str, Any]) -> zs.Plan | None:
    """Does what a hint says; None where it proposes nothing that can be planned."""
    kwargs = {**kwargs}
    if match := re.fullmatch(r"reshape (x|y|data) to (\(.*\))", hint):
        changed = list(shapes)
        changed[match[1] == "y"] = ast.literal_eval(match[2])
        return apply_rule(tuple(changed), kwargs)
    if match := re.fullmatch(r"use (axis|axes_mapping)=(.*)", hint):
        return apply_rule(shapes, {**kwargs, match[1]: ast.literal_eval(match[2])})
    if match := re.fullmatch(r"set broadcast=1", hint):
        return apply_rule(shapes, {**kwargs, "broadcast": 1})
    if hint == "swap the operands":
        return apply_rule(shapes[::-1], kwargs)
    if match := re.fullmatch(r"leave out (\w+)( \(it is .*\))?", hint):
        del kwargs[match[1]]
        return apply_rule(shapes, kwargs)
    if match := re.fullmatch(r"rule '(\w+)'.* gives (\(.*\))", hint):
        plan = apply_rule(shapes, {**kwargs, "rule": match[1]})
        assert plan.shape == ast.literal_eval(match[2])
        return plan
    return None


def apply_rule(shapes: tuple[Any, ...], kwargs: dict[str, Any]) -> zs.Plan:
    attributes = {name: value for name, value in kwargs.items() if name != "rule"}
    return apply(RULES[kwargs["rule"]], shapes, attributes)


HINTS = {
    "reshape y to (3, 1)": lambda: refused((2, 3, 4), (3,)),
    "reshape data to (3, 1)": lambda: error_to((3,), (2, 3, 4)),
    "use axis=1": lambda: refused((2, 3, 4, 5), (3, 4), rule="pdpd", axis=0),
    "use axes_mapping=[1]": lambda: error_to((3,), (2, 3, 4), mode="explicit"),
    "set broadcast=1": lambda: refused((2, 3), (3,), rule="onnx6"),
    "swap the operands": lambda: refused((3,), (3, 4), rule="pdpd", axis=0),
    "use axis=2": lambda: refused((5, 5, 5), (5,), rule="pdpd", axis="2"),
    "leave out axis (it is -1 then)": lambda: refused((5, 5), (5,), rule="pdpd", axis="7"),
    "write a shape of one axis with a comma: (5,)": lambda: refused(5, 5),
    "an open size is a name such as 'N', or '?' for one without a name": lambda: refused(
        (5, None), (5,)
    ),
    "an open size is a name such as 'N', or '?' for one without a name ": lambda: refused(
        (5, "N+"), (5,)
    ),
    "write engine='ncnn'": lambda: refused((5, 5), (5,), "ncnn"),
    "write rule='pdpd'": lambda: refused((5, 5), (5,), "pdpd"),
    "name the array that receives the result: out=z": lambda: error_of_add(*[np.ones(3)] * 3),
    "leave out axis": lambda: refused((2, 3), (3,), axis=1),
}


@pytest.mark.parametrize("hint", HINTS)
def test_error_has_the_hint(hint: str) -> None:
    refusal, hint = HINTS[hint](), hint.strip()
    assert refusal.hint == hint
    assert f"\n  fix: {hint}" in str(refusal)


@settings(max_examples=400, deadline=None)
@given(
    shapes=st.tuples(*[st.lists(st.integers(0, 4), max_size=4).map(tuple)] * 2),
    name=st.sampled_from(sorted(RULES)),
    axis=st.one_of(st.none(), st.integers(-3, 4)),
)
def test_hinted_change_can_be_planned(
    shapes: tuple[tuple[int, ...], ...], name: str, axis: int | None
) -> None:
    kwargs: dict[str, Any] = {"rule": name, "axis": axis}
    if name == "explicit":
        kwargs = {"rule": name, "axes_mapping": [axis or 0] * len(shapes[0])}
    hint = _hint_of(shapes, kwargs)
    if hint is not None:
        obey(hint, shapes, kwargs)  # raises if the hint does not hold


def _hint_of(shapes: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    try:
        apply_rule(shapes, kwargs)
    except BroadcastError as found:
        text, hint = str(found), found.hint
    else:
        return None
    assert (hint is None) == ("fix: " not in text)
    return hint


def test_comparison_finds_a_wrong_hint() -> None:
    with pytest.raises(BroadcastError):
        obey("reshape y to (4, 1)", ((2, 3, 4), (3,)), {"rule": "numpy"})


def test_hint_is_computed_once_and_on_request() -> None:
    asked = []
    refusal = made(hint=lambda: asked.append(1) or "do this")  # type: ignore[func-returns-value]
    assert asked == []
    assert refusal.args == ("it does not fit",)
    assert "fix: do this" in str(refusal)
    assert refusal.hint == "do this"
    assert asked == [1]


# Travel.


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_errors_are_equal(protocol: int) -> None:
    refusal = refused((2, 3, 4, 5), (3, 5), engine="ncnn")
    again = pickle.loads(pickle.dumps(refusal, protocol))
    assert type(again) is BroadcastError
    assert str(again) == str(refusal)
    for field in ("detail", "reason", "rule", "shapes", "axis", "silent", "rows", "names", "hint"):
        assert getattr(again, field) == getattr(refusal, field)
    assert again.rule.engine == "ncnn"


def test_pickled_error_keeps_its_class() -> None:
    with pytest.raises(NotExpressible) as caught:
        zs.plan((5, 1), (5,)).express("none")
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is NotExpressible
    assert str(again) == str(caught.value)
    assert str(copy.copy(caught.value)) == str(caught.value)


def test_error_is_a_value_error_with_a_string_reason() -> None:
    refusal = refused((2,), (3,))
    assert isinstance(refusal, ValueError)
    assert refusal.reason == "extent_mismatch"
    assert refusal.rule == "numpy"


def test_users_never_see_a_misfit() -> None:
    for bad in ((2, -1), "23", 2**70, (2**70,), object(), {"a": 1}, [[1]], (True,)):
        with pytest.raises(BroadcastError) as caught:
            zs.plan(bad, (3,))
        assert not isinstance(caught.value, Misfit)
        assert caught.value.__cause__ is None
        assert str(caught.value)
