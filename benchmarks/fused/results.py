"""The measured results of fused functions, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import metadata

from ..memory import Use
from ..peers import BASELINE
from ..results import Results, RowResult
from .first import First

#: Where somebody reaches this share of the streaming limit, memory is what a row waits for.
BOUND = 0.5


@dataclass(frozen=True)
class FusedResults:
    """A run: its parts that were asked for."""

    #: Hot, in turns.
    hot: Results
    #: What compiles zerostride's programs that are hot, "" if nothing does.
    compiled: str
    #: By row and peer: first calls, or why there are none.
    first: dict[str, dict[str, First | str]] = field(default_factory=dict)
    #: By row: zerostride's first call of all, or why there is none.
    cold: dict[str, First | str] = field(default_factory=dict)
    #: By row: its first call with machine code on disk, or why there is none.
    kept: dict[str, First | str] = field(default_factory=dict)
    #: By row: zerostride's calls without the compiled tier, or why there are none.
    interpreted: dict[str, First | str] = field(default_factory=dict)
    #: By row: zerostride's peak of memory, or why there is none.
    peak: dict[str, Use | str] = field(default_factory=dict)


def compiled_by() -> str:
    """What compiles programs that are hot: llvmlite and its release; "" if nothing does."""
    from zerostride.fusion.jit import tier as jit

    return "" if jit.mode() == "0" else f"llvmlite {metadata.version('llvmlite')}"


def memory_bound(row: RowResult) -> bool:
    """Whether zerostride or the best peer comes within sight of the streaming limit."""
    names = {BASELINE, row.best or BASELINE}
    shares = [row.timings[name].share for name in names if name in row.timings]
    return any(share is not None and share > BOUND for share in shares)


def early_share(first: First | str | None) -> float | None:
    """Of the streaming limit, in the calls after the first; None where it was not measured."""
    if not isinstance(first, First) or first.limit is None:
        return None
    return first.limit / first.early
