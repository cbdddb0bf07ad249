"""``python -m campaigns bisect``: networks with one broadcast read another way, and untouched ones.

Each case is a network of ONNX, a pair of engines, and the files that real converters make for them.
In one form of the network a constant lies along other axes. Bisection of the network and that form
must find the node and name the axes; bisection of the network with itself must find nothing.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import monotonic
from types import SimpleNamespace

import numpy as np
import onnx
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

import zerostride as zs
from zerostride.errors import ZerostrideError
from zerostride.models.bisection import Culprit
from zerostride.models.findings import Outcome
from zerostride.runtimes.process import engines_kept

from ..real_models.convert import convert
from .bisect_graphs import CUBE, chain, misread, saved

#: An engine to the converter that makes its files; "": it runs the ONNX file.
CONVERTERS = {"onnxruntime": "", "openvino": "openvino", "mnn": "mnnconvert", "ncnn": "pnnx"}
#: The engine of the model and that of the other side. ncnn's files have no batch axis, so they are
#: the other side.
PAIRS = (
    *(("onnxruntime", "openvino"), ("onnxruntime", "ncnn"), ("onnxruntime", "mnn")),
    *(("openvino", "ncnn"), ("openvino", "mnn"), ("mnn", "ncnn")),
)
#: A fault counts if an output differs by this part of the largest number.
_VISIBLE = 1e-2


@dataclass
class Counts:
    """The results of one pair.

    Attributes:
        cases: networks with a fault, and as many without, which have no other fault.
        culprits: faults whose node was found.
        causes: faults whose axes were named.
        false: untouched networks with a culprit, though the engine's outputs are right.
        wrong: untouched networks with a real culprit: the outputs are wrong, or those of the
            network that ends there.
        left: networks that a converter or an engine refused or changed: the faulty file does not
            compute the faulty network.
        failures: what went wrong, in words.
    """

    cases: int = 0
    culprits: int = 0
    causes: int = 0
    false: int = 0
    wrong: int = 0
    left: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Case:
    """A network, its faulty form, and the node and the constant of the fault."""

    seed: int
    files: tuple[Path, Path]
    node: str
    constant: str
    feed: np.ndarray

    def named_by(self, cause: str) -> bool:
        """Whether a cause names the axes that the constant leaves and those that it goes to.

        Converters give constants other names and join them with others, so neither the name nor the
        axes that stay count. ncnn's files have no batch axis.
        """
        match = re.search(r"goes to ax[ie]s ([\d, ]+); the model means ax[ie]s ([\d, ]+)", cause)
        if match is None:
            return False
        read, meant = ({int(axis) for axis in axes.split(",")} for axes in match.groups())
        left, gone = (_axes(_shape(file, self.constant)) for file in self.files)
        return any(
            (meant - read, read - meant)
            == ({a - k for a in left - gone}, {a - k for a in gone - left})
            for k in (0, 1)
        )


def _shape(file: Path, constant: str) -> tuple[int, ...]:
    tensors = onnx.load(file).graph.initializer
    return next(tuple(tensor.dims) for tensor in tensors if tensor.name == constant)


def _axes(shape: tuple[int, ...]) -> set[int]:
    """The axes of a cube along which an operand of this shape has numbers."""
    return {axis + 4 - len(shape) for axis, size in enumerate(shape) if size != 1}


def draw(seed: int, folder: Path) -> _Case:
    """The first network from a seed on whose fault changes an output."""
    import onnxruntime

    feed = np.random.default_rng(seed).uniform(-1, 1, CUBE).astype(np.float32)
    turn = seed * 1000
    while True:
        model = chain(turn, shape=CUBE)
        fault = misread(model, turn)
        if fault is not None:
            files = saved(model, folder / "model.onnx"), saved(fault[0], folder / "faulty.onnx")
            right, wrong = (
                onnxruntime.InferenceSession(str(file)).run(None, {"x": feed})[0] for file in files
            )
            if np.abs(right - wrong).max() > _VISIBLE * np.abs(right).max():
                return _Case(turn, files, fault[1], fault[2], feed)
        turn += 1


def converted(case: _Case, faulty: bool, engine: str, folder: Path) -> Path | str:
    """The case's file for an engine, with its fault or without; or why there is no file."""
    model = case.files[faulty]
    if not CONVERTERS[engine]:
        return model
    shape = f"x={','.join(map(str, CUBE))}"
    return convert(model, CONVERTERS[engine], (shape,), folder / CONVERTERS[engine])


def judge(case: _Case, pair: tuple[str, str], folder: Path, counts: Counts) -> None:
    """Bisects a case's two forms and counts."""
    model, other, same = (
        converted(case, faulty, engine, folder)
        for faulty, engine in zip((False, True, False), (*pair, pair[1]), strict=True)
    )
    where = f"{pair[0]} and {pair[1]}, network {case.seed}"
    if isinstance(model, str) or isinstance(other, str) or isinstance(same, str):
        counts.left += 1
        return
    inputs = {"x": case.feed}
    if not _agree(zs.verify(case.files[1], pair[1], against=other, inputs=inputs)):
        counts.left += 1  # the converter or the engine makes another fault, or mends this one
        return
    untouched = _culprits(case, model, same, pair)
    if untouched:
        right = _agree(zs.verify(case.files[0], pair[1], against=same, inputs=inputs))
        real = not right or _hidden(case, untouched[0].tensor, pair, folder)
        counts.false += not real
        counts.wrong += real
        words = f"untouched, outputs {'right' if right else 'wrong'}"
        counts.failures.append(f"{where}: {words}; culprits: {_described(untouched)}")
        return
    culprits = _culprits(case, model, other, pair)
    tensor = case.node.replace("n", "t")
    named = any(case.named_by(culprit.cause) for culprit in culprits)
    if not named and _hidden(case, tensor, pair, folder):
        counts.left += 1  # a converter misreads this very constant
        return
    counts.cases += 1
    names = {case.node, tensor}
    counts.causes += named
    counts.culprits += named or any(names & {*c.nodes, c.tensor} for c in culprits)
    if not named:
        words = f"{case.node} reads {case.constant} otherwise"
        counts.failures.append(f"{where}: {words}; culprits: {_described(culprits)}")


def _agree(report: zs.Report) -> bool:
    """Whether the outputs agree, whatever is inside."""
    return all(check.outcome is Outcome.AGREES for check in report.checks if not check.node)


def _hidden(case: _Case, tensor: str, pair: tuple[str, str], folder: Path) -> bool:
    """Whether the network that ends in a culprit's tensor is wrong, so that the rest hides it.

    Both engines' files are checked: the model's own converter may be at fault, too.
    """
    model = onnx.load(case.files[0])
    if tensor not in {name for node in model.graph.node for name in node.output}:
        return False
    shape = onnx.helper.make_tensor_value_info(tensor, onnx.TensorProto.FLOAT, CUBE)
    del model.graph.output[:]
    model.graph.output.append(shape)
    cut = replace(case, files=(saved(model, folder / "cut.onnx"),) * 2)
    files = {engine: converted(cut, False, engine, folder) for engine in pair}
    return any(
        not isinstance(file, str)
        and not _agree(zs.verify(cut.files[0], engine, against=file, inputs={"x": case.feed}))
        for engine, file in files.items()
    )


def _culprits(case: _Case, model: Path, other: Path, pair: tuple[str, str]) -> tuple[Culprit, ...]:
    inputs = {"x": case.feed}
    report = zs.bisect(model, other, inputs=inputs, engine=pair[0], other_engine=pair[1])
    return () if report.bisection is None else report.bisection.culprits


def _described(culprits: tuple[Culprit, ...]) -> str:
    return "; ".join(
        f"{'+'.join(c.nodes)} {c.tensor} ({c.judged.detail}) {c.cause}" for c in culprits
    )


def _cases(options: SimpleNamespace) -> Iterator[int]:
    start = monotonic()
    numbers = range(options.first, options.first + options.cases)
    for number in track(numbers, "networks", console=Console(stderr=True)):
        if monotonic() - start > options.seconds:
            return
        yield number


def run(options: SimpleNamespace) -> int:
    """Runs the campaign; returns the exit status."""
    table = {pair: Counts() for pair in PAIRS}
    with engines_kept():
        for number in _cases(options):
            pair = PAIRS[number % len(PAIRS)]
            with tempfile.TemporaryDirectory(prefix="zerostride-") as folder:
                place = Path(folder)
                try:
                    judge(draw(options.seed * 100_000 + number, place), pair, place, table[pair])
                except ZerostrideError as error:
                    table[pair].left += 1
                    table[pair].failures.append(f"network {number}: {error}")
    if options.as_json:
        print(json.dumps({f"{a} {b}": asdict(counts) for (a, b), counts in table.items()}))
    else:
        _print(table)
    total = list(table.values())
    if not sum(counts.cases for counts in total):
        return 2
    return int(any(c.culprits < c.cases or c.causes < c.cases or c.false for c in total))


def _print(table: dict[tuple[str, str], Counts]) -> None:
    console = Console()
    rows = Table(box=box.SIMPLE_HEAD)
    numbers = ("cases", "culprits", "causes", "false", "wrong", "left")
    for title in ("model on", "other on", *numbers):
        rows.add_column(title, justify="right" if title in numbers else "left")
    for pair, counts in table.items():
        rows.add_row(*pair, *(str(getattr(counts, name)) for name in numbers))
    console.print(rows)
    for counts in table.values():
        for words in counts.failures:
            console.print(words, markup=False, soft_wrap=True)
    cases, culprits, false = (
        sum(getattr(counts, name) for counts in table.values())
        for name in ("cases", "culprits", "false")
    )
    print(f"{culprits} of {cases} faults found; {false} false culprits in networks without a fault")


__all__ = ["PAIRS", "Counts", "draw", "judge", "run"]
