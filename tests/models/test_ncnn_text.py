"""The .param text: reading, and refusals in one line."""

from __future__ import annotations

import os
from pathlib import Path

import ncnn_models as made
import pytest

from work import calls_of
from zerostride.errors import ModelError
from zerostride.models.formats import read_model
from zerostride.models.formats.ncnn import read
from zerostride.models.formats.ncnn.text import MAX_FILE_BYTES, read_text

INPUT = "Input in0 0 1 in0 0=5 1=4 2=3"


def params(tmp_path: Path, text: str) -> dict[int, object]:
    """The parameters of a layer whose line ends so."""
    path = made.write(tmp_path, made.param(INPUT, f"Custom c 1 1 in0 out0 {text}"))
    return dict(read_text(path).layers[1].params)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0=3 1=-1", {0: 3, 1: -1}),
        ("0=1.0e-05 1=-3.402823e+38 2=.5 3=2e3", {0: 1e-5, 1: -3.402823e38, 2: 0.5, 3: 2000.0}),
        ("-23303=3,1,2,3", {3: (1, 2, 3)}),
        ("-23300=0", {0: ()}),
        ("-23310=2,0.5,1e-1", {10: (0.5, 0.1)}),
        ("3=0,1,-2", {3: (0, 1, -2)}),
        ("3=7,", {3: (7,)}),
        ("3=1.5,2", {3: (1.5, 2.0)}),
        ('6="0w,*(0h,2),-1" 7=1', {6: "0w,*(0h,2),-1", 7: 1}),
        ('6="with a space"', {6: "with a space"}),
        ('6=""', {6: ""}),
        ("6=name_1,x", {6: "name_1,x"}),
        ("0=1 0=2", {0: 2}),
        ("0=2\t1=3", {0: 2, 1: 3}),
        ("", {}),
    ],
)
def test_parameters_are_read(tmp_path: Path, text: str, wanted: dict[int, object]) -> None:
    parameters = params(tmp_path, text)
    assert parameters == wanted
    assert {key: type(value) for key, value in parameters.items()} == {
        key: type(value) for key, value in wanted.items()
    }


def test_line_ends_and_blank_lines_are_accepted(tmp_path: Path) -> None:
    text = made.param(INPUT, "ReLU r 1 1 in0 out0 0=0.5")
    for other in (
        text.replace("\n", "\r\n"),
        text.rstrip("\n"),
        text.replace("\n", "\n\n"),
        text.replace(" ", "   "),
    ):
        graph = made.graph(tmp_path, other)
        assert [node.attributes["0"] for node in graph.nodes] == [0.5]
        assert graph.outputs[0].shape == (3, 4, 5)


def test_layer_becomes_a_node(tmp_path: Path) -> None:
    graph = made.graph(
        tmp_path, made.param(INPUT, "Slice s 1 2 in0 a b -23300=2,1,2 1=0", "ReLU r 1 1 a c")
    )
    assert graph.format == "ncnn"
    slice_, relu = graph.nodes
    assert (slice_.name, slice_.op, slice_.domain, slice_.place) == ("s", "Slice", "ncnn", (1,))
    assert slice_.attributes == {"0": (1, 2), "1": 0}
    assert [value.name for value in slice_.outputs] == ["a", "b"]
    assert relu.inputs[0] is slice_.outputs[0]
    assert [value.name for value in graph.inputs] == ["in0"]
    assert [value.name for value in graph.outputs] == ["b", "c"]
    assert graph.inputs[0].dtype == "float32"


HEAD = "7767517\n2 2\nInput in0 0 1 in0\n"

REFUSED = {
    "": "the file is empty",
    "\n \n": "the file is empty",
    "7767517": "it ends before the counts",
    "7767517\n": "it ends before the counts",
    "7767517\n2\n": "two counts are wanted",
    "7767517\n2 x\n": "line 2: 'x' is no count",
    "7767517\n-1 2\n": "line 2: '-1' is no count",
    "75 83\nInput data 0 1 data\n": "of an older form",
    "7767516\n1 1\nInput a 0 1 a\n": "starts with 7767516 instead of 7767517",
    "hello": "its first line is not 7767517",
    "<?xml version='1.0'?>\n<net/>\n": "another format?",
    "7767517\n1000000000 1000000000\nInput a 0 1 a\n": "says 1000000000 layers and has 1",
    "7767517\n1 2\nInput a 0 1 a\nReLU b 1 1 a b\n": "layers and has 2; ncnn leaves the rest out",
    "7767517\n2 1\nInput a 0 1 a\nReLU b 1 1 a b\n": "says 1 blobs and has 2",
    HEAD + "ReLU\n": "line 4: a layer has a type, a name and two counts",
    HEAD + "ReLU r 1\n": "line 4: ReLU 'r': a layer has a type, a name and two counts",
    HEAD + "ReLU r 1 1 in0\n": "ReLU 'r': 2 blobs are wanted, 1 there",
    HEAD + "ReLU r 1 1000000000 in0 a\n": "1000000001 blobs in one line",
    HEAD + "ReLU r one 1 in0 a\n": "line 4: 'one' is no count",
    HEAD + "ReLU r 1 1 nobody a\n": "line 4: ReLU 'r' reads 'nobody', which no layer before it",
    HEAD + "ReLU r 1 1 in0 in0\n": "ReLU 'r' makes 'in0', which another one makes too",
    HEAD + "ReLU r 1 1 in0 a 0\n": "ReLU 'r': '0' is no parameter as number=value",
    HEAD + "ReLU r 1 1 in0 a 0=\n": "is no parameter as number=value",
    HEAD + "ReLU r 1 1 in0 a 0=1 # slope\n": "'# slope' is no parameter",
    HEAD + "ReLU r 1 1 in0 a 32=1\n": "parameters are numbered 0 to 31",
    HEAD + "ReLU r 1 1 in0 a -5=1\n": "parameters are numbered 0 to 31",
    HEAD + "ReLU r 1 1 in0 a 0=99999999999\n": "parameter 0: 99999999999 needs more than 32 bits",
    HEAD + "ReLU r 1 1 in0 a 0=1.2.3\n": "parameter 0: '1.2.3' is no number",
    HEAD + "ReLU r 1 1 in0 a 0=12abc\n": "'12abc' is no number",
    HEAD + "ReLU r 1 1 in0 a -23300=1000000000,1\n": "says 1000000000 numbers and has 1",
    HEAD + "ReLU r 1 1 in0 a -23300=1,1,2\n": "parameter 0 says 1 numbers and has 2",
    HEAD + "ReLU r 1 1 in0 a -23300=2,1,\n": "'' is no number",
    HEAD + 'Reshape r 1 1 in0 a 6="0w\n': "is no parameter as number=value",
    HEAD + f"ReLU {'r' * 256} 1 1 in0 a\n": "a name of more than 255 bytes",
    HEAD + f'Reshape r 1 1 in0 a 6="{"0" * 256}"\n': "a text too long",
    HEAD.replace("Input in0", "pnnx.Input in0") + "ReLU r 1 1 in0 a\n": "pnnx's own graph",
    "7767517\n1 1\nInput a 0 1 a\0b\n": "NUL bytes",
    # Kinds of parameters, which the layers know.
    made.param(INPUT, "Reshape r 1 1 in0 a 0=1.5"): "parameter 0 is 1.5, and a whole number",
    made.param(INPUT, "Convolution r 1 1 in0 a 0=x 1=3"): "parameter 0 is x, and a whole number",
    made.param(INPUT, "Squeeze r 1 1 in0 a 3=1"): "parameter 3 is 1, and a list of whole numbers",
    made.param(INPUT, "Reshape r 1 1 in0 a 6=3"): "parameter 6 is 3, and a text",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=range(len(REFUSED)))
def test_malformed_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = made.write(tmp_path, text)
    with pytest.raises(ModelError) as caught:
        read(path)
    words = str(caught.value)
    assert words.startswith(f"{path}: ")
    assert message in words
    assert words.isprintable()
    assert len(words) < 400


def test_irregular_file_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "folder.param"
    folder.mkdir()
    pipe = tmp_path / "pipe.param"
    os.mkfifo(pipe)
    large = tmp_path / "large.param"
    with large.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    for path, message in (
        (folder, "a folder; name the .param file in it"),
        (pipe, "not a regular file"),
        (large, f"a .param file ends at {MAX_FILE_BYTES}"),
        (tmp_path / "absent.param", "No such file"),
        (tmp_path / "a\0b.param", "null"),
    ):
        with pytest.raises(ModelError, match=message):
            read(path)


def test_binary_file_is_refused_with_the_texts_name(tmp_path: Path) -> None:
    for name in ("m.param.bin", "m.ncnn.bin"):
        path = tmp_path / name
        path.write_bytes(b"\x1d\x86\x76\x00")
        with pytest.raises(ModelError, match=r"\.param"):
            read(path)
        with pytest.raises(ModelError, match=r"\.param"):
            read_model(path)
    binary = tmp_path / "m.param"
    binary.write_bytes(b"\x1d\x86\x76\x00\x02\x00\x00\x00")
    with pytest.raises(ModelError, match="NUL bytes"):
        read(binary)


def test_undecodable_names_are_kept(tmp_path: Path) -> None:
    text = made.param("Input caf\u00e9 0 1 caf\u00e9 0=5", "ReLU r 1 1 caf\u00e9 \u7d50\u679c")
    graph = made.graph(tmp_path, text)
    assert graph.outputs[0].name == "\u7d50\u679c"
    path = tmp_path / "m.param"
    path.write_bytes(made.param("Input x 0 1 caf\u00e9 0=5").encode("latin-1"))
    assert read(path).inputs[0].name == "caf\u00e9"


def test_only_ascii_spaces_separate(tmp_path: Path) -> None:
    name = "a\u00a0b\u2028c\x1cd\x85"
    text = made.param(f"Input i 0 1 {name} 0=5", f"ReLU\x0br 1\x0c1\t{name} out0 0=0.5")
    graph = made.graph(tmp_path, text)
    assert graph.outputs[0].shape == (5,)
    assert graph.nodes[0].attributes == {"0": 0.5}
    assert graph.inputs[0].name == "a\\xa0b\\u2028c\\x1cd\\x85"


def test_escape_codes_do_not_reach_a_terminal(tmp_path: Path) -> None:
    graph = made.graph(tmp_path, made.param(INPUT, "Odd\x1b[31m r\x07 1 1 in0 out\x1b"))
    assert all(value.name.isprintable() for value in graph.values())
    assert all(note.isprintable() for note in graph.notes)
    assert graph.nodes[0].op.isprintable()


def test_long_files_take_linear_work(tmp_path: Path) -> None:
    def calls(count: int) -> int:
        lines = [INPUT]
        lines += [f"ReLU r{k} 1 1 {f'r{k - 1}' if k else 'in0'} r{k}" for k in range(count)]
        path = made.write(tmp_path, made.param(*lines))
        graphs = []
        work = calls_of(lambda: graphs.append(read(path)))
        assert len(graphs[0].nodes) == count
        return work

    calls(100)
    few, many = calls(1_000), calls(10_000)
    assert many < 12 * few  # ten times the lines
    wide = made.param(INPUT, "Concat c 30000 1 " + "in0 " * 30_000 + "out0 0=0")
    graphs = []
    assert calls_of(lambda: graphs.append(made.graph(tmp_path, wide))) < 100 * 30_000
    assert graphs[0].outputs[0].shape == (90_000, 4, 5)
