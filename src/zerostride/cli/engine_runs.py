"""Commands that run a model on engines: the options that they share, and the run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from ..engines.table import ENGINES
from ..errors import ZerostrideError
from . import inputs, reporting
from .options import FOUND, Parsed, combine, no_words, put_json
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


def options(seed: str, timeout: str) -> Callable[[F], F]:
    """The options; the command gets them as `asked`, arguments of the function that runs.

    Args:
        seed, timeout: the help of these two.
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
    )

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def command(*args: Any, **keywords: Any) -> Any:
            asked = {name: keywords.pop(name) for name in ("seed", "timeout")}
            asked |= {"inputs": keywords.pop("feeds"), "pythons": dict(keywords.pop("pythons"))}
            return function(*args, asked=asked, **keywords)

        return cast(F, combine(*shared)(command))

    return decorate


def carry_out(
    run: Callable[..., Report],
    model: str,
    given: ModelOptions,
    reports: tuple[str, ...],
    show: Callable[[Report], None] | None,
) -> int:
    """Runs with a progress bar, writes reports, and prints; returns the exit status.

    Args:
        run: the function, with the command's own arguments.
        model: a file.
        given: the model's options.
        reports: files of reports.
        show: prints; None: JSON.
    """
    names = ("batch_axis", "facts", "sizes", "input_shapes")
    with bar(model) as told:
        report = run(model, progress=told, **{name: getattr(given, name) for name in names})
    reporting.save(reports, report)
    if show is None:
        put_json(report.as_dict())
    else:
        show(report)
    return 0 if report.ok else FOUND
