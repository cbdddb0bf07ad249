"""The time of a symbolic plan compared with one of numbers, in one run.

python benchmarks/symbolic.py [--before CHECKOUT]

With --before, plans of numbers are also timed by the package of another checkout, in turns with
this one's. A plan is timed cold: its cache is emptied before each call. Of each, the least of the
calls is taken; the table shows microseconds and the ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import timeit
from pathlib import Path
from typing import Any

#: A symbolic pair, and numbers for it.
PAIRS: list[tuple[str, tuple[Any, Any], tuple[Any, Any], dict[str, Any]]] = [
    ("numpy", (("N", 1, "H"), ("C", "H")), ((8, 1, 64), (32, 64)), {}),
    ("numpy", (("N", 3), ("M", 3)), ((4, 3), (1, 3)), {}),
    ("numpy", (("N", "C", "H", "W"), ("C", 1, 1)), ((2, 3, 4, 5), (3, 1, 1)), {}),
    ("numpy", (("N", "C", "H", "W"), ("A", "B", "D", "E")), ((2, 3, 4, 5), (2, 3, 4, 5)), {}),
    ("pdpd", (("N", "C", "H", "W"), ("C", "K")), ((2, 3, 4, 5), (3, 4)), {"axis": 1}),
    ("paddle", (("N", "C", "H", "W"), ("C", "H")), ((2, 3, 4, 5), (3, 4)), {"axis": 1}),
    ("onnx6", (("N", "C", "H"), ("C",)), ((2, 3, 4), (3,)), {"broadcast": 1, "axis": 1}),
    ("ncnn", (("H", "W"), ("W",)), ((3, 5), (5,)), {}),
    ("ncnn", (("N", "C", "H", "W"), ("W",)), ((2, 3, 4, 5), (5,)), {}),
    ("mnn", (("N", "S", "D"), ("D",)), ((2, 3, 4), (4,)), {}),
]
ENGINES: list[tuple[str, tuple[Any, Any], tuple[Any, Any], dict[str, Any]]] = [
    ("ncnn", (("N", "C", "H", "W"), ("W",)), ((2, 3, 4, 5), (5,)), {}),
    ("openvino", (("N", "C", "H"), ("C", 1)), ((2, 3, 4), (3, 1)), {}),
    ("onnxruntime", (("N", "C", "H"), ("C", 1)), ((2, 3, 4), (3, 1)), {}),
]
CALLS = 400


def cold(shapes: tuple[Any, Any], asked: dict[str, Any]) -> float:
    """Microseconds of one plan that is not in the cache: the least of the calls."""
    import zerostride as zs
    from zerostride.engines import planning as planner

    best = float("inf")
    for _ in range(CALLS):
        planner._cached.cache_clear()
        start = timeit.default_timer()
        zs.plan(*shapes, **asked)
        best = min(best, timeit.default_timer() - start)
    return best * 1e6


def warm(shapes: tuple[Any, Any], asked: dict[str, Any]) -> float:
    """Microseconds of one plan that is in the cache."""
    import zerostride as zs

    count = 20_000
    best = min(timeit.repeat(lambda: zs.plan(*shapes, **asked), number=count, repeat=5))
    return best / count * 1e6


def rows() -> list[tuple[str, tuple[Any, Any], tuple[Any, Any], dict[str, Any]]]:
    named = [(f"rule {name}", s, n, {"rule": name, **more}) for name, s, n, more in PAIRS]
    return named + [(f"on {name}", s, n, {"engine": name, **more}) for name, s, n, more in ENGINES]


def numbers_elsewhere(checkout: Path) -> list[tuple[float, float]]:
    """Cold and warm times of the plans of numbers, by another checkout's package."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, __file__, "--numbers"]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [tuple(pair) for pair in json.loads(found.stdout)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="a checkout to compare plans of numbers with")
    parser.add_argument("--numbers", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.numbers:
        print(json.dumps([(cold(n, asked), warm(n, asked)) for _, _, n, asked in rows()]))
        return
    here = Path(__file__).parent.parent
    turns = {"now": here, **({"before": options.before} if options.before else {})}
    best: dict[str, list[tuple[float, float]]] = {}
    for _ in range(3):  # in turns, so that a busy machine is busy for both
        for name, checkout in turns.items():
            found = numbers_elsewhere(checkout)
            kept = best.setdefault(name, found)
            best[name] = [
                (min(a, c), min(b, d)) for (a, b), (c, d) in zip(kept, found, strict=True)
            ]
    print(f"{'':16}{'symbols':38}{'cold':>8}{'numbers':>9}{'ratio':>7}{'warm':>7}{'numbers':>9}")
    for k, (name, shapes, _, asked) in enumerate(rows()):
        text = " + ".join(f"({','.join(map(str, shape))})" for shape in shapes)
        number_cold, number_warm = best["now"][k]
        open_cold, open_warm = cold(shapes, asked), warm(shapes, asked)
        print(
            f"{name:16}{text:38}{open_cold:8.1f}{number_cold:9.1f}{open_cold / number_cold:7.1f}"
            f"{open_warm:7.2f}{number_warm:9.2f}"
        )
    if options.before:
        for kind, index in (("cold", 0), ("warm", 1)):
            total = [sum(times[index] for times in best[name]) for name in ("now", "before")]
            print(f"plans of numbers, {kind}: now / before = {total[0] / total[1]:.3f}")


if __name__ == "__main__":
    main()
