"""The pytest plugin: the watched tests and modules."""

import importlib.util
import sys

import numpy as np
import pytest
from plugin_projects import ARRAYS, LOSS, module_of

from zerostride.lint import checks, loading

pytest_plugins = ["pytester"]


def test_plugin_is_off_by_default(run_watched):
    files = {"test_a.py": module_of("assert (column - vector).shape == (3, 3)")}
    run_watched(files, ini="").assert_outcomes(passed=1)
    run_watched(files, "--strict-broadcast", ini="").assert_outcomes(failed=1)
    run_watched(files, ini="strict_broadcast = off").assert_outcomes(passed=1)
    result = run_watched(files, ini="strict_broadcast = perhaps")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_plugin_works_without_assertion_rewriting(pytester):
    """A process of its own, because this one's pytest would rewrite them."""
    pytester.makeini("[pytest]\n")  # else pytest takes one of a folder above
    pytester.makepyfile(test_a=module_of("column - vector", "column - column"))
    options = ("-p", "zerostride.pytest_plugin", "--assert=plain", "--strict-broadcast")
    result = pytester.runpytest_subprocess(*options)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["accidental broadcasts: on, below *"])


def test_modules_of_other_import_hooks_are_listed(run_watched):
    conftest = """import importlib.machinery, importlib.util, sys
class Theirs(importlib.machinery.SourceFileLoader): pass
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "loss":
            return importlib.util.spec_from_file_location(
                name, "loss.py", loader=Theirs(name, "loss.py"))
sys.meta_path.insert(1, Finder)
"""
    test = module_of("from loss import squared\nsquared(column, vector)")
    result = run_watched({"conftest.py": conftest, "loss.py": LOSS, "test_a.py": test})
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*not checked for accidental broadcasts*: loss"])


def test_long_expressions_are_listed(run_watched):
    long = f"\ndef long(a):\n    return {' + '.join(['a'] * 600)}\n"
    test = module_of("from loss import squared, long\nassert long(1) == 600", "column - vector")
    result = run_watched({"loss.py": LOSS + long, "test_a.py": test, "test_b.py": test + long})
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*not checked for accidental broadcasts*: loss, test_b"])


@pytest.mark.parametrize("ini", ["", "strict_broadcast = on"])
def test_conftest_may_name_the_plugin(pytester, ini):
    pytester.makeini(f"[pytest]\n{ini}\n")
    pytester.makeconftest('pytest_plugins = ["zerostride.pytest_plugin"]\n')
    pytester.makepyfile(test_a=module_of("column - vector"))
    autoload = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(autoload, "1")
        for options in ((), ("--strict-broadcast",)):
            result = pytester.runpytest_subprocess(*options)
            failed = bool(ini or options)
            result.assert_outcomes(failed=int(failed), passed=int(not failed))


def test_two_finders_wrap_once(tmp_path, monkeypatch):
    (tmp_path / "twice.py").write_text("x = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    elsewhere, first, second = (
        loading.Finder(loading.Scope([path])) for path in (tmp_path / "no", tmp_path, tmp_path)
    )
    for finder in (first, second, elsewhere):
        finder.install()
    try:
        spec = importlib.util.find_spec("twice")
        assert type(spec.loader) is loading._Loader
        assert first.unchecked + second.unchecked == []
        assert importlib.util.find_spec("twice_not") is None
    finally:
        for finder in (first, second, elsewhere):
            finder.remove()


def test_markers_and_the_fixture_select_tests(run_watched):
    text = (
        "import numpy as np, pytest\n"
        + ARRAYS
        + """
@pytest.mark.strict_broadcast
def test_marked(): column - vector
@pytest.mark.strict_broadcast(False)
def test_not(): column - vector
def test_plain(): column - vector
def test_fixture(strict_broadcast): column - vector
@pytest.mark.usefixtures("strict_broadcast")
def test_used(): column - vector
@pytest.mark.xfail(strict=True)
def test_expected(strict_broadcast): column - vector
"""
    )
    files = {"test_a.py": text}
    marked = run_watched(files, ini="strict_broadcast = marked")
    marked.assert_outcomes(failed=3, passed=2, xfailed=1)
    run_watched(files).assert_outcomes(failed=4, passed=1, xfailed=1)
    run_watched(files, "-k", "not expected", ini="strict_broadcast = off").assert_outcomes(passed=5)
    # Nobody said anything: the code was imported unwatched, and a marker is no silence.
    result = run_watched(files, "-k", "not expected", ini="")
    result.assert_outcomes(errors=3, passed=2)
    result.stdout.fnmatch_lines(["*set `strict_broadcast = marked`*"])


def test_fixtures_conftests_and_imports_are_watched(run_watched):
    conftest = f"""import numpy as np, pytest
@pytest.fixture
def made():
    {ARRAYS}
    return column - vector
"""
    result = run_watched({"conftest.py": conftest, "test_a.py": "def test_a(made): pass\n"})
    result.assert_outcomes(errors=1)
    result = run_watched(
        {"conftest.py": "", "test_b.py": f"import numpy as np\n{ARRAYS}\ntable = column - vector\n"}
    )
    result.stdout.fnmatch_lines(["*AccidentalBroadcastError: *: accidental broadcast of*"])
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_scope_is_rootdir_without_site_packages(run_watched, pytester):
    files = {
        "site-packages/there.py": LOSS,
        "src/here.py": LOSS,
        "other/nothing.py": "",
        "test_a.py": "import sys\nsys.path[:0] = ['site-packages', 'src']\nimport there, here\n"
        + module_of("there.squared(column, vector)", "here.squared(column, vector)"),
    }
    run_watched(files).assert_outcomes(passed=1, failed=1)
    only = "strict_broadcast = on\nstrict_broadcast_paths = other"
    for name in ("there", "here"):
        sys.modules.pop(name, None)
    run_watched(files, ini=only).assert_outcomes(passed=2)


def test_packages_relative_imports_and_reloading_work(run_watched):
    files = {
        "pkg/__init__.py": "from .loss import squared\n",
        "pkg/loss.py": '"""A docstring."""\nfrom __future__ import annotations\n' + LOSS,
        "pkg/data.txt": "text",
        "test_a.py": "import importlib, importlib.resources, inspect, pickle, pkg, pkg.loss\n"
        + module_of(
            "pkg.squared(column, vector)",
            "assert pkg.loss.__doc__ == 'A docstring.'",
            "assert 'error = pred - target' in inspect.getsource(pkg.squared)",
            "assert pickle.loads(pickle.dumps(pkg.squared)) is pkg.squared",
            "assert (importlib.resources.files(pkg) / 'data.txt').read_text() == 'text'",
            "importlib.reload(pkg.loss).squared(column, vector)",
        ),
    }
    run_watched(files).assert_outcomes(failed=2, passed=4)


def test_import_modes_and_unittest_work(run_watched):
    text = "import numpy as np, unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
    text += f"        {ARRAYS}\n        self.assertTrue((column == vector).all())\n"
    files = {"test_a.py": text}
    run_watched(files, "--import-mode=importlib").assert_outcomes(failed=1)
    run_watched(files, "--import-mode=append").assert_outcomes(failed=1)


@pytest.mark.slow
def test_disabled_plugin_imports_no_lint_module(pytester):
    lint = "[m for m in sys.modules if 'zerostride.lint' in m]"
    test = f"import sys\ndef test_a(): assert not {lint}\n"
    pytester.makepyfile(test_a=test)
    pytester.makeini("[pytest]\n")
    options = ("-p", "zerostride.pytest_plugin")
    pytester.runpytest_subprocess(*options).assert_outcomes(passed=1)
    pytester.runpytest_subprocess(*options, "--strict-broadcast").assert_outcomes(failed=1)


def test_watch_ends_with_the_session(run_watched):
    before = list(sys.meta_path), checks.WATCH.enabled, checks.WATCH.report
    run_watched({"test_a.py": module_of("column - vector")})
    assert (list(sys.meta_path), checks.WATCH.enabled, checks.WATCH.report) == before


@pytest.mark.parametrize(
    "head",
    ['"""A docstring."""\n\n', "# A comment.\n", "\n", "from __future__ import annotations\n\n"],
    ids=("docstring", "comment", "blank", "future"),
)
def test_modules_with_a_late_first_statement_are_rewritten(run_watched, head):
    fixture = "import pytest\n@pytest.fixture\ndef made():\n    assert True\n    return 3\n"
    test = head + module_of("assert column.size == 3\ncolumn - vector", "assert column is not None")
    test += "def test_made(made): assert made - 1 == 2\n"
    result = run_watched({"conftest.py": head + fixture, "test_a.py": test})
    result.assert_outcomes(failed=1, passed=2)


def test_installed_modules_are_out_of_scope(tmp_path):
    scope = loading.Scope([tmp_path])
    assert scope.has(str(tmp_path / "a.py"))
    assert not scope.has(str(tmp_path / "a.so"))
    assert not scope.has(str(tmp_path / "lib" / "site-packages" / "a.py"))
    assert not scope.has(np.__file__)
    assert not scope.has(None)
