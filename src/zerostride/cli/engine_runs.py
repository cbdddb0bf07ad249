"""Commands that run a model on engines: the options that they share, and the run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from ..engines.table import ENGINES
from ..errors import ZerostrideError
from . import inputs, reporting
from .options import FOUND, Parsed, combine, no_words, put_json
from .options import of_model as model_options
from .progress import bar

if TYPE_CHECKING:
    from ..models.findings import Report
    from ..models.options import ModelOptions

F = TypeVar("F", bound=Callable[..., Any])


def _python(word: str) -> tuple[str, str]:
    """An engine and its interpreter."""
    engine, equals, path = word.partition("=")
    if not equals or engine not in ENGINES or not path:
        raise ZerostrideError(f"--python {word[:80]!r}: write ENGINE=PATH, paddle=/bin/python")
    return engine, path


@dataclass(frozen=True, slots=True)
class EngineRun:
    """The options that these commands share.

    Attributes:
        model: what the command line says of the model.
        arguments: the arguments of the function that runs, by name.
        reports: files of reports.
    """

    model: ModelOptions
    arguments: dict[str, Any]
    reports: tuple[str, ...]

    def carry_out(
        self, run: Callable[..., Report], model: str, show: Callable[[Report], None] | None
    ) -> int:
        """Runs with a progress bar, writes reports, and prints; returns the exit status.

        Args:
            run: the function, with the command's own arguments.
            model: a file.
            show: prints; None: JSON.
        """
        with bar(model) as told:
            report = run(model, progress=told, **self.arguments)
        reporting.save(self.reports, report)
        if show is None:
            put_json(report.as_dict())
        else:
            show(report)
        return 0 if report.ok else FOUND


def options(seed: str, timeout: str, *of_model: str) -> Callable[[F], F]:
    """The options; the command gets them as `asked`, an EngineRun.

    Args:
        seed, timeout: the help of these two.
        of_model: fields of ModelOptions, as for :func:`.options.of_model`.
    """
    shared = (
        inputs.options,
        click.option("--seed", type=click.IntRange(0), default=0, help=seed),
        click.option("--timeout", type=click.FloatRange(0, min_open=True), help=timeout),
        click.option(
            "--python",
            "pythons",
            type=Parsed("ENGINE=PATH", _python, no_words),
            multiple=True,
            metavar="ENGINE=PATH",
            help="The interpreter for an engine that needs an environment of its own.",
        ),
        reporting.reports,
        model_options(*of_model),
    )

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def command(
            *args: Any, given: ModelOptions, reports: tuple[str, ...], **keywords: Any
        ) -> Any:
            arguments = {name: keywords.pop(name) for name in ("seed", "timeout")}
            arguments |= {"inputs": keywords.pop("feeds"), "pythons": dict(keywords.pop("pythons"))}
            fields = (*of_model, "sizes", "input_shapes")
            arguments |= {name: getattr(given, name) for name in fields}
            return function(*args, asked=EngineRun(given, arguments, reports), **keywords)

        return cast(F, combine(*shared)(command))

    return decorate
