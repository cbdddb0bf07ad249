"""Rewrites of .param files: the text, the .bin, and refusals."""

from __future__ import annotations

from pathlib import Path

import ncnn_models as made
import numpy as np
import pytest

from zerostride.errors import ModelError
from zerostride.models.formats.ncnn import edit, read
from zerostride.models.ir.rewrite import SELF, Earlier, Input, Rewrite, RewriteStep

IN = "Input in0 0 1 in0 0=5 1=4 2=3"
RESHAPE = RewriteStep("reshape", (Input(1),), shape=(1, 1, 5))
AFTER = SELF(Input(0), Earlier(0))


def rewritten(tmp_path: Path, text: str, *rewrites: Rewrite, weights: bytes | None = None) -> str:
    """The new text; the new files are new.param and new.bin."""
    editor = edit(made.write(tmp_path, text, weights))
    editor.apply(rewrites)
    files = editor.save(tmp_path / "new.param")
    assert files[0] == tmp_path / "new.param"
    assert [file.name for file in files[1:]] == (["new.bin"] if weights is not None else [])
    read(files[0])
    return files[0].read_bytes().decode()


def test_constant_with_one_reader_changes_its_own_line(tmp_path: Path) -> None:
    text = made.param(
        IN, "MemoryData   c  0 1 c 0=5 21=1", "BinaryOp b 2 1 in0 c out0 0=1", "ReLU r 1 1 out0 end"
    )
    data = np.arange(5)
    new = rewritten(tmp_path, text, Rewrite((2,), (RESHAPE, AFTER)), weights=made.floats(data))
    old_lines, new_lines = text.splitlines(), new.splitlines()
    assert len(old_lines) == len(new_lines)
    assert new_lines[3].split() == ["MemoryData", "c", "0", "1", "c", "21=1", "0=5", "1=1", "2=1"]
    assert [new_lines[k] for k in (0, 1, 2, 5)] == [old_lines[k] for k in (0, 1, 2, 5)]
    assert (tmp_path / "new.bin").read_bytes() == made.floats(data)
    model = read(tmp_path / "new.param")
    assert model.nodes[0].outputs[0].shape == (1, 1, 5)
    assert list(model.nodes[0].outputs[0].data().ravel()) == list(data)


def test_constant_with_more_readers_gets_a_copy_beside_it(tmp_path: Path) -> None:
    text = made.param(
        "MemoryData first 0 1 first 0=2",
        "Input in0 0 1 in0 0=5 1=5",
        "MemoryData c 0 1 c 0=5 21=0",
        "BinaryOp b 2 1 c c out0 0=0",
        "MemoryData last 0 1 last 0=1",
    )
    data = made.floats([1, 2]) + made.floats([5, 6, 7, 8, 9], mark=True) + made.floats([3])
    steps = (RewriteStep("reshape", (Input(1),), shape=(5, 1)), SELF(Input(0), Earlier(0)))
    new = rewritten(tmp_path, text, Rewrite((3,), steps), weights=data)
    model = read(tmp_path / "new.param")
    assert new.splitlines()[1] == "6 6"
    assert not model.notes
    constants = {n.name: n.outputs[0].data() for n in model.nodes if n.op == "MemoryData"}
    assert {name: array.shape for name, array in constants.items()} == {
        "first": (2,),
        "c": (5,),
        "c_reshaped": (5, 1),
        "last": (1,),
    }
    assert list(constants["c_reshaped"].ravel()) == [5, 6, 7, 8, 9]
    assert list(constants["last"]) == [3]
    assert model.outputs[-2].shape == (5, 1)


def test_equal_copies_are_one(tmp_path: Path) -> None:
    text = made.param(
        IN,
        "ReLU r 1 1 in0 x",
        "MemoryData c 0 1 c 0=5",
        "BinaryOp b 2 1 x c y",
        "BinaryOp d 2 1 y c z",
    )
    rewrites = [Rewrite((k,), (RESHAPE, AFTER)) for k in (3, 4)]
    new = rewritten(tmp_path, text, *rewrites, weights=made.floats(np.arange(5)))
    assert new.count("MemoryData") == 2
    assert (tmp_path / "new.bin").stat().st_size == 40


def test_layers_are_inserted_before_a_blob(tmp_path: Path) -> None:
    text = made.param(IN, "Input in1 0 1 in1 0=5", "BinaryOp b 2 1 in0 in1 out0 0=1")
    for step, kind in (
        (
            RewriteStep("reshape", (Input(1),), shape=(1, 1, 5)),
            "Reshape b_reshape 1 1 in1 b_reshape 0=5 1=1 2=1",
        ),
        (
            RewriteStep("unsqueeze", (Input(1),), axes=(0, 1)),
            "ExpandDims b_expanddims 1 1 in1 b_expanddims -23303=2,0,1",
        ),
    ):
        new = rewritten(tmp_path, text, Rewrite((2,), (step, AFTER)))
        assert new.splitlines()[1] == "4 4"
        assert new.splitlines()[4].split() == kind.split()
        assert new.splitlines()[5].split()[4:6] == ["in0", kind.split()[5]]
    expand = RewriteStep("expand", (Input(1),), shape=(3, 4, 5))
    new = rewritten(tmp_path, text, Rewrite((2,), (expand, AFTER)))
    assert [line.split()[0] for line in new.splitlines()[4:]] == ["ExpandDims", "Tile", "BinaryOp"]


def test_reshaped_result_keeps_its_name(tmp_path: Path) -> None:
    text = made.param(IN, "ReLU b 1 1 in0 mid", "ReLU r 1 1 mid out0")
    steps = (SELF(Input(0)), RewriteStep("reshape", (Earlier(0),), shape=(60,)))
    new = rewritten(tmp_path, text, Rewrite((1,), steps))
    model = read(tmp_path / "new.param")
    assert made.shapes_of(model)["mid"] == (60,)
    assert new.splitlines()[-1] == text.splitlines()[-1]


def test_second_reader_gets_a_split(tmp_path: Path) -> None:
    text = made.param(IN, "Input in1 0 1 in1 0=5 1=4 2=3", "BinaryOp b 2 1 in0 in1 out0 0=1")
    steps = (RewriteStep("multiply", (Input(0), Input(1))), SELF(Earlier(0), Input(1)))
    new = rewritten(tmp_path, text, Rewrite((2,), steps))
    kinds = [line.split()[0] for line in new.splitlines()[4:]]
    assert kinds == ["Split", "BinaryOp", "BinaryOp"]
    assert new.splitlines()[1] == "5 6"
    assert not read(tmp_path / "new.param").notes


def test_attributes_are_changed_and_removed(tmp_path: Path) -> None:
    text = made.param(IN, "BinaryOp b 1 1 in0 out0 0=1 1=1 2=2.5 -23310=2,1,2")
    self = SELF(Input(0), **{"0": 7, "2": 0.125, "10": None})
    new = rewritten(tmp_path, text, Rewrite((1,), (self,)))
    node = read(tmp_path / "new.param").nodes[0]
    assert node.attributes == {"0": 7, "1": 1, "2": 0.125}
    assert new.splitlines()[1] == "2 2"


def test_untouched_file_is_unchanged(tmp_path: Path) -> None:
    text = made.param(IN, "ReLU   r 1 1   in0 out0 0=0.50 ").replace("\n", "\r\n").rstrip()
    assert rewritten(tmp_path, text, weights=b"\0\1\2\3") == text
    assert (tmp_path / "new.bin").read_bytes() == b"\0\1\2\3"


def test_line_ends_are_kept(tmp_path: Path) -> None:
    text = made.param(IN, "Input in1 0 1 in1 0=5", "BinaryOp b 2 1 in0 in1 out0 0=1")
    windows = text.replace("\n", "\r\n").rstrip()
    new = rewritten(tmp_path, windows, Rewrite((2,), (RESHAPE, AFTER)))
    assert new.count("\n") == new.count("\r\n") == 5
    assert new.endswith("0=1")


def test_added_names_are_new(tmp_path: Path) -> None:
    text = made.param(
        IN, "Input b_reshape 0 1 b_reshape 0=5", "BinaryOp b 2 1 in0 b_reshape b_reshape_1 0=1"
    )
    new = rewritten(tmp_path, text, Rewrite((2,), (RESHAPE, AFTER)))
    assert "b_reshape_2" in new


TWO = made.param(
    IN, "Input in1 0 1 in1 0=5", "BinaryOp b 2 1 in0 in1 out0 0=1", "PReLU p 1 1 out0 q 0=3"
)
REFUSED = {
    "no layer stands at": Rewrite((9,), (AFTER,)),
    "no layer stands at (0,)": Rewrite((0,), (SELF(),)),
    "has 1 to 4": Rewrite(
        (2,), (RewriteStep("reshape", (Input(1),), shape=(1, 1, 1, 1, 5)), AFTER)
    ),
    "a blob of 5 axes": Rewrite((2,), (RewriteStep("unsqueeze", (Input(0),), axes=(0, 1)), AFTER)),
    "not as many elements": Rewrite(
        (2,), (RewriteStep("reshape", (Input(1),), shape=(2, 3)), AFTER)
    ),
    "not all of extent 1": Rewrite((2,), (RewriteStep("squeeze", (Input(0),), axes=(0,)), AFTER)),
    "does not expand": Rewrite((2,), (RewriteStep("expand", (Input(1),), shape=(3, 4, 6)), AFTER)),
    "it has no operand 7": Rewrite((2,), (SELF(Input(7), Input(0)),)),
    "reads 2 blobs, not 1": Rewrite((2,), (SELF(Input(0)),)),
    "no where of 3": Rewrite((2,), (RewriteStep("where", (Input(0), Input(0), Input(1))),)),
    "no greater of 2": Rewrite((2,), (RewriteStep("greater", (Input(0), Input(1))),)),
    "no less of 2": Rewrite((2,), (RewriteStep("less", (Input(0), Input(1))),)),
    "no layer is added for a constant": Rewrite(
        (2,),
        (
            RewriteStep("number", (), attributes={"value": 0.0, "dtype": "float32"}),
            RewriteStep("add", (Input(0), Earlier(0))),
        ),
    ),
    "there is no op 'nonsense'": Rewrite((2,), (RewriteStep("nonsense", (Input(0), Input(1))),)),
    "operand 1 would be read by nobody": Rewrite((2,), (SELF(Input(0), Input(0)),)),
    "'axis' is no parameter": Rewrite((2,), (SELF(Input(0), Input(1), axis=1),)),
    "operand 1 (p.slope) is a weight": Rewrite((3,), (RESHAPE, AFTER)),
    "has weights, so it cannot be replaced": Rewrite(
        (3,), (RewriteStep("add", (Input(0), Input(0))),)
    ),
    "which is not before it": Rewrite((2,), (SELF(Input(0), Earlier(1)),)),
    "it would be there twice": Rewrite(
        (2,), (SELF(Input(0), Input(1)), SELF(Earlier(0), Input(1)))
    ),
}


@pytest.mark.parametrize(("words", "rewrite"), REFUSED.items(), ids=REFUSED)
def test_impossible_rewrite_is_refused_and_nothing_is_written(
    tmp_path: Path, words: str, rewrite: Rewrite
) -> None:
    editor = edit(made.write(tmp_path, TWO))
    with pytest.raises(ModelError) as caught:
        editor.apply([rewrite])
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "m.param"))
    with pytest.raises(ModelError, match="nothing is written"):
        editor.save(tmp_path / "new.param")
    assert not (tmp_path / "new.param").exists()


def test_copy_of_a_constant_needs_its_data(tmp_path: Path) -> None:
    text = made.param(
        "Input in0 0 1 in0 0=5 1=5", "MemoryData c 0 1 c 0=5", "BinaryOp b 2 1 c c out0"
    )
    steps = (RewriteStep("reshape", (Input(1),), shape=(5, 1)), SELF(Input(0), Earlier(0)))
    with pytest.raises(ModelError, match=r"a twin of another shape, but m\.bin"):
        edit(made.write(tmp_path, text)).apply([Rewrite((2,), steps)])


def test_missing_output_folder_is_reported(tmp_path: Path) -> None:
    editor = edit(made.write(tmp_path, TWO))
    with pytest.raises(ModelError, match="No such file"):
        editor.save(tmp_path / "absent" / "new.param")


def test_file_may_be_saved_over_itself(tmp_path: Path) -> None:
    text = made.param(
        "MemoryData c 0 1 c 0=5", "BinaryOp b 2 1 c c out0 0=0", "MemoryData d 0 1 d 0=1"
    )
    path = made.write(tmp_path, text, made.floats([1, 2, 3, 4, 5, 9]))
    steps = (RewriteStep("reshape", (Input(1),), shape=(5, 1)), SELF(Input(0), Earlier(0)))
    editor = edit(path)
    editor.apply([Rewrite((1,), steps)])
    editor.save(path)
    values = {value.name: value for value in read(path).values()}
    assert list(values["c_reshaped"].data().ravel()) == [1, 2, 3, 4, 5]
    assert list(values["d"].data()) == [9]
