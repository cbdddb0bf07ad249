"""The playground's answers, computed from the files that the browser gets, without NumPy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import zerostride as zs
from zerostride.derive.code import TARGETS
from zerostride.report import html

#: ncnn's file of two inputs and their sum, which other engines align otherwise.
PARAM = """7767517
3 3
Input x 0 1 x 0=5 1=5
Input y 0 1 y 0=5
BinaryOp sum 2 1 x y sum 0=0
"""
SITE = Path(__file__).parents[2] / "docs" / "site"
#: Runs `questions.py` of the zip file. With -I and -S only the standard library is there besides.
BROWSER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from questions import answer, open_audit
import zerostride
open_audit(sys.argv[2])
assert zerostride.__file__.startswith(sys.argv[1]), zerostride.__file__
print(json.dumps([json.loads(answer(line)) for line in sys.stdin]))
"""


@pytest.fixture(autouse=True)
def site_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(SITE))
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(SITE)):
            del sys.modules[name]


def answers(folder: Path, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    playground = import_module("playground")
    zips = [folder / "zerostride.zip", folder / "audit.zip"]
    for path, data in zip(zips, (playground.library(), playground.audit()), strict=True):
        path.write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", BROWSER, *map(str, zips)],
        cwd=folder,
        input="\n".join(map(json.dumps, questions)),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    result: list[dict[str, Any]] = json.loads(done.stdout)
    assert len(result) == len(questions)
    return result


def test_answers_are_the_librarys(tmp_path: Path) -> None:
    square: dict[str, Any] = {"shapes": ["5,5", "(5,)"], "rule": "", "engine": "", "axis": ""}
    rows = zs.compare((5, 5), (5,)).rows
    place = next(k for k, row in enumerate(rows) if (row.kind, row.name) == ("engine", "ncnn"))
    plan, compared, row, code = answers(
        tmp_path,
        [
            {"ask": "plan", **square},
            {"ask": "compare", **square},
            {"ask": "row", "row": place, **square},
            {"ask": "code", "target": "torch", **square},
        ],
    )
    assert plan["text"] == zs.plan((5, 5), (5,)).explain()
    assert "<svg" in plan["svg"]
    assert "<style" not in plan["svg"]
    assert compared["rows"] == json.loads(zs.compare((5, 5), (5,)).to_json())["rows"]
    assert "result[0, 1] is 6.0 by numpy, 5.0 by ncnn" in row["shown"]
    assert row["fix"] == "reshape y to (1, 5)"
    assert code["code"] == zs.plan((5, 5), (5,)).code("torch")


def test_every_example_is_answered(tmp_path: Path) -> None:
    from urllib.parse import parse_qs

    playground = import_module("playground")
    questions = []
    for fields in playground.EXAMPLES:
        words = parse_qs(fields)
        named = {
            name: words.get(name, [""])[0] for name in ("rule", "engine", "op", "axis", "facts")
        }
        questions += [{"ask": ask, "shapes": words["s"], **named} for ask in ("plan", "compare")]
    fields = dict(zip(playground.EXAMPLES.values(), answers(tmp_path, questions)[::2], strict=True))
    assert [name for name, plan in fields.items() if not plan["ok"]] == ["refused"]
    assert "fix: reshape y to (3, 1)" in fields["refused"]["error"]
    assert all("rows" in table for table in answers(tmp_path, questions)[1::2])


def test_engines_rules_and_open_sizes_are_asked(tmp_path: Path) -> None:
    pdpd = {"shapes": ["2,3,4", "3"], "rule": "pdpd", "engine": "openvino", "axis": "1"}
    opened = {"shapes": ["H,W", "W"], "facts": "W >= 2"}
    first = {"shapes": ["2,3", "3"], "rule": "onnx6"}
    kinds = ("engine", "openvino", "pdpd")
    (table,) = answers(tmp_path, [{"ask": "compare", **pdpd}])
    assert tuple(table["reference"][name] for name in ("kind", "name", "rule")) == kinds
    place = next(
        k for k, row in enumerate(zs.compare(("H", "W"), ("W",)).rows) if row.name == "ncnn"
    )
    ncnn, older, *codes = answers(
        tmp_path,
        [
            {"ask": "row", "row": place, **opened},
            {"ask": "plan", **first},
            *({"ask": "code", "target": target, **pdpd} for target in TARGETS),
        ],
    )
    assert any("H == W" in text for text in ncnn["words"])
    assert "by numpy" in ncnn["shown"]
    assert older["ok"]
    assert all(code["ok"] for code in codes), codes


def test_an_op_is_asked(tmp_path: Path) -> None:
    slope = {"shapes": ["2,3,4", "4"], "op": "prelu"}
    rows = zs.compare((2, 3, 4), (4,), op="prelu").rows
    place = next(k for k, row in enumerate(rows) if row.name == "mlx")
    plan, table, row, torch = answers(
        tmp_path,
        [
            {"ask": "plan", **slope},
            {"ask": "compare", **slope},
            {"ask": "row", "row": place, **slope},
            {"ask": "compare", **slope, "engine": "openvino"},
        ],
    )
    assert plan["ok"]
    assert table["rows"] == [row.as_dict() for row in rows]
    assert "has no op for prelu" in row["text"]
    assert not row["fix"]
    assert torch["reference"]["rule"] == "pdpd"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"shapes": ["2,,", "3"]}, "x: '2,,' is not a shape"),
        ({"shapes": ["2,3", ""]}, "y: '' is not a shape"),
        ({"shapes": ["2", "2"], "axis": "one"}, "axis: 'one' is not a whole number"),
        ({"shapes": ["2", "2"], "rule": "numpy", "axis": "1"}, "axis"),
        ({"shapes": ["N", "2"], "facts": "N >"}, "N >"),
        ({"shapes": ["2", "2"], "engine": "nowhere"}, "nowhere"),
        ({"shapes": ["2", "2"], "engine": "nowhere", "op": "prelu"}, "nowhere"),
        ({"shapes": ["2", "2"], "op": "nothing"}, "nothing"),
    ],
)
def test_unusable_questions_say_why(fields: dict[str, Any], words: str) -> None:
    questions = import_module("questions")
    for ask in ("plan", "compare", "row", "code"):
        text = questions.answer(json.dumps({"ask": ask, "row": 0, "target": "numpy", **fields}))
        if ask == "plan":
            assert not json.loads(text)["ok"]
            assert words in json.loads(text)["error"]


def test_dropped_param_is_audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.param").write_text(PARAM, "utf-8")
    taken, audited, report, own = answers(
        tmp_path,
        [
            {"ask": "take", "file": "net.param", "size": len(PARAM)},
            {"ask": "audit", "file": "net.param", "engine": "openvino"},
            {"ask": "report", "file": "net.param", "engine": "openvino"},
            {"ask": "audit", "file": "net.param", "engine": "ncnn"},
        ],
    )
    monkeypatch.chdir(tmp_path)
    assert taken == {"ok": True, "name": "net.param"}
    assert (audited["worst"], audited["words"]) == ("different", "1 different")
    assert report["html"] == html(zs.audit("net.param", "openvino"))
    assert (own["worst"], own["words"], own["run"]) == ("same", "1 same", True)


def test_file_of_a_name_is_audited_again_when_it_has_changed(tmp_path: Path) -> None:
    questions = import_module("questions")
    file = tmp_path / "net.param"

    def ask(**fields: Any) -> Any:
        return json.loads(questions.answer(json.dumps({"file": str(file), **fields})))

    words = []
    for text in (PARAM, PARAM.replace("y 0=5", "y 0=5 1=5")):
        file.write_text(text, "utf-8")
        ask(ask="take", size=len(text))
        words.append(ask(ask="audit", engine="torch")["words"])
    assert words == ["1 different", "1 same"]


def test_broken_file_has_the_librarys_error(tmp_path: Path) -> None:
    (tmp_path / "net.param").write_text(PARAM.replace("3 3", "9 3"), "utf-8")
    (broken,) = answers(tmp_path, [{"ask": "audit", "file": "net.param", "engine": "torch"}])
    with pytest.raises(zs.ModelError) as error:
        zs.audit(tmp_path / "net.param", "torch")
    assert not broken["ok"]
    assert broken["error"] == str(error.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    ("file", "size", "words"),
    [
        (
            "net.onnx",
            9,
            "reads ncnn's .param text only. On your machine:\n  pip install zerostride",
        ),
        ("net.tflite", 9, "zerostride audit net.tflite --target openvino"),
        ("net.bin", 9, "An audit reads shapes: drop the .param beside it"),
        ("photo.png", 9, "photo.png: this page reads ncnn's .param text only"),
        ("net.param", 1 << 23, "8,388,608 bytes; this page reads up to 4,194,304"),
        ("folder/net.PARAM", 9, ""),
    ],
)
def test_other_files_are_refused_with_a_way(file: str, size: int, words: str) -> None:
    question = {"ask": "take", "file": file, "size": size}
    answer = json.loads(import_module("questions").answer(json.dumps(question)))
    assert answer["ok"] == (not words)
    assert words in answer.get("error", "")
    assert answer["ok"] or "zerostride audit" in answer["error"] or not file.endswith("param")


def test_computation_with_arrays_says_that_the_page_has_no_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    questions, names = import_module("questions"), import_module("numpy_names")
    for use in (lambda: names.add(1, 2), lambda: names.random.default_rng(0)):
        with pytest.raises(
            names.NeedsNumPy, match=r"needs NumPy .*, which this page does not have"
        ):
            use()
    assert not isinstance(1.5, names.floating | names.ndarray[Any, Any])
    assert names.inf == float("inf")
    monkeypatch.setitem(sys.modules, "numpy", names)
    monkeypatch.setitem(questions.ASKED, "plan", lambda question: names.asarray(question))
    answer = json.loads(questions.answer(json.dumps({"ask": "plan"})))
    assert not answer["ok"]
    assert "this needs NumPy (asarray)" in answer["error"]
