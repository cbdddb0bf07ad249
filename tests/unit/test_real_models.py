"""The campaign over real models: its table, and its judge."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from campaigns.real_models.collect import collect, read_rows, rows_of
from campaigns.real_models.measure import Measured, Target, audit_everywhere
from campaigns.real_models.page import totals

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tiny_vision.onnx"


def test_every_row_names_one_file_and_its_content():
    rows = read_rows()
    assert len({row.file for row in rows}) == len(rows)
    for row in rows:
        assert re.fullmatch(r"[0-9a-f]{64}", row.sha256), row.file
        assert all(re.fullmatch(r".+=[0-9,]*", shape) for shape in row.shapes), row.file


def test_file_with_other_content_is_refused(tmp_path, monkeypatch):
    row = read_rows()[0]
    (tmp_path / row.file).write_bytes(b"something else")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    assert [line.split(":")[0] for line in collect(tmp_path, [row])] == [row.file]


@pytest.mark.parametrize(
    ("target", "ok"),
    [
        (Target(counts={"same": 3}, answers=1), True),
        (Target(counts={"same": 3}, answers=2), False),
        (Target(counts={"same": 3}, answers=1, contradictions=["WRONG VERDICT: x"]), False),
    ],
)
def test_two_answers_and_contradictions_are_faults(target, ok):
    total = totals([Measured("a.onnx", targets={"ncnn": target})])
    assert total.findings == 3
    assert total.ok is ok


def test_audit_is_the_same_in_every_process():
    measured = Measured(EXAMPLE.name)
    audit_everywhere(EXAMPLE, ["ncnn", "onnxruntime"], measured)
    assert not measured.missing
    assert {name: target.answers for name, target in measured.targets.items()} == {
        "ncnn": 1,
        "onnxruntime": 1,
    }
    assert measured.targets["ncnn"].counts != measured.targets["onnxruntime"].counts


def test_any_model_file_of_a_folder_is_a_row(tmp_path: Path) -> None:
    for name in ("b.onnx", "a.tflite", "notes.txt"):
        (tmp_path / name).touch()
    rows = rows_of(tmp_path, (".onnx", ".tflite"))
    assert [row.file for row in rows] == ["a.tflite", "b.onnx"]
    assert rows[0].shapes == ()
