"""Tables for terminals of any width, and for files and pipes without a width."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: The columns of a file or pipe, and the least columns of a roomy terminal.
UNBOUNDED, ROOMY = 140, 110


def console() -> Console:
    """The terminal, or a console of unbounded width for a file or pipe."""
    from rich.console import Console

    terminal = Console()
    if not terminal.is_terminal:
        terminal.width = UNBOUNDED
    return terminal


def put_table(terminal: Console, table: Table) -> None:
    """Prints a table without the blanks that fill its last column."""
    with terminal.capture() as captured:
        terminal.print(table)
    lines = (line.rstrip() for line in captured.get().splitlines())
    click.echo("\n".join(lines), color=terminal.is_terminal or None)
