"""The count of element-wise ops and of the chains that they form."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
from onnx import ModelProto
from small import node

# Campaigns are run from a checkout, and are no part of the package.
sys.path.insert(0, str(Path(__file__).parents[2]))

from campaigns.__main__ import main
from campaigns.real_models.chains import Census, Count, count_file, ranked
from campaigns.real_models.collect import read_rows

SHAPE = (1, 4, 5, 6)


def census_of(content: ModelProto, folder: Path, name: str = "m.onnx") -> Census:
    file = folder / name
    file.write_bytes(content.SerializeToString())
    census = Census()
    count_file(file, {}, census)
    return census


def counted(
    nodes: Sequence[Any], folder: Path, weights: Mapping[str, Any] | None = None, **more: Any
) -> Census:
    inputs = {"x": SHAPE, "z": SHAPE}
    return census_of(small.model(nodes, inputs, weights, **more), folder)


def places(counts: Mapping[str, Count]) -> dict[str, int]:
    return {text: count.places for text, count in counts.items()}


def test_ops_are_counted_by_the_forms_of_their_operands(tmp_path: Path) -> None:
    nodes = [
        node("Mul", "c x", "a"),
        node("Sum", "a z", "b"),
        node("Add", "b two", "d"),
        node("BatchNormalization", "d v v v v", "y"),
    ]
    weights = {"c": (4, 1, 1), "two": np.float32(2), "v": (4,)}
    assert places(counted(nodes, tmp_path, weights).ops) == {
        "Mul(1of4, all)": 1,
        "Add(all, all)": 1,
        "Add(all, one)": 1,
        "BatchNormalization(all, 1of4, 1of4, 1of4, 1of4)": 1,
    }


def test_chain_ends_where_another_op_reads_its_value(tmp_path: Path) -> None:
    nodes = [
        node("Sigmoid", "x", "s"),
        node("Mul", "x s", "a"),
        node("Relu", "a", "b"),
        node("Transpose", "a", "t"),
        node("Transpose", "b", "y"),
    ]
    census = counted(nodes, tmp_path, outputs=("t", "y"))
    assert places(census.chains) == {"Sigmoid(a:all); Mul(s1, a)": 1}
    assert sum(places(census.ops).values()) == 3


def test_chain_ends_at_an_output_of_the_model(tmp_path: Path) -> None:
    nodes = [node("Sigmoid", "x", "s"), node("Relu", "s", "y")]
    assert not counted(nodes, tmp_path, outputs=("s", "y")).chains
    assert places(counted(nodes, tmp_path).chains) == {"Sigmoid(a:all); Relu(s1)": 1}


def test_order_of_commutative_operands_makes_no_difference(tmp_path: Path) -> None:
    texts: set[str] = set()
    for operands in ("x s", "s x"):
        nodes = [node("Mul", "two x", "m"), node("Add", "z m", "s"), node("Mul", operands)]
        weights = {"two": np.float32(2)}
        texts.update(counted(nodes, tmp_path, weights).chains)
    assert texts == {"Mul(a:all, n); Add(s1, b:all); Mul(s2, a)"}
    nodes = [node("Relu", "x", "s"), node("Sub", "s z")]
    other = [node("Relu", "x", "s"), node("Sub", "z s")]
    assert counted(nodes, tmp_path).chains.keys() != counted(other, tmp_path).chains.keys()


def test_two_branches_of_a_chain_are_one_chain(tmp_path: Path) -> None:
    nodes = [node("Relu", "x", "a"), node("Tanh", "z", "b"), node("Add", "a b")]
    assert places(counted(nodes, tmp_path).chains) == {"Relu(a:all); Tanh(b:all); Add(s1, s2)": 1}


def test_constants_sizes_and_integers_are_left_out(tmp_path: Path) -> None:
    nodes = [
        node("Relu", "w", "folded"),
        node("Mul", "folded x", "a"),
        node("Shape", "x", "shape"),
        node("Cast", "shape", "floats", to=1),
        node("Sqrt", "floats", "roots"),
        node("Mul", "roots roots", "sizes"),
        node("Cast", "sizes", "target", to=7),
        node("Expand", "a target", "e"),
        node("Cast", "a", "i", to=6),
        node("Neg", "i", "j"),
        node("Cast", "j", "y", to=1),
    ]
    census = counted(nodes, tmp_path, {"w": (6,)}, outputs=("e", "y"))
    assert places(census.ops) == {"Mul(3of4, all)": 1}
    assert not census.chains


def test_most_common_shapes_are_the_largest_of_the_most_frequent() -> None:
    count = Count()
    for shapes in ([(2, 2)], [(3, 3)], [(3, 3)], [(5, 1)], [(5, 1)], [(9, 9)]):
        count.add("m", tuple(shapes))
    assert count.most_common() == (((3, 3),), 2)


def test_equally_frequent_patterns_are_ranked_by_files() -> None:
    counts = {"a": Count(2, {"m"}), "b": Count(2, {"m", "n"}), "c": Count(3, {"m"})}
    assert [text for text, _ in ranked(counts)] == ["c", "b", "a"]


def test_command_counts_the_files_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = small.model([node("Sigmoid", "x", "s"), node("Mul", "x s")], {"x": SHAPE})
    for name in ("a.onnx", "b.onnx"):
        (tmp_path / name).write_bytes(content.SerializeToString())
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    assert main(["chains", str(tmp_path), "--any-file", "--json"]) == 0
    said = capsys.readouterr()
    assert "broken.onnx" in said.err
    assert json.loads(said.out)["chains"] == [
        {
            "places": 2,
            "files": 2,
            "pattern": "Sigmoid(a:all); Mul(s1, a)",
            "shapes": [[1, 4, 5, 6]],
            "places_of_shapes": 2,
        }
    ]
    assert main(["chains", str(tmp_path), "--any-file"]) == 0
    line = "     2     2  Sigmoid(a:all); Mul(s1, a)  |  2 of (1, 4, 5, 6)"
    assert line in capsys.readouterr().out.splitlines()


def test_folder_without_models_is_bad_input(tmp_path: Path) -> None:
    assert main(["chains", str(tmp_path), "--any-file"]) == 2


def test_sizes_of_the_table_are_numbers_by_input() -> None:
    sizes = {row.file: row.sizes for row in read_rows()}
    assert sizes["silero_vad.onnx"] == {"input": (1, 512), "state": (2, 1, 128), "sr": ()}
    assert sizes["basic_pitch.onnx"] == {"serving_default_input_2:0": (1, 43844, 1)}
