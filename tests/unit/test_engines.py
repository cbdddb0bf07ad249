"""The engine table: its rows, releases that differ from their documents, no imports."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from plans import reason_of

import zerostride as zs
from zerostride.core.alignment import apply
from zerostride.core.rules import RULES
from zerostride.engines import ENGINES, find_engine, versions
from zerostride.engines.model import BROADCAST
from zerostride.ops import OPS
from zerostride.sizes import Asker

Shape = tuple[int, ...]


@pytest.fixture
def fresh_warnings() -> Iterator[None]:
    versions.warn_if_unmeasured.cache_clear()
    yield
    versions.warn_if_unmeasured.cache_clear()


def test_all_required_engines_have_rows() -> None:
    required = {
        *("numpy", "torch", "tensorflow", "jax", "onnxruntime"),
        *("openvino", "paddle", "ncnn", "mnn", "litert", "executorch"),
        *("tensorrt", "coreml", "litert-gpu", "tosa", "stablehlo"),
    }
    assert required <= set(ENGINES)


@pytest.mark.parametrize("name", ENGINES)
def test_row_is_complete(name: str) -> None:
    row = ENGINES[name]
    assert row.name == name
    assert row.source
    assert row.release
    assert row.elementwise
    for rules in (row.elementwise, row.to_target, row.constants, *row.ops.values()):
        for rule in rules.values():
            assert rule.name in RULES or name not in ENGINES.own
            assert rule.source
    for mode, rule in row.to_target.items():
        assert rule.to_target, mode
    assert all(not rule.to_target for rule in row.elementwise.values())
    for divergence in row.divergences:
        assert divergence.text
        assert divergence.source
        assert divergence.effect in zs.Reason
        assert divergence.run == row.run
        assert divergence.ops <= {*OPS, BROADCAST}


def test_find_engine_proposes_a_near_name() -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        find_engine("nccn")
    assert caught.value.reason == "unknown_engine"
    assert caught.value.hint == "did you mean ncnn?"


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_plans_equal_shapes_and_is_named_in_the_plan(engine: str) -> None:
    plan = zs.plan((2, 3), (2, 3), engine=engine)
    assert plan.shape == (2, 3)
    assert plan.stretched == ((), ())
    assert plan.rule.engine == engine
    assert plan.rule.label.startswith(engine)


@pytest.mark.parametrize(
    ("op", "dtype", "shapes", "dies"),
    [
        ("equal", "float32", ((1,) * 13, (1,)), True),
        ("equal", "float32", ((1,) * 12 + (7,), (1,)), False),
        ("equal", "float32", ((1,), (1,) * 13), False),
        ("equal", "float32", ((1,) * 14, (1,) * 12 + (3, 1)), True),
        ("equal", "float32", ((1,) * 14, (1,) * 13), False),
        ("equal", "int32", ((1,) * 14, (1,) * 13), True),
        ("logical_and", "bool", ((1,) * 13 + (512,), (1,)), True),
        ("logical_and", "bool", ((1,) * 13 + (128,), (1,)), False),
        ("logical_and", "bool", ((1,) * 25 + (2,), (1,)), True),
        ("add", "int32", ((1,), (1,) * 13), False),
        ("subtract", "int32", ((1,), (1,) * 13), True),
        ("where", "float32", ((1,) * 14, (1,) * 13, (1,)), False),
        ("where", "float32", ((1,) * 13, (1,), (1,)), True),
        ("bitwise_and", "int32", ((1,) * 22, (1,)), False),
        ("bitwise_and", "int32", ((1,), (1,) * 22), True),
        ("bitwise_left_shift", "int32", ((1,), (1,) * 22), False),
    ],
)
def test_openvino_beyond_12_axes(
    op: str, dtype: str, shapes: tuple[tuple[int, ...], ...], dies: bool
) -> None:
    """Run on OpenVINO 2026.4.1; of rows with the same source as the conformance test."""
    plan = zs.plan(*shapes, engine="openvino", op=op)
    rows = ENGINES["openvino"].divergences_of(op, dtype)
    struck = [
        row
        for row in rows
        if "test_openvino_axes" in row.source and row.strikes and row.strikes(plan, Asker())
    ]
    assert bool(struck) is dies


@pytest.mark.parametrize("engine", ["numpy", "torch", "tensorflow", "jax", "onnxruntime", "mnn"])
def test_engines_have_numpys_rule(engine: str) -> None:
    for a, b in (((5, 5), (5,)), ((4, 1), (4,)), ((0, 1), (1, 3)), ((), (2,))):
        assert zs.plan(a, b, engine=engine) == zs.plan(a, b)


# Where a release is not its document.


def test_openvino_pdpd_starts_at_axis_0_and_does_not_trim() -> None:
    document = {"rule": "pdpd"}
    release = {"rule": "pdpd", "engine": "openvino"}
    assert zs.plan((3, 3), (3,), **document).aligned[1] == (1, 3)
    assert zs.plan((3, 3), (3,), **release).aligned[1] == (3, 1)
    assert zs.plan((2, 3), (3, 1), axis=1, **document).shape == (2, 3)
    assert reason_of((2, 3), (3, 1), axis=1, **release) == "overrun"
    assert reason_of((2, 3), (3,), axis=-2, **release) == "axis_range"
    # Sizes are compared: 1 is more than 0, and A's 1 gives way to B's 0.
    assert zs.plan((2, 0), (1,), **document).shape == (2, 0)
    assert reason_of((2, 0), (1,), axis=1, **release) in ("one_way", "not_identical")
    assert zs.plan((2, 1), (0,), axis=1, **release).shape == (2, 0)


def test_openvino_explicit_repeats_axes_silently() -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_to((2, 2), (2, 2), mode="explicit", axes_mapping=[0, 0], engine="openvino")
    assert caught.value.reason == "duplicate_axes"
    assert caught.value.silent
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_to((2, 2), (2, 2), mode="explicit", axes_mapping=[0, 0])
    assert not caught.value.silent
    p = zs.plan_to((), (1, 3), mode="explicit", axes_mapping=[0], engine="openvino")
    assert p.axes_mapping == ((),)


def test_openvino_prelu_prefers_axis_1() -> None:
    assert zs.plan((2, 3, 3), (3,), engine="openvino", op="prelu").axes_mapping[1] == (1,)
    assert zs.plan((2, 4, 3), (3,), engine="openvino", op="PRelu").axes_mapping[1] == (2,)
    assert zs.plan((2, 3, 3), (3,), engine="openvino").axes_mapping[1] == (2,)
    assert reason_of((3,), (2, 3), engine="openvino", op="prelu") == "rank"


def test_openvino_prelu_checks_the_last_axis_for_sure() -> None:
    def refused(data: Shape, slope: Shape) -> tuple[str, bool]:
        with pytest.raises(zs.BroadcastError) as caught:
            zs.plan(data, slope, engine="openvino", op="prelu")
        return caught.value.reason, caught.value.silent

    for data, slope in (((2, 4), (3, 4)), ((2, 4, 4), (3, 4)), ((3, 4, 2, 3), (2, 1, 1))):
        assert refused(data, slope) == ("overrun", True)
    assert refused((2, 4), (3, 3)) == ("extent_mismatch", False)
    assert refused((1, 2, 6), (4, 1, 32)) == ("extent_mismatch", False)
    assert refused((4,), (3,)) == ("extent_mismatch", False)


def test_openvino_prelu_of_integers_is_checked() -> None:
    (rule,) = ENGINES["openvino"].typed["prelu", "int32"].values()
    for data, slope in (((1,), (2,)), ((), (1, 2)), ((2, 4), (3, 4))):
        with pytest.raises(zs.BroadcastError) as caught:
            apply(rule, (data, slope), {})
        assert not caught.value.silent
    assert apply(rule, ((2, 3, 3), (3,)), {}).axes_mapping[1] == (1,)


def test_mnn_allows_nine_axes_where_its_document_allows_six() -> None:
    assert zs.plan((1,) * 9, (2,), engine="mnn").rank == 9
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan((1,) * 10, (2,), engine="mnn")
    assert caught.value.reason == "rank_limit"
    assert caught.value.silent  # it dies


def test_ncnn_never_refuses_sizes() -> None:
    for shapes in (((3, 5), (3, 4)), ((2,), (4,))):
        with pytest.raises(zs.BroadcastError) as caught:
            zs.plan(*shapes, engine="ncnn")
        assert caught.value.silent
    assert reason_of((2,), (2, 3), (3,), engine="ncnn") == "operand_count"
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_to((2,), (2, 2), engine="ncnn")
    assert caught.value.reason == "no_op"


def test_jax_refuses_transposing_dimensions() -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_to((2, 3), (3, 2), mode="explicit", axes_mapping=[1, 0], engine="jax")
    assert caught.value.reason == "transposes"
    assert reason_of((2, 3), (3,), engine="jax", op="lax.add") == "rank"
    assert zs.plan((2, 3), (), engine="jax", op="lax.add").shape == (2, 3)


# The installed release against the measured one.


def test_another_release_warns_once(monkeypatch: pytest.MonkeyPatch, fresh_warnings: None) -> None:
    monkeypatch.setattr(versions, "installed", lambda distribution: "99.1")
    with pytest.warns(zs.EngineVersionWarning, match="99.1 is installed"):
        versions.warn_if_unmeasured("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        versions.warn_if_unmeasured("torch")


#: Rows of what pip does not install for the conformance suite, and of another release beside it.
NOT_INSTALLED = {"tensorrt", "coreml", "tosa", "stablehlo", "litert-gpu", "executorch"}


def test_the_suite_runs_against_the_measured_releases() -> None:
    lines = Path(__file__).parents[1].joinpath("conformance/releases.txt").read_text().splitlines()
    pinned: dict[str, list[str]] = {}
    for line in lines:
        if not line.startswith("#"):
            name, _, pin = line.partition(";")[0].partition("==")
            pinned.setdefault(name, []).append(pin.removesuffix(".*"))
    rows = {row.distribution: row for name, row in ENGINES.own.items() if name not in NOT_INSTALLED}
    table = Path(__file__).parents[2].joinpath("examples/optimisers.json").read_text("utf-8")
    optimisers = json.loads(table)["releases"]
    assert pinned.keys() == rows.keys() | optimisers.keys()
    for name in optimisers.keys() - rows.keys():
        assert pinned[name] == [optimisers[name]]
    for name in rows:
        measured = rows[name].measured
        assert measured[0] in pinned[name], name
        assert set(pinned[name]) <= set(measured), name


@pytest.mark.parametrize(
    ("version", "measured"),
    [("2.13", True), ("2.13.1", True), ("2.13.0+cpu", True), ("2.131", False), ("2.1", False)],
)
def test_release_covers_its_patches(
    monkeypatch: pytest.MonkeyPatch, version: str, measured: bool
) -> None:
    monkeypatch.setattr(versions, "installed", lambda distribution: version)
    row = ENGINES["torch"]
    assert row.release == "2.13"
    assert versions.was_measured(row) is measured


def test_older_measured_releases_do_not_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ENGINES["numpy"]
    assert row.measured[0] == row.release
    for release in row.measured:
        monkeypatch.setattr(versions, "installed", lambda _, version=f"{release}.3": version)
        assert versions.was_measured(row) is True
    monkeypatch.setattr(versions, "installed", lambda _: "2.1.3")
    assert versions.was_measured(row) is False


def test_oldest_supported_numpy_was_measured() -> None:
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())
    (least,) = (one for one in project["project"]["dependencies"] if one.startswith("numpy"))
    oldest = least.removeprefix("numpy>=")
    assert oldest.startswith(f"{ENGINES['numpy'].measured[-1]}.")


def test_missing_engine_does_not_warn(
    monkeypatch: pytest.MonkeyPatch, fresh_warnings: None
) -> None:
    monkeypatch.setattr(versions, "installed", lambda distribution: None)
    assert versions.was_measured(ENGINES["ncnn"]) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        versions.warn_if_unmeasured("ncnn")


# Importing.

#: What `import zerostride` and asking any engine must not load.
HEAVY = (
    *(
        "click",
        "rich",
        "onnx",
        "ai_edge_litert",
        "onnxruntime",
        "torch",
        "tensorflow",
        "jax",
        "openvino",
    ),
    *("paddle", "ncnn", "MNN", "google.protobuf", "hypothesis", "pytest"),
)

SCRIPT = """
import sys
import zerostride as zs
for engine in {engines!r}:
    zs.plan((2, 3), (2, 3), engine=engine)
zs.plan((5, 5), (5,)).express("ncnn")
print(*[name for name in {heavy!r} if name in sys.modules])
"""


def test_importing_and_planning_load_only_numpy() -> None:
    script = SCRIPT.format(engines=tuple(ENGINES), heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout.split() == []


def test_divergence_applies_only_within_its_bounds() -> None:
    """Beyond the rank and the rules that a row names it strikes no plan."""
    struck = set()
    rows = [row for engine in ENGINES.values() for row in engine.divergences if row.strikes]
    plans = [
        zs.plan((1,) * rank, (n,) * few, rule=rule, engine="openvino")
        for rule in ("numpy", "pdpd")
        for rank in (*range(5), 9, 12, 13, 14, 20, 21, 22)
        for few in {0, 1, rank}
        for n in (0, 1)
        if few <= rank
    ]
    plans += [zs.plan((1,) * few, (1,) * 22, engine="openvino") for few in (0, 12, 13)]
    plans += [
        zs.plan_to((n,) * rank, (n,) * rank, mode=mode, engine="openvino")
        for mode in ("numpy", "bidirectional")
        for rank in (0, 1, 13)
        for n in (0, 1)
    ]
    for row in rows:
        for plan in plans:
            if row.strikes is not None and row.strikes(plan, Asker()):
                assert row.may_strike(plan.rule.name, plan.rank), (row.text, plan)
                struck.add(row.text)
    bounded = {row.text for row in rows if row.rank or row.rules}
    assert bounded <= struck
    assert not any(row.may_strike("numpy", 9) for row in ENGINES["openvino"].divergences_of("add"))


def test_paddle_stretches_a_selection_over_eight_axes() -> None:
    small, large = (2, 1) * 4, (1, 2) * 4
    assert zs.plan(small, large, (), engine="paddle", op="where").shape == (2,) * 8
    assert zs.plan(*[(2,) * 9] * 3, engine="paddle", op="where").shape == (2,) * 9
    for shapes in (((2,) * 9, (2,), ()), ((2,) * 10,) * 3):
        with pytest.raises(zs.BroadcastError) as caught:
            zs.plan(*shapes, engine="paddle", op="where")
        assert (caught.value.reason, caught.value.silent) == ("rank_limit", False)
