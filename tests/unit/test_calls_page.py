"""Every `file:function` of docs/calls.md exists in the package."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/zerostride"
NAMED = re.findall(r"`([\w/]+\.py):([\w.]+)`", (ROOT / "docs/calls.md").read_text("utf-8"))


def names_of(body: list[ast.stmt], prefix: str = "") -> set[str]:
    """The functions, classes, methods, attributes and constants that statements define."""
    names: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(prefix + statement.name)
            if isinstance(statement, ast.ClassDef):
                names |= names_of(statement.body, f"{prefix}{statement.name}.")
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        names |= {prefix + target.id for target in targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED)), ids=":".join)
def test_named_function_exists(file: str, name: str) -> None:
    path = PACKAGE / file
    assert path.is_file()
    assert name in names_of(ast.parse(path.read_text("utf-8")).body)


def test_page_names_functions_and_a_wrong_name_is_not_one() -> None:
    assert len(set(NAMED)) > 40
    body = ast.parse("class A:\n    def f(self): ...\n    x: int\nB = 1\ndef g(): ...").body
    assert names_of(body) == {"A", "A.f", "A.x", "B", "g"}
