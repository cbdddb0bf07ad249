"""An engine: its rule, a limit of it, the ops that it has, and where it goes wrong."""

from dataclasses import replace

from zerostride.engines import Divergence, Engine
from zerostride.errors import Misfit, Reason

from .rule import RULE

#: Its element-wise loops have three counters.
MOST_AXES = 3


def no_empty(plan, asker):
    """Refuses plans beyond the engine's limits."""
    if any(asker.equal(size, 0) for size in plan.shape):
        raise Misfit(Reason.CRASH, "an empty result ends the process")


def squares(plan, asker):
    """Which plans a divergence strikes."""
    return plan.rank == 2 and asker.equal(plan.shape[0], plan.shape[1])


ENGINE = Engine(
    name="toyinfer",
    release="1.0",
    distribution="toyinfer-runtime",
    module="toyinfer_runtime",
    source="toyinfer 1.0, its manual",
    elementwise={"toyleft": replace(RULE, max_rank=MOST_AXES, check=no_empty)},
    divergences=(
        Divergence(
            "the result of a square is transposed",
            Reason.WRONG_RESULT,
            "toyinfer's issue 7",
            run=False,
            strikes=squares,
            ops=frozenset({"multiply"}),
        ),
    ),
    run=False,  # it was read about
    reads="onnx",  # it has ONNX's names for ops ...
    has=frozenset({"add", "subtract", "multiply"}),  # ... and these of them
)
