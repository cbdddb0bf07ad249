"""Learnt rows asked of open sizes: the answer holds for each number that a size may be."""

from __future__ import annotations

import random
from typing import Any

import pytest

import zerostride as zs
from learnt_row import row_of
from sampled import few
from zerostride.core.plan import Plan
from zerostride.engines.learnt import FORMS, TRAITS, Form, LearntRow
from zerostride.engines.learnt.traits import Test as Comparing
from zerostride.errors import Reason

NAMES = "ABCD"


def drawn(rng: random.Random) -> tuple[tuple[int | str, ...], ...]:
    """Two shapes of names and small numbers."""
    return tuple(
        tuple(rng.choice([*NAMES, 1, 1, 2, 3]) for _ in range(rng.randint(0, 3))) for _ in "xy"
    )


def numbers(shapes: Any, values: dict[str, int]) -> Any:
    """Shapes with numbers in the place of names."""
    return tuple(tuple(values.get(size, size) for size in shape) for shape in shapes)


def agree(row: LearntRow, shapes: Any, rng: random.Random) -> int:
    """Compares the plan of open shapes with those of numbers; the count of plans compared."""
    answer = row.outcome(shapes)
    if isinstance(answer, zs.BroadcastError) and answer.reason is Reason.UNKNOWN_SIZE:
        assert "axes, depending on the sizes" in str(answer)
        return 0
    count = 0
    for _ in range(12):
        values = {name: rng.choice([0, 1, 1, 2, 3, 4, 6]) for name in NAMES}
        known = row.outcome(numbers(shapes, values))
        if isinstance(answer, zs.BroadcastError):
            assert isinstance(known, zs.BroadcastError), (shapes, values)
            continue
        exists = answer.conditions
        holds = exists.evaluate({symbol: values[symbol.name] for symbol in exists.symbols})
        assert holds is isinstance(known, Plan), (shapes, values, str(exists))
        if isinstance(known, Plan):
            bound = answer.bind(*numbers(shapes, values))
            assert (bound.shape, bound.aligned) == (known.shape, known.aligned), (shapes, values)
            count += 1
    return count


@pytest.mark.parametrize("name", few(12, TRAITS))
def test_a_trait_of_open_sizes_holds_for_every_number(name: str) -> None:
    rng = random.Random(name)
    number = "" if TRAITS[name].test is Comparing.TRUE else f" {rng.randint(1, 3)}"
    rows = [row_of((f"{no}{name}{number}", "refuses")) for no in ("", "not ")]
    assert sum(agree(row, drawn(rng), rng) for row in rows for _ in range(25)) or name == "any"


@pytest.mark.parametrize("form", few(12, FORMS))
def test_a_form_of_open_sizes_holds_for_every_number(form: Form) -> None:
    rng = random.Random(str(form))
    assert sum(agree(LearntRow(form), drawn(rng), rng) for _ in range(25))


def test_a_rank_that_depends_on_sizes_is_said() -> None:
    answer = LearntRow(Form("bias", "all")).outcome((("N", "H"), (1, 1, "C")))
    assert isinstance(answer, zs.BroadcastError)
    assert answer.reason is Reason.UNKNOWN_SIZE
    assert "the result has 2 or 3 axes, depending on the sizes" in str(answer)
