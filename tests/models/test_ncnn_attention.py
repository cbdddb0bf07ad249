"""Attentions of ncnn's files are judged by the rows of attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ncnn_models import inputs, param, write

import zerostride as zs

QKV = ((4, 3, 8), (4, 5, 8), (4, 5, 8))
GROUPED = ((4, 3, 8), (2, 5, 8), (2, 5, 8))


def findings(path: Path, target: str, *shapes: Any, more: str = "") -> Any:
    """The findings of a file of one SDPA."""
    names = " ".join(f"in{k}" for k in range(len(shapes)))
    layer = f"SDPA s {len(shapes)} 1 {names} out0 5={int(len(shapes) > 3)} {more}".rstrip()
    return zs.audit(write(path, param(*inputs(*shapes), layer)), target).findings


def test_no_site_where_nothing_repeats(tmp_path: Path) -> None:
    assert not findings(tmp_path, "torch", *QKV)


@pytest.mark.parametrize(
    ("target", "verdict"), [("ncnn", "same"), ("torch", "same"), ("openvino", "refused")]
)
def test_heads_of_keys_serve_several_of_the_query(
    tmp_path: Path, target: str, verdict: str
) -> None:
    (finding,) = findings(tmp_path, target, *GROUPED)
    assert (finding.verdict, finding.source.space.group) == (verdict, 2), finding.message


@pytest.mark.parametrize("mask", [(3, 5), (1, 3, 5), (4, 3, 5)])
@pytest.mark.parametrize("target", ["ncnn", "torch", "openvino", "onnxruntime", "litert"])
def test_a_mask_repeats_along_heads(tmp_path: Path, target: str, mask: Any) -> None:
    (finding,) = findings(tmp_path, target, *QKV, mask, more="6=0.5")
    assert (finding.verdict, finding.source.scale) == ("same", 0.5), finding.message


def test_a_mask_of_one_row_is_read_as_if_it_had_all(tmp_path: Path) -> None:
    (finding,) = findings(tmp_path, "ncnn", *QKV, (1, 5))
    assert (finding.verdict, finding.reason) == ("refused", "invalid_source")


@pytest.mark.parametrize("mask", [(3, 5), (2, 3, 5)])
@pytest.mark.parametrize(
    ("target", "verdict"),
    [("ncnn", "same"), ("torch", "same"), ("openvino", "same"), ("onnxruntime", "same"),
     ("mnn", "different")],
)  # fmt: skip
def test_a_mask_repeats_along_projected_heads(
    tmp_path: Path, target: str, verdict: str, mask: Any
) -> None:
    shapes = (3, 6), (5, 7), (5, 9)
    layer = "MultiHeadAttention a 4 1 in0 in1 in2 in3 out0 0=16 1=2 2=96 3=7 4=9 5=1"
    path = write(tmp_path, param(*inputs(*shapes, mask), layer), bytes(4 * 4096))
    (finding,) = zs.audit(path, target).findings
    assert (finding.verdict, finding.source.shape) == (verdict, (3, 16)), finding.message
    assert finding.operands[2] == ("in2[value]", (5, 16))
    assert finding.source.space.kv_head == 2


@pytest.mark.parametrize(
    ("more", "words"), [("7=1", "a cache of keys"), ("18=2", "products of 8 bits")]
)
def test_parts_that_are_not_modelled_are_named(tmp_path: Path, more: str, words: str) -> None:
    (finding,) = findings(tmp_path, "ncnn", *QKV, (3, 5), more=more)
    assert (finding.verdict, finding.reason) == ("unknown", "not_modelled")
    assert words in finding.message
