"""Builds the documentation site: python docs/site/build.py [FOLDER]

The site is in FOLDER/html (build/site/html); a broken link, inside a page or to a page, ends the
build with status 1. Needs the extra `docs`; the playground needs npm, the rest no network.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

#: The pages are of the newest rows, whichever releases are installed.
os.environ["ZEROSTRIDE_RELEASES"] = "newest"
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent)]


def main(arguments: list[str] | None = None) -> int:
    """Builds and checks; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "site")
    folder = parser.parse_args(arguments).folder
    try:
        import furo  # noqa: F401
        import myst_parser  # noqa: F401
        import sphinx  # noqa: F401
    except ImportError as error:
        print(f"{error.name} is not installed: pip install -e '.[docs]'", file=sys.stderr)
        return 2
    begin = time.monotonic()
    sources, html = gather(folder)
    status = render(sources, html, folder / "doctrees")
    if status:
        return status
    status = check(html)
    pages = len(list(html.rglob("*.html")))
    print(f"{html}/index.html: {pages} pages in {time.monotonic() - begin:.0f} s")
    return status


def gather(folder: Path) -> tuple[Path, Path]:
    """All sources in one folder: the repository's pages and the generated pages."""
    import drawings
    import front
    import playground
    import reference
    import stage
    import tables

    stage.fresh(folder)
    sources = folder / "sources"
    generated = {**tables.pages(), **reference.pages(), **front.notebooks()}
    names = stage.stage(sources, generated | front.results())
    (sources / "index.md").write_text(front.index(sources / "index.md", names), "utf-8")
    example, link = front.report()
    # Sphinx offers a linked file as a download. A file in the site itself opens in the browser.
    shown = folder / "html" / "examples"
    shown.mkdir(parents=True)
    (shown / "report.html").write_text(example, "utf-8")
    with (sources / "report.md").open("a", encoding="utf-8") as page:
        page.write(link)
    static = sources / "_static"
    static.mkdir()
    (static / "drawings.css").write_text(drawings.stylesheet(), "utf-8")
    for path in (HERE / "static").iterdir():
        shutil.copyfile(path, static / path.name)
    playground.write(sources / "playground.md", static)
    shutil.copyfile(HERE / "conf.py", sources / "conf.py")
    if "notebook" in names:
        stage.copy(front.NOTEBOOK, sources / "examples" / front.NOTEBOOK.name)
    return sources, folder / "html"


def render(sources: Path, html: Path, doctrees: Path) -> int:
    """Runs Sphinx. Every warning is an error, such as a link to a missing page or section."""
    from sphinx.cmd.build import main as sphinx

    options = ["-W", "--keep-going", "-q", "-j", "auto", "-b", "html"]
    return sphinx([*options, "-d", str(doctrees), str(sources), str(html)])


def check(html: Path) -> int:
    """Checks the built pages: their links, and the files that a browser would load."""
    from links import faults

    problems = list(faults(html))
    for fault in problems:
        print(fault, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
