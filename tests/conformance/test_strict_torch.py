"""Strict mode sees accidental broadcasts in PyTorch code, and nothing else."""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import warnings

import pytest
import torch_lines
from torch_operands import COLUMN, MARKS, VECTOR, subtract, torch
from torch_watched import refused

import zerostride as zs
from zerostride.lint import torch_watch

pytestmark = MARKS
functional = torch.nn.functional


# Accidents and idioms.


@pytest.mark.parametrize("line", torch_lines.ACCIDENTS)
def test_an_accident_is_refused(project, line):
    *before, last = line.split("; ")
    with pytest.raises(zs.BroadcastError) as caught, zs.strict():
        project("\n".join([*before, last]))
    assert caught.value.reason == torch_lines.ACCIDENTS[line]
    assert str(caught.value).startswith(f"train.py:{len(before) + 1}: accidental broadcast of ")
    assert "to allow it, end the line in `# broadcast: ok`" in str(caught.value)


@pytest.mark.parametrize("line", torch_lines.ACCIDENTS)
def test_a_comment_allows_a_line(project, line):
    with zs.strict(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, for losses
        try:
            project(f"{line}  # broadcast: ok")
        except RuntimeError as error:
            assert "output with shape" in str(error)  # noqa: PT017 - in place, it does not fit


@pytest.mark.parametrize("code", torch_lines.IDIOMS)
def test_an_idiom_is_no_accident(project, code):
    with zs.strict(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        project(code.replace("; ", "\n"))


FIXES = (
    ("column - vector", ["vector.unsqueeze(1)", "column.squeeze(1)"]),
    ("F.mse_loss(column, vector)", ["vector.unsqueeze(1)", "column.squeeze(1)"]),
    ("torch.rand(6, 1, 4) - x", ["x.unsqueeze(1)", "torch.rand(6, 1, 4).squeeze(1)"]),
    ("torch.rand(6, 4, 1) * vector", ["vector.unsqueeze(1).unsqueeze(2)"]),
    ("(column + 1) * vector", ["vector.unsqueeze(1)", "(column + 1).squeeze(1)"]),
)


@pytest.mark.parametrize(("line", "fixes"), FIXES)
def test_a_fix_is_pytorch_code_that_runs(project, line, fixes):
    with zs.strict(), pytest.raises(zs.BroadcastError) as caught:
        project(line)
    proposed = caught.value.hint.partition("; to allow it")[0].split(" or ")
    assert proposed == fixes
    for fix in proposed:
        name = fix[: fix.rindex(".squeeze")] if ".squeeze" in fix else fix.partition(".unsq")[0]
        with zs.strict():
            project(line.replace(name if name in line else name[1:-1], fix, 1))


def test_the_message_is_drawn(project):
    with zs.strict(), pytest.raises(zs.BroadcastError) as caught:
        project("error = column - vector\n")
    assert str(caught.value) == (
        "train.py:1: accidental broadcast of (6, 1) and (6,) to (6, 6)\n"
        "  column - vector\n"
        "    column  6 1\n"
        "    vector  . 6\n"
        "    result  6 6\n"
        "  fix: vector.unsqueeze(1) or column.squeeze(1); to allow it, end the line in "
        "`# broadcast: ok`"
    )
    assert caught.value.shapes == ((6, 1), (6,))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_message_shows_the_line_inside_of_pytorch(project):
    with zs.strict(), pytest.raises(zs.BroadcastError) as caught:
        project("torch.distributions.Normal(column, 1.0).log_prob(vector)")
    _, line, inside, value, *_ = str(caught.value).splitlines()
    assert line == "  torch.distributions.Normal(column, 1.0).log_prob(vector)"
    assert inside.startswith("  in torch/distributions/normal.py:")
    assert inside.endswith(": value - self.loc")
    assert value.split() == ["value", ".", "6"]


def test_names_of_other_tensors_are_not_shown(project):
    code = "def twice(a, b):\n    return torch.stack([vector, vector]).sum(0) - column\n"
    with zs.strict(), pytest.raises(zs.BroadcastError) as caught:
        project(f"{code}criterion = nn.MSELoss()\ncriterion(*(column, vector))")
    assert "    input   6 1\n    target  . 6\n" in str(caught.value)


def test_code_without_source_is_named_by_its_line():
    scope = {"a": COLUMN, "b": VECTOR}
    with zs.strict(), pytest.raises(zs.BroadcastError) as caught:
        exec(compile("\na - b", "<typed>", "exec"), scope)
    assert str(caught.value).startswith("<typed>:2: accidental broadcast of (6, 1) and (6,)")


# Limits.


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_limits_hold():
    assert refused(subtract) is None
    with zs.strict():
        assert refused(subtract).reason == "two_sided"
        with zs.strict(two_sided=True):
            assert refused(subtract) is None
            assert refused(lambda: functional.mse_loss(COLUMN, VECTOR)) is None
            error = refused(lambda: functional.mse_loss(COLUMN, torch.rand(6, 2)))
            assert error.reason == "not_identical"
        with zs.strict(two_sided=True, new_axes=True):
            assert refused(lambda: functional.mse_loss(COLUMN, torch.rand(6, 2))) is None
        assert refused(subtract).reason == "two_sided"
    assert refused(subtract) is None


def test_growth_holds_of_operands_of_one_rank():
    row = VECTOR[None]
    with zs.strict(max_growth=6):
        assert refused(lambda: COLUMN * row) is None
        with zs.strict(max_growth=5.5):
            error = refused(lambda: COLUMN * row)
        assert refused(lambda: COLUMN * row) is None
    assert error.reason == "growth"
    assert "36 elements, and the largest operand has 6; max_growth is 5.5" in str(error)
    assert error.hint.endswith("or set a larger max_growth")
    assert not torch_watch.GROWING


# Levels.


def test_warnings_have_the_users_line():
    with pytest.warns(zs.AccidentalBroadcastWarning) as caught, zs.strict(level="warn"):
        result = subtract()
    (warning,) = caught
    assert result.shape == (6, 6)
    assert warning.filename == subtract.__code__.co_filename
    assert f"{os.path.basename(warning.filename)}:{warning.lineno}: " in str(warning.message)
    assert "  COLUMN - VECTOR\n" in str(warning.message)


def test_a_warning_comes_once_for_a_line(project):
    with warnings.catch_warnings(record=True) as caught, zs.strict(level="warn"):
        warnings.simplefilter("default")
        project("for _ in range(3):\n    column - vector\ncolumn - vector")
    assert [warning.lineno for warning in caught] == [2, 3]


def test_records_come_once_for_a_line_and_its_shapes(project, caplog):
    code = "for n in (5, 5, 6, 5):\n    column[:n] - vector[:n]\ncolumn - vector"
    with caplog.at_level("WARNING", "zerostride.strict"), zs.strict(level="log"):
        project(code)
    places = [record.getMessage().split(": ", 1)[0] for record in caplog.records]
    assert places == ["train.py:2", "train.py:2", "train.py:3"]
    assert "(5, 1) and (5,) to (5, 5)" in caplog.records[0].getMessage()


# Packages.


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package whose own code has an accident."""
    folder = tmp_path / "site-packages"
    (folder / "some_losses").mkdir(parents=True)
    (folder / "some_losses" / "__init__.py").write_text("from .errors import distance\n")
    (folder / "some_losses" / "errors.py").write_text(
        "def distance(prediction, truth):\n    return (prediction - truth).abs()\n"
    )
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module("some_losses")
    for name in ("some_losses", "some_losses.errors"):
        del sys.modules[name]


def test_an_accident_in_a_package_names_both_lines(package, project):
    code = "import some_losses\nsome_losses.distance(column, vector)"
    with zs.strict(), pytest.raises(zs.BroadcastError) as caught:
        project(code)
    assert str(caught.value).startswith(
        "some_losses/errors.py:2: accidental broadcast of (6, 1) and (6,) to (6, 6)\n"
        "  called by train.py:2: some_losses.distance(column, vector)\n"
        "  prediction - truth\n"
    )
    assert caught.value.hint.endswith("zs.strict(exempt=('some_losses',))")
    with zs.strict():
        project(f"{code}  # broadcast: ok", "allowed.py")


@pytest.mark.parametrize(
    ("exempt", "seen"),
    [
        (("some_losses",), False),
        (["some_losses.errors"], False),
        (("some_loss",), True),
        (("train", "torch"), True),
    ],
)
def test_packages_can_be_exempt(package, project, exempt, seen):
    with zs.strict(exempt=exempt):
        error = refused(lambda: package.distance(COLUMN, VECTOR))
    assert (error is not None) == seen


def test_modules_of_the_user_can_be_exempt(project):
    with zs.strict(exempt=("train",)):
        project("column - vector")
    with zs.strict(exempt=("torch.distributions",)):
        torch.distributions.Normal(COLUMN, 1.0).log_prob(VECTOR)
        assert refused(subtract)


COMMENTED = """
def outer(a, b):  # broadcast: ok
    c = a - b
    return c

@torch.no_grad()
def decorated(
    a, b
):
    return (
        a -
        b  # broadcast: ok
    )

class Pairs:  # broadcast: ok
    def all(self, a, b):
        return a - b
outer(column, vector), decorated(column, vector), Pairs().all(column, vector)
text = "broadcast: ok"; column - vector
"""


def test_comments_allow_functions_and_classes(project):
    with zs.strict(), pytest.raises(zs.BroadcastError) as caught:
        project(COMMENTED)
    assert str(caught.value).startswith("train.py:19: ")
