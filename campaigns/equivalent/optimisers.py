"""The optimisers that are installed: each makes a model of a model, whole or by one pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec

from . import passes as by
from .passes import Optimise, Passes, Without
from .result import NOTHING


@dataclass(frozen=True, slots=True)
class Optimiser:
    """An optimiser.

    Attributes:
        name: what it is called.
        package: the package that has it.
        whole: makes a model as a user gets it.
        nothing: reads and writes a model, with every pass left out.
        passes: each of its passes by name, alone.
        without: the whole with one pass left out; None where it leaves none out.
        listed: whether `--passes` runs them all; else they run only where the whole differs.
        first: passes with which every other begins.
    """

    name: str
    package: str
    whole: Optimise
    nothing: Optimise
    passes: Passes
    without: Without | None = None
    listed: bool = True
    first: frozenset[str] = frozenset()

    @property
    def release(self) -> str:
        """The release of its package."""
        return version(self.package)

    def steps(self) -> Iterator[tuple[str, Optimise]]:
        """Yield reading and writing alone, then each pass, by name."""
        yield NOTHING, self.nothing
        yield from self.passes().items()

    @property
    def begins(self) -> frozenset[str]:
        """The steps whose models leave the others nothing to do but what they do themselves."""
        return self.first | {NOTHING}


def optimisers() -> dict[str, Optimiser]:
    """The installed optimisers, by name."""
    return {one.name: one for one in _every() if find_spec(one.package) is not None}


def _every() -> Iterator[Optimiser]:
    yield Optimiser(
        "onnxsim",
        "onnxsim",
        by.by_onnxsim,
        by.onnxsim_nothing,
        by.onnxsim_passes,
        by.onnxsim_without,
    )
    yield Optimiser(
        "onnxslim",
        "onnxslim",
        by.by_onnxslim,
        by.onnxslim_nothing,
        by.onnxslim_passes,
        by.onnxslim_without,
        first=frozenset({by.SHAPE_INFERENCE}),
    )
    yield Optimiser(
        "onnxscript", "onnxscript", by.by_onnxscript, by.onnxscript_nothing, by.onnxscript_passes
    )
    yield Optimiser(
        "onnxoptimizer",
        "onnxoptimizer",
        lambda model: by.by_onnxoptimizer(model, by.onnxoptimizer_passes()),
        by.onnxoptimizer_nothing,
        by.onnxoptimizer_passes,
        by.onnxoptimizer_without,
    )
    for word in ("basic", "extended", "all"):
        level = f"ORT_ENABLE_{word.upper()}"
        yield Optimiser(
            f"onnxruntime {word}",
            "onnxruntime",
            partial(by.by_onnxruntime, level=level),
            partial(by.onnxruntime_nothing, level=level),
            partial(by.onnxruntime_passes, level),
            partial(by.onnxruntime_without, level=level),
            listed=word == "all",
        )
