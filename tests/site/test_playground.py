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

SITE = Path(__file__).parents[2] / "docs" / "site"
#: Runs `questions.py` of the zip file. With -I and -S only the standard library is there besides.
BROWSER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from questions import answer
import zerostride
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
    file = folder / "zerostride.zip"
    file.write_bytes(import_module("playground").library())
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", BROWSER, str(file)],
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
        named = {name: words.get(name, [""])[0] for name in ("rule", "engine", "axis", "facts")}
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


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"shapes": ["2,,", "3"]}, "x: '2,,' is not a shape"),
        ({"shapes": ["2,3", ""]}, "y: '' is not a shape"),
        ({"shapes": ["2", "2"], "axis": "one"}, "axis: 'one' is not a whole number"),
        ({"shapes": ["2", "2"], "rule": "numpy", "axis": "1"}, "axis"),
        ({"shapes": ["N", "2"], "facts": "N >"}, "N >"),
        ({"shapes": ["2", "2"], "engine": "nowhere"}, "nowhere"),
    ],
)
def test_unusable_questions_say_why(fields: dict[str, Any], words: str) -> None:
    questions = import_module("questions")
    for ask in ("plan", "compare", "row", "code"):
        text = questions.answer(json.dumps({"ask": ask, "row": 0, "target": "numpy", **fields}))
        if ask == "plan":
            assert not json.loads(text)["ok"]
            assert words in json.loads(text)["error"]
