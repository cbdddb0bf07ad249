"""Each engine's version of a rule compared with recorded runs of that engine.

`tests/data/engines.txt` holds the cases. The conformance suite runs the engines themselves; this
test needs none of them installed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import zerostride as zs

DATA = Path(__file__).parents[1] / "data" / "engines.txt"

#: Groups that are not any engine's broadcast op, and why.
NOT_AN_ENGINE = {
    (
        "openvino-onnx-frontend",
        "Add-6",
    ): "an importer: it rewrites the node before any rule is used",
    (
        "mnn",
        "broadcast_to",
    ): "a Python helper that first demands target % size == 0; the op does not",
}
TRANSPOSES = "JAX takes axes in any order and transposes; a plan never does"

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    line: int
    engine: str
    op: str
    attributes: dict[str, Any]
    a: Shape
    b: Shape
    result: Shape | None
    maps: tuple[Shape, ...]


def _sizes(word: str) -> Shape:
    return () if word == "." else tuple(map(int, word.split(",")))


def read() -> Iterator[Case]:
    engine, op, attributes = "", "", {}
    for number, line in enumerate(DATA.read_text().splitlines(), 1):
        if line.startswith("@ "):
            engine, op, text = line[2:].split(" ", 2)
            attributes = json.loads(text)
        elif not line.startswith("#"):
            a, b, result, *maps = line.split(" ")
            refused = result == "x"
            yield Case(
                number,
                engine,
                op,
                attributes,
                _sizes(a),
                _sizes(b),
                None if refused else _sizes(result),
                () if refused else tuple(map(_sizes, maps)),
            )


def exclusion(case: Case) -> str | None:
    """Why a case is no test of `engine=`, or None."""
    if reason := NOT_AN_ENGINE.get((case.engine, case.op)):
        return reason
    dims = case.attributes.get("broadcast_dimensions")
    if dims is not None and case.result is not None and list(dims) != sorted(dims):
        return TRANSPOSES
    return None


def ask(case: Case) -> zs.Plan:
    """The plan that `engine=` gives for a case."""
    attributes = case.attributes
    match case.engine, case.op:
        case ("openvino", "Add"):
            rule = attributes["auto_broadcast"]
            return zs.plan(
                case.a, case.b, rule=rule, axis=attributes.get("axis"), engine=case.engine
            )
        case ("openvino", "Broadcast-3"):
            mapping = attributes.get("axes_mapping")
            return zs.plan_to(
                case.a, case.b, mode=attributes["mode"], axes_mapping=mapping, engine=case.engine
            )
        case ("jax", "broadcast_in_dim"):
            dims = attributes["broadcast_dimensions"]
            return zs.plan_to(case.a, case.b, mode="explicit", axes_mapping=dims, engine="jax")
        case ("mnn", "BroadcastTo(op)") | ("onnxruntime", "Expand-13"):
            return zs.plan_to(case.a, case.b, engine=case.engine)
        case (_, "broadcast_to" | "expand"):
            return zs.plan_to(case.a, case.b, engine=case.engine)
        case ("onnxruntime", "PRelu-16"):
            return zs.plan(case.a, case.b, engine=case.engine, op="prelu")
        case ("paddle", _):
            return zs.plan(case.a, case.b, engine="paddle", axis=attributes.get("axis"))
    assert set(attributes) <= {"op_type"}, f"line {case.line}: nobody looks at {attributes}"
    return zs.plan(case.a, case.b, engine=case.engine)


def measured_alignment(case: Case, count: int) -> tuple[Shape, ...]:
    """The aligned shapes of the first `count` operands, from the measured maps alone."""
    assert case.result is not None
    aligned = []
    for shape, mapping in zip((case.a, case.b)[:count], case.maps, strict=False):
        row = [1] * len(case.result)
        for size, axis in zip(shape, mapping, strict=True):
            assert axis >= 0 or size == 1
            if axis >= 0:
                row[axis] = size
        aligned.append(tuple(row))
    return tuple(aligned)


def disagreement(case: Case) -> str | None:
    """What is wrong with our answer, or None."""
    where = f"line {case.line}: {case.engine} {case.op} {case.attributes} {case.a} {case.b}"
    try:
        answer = ask(case)
    except zs.BroadcastError as error:
        return None if case.result is None else f"{where}: {case.result} refused: {error.detail}"
    if case.result is None:
        return f"{where}: refused by the engine, planned to {answer.shape}"
    wanted = measured_alignment(case, len(answer.operands))
    if (answer.shape, answer.aligned) != (case.result, wanted):
        return f"{where}: {case.result} {wanted}, planned {answer.shape} {answer.aligned}"
    return None


CASES = tuple(read())
KEPT = [case for case in CASES if exclusion(case) is None]


def test_excluded_cases_are_counted() -> None:
    assert len(CASES) == 6213
    left_out = Counter(exclusion(case) for case in CASES)
    assert left_out == {
        None: 5676,
        NOT_AN_ENGINE["openvino-onnx-frontend", "Add-6"]: 269,
        NOT_AN_ENGINE["mnn", "broadcast_to"]: 252,
        TRANSPOSES: 16,
    }


@pytest.mark.parametrize("engine", sorted({case.engine for case in KEPT}))
def test_prediction_matches_the_measurement(engine: str) -> None:
    cases = [case for case in KEPT if case.engine == engine]
    wrong = [text for case in cases if (text := disagreement(case))]
    assert not wrong, f"{len(wrong)} of {len(cases)} cases:\n" + "\n".join(wrong[:20])


def test_transposing_dimensions_are_refused_with_that_reason() -> None:
    cases = [case for case in CASES if exclusion(case) == TRANSPOSES]
    for case in cases:
        with pytest.raises(zs.BroadcastError) as caught:
            ask(case)
        assert caught.value.reason == "transposes", case


def test_comparison_finds_a_wrong_measurement() -> None:
    right = Case(0, "ncnn", "BinaryOp", {"op_type": 0}, (5, 5), (5,), (5, 5), ((0, 1), (0,)))
    assert disagreement(right) is None
    for wrong in (
        replace(right, result=None, maps=()),
        replace(right, result=(5, 1)),
        replace(right, maps=((0, 1), (1,))),
        replace(right, b=(4,), maps=((0, 1), (0,))),
    ):
        assert disagreement(wrong) is not None, wrong
