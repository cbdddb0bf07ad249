"""Numbers of layers in .bin files, without the real ncnn."""

from __future__ import annotations

from pathlib import Path

import ncnn_models as made
import numpy as np
import pytest

from zerostride.errors import ModelError

IN = "Input in0 0 1 in0 0=5 1=4 2=3"


def test_constants_are_read_on_demand(tmp_path: Path) -> None:
    data = np.arange(12, dtype=np.float32)
    kernel = np.linspace(-1, 1, 6, dtype=np.float32)
    text = made.param(
        IN,
        "InnerProduct i 1 1 in0 x 0=2 1=1 2=120",
        "MemoryData m 0 1 m 0=3 1=4",
        "PReLU p 1 1 x out0 0=2",
        "MemoryData n 0 1 n 0=1 1=2 2=3 21=0",
    )
    weights = np.arange(120, dtype=np.float32)
    content = made.floats(weights, mark=True) + made.floats([1, 2], data, [0.1, 0.2])
    graph = made.graph(tmp_path, text, content + made.floats(kernel, mark=True))
    values = {value.name: value for value in graph.values()}
    assert np.array_equal(values["i.weight"].data(), weights)
    assert list(values["i.bias"].data()) == [1, 2]
    assert np.array_equal(values["m"].data(), data.reshape(4, 3))
    assert np.array_equal(values["n"].data(), kernel.reshape(3, 2, 1))
    assert values["m"].constant
    assert values["m"].dtype == "float32"
    assert not graph.notes
    longer = made.graph(tmp_path, text, content + made.floats(kernel, mark=True) + b"\0" * 8)
    assert any("8 bytes more" in note for note in longer.notes)


def test_weights_of_every_form_are_read(tmp_path: Path) -> None:
    text = made.param(
        *made.inputs((3,)), "InnerProduct i 1 1 in0 x 0=1 2=3", "MemoryData m 0 1 m 0=2"
    )
    end = made.floats([8, 9])
    table = made.floats(np.arange(256) * 0.5)
    forms = {
        b"\0\0\0\0" + made.floats([1, 2, 3]): (1, 2, 3),
        b"\x56\xc0\x02\x00" + made.floats([1, 2, 3]): (1, 2, 3),
        b"\x47\x6b\x30\x01" + np.array([1, 2, 3, 0], "<f2").tobytes(): (1, 2, 3),
        b"\x38\x4b\x0d\x00" + bytes([1, 2, 253, 0]): (1, 2, -3),
        b"\x01\0\0\0" + table + bytes([2, 4, 6, 0]): (1, 2, 3),
    }
    for content, wanted in forms.items():
        graph = made.graph(tmp_path, text, content + end)
        values = {value.name: value for value in graph.values()}
        assert tuple(values["i.weight"].data()) == wanted
        assert values["i.weight"].data().dtype == values["i.weight"].dtype
        assert tuple(values["m"].data()) == (8, 9)
        assert not graph.notes


def test_unreadable_weights_give_the_reason(tmp_path: Path) -> None:
    text = made.param(IN, "MemoryData a 0 1 a 0=2", "Custom c 1 1 in0 x", "MemoryData m 0 1 m 0=3")
    graph = made.graph(tmp_path, text)
    values = {value.name: value for value in graph.values()}
    assert values["m"].missing == "m.bin"
    with pytest.raises(ModelError, match=r"m\.bin"):
        values["m"].data()
    text = text.replace("Custom c", "Custom b 1 1 in1 y\nCustom c").replace("4 4\n", "5 5\n", 1)
    text = text.replace("in0 0 1 in0", "in0 0 2 in0 in1").replace("5 5\n", "5 6\n", 1)
    graph = made.graph(tmp_path, text, made.floats([1, 2, 3, 4, 5, 6]))
    values = {value.name: value for value in graph.values()}
    assert list(values["a"].data()) == [1, 2]
    with pytest.raises(ModelError, match="of Custom 'b' before it are of unknown length"):
        values["m"].data()
    huge = made.param(IN, "InnerProduct i 1 1 in0 x 0=2000000000 2=2000000000")
    graph = made.graph(tmp_path, huge, b"\0" * 64)
    assert any("the file ends within the weights of InnerProduct 'i'" in n for n in graph.notes)
    huge = made.param("MemoryData m 0 1 m 0=2147483647 1=2147483647 2=2147483647")
    assert made.graph(tmp_path, huge, b"\0" * 64).outputs[0].shape is None


@pytest.mark.parametrize("kinds", [("Pad",), ("Tensor.slice",), ("Pad", "Custom"), ("Custom",)])
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("held", [0, 5])
def test_weights_after_an_unknown_layer_are_read(
    tmp_path: Path, kinds: tuple[str, ...], half: bool, held: int
) -> None:
    """A layer that ncnn lacks holds nothing, or the one such layer holds what the others leave."""
    odd = [f"{kind} c{k} 1 1 x{k} x{k + 1}" for k, kind in enumerate(kinds)]
    product = f"InnerProduct i 1 1 x{len(kinds)} y 0=1 2=4"
    tail = ("MemoryData a 0 1 a 0=2", "Input in0 0 1 x0", *odd, product, "MemoryData m 0 1 m 0=3")
    weights = np.array([1, 2, 3, 4], np.float16 if half else np.float32).tobytes()
    mark = b"\x47\x6b\x30\x01" if half else b"\0\0\0\0"
    data = made.floats([1, 2]) + made.floats(range(held)) + mark + weights + made.floats([3, 4, 5])
    values = {v.name: v for v in made.graph(tmp_path, made.param(*tail), data).values()}
    assert list(values["a"].data()) == [1, 2]
    if held and (len(kinds) > 1 or kinds[0] == "Tensor.slice"):
        return  # nothing says which of two it is, and a function holds none
    assert list(values["i.weight"].data()) == [1, 2, 3, 4]
    assert list(values["m"].data()) == [3, 4, 5]
