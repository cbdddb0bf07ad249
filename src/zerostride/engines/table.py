"""The engine table: one row per engine, each fact with the release it was measured on.

`rules` follows documents. Rows start from those rules and name only the differences; the modules
`rows_*` hold them. The table lists the engines that were run first, then those that were read
about.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..core.alignment import Rule
from ..core.plan import Plan
from ..core.plugins import FILES, Table, error_line
from ..core.rules import guarded
from ..errors import BroadcastError, PluginWarning, Reason
from ..ops import COLUMNS, OPS, take_names
from ..sizes import Asker, Undecided
from ..system import spelling
from .installed import installed, newest_wanted
from .learnt.file import learnt_files
from .model import Divergence, Engine, Rules, always
from .releases import installed_row, release_row, short
from .rows_arrays import EXECUTORCH, JAX, NUMPY, TENSORFLOW, TORCH
from .rows_litert import LITERT
from .rows_openvino import OPENVINO
from .rows_read import COREML, LITERT_GPU, STABLEHLO, TENSORRT, TOSA
from .rows_runtimes import MNN, NCNN, ONNXRUNTIME, PADDLE

_RUN = (NUMPY, TORCH, TENSORFLOW, JAX, ONNXRUNTIME, OPENVINO, PADDLE, NCNN, MNN, LITERT, EXECUTORCH)
_READ = (TENSORRT, COREML, LITERT_GPU, TOSA, STABLEHLO)


def _accept(engine: Engine, package: str) -> Engine:
    """Another package's engine: its rules are guarded, and its ops get the names of its column."""
    if not engine.elementwise:
        raise ValueError(f"engine {engine.name!r} has no element-wise rule")
    column = engine.reads or engine.name
    if column not in COLUMNS:
        raise ValueError(
            f"reads={engine.reads!r} is no column of the op table: {', '.join(COLUMNS)}"
        )
    unknown = sorted(engine.has - set(OPS))
    if unknown:
        raise ValueError(f"it has ops that the op table lacks: {', '.join(unknown)}")

    def rules(unguarded: Rules) -> Rules:
        for name, rule in unguarded.items():
            if not isinstance(rule, Rule):
                raise ValueError(f"its rule {name!r} is a {type(rule).__name__}")
        return {name: guarded(rule, package) for name, rule in unguarded.items()}

    accepted = replace(
        engine,
        elementwise=rules(engine.elementwise),
        to_target=rules(engine.to_target),
        ops={op: rules(table) for op, table in engine.ops.items()},
        typed={key: rules(table) for key, table in engine.typed.items()},
        dynamic={op: rules(table) for op, table in engine.dynamic.items()},
        constants=rules(engine.constants),
        divergences=tuple(_guarded(row, package) for row in engine.divergences),
        older=tuple(_accept(row, package) for row in engine.older),
    )
    take_names(engine.name, column)
    return accepted


def _guarded(row: Divergence, package: str) -> Divergence:
    if row.strikes is None or row.strikes is always:
        return row
    return replace(row, strikes=functools.partial(_strikes, row.strikes, package))


def _strikes(
    condition: Callable[[Plan, Asker], bool], package: str, plan: Plan, asker: Asker
) -> bool:
    """Whether a divergence applies; if its function fails, it may apply."""
    try:
        return condition(plan, asker)
    except Undecided:
        raise
    except Exception as error:  # noqa: BLE001 - another package's function may raise anything
        name = getattr(condition, "__name__", "a divergence")
        words = f"{name} of {package} failed: {error_line(error)}"
        warnings.warn(words, PluginWarning, stacklevel=2)
        return True


FILES["zerostride.engines"] = learnt_files
#: Every engine by its name; entry points of the group `zerostride.engines` add to it, and files of
#: learnt engines.
ENGINES: Table[Engine] = Table(
    "zerostride.engines", Engine, (*_RUN, *_READ), _accept, operator.attrgetter("name")
)


@functools.lru_cache(256)
def _own_release(name: str, release: str) -> Engine:
    return release_row(ENGINES.own[name], release)


@functools.cache
def _own_default(name: str) -> Engine:
    return _default(ENGINES.own[name])


def _default(newest: Engine) -> Engine:
    """The row of the installed release of an engine, or else of the newest measured one."""
    version = installed(newest.distribution) if newest.run and not newest_wanted() else None
    return newest if version is None else installed_row(newest, version)


def find_engine(name: Any) -> Engine:
    """The row of an engine's release ("ncnn@20230517").

    Without a release it is the row of the installed one, or else of the newest measured one.
    `ENGINES` has the newest rows alone.

    Raises:
        BroadcastError: lists the names, or the measured releases.
    """
    base, at, release = name.partition("@") if isinstance(name, str) else (name, "", "")
    engine = ENGINES.get(base) if isinstance(base, str) else None
    own = engine is not None and base in ENGINES.own
    if engine is not None and at:
        return _own_release(base, short(release)) if own else release_row(engine, release)
    if engine is None:
        close = spelling.near(base, ENGINES, others=spelling.ENGINES)
        raise BroadcastError(
            f"there is no engine {name!r}",
            reason=Reason.UNKNOWN_ENGINE,
            hint=f"did you mean {close[0]}?" if close else f"one of {', '.join(ENGINES)}",
        )
    return _own_default(base) if own else _default(engine)
