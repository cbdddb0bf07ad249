"""One module an engine, all with one small interface; `RUNNERS` is the table.

A module's ``load()`` imports the engine (ImportError where it is not installed) and returns a
:class:`Runner`. An op takes the case's attributes, the operands and the target shape, and returns
the result as an array, or raises: :class:`Refused`, or one of the exceptions by which the engine
refuses. Any other exception is a bug of the runner and is reported as one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, cast

from ..case import Array, Shape

Attrs = Mapping[str, Any]
Perform = Callable[[Attrs, Sequence[Array], Shape], Array]


class Refused(Exception):  # noqa: N818 - the engine's no, where it has no exception for it
    """The engine refused without an exception: by an empty answer, a status, a printed line."""


@dataclass(frozen=True, slots=True)
class Runner:
    """An engine, loaded.

    Attributes:
        version: the release that is installed.
        ops: the functions that run ops, by the engine's names.
        refusals: the exceptions by which the engine refuses.
    """

    version: str
    ops: Mapping[str, Perform]
    refusals: tuple[type[BaseException], ...] = ()


class RunnerModule(Protocol):
    """The interface of every module here."""

    def load(self) -> Runner:
        """Imports the engine; ImportError where it is not installed."""
        ...


#: Engine to its module in this package.
RUNNERS: Mapping[str, str] = MappingProxyType(
    {
        "numpy": "numpy_",
        "torch": "torch_",
        "tensorflow": "tensorflow_",
        "jax": "jax_",
        "onnxruntime": "onnxruntime_",
        "openvino": "openvino_",
        "paddle": "paddle_",
        "ncnn": "ncnn_",
        "mnn": "mnn_",
        "litert": "litert_",
    }
)


def load_runner(engine: str) -> Runner:
    """The runner of an engine, its package imported; ImportError where it is not installed."""
    module = cast(RunnerModule, importlib.import_module(f"{__name__}.{RUNNERS[engine]}"))
    return module.load()


def elementwise(function: Callable[..., Any], to_array: Callable[[Any], Array]) -> Perform:
    """An op that takes the operands as they are."""

    def perform(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
        return to_array(function(*operands))

    return perform
