"""engines: the facts about each engine, and a new measurement of an installed release."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import click

from ..core.rules import RULES
from ..derive import scoreboard as board
from ..engines.installed import installed
from ..engines.model import BROADCAST, Engine
from ..engines.table import ENGINES, find_engine
from ..engines.versions import was_measured
from ..models.format_table import FORMATS
from ..report.scoreboard import scoreboard_page
from ..report.table import Column
from ..system import children
from . import options
from .files import write_whole
from .tables import put_table, put_text


class _WithDefault(click.Group):
    """A group whose command "show" runs where no other is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Adds the name of the command that runs by default."""
        if not args or args[0] not in {*self.commands, "-h", "--help"}:
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_WithDefault, short_help="Show what each engine does, or learn another one.")
def engines() -> None:
    """List the engines, tell all that is known of one, or learn a new one.

    \b
    zerostride engines
    zerostride engines ncnn
    zerostride engines scoreboard
    zerostride engines learn RUNNER.py
    """


@engines.command(short_help="All engines and releases on shapes that they treat differently.")
@click.option(
    *("-o", "--output"),
    type=click.Path(dir_okay=False),
    help="Write a page with every example to this file.",
)
@options.as_json
def scoreboard(output: str | None, as_json: bool) -> int:
    """Show what each engine and release makes of shapes that engines treat differently.

    \b
    zerostride engines scoreboard
    zerostride engines scoreboard -o scoreboard.html
    """
    rows = board.scoreboard()
    if output is not None:
        write_whole(output, scoreboard_page(rows).encode())
    if as_json:
        options.put_json([row.as_dict() for row in rows])
        return 0
    for number, pattern in enumerate(board.PATTERNS, 1):
        put_text(f"{number:2} {pattern.text}: {pattern.words}")
    put_text()
    numbers = [str(number) for number in range(1, len(board.PATTERNS) + 1)]
    columns = [Column("engine", folds=False), *(Column(one, folds=False) for one in numbers)]
    put_table(columns, [[row.name, *(cell.mark for cell in row.cells)] for row in rows])
    put_text(
        "\n" + ", ".join(f"{board.MARKS[kind]} {words}" for kind, words in board.LEGEND.items())
    )
    if output is not None:
        put_text(f"page: {output}")
    else:
        put_text("with every example: zerostride engines scoreboard -o scoreboard.html")
    return 0


@engines.command(short_help="Show what each engine does, or measure one again (the default).")
@click.argument("name", required=False, type=options.engine_pinned, metavar="[NAME]")
@click.option("--measure", is_flag=True, help="Run the installed release again and compare.")
@click.option("--release", help="With --measure: pip installs this release, which then runs.")
@click.option(
    "--cases", type=click.IntRange(1), help="With --measure: the number of generated cases."
)
@options.as_json
def show(
    name: str | None, measure: bool, release: str | None, cases: int | None, as_json: bool
) -> int:
    """List the engines, or tell all that is known of one.

    Exit status 1 if an installed release was not measured, or no longer does what its row says.

    \b
    zerostride engines ncnn
    zerostride engines ncnn --measure
    zerostride engines onnxruntime==1.29.0 --measure --cases 20000
    """
    name, pinned, wanted = (name or "").partition("==")
    release = release or wanted or None
    if not measure:
        for option, given in (("--release", release or pinned), ("--cases", cases)):
            if given:
                raise click.UsageError(f"{option} goes with --measure")
    if measure:
        if not name:
            raise click.UsageError("--measure needs the engine's name")
        words = [name, *(["--json"] if as_json else [])]
        words += ["--release", release] if release is not None else []
        words += ["--cases", str(cases)] if cases is not None else []
        status = subprocess.run(children.module("zerostride.runtimes.probe", *words)).returncode
        return status if status >= 0 else options.BAD_INPUT
    rows = [find_engine(name)] if name else list(ENGINES.values())
    if as_json:
        answers = [_as_dict(row) for row in rows]
        options.put_json(answers[0] if name else answers)
    elif name:
        _details(rows[0])
    else:
        _table(rows)
        if any(was_measured(row) is False for row in rows):
            put_text("! another release than measured: zerostride engines NAME --measure")
        _show_added()
    return options.FOUND if any(was_measured(row) is False for row in rows) else 0


def _as_dict(engine: Engine) -> dict[str, Any]:
    return {
        "name": engine.name,
        "measured": engine.release,
        "measured_too": list(engine.also),
        "run": engine.run,
        "installed": installed(engine.distribution),
        "is_measured": was_measured(engine),
        "source": engine.source,
        "package": ENGINES.source(engine.name) or None,
        "rules": {name: rule.summary for name, rule in engine.elementwise.items()},
        "broadcast_modes": {name: rule.summary for name, rule in engine.to_target.items()},
        "ops": {
            op: {name: rule.summary for name, rule in rules.items()}
            for op, rules in engine.ops.items()
        },
        "max_rank": next(iter(engine.elementwise.values())).max_rank,
        "divergences": [
            {"text": row.text, "effect": row.effect, "source": row.source, "run": row.run}
            for row in engine.divergences
        ],
        "dtypes": dict(engine.dtypes),
    }


def _details(engine: Engine) -> None:
    have = installed(engine.distribution) or "not installed"
    how = "measured" if engine.run else "read, not run:"
    basis = f"{how} {', '.join(engine.measured)}"
    put_text(f"{engine.name}  {basis}; installed: {have}")
    if engine.why:
        put_text(f"  {engine.why}")
    put_text(f"  source: {engine.source}")
    package = ENGINES.source(engine.name)
    if package:
        put_text(f"  added by {package}")
    for title, rules in (("element-wise", engine.elementwise), ("broadcast op", engine.to_target)):
        for name, rule in rules.items():
            limit = f" Up to rank {rule.max_rank}." if rule.max_rank is not None else ""
            put_text(f"  {title} {name}: {rule.summary}{limit}")
    for op, rules in engine.ops.items():
        put_text(f"  {op}: {next(iter(rules.values())).summary}")
    for words in _typed_lines(engine):
        put_text(f"  {words}")
    for row in engine.divergences:
        how = "run" if row.run else "read"
        source = "" if row.source == engine.source else f": {row.source}"
        put_text(f"  ! {row.text} [{row.effect}; {how}{source}]")


def _typed_lines(engine: Engine) -> Iterator[str]:
    """The ops whose default rule is another on some element types."""
    alike: dict[tuple[str, str], list[str]] = {}
    for (op, dtype), rules in engine.typed.items():
        usual = engine.to_target if op == BROADCAST else engine.ops.get(op, engine.elementwise)
        summary = next(iter(rules.values())).summary
        if summary != next(iter(usual.values())).summary:
            alike.setdefault((op, summary), []).append(dtype)
    for (op, summary), dtypes in alike.items():
        yield f"{op} of {', '.join(dtypes)}: {summary}"


def _show_added() -> None:
    """Prints the rules and formats of other packages, which have no row above."""
    for kind, table in (("rule", RULES), ("format", FORMATS)):
        for name in table:
            if table.source(name):
                put_text(f"{kind} {name}: added by {table.source(name)}")


def _table(rows: list[Engine]) -> None:
    """Prints a row per engine; the modes of the Broadcast op if there is room."""
    packages = {row.name: ENGINES.source(row.name) for row in rows}
    added = any(packages.values())
    columns = [
        *(Column(title, folds=False) for title in ("engine", "measured", "installed")),
        Column("rules"),
        Column("broadcast op", roomy=True),
        *(Column(title, folds=False) for title in ("axes", "known", "added by")),
    ]
    cells = [[*_row(row), packages[row.name]] for row in rows]
    put_table(columns if added else columns[:-1], cells if added else [c[:-1] for c in cells])


def _row(row: Engine) -> list[str]:
    have = installed(row.distribution)
    mark = " !" if was_measured(row) is False else ""
    rank = next(iter(row.elementwise.values())).max_rank
    return [
        row.name,
        row.release if row.run else f"{row.release} (read)",
        f"{have}{mark}" if have else "-",
        " ".join(row.elementwise),
        " ".join(row.to_target) or ("none" if row.broadcasts is False else "-"),
        str(rank) if rank is not None else "-",
        str(len(row.divergences)),
    ]
