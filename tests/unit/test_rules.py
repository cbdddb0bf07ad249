"""The rules: alignments, refusals, and that they ask only two questions."""

from __future__ import annotations

import itertools
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import reason_of

import zerostride as zs
from zerostride.core.alignment import Rule, complete, resolve
from zerostride.core.rules import MODES, RULES, find_rule
from zerostride.engines import ENGINES
from zerostride.errors import Misfit, Reason
from zerostride.sizes import Answer, Asker, Undecided

Shape = tuple[int, ...]
ELEMENTWISE = [name for name, rule in RULES.items() if not rule.to_target]


# The table.


def test_table_has_the_public_names() -> None:
    public = {
        *("none", "numpy", "unidirectional", "bidirectional", "explicit"),
        *("pdpd", "paddle", "ncnn", "mnn", "onnx6"),
    }
    assert public <= set(RULES)
    for name, rule in RULES.items():
        assert rule.name == name
        assert rule.summary.endswith(".")
        assert rule.source


def test_find_rule_knows_names_and_modes() -> None:
    assert find_rule("numpy", to_target=False) is RULES["numpy"]
    assert find_rule("numpy", to_target=True) is RULES["unidirectional"]
    assert {find_rule(mode, to_target=True).name for mode in MODES} == set(MODES.values())
    for name, to_target in (("pdpd", True), ("explicit", False), ("x", False), (None, True)):
        with pytest.raises(zs.BroadcastError) as caught:
            find_rule(name, to_target=to_target)
        assert caught.value.reason == "unknown_rule"
        assert "explicit" in str(caught.value.hint) or "pdpd" in str(caught.value.hint)


def test_whdc_reverses_the_order() -> None:
    assert zs.whdc([2, 3, 4, 5]) == (5, 4, 3, 2)
    assert zs.whdc(zs.whdc((2, 3))) == (2, 3)
    assert zs.whdc(()) == ()


# none and numpy.


def test_none_needs_identical_shapes_of_any_number() -> None:
    assert zs.plan((2, 3), (2, 3), (2, 3), rule="none").stretched == ((), (), ())
    assert zs.plan((0, 1), (0, 1), rule="none").shape == (0, 1)
    assert zs.plan((), (), rule="none").shape == ()
    for other in ((3,), (1, 3), (2, 1), (1, 2, 3), (2, 0)):
        assert reason_of((2, 3), (2, 3), other, rule="none") == "not_identical"


extents = st.sampled_from((0, 1, 1, 2, 3))
shapes_of_any_number = st.lists(st.lists(extents, max_size=5).map(tuple), min_size=1, max_size=6)


@st.composite
def compatible_shapes(draw: st.DrawFn) -> list[Shape]:
    """Shapes that broadcast, made by blanking out axes of one result."""
    result = draw(st.lists(st.sampled_from((0, 2, 3, 1)), max_size=5))
    shapes = []
    for _ in range(draw(st.integers(1, 6))):
        own = [draw(st.sampled_from((size, size, 1))) for size in result]
        shapes.append(tuple(own[draw(st.integers(0, len(own))) :]))
    return shapes


@given(shapes=shapes_of_any_number | compatible_shapes())
@settings(max_examples=400, deadline=None)
def test_numpy_rule_matches_numpy(shapes: list[Shape]) -> None:
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        assert reason_of(*shapes) == "extent_mismatch"
        return
    plan = zs.plan(*shapes)
    assert plan.shape == expected
    assert plan.operands == tuple(shapes)
    arrays = [np.arange(int(np.prod(shape))).reshape(shape) for shape in shapes]
    for k, (view, array) in enumerate(zip(plan.views(*arrays), arrays, strict=True)):
        assert np.array_equal(view, np.broadcast_to(array, expected))
        assert np.array_equal(view, np.broadcast_to(array.reshape(plan.aligned[k]), plan.shape))


@given(pair=st.tuples(st.lists(extents, max_size=5), st.lists(extents, max_size=5)))
@settings(max_examples=300, deadline=None)
def test_unidirectional_matches_broadcast_to(pair: tuple[list[int], list[int]]) -> None:
    data, target = pair
    array = np.arange(int(np.prod(data))).reshape(data)
    try:
        expected = np.broadcast_to(array, target)
    except ValueError:
        with pytest.raises(zs.BroadcastError) as caught:
            zs.plan_to(data, target)
        assert caught.value.reason in ("rank", "one_way", "extent_mismatch")
        return
    plan = zs.plan_to(data, target)
    assert plan.shape == tuple(target)
    assert np.array_equal(plan.views(array)[0], expected)


@given(pair=st.tuples(st.lists(extents, max_size=5), st.lists(extents, max_size=5)))
@settings(max_examples=300, deadline=None)
def test_bidirectional_matches_multiplying_by_ones(pair: tuple[list[int], list[int]]) -> None:
    data, target = pair
    array = np.arange(int(np.prod(data))).reshape(data)
    try:
        expected = array * np.ones(target, dtype=int)
    except ValueError:
        with pytest.raises(zs.BroadcastError, match="neither is 1"):
            zs.plan_to(data, target, mode="bidirectional")
        return
    plan = zs.plan_to(data, target, mode="bidirectional")
    assert plan.shape == expected.shape
    assert np.array_equal(plan.views(array)[0], expected)


def test_rank_limits_are_checked() -> None:
    assert zs.plan((1,) * 64, (2,)).rank == 64
    assert reason_of((1,) * 65, (2,)) == "rank_limit"
    assert zs.plan((1,) * 4, (2,), rule="ncnn").rank == 4
    assert reason_of((1,) * 5, (2,), rule="ncnn") == "rank_limit"
    assert zs.plan((1,) * 6, (2,), (3, 1), rule="mnn").shape == (1, 1, 1, 1, 3, 2)
    assert reason_of((1,) * 7, (2,), rule="mnn") == "rank_limit"


def test_size_limits_are_checked() -> None:
    most = 2**63 - 1
    assert zs.plan((most,), (1,)).shape == (most,)
    assert zs.plan((2**31, 1), (2**31,)).shape == (2**31, 2**31)
    assert reason_of((2**62, 1), (2,)) == "too_large"
    assert reason_of((2**63,), (1,)) == "bad_extent"


@pytest.mark.parametrize("size", [-1, 2.0, True, None, float("inf"), np.float64(2), np.True_])
@pytest.mark.parametrize("rule", ELEMENTWISE)
def test_malformed_sizes_are_refused_by_every_rule(rule: str, size: Any) -> None:
    asked = {"broadcast": 1} if rule == "onnx6" else {}
    assert zs.plan((2, 2), (2,) if rule != "none" else (2, 2), rule=rule, **asked).shape == (2, 2)
    for shapes in (((2, size), (2,)), ((2, 2), (size,)), ((2, 2), size)):
        assert reason_of(*shapes, rule=rule, **asked) == "bad_extent"


@pytest.mark.parametrize("rule", ELEMENTWISE)
def test_operand_counts_are_checked(rule: str) -> None:
    any_number = rule in ("none", "numpy", "mnn")
    assert reason_of(rule=rule) == "operand_count"
    if any_number:
        assert zs.plan((2,), rule=rule).shape == (2,)
        assert len(zs.plan(*[(2,)] * 40, rule=rule).operands) == 40
    else:
        assert reason_of((2,), rule=rule) == "operand_count"
        assert reason_of((2,), (2,), (2,), rule=rule) == "operand_count"


# Attributes.


@pytest.mark.parametrize("rule", [rule for rule in ELEMENTWISE if rule not in ("pdpd", "paddle")])
def test_axis_is_refused_by_rules_without_one(rule: str) -> None:
    assert reason_of((2, 3), (2, 3), rule=rule, axis=0) == "attribute"


@pytest.mark.parametrize("rule", [rule for rule in ELEMENTWISE if rule != "onnx6"])
def test_broadcast_attribute_is_only_onnx6s(rule: str) -> None:
    assert reason_of((2, 3), (2, 3), rule=rule, broadcast=1) == "attribute"


@pytest.mark.parametrize("axis", [True, False, 1.0, "1", (1,), [1], np.True_, np.float32(1), b"1"])
@pytest.mark.parametrize("rule", ["pdpd", "paddle", "onnx6"])
def test_malformed_axis_is_refused(rule: str, axis: Any) -> None:
    asked = {"broadcast": 1} if rule == "onnx6" else {}
    assert reason_of((2, 3), (3,), rule=rule, axis=axis, **asked) == "attribute"
    assert zs.plan((2, 3), (3,), rule=rule, axis=np.int16(1), **asked).shape == (2, 3)


@pytest.mark.parametrize(
    "mapping", ["1", "", b"\x01", 1, [1.0], [True], [None], [[1]], {1}, {1: 2}]
)
def test_malformed_axes_mapping_is_refused(mapping: Any) -> None:
    for data in ((16,), ()):
        with pytest.raises(zs.BroadcastError) as caught:
            zs.plan_to(data, (1, 16), mode="explicit", axes_mapping=mapping)
        assert caught.value.reason == "attribute"


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ([], "attribute"),
        ([0], "attribute"),
        ([0, 1, 2], "attribute"),
        ([0, 3], "axis_range"),
        ([-1, 2], "axis_range"),
        ([1, 1], "duplicate_axes"),
        ([2, 1], "transposes"),
        ([0, 1], "extent_mismatch"),
        (None, "attribute"),
    ],
)
def test_explicit_refuses_wrong_mappings(axes: list[int] | None, reason: str) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_to((3, 4), (2, 3, 4), mode="explicit", axes_mapping=axes)
    assert caught.value.reason == reason


def test_explicit_takes_any_sequence_of_integers() -> None:
    for axes in ([1, 2], (1, 2), np.array([1, 2]), range(1, 3)):
        p = zs.plan_to((3, 4), (2, 3, 4), mode="explicit", axes_mapping=axes)
        assert p.axes_mapping == ((1, 2),)


@pytest.mark.parametrize("mode", [None, "numpy", "bidirectional"])
def test_axes_mapping_is_only_explicits(mode: str | None) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_to((16,), (1, 16), mode=mode, axes_mapping=[1])
    assert caught.value.reason == "attribute"


# pdpd, paddle, ncnn, onnx6.


def test_pdpd_stretches_only_b_and_also_to_zero() -> None:
    assert zs.plan((2, 0), (1,), rule="pdpd").stretched == ((), (0, 1))
    assert reason_of((2, 1), (0,), rule="pdpd") == "one_way"
    assert reason_of((2, 1), (2, 3), rule="pdpd") == "one_way"
    assert reason_of((2, 3), (0,), rule="pdpd") == "extent_mismatch"
    assert reason_of((3,), (2, 3), rule="pdpd") == "rank"
    assert reason_of((2, 3), (3,), rule="pdpd", axis=2) == "overrun"
    assert reason_of((2, 3), (3,), rule="pdpd", axis=-2) == "axis_range"
    assert reason_of((2, 3), (3,), rule="pdpd", axis=10**30) == "overrun"


def test_pdpd_trims_trailing_ones_before_checking_the_end_of_b() -> None:
    p = zs.plan((2, 3), (3, 1), rule="pdpd", axis=1)
    assert p.axes_mapping[1] == (1, None)
    assert zs.plan((2, 3), (1, 1), rule="pdpd", axis=2).aligned[1] == (1, 1)
    # The default is the difference of the ranks as they are written.
    assert zs.plan((2, 2), (2, 1), rule="pdpd").aligned[1] == (2, 1)


def test_paddle_allows_either_operand_to_be_small_and_both_to_stretch() -> None:
    p = zs.plan((8, 1, 6, 1), (7, 1, 5), rule="paddle", axis=1)
    assert p.shape == (8, 7, 6, 5)
    q = zs.plan((7, 1, 5), (8, 1, 6, 1), rule="paddle", axis=1)
    assert q.aligned == p.aligned[::-1]
    assert zs.plan((2, 3, 4), (2, 3), rule="paddle", axis=-2).axes_mapping[1] == (0, 1)
    assert zs.plan((2, 3), (2, 3), rule="paddle", axis=77).shape == (2, 3)
    assert reason_of((2, 3), (2, 1), rule="paddle", axis=1) == "axis_range"
    assert reason_of((2, 3), (3,), rule="paddle", axis=2) == "axis_range"
    assert reason_of((2, 3), (3,), rule="paddle", axis=-3) == "axis_range"
    assert reason_of((2, 3, 4), (3, 4), rule="paddle", axis=2) == "overrun"


def test_ncnn_depends_on_sizes() -> None:
    assert zs.plan((3, 5), (5,), rule="ncnn") == zs.plan((3, 5), (5,))
    assert zs.plan((5, 5), (5,), rule="ncnn") != zs.plan((5, 5), (5,))
    assert zs.plan((2, 3, 4), (2, 3), rule="ncnn").axes_mapping[1] == (0, 1)
    assert zs.plan((), (), rule="ncnn").shape == (1,)
    assert zs.plan((1, 3), (2, 1), rule="ncnn").shape == (2, 3)


def test_onnx6_needs_broadcast_and_an_equal_run() -> None:
    def legacy(a: Shape, b: Shape, **asked: Any) -> zs.Plan:
        return zs.plan(a, b, rule="onnx6", broadcast=1, **asked)

    assert reason_of((2, 3), (3,), rule="onnx6") == "not_identical"
    assert reason_of((2, 3), (3,), rule="onnx6", broadcast=0) == "not_identical"
    assert zs.plan((2, 3), (2, 3), rule="onnx6").shape == (2, 3)
    assert legacy((2, 3, 4, 5), (3, 4), axis=1).aligned[1] == (1, 3, 4, 1)
    assert legacy((2, 3, 4, 5), (4, 5)).aligned[1] == (1, 1, 4, 5)
    assert legacy((2, 3), (1, 1)).aligned[1] == (1, 1)
    assert legacy((2, 3), ()).stretched == ((), (0, 1))
    asked = {"rule": "onnx6", "broadcast": 1}
    assert reason_of((2, 3, 4), (1, 4), **asked) == "not_identical"
    assert reason_of((2, 3), (3,), axis=-1, **asked) == "axis_range"
    assert reason_of((2, 3), (3,), axis=2, **asked) == "overrun"
    assert reason_of((3,), (2, 3), **asked) == "rank"
    for bad in (2, -1, True, "1", 1.0):
        assert reason_of((2, 3), (3,), rule="onnx6", broadcast=bad) == "attribute"


# Rules ask only two questions.


class Opaque:
    """A size that knows its value, and answers nothing but the two questions.

    It may be printed, because refusals are put into words; that tells nothing.
    """

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: int) -> None:
        self._value = value

    def equal_to(self, other: Any) -> Answer:
        return Answer(int(self._value == (other._value if isinstance(other, Opaque) else other)))

    def is_one(self) -> Answer:
        return Answer(int(self._value == 1))

    def __repr__(self) -> str:
        return "?"

    def _not_asked(self, *_: Any) -> NoReturn:
        raise AssertionError("a rule asked a size something else")

    for _name in (
        *("eq", "ne", "lt", "le", "gt", "ge", "add", "radd", "sub", "rsub", "mul", "rmul", "mod"),
        *("floordiv", "truediv", "neg", "abs", "int", "index", "bool", "float", "len", "iter"),
        *("rmod", "rfloordiv", "divmod", "pow"),
    ):
        locals()[f"__{_name}__"] = _not_asked
    del _name


class Unknown(Opaque):
    """A size that cannot answer."""

    __slots__ = ()

    def equal_to(self, other: Any) -> Answer:
        return Answer.UNKNOWN

    def is_one(self) -> Answer:
        return Answer.UNKNOWN


def engine_rules() -> list[tuple[str, Rule]]:
    entries = []
    for engine in ENGINES.values():
        for rules in (engine.elementwise, engine.to_target, *engine.ops.values()):
            entries += [(f"{engine.name}-{name}", rule) for name, rule in rules.items()]
    return entries


EVERY_RULE = [*RULES.items(), *engine_rules()]
#: One of each align function.
ALIGNS = list({rule.align: (name, rule) for name, rule in reversed(EVERY_RULE)}.values())


def attribute_choices(rule: Rule, rank: int, width: int) -> list[dict[str, Any]]:
    if "axes_mapping" in rule.attributes:
        return [{"axes_mapping": axes} for axes in itertools.combinations(range(rank), width)]
    choices: list[dict[str, Any]] = [{}]
    if "axis" in rule.attributes:
        choices += [{"axis": axis} for axis in range(-2, rank + 1)]
    if "broadcast" in rule.attributes:
        choices = [{**choice, "broadcast": flag} for choice in choices for flag in (0, 1)]
    return choices


def answer(rule: Rule, shapes: Any, attributes: Any) -> Any:
    """Where things land and what the result's sizes are; or why not, and on which axis."""
    asker = Asker()
    try:
        alignment = rule.align(asker, shapes, complete(rule, attributes))
        sizes = resolve(asker, shapes, alignment, rule)
    except Misfit as misfit:
        return misfit.reason, misfit.axis
    plain = [size._value if isinstance(size, Opaque) else size for size in sizes]
    return alignment.rank, alignment.mapping, plain


@pytest.mark.parametrize(("name", "rule"), ALIGNS, ids=lambda value: str(value)[:24])
def test_rules_ask_only_two_questions(name: str, rule: Rule) -> None:
    shapes = [s for rank in range(4) for s in itertools.product((0, 1, 2), repeat=rank)]
    checked = accepted = 0
    for a, b in itertools.product(shapes, shapes[:13] + shapes[20::5]):
        if rule.to_target and len(b) < len(a):
            continue
        for attributes in attribute_choices(rule, max(len(a), len(b)), len(a)):
            wanted = answer(rule, (a, b), attributes)
            opaque = tuple(tuple(map(Opaque, shape)) for shape in (a, b))
            got = answer(rule, opaque, attributes)
            checked += 1
            accepted += isinstance(wanted[0], int)
            assert got == wanted, (a, b, attributes)
    assert checked > 100
    assert 10 < accepted < checked


@pytest.mark.parametrize(("name", "rule"), ALIGNS, ids=lambda value: str(value)[:24])
def test_unknown_answer_is_not_guessed(name: str, rule: Rule) -> None:
    """It may be refused, because ranks are known, but is never taken for a plan."""
    undecided = 0
    for ranks in ((2, 2), (2, 1), (1, 1)):
        shapes = tuple(tuple(Unknown(2 + k) for k in range(rank)) for rank in ranks)
        axes = {"axes_mapping": tuple(range(ranks[0]))} if "axes_mapping" in rule.attributes else {}
        try:
            refused, _ = answer(rule, shapes, axes)
        except Undecided:
            undecided += 1
            continue
        assert isinstance(refused, Reason), ranks
    assert undecided


def test_opaque_sizes_catch_a_rule_that_reads_numbers() -> None:
    def peeking(asker: Asker, shapes: Any, _: Any) -> Any:
        return RULES["numpy"].align(asker, shapes, {}) if shapes[0][0] > 1 else None

    with pytest.raises(AssertionError, match="something else"):
        peeking(Asker(), ((Opaque(2),), (Opaque(2),)), {})


def test_every_reason_is_a_plain_string() -> None:
    assert all(reason == reason.value and isinstance(reason, str) for reason in Reason)
