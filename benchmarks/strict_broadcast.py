"""The cost of watching for accidental broadcasts: rewritten code compared with plain code.

    python -m benchmarks.strict_broadcast

Both forms run in one process, in turn; the least of many runs counts.
"""

from __future__ import annotations

import ast
import timeit
from importlib.resources import files

import numpy as np

from zerostride.lint import checks
from zerostride.lint.loading import compiled
from zerostride.lint.rewrite import MODULE, rewritten

CASES = {
    "int + int": ("a + b", 3, 4),
    "int + 1 (a literal: not rewritten)": ("a + 1", 3, 4),
    "float * float": ("a * b", 3.0, 4.0),
    "str + str": ("a + b", "x", "y"),
    "(8,) - (8,)": ("a - b", np.ones(8), np.ones(8)),
    "(8, 4) - (4,)": ("a - b", np.ones((8, 4)), np.ones(4)),
    "(1000, 100) - (100,)": ("a - b", np.ones((1000, 100)), np.ones(100)),
    "np.add of (8,)": ("np.add(a, b)", np.ones(8), np.ones(8)),
    "8 * (8,)": ("a * b", 8, np.ones(8)),
}


def main() -> None:
    """Prints a table: nanoseconds of each form, and what watching adds."""
    checks.WATCH.enabled = True
    print(f"{'operation':<36} {'plain':>9} {'watched':>9} {'more':>8}  (ns)")
    for name, (expression, a, b) in CASES.items():
        plain, watched = _forms(expression)
        times = [[], []]
        for _ in range(80):
            for k, form in enumerate((plain, watched)):
                timer = timeit.Timer("f(a, b)", globals={"f": form, "a": a, "b": b})
                count = 100 if "1000" in name else 5000
                times[k].append(timer.timeit(count) / count * 1e9)
        before, after = min(times[0]), min(times[1])
        print(f"{name:<36} {before:9.0f} {after:9.0f} {after - before:+8.0f}")
    source = (files("zerostride") / "engines" / "planning.py").read_bytes()
    lines = source.count(b"\n")
    for words, make in (
        ("compiling", lambda: compile(ast.parse(source), "planning.py", "exec")),
        ("rewriting and compiling", lambda: compiled(source, "planning.py")),
    ):
        took = min(timeit.repeat(make, number=5, repeat=5)) / 5
        print(f"{words} {lines} lines: {took * 1e3:.1f} ms")


def _forms(expression):
    source = f"def f(a, b):\n    return {expression}\n"
    found = []
    for tree in (ast.parse(source), rewritten(ast.parse(source), source.encode())):
        scope = {MODULE: checks, "np": np}
        exec(compile(tree, "f.py", "exec"), scope)
        found.append(scope["f"])
    return found


if __name__ == "__main__":
    main()
