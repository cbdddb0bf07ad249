"""The command line: ``python -m campaigns real-models``, ``forks``, ``leaks``."""

from __future__ import annotations

import sys

import click

from .forks import forks
from .leaks import leaks
from .real_models.command import real_models


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Long measurements of zerostride, each a command."""


main.add_command(forks)
main.add_command(leaks)
main.add_command(real_models)

if __name__ == "__main__":
    sys.exit(main())
