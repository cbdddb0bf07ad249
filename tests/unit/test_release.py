"""tools/release.py: consistency before a release."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
HEAD = "# Changelog\n\n"


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """tools/release.py, which is no module of the package."""
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def checkout(
    folder: Path,
    project: str = "1.2.3",
    package: str = "1.2.3",
    changelog: str = "## 1.2.3 (unreleased)\n",
) -> Path:
    """A folder with the three files that say a version."""
    system = folder / "src" / "zerostride" / "system"
    system.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(f'[project]\nversion = "{project}"\n')
    (system / "version.py").write_text(f'__version__ = "{package}"\n')
    (folder / "CHANGELOG.md").write_text(HEAD + changelog)
    return folder


def test_classifiers_list_the_tested_pythons() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    name = "Programming Language :: Python :: 3."
    told = [one.split(" :: ")[-1] for one in settings["project"]["classifiers"] if name in one]
    assert settings["project"]["requires-python"] == f">={told[0]}"
    built = settings["tool"]["cibuildwheel"]["build"].split()
    assert {f"cp{version.replace('.', '')}-*" for version in told} <= set(built)
    asked = [shutil.which("bash") or pytest.skip("needs bash"), ROOT / ".ci" / "run", "--pythons"]
    lines = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[0] for line in lines] == told


def test_wheels_for_others_have_every_instruction_set() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    wheels = settings["cibuildwheel"]
    for platform in (wheels, wheels["linux"], wheels["macos"]):
        environment = platform.get("environment", wheels["environment"])
        assert environment["ZEROSTRIDE_SETS"] == "all"


def test_this_checkout_is_consistent(
    release: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert release.main(["check"]) == 0
    assert "everything says so" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "tag", "line"),
    [
        ({"package": "1.2.2"}, None, "system/version.py says 1.2.2, and pyproject.toml 1.2.3"),
        ({"project": "1.2"}, None, "'1.2' is no version"),
        ({"changelog": "## 1.2.2 (unreleased)\n"}, None, "CHANGELOG.md begins with 1.2.2"),
        ({"changelog": "## Later\n"}, None, "no heading '## 1.2.3 (unreleased)'"),
        ({"changelog": "## 1.2.3 (soon)\n"}, None, "(soon) is neither a day"),
        ({"changelog": "## 1.2.3 (2026-02-30)\n"}, None, "(2026-02-30) is neither a day"),
        (
            {"changelog": "## 1.2.3 (2026-02-03)\n## 1.2.2 (unreleased)\n"},
            None,
            "1.2.2 is not the newest, and its day is",
        ),
        ({}, "v1.2.3", "write the day of the release"),
        ({"changelog": "## 1.2.3 (2026-02-03)\n"}, "1.2.3", "the tag is 1.2.3"),
    ],
)
def test_inconsistencies_are_named(
    release: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    files: dict[str, str],
    tag: str | None,
    line: str,
) -> None:
    folder = checkout(tmp_path / "checkout", **files)
    assert release.main(["check", "--root", str(folder), *(["--tag", tag] if tag else [])]) == 1
    assert line in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("git") is None, reason="tags are git's")
def test_tag_is_used_once(
    release: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = checkout(tmp_path / "checkout", changelog="## 1.2.3 (2026-02-03)\n")

    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", folder, *who, *words], check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    arguments = ["check", "--root", str(folder), "--tag", "v1.2.3"]
    assert release.main(arguments) == 0
    git("tag", "v1.2.3")
    assert release.main(arguments) == 0, "the tag of this commit may be checked again"
    git("commit", "--allow-empty", "-m", "two")
    assert release.main(arguments) == 1
    assert "at another commit" in capsys.readouterr().err
