"""What changed between the measured releases of engines, as data.

A product often ships a release that is not the newest. A row says what the releases before one did
otherwise. `releases` makes the rows of older releases of it, and the notes on a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..core.alignment import AlignFunction
from ..core.plan import Plan
from ..errors import Reason
from ..sizes import Asker
from . import aligns

_WRONG = frozenset({Reason.WRONG_RESULT})


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an engine's behaviour.

    Attributes:
        until: the first measured release with the newer behaviour.
        text: the behaviour of the releases before it, as the end of a sentence.
        references: public reports and the change in the engine's repository.
        strikes: whether the releases before it differed on a plan of the newer ones.
        source: the source of the row.
        run: whether releases before and after were run (True) or the change only read.
        ops: the ops that it concerns, by canonical name; empty: all element-wise ones that follow
            the engine's usual rule.
        align: the alignment of the releases before. None: a plan that it strikes is refused, for
            the reason `effect`.
        effect: see `align`.
        silent: the reasons for which the releases before do not refuse, but go wrong.
    """

    until: str
    text: str
    references: tuple[str, ...]
    strikes: Callable[[Plan, Asker], bool]
    source: str
    run: bool = True
    ops: frozenset[str] = frozenset()
    align: AlignFunction | None = None
    effect: Reason = Reason.WRONG_RESULT
    silent: frozenset[Reason] = _WRONG

    def note(self, engine: str) -> str:
        """The row as a sentence, with its reports."""
        return f"{engine} before {self.until} {self.text}{self._reports}"

    @property
    def fault(self) -> str:
        """The behaviour of the releases before, and where it ended."""
        return f"it {self.text}, until {self.until}{self._reports}"

    @property
    def _reports(self) -> str:
        return f" ({', '.join(self.references)})" if self.references else ""


def _stretches(plan: Plan, asker: Asker) -> list[tuple[bool, ...]]:
    """For each operand that stretches, whether it does along each result axis above 1."""
    wide = [axis for axis, size in enumerate(plan.shape) if not asker.is_one(size)]
    rows = [tuple(asker.is_one(aligned[axis]) for axis in wide) for aligned in plan.aligned]
    return [row for row in rows if any(row)]


def _one_rank(plan: Plan) -> bool:
    return len(set(map(len, plan.operands))) == 1


def _both_or_between(plan: Plan, asker: Asker) -> bool:
    """Operands of one rank: both stretch, or one does along axes neither outer nor inner.

    The middle axis of three had its own kernel.
    """
    runs = _stretches(plan, asker) if _one_rank(plan) else []
    if len(runs) != 1:
        return len(runs) > 1
    one_run = list(runs[0]) in (sorted(runs[0]), sorted(runs[0], reverse=True))
    return not one_run and not (plan.rank == 3 and runs[0] == (False, True, False))


def _no_kernel(plan: Plan, asker: Asker) -> bool:
    """Operands of one rank without a kernel before 2023; two and four axes had none at all."""
    runs = _stretches(plan, asker) if _one_rank(plan) else []
    if not runs or plan.rank not in (2, 3, 4):
        return False
    if plan.rank != 3 or _both_or_between(plan, asker):
        return True
    (stretched,) = (row for row in plan.aligned if row != plan.shape)
    return asker.is_one(stretched[0]) and sum(map(asker.is_one, stretched)) > 1


def _outer_or_middle(plan: Plan, asker: Asker) -> bool:
    """(2,3,4) with (2,1,4) or (1,3,4)."""
    stretches = (0,) in plan.stretched or (1,) in plan.stretched
    return _one_rank(plan) and plan.rank == 3 and stretches


def _inner_vector(plan: Plan, asker: Asker) -> bool:
    """A vector that lands on the innermost axis of a higher rank."""
    return any(
        len(shape) == 1 < plan.rank and mapping == (plan.rank - 1,)
        for shape, mapping in zip(plan.operands, plan.axes_mapping, strict=True)
    )


def _empty(plan: Plan, asker: Asker) -> bool:
    return any(asker.equal(size, 0) for shape in plan.operands for size in shape)


def _any(plan: Plan, asker: Asker) -> bool:
    return True


def _rank_0(plan: Plan, asker: Asker) -> bool:
    return plan.rank == 0


def _four_axes(plan: Plan, asker: Asker) -> bool:
    return plan.rank == 4


#: The releases that were run, oldest first, beside the newest, which its row names.
MEASURED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ncnn": (
            *("20230223", "20230517", "20230816", "20231027", "20240102", "20240410", "20240820"),
            *("20241226", "20250503", "20250916", "20260114", "20260526"),
        ),
        "openvino": ("2024.6.0", "2025.0.0", "2025.2.0", "2025.4.1", "2026.0.0", "2026.2.1"),
        "mnn": ("3.0.0", "3.1.0", "3.2.0", "3.4.0", "3.4.1", "3.5.0"),
        # Up to 32 axes, those of the NumPy that these releases use.
        "onnxruntime": (
            *("1.15.1", "1.17.3", "1.19.2", "1.21.1", "1.23.2", "1.26.0", "1.28.0", "1.30.0"),
            "1.31.1",
        ),
    }
)


def _run(engine: str) -> str:
    releases = MEASURED[engine]
    return f"{engine}'s wheels {releases[0]} to {releases[-1]}, run on generated cases by value"


_NCNN = _run("ncnn")
_NCNN_2023 = "ncnn's wheels 20221128, 20230223, 20230517 and 20230816, run on all patterns of ones"
#: Engine to its changes, newest first.
CHANGES: Mapping[str, tuple[Change, ...]] = MappingProxyType(
    {
        "ncnn": (
            Change(
                "20260526",
                "does not compute this op: the result is what memory held",
                (),
                _any,
                _NCNN,
                ops=frozenset({"fmod", "logaddexp", "floor_divide", "remainder"}),
            ),
            Change(
                "20260526",
                "returns the data of a PReLU of four axes as they are",
                (),
                _four_axes,
                _NCNN,
                ops=frozenset({"prelu"}),
            ),
            Change(
                "20260114",
                "refuses an empty operand",
                (),
                _empty,
                _NCNN,
                align=aligns.ncnn_not_empty,
            ),
            Change(
                "20240820",
                "reads an empty operand as if it had elements",
                (),
                _empty,
                _NCNN,
                align=aligns.ncnn,
            ),
            Change(
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
                _NCNN_2023,
            ),
            Change(
                "20230816",
                "lays a vector along the outermost axis, whatever its length",
                (
                    "Tencent/ncnn#3924",
                    "Tencent/ncnn#4878",
                    "k2-fsa/sherpa-ncnn#252",
                    "changed by Tencent/ncnn#4930",
                ),
                _inner_vector,
                _NCNN_2023,
                align=aligns.ncnn_one_way,
                silent=frozenset({Reason.WRONG_RESULT, Reason.ONE_WAY, Reason.OVERRUN}),
            ),
            Change(
                "20230223",
                "computes an explicit broadcast of this pattern in part, or not at all",
                ("Tencent/ncnn#4508", "Tencent/ncnn#3516", "fixed by Tencent/ncnn#4513"),
                _no_kernel,
                _NCNN_2023,
            ),
            Change(
                "20210507",
                "gives NaN for a stretch of the outermost or middle one of three axes",
                ("Tencent/ncnn#2823", "fixed by Tencent/ncnn#2827"),
                _outer_or_middle,
                "the report, and the tags that contain the change: read",
                run=False,
            ),
        ),
        "openvino": (
            Change(
                "2026.2.1",
                "refuses a slope with axes for data of rank 0",
                (),
                _rank_0,
                _run("openvino"),
                ops=frozenset({"prelu"}),
                align=aligns.prelu_channel_of_axes,
                silent=frozenset(),
            ),
        ),
    }
)
