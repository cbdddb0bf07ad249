"""The command group and the one place where errors become lines and exit statuses."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

import click

from .. import __version__
from ..errors import BroadcastError, EngineVersionWarning, ZerostrideError
from . import options
from .audit import audit
from .engines import engines
from .plans import compare, compute, explain


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, package_name="zerostride")
def cli() -> None:
    """Broadcasting as one thing: plan it, explain it, compute it, audit a model's."""


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes zerostride in SHELL; source it from the shell's start file."""
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    if maker is None:
        raise ZerostrideError(f"there is no completion for {shell}")
    click.echo(maker(cli, {}, "zerostride", "_ZEROSTRIDE_COMPLETE").source())


for command in (explain, compare, compute, audit, engines):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits; whatever goes wrong becomes one message and a status."""
    warnings.showwarning = _show_warning
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        status = cli.main(
            arguments, prog_name="zerostride", standalone_mode=False, complete_var=_COMPLETE
        )
        return status if isinstance(status, int) else 0
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return options.BAD_INPUT
    except BroadcastError as error:
        click.echo(str(error), err=True)
        return options.exit_status(error)
    except ZerostrideError as error:
        click.echo(f"zerostride: {error}", err=True)
        return options.BAD_INPUT
    except MemoryError as error:
        click.echo(f"zerostride: not enough memory {error}", err=True)
        return options.BAD_INPUT
    except BrokenPipeError:
        # The reader has gone (head, less): nothing more to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        click.echo(f"zerostride: {error.filename or ''}: {error.strerror or error}", err=True)
        return options.BAD_INPUT


_COMPLETE = "_ZEROSTRIDE_COMPLETE"


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    """Warnings of ours as a line; others stay out of a user's terminal."""
    if issubclass(category, EngineVersionWarning):
        click.echo(f"warning: {message}", err=True)
