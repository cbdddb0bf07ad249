"""The rooms: no import circles between packages, small ones inside, and shapes without NumPy."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Files that may import each other inside one package.
LARGEST_CIRCLE = 5
#: Rooms that need the standard library alone.
PLAIN = ("core", "sizes", "ops", "engines", "derive", "quantisation", "errors", "system")


def circles(arrows: Mapping[str, Sequence[str]]) -> Iterator[set[str]]:
    """The sets of modules that reach each other (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> Iterator[set[str]]:
        number[module] = low[module] = len(number)
        stack.append(module)
        for other in arrows[module]:
            if other not in number:
                yield from visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], number[other])
        if low[module] == number[module]:
            circle = set(stack[stack.index(module) :])
            del stack[stack.index(module) :]
            if len(circle) > 1:
                yield circle

    for module in arrows:
        if module not in number:
            yield from visit(module)


@pytest.fixture(scope="module", params=["zerostride", "campaigns"])
def arrows(request: pytest.FixtureRequest) -> dict[str, list[str]]:
    grimp = pytest.importorskip("grimp", reason="import-linter brings it")
    graph = grimp.build_graph(request.param, exclude_type_checking_imports=True, cache_dir=None)
    return {
        module: sorted(graph.find_modules_directly_imported_by(module))
        for module in sorted(graph.modules)
    }


def test_circles_are_found() -> None:
    arrows = {"a": ["b"], "b": ["c"], "c": ["b", "d"], "d": [], "e": ["a"]}
    assert list(circles(arrows)) == [{"b", "c"}]


def test_no_circle_crosses_packages_or_is_large(arrows: dict[str, list[str]]) -> None:
    packages = {module for module in arrows if any(m.startswith(module + ".") for m in arrows)}
    for circle in circles(arrows):
        homes = {m if m in packages else m.rpartition(".")[0] for m in circle}
        assert len(homes) == 1, f"a circle crosses packages: {sorted(circle)}"
        assert len(circle) <= LARGEST_CIRCLE, sorted(circle)


def test_contributing_lists_the_rooms_in_the_order_of_the_linter() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    rooms = [layer.strip("()") for layer in layers if layer != "(__main__)"]
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = text[text.index("| room |") : text.index("`campaigns/` holds")]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == rooms


def test_packages_state_their_inputs_and_outputs() -> None:
    import zerostride

    folder = zerostride.__path__[0]
    code = (
        "import ast, pathlib, sys\n"
        "for file in sorted(pathlib.Path(sys.argv[1]).rglob('__init__.py')):\n"
        "    text = ast.get_docstring(ast.parse(file.read_text('utf-8'))) or ''\n"
        "    if 'In: ' not in text and file.parent.name not in ('zerostride', 'formats',"
        " 'runners', 'probe'):\n"
        "        print(file)\n"
    )
    assert subprocess.check_output([sys.executable, "-c", code, folder], text=True) == ""


SHAPES_ALONE = """
import sys
class Blocked:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("numpy", "click", "rich", "onnx", "ml_dtypes"):
            raise ImportError(f"{name} is imported")
sys.meta_path.insert(0, Blocked())
import zerostride as zs
p = zs.plan((5, 5), (5,), engine="ncnn")
assert "stretches" in p.explain() and p.svg().startswith("<svg") and "<" in p._repr_html_()
assert zs.plan((5, 5), (5,)).express("ncnn").shapes == ((5, 5), (1, 5))
assert "broadcast_to" in p.code("torch")
assert "ncnn" in str(zs.compare((5, 5), (5,)))
q = zs.plan(("N", 3), ("M", 3))
assert "M == N" in str(q.conditions) and q.bind(N=4, M=1).shape == (4, 3)
assert zs.plan_to((16,), (1, 16, 5), mode="explicit", axes_mapping=[1]).shape == (1, 16, 5)
assert zs.plan_quantization((4, 64), (4, 2), block=32).split == (4, 2, 32)
assert zs.supports("litert", "Maximum", "float32", ((1, 2), (2,))).ok
try:
    zs.plan((2, 3), (4,))
except zs.BroadcastError as error:
    assert error.hint is not None or error.reason
from zerostride.ops import OPS
from zerostride.engines import ENGINES
print(len(OPS), len(ENGINES), sorted(m for m in sys.modules if m.startswith("numpy")))
"""


def test_shapes_need_only_the_standard_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHAPES_ALONE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("[]\n"), done.stdout


def test_plain_rooms_import_no_library() -> None:
    import ast

    import zerostride

    root = Path(zerostride.__path__[0])
    for room in PLAIN:
        for file in [*(root / room).rglob("*.py"), *root.glob(f"{room}.py")]:
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    names = [str(node.module)]
                else:
                    continue
                for name in names:
                    assert name.partition(".")[0] in sys.stdlib_module_names, (file, name)
