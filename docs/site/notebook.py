"""A notebook as a page: its cells are run and shown with their outputs.

Plain Python cells alone: no Jupyter is needed to build the site. That the notebook runs in Jupyter,
too, is tested by itself.
"""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drawings import inline


def as_page(notebook: Mapping[str, Any], path: Path) -> str:
    """The page of a notebook; its cells run in its own folder, one after another."""
    names: dict[str, Any] = {"__name__": "__main__"}
    parts = []
    with contextlib.chdir(path.parent):
        for number, cell in enumerate(notebook["cells"]):
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(source)
            elif cell["cell_type"] == "code" and source.strip():
                parts.append(f"```python\n{source}\n```")
                parts += run(source, names, f"{path.name}, cell {number}")
    parts.append(f"This page is the notebook [{path.name}](examples/{path.name}).")
    return "\n\n".join(parts) + "\n"


def run(source: str, names: dict[str, Any], place: str) -> list[str]:
    """A cell's printed text and the value of its last expression, as blocks of a page."""
    tree = ast.parse(source, place)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, place, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), place, "eval"), names)
    shown = [_text(printed.getvalue())] if printed.getvalue() else []
    if value is None:
        return shown
    html = getattr(value, "_repr_html_", lambda: None)()
    return [*shown, inline(html) if html else _text(repr(value))]


def _text(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"
