"""The ```console blocks of README.md and docs/**/*.md are run and compared with their output.

A line that starts with `$ ` is run by bash in a folder of its own with the examples beside it; the
lines up to the next one are its output, errors included. A command without any is only run.
`python tests/unit/test_docs.py docs/cli.md` writes the outputs that the commands have today.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import warm

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: Only stops a command that hangs.
SECONDS = 300


def steps(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with the output that the page shows."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def shell(folder: Path) -> dict[str, str]:
    """The environment of a folder in which `zerostride` and `python` are this interpreter's."""
    tools = folder / "tools"
    tools.mkdir()
    for name, words in (("zerostride", "-m zerostride"), ("python", "")):
        script = tools / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        script.chmod(0o755)
    (folder / "examples").symlink_to(ROOT / "examples")
    source = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    kept = {
        name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "COLUMNS")
    }
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "PYTHONPATH": source, "PYTHONUTF8": "1", "NO_COLOR": "1"}


#: A call of zerostride with words that are only words, and what bash does with its output.
CALL = re.compile(r"zerostride ((?:[^|&;<>()$`\\\"'*?\[#~{}\n]|'[^'\n]*')+)(?:\| (.*)|> (\S+))?")


def run(command: str, folder: Path, environment: dict[str, str], status: int) -> tuple[str, int]:
    """A command's output and its status; `$?` in it is the status of the command before.

    A call of zerostride, alone or first of a pipe, needs no bash and starts fast.
    """
    command, piped = f"(exit {status}); {command}", ""
    if call := CALL.fullmatch(command.partition("; ")[2]):
        words, then, file = call.groups()
        answer = warm.run(
            shlex.split(words), cwd=folder, env=environment, merged=not (then or file)
        )
        if file:
            (folder / file).write_text(answer.stdout, "utf-8")
        if not then:
            return answer.stderr if file else answer.stdout, answer.returncode
        command, piped = then, answer.stdout
        assert not answer.stderr, answer.stderr
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        input=piped.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
    )
    return done.stdout.decode(), done.returncode


def played(text: str, folder: Path) -> str:
    """A page with the outputs that its commands have."""
    environment = shell(folder)

    def replay(block: re.Match[str]) -> str:
        lines, status = ["```console\n"], 0
        for command, _ in steps(block[1]):
            output, status = run(command, folder, environment, status)
            assert status in (0, 1), f"{command}: exit status {status}\n{output}"
            lines.append(f"$ {command}\n{output}")
        return "".join([*lines, "```"])

    return BLOCK.sub(replay, text)


def without_silence(shown: str, real: str) -> str:
    """The real page without the outputs that the page does not show."""
    blocks = iter(BLOCK.findall(shown))

    def silence(block: re.Match[str]) -> str:
        pairs = zip(steps(next(blocks)), steps(block[1]), strict=True)
        kept = [f"$ {command}\n{real if wanted else ''}" for (command, wanted), (_, real) in pairs]
        return "".join(["```console\n", *kept, "```"])

    return BLOCK.sub(silence, real)


#: What depends on the installed release of an engine: the note that it was not measured, and its
#: patch version.
NOTE = re.compile(r"^warning: \S+ \S+ is installed; its row was measured on .*\n", re.MULTILINE)
PATCH = re.compile(r"(?<= on numpy )\d+\.\d+\.\d+(?=:)")


def of_any_release(page: str) -> str:
    """A page without what depends on the installed release of an engine."""
    return PATCH.sub("2", NOTE.sub("", page))


def check(text: str, folder: Path) -> None:
    """Fails unless every command of a page does what the page shows."""
    assert of_any_release(without_silence(text, played(text, folder))) == of_any_release(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_console_blocks_show_the_real_output(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    if not BLOCK.search(text):
        return  # a page of prose, or of tables
    pytest.importorskip("onnx", reason="some commands read models")
    if shutil.which("bash") is None:
        pytest.skip("the commands are written for bash")
    check(text, tmp_path)


@pytest.mark.parametrize(
    ("block", "right"),
    [
        ("$ echo one\none\n", True),
        ("$ echo one\n", True),  # shown without its output
        ("$ false\n$ echo $?\n1\n", True),
        ("$ zerostride explain 2 3 --json | head -1\n{\n", True),
        ("$ echo one\ntwo\n", False),
        ("$ echo one\none\n\n", False),
        ("$ true\none\n", False),
        ("$ exit 2\n", False),
        ("$ zerostride nope\n", False),
    ],
)
def test_comparison_can_fail(block: str, right: bool, tmp_path: Path) -> None:
    page = f"# Page\n\n```console\n{block}```\n\nEnd.\n"
    if right:
        check(page, tmp_path)
    else:
        with pytest.raises(AssertionError):
            check(page, tmp_path)


def main(names: list[str]) -> None:
    """Writes the outputs of today into pages."""
    import tempfile

    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            transcript = played(Path(name).read_text("utf-8"), Path(folder))
            Path(name).write_text(transcript, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])


def test_every_bound_of_the_security_page_names_its_tests() -> None:
    rows = [
        line.split("|") for line in (ROOT / "SECURITY.md").read_text().splitlines() if "|" in line
    ]
    bounds = [row for row in rows if not row[-2].startswith(("-", " tested"))]
    assert len(bounds) > 10
    for row in bounds:
        paths = [word for word in re.findall(r"`([^`]*)`", row[-2]) if "/" in word]
        assert paths, row
        assert all(list(ROOT.glob(path)) for path in paths), row
