"""The PyTorch examples of README.md and docs/strict.md stop as the pages show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import zerostride as zs
from zerostride.core.strict_mode import FAULTS

pytest.importorskip("torch", reason="the examples are PyTorch code")

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(bool(FAULTS), reason="".join(FAULTS)),
    pytest.mark.filterwarnings("ignore:Using a target size"),
]
ROOT = Path(__file__).parents[2]
EXAMPLE = re.compile(r"^```py\n(.*?)^```\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "docs/strict.md"])
def test_the_example_stops_as_shown(project, page):
    ((code, shown),) = EXAMPLE.findall((ROOT / page).read_text("utf-8"))
    with pytest.raises(zs.BroadcastError) as caught:
        project(code)
    assert f"{caught.value}\n" == shown
    project(code.replace("zs.strict()", "zs.strict(two_sided=True)"))


def test_the_first_example_is_short():
    ((code, _),) = EXAMPLE.findall((ROOT / "README.md").read_text("utf-8"))
    assert code.count("\n") <= 12
