"""Checks the version before a release: python tools/release.py check [--tag v1.2.3]

The version in pyproject.toml, zerostride.__version__ and CHANGELOG.md's newest heading are one.
With --tag, so is the tag that is about to be made, the heading has the day of the release, and no
other commit has that tag. Exit status 1, and a line for each thing that does not agree.
"""

import argparse
import datetime
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Release, pre-release and post-release as PEP 440 writes them, in their normal form.
VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?"
)
HEADING = re.compile(r"^## (?P<version>\S+) \((?P<day>[^)]*)\)$", re.MULTILINE)
UNRELEASED = "unreleased"


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["check"])
    parser.add_argument("--tag", help="the new tag: v and the version")
    parser.add_argument("--root", type=Path, default=ROOT, help="a checkout; default: this one")
    options = parser.parse_args(arguments)
    found = list(faults(options.root, options.tag))
    for line in found:
        print(f"release.py: {line}", file=sys.stderr)
    if not found:
        print(f"zerostride {in_pyproject(options.root)}: everything says so")
    return 1 if found else 0


def faults(root: Path, tag: str | None) -> Iterator[str]:
    """What does not agree, a line each."""
    version = in_pyproject(root)
    if not VERSION.fullmatch(version):
        yield f"pyproject.toml: {version!r} is no version (1.2.3, 1.2.3rc1, 1.2.3.post1)"
    if (said := in_package(root)) != version:
        yield f"src/zerostride/system/version.py says {said}, and pyproject.toml {version}"
    headings = [match.groupdict() for match in HEADING.finditer(text(root / "CHANGELOG.md"))]
    if not headings:
        yield f"CHANGELOG.md has no heading '## {version} ({UNRELEASED})'"
        return
    newest, day = headings[0]["version"], headings[0]["day"]
    if newest != version:
        yield f"CHANGELOG.md begins with {newest}, and pyproject.toml says {version}"
    if day != UNRELEASED and not is_day(day):
        yield f"CHANGELOG.md: ({day}) is neither a day (2026-01-31) nor ({UNRELEASED})"
    for older in headings[1:]:
        name, its = older["version"], older["day"]
        if not is_day(its):
            yield f"CHANGELOG.md: {name} is not the newest, and its day is ({its})"
    if tag is not None:
        yield from tag_faults(root, tag, version, day)


def tag_faults(root: Path, tag: str, version: str, day: str) -> Iterator[str]:
    """What keeps a tag from being made here."""
    if tag != f"v{version}":
        yield f"the tag is {tag}, and pyproject.toml says {version}: v{version}"
    if day == UNRELEASED:
        yield f"CHANGELOG.md says ({UNRELEASED}): write the day of the release"
    there = commit_of(root, f"refs/tags/{tag}")
    if there is not None and there != commit_of(root, "HEAD"):
        yield f"the tag {tag} is there already, at another commit: {there[:12]}"


def in_pyproject(root: Path) -> str:
    """The version that wheels get."""
    return str(tomllib.loads(text(root / "pyproject.toml"))["project"]["version"])


def in_package(root: Path) -> str | None:
    """The version that users can ask for, without importing what may not be built."""
    said = re.search(
        r'^__version__ = "([^"]*)"$', text(root / "src/zerostride/system/version.py"), re.MULTILINE
    )
    return said and said[1]


def is_day(word: str) -> bool:
    """Whether it is a day of the calendar, as 2026-01-31."""
    try:
        return datetime.date.fromisoformat(word).isoformat() == word
    except ValueError:
        return False


def commit_of(root: Path, name: str) -> str | None:
    """The commit that a name of git's stands for, or None."""
    done = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() or None


def text(path: Path) -> str:
    """A file's text."""
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
