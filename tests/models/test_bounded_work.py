"""Models whose open sizes take much work: every audit ends, and its work has a bound.

The commands here have small allowances; work is counted in calls, which no machine's load changes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sampled import few

onnx = pytest.importorskip("onnx", reason="the files are ONNX files")
import small  # noqa: E402
from campaigns.hostile import other_kinds  # noqa: E402

import zerostride as zs  # noqa: E402
from work import calls_of  # noqa: E402
from zerostride.core.branching import explore  # noqa: E402
from zerostride.models.findings import Report, Verdict  # noqa: E402
from zerostride.models.flow import walk  # noqa: E402
from zerostride.sizes import Asker  # noqa: E402
from zerostride.sizes.budget import COMMAND_STEPS, allowance  # noqa: E402
from zerostride.sizes.condition import ALWAYS  # noqa: E402

#: Steps of a command here.
STEPS = 10_000
#: Calls that a step may take, and those for a file of a few hundred nodes.
CALLS_A_STEP, CALLS_OF_FILE = 150, 1_500_000


def own_names(count: int, rank: int, named: bool = True) -> Any:
    """Additions of tensors whose sizes all differ."""
    inputs = {
        f"x{k}": tuple(f"N{k}_{axis}" if named else None for axis in range(rank))
        for k in range(count)
    }
    nodes = [small.node("Add", f"x{k} x{(k + 1) % count}", f"t{k}") for k in range(count)]
    return small.model(nodes, inputs, outputs=("t0",))


def repeated(op: str, operands: str, weights: dict[str, Any], *, count: int, **more: Any) -> Any:
    """An op on its own result again and again, and an Add of each result."""
    nodes = []
    for k in range(count):
        inputs = operands.format(f"t{k - 1}" if k else "x")
        nodes += [small.node(op, inputs, f"t{k}", **more), small.node("Add", f"t{k} x", f"a{k}")]
    return small.model(nodes, {"x": ("B", 3, "H", "W")}, weights, outputs=(f"t{count - 1}",))


def doubling(first: list[Any], op: str, cast: bool) -> Any:
    """Numbers of a shape multiplied by themselves again and again; each is a shape again."""
    nodes = [*first]
    for k in range(60):
        nodes.append(small.node(op, f"s{k} s{k}", f"s{k + 1}"))
        size = f"s{k + 1}"
        if cast:
            nodes.append(small.node("Cast", size, f"i{k}", to=7))
            size = f"i{k}"
        nodes.append(small.node("Expand", f"z {size}", f"t{k}"))
    return small.model(nodes, {"x": ("N", 4), "z": (1, 1)}, outputs=("t59",))


_SHAPE = small.node("Shape", "x", "s0")
_REALS = [small.node("Shape", "x", "s"), small.node("Cast", "s", "s0", to=1)]
KINDS: dict[str, Callable[[], Any]] = {
    "names of rank 60": lambda: own_names(20, 60),
    "names of rank 4": lambda: own_names(150, 4),
    "unnamed sizes": lambda: own_names(150, 4, named=False),
    "squares of sizes": lambda: doubling([_SHAPE], "Mul", False),
    "squares of quotients": lambda: doubling(_REALS, "Mul", True),
    "doubled sizes": lambda: doubling([_SHAPE], "Add", False),
    "quotients of quotients": lambda: repeated(
        "Resize", "{} - scales", {"scales": np.array([1, 1, 1.5, 1.25], np.float32)}, count=40
    ),
    "joined sizes": lambda: repeated("Concat", "{} x", {}, count=100, axis=2),
}


def audited(content: Any, steps: int = STEPS) -> Report:
    with allowance(steps):
        return small.audit(content, "ncnn", "none")


@pytest.mark.parametrize("kind", few(4, KINDS))
def test_work_is_bounded_by_the_steps_of_the_command(kind: str) -> None:
    content = KINDS[kind]()
    small.audit(own_names(2, 2), "ncnn", "none")  # imports
    calls = calls_of(lambda: audited(content).to_json())
    assert calls < CALLS_A_STEP * STEPS + CALLS_OF_FILE


def test_equal_sizes_are_worked_with_within_the_steps(tmp_path: Path) -> None:
    """Each of a thousand equations is solved beside all that were solved before."""
    file = other_kinds.KINDS["paddle: sum of many"](tmp_path, 1000)
    small.audit(own_names(2, 2), "ncnn", "none")  # imports

    def bounded() -> None:
        with allowance(STEPS):
            zs.audit(file, "ncnn").to_json()

    calls = calls_of(bounded)
    assert calls < CALLS_A_STEP * STEPS + CALLS_OF_FILE, calls


def test_sizes_leave_steps_for_the_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2 * walk.FLOW_STEPS == COMMAND_STEPS
    monkeypatch.setattr(walk, "FLOW_STEPS", 20_000)
    verdicts = [finding.verdict for finding in audited(own_names(200, 60), 40_000).findings]
    assert verdicts[0] is Verdict.REFUSED
    assert verdicts[-1] is Verdict.UNKNOWN


def sums(folder: Path, count: int) -> Path:
    """A chain of additions that ncnn takes only after a reshape."""
    nodes = [
        small.node("Add", f"{f't{k - 1}' if k else 'x'} y", f"t{k}", name=f"n{k}")
        for k in range(count)
    ]
    file = folder / "m.onnx"
    inputs = {"x": ("n", "m", 3), "y": (3,)}
    file.write_bytes(small.model(nodes, inputs, outputs=(f"t{count - 1}",)).SerializeToString())
    return file


def test_questions_of_one_way_do_not_repeat_the_work_on_earlier_ones() -> None:
    sizes = [zs.Dim(f"n{k}") for k in range(50)]

    def asks(asker: Asker) -> int:
        pairs = zip(sizes, [*sizes[1:], sizes[0]], strict=True)
        return sum(asker.equal(a, b) for a, b in pairs)

    # A System built anew for every question takes 300,000 calls.
    assert calls_of(lambda: next(explore(asks, ALWAYS))) < 40_000


def test_port_ends_wherever_its_steps_end(tmp_path: Path) -> None:
    file, changes = sums(tmp_path, 30), set()
    for steps in range(200, 800, 20):
        with allowance(steps):
            changes.add(len(zs.port(file, "ncnn", tmp_path / "out.onnx", via="none").changes))
    assert {0, 30} <= changes


def test_similar_nodes_of_a_port_take_the_steps_of_one(tmp_path: Path) -> None:
    file = sums(tmp_path, 200)
    with allowance(1000):
        assert len(zs.port(file, "ncnn", tmp_path / "out.onnx", via="none").changes) == 200


def test_sizes_that_are_not_followed_are_a_note() -> None:
    report = audited(own_names(100, 20), 2000)
    (note,) = [note for note in report.notes if "not followed" in note]
    assert "the work that one command may take is used up" in note


def test_findings_do_not_depend_on_earlier_commands() -> None:
    content = own_names(60, 4)
    first = [finding.as_dict() for finding in audited(content, 5000).findings]
    small.audit(content, "ncnn", "none")  # answers more, and the process keeps some of it
    assert [finding.as_dict() for finding in audited(content, 5000).findings] == first
