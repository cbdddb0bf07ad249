"""python -m benchmarks arrays: the cost of calls with arrays of other libraries.

Small calls are all overhead: the table has microseconds of one, of zerostride on NumPy's arrays and
on each library's, and of the library's own function, all in one process and in turns. Large ones
show what is left of it.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import importlib.metadata
import importlib.util
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import machine
from .peers import Call
from .printing import NONE, markdown, new_console, new_table
from .timing import Rounds, in_turns, sampler

Array = np.ndarray[Any, Any]
_ROUNDS = Rounds(most=40, seconds=6.0, least=10)


@dataclass(frozen=True)
class Library:
    """A library: its arrays, its own functions, and what a call has to wait for."""

    name: str
    module: str
    made: Callable[[Any, Array], Any]
    #: By row: its own way to write it; None where it has none.
    own: Callable[[Any, str], Callable[..., Any] | None]
    then: str = ""


def _named(module: Any, row: str) -> Callable[..., Any] | None:
    """Its own function: the array API's names."""
    functions: dict[str, Callable[..., Any]] = {
        "add": module.add,
        "sum": lambda x: module.sum(x, axis=1),
        "fused": lambda x, m, r: (x - m) * r * 2.0 + 1.0,
    }
    if row == "pdpd":
        return lambda x, y: x + module.reshape(y, (-1, 1))
    return functions[row]


def _xarray(module: Any, row: str) -> Callable[..., Any] | None:
    functions: dict[str, Callable[..., Any]] = {
        "add": lambda x, y: x + y,
        "sum": lambda x: x.sum("b", skipna=False),
        "fused": lambda x, m, r: (x - m) * r * 2.0 + 1.0,
    }
    return functions.get(row)


LIBRARIES = (
    Library("numpy", "numpy", lambda _, array: array, _named),
    Library("torch", "torch", lambda torch, array: torch.from_numpy(array), _named),
    Library(
        "jax",
        "jax.numpy",
        lambda jnp, array: jnp.asarray(array),
        _named,
        ".block_until_ready()",
    ),
    Library("array_api_strict", "array_api_strict", lambda xp, array: xp.asarray(array), _named),
    Library(
        "xarray",
        "xarray",
        lambda xr, array: xr.DataArray(array, dims=("a", "b")[2 - array.ndim :]),
        _xarray,
    ),
)
#: By name: the operands' shapes, and zerostride's function of them.
ROWS: Mapping[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    "(3,3) + (3,)": ("add", ((3, 3), (3,))),
    "(3,3) + (3,) pdpd axis=0": ("pdpd", ((3, 3), (3,))),
    "sum of (3,3) over the last axis": ("sum", ((3, 3),)),
    "fused (x - m) * r * 2 + 1, (3,3)": ("fused", ((3, 3), (3,), (3,))),
    "(1024,1024) + (1024,)": ("add", ((1024, 1024), (1024,))),
    "sum of (1024,1024) over the last axis": ("sum", ((1024, 1024),)),
    "fused (x - m) * r * 2 + 1, (1024,1024)": ("fused", ((1024, 1024), (1024,), (1024,))),
}


@dataclass(frozen=True)
class Cost:
    """A row and a library: microseconds of a call, and of the library's own."""

    row: str
    library: str
    zerostride: float
    own: float | None


def _functions() -> dict[str, Callable[..., Any]]:
    import zerostride as zs

    return {
        "add": zs.add,
        "pdpd": lambda x, y: zs.add(x, y, rule="pdpd", axis=0),
        "sum": lambda x: zs.sum(x, axis=1),
        "fused": zs.fuse(lambda x, m, r: (x - m) * r * 2.0 + 1.0),
    }


def measure(row: str, libraries: Sequence[Library]) -> list[Cost]:
    """The costs of one row with each library, all in turns."""
    kind, shapes = ROWS[row]
    rng = np.random.default_rng(0)
    given = [rng.random(shape, np.float32) for shape in shapes]
    ours, calls = _functions()[kind], {}
    expected = np.asarray(ours(*given))
    for library in libraries:
        if kind == "pdpd" and library.name == "xarray":
            continue  # its dimensions' names are the rule
        module = importlib.import_module(library.module)
        arrays = tuple(library.made(module, array) for array in given)
        for who, function in (("zerostride", ours), ("own", library.own(module, kind))):
            if function is None:
                continue
            call = Call(function, arrays, then=library.then)
            np.testing.assert_allclose(np.asarray(call()), expected, rtol=1e-4)
            calls[library.name, who] = call
    samplers = {f"{name}/{who}": sampler((call,)) for (name, who), call in calls.items()}
    times = in_turns(samplers, _ROUNDS)
    figures = {key: float(np.median(seconds) * 1e6) for key, seconds in times.items()}
    return [
        Cost(row, one.name, figures[f"{one.name}/zerostride"], figures.get(f"{one.name}/own"))
        for one in libraries
        if f"{one.name}/zerostride" in figures
    ]


def _table(found: Sequence[Cost], libraries: Sequence[Library]) -> list[list[str]]:
    table = [["µs a call", *(f"{one.name}: {who}" for one in libraries for who in ("zs", "own"))]]
    for row in ROWS:
        costs = {cost.library: cost for cost in found if cost.row == row}
        cells = [row]
        for library in libraries:
            cost = costs.get(library.name)
            cells += [_figure(cost and cost.zerostride), _figure(cost and cost.own)]
        if costs:
            table.append(cells)
    return table


def _figure(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _page(found: Sequence[Cost], libraries: Sequence[Library], command: str) -> str:
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    here = machine.describe()
    versions = ", ".join(f"{one.name} {importlib.metadata.version(one.name)}" for one in libraries)
    return "\n".join(
        [
            "# Calls with arrays of other libraries",
            "",
            f"Made by `{command}` on {date} ({here.processor}, {here.cores} cores; load "
            f"{here.load}; {versions}); not edited by hand.",
            "",
            "Microseconds of one call with float32 arrays in this processor's memory: zerostride's"
            " function on the library's arrays, and the library's own, in one process and in turns"
            " (the median of the rounds). The fused row's own is the expression as it is written."
            " JAX is waited for.",
            "",
            *markdown(_table(found, libraries)),
            "",
        ]
    )


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks arrays",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=[one.name for one in LIBRARIES])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--write", action="store_true", help="write ARRAYS.md beside this file")
    options = parser.parse_args(arguments)
    libraries = [
        one
        for one in LIBRARIES
        if (options.only is None or one.name in options.only)
        and importlib.util.find_spec(one.module.partition(".")[0]) is not None
    ]
    found = [cost for row in ROWS for cost in measure(row, libraries)]
    if options.json:
        print(json.dumps([asdict(cost) for cost in found], indent=1))
    else:
        head, *body = _table(found, libraries)
        new_console().print(new_table(head, body))
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks", "arrays", *arguments])
        page = _page(found, libraries, command)
        (Path(__file__).parent / "ARRAYS.md").write_text(page, "utf-8")
    return 0
