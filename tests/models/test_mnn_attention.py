"""Attention of .mnn files is judged by its row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mnn_files import Model, Scalar

import zerostride as zs

QKV = ((1, 3, 4, 8), (1, 3, 2, 8), (1, 3, 2, 8))


def audited(path: Path, target: str, *shapes: Any, fields: Any = None) -> Any:
    """The finding of a file of one Attention; an array is a constant."""
    model, names = Model(), [f"x{k}" for k in range(len(shapes))]
    for name, shape in zip(names, shapes, strict=True):
        if isinstance(shape, np.ndarray):
            model.constant(name, shape)
        else:
            model.input(name, *shape)
    model.op("Attention", " ".join(names), "y", "AttentionParam", fields or {0: Scalar("B", 0)})
    file = path / "m.mnn"
    file.write_bytes(model.data("y"))
    (finding,) = zs.audit(file, target).findings
    return finding


def test_heads_are_grouped_and_the_result_has_them_side_by_side(tmp_path: Path) -> None:
    finding = audited(tmp_path, "mnn", *QKV)
    assert (finding.verdict, finding.notes) == ("same", ())
    plan = finding.source
    assert (plan.shape, plan.space.kv_head, plan.space.group) == ((1, 3, 32), 2, 2)
    assert (plan.offset, plan.mask) == (0, None)
    assert plan.key.strides == (0, 8, 0, 0, 16, 1)


def test_a_mask_takes_the_place_of_the_causal_one(tmp_path: Path) -> None:
    for mask in ((3, 3), (1, 1, 3, 3)):
        finding = audited(tmp_path, "mnn", *QKV, mask)
        assert finding.verdict == "same"
        assert (finding.source.offset, finding.source.mask.shape) == (None, mask)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((2, 3, 4, 8), (2, 3, 2, 8), (2, 3, 2, 8)), "the first sample alone"),
        (((1, 3, 4, 8), (1, 5, 2, 8), (1, 5, 2, 8)), "as many keys as there are queries"),
        (((1, 3, 4, 8), (1, 3, 2, 8), (1, 3, 2, 4)), "as if they were as wide as the query"),
        ((*QKV, (1, 4, 3, 3)), "as one of queries and keys alone"),
        ((*QKV, (1, 3)), "the mask's query axis does not fit"),
    ],
)
def test_a_file_that_computes_something_else_is_refused(
    tmp_path: Path, shapes: Any, words: str
) -> None:
    finding = audited(tmp_path, "mnn", *shapes)
    assert (finding.verdict, finding.reason) == ("refused", "invalid_source")
    assert words in finding.message


def test_other_engines_attend_the_same(tmp_path: Path) -> None:
    for target in ("onnxruntime", "torch", "litert"):
        assert audited(tmp_path, target, *QKV, (3, 3)).verdict == "same"
        assert audited(tmp_path, target, *QKV).source.offset == 0
    assert audited(tmp_path, "onnxruntime", *QKV).target.offset == 0


@pytest.mark.parametrize(
    ("mask", "fields", "words"),
    [
        ((), None, "a mask of one number"),
        (np.ones((), np.float32), None, "a mask of one number"),
        ((3, 3), {0: Scalar("B", 0), 5: Scalar("B", 1)}, "a packed result"),
    ],
)
def test_what_is_not_modelled_is_named(tmp_path: Path, mask: Any, fields: Any, words: str) -> None:
    finding = audited(tmp_path, "mnn", *QKV, mask, fields=fields)
    assert (finding.verdict, finding.reason) == ("unknown", "not_modelled")
    assert words in finding.message


def test_a_mask_of_zero_is_none(tmp_path: Path) -> None:
    """A sink without a mask ends the causal one: MNN sees every key then."""
    zero = np.zeros((), np.float32)
    finding = audited(tmp_path, "mnn", *QKV, zero)
    assert (finding.verdict, finding.source.offset) == ("same", 0)
    finding = audited(tmp_path, "mnn", *QKV, zero, (4,))
    assert (finding.verdict, finding.source.offset) == ("same", None)
    assert "the softmax has a sink" in finding.source.explain()


def test_keys_of_runs_before_are_named(tmp_path: Path) -> None:
    finding = audited(tmp_path, "mnn", *QKV, fields={0: Scalar("B", 1)})
    assert finding.notes == ("this is so of a run of its own, without keys of runs before",)
