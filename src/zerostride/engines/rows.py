"""Shorthands for rules, and common rules, which the modules of rows share."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from ..core.alignment import Rule
from ..core.plan import Plan
from ..core.rules import RULES
from . import slopes
from .model import Rules

NUMPY_RULE, NONE_RULE = RULES["numpy"], RULES["none"]
ONE_WAY, BOTH_WAYS = RULES["unidirectional"], RULES["bidirectional"]
#: The result must have the data's shape: a slope that would stretch the data is refused.
ONE_SLOPE = replace(
    RULES["pdpd"],
    align=slopes.channel_slope,
    attributes=MappingProxyType({}),
    summary="The slope is one number, or a vector along axis 1.",
    one_way="only the slope may stretch, to the data",
)


def measured(release: str) -> str:
    """The source of a row: the full run of the conformance command with seed 0."""
    return f"{release}, run: 20,000 generated cases by value, 0 disagreements"


def rows(*rules: Rule, source: str) -> Rules:
    """Rules by name, from one source."""
    return MappingProxyType({rule.name: replace(rule, source=source) for rule in rules})


def modes(source: str, **rules: Rule) -> Rules:
    """Rules of the Broadcast op by mode, from one source."""
    return MappingProxyType({mode: replace(rule, source=source) for mode, rule in rules.items()})


def is_target(plan: Plan) -> bool:
    """Whether the plan is a Broadcast op's, which has one operand."""
    return len(plan.operands) == 1


def frozen(words: str) -> frozenset[str]:
    """A set of names from words."""
    return frozenset(words.split())
