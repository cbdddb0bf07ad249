"""run: computes a model by the rules of its file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ..errors import ZerostrideError
from . import options
from .files import open_array, write_array

if TYPE_CHECKING:
    from ..models.ir.graph import Array, Graph
    from ..models.options import ModelOptions

#: The most bytes of a .json file of numbers, and of an unpacked archive.
MAX_JSON, MAX_UNPACKED = 2**28, 2**32
#: Outputs of up to so many elements are printed in numbers, others as statistics.
MOST_SHOWN = 20
#: The most elements that --print and --json print.
MOST_PRINTED = 100_000


@click.command(short_help="Compute a model with NumPy, by the rules that its file says.")
@click.argument("model", type=click.Path())
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="An input: NAME=FILE.npy, NAME=FILE.json or numbers, NAME=[1,2,3]; or FILE.npz, whose "
    "arrays have the names of inputs. May be given again.",
)
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
    inputs: tuple[str, ...],
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
    zerostride run model.onnx --random 0 --set N=4
    """
    from ..models.execute import execute
    from ..models.execute.inputs import described
    from ..models.execute.random_inputs import random_inputs

    targets = _targets(outputs)
    graph = given.read(model)
    arrays = _inputs(inputs)
    if seed is not None:
        arrays |= random_inputs(graph, seed, arrays)
    elif graph.inputs and not arrays:
        raise ZerostrideError(
            f"{model}: its inputs are {described(graph.inputs)}; give each as --input NAME=FILE, "
            "or make them up with --random SEED"
        )
    results = execute(graph, arrays, _wanted(graph, targets), limit=limit)
    written = _write(results, targets, graph)
    if as_json:
        summaries = {name: _as_dict(array, whole=show) for name, array in results.items()}
        options.put_json({"ok": True, "model": model, "outputs": summaries, "written": written})
        return 0
    for name, array in results.items():
        click.echo(_line(name, array, whole=show))
    for path in written.values():
        click.echo(f"wrote {path}", err=True)
    return 0


def _inputs(words: Sequence[str]) -> dict[str, Any]:
    """Arrays by name, from the words of --input."""
    arrays: dict[str, Any] = {}
    for word in words:
        for name, array in _input(word).items():
            if name in arrays:
                raise ZerostrideError(f"--input: {name!r} is given twice")
            arrays[name] = array
    return arrays


def _input(word: str) -> dict[str, Any]:
    name, equals, value = word.partition("=")
    if not equals:
        if word.lower().endswith(".npz"):
            return dict(_archive(word))
        raise ZerostrideError(f"--input {word[:80]!r}: write NAME=FILE.npy, or name an .npz file")
    if not name or not value:
        raise ZerostrideError(f"--input {word[:80]!r}: write NAME=FILE or NAME=NUMBERS")
    ending = value.lower()
    if ending.endswith(".npy"):
        return {name: open_array(value)}
    if ending.endswith(".npz"):
        arrays = dict(_archive(value))
        if name not in arrays and len(arrays) != 1:
            raise ZerostrideError(
                f"{value}: it has no array {name!r} (arrays: {', '.join(arrays)})"
            )
        return {name: arrays.get(name, next(iter(arrays.values())))}
    if ending.endswith(".json"):
        return {name: _numbers(_text(value), value)}
    return {name: _numbers(value, f"--input {name}")}


def _archive(path: str) -> Mapping[str, Array]:
    try:
        with zipfile.ZipFile(path) as archive:
            weight = sum(entry.file_size for entry in archive.infolist())
        if weight > MAX_UNPACKED:
            raise ZerostrideError(f"{path}: {weight} bytes once unpacked; at most {MAX_UNPACKED}")
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except OSError as error:
        raise ZerostrideError(f"{path}: {error.strerror or error}") from None
    except ZerostrideError:
        raise
    except Exception as error:  # noqa: BLE001 - zipfile, zlib and NumPy raise of every kind
        raise ZerostrideError(f"{path}: not a readable .npz file ({error})") from None


def _text(path: str) -> str:
    try:
        if Path(path).stat().st_size > MAX_JSON:
            raise ZerostrideError(f"{path}: too large for numbers as text; give a .npy file")
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ZerostrideError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ZerostrideError(f"{path}: not a text file") from None


def _numbers(text: str, where: str) -> Any:
    """A number, or nested lists of them."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise ZerostrideError(f"{where}: {text[:80]!r} is no .npy file and no numbers") from None
    if not isinstance(data, int | float | list):
        raise ZerostrideError(f"{where}: {text[:80]!r} is no list of numbers")
    try:
        array = np.asarray(data)
    except (ValueError, RecursionError, OverflowError) as error:
        raise ZerostrideError(f"{where}: {error}") from None
    if array.dtype.kind not in "biuf":
        raise ZerostrideError(f"{where}: {text[:80]!r} is no list of numbers")
    return data


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
