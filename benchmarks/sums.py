"""python -m benchmarks sums: errors of reductions, of NumPy's and of PyTorch's.

Of 1024 × 1024 numbers along the last axis, along the first, and of all, in each float dtype and of
several kinds. The figure is the largest error of a result, in units of the dtype's rounding (2^-24
for float32): relative to the result or, of sums and means, to what they are of the numbers' sizes,
since numbers that cancel leave any error of the result's own size.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import math
import shlex
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from . import exact
from .printing import NONE, markdown, new_console, new_table
from .rows import Array, Shape, dtype_of

SIZE = 1024
#: Half the distance of 1 from the next number.
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
_HALVES = ("float16", "bfloat16")
#: What is reduced: numpy's axis, and the name of the column.
AXES: dict[str, int | None] = {"last axis": 1, "first axis": 0, "all": None}
LIBRARIES = ("zerostride", "numpy", "torch")


def _positive(rng: np.random.Generator, shape: Shape, _: str) -> Array:
    return rng.random(shape) / 32


def _mixed(rng: np.random.Generator, shape: Shape, _: str) -> Array:
    return rng.standard_normal(shape)


def _cancelling(rng: np.random.Generator, shape: Shape, dtype: str) -> Array:
    """Each number with almost its negative, at a drawn place of its row."""
    half = rng.standard_normal((shape[0], shape[1] // 2))
    left = 0.1 if dtype in _HALVES else 1e-3
    both = np.concatenate([half, half * (rng.random(half.shape) * left - 1)], axis=1)
    return rng.permuted(both, axis=1)


def _range(rng: np.random.Generator, shape: Shape, dtype: str) -> Array:
    """Sizes of every order that fits: ten powers of two in float16, forty otherwise."""
    least, most = (-14, -4) if dtype == "float16" else (-20, 20)
    return 2.0 ** rng.uniform(least, most, shape)


def _offset(rng: np.random.Generator, shape: Shape, _: str) -> Array:
    return 100 + rng.standard_normal(shape)


def _near_1(rng: np.random.Generator, shape: Shape, dtype: str) -> Array:
    """As often below as above, so that a product of a million has a size that fits."""
    width = 1 / 128 if dtype == "float16" else 1 / 32
    return 2.0 ** rng.uniform(-width, width, shape)


#: Kinds of numbers: of a shape, for a dtype.
DATA: dict[str, Callable[[np.random.Generator, Shape, str], Array]] = {
    "positive": _positive,
    "mixed signs": _mixed,
    "cancelling": _cancelling,
    "large range": _range,
    "100 ± 1": _offset,
    "near 1": _near_1,
}


@dataclass(frozen=True)
class Reduction:
    """A reduction: its exact values by rows, and the kinds of numbers that say something of it."""

    exact: Callable[[Array], list[Fraction]]
    data: tuple[str, ...]
    #: Whether numbers of both signs cancel.
    linear: bool = False


REDUCTIONS = {
    "sum": Reduction(
        exact.total, ("positive", "mixed signs", "cancelling", "large range"), linear=True
    ),
    "mean": Reduction(exact.mean, ("positive", "mixed signs"), linear=True),
    "var": Reduction(exact.variance, ("positive", "mixed signs", "large range", "100 ± 1")),
    "logsumexp": Reduction(exact.logsumexp, ("mixed signs", "100 ± 1")),
    "prod": Reduction(exact.product, ("near 1",)),
}


@dataclass(frozen=True)
class Errors:
    """A row of the table: by library and axis, in units of the dtype's rounding."""

    reduction: str
    dtype: str
    data: str
    #: The largest ratio of what the numbers' sizes add up to and what they add up to themselves;
    #: None where they are not just added up.
    condition: float | None
    errors: dict[str, dict[str, float]]


def _zerostride(name: str, axis: int | None) -> Callable[[Array], Any]:
    import zerostride as zs

    if name != "var":
        function = getattr(zs, name)
        return lambda x: function(x, axis=axis)

    def variance(x: Any) -> Any:
        centred = x - zs.mean(x, axis=axis, keepdims=True)
        return zs.mean(centred * centred, axis=axis)

    return zs.fuse(variance)  # type: ignore[no-any-return]


def _numpy(name: str, axis: int | None) -> Callable[[Array], Any]:
    if name != "logsumexp":
        function = getattr(np, name)
        return lambda x: function(x, axis=axis)

    def logsumexp(x: Array) -> Any:
        top = x.max(axis=axis, keepdims=True)
        return np.log(np.exp(x - top).sum(axis=axis)) + top.squeeze(axis)

    return logsumexp


def _torch(name: str, axis: int | None) -> Callable[[Array], Any]:
    import torch

    from .peers.torch_ import to_tensor

    functions: dict[str, Callable[[Any, Any], Any]] = {
        "sum": torch.sum,
        "mean": torch.mean,
        "var": lambda x, dim: torch.var(x, dim, correction=0),
        "logsumexp": torch.logsumexp,
        # Over all it takes no dim.
        "prod": lambda x, dim: torch.prod(x, dim),
    }

    def computed(x: Array) -> Any:
        flat = to_tensor(x.reshape(-1) if axis is None else x)
        # As doubles, in which each of its dtypes is exact.
        return functions[name](flat, axis or 0).double().numpy()

    return computed


_MAKERS = {"zerostride": _zerostride, "numpy": _numpy, "torch": _torch}


def draw(kind: str, dtype: str, size: int = SIZE) -> Array:
    """Numbers of a kind, rounded to the dtype."""
    rng = np.random.default_rng(list(DATA).index(kind))
    return DATA[kind](rng, (size, size), dtype).astype(dtype_of(dtype))


def by_rows(values: Array, axis: int | None) -> Array:
    """The numbers with those that are reduced together in one row."""
    if axis is None:
        return values.reshape(1, -1)
    return values if axis == 1 else values.T


def measure(name: str, dtype: str, kind: str, libraries: Sequence[str], size: int = SIZE) -> Errors:
    """The errors of one row of the table."""
    values = draw(kind, dtype, size)
    errors: dict[str, dict[str, float]] = {library: {} for library in libraries}
    condition: float | None = None
    for label, axis in AXES.items():
        rows = by_rows(values, axis)
        reduction = REDUCTIONS[name]
        right = reduction.exact(rows)
        sizes = reduction.exact(abs(rows)) if reduction.linear else None
        for library in libraries:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore", RuntimeWarning)
                got = np.asarray(_MAKERS[library](name, axis)(values))
            error = exact.relative_error(got, right, sizes)
            errors[library][label] = error / ROUNDING[dtype]
        if sizes is not None:
            condition = max(condition or 0.0, _condition(right, sizes))
    return Errors(name, dtype, kind, condition, errors)


def _condition(right: list[Fraction], sizes: list[Fraction]) -> float:
    pairs = zip(right, sizes, strict=True)
    return max(float(size / abs(one)) if one else math.inf for one, size in pairs)


def _figure(value: float | None) -> str:
    if value is None:
        return NONE
    if value >= 1e4:
        return "∞" if math.isinf(value) else f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
    if 0 < value < 0.01:
        return f"{value:.0e}".replace("e-0", "e-")
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _table(found: Sequence[Errors], libraries: Sequence[str]) -> list[list[str]]:
    head = ["reduction", "dtype", "numbers", "condition"]
    table = [[*head, *(f"{label}: {one}" for label in AXES for one in libraries)]]
    for row in found:
        figures = [row.errors[one].get(label) for label in AXES for one in libraries]
        table.append(
            [
                row.reduction,
                row.dtype,
                row.data,
                *map(_figure, (row.condition, *figures)),
            ]
        )
    return table


def _page(found: Sequence[Errors], libraries: Sequence[str], command: str) -> str:
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    versions = [f"{one} {importlib.metadata.version(one)}" for one in libraries[1:]]
    lines = [
        "# Errors of reductions",
        "",
        f"Made by `{command}` on {date} ({', '.join(versions)}); not edited by hand.",
        "",
        f"Of {SIZE} × {SIZE} numbers along the last axis, along the first, and of all. The figure"
        " is the largest error of a result against the exact one (integers; long doubles for"
        " logsumexp), in units of the dtype's rounding (2^-24 for float32, 2^-53 for float64, 2^-11"
        " for float16, 2^-8 for bfloat16): relative to the result; of sums and means relative to"
        " those of the numbers' sizes, which is the same for numbers of one sign. 1 and less is as"
        " good as a result rounded once. The condition is what the numbers' sizes add up to over"
        " what they add up to, at worst: so many times larger is the error beside the result."
        " NumPy's logsumexp is `log(sum(exp(x − max))) + max`, its bfloat16 that of ml_dtypes; var"
        " is zerostride's fused `mean((x − mean(x))²)`.",
        "",
        *markdown(_table(found, libraries)),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks sums",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", default=list(REDUCTIONS), choices=list(REDUCTIONS))
    parser.add_argument("--dtypes", nargs="+", default=list(ROUNDING), choices=list(ROUNDING))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--write", action="store_true", help="write SUMS.md beside this file")
    options = parser.parse_args(arguments)
    libraries = [one for one in LIBRARIES if one != "torch" or _installed("torch")]
    found = [
        measure(name, dtype, kind, libraries)
        for name in options.only
        for dtype in options.dtypes
        for kind in REDUCTIONS[name].data
    ]
    if options.json:
        print(json.dumps([asdict(row) for row in found], indent=1))
    else:
        head, *body = _table(found, libraries)
        new_console().print(new_table(head, body))
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks", "sums", *arguments])
        page = _page(found, libraries, command)
        (Path(__file__).parent / "SUMS.md").write_text(page, "utf-8")
    return 0


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
