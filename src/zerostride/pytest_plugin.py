"""The pytest plugin that fails tests on accidental broadcasts in the code under test.

NumPy's operations are seen by rewriting the code under test, PyTorch's losses and methods by the
watch of strict mode (`lint.torch_watch`).

Off by default. `pytest --strict-broadcast`, or `strict_broadcast = on` in pytest's configuration,
watches all tests; `strict_broadcast = marked` those with the marker, or the fixture, of that name.

    @pytest.mark.strict_broadcast(False)      # not this one
    with zerostride.pytest_plugin.allowed():  # not here
    d = column - row  # broadcast: ok         (not this line)
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.outcomes import Failed

# Every run of pytest with zerostride installed imports this module. Modules that only a watched run
# needs are imported when one begins.
if TYPE_CHECKING:
    from .lint.accident import Accident, Watch, allowed
    from .lint.loading import Finder

_NAME = "strict_broadcast"
_ON = frozenset({"on", "true", "yes", "1"})
_OFF = frozenset({"off", "false", "no", "0"})
_KEY = pytest.StashKey["_Session"]()


class AccidentalBroadcast(Failed):
    """Fails a test. It is no Exception, so handlers in the code under test do not catch it by
    chance.
    """

    __module__ = "builtins"  # like pytest's own: reports show the bare name


class AccidentalBroadcastError(ValueError):
    """An accident during an import, when there is no test that could fail."""


def __getattr__(name: str) -> Any:
    if name != "allowed":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .lint.accident import allowed

    return allowed


def _watch() -> Watch:
    from .lint.accident import WATCH

    return WATCH


@contextmanager
def _watching(enabled: bool) -> Iterator[None]:
    """Watches NumPy's and PyTorch's operations, or neither."""
    from .lint.torch_watch import opened

    watch = _watch()
    before, watch.enabled = watch.enabled, enabled
    close = opened() if enabled else lambda: None
    try:
        yield
    finally:
        close()
        watch.enabled = before


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option and the settings."""
    parser.getgroup("zerostride").addoption(
        "--strict-broadcast",
        action="store_true",
        default=False,
        help="Fail tests on accidental broadcasts, (N, 1) against (N,), in code under test.",
    )
    parser.addini(
        _NAME,
        "Accidental broadcasts in code under test fail tests: on, off, or marked (those with "
        "the marker or the fixture strict_broadcast).",
        default="",
    )
    parser.addini(
        f"{_NAME}_paths",
        "Folders of the code under test, from rootdir; rootdir itself by default.",
        type="args",
        default=[],
    )


def _mode(config: pytest.Config) -> str:
    """on, marked, off, or "" if no setting says."""
    # A conftest may name this plugin; then the first look at the options came before it.
    for options in (config.known_args_namespace, config.option):
        if getattr(options, _NAME, False):
            return "on"
    value = str(config.getini(_NAME)).strip().lower()
    if value in ("", "marked"):
        return value
    if value in _ON or value in _OFF:
        return "on" if value in _ON else "off"
    raise pytest.UsageError(f"{_NAME} = {value}: it is on, off or marked")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begins before the first conftest is imported, because that may import the code under test."""
    _begin(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Adds the marker; begins here if a conftest names this plugin."""
    config.addinivalue_line(
        "markers",
        f"{_NAME}(enabled=True): fail on accidental broadcasts in code under test (zerostride)",
    )
    _begin(config)


def _begin(config: pytest.Config) -> None:
    if _KEY in config.stash:
        return
    session = config.stash[_KEY] = _Session(config, _mode(config))
    session.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends the watch: pytest may run again in this process."""
    if _KEY in config.stash:
        config.stash[_KEY].end()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Reports the watched folders, and modules that cannot be watched."""
    session = config.stash[_KEY]
    if session.finder is None:
        return []
    roots = ", ".join(map(str, session.roots))
    lines = [f"accidental broadcasts: {session.mode}, below {roots}"]
    if session.before:
        lines.append(f"  imported before, not checked: {', '.join(session.before)}")
    return lines


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Reports the modules under test that could not be watched."""
    finder = config.stash[_KEY].finder
    if finder is not None and finder.unchecked:
        names = ", ".join(sorted(set(finder.unchecked)))
        terminalreporter.write_line(
            "not checked for accidental broadcasts, for other import hooks load them or their "
            f"expressions are too long: {names}"
        )


class _Session:
    """One run of pytest.

    Attributes:
        mode: on, marked, off, or "".
        finder: the import hook; None if nothing is watched.
        before: modules under test that were imported too early.
        found: the accidents of the running test, including those that did not stop it.
    """

    def __init__(self, config: pytest.Config, mode: str) -> None:
        self.config = config
        self.mode = mode
        self.finder: Finder | None = None
        self.before: tuple[str, ...] = ()
        self.found: list[Accident] = []
        self.item: pytest.Item | None = None
        named = config.getini(f"{_NAME}_paths")
        self.roots: list[Path] = [config.rootpath / name for name in named] or [config.rootpath]
        self._outer: tuple[bool, Any, Any] = (False, None, None)
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Begins to watch, if anything is to be watched."""
        if self.mode not in ("on", "marked"):
            return
        for root in self.roots:
            if not root.exists():
                raise pytest.UsageError(
                    f"{_NAME}_paths: there is no {root}, so nothing below it would be checked"
                )
        from .lint.loading import Finder, Scope

        hook, before = _assertions(self.config)
        self.finder = Finder(Scope(self.roots), hook, before)
        self.before = self.finder.install()
        watch = _watch()
        self._outer = watch.enabled, watch.report, watch.covers
        watch.enabled, watch.report = self.mode == "on", self.report
        watch.covers = self.finder.scope.has

    def end(self) -> None:
        """Stops watching."""
        if self.finder is not None:
            self.finder.remove()
            watch = _watch()
            watch.enabled, watch.report, watch.covers = self._outer
            self.finder = None

    def report(self, accident: Accident) -> None:
        """Stores an accident and fails the running test or import."""
        __tracebackhide__ = True
        accident = self._near(accident)
        if self.item is None:
            raise AccidentalBroadcastError(str(accident))
        with self._lock:
            self.found.append(accident)
        raise AccidentalBroadcast(str(accident))

    def _near(self, accident: Accident) -> Accident:
        """The accident with its path from rootdir."""
        path = Path(accident.path)
        if not path.is_relative_to(self.config.rootpath):
            return accident
        return replace(accident, path=str(path.relative_to(self.config.rootpath)))

    def wants(self, item: pytest.Item) -> bool:
        """Whether a test is watched: by its marker, or else by the mode."""
        marker = item.get_closest_marker(_NAME)
        if marker is None:
            return self.mode == "on"
        arguments = [*marker.args, *marker.kwargs.values()]
        return bool(arguments[0]) if arguments else True


def _assertions(config: pytest.Config) -> tuple[Any, Any]:
    """pytest's own import hook, and its step on a tree; None if it rewrites nothing."""
    from _pytest.assertion import rewrite

    state = config.stash.get(rewrite.assertstate_key, None)
    hook = getattr(state, "hook", None)
    return hook, lambda tree, source, path: rewrite.rewrite_asserts(tree, source, path, config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Sets for each test, its fixtures included, whether it is watched."""
    session = item.config.stash[_KEY]
    if session.finder is None:
        return (yield)
    session.found, session.item = [], item
    try:
        with _watching(session.wants(item)):
            return (yield)
    finally:
        session.item = None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuses a marker that could have no effect."""
    session = item.config.stash[_KEY]
    if session.mode == "" and session.wants(item):
        _not_begun()


def _not_begun() -> None:
    pytest.fail(
        "strict_broadcast is asked for, and the code under test was imported unwatched: set "
        "`strict_broadcast = marked` in pytest's configuration (or `off`, to ignore this)",
        pytrace=False,
    )


@pytest.fixture
def strict_broadcast(request: pytest.FixtureRequest) -> Iterator[None]:
    """Watches a test, from here on, for accidental broadcasts; see the module."""
    session = request.config.stash[_KEY]
    if session.mode == "":
        _not_begun()
    if session.finder is None:
        yield
        return
    with _watching(True):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fails a test that went on after an accident: in a thread, or behind a bare `except`."""
    report = yield
    session = item.config.stash[_KEY]
    if session.found and report.outcome == "passed" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = "\n\n".join(map(str, dict.fromkeys(session.found)))
    session.found = []  # each phase has its own report
    return report


__all__ = ["AccidentalBroadcast", "AccidentalBroadcastError", "allowed"]
