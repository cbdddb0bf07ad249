"""Fixes of findings: shapes that may be written into the model before conversion."""

from __future__ import annotations

from pathlib import Path

import pytest
import small

import zerostride as zs
from zerostride.models.findings import Finding

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("shapes", "proposed"),
    [
        (((1, 16, 4, 4), (4, 1)), (1, 4, 1)),  # ncnn alone is content with (1, 4)
        (((1, 5, 7, 3), (5, 1, 1)), None),
        (((1, 16, 4, 5), (4, 5)), (1, 4, 5)),
    ],
)
def test_fix_for_ncnn_is_no_trap_in_the_model(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], proposed: tuple[int, ...] | None
) -> None:
    inputs, options = {"x": shapes[0], "y": shapes[1]}, {"via": "none"}
    finding = small.site("Add", inputs, target="ncnn", options=options)
    if proposed is None:
        assert (finding.verdict, finding.fix) == ("same", None)
        return
    assert finding.fix is not None
    assert finding.fix.shapes[1] == proposed
    assert zs.plan(shapes[0], proposed) == zs.plan(*shapes)


@pytest.mark.parametrize(
    "path",
    [EXAMPLES / "tiny_vision.onnx", *sorted(EXAMPLES.glob("bugs/*"))],
    ids=lambda path: path.stem,
)
def test_fix_by_reshapes_alone_also_works_in_the_model(path: Path) -> None:
    for finding in zs.audit(path, target="ncnn", via="none").findings:
        if by_shapes(finding):
            assert finding.fix is not None
            assert isinstance(finding.source, zs.Plan)
            written = [
                new if changed else old
                for new, changed, (_, old) in zip(
                    finding.fix.shapes, finding.fix.changed, finding.operands, strict=True
                )
            ]
            assert zs.plan(*written).shape == finding.source.shape, finding.node
            assert zs.plan(*written) == finding.source, finding.node


def by_shapes(finding: Finding) -> bool:
    """Whether operands are reshaped and nothing else, under NumPy's rule."""
    fix, source = finding.fix, finding.source
    if fix is None or not isinstance(source, zs.Plan) or source.rule != "numpy":
        return False
    return not (fix.swapped or fix.attributes or fix.merged_axes or fix.explicit)


def test_check_that_cannot_run_names_the_option() -> None:
    report = zs.verify(EXAMPLES / "dynamic.onnx", engine="numpy", cache=False)
    assert [check.outcome for check in report.checks] == ["not_run"] * 3
    for check, names in zip(report.checks, (["T"], ["T", "heads"], ["N", "M"]), strict=True):
        options = " ".join(f"--set {name}=NUMBER" for name in names)
        assert check.detail.endswith(f"has a size that is not known: {options}")
