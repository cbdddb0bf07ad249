"""The campaign over optimisers: its draws, mutants, steps, child process and record."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from onnx import parser

sys.path.insert(0, str(Path(__file__).parents[2]))

from campaigns.equivalent.draw import draw, network
from campaigns.equivalent.drawn import Drawn
from campaigns.equivalent.mutate import mutants_of
from campaigns.equivalent.networks import BLOCKS
from campaigns.equivalent.optimisers import Optimiser
from campaigns.equivalent.record import Record
from campaigns.equivalent.result import NOTHING, Result, results_of
from campaigns.equivalent.steps import compared, fingerprint, plain_words, results
from campaigns.equivalent.tally import Tally
from campaigns.equivalent.worker import Worker

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g (float[N,4] x) => (float[N,4] y) '
PLAIN = parser.parse_model(HEAD + "{ t = Relu(x) y = Identity(t) }")
SAME = parser.parse_model(HEAD + "{ y = Relu(x) }")
OTHER = parser.parse_model(HEAD + "{ y = Abs(x) }")

ALL_BLOCKS = sorted(
    {(block.__name__, shape) for shape, blocks in BLOCKS.items() for block in blocks}, key=str
)


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    return twin


# Draws and mutants.


@pytest.mark.parametrize("seed", range(8))
def test_a_seed_draws_the_same_model(seed: int) -> None:
    assert draw(seed).SerializeToString() == draw(seed).SerializeToString()
    assert draw(seed).SerializeToString() != draw(seed + 100).SerializeToString()


@pytest.mark.parametrize(("name", "shape"), ALL_BLOCKS)
def test_each_block_is_a_model_that_equals_itself(name: str, shape: tuple[int | str, ...]) -> None:
    block = next(one for one in BLOCKS[shape] if one.__name__ == name)
    for seed in range(2):
        drawn = Drawn(seed, [shape])
        block(drawn)
        model = drawn.model()
        onnx.checker.check_model(model, full_check=True)
        assert compared(model, copied(model)).end == "equal"


def test_draws_have_what_real_networks_have() -> None:
    ops: Counter[str] = Counter()
    for seed in range(150):
        ops.update({node.op_type for node in network(seed).graph.node})
    wanted = (
        *("If", "Expand", "ConstantOfShape", "Pad", "Split", "Trilu", "Range", "Erf", "Conv"),
        *("BatchNormalization", "InstanceNormalization", "Slice", "Where", "Softmax", "Cast"),
    )
    assert not [op for op in wanted if ops[op] < 3]


def test_there_are_thousands_of_mutants_of_every_kind() -> None:
    kinds: Counter[str] = Counter()
    count = 0
    for seed in range(50):
        model = draw(seed)
        own = fingerprint(model)
        for mutant, change in mutants_of(model, seed, 50):
            kinds[change.partition(" at ")[0]] += 1
            count += fingerprint(mutant) != own
    assert count >= 2000
    wanted = (
        *("permutation", "axis", "axes", "constant", "op", "operands", "bypass", "another"),
        *("epsilon", "order", "pads", "shifted", "gamma", "unstretched", "along", "turned"),
    )
    assert not [kind for kind in wanted if kinds[kind] < 3]


def test_mutants_leave_their_model_alone_and_are_the_same_again() -> None:
    model = draw(3)
    before = model.SerializeToString()
    first = [(one.SerializeToString(), change) for one, change in mutants_of(model, 1, 6)]
    again = [(one.SerializeToString(), change) for one, change in mutants_of(model, 1, 6)]
    assert first == again
    assert len(first) == 6
    assert model.SerializeToString() == before


# Steps.


def optimiser(whole: onnx.ModelProto, *, listed: bool = True) -> Optimiser:
    """An optimiser with passes that keep, join, change and fail."""

    def fails(model: onnx.ModelProto) -> onnx.ModelProto:
        raise ValueError(f"no {Path.home()}/model.onnx")

    passes = {
        "keeps": copied,
        "joins": lambda model: SAME,
        "joins too": lambda model: copied(SAME),
        "changes": lambda model: OTHER,
        "fails": fails,
    }
    return Optimiser("made up", "onnx", lambda model: whole, copied, lambda: passes, listed=listed)


class Compare:
    """Counts the comparisons."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, model: onnx.ModelProto, other: onnx.ModelProto) -> Result:
        self.calls += 1
        return compared(model, other)


def ends(whole: onnx.ModelProto, compare: Compare, *, passes: bool) -> dict[str, str]:
    every = results(PLAIN, optimiser(whole), compare, passes=passes)
    return {result.step: result.end for result, _ in every}


def test_every_pass_is_a_step_and_same_models_are_compared_once() -> None:
    compare = Compare()
    assert ends(SAME, compare, passes=True) == {
        "": "equal",
        NOTHING: "unchanged",
        "keeps": "unchanged",
        "joins": "equal",
        "joins too": "equal",
        "changes": "different",
        "fails": "not made",
    }
    assert compare.calls == 2


def test_passes_are_tried_where_the_whole_differs_alone() -> None:
    compare = Compare()
    assert ends(SAME, compare, passes=False) == {"": "equal"}
    assert ends(OTHER, compare, passes=False)["changes"] == "different"
    tally = Tally()
    every = results(PLAIN, optimiser(OTHER), compared, passes=False)
    tally.add("made up", "a case", [(result, "not run") for result, _ in every])
    (line,) = tally.different
    assert line.startswith("made up a case: ")
    assert line.endswith("alone: changes")


def test_an_unlisted_optimiser_has_no_steps_but_the_whole() -> None:
    every = results(PLAIN, optimiser(SAME, listed=False), compared, passes=True)
    assert [result.step for result, _ in every] == [""]


def test_steps_go_on_after_an_interruption() -> None:
    one = optimiser(SAME)
    whole = [result for result, _ in results(PLAIN, one, compared, passes=True)]
    rest = [result for result, _ in results(PLAIN, one, compared, passes=True, begin=3)]
    assert [replace(one, seconds=0) for one in rest] == [
        replace(one, seconds=0) for one in whole[3:]
    ]


def test_what_is_noted_inside_counts_but_texts_do_not() -> None:
    named, noted = copied(PLAIN), copied(PLAIN)
    named.graph.node[0].doc_string = "a text"
    noted.graph.value_info.append(onnx.helper.make_tensor_value_info("t", 1, [0, 4]))
    assert fingerprint(named) == fingerprint(PLAIN)
    assert fingerprint(noted) != fingerprint(PLAIN)


def test_reasons_name_no_place_of_this_machine() -> None:
    text = f"Load model from {Path.home()}/a/b.onnx failed:\n  {Path.cwd()}/x.py"
    assert plain_words(text) == "Load model from FILE failed: FILE"


# The child process.


def test_a_step_that_hangs_or_dies_does_not_stop_the_others() -> None:
    with Worker(0.5, "equivalent_child") as worker:
        found = list(worker.results(Path("m"), "o", passes=True, begin=0, differs=False))
    assert [number for number, _ in found] == [0, 1, 2, 3, 4]
    assert [result.end for _, result in found] == [
        *("equal", "not made", "not made", "undecided", "equal"),
    ]
    assert found[1][1].why == "the pass took more than 0.5 s"
    assert found[2][1].why == "the pass ended the process"
    assert found[3][1].why == "the comparison took more than 0.5 s"


def test_a_file_that_is_no_model_is_one_result() -> None:
    with Worker(5, "equivalent_child") as worker:
        (one,) = worker.results(Path("unreadable"), "o", passes=True, begin=0, differs=False)
    assert one == (0, Result("", "refused", "DecodeError: no model"))


# The record.


def test_a_row_holds_until_file_release_or_sources_change(tmp_path: Path) -> None:
    record = Record(tmp_path / "r.json")
    row = record.row("m.onnx", "file", "made up", "1.0")
    record.add(row, 0, Result("", "equal").as_dict())
    record.add(row, 1, Result(NOTHING, "unchanged").as_dict())
    row["done"] = "passes"
    record.write()

    again = Record(tmp_path / "r.json")
    assert again.row("m.onnx", "file", "made up", "1.0") == row
    assert results_of(row, ["a"]) == [Result("", "equal"), Result(NOTHING, "unchanged")]
    assert again.row("m.onnx", "file", "made up", "1.1")["steps"] == 0
    assert again.row("m.onnx", "other", "made up", "1.1")["steps"] == 0
    assert len(again.data["rows"]) == 1

    changed = Record(tmp_path / "r.json")
    changed.sources = "other sources"
    assert changed.row("m.onnx", "file", "made up", "1.0")["done"] == ""


def test_the_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = Record(tmp_path / "r.json")
    record.data["optimisers"]["made up"] = {"release": "1.0", "passes": ["ä", "b"]}
    record.row("m.onnx", "file", "made up", "1.0")
    record.write()
    assert Record(tmp_path / "r.json").data == record.data
