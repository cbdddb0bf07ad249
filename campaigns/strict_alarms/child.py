"""Runs one package's driver in strict mode; prints a JSON object.

    python -m campaigns.strict_alarms.child PACKAGE

It runs in the interpreter that has the package.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from importlib import import_module
from importlib.metadata import version
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

import zerostride as zs
from zerostride.lint import torch_mode
from zerostride.lint.torch_accident import TorchAccident
from zerostride.lint.torch_frames import is_installed, site_of
from zerostride.lint.torch_table import OPERANDS

from .table import DRIVERS


class Counter(TorchFunctionMode):  # type: ignore[misc]
    """Counts the lines of installed packages that broadcast tensors of two shapes.

    Attributes:
        lines: their files and numbers.
    """

    def __init__(self) -> None:
        self.lines: set[tuple[str, int]] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Calls the function."""
        count = OPERANDS.get(func)
        if count is not None:
            shapes = torch_mode._shapes(torch_mode._operands(count, args, kwargs or {}))
            if shapes is not None and len({shape for shape in shapes if shape}) > 1:
                frame = sys._getframe(1)
                while frame.f_back is not None and frame.f_code.co_filename == torch_mode.__file__:
                    frame = frame.f_back
                site = site_of(frame, func)
                if site is not None and is_installed(site.frame.f_code.co_filename):
                    self.lines.add((site.frame.f_code.co_filename, site.frame.f_lineno))
        return func(*args, **(kwargs or {}))


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.accidents: dict[tuple[str, int], TorchAccident] = {}

    def emit(self, record: logging.LogRecord) -> None:
        accident = record.args[0] if isinstance(record.args, tuple) and record.args else None
        if isinstance(accident, TorchAccident):
            self.accidents.setdefault((accident.path, accident.line), accident)


def main(package: str) -> int:
    """Prints what was called, and what strict mode reported."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    module, name = DRIVERS[package]
    driver = getattr(import_module(f"{__package__}.{module}"), name)
    records, counter = _Records(), Counter()
    logging.getLogger("zerostride.strict").addHandler(records)
    failed, calls = {}, 0
    # Strict mode is asked first, so that the counter is no line of the package's caller.
    with counter, zs.strict(level="log"):
        for name, call in driver():
            calls += 1
            try:
                call()
            except Exception as error:  # noqa: BLE001 - a package's own refusal is a row
                failed[name] = f"{type(error).__name__}: {error}"[:200]
    result = {
        "package": package,
        "version": version(package),
        "calls": calls - len(failed),
        "failed": failed,
        "lines": len(counter.lines),
        "alarms": [
            {
                "file": one.path,
                "line": one.line,
                "source": one.source,
                "shapes": [list(shape) for shape in one.shapes],
                "inside": one.inside,
                "called": one.called.partition(": ")[2],
            }
            for one in records.accidents.values()
        ],
    }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
