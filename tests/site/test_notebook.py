"""examples/tour.ipynb runs in Jupyter, draws its plans, and is stored without outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "tour.ipynb"


def test_notebook_is_stored_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


# The kernel's own libraries warn of what is to come in theirs.
@pytest.mark.filterwarnings("default")
def test_notebook_runs_and_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx", reason="the notebook audits a model")
    nbformat = pytest.importorskip("nbformat", reason="notebooks are read with nbformat")
    nbclient = pytest.importorskip("nbclient", reason="notebooks are run with nbclient")
    pytest.importorskip("ipykernel", reason="a notebook's Python kernel is ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    nbclient.NotebookClient(notebook, timeout=120, resources=resources).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("<svg" in html(output) for output in shown) >= 4
    text = "".join(output.get("text", "") for output in shown)
    assert "DIFFERENT  Add y" in text
    assert "normalise(images, mean, std) is computed by" in text


def html(output: Any) -> str:
    """The HTML of a cell's output; empty where it has none."""
    return str(output.get("data", {}).get("text/html", ""))
