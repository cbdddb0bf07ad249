"""Source for open sizes: it reads them from the operands' shapes, checks them, and uses them."""

from __future__ import annotations

import functools
import json
import keyword
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from ...core.branching import explore
from ...core.plan import Plan
from ...engines import ENGINES
from ...errors import BroadcastError, Reason
from ...sizes import Shape
from ...sizes.condition import Condition, all_of, ge, negation
from ...sizes.dim import Dim, Number, Symbol, dim, lone_call, lone_symbol
from ...sizes.solve import excludes, exists
from ..explain.facts import broadcasts_to, listing, names_of
from ..explain.open import namer, plan_facts, shape_text, ways
from .expressions import Words, closed, condition_code, decides, factor_code, size_code, tells
from .source import check_limits, checked_names, common_fields, operands_of, written
from .targets import Target

#: Names that the source itself uses.
_USED = frozenset({"_", "len", "max", "min", "list", "shape", "AssertionError"})


class Word(str):
    """A piece of source whose `repr` is itself, for the text of a tuple or a list."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def quoted(text: str) -> str:
    """A message as a string literal of the source."""
    return json.dumps(text, ensure_ascii=False)


# Reading sizes from shapes.


class _Source(NamedTuple):
    """A shape that is read: its name in messages, its expression, and its sizes."""

    name: str
    shape: str
    sizes: Shape


@dataclass(slots=True)
class Reading:
    """The lines that read sizes, and the variables they define.

    Attributes:
        lines: the source so far.
        words: the variables.
    """

    lines: list[str] = field(default_factory=list)
    words: Words = field(default_factory=dict)

    def word(self, size: Number) -> int | Word:
        """A size in the source."""
        return size if isinstance(size, int) else Word(size_code(size, self.words))


def read_sizes(
    plan: Plan, names: Sequence[str], reserved: Iterable[str], *, whole: bool
) -> Reading:
    """The source that reads a plan's symbols from shapes, and checks the remaining sizes.

    Args:
        plan: the plan.
        names: the operands' names.
        reserved: names that may not be used for sizes.
        whole: check ranks and numbers, too.
    """
    reading = Reading()
    sources = list(_sources(plan, names))
    used = {*reserved, *names, *_USED, *(source.name for source in sources)}
    fresh = _Words(used)
    lone = [lone_symbol(size) for source in sources for size in source.sizes]
    unknowns = dict.fromkeys(symbol for symbol in lone if symbol is not None)
    solvable = _solvable(sources, set(unknowns))
    checks: list[str] = []
    text = namer(plan, names)
    for source in sources:
        if whole:
            reading.lines.append(_rank_check(source, shape_text(source.sizes, text)))
        places: list[str] = []
        for axis, size in enumerate(source.sizes):
            place = f"{source.shape}[{axis}]"
            message = f"axis {axis} of {source.name} is not {dim(size).write(text)}"
            word = "_"
            if isinstance(size, Dim):
                symbol = lone_symbol(size)
                if symbol is not None and symbol not in reading.words:
                    word = reading.words[symbol] = fresh.take(symbol.name)
                elif symbol is not None:
                    checks.append(f"assert {place} == {reading.words[symbol]}, {quoted(message)}")
                elif set(size.symbols) <= solvable:
                    pass  # solved for, or compared, below
                elif (whole_size := lone_call(size) or size) in reading.words:
                    same = reading.words[whole_size]
                    checks.append(f"assert {place} == {same}, {quoted(message)}")
                else:
                    word = reading.words[whole_size] = fresh.take(size.words)
            places.append(word)
        if any(place != "_" for place in places):
            targets = f"({places[0]},)" if len(places) == 1 else ", ".join(places)
            reading.lines.append(f"{targets} = {source.shape}")
    reading.lines += checks
    _solve(reading, sources, solvable, fresh)
    reading.lines += _bounds(reading, plan, set(unknowns))
    return reading


def _sources(plan: Plan, names: Sequence[str]) -> Iterator[_Source]:
    for name, sizes in zip(names, plan.operands, strict=True):
        yield _Source(name, f"{name}.shape", sizes)
    assert plan.open is not None
    if broadcasts_to(plan) or len(plan.open.leaves[0].sizes) > len(plan.operands):
        target = plan.open.leaves[0].sizes[-1]
        bound = {s for shape in plan.operands for size in shape for s in dim(size).symbols}
        if not {symbol for size in target for symbol in dim(size).symbols} <= bound:
            name = "target_" if "target" in names else "target"
            yield _Source(name, name, target)


class _Words:
    """Unique names for variables, close to the names of the sizes."""

    def __init__(self, used: Iterable[str]) -> None:
        self.used = set(used)

    def take(self, name: str) -> str:
        """An unused identifier."""
        word = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", name)).strip("_")
        if not word.isidentifier():
            word = f"n_{word}" if f"n_{word}".isidentifier() else "n"
        while word in self.used or keyword.iskeyword(word):
            word += "_"
        self.used.add(word)
        return word


def _rank_check(source: _Source, text: str) -> str:
    numbers = [
        f"{source.shape}[{axis}] == {size}"
        for axis, size in enumerate(source.sizes)
        if isinstance(size, int)
    ]
    checks = " and ".join([f"len({source.shape}) == {len(source.sizes)}", *numbers])
    return f"assert {checks}, {quoted(f'{source.name} is not {text}')}"


def _linear(size: Dim, solved: set[Symbol]) -> tuple[Symbol, int, Dim] | None:
    """(symbol, factor, rest) if a size is factor*symbol + rest and only the symbol is unknown."""
    missing = [symbol for symbol in size.symbols if symbol not in solved]
    if len(missing) != 1:
        return None
    for monomial, factor in size.terms:
        if monomial == (missing[0],):
            rest = size - dim(Dim(missing[0])) * factor
            return None if missing[0] in rest.symbols else (missing[0], factor, rest)
    return None


def _solvable(sources: Sequence[_Source], solved: set[Symbol]) -> set[Symbol]:
    """The symbols that the shapes determine: those that stand alone, and those that follow from
    them.
    """
    solved = set(solved)
    sizes = [size for source in sources for size in source.sizes if isinstance(size, Dim)]
    while True:
        more = {linear[0] for size in sizes if (linear := _linear(size, solved))}
        if not more:
            return solved
        solved |= more


def _solve(
    reading: Reading,
    sources: Sequence[_Source],
    solvable: set[Symbol],
    fresh: _Words,
) -> None:
    """Adds the symbols in expressions: solved if one symbol is unknown, else compared."""
    waiting = [
        (source, axis, size)
        for source in sources
        for axis, size in enumerate(source.sizes)
        if isinstance(size, Dim) and lone_symbol(size) is None and set(size.symbols) <= solvable
    ]
    while waiting:
        later = []
        for source, axis, size in waiting:
            place = f"{source.shape}[{axis}]"
            message = quoted(f"axis {axis} of {source.name} is not {size.words}")
            linear = _linear(size, {atom for atom in reading.words if isinstance(atom, Symbol)})
            if linear is not None:
                symbol, factor, rest = linear
                product = _minus(place, rest, reading.words)
                if abs(factor) != 1:
                    divides = f"{factor_code(product)} % {abs(factor)} == 0"
                    reading.lines.append(f"assert {divides}, {message}")
                word = reading.words[symbol] = fresh.take(symbol.name)
                reading.lines.append(f"{word} = {_quotient(product, factor)}")
            elif tells(reading.words, size):
                there = exists(size)
                also = "" if there.always else f"{condition_code(there, reading.words)} and "
                same = f"{place} == {closed(size_code(size, reading.words))}"
                reading.lines.append(f"assert {also}{same}, {message}")
            else:
                later.append((source, axis, size))
        if len(later) == len(waiting):
            raise AssertionError("an expression that neither can be solved nor computed")
        waiting = later


def _minus(place: str, rest: Dim, words: Words) -> str:
    if rest.terms:
        return f"{place} - {factor_code(size_code(rest, words))}"
    return f"{place} {'+' if rest.const < 0 else '-'} {abs(rest.const)}" if rest.const else place


def _quotient(product: str, factor: int) -> str:
    if factor == 1:
        return product
    return f"-{factor_code(product)}" if factor == -1 else f"{factor_code(product)} // {factor}"


def _bounds(reading: Reading, plan: Plan, lone: set[Symbol]) -> Iterator[str]:
    for atom, word in reading.words.items():
        if not isinstance(atom, Symbol):
            continue
        message = quoted(f"{word} is out of its bounds")
        low = "" if atom in lone and atom.low <= 0 else f"{atom.low} <= "
        high = "" if atom.high is None else f" <= {atom.high}"
        if low or high:
            yield f"assert {low}{word}{high}, {message}"


# Assertions.


def _check(
    plan: Plan,
    reading: Reading,
    condition: Condition,
    names: Sequence[str],
    what: str,
    *,
    message: str = "",
) -> Iterator[str]:
    """An assertion for each clause; refused if a clause has sizes that were not read."""
    for clause in condition:
        if not decides(reading.words, clause):
            _refuse(plan, reading, clause.symbols, what)
        words = message or _message(plan, clause, names)
        yield f"assert {condition_code(clause, reading.words)}, {quoted(words)}"


def _fact_checks(plan: Plan, reading: Reading, names: Sequence[str]) -> Iterator[str]:
    """Asserts the caller's facts as far as the shapes determine them."""
    assert plan.open is not None
    text = namer(plan, names)
    for clause in plan.open.given:
        if decides(reading.words, clause):
            message = quoted(f"it was given that {clause.write(text)}")
            yield f"assert {condition_code(clause, reading.words)}, {message}"
        else:
            yield f"# given, and not told by the shapes: {clause.write(text)}"


def _message(plan: Plan, clause: Condition, names: Sequence[str]) -> str:
    """Which operands do not fit, and the axis, if one axis is at fault."""
    axis = _axis_of(plan, clause)
    if broadcasts_to(plan):
        where = "" if axis is None else f" on axis {axis}"
        return f"{names[0]} does not broadcast to the target{where}"
    if axis is None:
        return f"{listing(names)} do not broadcast"
    landing = [name for name, row in zip(names, plan.aligned, strict=True) if row[axis] != 1]
    return f"{listing(landing if len(landing) > 1 else names)} do not broadcast on axis {axis}"


def _axis_of(plan: Plan, clause: Condition) -> int | None:
    assert plan.open is not None
    literals = set(clause.parts or (clause,))
    for leaf in plan.open.accepted:
        for axis, whole in leaf.clauses:
            if axis is not None and any(literals <= {c, *c.parts} for c in whole.clauses):
                return axis
    return None


def _refuse(plan: Plan, reading: Reading, symbols: Iterable[Symbol], what: str) -> NoReturn:
    missing = [symbol.name for symbol in symbols if symbol not in reading.words]
    detail = f"the operands' shapes do not tell {listing(missing) or 'all sizes'}"
    hint = f"bind it first: plan.bind({missing[0]}=4)" if missing else ""
    raise _unknown(plan, detail, what, hint)


def _unknown(plan: Plan, detail: str, what: str, hint: str = "") -> BroadcastError:
    return BroadcastError(
        detail,
        reason=Reason.UNKNOWN_SIZE,
        rule=plan.rule,
        shapes=tuple(tuple(map(_shown, shape)) for shape in plan.operands),
        names=names_of(plan),
        headline=f"no {what} for this plan",
        hint=hint or "bind the sizes first: plan.bind(N=4), or plan.bind(*shapes)",
    )


def _shown(size: Number) -> int | Word:
    return size if isinstance(size, int) else Word(size)


def guard_source(plan: Plan, names: Sequence[str] = (), *, whole: bool = False) -> str:
    """The source of a guard; `whole` checks ranks and the sizes that are numbers, too."""
    called = checked_names(plan, Target(()), "a guard", names)
    if plan.open is None:
        return "\n".join(
            _rank_check(_Source(name, f"{name}.shape", shape), str(shape))
            for name, shape in zip(called, plan.operands, strict=True)
        )
    reading = read_sizes(plan, called, (), whole=whole)
    lines = [*reading.lines, *_fact_checks(plan, reading, called)]
    return "\n".join([*lines, *_check(plan, reading, plan.conditions, called, "guard")])


def open_code(plan: Plan, row: Target, target: str, names: Sequence[str]) -> str:
    """Source for a plan with open sizes; see :func:`.source.code`."""
    what = f"{target} source"
    if target in ("onnx", "openvino", "openvino-ir"):
        from . import graph, ir

        check_limits(plan, row, target)
        graphs = {"onnx": graph.onnx_code, "openvino": graph.openvino_code}
        return graphs.get(target, ir.ir_source)(plan, names)
    if not row.reads:
        raise _unknown(plan, f"{target} needs all sizes as numbers here", what)
    check_limits(plan, row, target)
    reading = read_sizes(plan, names, row.reserved, whole=True)
    lines = [*reading.lines, *_fact_checks(plan, reading, names)]
    for condition, reason in _carried(plan, row):
        lines += _check(plan, reading, condition, names, what, message=reason)
    text = namer(plan, names)
    shapes = ", ".join(
        f"{name}: {shape_text(shape, text)}"
        for name, shape in zip(names, plan.operands, strict=True)
    )
    head = str(row.parts[0]).format(comment=f"# {shapes} -> {shape_text(plan.shape, text)}")
    cases = ways(plan)
    if len(cases) < 2:
        lines += _check(plan, reading, plan.conditions, names, what)
        return "\n".join([head, *lines, *_body(plan, row, reading, names, what)])
    for n, case in enumerate(cases):
        if not decides(reading.words, case.conditions):
            _refuse(plan, reading, case.conditions.symbols, what)
        lines.append(f"{'elif' if n else 'if'} {condition_code(case.conditions, reading.words)}:")
        body = _body(case, row, reading, names, what) or ["pass"]
        lines += ["    " + line for part in body for line in part.splitlines()]
    lines += ["else:", f"    raise AssertionError({quoted(f'{listing(names)} do not broadcast')})"]
    return "\n".join([head, *lines])


def _body(plan: Plan, row: Target, reading: Reading, names: Sequence[str], what: str) -> list[str]:
    """The assignments for one way that axes land."""
    for size in (*plan.shape, *(size for shape in plan.aligned for size in shape)):
        if not tells(reading.words, size):
            _refuse(plan, reading, dim(size).symbols, what)

    def words(shape: Shape) -> tuple[int | Word, ...]:
        return tuple(map(reading.word, shape))

    shape = words(plan.shape)
    common = {**common_fields(plan, ()), "shape": shape, "list": list(shape)}
    lines = []
    if any(not re.fullmatch(r"\w+", str(size)) for size in shape):
        lines.append(f"shape = {shape}")
        common.update(shape=Word("shape"), list=Word("list(shape)"))
    operands = [
        operand.worded(words(operand.shape), words(operand.aligned))
        for operand in operands_of(plan, names)
    ]
    if row.certain and any(operand.pattern is None for operand in operands):
        raise _unknown(plan, "it depends on sizes which axes stretch", what)
    body = written(row.parts[1:], operands, common)
    return [*lines, *([body] if body else [])]


def _carried(plan: Plan, row: Target) -> Iterator[tuple[Condition, str]]:
    """The conditions for the target to carry the plan, each with the reason of a refusal."""
    if row.empty:
        sizes = dict.fromkeys(size for shape in (*plan.operands, plan.shape) for size in shape)
        yield all_of(ge(size, 1) for size in sizes if isinstance(size, Dim)), row.empty
    engine = ENGINES.get(row.engine or "")
    where = plan_facts(plan)
    for divergence in engine.divergences_of(plan.rule.op) if engine is not None else ():
        if divergence.strikes is not None:
            for way in explore(functools.partial(divergence.strikes, plan), where):
                struck = way.outcome is True and not excludes(where, way.path)
                if struck:
                    yield negation(way.path), divergence.text
