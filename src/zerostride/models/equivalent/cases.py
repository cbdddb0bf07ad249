"""Sizes by cases: which branch of an If runs may depend on sizes, and is decided in each case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import ZerostrideError
from ...sizes import Answer
from ...sizes.condition import all_of
from ...sizes.solve import decide
from ..equivalence import Sameness
from .pair import Pair, paired
from .proof import Proven, prove

#: Conditions that are taken apart, one after another: each doubles the cases.
_DEEPEST = 3
#: From the best to the worst.
_ORDER = (Sameness.EQUAL, Sameness.ROUNDED, Sameness.UNDECIDED)


@dataclass(frozen=True, slots=True)
class Proof:
    """The verdicts on two models without any run.

    Attributes:
        outputs: the verdict on each output.
        pairs: the models in each case of sizes; one if nothing is taken apart.
    """

    outputs: Sequence[Proven]
    pairs: tuple[Pair, ...]


def proven(pair: Pair) -> Proof:
    """Whether each output is the same for all sizes, by cases where a branch depends on sizes."""
    return _in_cases(pair, _DEEPEST)


def _in_cases(pair: Pair, deepest: int) -> Proof:
    outputs = prove(pair)
    undecided = any(output.verdict is Sameness.UNDECIDED for output in outputs)
    if not undecided or not pair.branches or not deepest:
        return Proof(outputs, (pair,))
    branch = pair.branches[0]
    proofs: list[Proof] = []
    pairs: list[Pair] = []
    for condition in (branch, ~branch):
        facts = all_of([pair.facts, condition])
        if decide(facts).answer is Answer.NO:
            continue
        try:
            case = paired(*pair.read, facts)
        except ZerostrideError:
            return Proof(outputs, (pair,))
        if case.fails or decide(case.condition).answer is Answer.NO:
            pairs.append(case)  # at most one of them works here
            continue
        proof = _in_cases(case, deepest - 1)
        proofs.append(proof)
        pairs += proof.pairs
    if not proofs:
        return Proof(outputs, (pair,))
    worst = [
        max(every, key=lambda output: _ORDER.index(output.verdict))
        for every in zip(*(proof.outputs for proof in proofs), strict=True)
    ]
    return Proof(worst, tuple(pairs))


__all__ = ["Proof", "proven"]
