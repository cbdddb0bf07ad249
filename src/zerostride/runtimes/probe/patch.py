"""The differences between a measured release and its row, as a patch of the engine table.

In: a report of generated cases. Out: a unified diff of `engines/changes.py`, and for a release
newer than all also of the module of its row; `git apply` takes it.
"""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from ...core.plan import Plan
from ...engines import changes, struck
from ...engines.model import Engine
from ...engines.releases import release_before, releases_of, short, title_of
from ...engines.table import ENGINES
from ...sizes import Asker
from .case import Case
from .catalogue import ShapeRoles, row_of
from .conformance import EngineReport
from .predict import predict

Strikes: TypeAlias = Callable[[Plan, Asker], bool]


@dataclass(frozen=True, slots=True)
class _Where:
    """A condition that may tell apart the plans that a release computes otherwise.

    Attributes:
        strikes: the condition.
        source: it, as `engines/changes.py` writes it.
        words: it, as the end of a sentence.
        rank: it is about the number of axes.
    """

    strikes: Strikes
    source: str
    words: str
    rank: bool = False


#: Conditions without parameters, the most particular first.
_PLAIN = (
    (struck.rank_0, "results of rank 0"),
    (struck.empty_unlike, "results without elements of operands that differ"),
    (struck.empty, "operands without elements"),
    (struck.inner_vector, "vectors that lie on the innermost axis"),
    (struck.both_or_between, "operands that both stretch, or one between axes that it fills"),
    (struck.no_kernel, "operands of one rank that stretch"),
)
_TARGETS = (
    (struck.inside_empty, "an axis that stretches inside of an empty one"),
    (struck.empty_target, "targets without elements"),
    (struck.unchanged, "targets that leave the data unchanged"),
)
#: A release's other behaviour: a word in a report, a verb, and the row's effect.
_OUTCOMES = (
    ("refused", "refuses", "effect=Reason.NO_RULE,\nsilent=frozenset(),"),
    ("crashed", "ends its process for", "effect=Reason.CRASH,\nsilent=frozenset({Reason.CRASH}),"),
    ("gave", "gives another result for", ""),
)


def proposal(report: EngineReport) -> str:
    """The patch for the release that ran, and what no row can say; "" if its row holds."""
    engine, release = ENGINES[report.engine], short(report.version.split("-")[0].split("+")[0])
    measured = releases_of(engine)
    known = any(f"{release}.".startswith(f"{one}.") for one in measured)
    later = [one for one in measured if release_before(release, one)]
    newer = not known and not later
    until = later[0] if later else ""
    rest = list(_unsaid(report, expressible=bool(later)))
    old = inspect.getsource(changes)
    text = old
    if later:
        for row in _rows(report, until, release):
            text = _appended(text, "CHANGES", engine.name, row)
    if newer and not report.findings:
        text = _appended(text, "MEASURED", engine.name, f'"{short(engine.release)}"')
    elif not known and later:
        text = _appended(text, "MEASURED", engine.name, f'"{release}"')
    parts = [_diff(changes, old, text)]
    if newer and not report.findings:
        parts.append(_renamed(engine, release))
    return "\n".join(part for part in [*parts, *rest] if part)


def _unsaid(report: EngineReport, *, expressible: bool) -> Iterator[str]:
    """The disagreements that no difference from a newer row states, one line for each kind."""
    kinds: dict[tuple[str, str], list[Case]] = {}
    for finding in report.findings:
        if not (expressible and _is_plan(finding.predicted) and _outcome(finding.outcome)):
            key = (_brief(finding.predicted), _brief(finding.outcome))
            kinds.setdefault(key, []).append(finding.case)
    for (predicted, outcome), cases in kinds.items():
        many = f"{len(cases)} cases, predicted {predicted}, {outcome}"
        yield f"# not in the patch: {many}; for example {cases[0].to_json()}"


def _is_plan(predicted: str) -> bool:
    return "refusal" not in predicted


def _brief(words: str) -> str:
    return "a result" if words.startswith(("gave", "(")) else words.partition(":")[0]


def _outcome(words: str) -> tuple[str, str] | None:
    return next((row[1:] for row in _OUTCOMES if words.startswith(row[0])), None)


def _rows(report: EngineReport, until: str, release: str) -> Iterator[str]:
    """A `Change` for each kind of outcome, of Broadcast ops and of others."""
    asked = title_of(ENGINES[report.engine], report.version)
    right = [(case, _plan(case, asked)) for case in report.equal]
    for to_target in (False, True):
        agreeing = [(c, p) for c, p in right if p and _to_target(c) is to_target]
        for begin, verb, effect in _OUTCOMES:
            wrong = [
                (finding.case, plan)
                for finding in report.findings
                if finding.outcome.startswith(begin)
                and _is_plan(finding.predicted)
                and _to_target(finding.case) is to_target
                and (plan := _plan(finding.case, asked)) is not None
            ]
            if wrong:
                yield _change(report, until, release, (begin, verb, effect), wrong, agreeing)


def _change(
    report: EngineReport,
    until: str,
    release: str,
    outcome: tuple[str, str, str],
    wrong: Sequence[tuple[Case, Plan]],
    agreeing: Sequence[tuple[Case, Plan]],
) -> str:
    """The source of a `Change`: what the release does instead, and for which plans."""
    begin, verb, effect = outcome
    to_target = _to_target(wrong[0][0])
    asks = {row_of(case).ask for case, _ in wrong}
    ops = () if None in asks else tuple(sorted(filter(None, asks)))
    others = [plan for case, plan in agreeing if not ops or row_of(case).ask in ops]
    where = _where([plan for _, plan in wrong], others, to_target=to_target)
    if where is None:
        kind = "WRONG_RESULT" if begin == "gave" else "CRASH"
        effect = f"effect=Reason.{kind},\nmay=True,"
        strikes = _listed(wrong, verb)
    else:
        effect = effect.replace("NO_RULE", "RANK_LIMIT") if where.rank else effect
        strikes = [f'"{verb} {where.words}",', "(),", f"{where.source},"]
    lines = [
        f'"{until}",',
        *strikes,
        f'"{report.engine} {release}, run: {report.cases:,} generated cases by value",',
        *([f"ops=frozenset({set(ops)!r}),".replace("'", '"')] if ops else []),
        *effect.splitlines(),
        *(["to_target=True,"] if to_target else []),
    ]
    return "\n".join(["Change(", *(f"    {line}" for line in lines), ")"])


def _listed(wrong: Sequence[tuple[Case, Plan]], verb: str) -> list[str]:
    """The text and the condition of a `Change` that lists combinations of shapes."""
    shapes = sorted({plan.operands + _target(case) for case, plan in wrong}, key=str)
    return [
        f'"{verb} {len(shapes)} combinations of shapes that were run",',
        "(),",
        "functools.partial(",
        "    struck.among,",
        "    frozenset({",
        *(f"        {one!r}," for one in shapes),
        "    }),",
        "),",
    ]


def _plan(case: Case, asked: str) -> Plan | None:
    plan = predict(case, asked)
    return plan if isinstance(plan, Plan) else None


def _to_target(case: Case) -> bool:
    return row_of(case).roles is ShapeRoles.TO


def _target(case: Case) -> tuple[tuple[int, ...], ...]:
    return (case.b,) if _to_target(case) else ()


def _where(wrong: Sequence[Plan], right: Sequence[Plan], *, to_target: bool) -> _Where | None:
    """The condition that all the wrong plans meet, and none of the right ones; None: no such."""
    return next((one for one in _candidates(wrong, to_target) if _parts(one, wrong, right)), None)


def _parts(where: _Where, wrong: Sequence[Plan], right: Sequence[Plan]) -> bool:
    asker = Asker()
    return all(where.strikes(plan, asker) for plan in wrong) and not any(
        where.strikes(plan, asker) for plan in right
    )


def _candidates(wrong: Sequence[Plan], to_target: bool) -> Iterable[_Where]:
    yield _Where(struck.any_plan, "struck.any_plan", "every shape")
    for strikes, words in _TARGETS if to_target else _PLAIN:
        yield _Where(strikes, f"struck.{strikes.__name__}", words)
    most = min(plan.rank for plan in wrong) - 1
    if most < 0:
        return
    beyond = functools.partial(struck.beyond, most)
    yield _Where(
        beyond, f"functools.partial(struck.beyond, {most})", f"more than {most} axes", rank=True
    )
    unlike = functools.partial(struck.beyond_most, most, most)
    source = f"functools.partial(struck.beyond_most, {most}, {most})"
    yield _Where(unlike, source, f"more than {most} axes where shapes differ", rank=True)


def _appended(text: str, table: str, engine: str, element: str) -> str:
    """The module with one more element at the end of an engine's tuple in a table."""
    keys, values = _table(text, table)
    lines = text.splitlines(keepends=True)
    if engine in keys:
        node = values[keys.index(engine)]
        line, column = (node.end_lineno or 0) - 1, (node.end_col_offset or 0) - 1
        first = node.lineno == node.end_lineno
        before, after = lines[line][:column], lines[line][column:]
        if first:  # ("2.3", "2.7")
            comma = "" if before.endswith(",") else ","
            lines[line] = f"{before}{comma} {element}{after}"
        else:
            indent = " " * (len(before) - len(before.lstrip()) + 4)
            lines.insert(line, "".join(f"{indent}{one}\n" for one in f"{element},".splitlines()))
        return "".join(lines)
    last = values[-1].end_lineno or 0
    indented = "".join(f"            {one}\n" for one in f"{element},".splitlines())
    lines.insert(last, f'        "{engine}": (\n{indented}        ),\n')
    return "".join(lines)


def _table(text: str, name: str) -> tuple[list[str], list[ast.expr]]:
    """The keys and values of a table: NAME: ... = MappingProxyType({...})."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == name:
            found = next(one for one in ast.walk(node) if isinstance(one, ast.Dict))
            return [ast.literal_eval(key) for key in found.keys if key], found.values
    raise LookupError(f"engines/changes.py has no table {name}")


def _renamed(engine: Engine, release: str) -> str:
    """The patch of the row itself, which holds for a newer release, too."""
    newest = engine.release
    parts = short(newest).count(".") + 1
    new = newest.removesuffix(short(newest)) + ".".join(release.split(".")[:parts])
    for module in _row_modules():
        text = inspect.getsource(module)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Engine":
                name, value, *_ = node.args
                if isinstance(name, ast.Constant) and name.value == engine.name:
                    lines = text.splitlines(keepends=True)
                    lines[value.lineno - 1] = lines[value.lineno - 1].replace(newest, new)
                    return _diff(module, text, "".join(lines))
    return ""


def _row_modules() -> Iterator[ModuleType]:
    """The modules that hold the rows."""
    from ...engines import rows_arrays, rows_litert, rows_openvino, rows_runtimes

    yield from (rows_arrays, rows_litert, rows_openvino, rows_runtimes)


def _diff(module: ModuleType, old: str, new: str) -> str:
    place = f"src/zerostride/engines/{Path(str(module.__file__)).name}"
    lines = (old.splitlines(keepends=True), new.splitlines(keepends=True))
    return "".join(difflib.unified_diff(*lines, f"a/{place}", f"b/{place}")).rstrip("\n")
