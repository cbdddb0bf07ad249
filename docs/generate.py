"""Writes the pages and pictures that are generated from the tables; --check reports stale ones."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import zerostride as zs
from zerostride import errors
from zerostride.compute import functions, limits, unary
from zerostride.core.alignment import Rule
from zerostride.core.rules import RULES
from zerostride.engines import ENGINES, Engine
from zerostride.engines.changes import CHANGES, MEASURED
from zerostride.engines.model import Rules
from zerostride.engines.releases import releases_of
from zerostride.models.reasons import REASONS
from zerostride.ops import OPS, find_op

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from bug_pages import (
    MADE,
    audited_bugs,
    bug_page,
    bugs_by_code,
    bugs_page,
    optimisers_page,
    reason_page,
)
from campaigns.equivalent import page as optimisers

#: The pages are of the newest rows, whichever releases are installed.
os.environ["ZEROSTRIDE_RELEASES"] = "newest"
DOCS = Path(__file__).parent

#: The modules of the public names that `zerostride/__init__.py` imports at once.
PLACES = {
    "Plan": "core.plan",
    "whdc": "core.rules",
    "strict": "core.strict_mode",
    **dict.fromkeys(("plan", "plan_to"), "engines.planning"),
    "supports": "engines.supports",
    "backend": "compute.native",
    **{name: "errors" for name in zs.__all__ if name in vars(errors)},
}

#: The public functions that are made of rows alone, and their types.
MADE_OF_ROWS = {
    **dict.fromkeys(functions.FUNCTIONS, "Elementwise"),
    **{name: "Activation" if find_op(name).parameters else "Unary" for name in unary.FUNCTIONS},
}

#: Each rule's example: shapes and attributes.
SHOWN = {
    "none": (((2, 3), (2, 3)), {}),
    "numpy": (((2, 1, 5), (4, 1)), {}),
    "pdpd": (((2, 3, 4, 5), (3, 4)), {"axis": 1}),
    "paddle": (((8, 1, 6, 1), (7, 1, 5)), {"axis": 1}),
    "ncnn": (((2, 3, 4), (2, 3)), {}),
    "mnn": (((3, 4, 6), (4, 6)), {}),
    "onnx6": (((2, 3, 4, 5), (3, 4)), {"broadcast": 1, "axis": 1}),
    "unidirectional": (((16, 1, 1), (1, 16, 50, 50)), {}),
    "bidirectional": (((16, 1, 1), (1, 1, 50, 50)), {}),
    "explicit": (((16,), (1, 16, 50, 50)), {"axes_mapping": (1,)}),
}


def shown_plan(rule: Rule) -> zs.Plan:
    """The example plan of a rule."""
    shapes, attributes = SHOWN[rule.name]
    if rule.to_target:
        mode = {"unidirectional": "numpy"}.get(rule.name, rule.name)
        return zs.plan_to(shapes[0], shapes[1], mode=mode, **attributes)
    return zs.plan(*shapes, rule=rule.name, **attributes)


def most(rule: Rule) -> str:
    """A sentence with a rule's limit of axes; empty if the summary already has it."""
    stated = f"up to {rule.max_rank} axes" in rule.summary or not rule.max_rank
    return "" if stated else f" Up to {rule.max_rank} axes."


def rules_page() -> str:
    """Every rule with its source and a drawing."""
    parts = [
        "# Rules\n\n",
        MADE,
        "A [rule](glossary.md) is the text of a document about broadcasting. Shapes have the "
        "outermost size first.\n",
    ]
    for rule in RULES.values():
        kind = "of Broadcast ops" if rule.to_target else "element-wise"
        attributes = ", ".join(
            f"`{name}` ({'required' if row.required else f'default {row.default}'})"
            for name, row in rule.attributes.items()
        )
        parts.append(
            f"\n## {rule.name}\n\n{rule.summary}{most(rule)} ({kind})\n\n"
            + (f"Attributes: {attributes}\n\n" if attributes else "")
            + f"Source: {rule.source}\n\n```text\n{shown_plan(rule).explain()}\n```\n"
        )
    return "".join(parts)


def engines_page() -> str:
    """Every engine's release with its limits and divergences."""
    parts = [
        "# Engines\n\n",
        MADE,
        "An [engine](glossary.md) is one release of a library or runtime with its rules, limits "
        "and divergences. Most releases were run; some were only read about and are marked *Read, "
        "not run*. The last ones were [learnt](learn.md) from answers alone.\n",
    ]
    parts += map(_engine, ENGINES.values())
    return "".join(parts)


Key = tuple[str, str, int | None, bool]


def rule_rows(engine: Engine) -> Iterator[tuple[str, str, Rule]]:
    """An engine's rules: the ops, the rule's name, the rule. Ops of equal rules share a row.

    Ops with the usual rules are left out, even if they have a row of their own for another reason.
    """
    usual = [_key(name, rule) for name, rule in engine.elementwise.items()]
    alike: dict[Key, list[str]] = {}
    first: dict[Key, Rule] = {}
    for words, rules in (
        ("element-wise", engine.elementwise),
        ("Broadcast op", engine.to_target),
        *engine.ops.items(),
        *((f"{op}, compiled before sizes are known", r) for op, r in engine.dynamic.items()),
        *_with_constants(engine),
    ):
        keys = [_key(name, rule) for name, rule in rules.items()]
        if keys == usual and rules is not engine.elementwise:
            continue
        for key, rule in zip(keys, rules.values(), strict=True):
            first.setdefault(key, rule)
            alike.setdefault(key, []).append(words)
    for key, words in alike.items():
        yield ", ".join(words), key[0], first[key]


def _with_constants(engine: Engine) -> Iterator[tuple[str, Rules]]:
    """The rules for constants: of all ops, and of single ops."""
    of_all = {name: rule for name, rule in engine.constants.items() if name not in OPS}
    yield "element-wise with a constant", of_all
    for op, rule in engine.constants.items():
        if op not in of_all:
            yield f"{op} with a constant", dict.fromkeys(engine.elementwise, rule)


def _key(name: str, rule: Rule) -> Key:
    return name, rule.summary, rule.max_rank, rule.to_target


def _engine(engine: Engine) -> str:
    evidence = "Measured" if engine.run else "Read, not run"
    releases = ", ".join(engine.measured)
    lines = [f"\n## {engine.name}\n", f"{evidence}: {releases}. Source: {engine.source}\n"]
    lines += [
        f"- {words}, `{name}`: {rule.summary}{most(rule)}"
        for words, name, rule in rule_rows(engine)
    ]
    if engine.samples:
        lines.append(
            "- Its ops see one sample at a time. Converters remove the batch axis from every "
            "tensor: a model's (1, 16, 8, 8) is (16, 8, 8) here. `audit` and `port` find that "
            "axis. `explain` and `compare` take shapes as the engine holds them, or with the "
            f"batch axis and `--batch-axis 0` ({engine.samples})."
        )
    if not engine.to_target:
        text = "none" if engine.broadcasts is False else "not documented"
        lines.append(f"- Broadcast op: {text}.")
    if engine.divergences:
        lines.append("\nKnown divergences:\n")
    for row in engine.divergences:
        source = "as above" if row.source == engine.source else row.source
        lines.append(f"- {row.text} ({row.effect}; {'run' if row.run else 'read'}: {source})")
    lines += _changes(engine)
    return "\n".join(lines) + "\n"


def _changes(engine: Engine) -> Iterator[str]:
    """The measured releases, and what changed between them."""
    changes = CHANGES.get(engine.name, ())
    if engine.name in MEASURED:
        seen = "Changes:\n" if changes else "No change was seen."
        yield f"\nMeasured releases: {', '.join(releases_of(engine))}. {seen}"
    for row in changes:
        how = "run" if row.run else "read"
        yield f"- {row.note(engine.name)}{row.concerned} ({how}: {row.source})"


def reasons_page() -> str:
    """docs/reasons.md."""
    lines = [
        f"{MADE}# Reasons of findings",
        "",
        "A [finding](glossary.md) has a `reason` and its `code`. A code has the same meaning in "
        "all releases.",
        "",
        "| code | reason | meaning |",
        "|---|---|---|",
        *(
            f"| [{row.code}](reasons/{row.code}.md) | `{row.name}` | {row.meaning} |"
            for row in REASONS
        ),
    ]
    return "\n".join(lines) + "\n"


def stub() -> str:
    """`zerostride/__init__.pyi`: every public name and its module."""
    parts = ["# Made by docs/generate.py: the type stub of `zerostride/__init__.py`.\n"]
    modules: dict[str, list[str]] = {
        "compute.functions": ["Elementwise"],
        "compute.unary": ["Activation", "Unary"],
    }
    for name in zs.__all__:
        home = zs._LATER.get(name) or PLACES[name]
        if name not in MADE_OF_ROWS:
            modules.setdefault(home, []).append(name)
    for home, names in sorted(modules.items()):
        listed = "".join(f"    {name} as {name},\n" for name in sorted(names))
        parts.append(f"from .{home} import (\n{listed})\n")
    parts.append("\nfrom .system.version import __version__ as __version__\n\n")
    parts += [f"{name}: {kind}\n" for name, kind in sorted(MADE_OF_ROWS.items())]
    parts.append("\n__all__ = [\n")
    parts += [f'    "{name}",\n' for name in sorted(zs.__all__)]
    return "".join(parts) + "]\n"


def header() -> str:
    """`native/shared_limits.h`: the numbers that the engine shares with the package."""
    lines = [
        f"constexpr int k{name.title().replace('_', '')} = {value};\n"
        for name, value in vars(limits).items()
        if name.isupper()
    ]
    return (
        "// Made by docs/generate.py from src/zerostride/compute/limits.py, which explains "
        f"them.\n#pragma once\n\nnamespace zs::limits {{\n\n{''.join(lines)}\n"
        "}  // namespace zs::limits\n"
    )


def pages() -> dict[Path, str]:
    """Every generated file with its content."""
    bugs = list(audited_bugs())
    by_code = bugs_by_code(bugs)
    shapes = (1, 8, 6, 64), (1, 2, 9, 64), (1, 2, 9, 64)
    attention = zs.plan_attention(*shapes, mask=(6, 9), causal="bottom_right")
    return {
        **{
            DOCS / "reasons" / f"{row.code}.md": reason_page(row, by_code.get(row.code, ()))
            for row in REASONS
        },
        **{DOCS / "bugs" / f"{bug.row['id']}.md": bug_page(bug) for bug in bugs},
        DOCS / "bugs.md": bugs_page(bugs),
        DOCS / "optimiser_bugs.md": optimisers_page(),
        DOCS.parent / "src" / "zerostride" / "__init__.pyi": stub(),
        DOCS.parent / "native" / "shared_limits.h": header(),
        DOCS / "rules.md": rules_page(),
        DOCS / "engines.md": engines_page(),
        DOCS / "reasons.md": reasons_page(),
        DOCS / "optimisers.md": optimisers.page(DOCS / "optimisers.json"),
        DOCS / "pictures" / "attention.svg": attention.svg(),
        DOCS / "pictures" / "pdpd.svg": shown_plan(RULES["pdpd"]).svg(),
        DOCS / "pictures" / "square-numpy.svg": zs.plan((5, 5), (5,)).svg(),
        DOCS / "pictures" / "square-ncnn.svg": zs.plan((5, 5), (5,), engine="ncnn").svg(),
    }


def main(arguments: list[str] | None = None) -> int:
    """Writes the files, or with --check names the stale ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    check = parser.parse_args(arguments).check
    stale = [p for p, text in pages().items() if not p.exists() or p.read_text("utf-8") != text]
    if check:
        for path in stale:
            print(f"{path.relative_to(DOCS.parent)} is not current: run docs/generate.py")
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pages()[path], "utf-8")
        print(f"wrote {path.relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
