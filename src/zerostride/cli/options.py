"""Options that several commands share, and how results are put out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..engines.table import ENGINES
from ..errors import BroadcastError, Reason, ZerostrideError
from ..rules import MODES, RULES
from .shapes import parse_shape

FOUND, BAD_INPUT = 1, 2

#: Reasons that say the question was wrong, not that shapes do not combine.
MALFORMED = frozenset(
    {
        Reason.BAD_EXTENT,
        Reason.ATTRIBUTE,
        Reason.OPERAND_COUNT,
        Reason.UNKNOWN_RULE,
        Reason.UNKNOWN_ENGINE,
        Reason.UNKNOWN_OP,
        Reason.NO_RULE,
        Reason.NO_OP,
        Reason.DTYPE,
    }
)

F = TypeVar("F", bound=Callable[..., Any])

_ELEMENTWISE = [name for name, rule in RULES.items() if not rule.to_target]

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
engine = click.option(
    "--engine", type=click.Choice(list(ENGINES)), help="Ask what this engine's release does."
)
rule = click.option("--rule", type=click.Choice(_ELEMENTWISE), help="The rule; numpy if not given.")
axis = click.option(
    "--axis", type=int, help="Where the smaller operand starts (pdpd, paddle, onnx6)."
)
broadcast = click.option("--broadcast", type=int, help="onnx6's attribute: 1 allows broadcasting.")
mode = click.option("--mode", type=click.Choice(list(MODES)), help="Mode of the Broadcast op.")


class ShapeType(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A shape on the command line."""

    name = "shape"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The shape, or a usage error that says how one is written."""
        try:
            return parse_shape(value)
        except ZerostrideError as error:
            self.fail(str(error), param, ctx)


class AxesType(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A list of axes: 1,2."""

    name = "axes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        """The axes as numbers."""
        try:
            return [int(word) for word in str(value).strip("[]()").split(",") if word.strip()]
        except ValueError:
            self.fail(f"{value!r} is not a list of axes such as 1,2", param, ctx)


def combine(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order given."""

    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def colored() -> bool:
    """Whether the terminal wants colours (NO_COLOR says no, FORCE_COLOR says yes)."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def put_json(value: Any) -> None:
    """Prints a value as JSON."""
    click.echo(json.dumps(value, indent=2, default=str))


def error_dict(error: BroadcastError) -> dict[str, Any]:
    """A BroadcastError for JSON."""
    return {
        "ok": False,
        "reason": error.reason,
        "detail": error.detail,
        "rule": str(error.rule),
        "shapes": error.shapes,
        "axis": error.axis,
        "silent": error.silent,
        "hint": error.hint,
    }


def exit_status(error: BroadcastError) -> int:
    """1 where shapes do not combine, 2 where the question itself was wrong."""
    return BAD_INPUT if error.reason in MALFORMED else FOUND
