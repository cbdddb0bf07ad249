"""Size traps: alignments that depend on sizes, each with a planned witness."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zerostride as zs
from zerostride.core.rules import RULES
from zerostride.derive.size_traps import Side, Trap, size_traps
from zerostride.engines import ENGINES
from zerostride.errors import Misfit, Reason

NUMPY = Side(RULES["numpy"])
NCNN = Side(ENGINES["ncnn"].elementwise["ncnn"], engine="ncnn")
PRELU = Side(ENGINES["openvino"].ops["prelu"]["pdpd"], engine="openvino", op="prelu")

Shapes = tuple[tuple[int, ...], ...]


@pytest.mark.parametrize(
    ("shapes", "witness"),
    [
        (((3, 5), (5,)), ((5, 5), (5,))),
        (((5,), (3, 5)), ((5,), (5, 5))),
        (((1, 5), (5,)), ((5, 5), (5,))),  # a batch of 1 is not always 1
        (((2, 3, 4), (4,)), ((4, 3, 4), (4,))),
        (((7, 2, 3, 4), (4,)), ((4, 2, 3, 4), (4,))),
    ],
)
def test_ncnn_vectors_that_agree_with_numpy_have_a_trap(shapes: Shapes, witness: Shapes) -> None:
    (trap,) = size_traps(NCNN, shapes)
    assert trap.shapes == witness
    assert trap.reference == zs.plan(*witness)
    assert trap.target == zs.plan(*witness, engine="ncnn")
    assert trap.reference != trap.target
    assert "axis 0 of x is as long as axis 0 of y" in trap.condition
    assert f"{witness[0]} and {witness[1]}" in str(trap)


@pytest.mark.parametrize(
    "shapes",
    [
        ((5, 5), (5,)),  # they differ already
        ((3, 5), (3,)),  # NumPy refuses
        ((3, 5), (3, 5)),
        ((2, 3, 4), (1,)),  # one element stretches wherever it lands
        ((1, 1), (1,)),
        ((), (3,)),
        ((3,), (3,)),
    ],
)
def test_other_shapes_have_no_trap(shapes: Shapes) -> None:
    assert size_traps(NCNN, shapes) == ()


def test_size_dependent_rule_may_be_the_reference() -> None:
    (trap,) = size_traps(NUMPY, ((3, 5), (5,)), NCNN)
    assert trap.shapes == ((5, 5), (5,))
    assert trap.reference.rule == "ncnn"


def test_prelu_slopes_that_also_fit_the_channel_have_a_trap() -> None:
    (trap,) = size_traps(PRELU, ((2, 3, 4), (4,)))
    assert trap.shapes == ((2, 4, 4), (4,))
    assert isinstance(trap.target, zs.Plan)
    assert trap.target.aligned[1] == (1, 4, 1)


def test_trap_uses_the_operands_names() -> None:
    (trap,) = size_traps(NCNN, ((3, 5), (5,)), names=["features", "bias"])
    assert str(trap).startswith("where axis 0 of features is as long as axis 0 of bias, ")


def test_trap_is_available_as_data() -> None:
    (trap,) = size_traps(NCNN, ((3, 5), (5,)))
    assert trap.as_dict() == {
        "condition": "where axis 0 of x is as long as axis 0 of y",
        "shapes": [[5, 5], [5]],
        "reference": [[5, 5], [1, 5]],
        "target": [[5, 5], [5, 1]],
        "words": str(trap),
    }


def test_silent_refusals_are_traps_and_loud_ones_are_not() -> None:
    # NumPy's rule, but refusing where ncnn would align otherwise.
    def align(asker, shapes, attributes):  # type: ignore[no-untyped-def]
        if asker.equal(shapes[0][0], shapes[1][0]):
            raise Misfit(Reason.AXIS_RANGE, "not here")
        return RULES["numpy"].align(asker, shapes, attributes)

    loud = replace(RULES["numpy"], align=align)
    silent = replace(loud, silent=frozenset({Reason.AXIS_RANGE}))
    assert size_traps(loud, ((3, 5), (5,))) == ()
    (trap,) = size_traps(silent, ((3, 5), (5,)))
    assert isinstance(trap.target, zs.BroadcastError)
    assert "silently wrong" in str(trap)
    assert trap.as_dict()["target"] is None


SIDES = [
    NUMPY,
    NCNN,
    PRELU,
    Side(RULES["pdpd"], {"axis": 1}),
    Side(RULES["paddle"], {"axis": 1}),
    Side(RULES["onnx6"], {"broadcast": 1}),
    Side(ENGINES["openvino"].elementwise["pdpd"], {"axis": 0}, engine="openvino"),
]

pairs = st.tuples(
    st.lists(st.integers(0, 4), max_size=4).map(tuple),
    st.lists(st.integers(0, 4), max_size=4).map(tuple),
)


@settings(max_examples=300, deadline=None)
@given(pairs, st.sampled_from(SIDES), st.sampled_from(SIDES))
def test_every_trap_is_real(shapes: Shapes, target: Side, reference: Side) -> None:
    for trap in size_traps(target, shapes, reference):
        assert target.plan(shapes) == reference.plan(shapes)
        assert trap.reference == reference.plan(trap.shapes)
        if isinstance(trap.target, zs.BroadcastError):
            assert trap.target.silent
        else:
            assert trap.target == target.plan(trap.shapes)
        assert trap.target != trap.reference
        assert tuple(map(len, trap.shapes)) == tuple(map(len, shapes))


def test_traps_of_numpy_and_ncnn_are_complete() -> None:
    """By brute force over sizes 1..3: a pair has a trap iff other sizes > 1 part the two rules."""
    ranks = [(1, 2), (2, 1), (1, 3), (2, 2), (2, 3)]
    for first, second in ranks:
        for a in itertools.product((2, 3), repeat=first):
            for b in itertools.product((2, 3), repeat=second):
                assert bool(size_traps(NCNN, (a, b))) == _parts_elsewhere(a, b), (a, b)


def _parts_elsewhere(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether ncnn agrees with NumPy here, and not at some other sizes of 2, 3 and 4."""

    def differ(x: tuple[int, ...], y: tuple[int, ...]) -> bool | None:
        try:
            meant = zs.plan(x, y)
        except zs.BroadcastError:
            return None
        try:
            return meant != zs.plan(x, y, engine="ncnn")
        except zs.BroadcastError as error:
            return error.silent

    if differ(a, b) is not False:
        return False
    elsewhere = itertools.product(
        itertools.product((2, 3, 4), repeat=len(a)), itertools.product((2, 3, 4), repeat=len(b))
    )
    return any(differ(x, y) for x, y in elsewhere)


def test_traps_are_values() -> None:
    first, second = (size_traps(NCNN, ((3, 5), (5,)))[0] for _ in range(2))
    assert isinstance(first, Trap)
    assert first == second
