"""run: computes a model by the rules of its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ..errors import ZerostrideError
from . import inputs, options
from .files import write_array
from .tables import put_text

if TYPE_CHECKING:
    from ..models.ir.graph import Array, Graph
    from ..models.options import ModelOptions

#: Outputs of up to so many elements are printed in numbers, others as statistics.
MOST_SHOWN = 20
#: The most elements that --print and --json print.
MOST_PRINTED = 100_000


@click.command(short_help="Compute a model with NumPy, by the rules that its file says.")
@click.argument("model", type=click.Path())
@inputs.options
@click.option("--random", "seed", type=click.IntRange(0), help="Make up what is not given.")
@options.of_model()
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FOLDER|NAME=FILE.npy",
    help="Write every output to a folder, or the tensor NAME to a file. May be given again.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    help="Work that the run may be, in units of some 100 microseconds: turns of loops, nodes run "
    "in them, and what each op takes for its elements; 100000 if not given.",
)
@click.option("--print", "show", is_flag=True, help="Print every output's numbers.")
@options.as_json
def run(
    model: str,
    feeds: dict[str, Any],
    seed: int | None,
    limit: int | None,
    given: ModelOptions,
    outputs: tuple[str, ...],
    show: bool,
    as_json: bool,
) -> int:
    """Compute MODEL on the inputs given and show its outputs.

    \b
    zerostride run model.onnx --input x=x.npy --input 'bias=[1, 2, 3]' -o results/
    zerostride run model.onnx --random 0
    """
    from ..models.execute import execute
    from ..models.execute.inputs import described
    from ..models.execute.random_inputs import random_inputs
    from ..runtimes.feeds import said_of_sizes, with_sizes

    targets = _targets(outputs)
    graph, arrays, chosen = given.read(model), feeds, dict[str, int]()
    if seed is not None:
        graph, own, chosen = with_sizes(given, Path(model), feeds, seed)
        arrays |= random_inputs(graph, seed, own)
    elif graph.inputs and not arrays:
        raise ZerostrideError(
            f"{model}: its inputs are {described(graph.inputs)}; give each as --input NAME=FILE, "
            "or make them up with --random SEED"
        )
    results = execute(graph, arrays, _wanted(graph, targets), limit=limit)
    written = _write(results, targets, graph)
    if as_json:
        summaries = {name: _as_dict(array, whole=show) for name, array in results.items()}
        words = {"outputs": summaries, "written": written, "sizes": chosen}
        options.put_json({"ok": True, "model": model, **words})
        return 0
    for note in said_of_sizes(chosen):
        put_text(f"note: {note}", err=True)
    for name, array in results.items():
        click.echo(_line(name, array, whole=show))
    for path in written.values():
        put_text(f"wrote {path}", err=True)
    return 0


def _targets(words: Sequence[str]) -> dict[str | None, str]:
    """The paths of outputs by name; under None the folder for all."""
    targets: dict[str | None, str] = {}
    for word in words:
        name, equals, path = word.partition("=")
        key = name if equals else None
        if key in targets:
            raise ZerostrideError(f"-o {word[:80]!r}: that output has a place already")
        if equals and not (name and path.lower().endswith(".npy")):
            raise ZerostrideError(f"-o {word[:80]!r}: write NAME=FILE.npy")
        targets[key] = path if equals else word
    return targets


def _wanted(graph: Graph, targets: Mapping[str | None, str]) -> list[str]:
    """The model's outputs, and other tensors to write."""
    names = [value.name for value in graph.outputs]
    return list(dict.fromkeys([*names, *(name for name in targets if name is not None)]))


def _write(
    results: Mapping[str, Array], targets: Mapping[str | None, str], graph: Graph
) -> dict[str, str]:
    paths = {name: path for name, path in targets.items() if name is not None}
    folder = targets.get(None)
    if folder is not None:
        try:
            Path(folder).mkdir(exist_ok=True)
        except OSError as error:
            raise ZerostrideError(f"{folder}: {error.strerror or error}") from None
        taken: set[str] = set()
        for value in graph.outputs:
            if value.name not in paths:
                paths[value.name] = str(Path(folder, _file_name(value.name, taken)))
    for name, path in paths.items():
        write_array(path, results[name])
    return paths


def _file_name(name: str, taken: set[str]) -> str:
    """A file name for a name of the model: without folders, not hidden, unique."""
    plain = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:100].lstrip(".")
    candidate, count = f"{plain or 'output'}.npy", 1
    while candidate in taken:
        count += 1
        candidate = f"{plain or 'output'}_{count}.npy"
    taken.add(candidate)
    return candidate


def _line(name: str, array: Array, *, whole: bool) -> str:
    head = f"{name}  ({','.join(map(str, array.shape))})  {array.dtype}"
    if whole or array.size <= MOST_SHOWN:
        numbers = np.array2string(array, threshold=MOST_PRINTED, separator=", ")
        return (
            f"{head}\n{numbers}" if "\n" in numbers or len(numbers) > 60 else f"{head}  {numbers}"
        )
    stats = _statistics(array)
    return head + "  " + "  ".join(f"{key} {value:g}" for key, value in stats.items())


def _statistics(array: Array) -> dict[str, float]:
    """The statistics of an array; NaN and infinities are counted separately."""
    values = array.astype(np.float64) if array.dtype.kind != "c" else np.abs(array)
    finite = values[np.isfinite(values)]
    statistics = {}
    if finite.size:
        statistics = {
            "min": float(finite.min()),
            "max": float(finite.max()),
            "mean": float(finite.mean()),
        }
    return statistics | (
        {"not finite": values.size - finite.size} if finite.size < values.size else {}
    )


def _as_dict(array: Array, *, whole: bool) -> dict[str, Any]:
    data: dict[str, Any] = {"shape": array.shape, "dtype": str(array.dtype)}
    if array.size <= (MOST_PRINTED if whole else MOST_SHOWN):
        plain = array.astype(np.float64) if array.dtype.kind not in "biufc" else array
        data["data"] = plain.tolist()
    else:
        data["statistics"] = _statistics(array)
    return data
