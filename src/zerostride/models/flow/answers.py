"""Answers of rows, checked: invalid sizes become unknown, exceptions become notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...sizes import MAX_RANK
from ...sizes.condition import Condition, ge
from ...sizes.dim import Dim, bounds
from ..onnx_ops.sizes.elementwise import by_format
from ..onnx_ops.sizes.facts import SURPRISES, UNKNOWN, Fact, NoSizes, OpCall, Open, Unclear, sound
from ..onnx_ops.table import op_row
from .fallback import inferred


@dataclass(frozen=True, slots=True)
class RowAnswer:
    """A row's answer to a call.

    Attributes:
        facts: one for each result; sizes may be Open.
        needs: conditions, each with its reason.
        failure: why no sizes work, or None.
        notes: what could not be followed.
    """

    facts: tuple[Fact, ...]
    needs: tuple[tuple[Condition, str], ...] = ()
    failure: str | None = None
    notes: tuple[str, ...] = ()


def first_line(surprise: BaseException) -> str:
    """The first line of an exception's message, at most 160 characters."""
    return (next(iter(str(surprise).splitlines()), "") or type(surprise).__name__)[:160]


def ask(call: OpCall) -> RowAnswer:
    """The checked answer of an op's row; an exception in the row becomes a note."""
    row = op_row(call.op, call.domain).sizes
    if call.domain not in ("", "com.microsoft") and call.find is not None:
        row = call.rows.get(call.op, by_format)
    try:
        results = inferred(call) if row is None else row(call)
        facts = (results,) if isinstance(results, Fact) else results
        facts = tuple(_checked(call, fact) for fact in facts[: call.outputs])
    except NoSizes as refusal:
        return RowAnswer((UNKNOWN,) * call.outputs, failure=str(refusal))
    except Unclear:
        facts = ()
    except SURPRISES as surprise:
        call.notes.append(f"{call.op} could not be followed: {first_line(surprise)}")
        facts, call.needs = (), []
    facts += (UNKNOWN,) * (call.outputs - len(facts))
    return RowAnswer(facts, tuple(call.needs), None, tuple(call.notes))


def _checked(call: OpCall, fact: Fact) -> Fact:
    """The fact with valid sizes: not below 0, and not too large."""
    if fact.shape is None:
        return fact
    if len(fact.shape) > MAX_RANK:
        call.notes.append(f"{call.op} makes {len(fact.shape)} axes; sizes are followed to 64")
        return UNKNOWN
    sizes: list[Any] = []
    for size in fact.shape:
        wrong = None if isinstance(size, Open) else sound(size)
        if wrong is not None:
            call.notes.append(f"{call.op} makes {wrong}, taken as unknown")
            size = Open()
        elif isinstance(size, Dim):
            low = bounds(size)[0]
            if low is None or low < 0:
                call.need(ge(size, 0), f"{call.op} makes a size of {size}")
        elif isinstance(size, int) and size < 0:
            raise NoSizes(f"{call.op} makes a size of {size}")
        sizes.append(size)
    return Fact(tuple(sizes), fact.content)
