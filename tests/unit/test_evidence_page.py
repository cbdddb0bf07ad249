"""campaigns/evidence.py: a row holds of the files that it was measured on, and of no others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from campaigns import all as campaigns
from campaigns import evidence


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two folders of code and an empty page."""
    for name in ("src/a.py", "src/b.py", "native/c.cpp", "docs/index.md"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(name)
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setattr(evidence, "ROWS", tmp_path / "docs" / "evidence.json")
    monkeypatch.setattr(evidence, "PAGE", tmp_path / "docs" / "evidence.md")
    for words in ("init -q", "add -A", "-c user.name=a -c user.email=a@b commit -qm one"):
        subprocess.run(["git", "-C", str(tmp_path), *words.split()], check=True)
    return tmp_path


def measure(*paths: str) -> None:
    words = ["record", "fused", "--result", "3 passed", "--seconds", "1.6", *paths]
    assert evidence.main(words) == 0


def test_row_holds_until_a_file_changes(root: Path) -> None:
    assert evidence.main(["current", "fused", "src"]) == 1
    measure("src")
    assert evidence.main(["current", "fused", "src"]) == 0
    assert evidence.main(["current", "fused", "src", "native"]) == 1, "other files"
    (root / "native/c.cpp").write_text("other")
    assert evidence.main(["current", "fused", "src"]) == 0
    (root / "src/b.py").write_text("other")
    assert evidence.main(["current", "fused", "src"]) == 1
    (root / "src/b.py").write_text("src/b.py")
    assert evidence.main(["current", "fused", "src"]) == 0


def test_files_that_are_deleted_or_added_make_a_row_stale(root: Path) -> None:
    measure("src")
    (root / "src/new.py").write_text("")
    assert evidence.main(["current", "fused", "src"]) == 0, "git does not know it yet"
    subprocess.run(["git", "-C", str(root), "add", "-A"], check=True)
    assert evidence.main(["current", "fused", "src"]) == 1
    measure("src")
    (root / "src/a.py").unlink()
    assert evidence.main(["current", "fused", "src"]) == 1


def test_page_marks_what_is_stale(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure("src", "native")
    page = evidence.PAGE.read_text()
    assert "| fused | 3 passed | `bash .ci/run fused` |" in page
    assert "`src` `native`" in page
    assert "| 2 s |" in page
    assert "stale" not in page.partition("## Campaigns")[2]
    assert evidence.main(["check"]) == 0
    (root / "src/a.py").write_text("other")
    assert evidence.main(["check"]) == 1
    assert "python3 -m campaigns.evidence write" in capsys.readouterr().out
    assert evidence.main(["write"]) == 0
    assert "| fused, *stale* |" in evidence.PAGE.read_text()
    assert "Stale: fused." in evidence.PAGE.read_text()
    measure("src")
    commit = evidence.PAGE.read_text().partition("| fused |")[2].split(" | ")[2]
    assert commit.endswith(" and changes")


def test_page_is_not_among_its_files(root: Path) -> None:
    measure("docs")
    subprocess.run(["git", "-C", str(root), "add", "-A"], check=True)
    assert evidence.main(["current", "fused", "docs"]) == 0


def test_path_without_files_is_refused(root: Path) -> None:
    with pytest.raises(ValueError, match="sources has no file that git tracks"):
        measure("sources")


def test_every_campaign_names_files_that_exist() -> None:
    names = [one.name for one in campaigns.campaigns()]
    assert len(set(names)) == len(names)
    for one in campaigns.campaigns():
        assert evidence.digest(one.paths)


def test_campaign_is_measured_once_and_again_after_a_change(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from campaigns.__main__ import main

    (root / "campaigns").mkdir()
    program = root / "campaigns" / "__main__.py"
    program.write_text("import sys; print(*sys.argv[1:], 'of 7 cases'); print('the end')")
    (root / "campaigns" / "__init__.py").write_text("")
    monkeypatch.setattr(
        campaigns,
        "campaigns",
        lambda: [
            campaigns.Campaign("small", "fuse --cases 7", ("src",)),
            campaigns.Campaign("asked", "ask", ("native",), "^ask", engines=True),
        ],
    )
    assert main(["all"]) == 0
    assert "small: not measured; python -m campaigns fuse --cases 7" in capfd.readouterr().out
    assert main(["all", "--write", "--python", "paddle=python3"]) == 0
    rows = evidence.read()
    assert rows["small"].result == "fuse --cases 7 of 7 cases"
    assert rows["asked"].result == "ask --python paddle=python3 of 7 cases"
    assert rows["asked"].command == "python -m campaigns ask"
    capfd.readouterr()
    program.write_text("raise SystemExit(1)")
    assert main(["all", "--write"]) == 0
    assert capfd.readouterr().out == "small: measured\nasked: measured\n"
    (root / "src/a.py").write_text("other")
    assert main(["all", "--write", "--only", "small"]) == 1
    assert "without a row: small" in capfd.readouterr().err
    assert not evidence.read()["small"].current
    assert main(["all", "--only", "nothing"]) == 2
