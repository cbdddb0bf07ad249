"""`zs.shapes` and `zerostride shapes`: sizes of a whole model, needs, and the file written back."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small

import zerostride as zs
from zerostride.errors import ModelError

EXAMPLES = Path(__file__).parents[2] / "examples"


def saved(folder: Path, *nodes: Any, **more: Any) -> Path:
    content = small.model(nodes, **more)
    file = folder / "m.onnx"
    file.write_bytes(content.SerializeToString())
    return file


@pytest.fixture
def add(tmp_path: Path) -> Path:
    """x (N, 3) + z (M, 3), then a Relu."""
    return saved(
        tmp_path,
        small.node("Add", "x z", "a", name="first"),
        small.node("Relu", "a", name="second"),
        inputs={"x": ("N", 3), "z": ("M", 3)},
    )


def test_sizes_and_needs_are_inferred(add: Path) -> None:
    shapes = zs.shapes(add)
    assert shapes.ok
    assert shapes.shapes["x"] == ("N", 3)
    assert shapes.shapes["y"] == ("bcast(M, N)", 3)
    (need,) = shapes.needs
    assert (need.node_path, str(need.condition)) == ("first", "M == N or N == 1 or M == 1")
    assert shapes.condition(N=4, M=1)
    assert not shapes.condition(N=4, M=3)
    assert [t.role for t in shapes.tensors] == ["input", "input", "", "output"]


def test_given_sizes_and_facts_are_used(add: Path) -> None:
    assert zs.shapes(add, sizes={"N": 4}).shapes["y"] == (4, 3)
    assert zs.shapes(add, sizes={"N": 4, "M": 1}).shapes["y"] == (4, 3)
    assert zs.shapes(add, facts="M == N").needs == ()
    assert zs.shapes(add, facts=["N >= 2", "M >= 2"]).needs[0].condition == zs.Condition.parse(
        "M == N"
    )
    failed = zs.shapes(add, sizes={"N": 4, "M": 3})
    assert not failed.ok
    assert failed.failures[0].node_path == "first"


def test_written_shapes_are_the_reported_ones(add: Path, tmp_path: Path) -> None:
    output = tmp_path / "shaped.onnx"
    zs.shapes(add, facts="M == 1", output=output)
    written = onnx.load(output)
    onnx.checker.check_model(written, full_check=True)
    (entry,) = written.graph.value_info
    assert entry.name == "a"
    sizes = [d.dim_param or d.dim_value for d in entry.type.tensor_type.shape.dim]
    assert sizes == ["N", 3]
    (result,) = written.graph.output
    sizes = [d.dim_param or d.dim_value for d in result.type.tensor_type.shape.dim]
    assert sizes == ["N", 3]
    # Nothing else changed.
    del written.graph.value_info[:]
    written.graph.output[0].CopyFrom(onnx.load(add).graph.output[0])
    assert written == onnx.load(add)


def test_contradiction_is_not_written(tmp_path: Path) -> None:
    file = saved(tmp_path, small.node("Relu", "x", name="culprit"), inputs={"x": (2, 3)})
    model = onnx.load(file)
    model.graph.output[0].CopyFrom(
        onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (2, 4))
    )
    onnx.save(model, file)
    output = tmp_path / "out.onnx"
    with pytest.raises(ModelError, match="culprit"):
        zs.shapes(file, output=output)
    assert not output.exists()
    assert list(tmp_path.iterdir()) == [file]
    shapes = zs.shapes(file)
    assert not shapes.ok
    assert "culprit" in str(shapes.failures[0])


def test_external_weights_stay_in_their_file(tmp_path: Path) -> None:
    file = saved(
        tmp_path, small.node("Add", "x w"), inputs={"x": ("N", 300)}, weights={"w": np.ones(300)}
    )
    model = onnx.load(file)
    onnx.save(model, file, save_as_external_data=True, location="w.bin", size_threshold=0)
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    with pytest.raises(ModelError, match="same folder"):
        zs.shapes(file, output=elsewhere / "out.onnx")
    assert not list(elsewhere.iterdir())
    zs.shapes(file, output=tmp_path / "out.onnx")
    assert onnx.load(tmp_path / "out.onnx").graph.initializer[0].name == "w"


def test_output_that_cannot_be_written_is_one_line(add: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere"):
        zs.shapes(add, output=tmp_path / "nowhere" / "out.onnx")


@pytest.mark.parametrize("name", ["transformer_dynamic", "unet_dynamic_script"])
def test_exported_models_have_known_shapes_throughout(name: str) -> None:
    shapes = zs.shapes(EXAMPLES / f"{name}.onnx")
    assert shapes.ok
    for tensor in shapes.tensors:
        assert tensor.shape is not None, tensor.name
        for size in tensor.shape:
            assert isinstance(size, int) or all(s.named for s in size.symbols), tensor
    if name == "transformer_dynamic":
        needs = [str(need.condition) for need in shapes.needs]
        assert needs == ["source_length <= 64", "target_length <= 64"]


def test_only_regular_files_are_replaced(add: Path, tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe.onnx", tmp_path / "link.onnx"
    os.mkfifo(pipe)
    with pytest.raises(ModelError, match="not a regular file"):
        zs.shapes(add, output=pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    target = tmp_path / "target.onnx"
    target.write_bytes(b"old")
    link.symlink_to(target)
    zs.shapes(add, output=link)
    assert link.is_symlink()
    assert onnx.load(target).graph.value_info[0].name == "a"


def test_equal_names_in_the_file_do_not_mix_sizes(tmp_path: Path) -> None:
    file = saved(
        tmp_path,
        small.node("Concat", "x x", "w", axis=0, name="twice"),
        small.node("Relu", "w", name="last"),
        inputs={"x": ("a b",), "z": ("2*a b",)},
    )
    shapes = zs.shapes(file, output=tmp_path / "out.onnx")
    assert shapes.needs == ()
    assert zs.shapes(tmp_path / "out.onnx").needs == ()


def test_contradicting_facts_are_an_error(add: Path) -> None:
    with pytest.raises(ModelError, match="holds for no sizes"):
        zs.shapes(add, facts=["N == 2", "N == 3"])


def test_rounded_or_wrapped_numbers_are_not_followed(tmp_path: Path) -> None:
    """floor(N / 49 * 49) is not N in floats, nor N * 2**29 / 2**29 in 32 bits."""
    for wide, middle in (
        (np.float32(49), ("Div", "Mul", "Floor")),
        (np.int64(1 << 29), ("Mul", "Div", "Identity")),
    ):
        to = onnx.TensorProto.FLOAT if wide.dtype == np.float32 else onnx.TensorProto.INT64
        first, second, third = middle
        file = saved(
            tmp_path,
            small.node("Shape", "x", "s", name="shape"),
            small.node("Cast", "s", "c", name="cast", to=to),
            small.node(first, "c d", "p", name="one"),
            small.node(second, "p d", "q", name="two"),
            small.node(third, "q", "r", name="three"),
            small.node("Cast", "r", "t", name="back", to=onnx.TensorProto.INT64),
            small.node("ConstantOfShape", "t", name="made"),
            inputs={"x": ("N",)},
            weights={"d": np.asarray([wide])},
        )
        (size,) = zs.shapes(file).shapes["y"] or ()
        assert str(size) == "?", middle


# The command.


def command(*arguments: str) -> tuple[int, str]:
    from click.testing import CliRunner

    from zerostride.cli.main import cli

    result = CliRunner().invoke(cli, ["shapes", *arguments], standalone_mode=False)
    status = result.return_value if result.exception is None else -1
    return int(status), result.output


def test_command_prints_sizes_and_needs(add: Path) -> None:
    status, out = command(str(add))
    assert status == 0
    assert "(bcast(M, N), 3)" in out
    assert "M == N or N == 1 or M == 1 at first" in out
    status, out = command(str(add), "--set", "N=4", "--set", "M=3")
    assert status == 1
    assert "no sizes make first work" in out
    status, out = command(str(add), "--given", "M == N", "--only", "y")
    assert status == 0
    assert "needs" not in out


def test_command_prints_json_and_writes(add: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    status, out = command(str(add), "--json", "-o", str(output))
    assert status == 0
    data = json.loads(out)
    assert data["tensors"][0] == {"name": "x", "shape": ["N", 3], "role": "input"}
    assert data["needs"][0]["condition"] == "M == N or N == 1 or M == 1"
    assert data["output"] == str(output)
    assert output.exists()
