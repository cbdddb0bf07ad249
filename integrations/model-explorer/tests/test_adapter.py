"""The adapter in Model Explorer's own server: graphs of every format, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from model_explorer.extension_manager import ExtensionManager
from zerostride_model_explorer.graphs import CONSTANT, INPUTS, OUTPUTS, graphs_of
from zerostride_model_explorer.main import ZerostrideAdapter

import zerostride as zs
from zerostride.report.node_data import node_data

EXAMPLES = Path(__file__).parents[3] / "examples"
MODELS = sorted(
    path
    for path in EXAMPLES.rglob("*")
    if path.suffix[1:] in ZerostrideAdapter.metadata.fileExts and path.is_file()
)


def test_the_server_finds_the_adapter() -> None:
    manager = ExtensionManager(["zerostride_model_explorer"])
    manager.load_extensions()
    assert "zerostride" in {row["id"] for row in manager.get_extensions_metadata()}


def test_the_server_converts_a_file() -> None:
    manager = ExtensionManager(["zerostride_model_explorer"])
    manager.load_extensions()
    path = str(EXAMPLES / "square_add.param")
    words = {"cmdId": "convert", "extensionId": "zerostride", "modelPath": path, "settings": {}}
    (graph,) = manager.run_cmd(words)["graphs"]
    assert [node["label"] for node in graph["nodes"]] == [INPUTS, "BinaryOp", OUTPUTS]


@pytest.mark.parametrize("file", MODELS, ids=lambda file: str(file.relative_to(EXAMPLES)))
def test_every_edge_begins_at_a_node(file: Path) -> None:
    graphs = ZerostrideAdapter().convert(str(file), {})["graphs"]
    assert graphs[0].id == file.name
    ids = {graph.id for graph in graphs}
    for graph in graphs:
        nodes = {node.id: node for node in graph.nodes}
        assert len(nodes) == len(graph.nodes)
        for node in graph.nodes:
            assert set(node.subgraphIds) <= ids
            for edge in node.incomingEdges:
                outputs = {part.id for part in nodes[edge.sourceNodeId].outputsMetadata}
                assert edge.sourceNodeOutputId in outputs


def test_formats_of_examples() -> None:
    assert {path.suffix for path in MODELS} >= {".onnx", ".param", ".xml"}


def test_verdicts_find_their_nodes() -> None:
    """Node data names nodes by the first tensor that they make."""
    file = EXAMPLES / "tiny_vision.onnx"
    report = zs.audit(file, "ncnn")
    (graph,) = graphs_of(file)
    nodes = {node.id for node in graph.nodes}
    data = json.loads(node_data(report))
    assert data["results"]
    assert set(data["results"]) <= nodes


def test_shapes_and_numbers_are_shown() -> None:
    (graph,) = graphs_of(EXAMPLES / "tiny_vision.onnx")
    labels = {node.label for node in graph.nodes}
    assert {CONSTANT, INPUTS, OUTPUTS} <= labels
    outputs = [part for node in graph.nodes for part in node.outputsMetadata]
    shapes = [entry.value for part in outputs for entry in part.attrs if entry.key == "shape"]
    assert shapes
    assert all(shape.startswith("(") for shape in shapes)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "m.param"
    wrong.write_text("nonsense")
    with pytest.raises(zs.ModelError, match=r"m\.param"):
        ZerostrideAdapter().convert(str(wrong), {})
