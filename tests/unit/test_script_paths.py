"""The shell scripts name tests that exist, and what they start needs no further packages."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"tests/[\w/]+\.(?:py|sh)(?:::\w+)?")
BRACES = re.compile(r"(tests/[\w/]+)\{([\w,]+)\}(\.py)")


def named_in(script: str) -> list[str]:
    text = (ROOT / script).read_text()
    listed = [f"{a}{name}{b}" for a, names, b in BRACES.findall(text) for name in names.split(",")]
    return sorted({*NAMED.findall(text), *listed})


@pytest.mark.parametrize("script", [".ci/run", "native/sanitize.sh"])
def test_script_names_tests_that_exist(script):
    names = named_in(script)
    assert len(names) >= 5
    for name in names:
        path, _, test = name.partition("::")
        assert (ROOT / path).is_file(), name
        if test:
            body = ast.parse((ROOT / path).read_text()).body
            assert test in {part.name for part in body if isinstance(part, ast.FunctionDef)}, name


def test_campaigns_start_without_the_packages_of_formats() -> None:
    """The sanitized build's environment has NumPy alone."""
    code = (
        "import sys\n"
        "for name in ('onnx', 'onnx_ir', 'flatbuffers', 'defusedxml', 'torch', 'openvino'):\n"
        "    sys.modules[name] = None\n"
        "import campaigns.__main__\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_no_step_hides_a_program() -> None:
    """A function of a step's name would answer `command -v` where the program is missing."""
    text = (ROOT / ".ci" / "run").read_text()
    functions = re.findall(r"^(\w+)\(\) \{", text, re.MULTILINE)
    table = re.search(r"^table='\n(.*?)^'$", text, re.MULTILINE | re.DOTALL)
    assert table is not None
    steps = [line.split()[0] for line in table[1].splitlines()]
    assert {f"step_{name}" for name in steps} == {n for n in functions if n.startswith("step_")}
    looked_up = set(re.findall(r"(?:type -P|command -v) (\w[\w-]*)", text))
    assert {"chromium", "npm", "ccache"} <= looked_up
    assert looked_up.isdisjoint(functions)
