"""The drawings of working plans: text, colours, SVG, notebook form, and the facts as data."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import any_plan

import zerostride as zs
from zerostride.derive.explain import as_dict, explain, facts, growth, html, svg
from zerostride.derive.explain.facts import element_by_element, names_of, row_of
from zerostride.errors import BroadcastError

SVG = "{http://www.w3.org/2000/svg}"


def kinds(plan: zs.Plan) -> list[str]:
    return [kind for kind, _ in facts(plan)]


def test_dropped_axis_of_pdpd_is_drawn() -> None:
    plan = zs.plan((2, 3, 4, 50), (3, 4, 1), rule="pdpd", axis=1)
    assert str(plan) == (
        "rule 'pdpd' axis=1 combines x and y\n"
        "  x       2 3 4 50\n"
        "  y       . 3 4  .\n"
        "  result  2 3 4 50\n"
        "  y stretches along result axes 0 (absent→2) and 3 (absent→50)\n"
        "  axis 2 of y, of extent 1, is dropped\n"
        "  the result has 1,200 elements, as many as x"
    )


def test_two_sided_plan_is_drawn_with_a_fix() -> None:
    text = zs.plan((5, 1), (5,)).explain(["loss", "target"])
    assert text == (
        "rule 'numpy' combines loss and target\n"
        "  loss    5 1→5\n"
        "  target  .   5\n"
        "  result  5   5\n"
        "  loss stretches along result axis 1 (1→5)\n"
        "  target stretches along result axis 0 (absent→5)\n"
        "  the result has 25 elements, 5 times its largest input, loss (5)\n"
        "  WARNING: loss and target both stretch, each along an axis that another one fills; "
        "to match element by element, reshape target to (5, 1)"
    )


def test_rank_0_and_single_operands_are_drawn() -> None:
    assert "  x       ()\n  y       ()\n  result  ()\n" in str(zs.plan((), ()))
    assert str(zs.plan((3,))).startswith("rule 'numpy' takes x alone\n")


def test_plan_to_names_its_operand_data_and_shows_the_target() -> None:
    plan = zs.plan_to((16,), (1, 16, 50, 50), mode="explicit", axes_mapping=[1])
    lines = str(plan).splitlines()
    assert lines[0] == "rule 'explicit' axes_mapping=[1] lays data over (1, 16, 50, 50)"
    assert lines[1:3] == ["  data    . 16  .  .", "  target  1 16 50 50"]


def test_bidirectional_result_is_not_called_target() -> None:
    plan = zs.plan_to((3, 1), (1, 4), mode="bidirectional")
    assert names_of(plan) == ("data", "result")


def test_extents_stretched_to_zero_are_drawn() -> None:
    text = str(zs.plan((3, 1), (3, 0)))
    assert "3 1→0" in text
    assert "the result is empty; x has 3" in text
    assert growth(zs.plan((0,), (0,))).factor is None


def test_neighbouring_axes_are_described_together() -> None:
    (text,) = (text for kind, text in facts(zs.plan((2, 3, 4, 5, 6), (1, 6))) if kind == "stretch")
    assert text == "y stretches along result axes 0-2 (absent→2×3×4) and 3 (1→5)"


def test_ncnns_order_is_shown() -> None:
    plan = zs.plan((2, 3, 4, 5), (2,), engine="ncnn")
    order = dict(facts(plan))["order"]
    assert order == (
        "in ncnn's order: x [w=5, h=4, d=3, c=2], y [w=2], result [w=5, h=4, d=3, c=2]"
    )
    assert "order" not in kinds(zs.plan((2, 3), (3,)))
    assert "x [w=1]" in dict(facts(zs.plan((), (2,), rule="ncnn")))["order"]


@pytest.mark.parametrize(
    ("shapes", "kwargs", "fix"),
    [
        (((5, 1), (5,)), {}, (1, (5, 1))),
        (((5,), (5, 1)), {}, (0, (5, 1))),
        (((32, 1, 10), (32, 10)), {}, (1, (32, 1, 10))),
        (((3, 1), (1, 4)), {}, None),
        (((4, 1), (1, 4)), {"rule": "mnn"}, (1, (4, 1))),
        (((4, 1), (4,)), {"engine": "torch"}, (1, (4, 1))),
    ],
)
def test_fix_of_a_two_sided_plan_is_one_sided(
    shapes: tuple[tuple[int, ...], ...],
    kwargs: dict[str, str],
    fix: tuple[int, tuple[int, ...]] | None,
) -> None:
    plan = zs.plan(*shapes, **kwargs)
    assert plan.two_sided
    assert element_by_element(plan) == fix
    if fix is not None:
        changed = list(shapes)
        changed[fix[0]] = fix[1]
        assert not zs.plan(*changed, **kwargs).two_sided


def test_colour_adds_only_colour() -> None:
    plan = zs.plan((5, 1), (5,))
    colored = plan.explain(color=True)
    assert "\x1b[36m1→5\x1b[0m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plan.explain()
    assert "\x1b" not in plan.explain()


def test_names_from_model_files_cannot_break_lines() -> None:
    text = zs.plan((2, 3), (3,)).explain(["a\nb\x1b[31m", "y"])
    assert "a\\nb\\x1b[31m  2 3" in text
    assert "\x1b" not in text


def test_result_may_have_a_name() -> None:
    assert "  out  2 3" in zs.plan((2, 3), (3,)).explain(["a", "b", "out"])


def test_as_dict_has_plain_data() -> None:
    plan = zs.plan_to((16,), (1, 16, 5), mode="explicit", axes_mapping=np.array([1]))
    data = as_dict(plan)
    assert data == json.loads(json.dumps(data))
    assert data["shape"] == [1, 16, 5]
    assert data["axes_mapping"] == [[1]]
    assert data["stretched"] == [[2]]
    assert data["rule"] == {
        "name": "explicit",
        "attributes": {"axes_mapping": [1]},
        "engine": None,
        "op": None,
    }
    assert data["growth"] == {"elements": 80, "largest": 16, "operand": 0, "factor": 5}
    assert data["two_sided"] is False


def test_row_that_made_a_plan_is_named() -> None:
    plan = zs.plan((2, 3, 4), (3,), engine="openvino", op="prelu")
    row = row_of(plan.rule)
    assert row is not None
    assert row.align.__name__ == "prelu_channel"
    assert row_of(zs.plan_to((3,), (2, 3), engine="mnn").rule).to_target  # type: ignore[union-attr]


def boxes(document: str, row: int) -> list[ET.Element]:
    """The boxes of the row-th row, by their height on the page."""
    listed = [e for e in ET.fromstring(document).iter(SVG + "rect") if e.get("class") != "zs-card"]
    heights = sorted({float(e.get("y", "")) for e in listed})
    return [e for e in listed if float(e.get("y", "")) == heights[row]]


def test_svg_has_a_box_per_axis_in_columns() -> None:
    plan = zs.plan((2, 3, 4, 5), (3, 1), rule="paddle", axis=1)
    document = plan.svg()
    rows = [boxes(document, n) for n in range(3)]
    places = [[(e.get("x"), e.get("width")) for e in row] for row in rows]
    assert places[0] == places[1] == places[2]
    assert len(places[0]) == 4
    assert [e.get("class") for e in rows[1]] == ["zs-wide", "zs-box", "zs-wide", "zs-wide"]
    arrows = [e for e in ET.fromstring(document).iter(SVG + "path") if e.get("class") == "zs-arrow"]
    assert len(arrows) == 3


def test_svg_escapes_hostile_names() -> None:
    names = ["<script>alert(1)</script>", '"><img onerror=x>', "a\x00]]>&b"]
    document = zs.plan((2, 3), (3,)).svg(names)
    assert "<script" not in document
    assert "<img" not in document
    tree = ET.fromstring(document)
    assert {e.tag for e in tree.iter()} <= {
        SVG + tag for tag in ("svg", "title", "desc", "style", "rect", "path", "text")
    }
    assert any("<script>" in (e.text or "") for e in tree.iter(SVG + "title"))


def test_svg_is_self_contained() -> None:
    document = zs.plan((5, 1), (5,)).svg()
    without_namespace = document.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in without_namespace
    assert "url(" not in document
    assert " id=" not in document  # several drawings share a notebook page
    assert "prefers-color-scheme:dark" in document


def test_svg_shows_dropped_axes_and_warnings() -> None:
    assert "axis 1 of y, of extent 1, is dropped" in text_of(
        zs.plan((2, 3, 4), (3, 1), rule="pdpd", axis=1).svg()
    )
    assert "WARNING: both operands stretch" in text_of(zs.plan((5, 1), (5,)).svg())


def text_of(document: str) -> str:
    return "\n".join(e.text or "" for e in ET.fromstring(document).iter(SVG + "text"))


def test_notebook_shows_the_picture_and_the_facts() -> None:
    plan = zs.plan((5, 1), (5,))
    document = plan._repr_html_()
    assert document == html(plan)
    assert plan.svg() in document
    assert document.count("<li>") == len(facts(plan))
    ET.fromstring(document)


@settings(max_examples=150, deadline=None)
@given(plan=any_plan(), names=st.lists(st.text(max_size=12), max_size=6))
def test_every_valid_plan_can_be_drawn(plan: zs.Plan, names: list[str]) -> None:
    text = explain(plan, names)
    assert explain(plan, names, color=True).count("\n") == text.count("\n")
    lines = text.splitlines()
    drawn = lines[1 : len(plan.operands) + 2]
    # Every row ends in the same column, and no name has broken a line.
    assert len(set(map(len, drawn))) == 1
    assert text.isprintable() or set(text) - {"\n"} == {c for c in text if c.isprintable()}
    ET.fromstring(svg(plan, names))
    ET.fromstring(html(plan))
    assert json.loads(json.dumps(as_dict(plan)))["shape"] == list(plan.shape)
    assert ("two_sided" in kinds(plan)) == plan.two_sided


@settings(max_examples=100, deadline=None)
@given(
    shapes=st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=2, max_size=2),
    rule=st.sampled_from(["numpy", "pdpd", "paddle", "ncnn", "mnn", "onnx6"]),
)
def test_growth_is_a_whole_factor(shapes: list[list[int]], rule: str) -> None:
    try:
        plan = zs.plan(*shapes, rule=rule)
    except BroadcastError:
        return
    size = growth(plan)
    if size.factor is not None:
        assert size.factor * size.largest == size.elements == np.prod(plan.shape)
