"""The optimisers that are installed: each makes a model of a model, whole or by one pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec

from . import passes as by
from .passes import Optimise, Passes
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
        listed: whether `--passes` runs them all; else they run only where the whole differs.
    """

    name: str
    package: str
    whole: Optimise
    nothing: Optimise
    passes: Passes
    listed: bool = True

    @property
    def release(self) -> str:
        """The release of its package."""
        return version(self.package)

    def steps(self) -> Iterator[tuple[str, Optimise]]:
        """Yield reading and writing alone, then each pass, by name."""
        yield NOTHING, self.nothing
        yield from self.passes().items()


def optimisers() -> dict[str, Optimiser]:
    """The installed optimisers, by name."""
    return {one.name: one for one in _every() if find_spec(one.package) is not None}


def _every() -> Iterator[Optimiser]:
    yield Optimiser("onnxsim", "onnxsim", by.by_onnxsim, by.onnxsim_nothing, by.onnxsim_passes)
    yield Optimiser("onnxslim", "onnxslim", by.by_onnxslim, by.onnxslim_nothing, by.onnxslim_passes)
    yield Optimiser(
        "onnxscript", "onnxscript", by.by_onnxscript, by.onnxscript_nothing, by.onnxscript_passes
    )
    yield Optimiser(
        "onnxoptimizer",
        "onnxoptimizer",
        lambda model: by.by_onnxoptimizer(model, by.onnxoptimizer_passes()),
        by.onnxoptimizer_nothing,
        by.onnxoptimizer_passes,
    )
    for word in ("basic", "extended", "all"):
        level = f"ORT_ENABLE_{word.upper()}"
        yield Optimiser(
            f"onnxruntime {word}",
            "onnxruntime",
            partial(by.by_onnxruntime, level=level),
            partial(by.onnxruntime_nothing, level=level),
            partial(by.onnxruntime_passes, level),
            listed=word == "all",
        )
