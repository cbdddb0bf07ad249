"""The front page with the navigation, the page of results, and the notebook's page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import stage
from nav import children, parts

import zerostride as zs

NOTEBOOK = stage.ROOT / "examples" / "tour.ipynb"
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
#: The sentence that tells how a page of results was made.
_MADE = re.compile(r"^Made by .*?(?:by hand\.|--write`\.)")
_RESULTS = """# Results

Measured, with the command that makes each page anew. Every page names the machine, the releases of
the peers and what fell short.

"""


def index(page: Path, names: list[str]) -> str:
    """The front page with the site's navigation."""
    lines = [page.read_text("utf-8").rstrip(), ""]
    for part in parts(names):
        lines += [
            "```{toctree}",
            ":hidden:",
            f":caption: {part.caption}",
            "",
            *part.pages,
            "```",
            "",
        ]
    for parent in ("howto/index", "benchmarks/index", "reasons", "bugs"):
        _add_children(page.parent / f"{parent}.md", children(parent, names))
    return "\n".join(lines)


def _add_children(page: Path, names: list[str]) -> None:
    """Adds a page's children to its navigation, unless the page lists them."""
    if page.is_file() and names:
        listed = "\n".join(f"/{name}" for name in names)
        text = page.read_text("utf-8").rstrip()
        page.write_text(f"{text}\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n", "utf-8")


def results() -> dict[str, str]:
    """The page of results: every page of benchmarks/ with its first sentences."""
    lines = []
    names = {stage.page_of(name).removesuffix(".md"): name for name in stage.sources()}
    for page in children("benchmarks/index", {"benchmarks/index", *names}):
        title, text = _told((stage.ROOT / names[page]).read_text("utf-8"))
        lines.append(f"- **[{title}](/{page}.md)**" + (f": {text}\n" if text else "\n"))
    return {"benchmarks/index.md": _RESULTS + "".join(lines)} if lines else {}


def _told(text: str) -> tuple[str, str]:
    """A page's title, and its first paragraph without links."""
    title = _TITLE.search(text)
    if title is None:
        raise SystemExit("a page of results has no title")
    for paragraph in text[title.end() :].strip().split("\n\n"):
        sentence = _MADE.sub("", paragraph.replace("\n", " ")).strip()
        if sentence and sentence[0].isalnum():
            return title[1], re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence)
    return title[1], ""


def report() -> tuple[str, str]:
    """An example report as HTML, and the sentence that links to it."""
    model = stage.ROOT / "examples" / "tiny_vision.onnx"
    html = zs.audit(model, target="mnn").to_html()
    html = html.replace(str(stage.ROOT) + "/", "")
    text = "the audit of examples/tiny_vision.onnx for MNN"
    return html, f'\nAn example: <a href="examples/report.html">{text}</a>.\n'


def notebooks() -> dict[str, str]:
    """The example notebook as a page, with the outputs of running it now."""
    if not NOTEBOOK.is_file():
        return {}
    from notebook import as_page

    return {"notebook.md": as_page(json.loads(NOTEBOOK.read_text("utf-8")), NOTEBOOK)}
