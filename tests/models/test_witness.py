"""Counter-examples are small and true."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.core.plan import Plan
from zerostride.derive.counterexample import MOST_ELEMENTS, Witness, find_witness, smallest


def planner(**how: Any) -> Any:
    def plan(shapes: Any) -> Plan | zs.BroadcastError:
        try:
            return zs.plan(*shapes, **how)
        except zs.BroadcastError as error:
            return error

    return plan


NUMPY, NCNN = planner(), planner(engine="ncnn")


def recomputed(witness: Witness, source: Any, target: Any) -> tuple[Any, Any]:
    """The two numbers, from the witness's own words: operands counted from 0, one after another."""
    start, data = 0, []
    for shape in witness.shapes:
        count = int(np.prod(shape))
        data.append(np.arange(start, start + count, dtype=float).reshape(shape))
        start += count if witness.op == "add" else 0
    function = getattr(np, witness.op)
    results = []
    for plan in (source(witness.shapes), target(witness.shapes)):
        views = plan.views(*data)
        total = views[0]
        for view in views[1:]:
            with np.errstate(all="ignore"):
                total = function(total, view)
        results.append(total[witness.index])
    return results[0], results[1]


@pytest.mark.parametrize(
    "op",
    ["add", "multiply", "maximum", "divide", "pow", "less", "bitwise_and", "where", "nonsense"],
)
def test_witness_shows_the_difference(op: str) -> None:
    shown = 0
    for rank in (2, 3):
        for a in itertools.product((1, 2, 5), repeat=rank):
            for b in itertools.product((1, 2, 5), repeat=rank - 1):
                witness = find_witness((a, b), NUMPY, NCNN, op)
                source, target = NUMPY((a, b)), NCNN((a, b))
                if isinstance(source, zs.BroadcastError):
                    assert witness is None
                    continue
                if source == target:
                    assert witness is None
                    continue
                assert witness is not None, (a, b)
                assert max(max(shape, default=0) for shape in witness.shapes) <= 3
                if witness.index:
                    one, other = recomputed(witness, NUMPY, NCNN)
                    assert (one, other) == (witness.source, witness.target)
                    assert one != other
                    shown += 1
    assert shown > 5


def test_renamed_sizes_keep_every_plan() -> None:
    for shapes in itertools.product(
        itertools.product((0, 1, 7, 9), repeat=2), itertools.product((0, 1, 7, 9), repeat=1)
    ):
        small = smallest(shapes)
        for plan in (NUMPY, NCNN):
            before, after = plan(shapes), plan(small)
            assert isinstance(before, Plan) == isinstance(after, Plan)
            if isinstance(before, Plan):
                assert before.axes_mapping == after.axes_mapping
                assert before.stretched == after.stretched


def test_smallest_reduces_sizes_and_keeps_patterns() -> None:
    assert smallest([(64, 128, 1, 0), (128,)]) == ((2, 3, 1, 0), (3,))
    assert smallest([()]) == ((),)


def test_failing_or_refusing_target_has_a_witness() -> None:
    silent = find_witness(((7, 9), (7, 8, 9)), planner(rule="none"), NCNN, "add")
    assert silent is None  # the source has no meaning
    wrong = find_witness(((7, 9), (1, 7, 9)), NUMPY, NCNN, "add")
    assert wrong is not None
    assert str(wrong.target).startswith("nonsense, or a crash")
    refused = find_witness(((2, 3), (3,)), NUMPY, planner(rule="none"), "add")
    assert refused is not None
    assert str(refused.target).startswith("refused")


def test_three_operands_have_a_witness() -> None:
    def target(shapes: Any) -> Plan:
        plan = zs.plan(*shapes)
        mapping = (*plan.axes_mapping[:2], (0,))
        return Plan(plan.shape, plan.operands, mapping, plan.rule)

    witness = find_witness(((5, 5), (1, 5), (5,)), NUMPY, target, "maximum")
    assert witness is not None
    assert recomputed(witness, NUMPY, target) == (witness.source, witness.target)


def test_large_result_is_not_computed() -> None:
    rank = 17  # sizes are as small as they can be; 2 ** 17 elements are still too many
    shapes = ((2,) * rank, (2,) * rank)
    flipped = planner(rule="numpy")
    assert 2**rank > MOST_ELEMENTS
    assert find_witness(shapes, flipped, flipped, "add") is None


def test_witness_is_printed_as_a_sentence() -> None:
    witness = Witness(((2, 2), (2,)), "add", (0, 1), 6.0, 5.0)
    assert str(witness) == (
        "add of (2, 2) and (2,) counted from 0: result[0, 1] is 6.0 in the model, 5.0 on the target"
    )
    assert "the result is [2]" in str(Witness(((2,),), "add", (), [2], [3]))


def test_symbols_are_numbered_in_order_of_appearance() -> None:
    names = [f"n{k}" for k in range(20)]
    entries = set()
    for a, b in itertools.pairwise(names):
        batch, length = zs.Dim(a), zs.Dim(b)
        entries.add(smallest([(batch, 2, length, length), (1, 1, length, length)]))
    assert len(entries) == 1
