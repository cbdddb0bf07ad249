"""The runner of a Python file of a user: `NAME`, `DISTRIBUTION`, `NAMES` and a function `run`.

`run(op, arrays, target)` computes one op on NumPy arrays, or raises.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from ...ops import Op
from ..task import Array
from . import Attrs, Refused, Runner, Shape


def load(path: str) -> Runner:
    """Imports the file.

    Raises:
        ImportError: the file, or a package that it imports, cannot be imported.
    """
    spec = importlib.util.spec_from_file_location("runner", path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ImportError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(getattr(module, "run", None)):
        raise ImportError(f"{path} has no function run(op, arrays, target)")

    def call(name: str, attrs: Attrs, arrays: Sequence[Array], target: Shape) -> Array:
        aim = attrs.get("target")
        result = module.run(name, list(arrays), None if aim is None else tuple(aim))
        if result is None:
            raise Refused("it returned nothing")
        array: Array = result
        return array

    return Runner(_version(module), call, (Exception,), _named)


def _version(module: Any) -> str:
    """The release: `VERSION`, or the installed version of `DISTRIBUTION`."""
    version = getattr(module, "VERSION", None)
    if version is not None:
        return str(version)
    try:
        return metadata.version(str(module.DISTRIBUTION))
    except (AttributeError, metadata.PackageNotFoundError) as error:
        raise ImportError(f"the runner names no installed DISTRIBUTION: {error}") from error


def _named(op: Op, attrs: Attrs) -> tuple[str, Attrs]:
    return op.name, attrs


__all__ = ["load"]
