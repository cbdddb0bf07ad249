"""Writes the pages and pictures that are generated from the tables; --check reports stale ones."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import zerostride as zs
from zerostride import errors
from zerostride.compute import functions, limits, unary
from zerostride.core.alignment import Rule
from zerostride.core.rules import RULES
from zerostride.engines import ENGINES, Engine
from zerostride.engines.changes import CHANGES, MEASURED
from zerostride.engines.model import Rules
from zerostride.engines.releases import releases_of
from zerostride.models.findings import Finding
from zerostride.models.reasons import REASONS, ReasonRow
from zerostride.ops import OPS, find_op
from zerostride.report import finding_text, headline, notes
from zerostride.report.words import mark_of

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaigns.equivalent import page as optimisers

#: The pages are of the newest rows, whichever releases are installed.
os.environ["ZEROSTRIDE_RELEASES"] = "newest"
DOCS = Path(__file__).parent
MADE = "<!-- Made by docs/generate.py from the tables; edit those. -->\n\n"

#: The modules of the public names that `zerostride/__init__.py` imports at once.
PLACES = {
    "Plan": "core.plan",
    "whdc": "core.rules",
    "strict": "core.strict_mode",
    **dict.fromkeys(("plan", "plan_to", "supports"), "engines.planning"),
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
        "and divergences. Most releases were run; the last ones were only read about and are "
        "marked *Read, not run*.\n",
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


@dataclass(frozen=True)
class AuditedBug:
    """A row of `examples/bugs.json`, and today's audit of its model.

    Attributes:
        row: of the table.
        words: of the audit's command line after the file; empty without an engine to audit for.
        report: the audit; None where zerostride has no rules of the engine or its converter.
    """

    row: Mapping[str, Any]
    words: str
    report: zs.Report | None

    @property
    def file(self) -> str:
        """The model, as a command line names it."""
        return f"examples/bugs/{self.row['id']}.onnx"

    @property
    def operands(self) -> str:
        """The op and the shapes of its operands."""
        shapes = " and ".join(f"({','.join(map(str, shape))})" for shape in self.row["shapes"])
        return f"{self.row['op']} of {shapes}"


#: Converters that turn maps to another layout, and the layout: the audit judges the turned model.
#: "": a layout that it does not know.
LAYOUTS = {"onnx2tf, channels last": "nhwc", "converter, channels first": ""}


def audited_bugs() -> Iterator[AuditedBug]:
    """Every public bug with its audit."""
    folder = DOCS.parent / "examples"
    for row in json.loads((folder / "bugs.json").read_text("utf-8"))["bugs"]:
        backend = row.get("backend", "")
        target = "litert-gpu" if backend == "GPU delegate" else row["target"]
        layout = LAYOUTS.get(backend)
        if target not in ENGINES or layout == "":
            yield AuditedBug(row, "", None)
            continue
        words = f"--target {target}"
        options: dict[str, Any] = {}
        if target == "ncnn":  # the reports are of layers that were written op for op
            words, options = f"{words} --via none", {"via": "none"}
        if layout:
            words, options = f"{words} --layout {layout}", {"layout": layout}
        elif target == "ncnn" and "target_shapes" not in row:
            words, options = f"{words} --batch-axis none", {**options, "batch_axis": -1}
        file = folder / "bugs" / f"{row['id']}.onnx"
        report = replace(zs.audit(file, target=target, **options), model=f"{row['id']}.onnx")
        yield AuditedBug(row, words, report)


def reason_page(row: ReasonRow, bugs: Sequence[AuditedBug]) -> str:
    """docs/reasons/CODE.md: a reason, and the public bugs that show it."""
    lines = [f"{MADE}# {row.code}: {row.name}", "", row.meaning, ""]
    lines += [f"`zerostride explain {row.code}` prints this line.", "", "## Public bugs", ""]
    for bug in bugs:
        references = ", ".join(bug.row["references"])
        lines += [
            f"- [{bug.row['symptom']}](../bugs/{bug.row['id']}.md) ({references}): {bug.operands}. "
            f"{bug.row['happened']} `zerostride audit {bug.file} {bug.words}`"
        ]
    if not bugs:
        lines.append("No model of `examples/bugs/` shows it.")
    return "\n".join([*lines, "", "All reasons: [the table](../reasons.md).", ""])


END_OF_BUGS = "All bugs: [the list](../bugs.md)."


def bug_page(bug: AuditedBug) -> str:
    """docs/bugs/ID.md: a public bug, with the audit of its model and the fix."""
    row = bug.row
    where = row["target"] + (f", {row['backend']}" if "backend" in row else "")
    lines = [f"{MADE}# {row['symptom']}", "", row["happened"], ""]
    lines += [
        f"- Reported: {_links(row['references'])}",
        f"- Engine: {where}",
        f"- Broadcast: {bug.operands}",
    ]
    lines += [f"- Model: [{bug.file}](../../{bug.file})", "", "## Audit", ""]
    if row["source"] == "none":
        shapes = " ".join(",".join(map(str, shape)) for shape in row["shapes"])
        lines += [
            "The engine broadcasts as NumPy does, so an audit finds nothing. The program meant no "
            "broadcast: [strict mode](../strict.md) refuses it. "
            f"`zerostride compare {shapes} --reference none` shows which engines broadcast.",
            "",
        ]
    if bug.report is None:
        lines += [f"zerostride gives no verdict: it has no rules of {where}.", "", END_OF_BUGS, ""]
        return "\n".join(lines)
    lines += ["```sh", f"zerostride audit {bug.file} {bug.words}", "```", "", "```text"]
    lines += [headline(bug.report), *notes(bug.report), ""]
    lines += [line for finding in bug.report.findings for line in _lines_of(finding)]
    lines += ["```", ""]
    wrong = [finding for finding in bug.report.findings if finding.verdict != "same"]
    if any(finding.fix for finding in wrong) and "--layout" not in bug.words:
        command = f"zerostride port {bug.file} {bug.words} -o fixed.onnx"
        lines += ["## Fix", "", "`port` writes the fix into the model:", ""]
        lines += ["```sh", command, "```", ""]
    codes = sorted({finding.code for finding in wrong})
    lines += [f"Its reason: [{code}](../reasons/{code}.md).\n" for code in codes]
    if not wrong:
        lines += ["The audit finds no difference on the release above.", ""]
    return "\n".join([*lines, END_OF_BUGS, ""])


def _links(references: Sequence[str]) -> str:
    return ", ".join(
        f"[{reference}](https://github.com/{reference.replace('#', '/issues/')})"
        for reference in references
    )


def _lines_of(finding: Finding) -> list[str]:
    return [line.rstrip() for line in finding_text(finding).splitlines()]


def bugs_page(bugs: Sequence[AuditedBug]) -> str:
    """docs/bugs.md: every public bug in a row."""
    lines = [
        f"{MADE}# Public bugs",
        "",
        "Broadcasts that went wrong on an engine, as users reported them, each as a model of one "
        "node with its audit. Search this page for your error text. [Faults of optimisers]"
        "(optimiser_bugs.md) has models whose meaning an optimiser changed.",
        "",
        "| symptom | broadcast | engine | audit today |",
        "|---|---|---|---|",
    ]
    for bug in bugs:
        findings = bug.report.findings if bug.report is not None else ()
        verdicts = ", ".join(
            "same" if one.verdict == "same" else f"{mark_of(one.verdict)} ({one.code})"
            for one in findings
        )
        title = bug.row["symptom"].replace("|", "\\|")
        cells = (f"[{title}](bugs/{bug.row['id']}.md)", bug.operands, bug.row["target"])
        lines.append(f"| {' | '.join(cells)} | {verdicts or 'no verdict'} |")
    return "\n".join(lines) + "\n"


def bugs_by_code(bugs: Sequence[AuditedBug]) -> dict[str, list[AuditedBug]]:
    """The public bugs by the code that today's audit of them gives."""
    by_code: dict[str, list[AuditedBug]] = {}
    for bug in bugs:
        findings = bug.report.findings if bug.report is not None else ()
        for code in sorted({finding.code for finding in findings if finding.verdict != "same"}):
            by_code.setdefault(code, []).append(bug)
    return by_code


def optimisers_page() -> str:
    """docs/optimiser_bugs.md: every fault of an optimiser with both models."""
    table = json.loads((DOCS.parent / "examples" / "optimisers.json").read_text("utf-8"))
    lines = [
        f"{MADE}# Faults of optimisers",
        "",
        "These optimisers changed the meaning of a model; some cases are public reports. Each has "
        "a small model of ours and what the optimiser wrote for it. The tests compare each pair "
        "with [equivalent](equivalent.md), and run today's releases where they are installed.",
        "",
        "| fault | release | today |",
        "|---|---|---|",
    ]
    for fault in table["faults"]:
        tool = fault["tool"].split()[0]
        today = f"{tool} {table['releases'][tool]}: {_today(fault)}"
        title = f"[{fault['symptom']}](#{fault['id']})"
        lines.append(f"| {title} | {tool} {fault['release']} | {today} |")
    for fault in table["faults"]:
        lines += ["", *_fault(fault)]
    return "\n".join(lines) + "\n"


def _today(fault: Mapping[str, Any]) -> str:
    return f"mended in {fault['mended']}" if fault["today"] == "mended" else "the same"


def _fault(fault: Mapping[str, Any]) -> Iterator[str]:
    """The section of a fault of an optimiser."""
    files = [f"examples/optimisers/{fault['id']}-{part}.onnx" for part in ("before", "after")]
    yield from (f"## {fault['id']}", "", f"**{fault['symptom']}.** {fault['happened']}", "")
    yield f"- Reported: {_links(fault['references']) or 'not yet, as far as we know'}"
    tool, _, level = fault["tool"].partition(" ")
    words = f"{tool} {fault['release']}" + (f", level {level}" if level else "")
    yield f"- Optimiser: {words}, pass `{fault['pass']}`"
    yield f"- `equivalent`: {_shown(fault)}"
    for name, file in zip(("before", "after"), files, strict=True):
        yield from ("", f"[{file}](../{file}):", "", "```text", *fault[name], "```")
    yield from ("", "```sh", f"zerostride equivalent {' '.join(files)}", "```")


def _shown(fault: Mapping[str, Any]) -> str:
    """What `zerostride equivalent` shows of a fault."""
    sizes = ", ".join(f"{name}={size}" for name, size in fault["sizes"].items())
    place = f"with {sizes}" if sizes else "at the sizes of the file"
    if fault["effect"] == "refuses":
        return f"different: only the first works {place}"
    begins = " and ".join(f"`{name}`" for name in fault["begins"])
    return f"different {place}; both have {begins}, and the nodes after differ"


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
