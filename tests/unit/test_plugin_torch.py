"""The pytest plugin on tests of PyTorch code."""

import pytest

pytest.importorskip("torch", reason="tests of PyTorch code")

pytest_plugins = ["pytester"]
HEAD = """
import pytest, torch
from torch import nn
from torch.nn import functional as F
from zerostride.pytest_plugin import allowed
pytestmark = pytest.mark.filterwarnings("ignore:Using a target size")
pred, target = torch.rand(3, 1), torch.rand(3)
"""


def module(*bodies):
    tests = [
        f"def test_{k}():\n" + "".join(f"    {line}\n" for line in body.splitlines())
        for k, body in enumerate(bodies)
    ]
    return HEAD + "".join(tests)


ACCIDENTS = (
    "F.mse_loss(pred, target)",
    "F.mse_loss(input=pred, target=target)",
    "nn.MSELoss()(pred, target)",
    "nn.L1Loss(reduction='sum')(pred[:2], target[:2])",
    "pred.sub(target)",
    "pred - target",
    "torch.lerp(pred, target, 0.5)",
    "x = [pred.clone()]\ntry:\n    x[0] += target\nexcept Exception:\n    pass",
)
HARMLESS = (
    "F.mse_loss(pred, target[:, None])",
    "F.mse_loss(pred, target)  # broadcast: ok",
    "with allowed():\n    F.mse_loss(pred, target)",
    "pred[:, 0].sub(target)",
    "nn.Linear(1, 2)(pred)",
    "target.unsqueeze(1).sub(target)",
)


def test_accidents_fail(run_watched):
    result = run_watched({"test_a.py": module(*ACCIDENTS)})
    result.assert_outcomes(failed=len(ACCIDENTS))
    lines = str(result.stdout)
    assert "AccidentalBroadcast: test_a.py:9: accidental broadcast of (3, 1) and (3,) to" in lines
    assert "fix: target.unsqueeze(1) or pred.squeeze(1)" in lines


def test_harmless_code_passes(run_watched):
    run_watched({"test_a.py": module(*HARMLESS)}).assert_outcomes(passed=len(HARMLESS))


def test_only_watched_tests_fail(run_watched):
    marked = module("F.mse_loss(pred, target)").replace(
        "def test_0", "@pytest.mark.strict_broadcast\ndef test_0"
    )
    text = marked + "def test_other():\n    F.mse_loss(pred, target)\n"
    text += "def test_fixture(strict_broadcast):\n    F.mse_loss(pred, target)\n"
    result = run_watched({"test_a.py": text}, ini="strict_broadcast = marked")
    result.assert_outcomes(failed=2, passed=1)
    run_watched({"test_a.py": text}, ini="strict_broadcast = off").assert_outcomes(passed=3)


def test_lines_of_installed_packages_are_not_under_test(run_watched):
    library = "def error(prediction, truth):\n    return prediction.sub(truth)\n"
    test = module("from some_library import error\nerror(pred, target)")
    files = {"site-packages/some_library.py": library, "test_a.py": test}
    run_watched(files, "-o", "pythonpath=. site-packages").assert_outcomes(passed=1)


def test_nothing_stays_on_pytorchs_stack(run_watched):
    import torch

    run_watched({"test_a.py": module(*ACCIDENTS, *HARMLESS)})
    assert torch._C._len_torch_function_stack() == 0
