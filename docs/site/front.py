"""The pages that tie others together: the front page with the navigation, results, the notebook."""

from __future__ import annotations

import json
import re
from pathlib import Path

import stage
from nav import children, parts

import zerostride as zs

NOTEBOOK = stage.ROOT / "examples" / "tour.ipynb"
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
#: How a page of results was made stands in it.
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
    for parent in ("howto/index", "benchmarks/index"):
        _add_children(page.parent / f"{parent}.md", children(parent, names))
    return "\n".join(lines)


def _add_children(page: Path, names: list[str]) -> None:
    """The navigation below a page, where that page does not have it."""
    if page.is_file() and names:
        listed = "\n".join(f"/{name}" for name in names)
        text = page.read_text("utf-8").rstrip()
        page.write_text(f"{text}\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n", "utf-8")


def results() -> dict[str, str]:
    """What was measured: every page of benchmarks/ with its first sentences."""
    lines = []
    names = {stage.page_of(name).removesuffix(".md"): name for name in stage.sources()}
    for page in children("benchmarks/index", {"benchmarks/index", *names}):
        title, text = _told((stage.ROOT / names[page]).read_text("utf-8"))
        lines.append(f"- **[{title}](/{page}.md)**" + (f": {text}\n" if text else "\n"))
    return {"benchmarks/index.md": _RESULTS + "".join(lines)} if lines else {}


def _told(text: str) -> tuple[str, str]:
    """A page's title, and its first paragraph without what links to elsewhere."""
    title = _TITLE.search(text)
    if title is None:
        raise SystemExit("a page of results has no title")
    for paragraph in text[title.end() :].strip().split("\n\n"):
        said = _MADE.sub("", paragraph.replace("\n", " ")).strip()
        if said and said[0].isalnum():
            return title[1], re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", said)
    return title[1], ""


def report() -> tuple[str, str]:
    """A report as one sees it in a browser, and what the page of reports says of it."""
    model = stage.ROOT / "examples" / "tiny_vision.onnx"
    made = zs.audit(model, target="ncnn").to_html()
    made = made.replace(str(stage.ROOT) + "/", "")
    text = "the audit of examples/tiny_vision.onnx for ncnn"
    return made, f'\nOne as HTML: <a href="examples/report.html">{text}</a>.\n'


def notebooks() -> dict[str, str]:
    """The example notebook as a page, with the outputs that its cells have now."""
    if not NOTEBOOK.is_file():
        return {}
    from notebook import as_page

    return {"notebook.md": as_page(json.loads(NOTEBOOK.read_text("utf-8")), NOTEBOOK)}
