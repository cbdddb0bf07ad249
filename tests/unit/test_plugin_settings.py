"""Wrong settings of the pytest plugin."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("strict_broadcast = on\nstrict_broadcast_paths = nowhere", "*there is no *nowhere,*"),
        ("strict_broadcast = sideways", "*strict_broadcast = sideways: it is on, off or marked*"),
    ],
)
def test_wrong_setting_is_named(pytester: pytest.Pytester, settings: str, words: str) -> None:
    pytester.makeini(f"[pytest]\n{settings}\n")
    pytester.makepyfile("def test(): pass")
    result = pytester.runpytest_subprocess("-p", "zerostride.pytest_plugin")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([words])


def test_existing_folders_are_watched(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nstrict_broadcast = on\nstrict_broadcast_paths = code\n")
    pytester.mkdir("code")
    pytester.makepyfile("def test(): pass")
    result = pytester.runpytest_subprocess("-p", "zerostride.pytest_plugin")
    result.stdout.fnmatch_lines(["accidental broadcasts: on, below */code"])
    assert result.ret == 0
