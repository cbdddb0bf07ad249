"""Wrong results of older releases that the measured release has fixed, as data.

A product often ships a release that is not the newest. A row here does not change a verdict: it
adds a note that names the fixed release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..core.plan import Plan


@dataclass(frozen=True, slots=True)
class History:
    """A fault that a release fixed.

    Attributes:
        until: the first release without it.
        text: the behaviour of the releases before it, as the end of a sentence.
        references: public reports and the change that fixed it.
        strikes: whether the fault affected a plan.
        source: the source of the row.
        run: whether releases before and after were run (True) or the change only read.
    """

    until: str
    text: str
    references: tuple[str, ...]
    strikes: Callable[[Plan], bool]
    source: str
    run: bool = True

    def note(self, engine: str) -> str:
        """The row as a sentence, with its reports."""
        return f"{engine} before {self.until} {self.text} ({', '.join(self.references)})"


def _explicit(plan: Plan) -> bool:
    """Operands of one rank, of which at least one stretches."""
    return len({len(shape) for shape in plan.operands}) == 1 and any(plan.stretched)


def _runs(plan: Plan) -> list[tuple[bool, ...]]:
    """For each operand that stretches, the result axes above 1 along which it does."""
    wide = [axis for axis, size in enumerate(plan.shape) if size != 1]
    return [tuple(axis in axes for axis in wide) for axes in plan.stretched if axes]


def _both_or_between(plan: Plan) -> bool:
    """Both stretch, or one does along axes that are neither outer nor inner.

    The middle axis of three had its own kernel.
    """
    runs = _runs(plan)
    if not _explicit(plan) or len(runs) > 1:
        return _explicit(plan)
    one_run = list(runs[0]) in (sorted(runs[0]), sorted(runs[0], reverse=True))
    return not one_run and not (plan.rank == 3 and runs[0] == (False, True, False))


def _no_kernel(plan: Plan) -> bool:
    """Operands of one rank without a kernel before 2023; two and four axes had none at all."""
    if not _explicit(plan) or plan.rank not in (2, 3, 4):
        return False
    if plan.rank != 3 or _both_or_between(plan):
        return True
    stretched = next(filter(None, plan.stretched))
    return 0 in stretched and len(stretched) > 1


def _outer_or_middle(plan: Plan) -> bool:
    """(2,3,4) with (2,1,4) or (1,3,4)."""
    stretches = (0,) in plan.stretched or (1,) in plan.stretched
    return _explicit(plan) and plan.rank == 3 and stretches


def _inner_vector(plan: Plan) -> bool:
    """A vector that lands on the innermost axis of a higher rank."""
    return any(
        len(shape) == 1 < plan.rank and mapping == (plan.rank - 1,)
        for shape, mapping in zip(plan.operands, plan.axes_mapping, strict=True)
    )


_RUN = "ncnn's wheels 20221128, 20230223, 20230517 and 20230816, run on all patterns of ones"

#: Engine to its rows, newest first. Tested against what those wheels did.
HISTORY: Mapping[str, tuple[History, ...]] = MappingProxyType(
    {
        "ncnn": (
            History(
                "20230816",
                "returns other numbers, or whatever memory held, where both operands stretch or one"
                " stretches between axes that it fills",
                (
                    "Tencent/ncnn#4803",
                    "Tencent/ncnn#4752",
                    "Tencent/ncnn#3297",
                    "Tencent/ncnn#3298",
                    "fixed by Tencent/ncnn#4809",
                ),
                _both_or_between,
                _RUN,
            ),
            History(
                "20230816",
                "lays a vector along the outermost axis, whatever its length",
                (
                    "Tencent/ncnn#3924",
                    "Tencent/ncnn#4878",
                    "k2-fsa/sherpa-ncnn#252",
                    "changed by Tencent/ncnn#4930",
                ),
                _inner_vector,
                _RUN,
            ),
            History(
                "20230223",
                "computes an explicit broadcast of this pattern in part, or not at all",
                ("Tencent/ncnn#4508", "Tencent/ncnn#3516", "fixed by Tencent/ncnn#4513"),
                _no_kernel,
                _RUN,
            ),
            History(
                "20210507",
                "gives NaN for a stretch of the outermost or middle one of three axes",
                ("Tencent/ncnn#2823", "fixed by Tencent/ncnn#2827"),
                _outer_or_middle,
                "the report, and the tags that contain the change: read",
                run=False,
            ),
        )
    }
)


def past_notes(engine: str | None, plan: Plan) -> tuple[str, ...]:
    """The faults of older releases of an engine on a plan, one sentence each.

    >>> import zerostride as zs
    >>> past_notes("ncnn", zs.plan((17, 1, 128), (1, 2, 128), engine="ncnn"))[0][:20]
    'ncnn before 20230816'
    >>> past_notes("numpy", zs.plan((17, 1, 128), (1, 2, 128)))
    ()
    """
    rows = HISTORY.get(engine or "", ())
    return tuple(row.note(engine or "") for row in rows if row.strikes(plan))
