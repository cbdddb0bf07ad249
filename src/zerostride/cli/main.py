"""The command group, and the conversion of errors to messages and exit statuses."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import click

from ..compute.native import backend, lacking
from ..errors import (
    BroadcastError,
    EngineVersionWarning,
    PluginWarning,
    ZerostrideError,
    printable,
)
from ..system import interrupts
from ..system.version import __version__
from . import options
from .audit import audit
from .bisect import bisect
from .convert import convert
from .engines import engines
from .equivalent import equivalent
from .learn import learn as _learn  # noqa: F401 - adds itself to the group of engines
from .model_shapes import shapes
from .plans import compare, compute, explain
from .port import port
from .run import run
from .tables import put_text
from .verify import verify

#: If set, an internal error is shown with its traceback.
DEBUG = "ZEROSTRIDE_DEBUG"
_COMPLETE = "_ZEROSTRIDE_COMPLETE"
#: The statuses by which shells report an interrupt and a closed pipe.
INTERRUPTED, NO_READER = interrupts.INTERRUPTED, 141
#: The exception of click for a call without arguments; older releases print the help themselves.
_NO_ARGUMENTS: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
#: The most characters of a message: arguments and names from files may have millions.
_LONGEST = 2000


def _show_version(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"zerostride, version {__version__}")
        click.echo(f"backend: {backend()}" + (f"; {lacking()}" if lacking() else ""))
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, and what computes.",
)
def cli() -> None:
    """Tensor broadcasting: what a rule or an engine does with shapes, and with a model's.

    Exit status 0: fine. 1: something was found. 2: bad input.
    """


@cli.command(short_help="Print a script that completes zerostride in a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes zerostride in SHELL; source it from the shell's start file.

    \b
    zerostride completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    if maker is None:
        raise ZerostrideError(f"there is no completion for {shell}")
    try:
        source = maker(cli, {}, "zerostride", _COMPLETE).source()
    except (OSError, RuntimeError) as error:  # click asks the shell for its version
        raise ZerostrideError(f"no completion for {shell}: {error}") from None
    click.echo(source)


_ON_SHAPES = (explain, compare, compute, engines)
_ON_MODELS = (audit, port, convert, verify, bisect, equivalent, run, shapes)
for command in (*_ON_SHAPES, *_ON_MODELS):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits; every error becomes one message and a status."""
    warnings.showwarning = _show_warning
    _prepare_outputs()
    try:
        interrupts.raise_again()
        status = _run(arguments)
    except KeyboardInterrupt:  # while an error was being printed
        status = INTERRUPTED
    interrupts.end_silently()
    interrupts.be_handled()
    _silence()
    sys.exit(status)


def _prepare_outputs() -> None:
    """Makes standard streams exist and accept every character."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        # An encoding without a character (an arrow, in ASCII) shows its escape.
        if hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="backslashreplace")


def _run(arguments: Sequence[str] | None) -> int:
    output = sys.stdout
    try:
        status = cli.main(
            arguments, prog_name="zerostride", standalone_mode=False, complete_var=_COMPLETE
        )
        sys.stdout.flush()  # raises at the latest here if the disk is full or the reader is gone
        return status if isinstance(status, int) else 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit as stop:
        # click catches a broken pipe and exits with 1, which here means "found". Its newer releases
        # raise that later, and put a wrapper around the output first.
        if isinstance(stop.__context__, OSError) or sys.stdout is not output:
            return NO_READER
        return stop.code if isinstance(stop.code, int) else options.BAD_INPUT
    except click.ClickException as error:
        return _say_usage(error, as_json=_wants_json(arguments))
    except BroadcastError as error:
        for line in str(error).splitlines():
            _put_line(printable(_cut(line)))
        return options.exit_status(error)
    except ZerostrideError as error:
        return _say(str(error), as_json=_wants_json(arguments))
    except MemoryError as error:
        message = f"not enough memory: {error}" if str(error) else "not enough memory"
        return _say(message, as_json=_wants_json(arguments))
    except BrokenPipeError:
        return NO_READER
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"{where}{error.strerror or error}", as_json=_wants_json(arguments))
    except Exception as error:  # noqa: BLE001 - a fault of ours; a user gets a line all the same
        if os.environ.get(DEBUG):
            traceback.print_exc()
        return _say(
            f"internal error ({type(error).__name__}: {_cut(str(error), 200)}); please report it "
            f"with the command and its files; {DEBUG}=1 shows where it happened",
            as_json=_wants_json(arguments),
        )


def _wants_json(arguments: Sequence[str] | None) -> bool:
    """Whether the arguments have --json; a failed call does not report it."""
    return "--json" in (sys.argv[1:] if arguments is None else arguments)


def _say(message: str, *, as_json: bool = False) -> int:
    """Prints one line to the error output; under --json also a document."""
    if as_json:
        _put_refusal("bad_input", message)
    _put_line(f"zerostride: {printable(_cut(message))}")
    return options.BAD_INPUT


def _say_usage(error: click.ClickException, *, as_json: bool) -> int:
    """Prints the usage and the error of a wrong call."""
    if as_json:
        _put_refusal("usage", error.format_message())
    if isinstance(error, _NO_ARGUMENTS):
        _put_line(error.format_message())  # no command: the help
        return options.BAD_INPUT
    if isinstance(error, click.UsageError) and error.ctx is not None:
        path = error.ctx.command_path
        _put_line(f"{error.ctx.get_usage()}\nTry '{path} -h' for help.\n")
    option = getattr(error, "option_name", "")
    hint = " A shape that starts with a minus goes after --." if option[1:2].isdigit() else ""
    # click writes choices on lines of their own.
    message = " ".join(error.format_message().split())
    _put_line(f"Error: {printable(_cut(message))}{hint}")
    return options.BAD_INPUT


def _put_refusal(reason: str, detail: str) -> None:
    """Prints a refusal as JSON, unless the output itself fails."""
    with suppress(OSError):
        options.put_json({"ok": False, "reason": reason, "detail": detail})


def _put_line(text: str) -> None:
    """Prints a line to the error output; if that fails too, only the status remains."""
    with suppress(OSError):
        put_text(text, err=True)


def _cut(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _silence() -> None:
    """Discards unwritten output, because Python flushes again at exit and would report it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            try:
                os.dup2(nowhere, stream.fileno())
            except (OSError, ValueError, AttributeError):
                continue  # no file behind it, so no error at exit


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    """Prints our warnings as a line; hides those of other packages."""
    if issubclass(category, EngineVersionWarning | PluginWarning):
        _put_line(f"warning: {message}")
