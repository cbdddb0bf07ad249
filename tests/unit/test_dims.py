"""Sizes: accepted values, and the two questions."""

from __future__ import annotations

import enum
import itertools
from typing import Any

import numpy as np
import pytest

from zerostride.errors import Misfit, Reason
from zerostride.sizes import (
    MAX_ELEMENTS,
    MAX_RANK,
    Answer,
    Asker,
    Undecided,
    as_shape,
    check_elements,
    elements,
    equal,
    is_one,
    whole_numbers,
)


class Three(enum.IntEnum):
    THREE = 3


class Open:
    """A size that answers nothing."""

    def equal_to(self, other: Any) -> Answer:
        return Answer.UNKNOWN

    def is_one(self) -> Answer:
        return Answer.UNKNOWN


@pytest.mark.parametrize(
    "shape",
    [
        (2, 3),
        [2, 3],
        range(2, 4),
        np.array([2, 3]),
        np.array([2, 3], np.uint8),
        (np.int8(2), np.uint64(3)),
        (2, Three.THREE),
    ],
    ids=repr,
)
def test_integers_become_plain_ints(shape: Any) -> None:
    sizes = as_shape(shape)
    assert sizes == (2, 3)
    assert type(sizes) is tuple
    assert [type(size) for size in sizes] == [int, int]


@pytest.mark.parametrize(
    "shape",
    [
        5,
        None,
        "23",
        "",
        b"\x02\x03",
        bytearray(b"\x02"),
        {2, 3},
        frozenset(),
        {2: 3},
        iter((2, 3)),
        (size for size in (2, 3)),
        np.array(5),
        (2.0,),
        (True,),
        (np.True_,),
        ("2",),
        (None,),
        (float("nan"),),
        (-1,),
        (np.int64(-3),),
        (2**63,),
        (10**40,),
        ((2,),),
        np.array([[2], [3]]),
        np.array([2.0]),
    ],
    ids=lambda shape: type(shape).__name__ + repr(shape)[:24],
)
def test_other_values_are_refused(shape: Any) -> None:
    with pytest.raises(Misfit) as caught:
        as_shape(shape)
    assert caught.value.reason is Reason.BAD_EXTENT
    assert len(caught.value.detail) < 100


def test_limits_are_inclusive() -> None:
    assert as_shape((MAX_ELEMENTS,)) == (2**63 - 1,)
    assert len(as_shape((1,) * MAX_RANK)) == 64
    with pytest.raises(Misfit) as caught:
        as_shape((1,) * 65)
    assert caught.value.reason is Reason.RANK_LIMIT


def test_element_count_is_limited_by_the_index() -> None:
    assert elements((2, 3, 4)) == 24
    assert elements((0, 2**63 - 1)) == 0
    check_elements((2**31, 2**31))
    for shape in ((2**62, 2), (2**62, 0, 2), (2**32, 2**32)):
        with pytest.raises(Misfit) as caught:
            check_elements(shape)
        assert caught.value.reason is Reason.TOO_LARGE


@pytest.mark.parametrize(
    "shape", [(2**31, 2**31), (2**31, 2**31, 2), (2**62, 2), (2**62, 0, 2), (2**63 - 1, 0)]
)
def test_element_limit_is_numpys(shape: tuple[int, ...]) -> None:
    try:
        np.lib.stride_tricks.as_strided(np.zeros((), np.int8), shape, (0,) * len(shape))
        numpy_accepts = True
    except ValueError:
        numpy_accepts = False
    try:
        check_elements(shape)
        accepted = True
    except Misfit:
        accepted = False
    assert accepted == numpy_accepts


def test_integers_may_be_negative_but_not_bools() -> None:
    assert whole_numbers(np.array([1, -2])) == (1, -2)
    assert whole_numbers([]) == ()
    for bad in ([True], [1.0], "1", b"\x01", "", 1, None, [None], iter([1])):
        assert whole_numbers(bad) is None


def test_asking_numbers_gives_yes_or_no() -> None:
    for a, b in itertools.product(range(4), repeat=2):
        assert equal(a, b) is (Answer.YES if a == b else Answer.NO)
    assert [is_one(size) for size in range(3)] == [Answer.NO, Answer.YES, Answer.NO]


def test_other_size_type_is_asked_on_either_side() -> None:
    for pair in ((Open(), 3), (3, Open()), (Open(), Open())):
        assert equal(*pair) is Answer.UNKNOWN
        with pytest.raises(Undecided):
            Asker().equal(*pair)
    with pytest.raises(Undecided):
        Asker().is_one(Open())


def test_unknown_answer_is_no_condition() -> None:
    assert bool(Answer.YES)
    assert not bool(Answer.NO)
    with pytest.raises(TypeError):
        bool(Answer.UNKNOWN)


def test_asker_records_questions_in_order() -> None:
    asker = Asker()
    assert not asker.equal(3, 5)
    assert asker.is_one(1)
    assert asker.asked == [((3, 5), False), ((1, 1), True)]
