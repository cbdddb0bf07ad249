"""What an audit prints: a table that fits, the worst drawn, and a next command that runs."""

from __future__ import annotations

import random
import re
import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from commandline import Run
from reports import HOSTILE, audit_report, audited, verify_report

from warm import Answer
from zerostride.models.findings import Outcome, Verdict
from zerostride.report.groups import _unnamed, grouped
from zerostride.report.sheet import Sheet
from zerostride.report.table import Column, Heading, cells_of, table, wrapped
from zerostride.report.terminal import MOST_DRAWN, brief, cause_table, causes_of, worst_of
from zerostride.report.terminal_checks import check_lines
from zerostride.report.words import told

EXAMPLES = Path(__file__).parents[2] / "examples"
VISION = str(EXAMPLES / "tiny_vision.onnx")


def lines_of(answer: Answer) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", answer.out).splitlines()


def letters(*texts: str) -> Counter[str]:
    return Counter("".join("".join(texts).split()))


# Tables.


@pytest.mark.parametrize("seed", range(60))
def test_table_fits_and_loses_nothing(seed: int) -> None:
    draw = random.Random(seed)
    words = ["a", "reshape", "(1, 16)", "x" * 30, "\u5c42" * 7, "norm/mul,", "e\u0301te"]
    columns = [
        Column(f"t{k}", right=draw.random() < 0.3, roomy=draw.random() < 0.5)
        for k in range(draw.randint(1, 5))
    ]
    rows = [
        Heading("MARK", " ".join(draw.choices(words, k=9)), "red")
        if draw.random() < 0.2
        else [" ".join(draw.choices(words, k=draw.randint(0, 6))) for _ in columns]
        for _ in range(draw.randint(1, 6))
    ]
    width = draw.randint(90, 140)
    lines = table(columns, rows, width, ["bold red"] * len(rows))
    assert max(cells_of(line.text) for line in lines) <= width
    assert all(line.text == line.text.rstrip() for line in lines)
    cells = [
        part for row in rows for part in ([row.mark, row.text] if isinstance(row, Heading) else row)
    ]
    assert not letters(*cells) - letters(*(line.text for line in lines))


def test_table_takes_the_layout_with_fewer_lines() -> None:
    columns = [Column("node"), Column("fix", roomy=True)]
    narrow = table(columns, [["n" * 60, "f" * 60]], 80)
    assert [line.text for line in narrow] == ["node", "n" * 60, "    fix: " + "f" * 60]
    wide = table(columns, [["n" * 30, "f" * 60]], 92)
    assert [line.text for line in wide[1:]] == ["n" * 30 + "  " + "f" * 60]
    assert [line.text for line in table(columns, [["n", ""]], 80)] == ["node", "n"]


@pytest.mark.parametrize("width", [1, 2, 3, 7, 80])
def test_wrapped_text_is_the_text(width: int) -> None:
    for text in ("", "a", "a b", "abcdefgh ij", "\u5c42\u5c42 a", "two  blanks", "e\u0301" * 9):
        lines = wrapped(text, width)
        assert letters(*lines) == letters(text)
        assert max(map(cells_of, lines)) <= max(width, 2)


# Groups.


def test_name_in_a_message_is_no_text() -> None:
    assert _unnamed("on ncnn 'b' and 'a'", ("a", "b", "b")) == ("on ncnn ", 1, " and ", 0, "")
    assert _unnamed("'ab' 'a'", ("a", "ab")) == ("", 1, " ", 0, "")
    assert _unnamed("\x000", ("a",)) != _unnamed("'a'", ("a",))
    assert _unnamed("text", ("", "")) == ("text",)


def test_ten_alike_are_one_row() -> None:
    rows = [(f"n{k}", "Add", ((5, 5), (5,))) for k in range(10)]
    causes = causes_of(told(audited(*rows)))
    assert [[len(kind.findings) for kind in cause.kinds] for cause in causes] == [[10]]
    text = "\n".join(line.text for line in cause_table(causes, 100))
    assert text.count("Add") == 1
    assert "   10  Add  n0, n1, n2 and 7 more  (5,5) (5)" in text
    assert "n9" in "\n".join(line.text for line in cause_table(causes, 100, full=True))


def test_ops_that_an_engine_lacks_are_a_row_each_whatever_their_shapes() -> None:
    rows = [(f"n{k}", "Greater", ((k, 5), (5,))) for k in (2, 3, 4)]
    (cause,) = causes_of(told(audited(*rows)))
    assert [len(kind.findings) for kind in cause.kinds] == [3]


def test_worst_findings_come_first() -> None:
    causes = causes_of(told(audit_report()))
    verdicts = [cause.first.verdict for cause in causes]
    assert verdicts[0] is Verdict.DIFFERENT
    assert verdicts[-1] is Verdict.SAME_HERE
    assert Verdict.REFUSED in verdicts
    worst = worst_of(causes)
    assert len(worst) == MOST_DRAWN
    assert worst[0].verdict is Verdict.DIFFERENT
    assert len({(one.verdict, one.reason) for one in worst}) > 1


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_printable(name: str) -> None:
    report = audited((name, "Add", ((5, 5), (5,))), (name, "Custom", ((5, 5), (5,))))
    causes = causes_of(told(report))
    lines = [*cause_table(causes, 80, full=True)]
    for finding in worst_of(causes):
        lines += brief(finding, "ncnn", 80)
    assert all(line.text.isprintable() for line in lines)


def test_warning_of_the_model_is_kept() -> None:
    (finding,) = audited(("outer", "Add", ((4, 1), (4,)))).findings
    text = " ".join(line.text.strip() for line in brief(finding, "ncnn", 80))
    assert "WARNING:" in text
    assert "both stretch" in text


# The command.


def test_explain_says_what_a_code_means(run: Run) -> None:
    answer = run("explain", "ZS103")
    assert answer.out == (
        "ZS103 size_trap: The plans are equal at these sizes and differ at others.\n"
    )
    assert answer.status == 0
    assert '"reason": "size_trap"' in run("explain", "ZS103", "--json").out
    assert run("explain", "ZS999").status == 2
    assert "ZS1034" in run("explain", "ZS1034", "3").out, "a size may be called so"


@pytest.mark.parametrize("columns", [None, 80, 120, 200])
@pytest.mark.parametrize("target", ["ncnn", "litert-gpu", "tosa"])
def test_audit_fits_and_names_every_kind(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: int | None, target: str
) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    if columns is not None:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("zerostride.cli.tables._is_terminal", lambda stream: True)
        monkeypatch.setenv("FORCE_COLOR", "1")
    answer = run("audit", VISION, "--target", target)
    lines = lines_of(answer)
    assert len(lines) < 80, "a screen and a half"
    if columns is None:  # a pipe: headline, notes and commands stay whole
        lines = [line for line in lines[1:] if not line.startswith(("note: ", "next: "))]
    assert max(map(len, lines)) <= (columns or 120)
    import zerostride as zs

    report = zs.audit(VISION, target=target)
    full = lines_of(run("audit", VISION, "--target", target, "--full"))
    # A cell may be folded over several lines.
    words = Counter(" ".join(full).replace(",", " ").split())
    for group in grouped((finding, False) for finding in told(report)):
        sheet = Sheet(group.first)
        wanted = [one.node for one in group.findings] + [sheet.shapes, sheet.fix]
        assert not Counter(" ".join(wanted).replace(",", " ").split()) - words, wanted


def test_audit_draws_three_all_or_one(run: Run) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    audit = ("audit", VISION, "--target", "ncnn", "--via", "none", "--via", "none")
    usual = run(*audit)
    assert usual.out.count("in the model:") == MOST_DRAWN
    assert "--details draws all, --finding NODE one" in " ".join(usual.out.split())
    assert run(*audit, "--details").out.count("combines") > 20
    one = run(*audit, "--finding", "norm1/mul")
    assert one.out.startswith("DIFFERENT  Mul norm1/mul  [ZS104 other_alignment]\n")
    assert one.out.count("combines") == 2
    wrong = run(*audit, "--finding", "norm1/mal")
    assert wrong.status == 2
    assert "did you mean 'norm1/mul'?" in wrong.err
    assert run(*audit, "--summary", "--details").status == 2


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("ncnn", ["clean for ncnn: no", "2 Greater, 2 Where"]),
        ("mnn", ["clean for mnn: no", "different              2  1 Max, 1 Sum", "next: "]),
        (
            "litert-gpu",
            [
                "GPU-clean: no",
                "silently wrong",
                "falls back to the CPU",
                "2 MatMul",
                "fix: reshape ",
                "next: zerostride port ",
            ],
        ),
        ("onnxruntime", ["clean for onnxruntime: yes"]),
    ],
)
def test_summary_is_a_few_lines(run: Run, target: str, wanted: list[str]) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    answer = run("audit", VISION, "--target", target, "--summary")
    assert answer.out.count("\n") <= 10
    assert answer.status == ("next: " in answer.out)
    for words in wanted:
        assert words in answer.out


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (
            "tiny_vision.onnx",
            ["--target", "ncnn", "--via", "none", "--via", "pnnx", "--batch-axis", "0"],
        ),
        (
            "dynamic.onnx",
            [
                "--target",
                "ncnn",
                "--via",
                "none",
                "--via",
                "none",
                "--given",
                "T >= 1",
                "--set",
                "heads=2",
            ],
        ),
        (
            "dynamic.onnx",
            ["--target", "ncnn", "--via", "none", "--via", "none", "--input-shape", "features=?,8"],
        ),
        ("bugs/ncnn-2837.onnx", ["--target", "ncnn", "--via", "none", "--via", "none"]),
        ("bugs/onnx2tf-698.onnx", ["--target", "tensorflow", "--layout", "nhwc"]),
        ("bugs/tensorflow-61594.onnx", ["--target", "ncnn", "--via", "none", "--via", "none"]),
    ],
)
def test_next_command_runs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, options: list[str]
) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    monkeypatch.chdir(tmp_path)
    answer = run("audit", EXAMPLES / model, *options)
    last = answer.out.splitlines()[-1]
    assert last.startswith("next: zerostride ")
    command = shlex.split(last.removeprefix("next: zerostride "))
    for word in (word for word in options if word not in ("--layout", "nhwc")):
        assert command[0] != "port" or word in command
    assert run(*command).status in (0, 1), last


# Verifications and ports.


def test_verification_shows_what_differs_and_folds_the_rest() -> None:
    same = audited(("fine", "Add", ((2, 5), (2, 5)))).findings[0]
    findings = tuple(replace(same, node=check.node) for check in verify_report().checks)
    report = replace(verify_report(), findings=findings)
    lines = [line.text for line in check_lines(report, 120)]
    marks = [line.split()[0] for line in lines[1:]]
    assert marks[:3] == ["DIFFERS", "CRASHED", "REFUSED"]
    assert any(line.startswith("1 agrees: ") for line in lines)
    assert any(line.startswith("1 not run, ") for line in lines)
    full = "\n".join(line.text for line in check_lines(report, 120, full=True))
    for check in report.checks:
        assert check.node in full
        assert (check.node in "\n".join(lines)) == (check.outcome not in ("agrees", "not_run"))


def test_agreement_that_the_audit_does_not_expect_has_a_row() -> None:
    checks = tuple(replace(one, outcome=Outcome.AGREES) for one in verify_report().checks)
    report = replace(verify_report(), checks=checks)
    findings = {one.node: one for one in report.findings}
    rows = [line.text for line in check_lines(report, 120) if line.text.startswith("agrees ")]
    wrong = [one.node for one in checks if findings[one.node].verdict in ("different", "refused")]
    assert len(wrong) == len(rows) > 0


def test_verify_shows_the_shapes_of_a_product(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="writes a model")
    from onnx import helper, save

    info = helper.make_tensor_value_info
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    graph = helper.make_graph(
        [node], "g", [info("x", 1, (2, 3, 4)), info("w", 1, (4, 5))], [info("y", 1, (2, 3, 5))]
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    verify = ("verify", tmp_path / "m.onnx", "--engine", "numpy", "--no-cache", "--full")
    answer = run(*verify)
    assert answer.status == 0
    assert "(2,3,4) (4,5)" in answer.out


def test_port_of_many_nodes_is_a_short_table(run: Run) -> None:
    pytest.importorskip("onnx", reason="reads a model")
    port = ("port", VISION, "--target", "ncnn", "--via", "none", "--via", "none", "--dry-run")
    answer = run(*port)
    assert answer.out.count("\n") < 30
    assert "     10  Add  stem/column_shift" in answer.out
    assert "\nleft\n" in answer.out
    assert answer.out.splitlines()[-1].startswith("next: zerostride port ")
    assert run(*port, "--full").out.count("computed before and after") == 13
