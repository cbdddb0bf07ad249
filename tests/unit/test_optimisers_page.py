"""docs/optimisers.md: the page of a record of real models."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from campaigns.equivalent.page import page, steps_of

ROOT = Path(__file__).parents[2]


def record() -> dict[str, Any]:
    """Two models and an optimiser of two passes."""
    row = {"optimiser": "slim", "file": "f", "release": "1.0", "sources": "s", "steps": 4}
    results = [
        {"step": "", "end": "different", "why": "1 and 2 with N=2", "outputs": 1, "nodes": 9},
        {"step": "a", "end": "different", "why": "1 and 2 with N=2", "outputs": 1, "nodes": 9},
    ]
    undecided = {"outputs": 2, "regions": 1, "first": 3, "other": 4, "nodes": 9, "why": "a | b"}
    return {
        "seconds": 60,
        "optimisers": {"slim": {"package": "slim", "release": "1.0", "passes": ["a", "b"]}},
        "models": {},
        "skipped": {"large.onnx": 1 << 30},
        "rows": [
            {**row, "model": "m.onnx", "done": "passes", "results": results},
            {
                **row,
                "model": "n.onnx",
                "done": "passes",
                "results": [{"step": "", "end": "undecided", **undecided}],
            },
            {**row, "model": "unfinished.onnx", "done": "", "results": []},
        ],
    }


def made(tmp_path: Path) -> str:
    file = tmp_path / "optimisers.json"
    file.write_text(json.dumps(record()), "utf-8")
    return page(file)


def test_finished_rows_alone_have_steps() -> None:
    steps = steps_of(record())
    assert [(one.model, one.name, one.result.end) for one in steps[:4]] == [
        ("m.onnx", "slim", "different"),
        ("m.onnx", "slim: read and written", "unchanged"),
        ("m.onnx", "slim: a", "different"),
        ("m.onnx", "slim: b", "unchanged"),
    ]
    assert len(steps) == 8


def test_page_has_totals_shares_and_names(tmp_path: Path) -> None:
    text = made(tmp_path)
    assert "2 models, 3 pairs compared: 0 equal, 0 rounded, 2 different, 1 undecided." in text
    assert "33.3 % of the pairs and 25.0 % of their outputs are undecided." in text
    assert "Measured with slim 1.0." in text
    assert "1 larger models were left out: large.onnx." in text
    assert "| m.onnx | slim | 1 and 2 with N=2 | a |" in text
    assert "| n.onnx | slim | 3 of 9 | a \\| b |" in text
    assert "| slim: a | 0 | 0 | 1 | 0 | 0 | 0 | 1 | 0.0 % | 0.0 % |" in text
    assert "unfinished" not in text


def test_page_of_no_record_has_no_results(tmp_path: Path) -> None:
    assert "0 models, 0 pairs compared" in page(tmp_path / "none.json")


def test_record_of_the_repository_names_no_place_of_a_machine() -> None:
    text = (ROOT / "docs" / "optimisers.json").read_text("utf-8")
    assert not re.search(r"/(root|home|tmp|usr)/", text)


def test_page_needs_no_package() -> None:
    code = (
        "import sys\n"
        "sys.path.insert(0, '.')\n"
        "for name in ('onnx', 'numpy', 'onnxruntime'):\n"
        "    sys.modules[name] = None\n"
        "import campaigns.equivalent.page\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
