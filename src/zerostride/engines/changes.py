"""What changed between the measured releases of engines, as data.

Products often ship a release that is not the newest. A row names a release, and how the releases
before it behave differently. `releases` makes the rows of older releases and the notes on a plan
from these rows.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from ..core.alignment import AlignFunction
from ..core.plan import Plan
from ..errors import Reason
from ..sizes import Asker
from . import aligns, slopes, struck

#: Raises Misfit for plans that an engine does not carry.
Check: TypeAlias = Callable[[Plan, Asker], None]
_WRONG, _LIMIT = frozenset({Reason.WRONG_RESULT}), Reason.RANK_LIMIT


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an engine's behaviour.

    Attributes:
        until: the first measured release with the newer behaviour; of a change that was only read,
            the first release of any kind that contains it.
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
        check: the check of the releases before, in place of the newer one's.
        turns: refusals of the newer release for this reason happen for the reason `effect`.
        to_target: it concerns the ops that broadcast to a shape, and no others.
        dtypes: the dtypes that it concerns, if it `may`; empty: all.
        may: the rule holds, but a plan that it strikes may fail; a divergence of the row.
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
    check: Check | None = None
    turns: Reason | None = None
    to_target: bool = False
    dtypes: frozenset[str] = frozenset()
    may: bool = False

    def note(self, engine: str) -> str:
        """The row as a sentence, with its reports."""
        return f"{engine} before {self.until} {self.text}{self._reports}"

    @property
    def concerned(self) -> str:
        """The ops that it concerns, in brackets; "" for all that follow the usual rule."""
        named = ", ".join(sorted(self.ops))
        if self.to_target:
            return f" (of {named or 'the op that broadcasts to a shape'})"
        return f" (of {named})" if named else ""

    @property
    def fault(self) -> str:
        """The behaviour of the releases before, and where it ended."""
        return f"it {self.text}, until {self.until}{self._reports}"

    @property
    def _reports(self) -> str:
        return f" ({', '.join(self.references)})" if self.references else ""


#: The releases that were run, oldest first, beside the newest, which its row names.
MEASURED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ncnn": (
            *("20230223", "20230517", "20230816", "20231027", "20240102", "20240410", "20240820"),
            *("20241226", "20250503", "20250916", "20260114", "20260526"),
        ),
        "openvino": ("2024.6.0", "2025.0.0", "2025.2.0", "2025.4.1", "2026.0.0", "2026.2.1"),
        # Another patch of a release is the same release: 2.0.2 was run.
        "numpy": ("1.24", "1.26", "2.0"),
        "torch": ("2.3", "2.7"),
        "tensorflow": ("2.13", "2.16", "2.19"),
        "jax": ("0.4.30", "0.6"),
        "litert": ("1.2", "1.4", "2.1"),
        "paddle": ("2.6", "3.0", "3.2"),
        "mnn": ("3.0.0", "3.1.0", "3.2.0", "3.4.0", "3.4.1", "3.5.0"),
        # Up to 32 axes, those of the NumPy that these releases use.
        "onnxruntime": (
            *("1.15.1", "1.17.3", "1.19.2", "1.21.1", "1.23.2", "1.26.0", "1.28.0", "1.30.0"),
            "1.31.1",
        ),
    }
)


def place_of(release: str) -> tuple[int, ...]:
    """The numbers of a release, by which releases are ordered."""
    return tuple(int(part) for part in re.findall(r"\d+", release.partition("+")[0]))


def _newest_first(table: Mapping[str, tuple[Change, ...]]) -> Mapping[str, tuple[Change, ...]]:
    return MappingProxyType(
        {
            engine: tuple(sorted(rows, key=lambda row: place_of(row.until), reverse=True))
            for engine, rows in table.items()
        }
    )


def _run(engine: str) -> str:
    releases = sorted(MEASURED[engine], key=place_of)
    return f"{engine}'s wheels {releases[0]} to {releases[-1]}, run on generated cases by value"


_NCNN = _run("ncnn")
_NUMPY, _LITERT, _PADDLE = _run("numpy"), _run("litert"), _run("paddle")
#: LiteRT before 2.1: ops, and the most axes where sizes differ, with elements and without.
_LITERT_AXES = (
    (
        "pow floor_divide remainder equal not_equal less less_equal greater greater_equal "
        "logical_and logical_or",
        4,
        4,
    ),
    ("squared_difference", 6, 4),
    ("where", 5, 5),
    ("divide", 6, 5),
    ("maximum minimum", 6, 6),
)


def _numpy_1(*, to_target: bool = False) -> Change:
    text, most = "makes no array of more than 32 axes", functools.partial(struck.beyond, 32)
    return Change(
        "2.0", text, (), most, _NUMPY, effect=_LIMIT, silent=frozenset(), to_target=to_target
    )


def _litert_beyond(ops: tuple[str, ...]) -> Change:
    return Change(
        "2.3",
        "writes beyond its arrays where shapes that differ have more than 8 axes",
        (),
        functools.partial(struck.beyond, 8),
        _LITERT,
        ops=frozenset(ops),
        effect=Reason.OVERRUN,
        silent=frozenset({Reason.OVERRUN}),
        turns=_LIMIT,
    )


def _litert_before_2_1(ops: str, full: int, empty: int) -> Change:
    return Change(
        "2.1",
        f"ends its process where shapes that differ have more than {full} axes",
        (),
        functools.partial(struck.beyond_most, full, empty),
        _LITERT,
        ops=frozenset(ops.split()),
        silent=frozenset({_LIMIT}),
        check=functools.partial(struck.most_axes, full, empty),
    )


def _paddle_2(ops: tuple[str, ...], *, empty: bool = False) -> Change:
    return Change(
        "3.0",
        "refuses a target without elements" if empty else "refuses more than 6 axes",
        (),
        struck.empty_target if empty else functools.partial(struck.beyond, 6),
        _PADDLE,
        ops=frozenset(ops),
        effect=Reason.BAD_EXTENT if empty else _LIMIT,
        silent=frozenset(),
        to_target=True,
    )


_NCNN_2023 = "ncnn's wheels 20221128, 20230223, 20230517 and 20230816, run on all patterns of ones"
#: Engine to its changes, newest first; of one release the last is checked first.
CHANGES: Mapping[str, tuple[Change, ...]] = _newest_first(
    {
        "ncnn": (
            Change(
                "20260526",
                "does not compute this op: the result is what memory held",
                (),
                struck.any_plan,
                _NCNN,
                ops=frozenset({"fmod", "logaddexp", "floor_divide", "remainder"}),
            ),
            Change(
                "20260526",
                "returns the data of a PReLU of four axes as they are",
                (),
                struck.four_axes,
                _NCNN,
                ops=frozenset({"prelu"}),
            ),
            Change(
                "20260114",
                "refuses an empty operand",
                (),
                struck.empty,
                _NCNN,
                align=aligns.ncnn_not_empty,
            ),
            Change(
                "20240820",
                "reads an empty operand as if it had elements",
                (),
                struck.empty,
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
                struck.both_or_between,
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
                struck.inner_vector,
                _NCNN_2023,
                align=aligns.ncnn_one_way,
                silent=frozenset({Reason.WRONG_RESULT, Reason.ONE_WAY, Reason.OVERRUN}),
            ),
            # The release before it, 20221128, was run on patterns of ones only: not `MEASURED`.
            Change(
                "20230223",
                "computes an explicit broadcast of this pattern in part, or not at all",
                ("Tencent/ncnn#4508", "Tencent/ncnn#3516", "fixed by Tencent/ncnn#4513"),
                struck.no_kernel,
                _NCNN_2023,
            ),
            # Read: neither this release nor one before it was run.
            Change(
                "20210507",
                "gives NaN for a stretch of the outermost or middle one of three axes",
                ("Tencent/ncnn#2823", "fixed by Tencent/ncnn#2827"),
                struck.outer_or_middle,
                "the report, and the tags that contain the change: read",
                run=False,
            ),
        ),
        "openvino": (
            Change(
                "2026.2.1",
                "refuses a slope with axes for data of rank 0",
                (),
                struck.rank_0,
                _run("openvino"),
                ops=frozenset({"prelu"}),
                align=slopes.prelu_channel_of_axes,
                silent=frozenset(),
            ),
        ),
        "numpy": (
            _numpy_1(),
            _numpy_1(to_target=True),
        ),
        "litert": (
            *(_litert_beyond(ops) for ops in ((), ("prelu",))),
            *(_litert_before_2_1(ops, full, empty) for ops, full, empty in _LITERT_AXES),
            Change(
                "2.1",
                "ends its process for 6 axes of another type than float32, where shapes differ",
                (),
                functools.partial(struck.beyond_most, 5, 5),
                _LITERT,
                ops=frozenset({"maximum", "minimum"}),
                effect=Reason.CRASH,
                dtypes=frozenset({"int8", "uint8", "int16", "int32", "int64"}),
                may=True,
            ),
            Change(
                "2.1",
                "ends its process for data of more than 5 axes, if they are empty or the slope has"
                " axes before the last",
                (),
                struck.slope_beyond_5,
                _LITERT,
                ops=frozenset({"prelu"}),
                effect=Reason.CRASH,
                silent=frozenset({Reason.CRASH}),
            ),
            Change(
                "2.1",
                "writes beyond its arrays where more than 6 axes do not merge into five loops",
                (),
                struck.not_sixfold,
                _LITERT,
                ops=frozenset({"add", "subtract", "multiply"}),
                silent=frozenset({Reason.OVERRUN}),
                check=struck.sixfold,
            ),
            Change(
                "2.1",
                "ends its process where an axis stretches inside of an empty one",
                (),
                struck.inside_empty,
                _LITERT,
                effect=Reason.CRASH,
                silent=frozenset({Reason.CRASH}),
                to_target=True,
            ),
            Change(
                "2.1",
                "refuses more than 8 axes",
                (),
                functools.partial(struck.beyond, 8),
                _LITERT,
                effect=Reason.RANK_LIMIT,
                silent=frozenset(),
                to_target=True,
            ),
            Change(
                "1.4",
                "refuses more than 6 axes, or ends its process",
                (),
                functools.partial(struck.beyond, 6),
                _LITERT,
                ops=frozenset({"maximum", "minimum"}),
                silent=frozenset({Reason.OVERRUN}),
                check=struck.six_axes,
            ),
        ),
        "paddle": (
            Change(
                "3.3",
                "refuses an empty target",
                (),
                struck.unchanged,
                _PADDLE,
                align=aligns.paddle_whole_target,
                silent=frozenset(),
                to_target=True,
            ),
            Change(
                "3.2",
                "may refuse a result without elements, or end its process, where operands differ",
                (),
                struck.empty_unlike,
                _PADDLE,
                effect=Reason.CRASH,
                may=True,
            ),
            *(_paddle_2(ops) for ops in ((), ("expand_v2",))),
            *(_paddle_2(ops, empty=True) for ops in ((), ("expand_v2",))),
            Change(
                "3.0",
                "stretches operands of where to 9 axes",
                (),
                functools.partial(struck.beyond, 8),
                _PADDLE,
                ops=frozenset({"where"}),
                silent=frozenset(),
                check=struck.unlimited,
            ),
        ),
    }
)
