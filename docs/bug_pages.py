"""The pages of public bugs, of the reasons that they show, and of optimisers' faults."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import zerostride as zs
from zerostride.engines import ENGINES
from zerostride.models.findings import Finding
from zerostride.models.reasons import ReasonRow
from zerostride.report import finding_text, headline, notes
from zerostride.report.words import mark_of

EXAMPLES = Path(__file__).parents[1] / "examples"
#: The comment that a generated page begins with.
MADE = "<!-- Made by docs/generate.py from the tables; edit those. -->\n\n"


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
    for row in json.loads((EXAMPLES / "bugs.json").read_text("utf-8"))["bugs"]:
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
        file = EXAMPLES / "bugs" / f"{row['id']}.onnx"
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
    table = json.loads((EXAMPLES / "optimisers.json").read_text("utf-8"))
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
