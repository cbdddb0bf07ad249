"""The proof about a model and another file of it, in a sentence for other commands."""

from __future__ import annotations

from pathlib import Path

from ...errors import ZerostrideError
from ...models.equivalence import Sameness
from ...models.equivalent.cases import Proof, proven
from ...models.equivalent.pair import paired
from ...models.formats import read_model
from ...models.ir.graph import Graph
from ...models.options import ModelOptions
from ...sizes.budget import FLOW_STEPS, allowance
from ...sizes.condition import ALWAYS, Condition

_WORDS = {
    Sameness.EQUAL: "proven: {} means the same{}",
    Sameness.ROUNDED: "proven: {} means the same{}, but for rounding",
}
#: Names of nodes or tensors in a sentence.
_MOST_NAMED = 3


def converted_words(model: Path, other: Path, options: ModelOptions) -> tuple[str, ...]:
    """A note on a converter's file; none where nothing is proven.

    Args:
        model: the model.
        other: the file that a converter made of it.
        options: what is known of the model.
    """
    try:
        graphs = options.read(model), read_model(other)
    except ZerostrideError:
        return ()  # a format that is not read
    proof = _proof(*graphs, options.premises())
    return () if proof is None else _if_proven(proof, other.name)


def question_words(ours: Graph, theirs: Graph, name: str) -> tuple[str, ...]:
    """A note on what is proven of two graphs, or on the nodes in question.

    Args:
        ours, theirs: the models as they were read.
        name: what the second is called.
    """
    proof = _proof(ours, theirs, ALWAYS)
    if proof is None:
        return ()
    words = _if_proven(proof, name)
    region = next((output.region for output in proof.outputs if output.region is not None), None)
    if words or region is None or not region.begins:
        return words
    begins, first = (", ".join(names[:_MOST_NAMED]) for names in (region.begins, region.first))
    count = "1 node" if region.count == 1 else f"{region.count} nodes"
    return (f"proven equal for every size up to {begins}; in question: {count} from {first}",)


def _proof(ours: Graph, theirs: Graph, facts: Condition) -> Proof | None:
    """The proof; None for models whose inputs or outputs do not correspond, or that fail."""
    try:
        with allowance(FLOW_STEPS):
            pair = paired(ours, theirs, facts)
            return None if pair.fails else proven(pair)
    except ZerostrideError:
        return None


def _if_proven(proof: Proof, name: str) -> tuple[str, ...]:
    verdicts = {output.verdict for output in proof.outputs}
    worst = max(verdicts, key=list(Sameness).index, default=Sameness.UNDECIDED)
    words = _WORDS.get(worst)
    if words is None:
        return ()
    where = " for every size"
    if any(next(iter(pair.only_ours()), None) is not None for pair in proof.pairs):
        where = " where it works, which is not for every size"
    elif not all(pair.narrowed.always for pair in proof.pairs):
        where = " for the sizes in its file"
    return (words.format(name, where),)


__all__ = ["converted_words", "question_words"]
