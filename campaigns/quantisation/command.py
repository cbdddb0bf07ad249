"""``python -m campaigns quantisation``: what rows predict, beside the engines that are installed.

Exit status 0: nothing is wrong; 1: something is; 2: bad input.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from zerostride.errors import BadInput
from zerostride.quantisation import QUANTIZERS

from .composed import COMPOSED, measure_composed
from .engines import MODULES, RUNNERS
from .judge import Result, measure
from .ranges import measure_ranges

#: Cases of a composed op for each thousand of an engine.
_COMPOSED_SHARE = 0.2


def run(engines: Sequence[str], cases: int, first: int, seed: int, as_json: bool) -> int:
    """The command; see the module."""
    unknown = [name for name in engines if name not in RUNNERS]
    if unknown:
        raise BadInput(f"no quantisation is run on {unknown[0]}: there are {', '.join(RUNNERS)}")
    names = [name for name in engines or RUNNERS if importlib.util.find_spec(MODULES[name])]
    missing = [name for name in engines or RUNNERS if name not in names]
    results = list(_results(names, cases, first, seed))
    if as_json:
        print(json.dumps({"results": [_row(one) for one in results], "missing": missing}, indent=1))
    else:
        _print(Console(soft_wrap=True), results, missing)
    return 1 if any(one.wrong for one in results) else 0


def _results(names: Sequence[str], cases: int, first: int, seed: int) -> Iterator[Result]:
    for name in names:
        yield measure(name, seed, first, cases)
        for engine, op in COMPOSED:
            if engine == name:
                count = max(1, int(cases * _COMPOSED_SHARE))
                yield measure_composed(engine, op, seed, first, count)
        if name == "openvino":
            yield measure_ranges(seed, first, max(1, int(cases * _COMPOSED_SHARE)))


def _row(result: Result) -> dict[str, Any]:
    return {**asdict(result), "kinds": dict(result.kinds), "cases": result.cases}


def _print(console: Console, results: Sequence[Result], missing: Sequence[str]) -> None:
    for result in results:
        release = QUANTIZERS[result.engine].release
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(result.kinds.items()))
        console.print(
            f"{result.engine} {release}: {result.cases:,} cases ({kinds}), {result.equal:,} "
            f"equal in {result.elements:,} numbers, {result.refused} refused by both, "
            f"{result.wrong} wrong",
            markup=False,
        )
        for text in result.shown:
            console.print(f"  {text}", markup=False)
    if missing:
        console.print(f"not installed: {', '.join(missing)}")
    total, wrong = sum(one.cases for one in results), sum(one.wrong for one in results)
    console.print(f"all: {total:,} cases, {wrong} wrong", markup=False)
