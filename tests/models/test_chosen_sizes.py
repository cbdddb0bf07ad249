"""Numbers for the sizes that a model leaves open."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zerostride as zs
from zerostride.models.execute.chosen_sizes import Look, chosen_sizes
from zerostride.models.formats import read_model
from zerostride.models.ir.graph import Graph

HEAD = '<ir_version: 9, opset_import: ["": 18]>\n'


def chosen(tmp_path: Path, text: str, **keywords: object) -> dict[str, int]:
    file = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(HEAD + text), file)
    return chosen_sizes(read_model(file), **keywords)  # type: ignore[arg-type]


def test_only_a_batch_is_one_and_no_two_are_alike(tmp_path: Path) -> None:
    text = "m (float[batch, T, 4] x, float[U, 4] y) => (float[batch, T, U] z)"
    text += "{ t = Transpose<perm = [1, 0]> (y)  z = MatMul (x, t) }"
    sizes = chosen(tmp_path, text)
    assert sizes["batch"] == 1
    assert sizes["T"] != sizes["U"]
    assert min(sizes["T"], sizes["U"]) > 1


@pytest.mark.parametrize(
    ("least", "largest", "expected"), [(0, 0, 5), (16, 99, 16), (0, 64, 64), (999999, 0, None)]
)
def test_sizes_that_show_more_come_before_smaller_ones(
    tmp_path: Path, least: int, largest: int, expected: int | None
) -> None:
    """A run fails below `least`, and gives one number all over below `largest`, if it can."""

    def runs(graph: Graph) -> Look:
        (size,) = graph.inputs[0].shape or ()
        assert isinstance(size, int)
        if size < least:
            return Look.FAILS
        return Look.PLAIN if size < largest < 99 else Look.SHOWS

    sizes = chosen(tmp_path, "m (float[T] x) => (float[T] y) { y = Relu (x) }", runs=runs)
    assert sizes.get("T") == expected


def test_a_size_that_is_one_for_one_sample_hides_no_batch(tmp_path: Path) -> None:
    text = """m (float[?, 4] x) => (float[?, 4] y)
    <int64[1] zero = {0}, int64[1] most = {1000000}> {
      few = Slice (x, zero, most, zero)
      y = Add (x, few)
    }"""
    assert chosen(tmp_path, text)["x[0]"] == 1


def test_nothing_is_chosen_where_all_is_known(tmp_path: Path) -> None:
    assert not chosen(tmp_path, "m (float[2, 3] x) => (float[2, 3] y) { y = Relu (x) }")


def test_nothing_is_chosen_for_an_unknown_rank(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        HEAD + "m (float[N] x, float[2] y) => (float[N] z) { z = Add (x, y) }"
    )
    model.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "m.onnx")
    assert not chosen_sizes(read_model(tmp_path / "m.onnx"))


def test_halves_that_are_joined_again_have_even_sizes(tmp_path: Path) -> None:
    text = """m (float[N, 2, H, W] x) => (float[N, 2, H, W] y)
    <float[4] up = {1.0, 1.0, 2.0, 2.0}> {
      a = MaxPool<kernel_shape = [2, 2], strides = [2, 2]> (x)
      b = MaxPool<kernel_shape = [2, 2], strides = [2, 2]> (a)
      c = Resize<mode = "nearest"> (b, , up)
      d = Add (a, c)
      e = Resize<mode = "nearest"> (d, , up)
      y = Add (x, e)
    }"""
    sizes = chosen(tmp_path, text)
    assert sizes["N"] == 1
    assert sizes["H"] % 4 == sizes["W"] % 4 == 0
    assert sizes["H"] != sizes["W"]


def test_no_map_shrinks_to_one(tmp_path: Path) -> None:
    text = """m (float[N, 2, H, W] x) => (float[N, 2, h, w] y) {
      a = MaxPool<kernel_shape = [4, 4], strides = [4, 4]> (x)
      y = MaxPool<kernel_shape = [4, 4], strides = [4, 4]> (a)
    }"""
    sizes = chosen(tmp_path, text)
    assert min(sizes["H"], sizes["W"]) >= 32


def test_the_state_of_a_recurrent_layer_counts_samples(tmp_path: Path) -> None:
    weights = [", ".join(["0.1"] * count) for count in (24, 16)]
    text = "m (float[T, 1, 3] x, float[1, B, 2] h) => (float[T, 1, 1, 2] y)"
    text += f"<float[1, 8, 3] w = {{{weights[0]}}}, float[1, 8, 2] r = {{{weights[1]}}}>"
    text += "{ y = LSTM<hidden_size = 2> (x, w, r, , , h) }"
    assert chosen(tmp_path, text)["B"] == 1


def test_a_size_that_meets_a_constant_is_as_large(tmp_path: Path) -> None:
    text = """m (float[1, C, 6, D] x) => (float[1, C, 6, D] y)
    <float[3] a = {1, 2, 3}, float[11, 1, 1] b = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}> {
      c = Add (x, a)
      y = Mul (c, b)
    }"""
    assert chosen(tmp_path, text) == {"C": 11, "D": 3}


def test_the_run_decides_where_the_sizes_do_not(tmp_path: Path) -> None:
    text = "m (float[T] x) => (float[T] y) { y = Relu (x) }"
    sizes = chosen(tmp_path, text, runs=lambda graph: graph.inputs[0].shape[0] % 32 == 0)
    assert sizes == {"T": 32}
    assert not chosen(tmp_path, text, runs=lambda graph: False)


@settings(deadline=None, max_examples=30)
@given(
    window=st.integers(1, 9), stride=st.integers(1, 9), layers=st.integers(1, 3), pair=st.booleans()
)
def test_chosen_sizes_compute(
    tmp_path_factory: pytest.TempPathFactory, window: int, stride: int, layers: int, pair: bool
) -> None:
    sizes = "N, 1, H, W" if pair else "N, 1, 12, W"
    names = ["x", *(f"a{k}" for k in range(layers))]
    pools = "".join(
        f"{to} = AveragePool<kernel_shape = [1, {window}], strides = [1, {stride}]> ({name}) "
        for name, to in pairwise(names)
    )
    text = f"m (float[{sizes}] x) => (float[N, 1, p, q] y) {{ {pools} y = Relu ({names[-1]}) }}"
    folder = tmp_path_factory.mktemp("models")
    numbers = chosen(folder, text)
    assert zs.shapes(folder / "m.onnx", sizes=numbers).ok
    assert numbers.pop("N") == 1
    assert all(number > 1 for number in numbers.values())
