"""A new op is a row: its public function, its oracle, its formulas and its page follow from it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: C's `fdim`, added to the table before the package reads it: the row alone, without a kernel.
ADD = """
import sys, types

PACKAGE = sys.argv[1]
for name, path in (("zerostride", PACKAGE), ("zerostride.ops", PACKAGE + "/ops")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from zerostride.ops import arithmetic
from zerostride.ops.model import row

arithmetic.ROWS += (
    row(
        "fdim",
        "The difference where it is positive, 0 elsewhere",
        "[[5, 3], [1, 1]]",
        "torch:- tensorflow:- jax:-",
        numpy="",
        formula=lambda xp, a, b: xp.where(a <= b, xp.zeros_like(a), a - b),
        cost=3,
    ),
)
del sys.modules["zerostride"], sys.modules["zerostride.ops"]

import doctest
import numpy as np
import zerostride as zs

x, y = np.array([[3.0, 1.0], [np.nan, -2.0]], "f"), np.array([2.0, 1.5], "f")
wanted = np.array([[1.0, 0.0], [np.nan, 0.0]], "f")
"""

CHECKS = {
    "a public function": """
assert "fdim" in zs.__all__ and "fdim" in dir(zs)
assert zs.fdim.__name__ == "fdim" and "The difference where" in zs.fdim.__doc__
examples = doctest.DocTestFinder(recurse=False).find(zs.fdim, "fdim", globs={}, module=False)
tried = [doctest.DocTestRunner().run(example) for example in examples]
assert sum(one.attempted for one in tried) == 2 and not any(one.failed for one in tried)
""",
    "an oracle under every rule": """
np.testing.assert_array_equal(zs.fdim(x, y), wanted)
assert zs.fdim(x, y, rule="pdpd", axis=0).tolist()[0] == [1.0, 0.0]
assert zs.fdim(np.uint8([3, 5]), 4).tolist() == [0, 1] and zs.fdim(3, 1.5) == 1.5
assert zs.fdim(x.astype("e"), y.astype("e")).dtype == np.float16
out = np.empty((2, 2), "f")
assert zs.fdim(x, y, out=out) is out and out[0, 0] == 1
try:
    zs.fdim(x, y, engine="torch")
except zs.BroadcastError as error:
    assert "torch has no op for fdim" in str(error)
else:
    raise AssertionError("an engine without the op computed it")
""",
    "a step of fused functions": """
fused = zs.fuse(lambda a, b: zs.fdim(a, b) * 2)
np.testing.assert_array_equal(fused(x, y), 2 * wanted)
assert "fdim" in str(fused.explain(x, y))
""",
    "a formula for every library": """
from zerostride.arrays.library import formulas
from zerostride.arrays.standard import compositions
from zerostride.compute.special import NumPy
np.testing.assert_array_equal(formulas(NumPy())["fdim"](x, y), wanted)
assert "fdim" in compositions(np)
""",
    "computed where an array lies": """
import array_api_strict as strict
there = strict.Device("device1")
result = zs.fdim(strict.asarray(x, device=there), strict.asarray(y, device=there))
assert result.device == there
np.testing.assert_array_equal(np.array(result._array), wanted)
""",
    "names and a page": """
from zerostride.ops import find_op
assert find_op("FDIM").name == "fdim"
sys.path.insert(0, sys.argv[2])
import generate
assert "\\nfdim: Elementwise\\n" in generate.stub() and '    "fdim",\\n' in generate.stub()
""",
}


@pytest.mark.parametrize("fact", CHECKS)
def test_row_gives_an_op(fact):
    if "strict" in CHECKS[fact]:
        pytest.importorskip("array_api_strict", reason="its devices are what is tested")
    command = [sys.executable, "-c", ADD + CHECKS[fact], ROOT / "src/zerostride", ROOT / "docs"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    child = subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
