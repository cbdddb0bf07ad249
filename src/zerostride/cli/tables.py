"""Tables for terminals of any width, and for files and pipes, which have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: Columns where there is no terminal to ask; and how many a terminal has that is roomy.
UNBOUNDED, ROOMY = 140, 110


def console() -> Console:
    """The terminal, or what stands in for one."""
    from rich.console import Console

    made = Console()
    if not made.is_terminal:
        made.width = UNBOUNDED
    return made


def put_table(made: Console, table: Table) -> None:
    """Prints a table without the blanks that fill its last column."""
    with made.capture() as captured:
        made.print(table)
    lines = (line.rstrip() for line in captured.get().splitlines())
    click.echo("\n".join(lines), color=made.is_terminal or None)
