"""The command line: ``python -m campaigns COMMAND``.

Exit status 0: no disagreement; 1: at least one; 2: bad input, or nothing could be run.
"""

from __future__ import annotations

import sys

import click

from zerostride.runtimes.probe.command import run_command

from .all import every
from .architectures.command import architectures
from .blind import blind
from .commands import COMMANDS
from .equivalent.command import equivalent
from .forks import forks
from .hostile.command import hostile
from .leaks import leaks
from .learn import learn
from .real_models.command import chains, mutants, real_models
from .releases import releases
from .strict_alarms.command import strict_alarms


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def campaigns() -> None:
    """Long measurements of zerostride, each a command."""


for command in (
    *COMMANDS,
    architectures,
    equivalent,
    real_models,
    chains,
    mutants,
    forks,
    hostile,
    leaks,
    learn,
    blind,
    releases,
    strict_alarms,
    every,
):
    campaigns.add_command(command)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    return run_command(campaigns, "python -m campaigns", arguments)


if __name__ == "__main__":
    sys.exit(main())
