"""The site is built, and a build of broken links fails. Needs the extra `docs`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

for name in ("sphinx", "furo", "myst_parser"):
    pytest.importorskip(name, reason="the site is built with the extra `docs`")
pytest.importorskip("onnx", reason="the notebook audits a model")

ROOT = Path(__file__).parents[2]
SECONDS = 900


def build(*words: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / "docs" / "site" / "build.py"
    return subprocess.run(
        [sys.executable, str(script), *words], capture_output=True, text=True, timeout=SECONDS
    )


def test_site_is_built(tmp_path: Path) -> None:
    done = build(str(tmp_path))
    assert done.returncode == 0, done.stderr
    html = tmp_path / "html"
    for page in ("index", "tour", "rules/pdpd", "engines/ncnn", "api/elementwise", "notebook"):
        assert (html / f"{page}.html").is_file(), page
    assert "zs-drawing" in (html / "rules" / "pdpd.html").read_text("utf-8")
    assert (html / "examples" / "report.html").is_file()
    # To be seen, not to be saved.
    assert '<a href="examples/report.html">' in (html / "report.html").read_text("utf-8")
    assert 'id="zerostride.add"' in (html / "api" / "elementwise.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# Page\n\n[right](#page)\n", ""),
        ("# Page\n\n[wrong](missing.md)\n", "missing.md"),
        ("# Page\n\n[wrong](#nowhere)\n", "nowhere"),
        ('# Page\n\n<a href="missing.html">raw</a>\n', "missing.html"),
        ("# Page\n\n![wrong](missing.png)\n", "missing.png"),
        ('# Page\n\n<script src="https://cdn.example.org/x.js"></script>\n', "another site"),
    ],
)
def test_broken_link_fails_the_build(text: str, words: str, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; import build\n"
        "sources, html = map(Path, sys.argv[1:])\n"
        "sys.exit(build.render(sources, html, html / 'trees') or build.check(html))"
    )
    sources, html = tmp_path / "sources", tmp_path / "html"
    (sources / "_static").mkdir(parents=True)
    for style in ("site.css", "drawings.css"):
        (sources / "_static" / style).touch()
    shutil.copy(ROOT / "docs" / "site" / "conf.py", sources)
    (sources / "index.md").write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", code, str(sources), str(html)],
        cwd=ROOT / "docs" / "site",
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode == 0) == (not words), done.stderr
    assert words in done.stderr
