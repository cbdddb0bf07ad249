"""The cost of a run: by op, by the elements that it writes and reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small

from zerostride.errors import ModelError
from zerostride.models.execute import execute
from zerostride.models.execute.work import UNIT, nanoseconds
from zerostride.models.formats.onnx.reader import read_onnx
from zerostride.models.onnx_ops.kernels.call import MAX_WORK
from zerostride.models.onnx_ops.table import OPS

COUNT = 2**17


def _runs(content: Any, folder: Path, limit: int, x: Any) -> bool:
    file = folder / "model.onnx"
    file.write_bytes(content.SerializeToString())
    try:
        execute(read_onnx(file), {"x": x}, limit=limit)
    except ModelError as error:
        return "more work than the limit" not in str(error)
    return True


@pytest.mark.parametrize(
    ("op", "nanoseconds_an_element"), [("Neg", 3), ("Exp", 8), ("Erf", 151), ("Identity", 0)]
)
def test_op_is_charged_its_cost(op: str, nanoseconds_an_element: int, tmp_path: Path) -> None:
    content = small.model([small.node(op, "x", "y")], {"x": (COUNT,)})
    x = np.ones(COUNT, np.float32)
    units = nanoseconds_an_element * COUNT // UNIT
    assert _runs(content, tmp_path, units, x)
    assert not units or not _runs(content, tmp_path, units - 1, x)


def test_reading_is_charged(tmp_path: Path) -> None:
    content = small.model([small.node("ReduceMax", "x", "y", keepdims=0)], {"x": (COUNT,)})
    x = np.ones(COUNT, np.float32)
    assert _runs(content, tmp_path, COUNT // UNIT, x)
    assert not _runs(content, tmp_path, COUNT // UNIT - 1, x)


def test_chain_of_tiles_is_charged_for_all_elements(tmp_path: Path) -> None:
    tiles = [small.node("Tile", f"t{k} r" if k else "x r", f"t{k + 1}") for k in range(18)]
    content = small.model(
        [*tiles, small.node("Neg", "t18", "y")], {"x": (1,)}, {"r": np.array([2])}
    )
    listed = [OPS["Tile"].making * 2 ** (k + 1) // UNIT for k in range(18)]
    units = sum(listed) + 3 * 2**18 // UNIT
    assert _runs(content, tmp_path, units, np.ones(1, np.float32))
    assert not _runs(content, tmp_path, units - 1, np.ones(1, np.float32))


def test_halves_are_charged_more() -> None:
    single, half = np.ones(8, np.float32), np.ones(8, np.float16)
    assert nanoseconds("Add", (half, half), (half,)) > 3 * nanoseconds("Add", (single,), (single,))


def test_default_limit_is_ten_seconds() -> None:
    assert MAX_WORK * UNIT == 10 * 10**9
