"""The site's pages of rules and engines, generated from the package's tables."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

import generate
from drawings import inline
from shown import MORE, Shown
from tabular import table

import zerostride as zs
from zerostride.core.alignment import Rule
from zerostride.core.rules import MODES, RULES
from zerostride.derive.scoreboard import (
    LEGEND,
    PAIRS,
    PATTERNS,
    Cell,
    Pattern,
    ScoreRow,
    judge,
    scoreboard,
)
from zerostride.engines import ENGINES, Engine
from zerostride.engines.changes import CHANGES, MEASURED, Change
from zerostride.engines.model import Divergence
from zerostride.engines.releases import releases_of, short
from zerostride.engines.table import find_engine
from zerostride.ops.table import OPS, column_of

Answer = zs.Plan | zs.BroadcastError


def pages() -> dict[str, str]:
    """Every generated page by its place in the site."""
    with warnings.catch_warnings():
        # The pages describe the measured release; another one may be installed.
        warnings.simplefilter("ignore", zs.EngineVersionWarning)
        return {
            "rules.md": rules_page(),
            "engines.md": engines_page(),
            **{f"rules/{rule.name}.md": rule_page(rule) for rule in RULES.values()},
            **{f"engines/{engine.name}.md": engine_page(engine) for engine in ENGINES.values()},
        }


# Asking


def asked(ask: Callable[..., zs.Plan], *shapes: object, **words: object) -> Answer:
    """A plan, or the error if the shapes are refused."""
    try:
        return ask(*shapes, **words)
    except zs.BroadcastError as error:
        return error


def by_rule(rule: Rule, shown: Shown) -> Answer:
    """The plan of a rule for an example, or the error."""
    if rule.to_target:
        return asked(zs.plan_to, *shown.shapes, mode=_mode(rule), **shown.attributes)
    return asked(zs.plan, *shown.shapes, rule=rule.name, **shown.attributes)


def _mode(rule: Rule) -> str:
    return next(mode for mode, name in MODES.items() if name == rule.name)


def _call(rule: Rule, shown: Shown) -> str:
    """The Python call of an example."""
    given = {"mode": _mode(rule)} if rule.to_target else {"rule": rule.name}
    words = [*map(repr, shown.shapes)]
    words += [f"{name}={_literal(value)}" for name, value in {**given, **shown.attributes}.items()]
    return f"zs.plan{'_to' if rule.to_target else ''}({', '.join(words)})"


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _answered(answer: Answer) -> str:
    """A plan's drawing, or the error's text."""
    if isinstance(answer, zs.Plan):
        return inline(answer.svg())
    return f"```text\n{answer}\n```"


# Tables


def _meaning(answer: Answer, reference: Answer) -> str:
    """An engine's plan or error, compared with the reference."""
    if isinstance(answer, zs.BroadcastError):
        return f"**nonsense**: {answer.detail}" if answer.silent else f"refused: {answer.detail}"
    if isinstance(reference, zs.BroadcastError):
        return "accepted: " + _lies(answer)
    if answer == reference:
        return "same"
    return "**different**: " + _lies(answer)


def _lies(plan: zs.Plan) -> str:
    return "as " + " and ".join(f"`{shape}`" for shape in plan.aligned)


def _shape(shape: tuple[int, ...]) -> str:
    return f"({','.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _escaped(text: str) -> str:
    """A table's text for a Markdown page, with stars, underscores and brackets escaped.

    >>> _escaped("elementwise_* of <x> and `axis`")
    'elementwise\\\\_\\\\* of \\\\<x> and `axis`'
    """
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*_\[\]<#])", r"\\\1", part) for part in parts
    )


# Rules

_RULES_INTRO = """# Rules

A [rule](glossary.md) is the text of a document about broadcasting. The [engines'](engines.md) pages
describe the behaviour of releases. Shapes have the outermost size first. In a drawing blue axes
keep their extent, hatched axes stretch, and dashed axes are absent.

"""


def rules_page() -> str:
    """The overview of all rules."""
    parts = [_RULES_INTRO, "```{toctree}\n:hidden:\n\n"]
    parts += [f"rules/{name}\n" for name in RULES]
    parts.append("```\n")
    for to_target, title in ((False, "Element-wise ops"), (True, "Broadcast ops")):
        parts.append(f"\n## {title}\n")
        for rule in RULES.values():
            if rule.to_target == to_target:
                parts.append(
                    f"\n### [{rule.name}](rules/{rule.name}.md)\n\n{_escaped(rule.summary)}"
                    f"{generate.most(rule)}\n\n{inline(generate.shown_plan(rule).svg())}\n"
                )
    return "".join(parts)


def rule_page(rule: Rule) -> str:
    """One rule's page: its text, drawings, and the engines that differ."""
    shapes, attributes = generate.SHOWN[rule.name]
    first = Shown(shapes, dict(attributes), "")
    kind = "Broadcast ops (`zs.plan_to`)" if rule.to_target else "element-wise ops (`zs.plan`)"
    lines = [
        f"# {rule.name}",
        f"{_escaped(rule.summary)}{generate.most(rule)}",
        f"For {kind}. Source: {_escaped(rule.source)}.",
    ]
    if rule.attributes:
        rows = (
            (f"`{name}`", "required" if row.required else f"`{row.default}`")
            for name, row in rule.attributes.items()
        )
        lines.append(table(("attribute", "default"), rows))
    if rule.one_way != Rule.__dataclass_fields__["one_way"].default:
        lines.append(f"Stretching: {_escaped(rule.one_way)}.")
    lines.append("## Examples")
    for shown in (first, *MORE.get(rule.name, ())):
        answer = by_rule(rule, shown)
        lines += [shown.why] if shown.why else []
        lines += [f"```python\n{_call(rule, shown)}\n```", _answered(answer)]
    lines += ["## Engines", *_who_has(rule), *_differences(rule, first)]
    return "\n\n".join(lines) + "\n"


def _named(rule: Rule) -> dict[str, str]:
    """The arguments of `zs.plan` or `zs.plan_to` that name the rule."""
    return {"mode": _mode(rule)} if rule.to_target else {"rule": rule.name}


def _own(engine: Engine, rule: Rule) -> Rule | None:
    """The engine's version of a rule."""
    kinds = engine.to_target if rule.to_target else engine.elementwise
    return kinds.get(next(iter(_named(rule).values())))


def _who_has(rule: Rule) -> Iterable[str]:
    """The engines that have a rule of that name, with their own version of it."""
    rows = []
    for engine in ENGINES.values():
        own = _own(engine, rule)
        if own is not None:
            kinds = engine.to_target if rule.to_target else engine.elementwise
            rows.append(
                (
                    _link(engine, "../engines/"),
                    engine.release + ("" if engine.run else " (read)"),
                    "yes" if next(iter(kinds.values())) is own else "on request",
                    str(own.max_rank or engine.tensor_rank or "–"),
                    "as above" if own.summary == rule.summary else _escaped(own.summary),
                )
            )
    if not rows:
        return ["No engine of the table has this rule."]
    heads = ("engine", "release", "default rule", "most axes", "its version")
    return ["These engines have the rule:", table(heads, rows)]


def _differences(rule: Rule, first: Shown) -> Iterable[str]:
    """Every engine's plan for the first example and for a square."""
    asks = {"broadcast": 1} if "broadcast" in rule.attributes else {}
    square = Shown(((5, 5), (5,)), asks, "")
    for shown in (first,) if rule.to_target or rule.name == "none" else (first, square):
        wanted = by_rule(rule, shown)
        shapes = (" to " if rule.to_target else " + ").join(map(_shape, shown.shapes))
        yield f"`{shapes}` on each engine, compared with this rule:"
        ask = zs.plan_to if rule.to_target else zs.plan
        alike: dict[tuple[str, str], list[str]] = {}
        for engine in ENGINES.values():
            has = _own(engine, rule) is not None
            words = {**_named(rule), **shown.attributes} if has else {}
            answer = asked(ask, *shown.shapes, engine=engine.name, **words)
            means = _meaning(answer, wanted).removesuffix(f" on {engine.name}")
            means = means.replace(f": {engine.name} has", ": it has")
            row = (f"`{rule.name}`" if has else "its default", means)
            alike.setdefault(row, []).append(_link(engine, "../engines/"))
        rows = ((", ".join(names), how, what) for (how, what), names in alike.items())
        yield table(("engine", "rule used", "compared with the rule"), rows)


# Engines

_ENGINES_INTRO = """# Engines

An [engine](glossary.md) is one release of a library or runtime: its version of each rule, its
limits, its divergences from its own documents. *Measured* releases were run on 20,000 generated
cases and compared by value. Releases with *(read)* were only read about. The last engines were
[learnt](learn.md) from their answers to some thousand questions. `zerostride engines` prints the
same facts and the installed releases. [Conformance](conformance.md) explains how engines are run.
The table has the default rule, the most axes of an operand, the number of known
divergences from the engine's own documents, and how many of them are silent: wrong numbers or a
crash, without an error.

"""


def engines_page() -> str:
    """The overview of all engines."""
    rows = []
    for engine in ENGINES.values():
        default = next(iter(engine.elementwise.values()))
        effects = sum(_bad(row, engine) for row in engine.divergences)
        rows.append(
            (
                _link(engine, "engines/"),
                engine.release + ("" if engine.run else " (read)"),
                f"`{default.name}`",
                str(default.max_rank or engine.tensor_rank or "–"),
                str(len(engine.divergences)),
                str(effects or "–"),
            )
        )
    heads = ("engine", "release", "rule", "axes", "known", "silent")
    toctree = "".join(f"engines/{name}\n" for name in ENGINES)
    patterns = "".join(
        f"{number}. `{pattern.text}`, {pattern.words}\n"
        for number, pattern in enumerate(PATTERNS, 1)
    )
    numbers = [str(number) for number, _ in enumerate(PATTERNS, 1)]
    return "".join(
        (
            _ENGINES_INTRO,
            f"```{{toctree}}\n:hidden:\n\n{toctree}```\n\n",
            table(heads, rows),
            f"\n## Patterns on which engines differ\n\n{patterns}\n",
            "Each pattern, op for op, compared with NumPy: `=` the same, `≠` silently different, "
            "`!` silent nonsense or a crash, `·` refused. Releases of a row answer alike. A cell "
            "opens the pattern in the [playground](playground.md); `zerostride engines scoreboard` "
            "prints the table.\n\n",
            table(("engine", *numbers), map(_score_row, scoreboard())),
        )
    )


def _bad(row: Divergence, engine: Engine) -> bool:
    """Whether the engine gives a wrong result or crashes, without an error."""
    if row.effect in (zs.Reason.CRASH, zs.Reason.WRONG_RESULT):
        return True
    # A rule's `silent` lists the reasons for which the engine gives no error.
    kinds = [engine.ops.get(op, {}) for op in row.ops]
    kinds = kinds if row.ops else [engine.elementwise, engine.to_target]
    return any(row.effect in rule.silent for kind in kinds for rule in kind.values())


def _score_row(row: ScoreRow) -> list[str]:
    """The table row of releases of an engine: a sign for each pattern."""
    name = row.name.replace(row.engine.name, _link(row.engine, "engines/"), 1)
    return [name, *(_sign(row.name, *pair) for pair in zip(PATTERNS, row.cells, strict=True))]


def _sign(name: str, pattern: Pattern, cell: Cell, top: str = "") -> str:
    """A cell of the table: an engine's answer to a pattern.

    An addition opens its shapes in the playground, which knows no other op; another op opens the
    engine's page. `top` is the way from the page to the site's first folder.
    """
    shapes = "&amp;".join("s=" + ",".join(map(str, shape)) for shape in pattern.shapes)
    added = pattern.op == "add" and not pattern.to_target
    page = f"playground.html#{shapes}" if added else f"engines/{name.split()[0]}.html"
    return (
        f'<a class="heat {cell.kind}" href="{top}{page}" '
        f'title="{name}, {pattern.text}: {LEGEND[cell.kind]}">{cell.mark}</a>'
    )


def engine_page(engine: Engine) -> str:
    """One engine's page: limits, rules and known divergences."""
    evidence = "Measured by running" if engine.run else "Read about, **not run**:"
    lines = [
        f"# {engine.name}",
        f"{evidence} release {', '.join(engine.measured)}"
        + (f" (`pip install {engine.distribution}`)" if engine.run and engine.distribution else "")
        + f". Source: {_escaped(engine.source)}.",
        "## Limits",
        *_limits(engine),
        "## Rules",
        _rule_table(engine),
        "## Compared with NumPy",
        *_beside_numpy(engine),
        "## Known divergences",
        *_divergences(engine),
        *_releases(engine),
        *_names(engine),
    ]
    return "\n\n".join(lines) + "\n"


def _limits(engine: Engine) -> Iterable[str]:
    kinds = (*engine.elementwise.values(), *engine.to_target.values())
    ranks = sorted({rule.max_rank for rule in kinds if rule.max_rank})
    facts = [f"a tensor has at most {engine.tensor_rank} axes"] if engine.tensor_rank else []
    facts += [f"ops have at most {' or '.join(map(str, ranks))} axes"] if ranks else []
    facts += [] if facts else ["the only known limits of axes are those of the rules below"]
    if not engine.to_target:
        facts.append(
            "no op broadcasts to a shape"
            if engine.broadcasts is False
            else "an op that broadcasts to a shape is not documented"
        )
    facts += [f"{dtype}: {_escaped(text)}" for dtype, text in engine.dtypes.items()]
    return ["\n".join(f"- {fact}" for fact in facts)]


def _rule_table(engine: Engine) -> str:
    heads, rows = ("ops", "rule", "text", "most axes"), list(_rule_rows(engine))
    if not any(most for *_, most in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return table(heads, rows)


def _rule_rows(engine: Engine) -> Iterable[tuple[str, ...]]:
    for words, name, rule in generate.rule_rows(engine):
        page = MODES.get(name, name) if rule.to_target else name
        link = f"[{name}](../rules/{page}.md)" if page in RULES else f"`{name}`"
        yield words, link, _escaped(rule.summary), str(rule.max_rank or "")


def _beside_numpy(engine: Engine) -> Iterable[str]:
    rows, drawn = [], []
    for pattern in PAIRS:
        wanted, answer = pattern.ask(None), pattern.ask(engine.name)
        assert isinstance(wanted, zs.Plan)
        shapes = pattern.text
        rows.append((f"`{shapes}`", pattern.words, _meaning(answer, wanted)))
        if isinstance(answer, zs.Plan) and answer != wanted and not drawn:
            drawn = [
                f"For example {shapes}. NumPy:",
                inline(wanted.svg()),
                f"{engine.name}, without an error:",
                inline(answer.svg()),
            ]
    return [
        f"Additions on {engine.name}, op for op, compared with NumPy:",
        table(("shapes", "example", engine.name), rows),
        *drawn,
    ]


def _divergences(engine: Engine) -> Iterable[str]:
    """The divergences, silent ones first."""
    if not engine.divergences:
        return ["No divergence is known."]
    bad = [row for row in engine.divergences if _bad(row, engine)]
    kinds = (
        ("Wrong results and crashes, without an error:", bad),
        ("Refusals and limits:", [row for row in engine.divergences if row not in bad]),
    )
    return [
        part
        for title, rows in kinds
        if rows
        for part in (title, "\n".join(_divergence(row, engine) for row in rows))
    ]


def _divergence(row: Divergence, engine: Engine) -> str:
    where = ", ".join((*sorted(row.ops), *sorted(row.dtypes)))
    source = ("run: " if row.run else "read: ") + _escaped(_short(row.source, engine))
    return (
        f"- **{str(row.effect).replace('_', ' ')}**: {_escaped(row.text)}"
        + (f". Of {_escaped(where)}" if where else "")
        + ("" if source.endswith("as above") else f" *({source})*")
    )


def _short(source: str, engine: Engine) -> str:
    """A source, shortened if the page already names it."""
    return "as above" if source == engine.source else source.removeprefix("run: ")


def _releases(engine: Engine) -> Iterable[str]:
    """The timeline: the measured releases on the example pairs, and what changed when."""
    changes = CHANGES.get(engine.name, ())
    if engine.name not in MEASURED:
        return []
    rows = [find_engine(f"{engine.name}@{name}") for name in reversed(releases_of(engine))]
    return [
        "## Releases",
        f"`{engine.name}@{rows[-1].release}` asks for a release, wherever an engine is named. "
        f"`zerostride compare 5,2 2 --engine {engine.name} --releases` tells when a result "
        f"changed. {'The changes:' if changes else 'No change was seen.'}",
        *_changes(changes),
        "The measured releases, newest first, on the pairs of the [overview](../engines.md): `=` "
        "as NumPy, **≠** another meaning, **!** wrong without an error, · refused.",
        table(
            ("release", *(f"`{pair.text}`" for pair in PAIRS)),
            [[short(row.release), *_signs(row)] for row in rows],
        ),
    ]


def _signs(row: Engine) -> Iterable[str]:
    """A release's signs for the pairs."""
    return (_sign(row.title, pair, judge(pair, row.title), "../") for pair in PAIRS)


def _changes(changes: Sequence[Change]) -> Iterable[str]:
    if changes:
        yield table(
            ("since", "before", "reports"),
            [
                (change.until, _before(change), "; ".join(map(_escaped, change.references)))
                for change in changes
            ],
        )


def _before(change: Change) -> str:
    ops = _escaped(change.concerned)
    return f"it {_escaped(change.text)}{ops}" + ("" if change.run else " *(read)*")


def _names(engine: Engine) -> Iterable[str]:
    """The engine's names of ops."""
    column = column_of(engine.name)
    named: Mapping[str, str] = {
        op.name: ", ".join(f"`{name}`" for name in op.names[column])
        for op in OPS.values()
        if op.names.get(column)
    }
    if not named:
        return []
    text = "; ".join(f"`zs.{name}` {names}" for name, names in named.items())
    return [
        "## Names of ops",
        f"<details><summary>{len(named)} ops</summary>\n\n{text}.\n\n</details>",
    ]


def _link(engine: Engine, folder: str) -> str:
    return f"[{engine.name}]({folder}{engine.name}.md)"
