"""Rows of other packages: loaded on request, left out if they do not fit."""

import os
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import zerostride as zs
from zerostride.core.plugins import PLUGINS
from zerostride.core.rules import RULES
from zerostride.engines import ENGINES
from zerostride.models.format_table import FORMATS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugin_package"
GOOD = """
from zerostride.core.alignment import Rule
from zerostride.core.rules import align_numpy
from zerostride.engines import Engine
RULE = Rule("{name}", align_numpy, "As NumPy's.", "a manual")
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs packages as metadata and modules in a folder of sys.path; forgets them after."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def install(name, points, modules):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = []
        for group, entries in points.items():
            lines += [f"[zerostride.{group}]", *(f"{k} = {v}" for k, v in entries.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        for module, text in modules.items():
            (tmp_path / f"{module}.py").write_text(dedent(text))
        PLUGINS.forget()

    PLUGINS.forget()
    yield install
    PLUGINS.forget()
    for module in set(sys.modules) - before:
        if str(getattr(sys.modules[module], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[module]


def warned(ask):
    """What asking for something warns of, and what it gives."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        answer = ask()
    assert all(issubclass(one.category, zs.PluginWarning) for one in seen), seen
    return [str(one.message) for one in seen], answer


def in_a_process(code, *path):
    """What a fresh interpreter prints."""
    source = os.pathsep.join([*map(str, path), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", dedent(code)],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_metadata_is_read_only_for_unknown_names():
    code = """
    import sys
    import zerostride as zs
    from zerostride.core.plugins import PLUGINS
    zs.plan((3, 4), (4,)), zs.plan((5, 5), (5,), rule="pdpd"), zs.add([1.0], [2.0])
    str(zs.plan((3, 4), (4,))), zs.plan((5, 5), (5,)).express("ncnn")
    zs.plan((5, 5), (5,)).express("litert")
    import zerostride.cli.main
    before = PLUGINS._found is None
    try:
        zs.plan((3,), (3,), engine="nobody")
    except zs.BroadcastError:
        pass
    print(before, PLUGINS._found is None)
    """
    assert in_a_process(code) == "True False"


def test_import_stays_light():
    code = "import sys, zerostride; print('importlib.metadata' in sys.modules)"
    assert in_a_process(code) == "False"


def test_only_the_requested_row_is_loaded(installed):
    points = {"good": "one_good:RULE", "bad": "one_bad:RULE"}
    modules = {"one_good": GOOD.format(name="good"), "one_bad": "raise RuntimeError('at import')"}
    installed("one", {"rules": points}, modules)
    messages, plan = warned(lambda: zs.plan((2, 3), (3,), rule="good"))
    assert (messages, plan.shape, plan.rule) == ([], (2, 3), "good")
    assert RULES.source("good") == "one 1.0"
    assert RULES.source("numpy") == ""
    messages, names = warned(lambda: list(RULES))
    assert names[-1] == "good"
    assert len(names) == len(RULES) == len(RULES.own) + 1
    assert messages == [
        "one 1.0: the entry point 'bad' of zerostride.rules (one_bad:RULE) is left out: "
        "it does not load: RuntimeError: at import"
    ]
    assert warned(lambda: list(RULES))[0] == []  # once


BROKEN = {
    "missing_module": ("no_such_module:RULE", "", "does not load: ModuleNotFoundError"),
    "missing_name": ("broken:NOBODY", "", "does not load: AttributeError"),
    "exits": ("broken:RULE", "raise SystemExit(3)", "does not load: SystemExit: 3"),
    "syntax": ("broken:RULE", "def", "does not load: SyntaxError"),
    "raises": ("broken:make", "def make(): raise OSError('disk')", "does not load: OSError: disk"),
    "no_row": ("broken:RULE", "RULE = 3", "it is a int, not a Rule (zerostride.core.alignment)"),
    "other_name": ("broken:RULE", GOOD.format(name="else"), "its row is named 'else'"),
    "explicit": ("broken:RULE", GOOD.format(name="explicit"), "one of that name in zerostride"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_row_warns_and_breaks_nothing(installed, name):
    value, module, why = BROKEN[name]
    installed("brittle", {"rules": {name: value}}, {"broken": module})
    messages, rows = warned(lambda: zs.compare((2, 3), (3,)).rows)
    assert len(rows) > 10
    (words,) = messages
    assert words.startswith(f"brittle 1.0: the entry point {name!r} of zerostride.rules (")
    assert why in words
    if name not in RULES.own:
        with pytest.raises(zs.BroadcastError) as caught:
            zs.plan((3,), (3,), rule=name)
        assert caught.value.reason == "unknown_rule"


def test_two_packages_of_one_name_are_both_left_out(installed):
    for name in ("first", "second"):
        text = GOOD.format(name="shared")
        installed(name, {"rules": {"shared": f"{name}_module:RULE"}}, {f"{name}_module": text})
    messages, known = warned(lambda: "shared" in RULES)
    assert not known
    (words,) = messages
    assert "first 1.0" in words
    assert "second 1.0" in words
    assert "neither is taken" in words


def test_engine_may_not_take_another_name_or_lack_a_rule(installed):
    text = """
    from zerostride.engines import Engine, ENGINES
    from dataclasses import replace
    ncnn = replace(ENGINES["tosa"], name="ncnn")
    empty = replace(ENGINES["tosa"], name="empty", elementwise={})
    column = replace(ENGINES["tosa"], name="column")
    ops = replace(ENGINES["tosa"], name="ops", reads="onnx", has=frozenset({"addition"}))
    rule = replace(ENGINES["tosa"], name="rule", reads="onnx", elementwise={"numpy": 3})
    """
    names = ("ncnn", "empty", "column", "ops", "rule")
    installed("many", {"engines": {name: f"rows:{name}" for name in names}}, {"rows": text})
    before = ENGINES["ncnn"]
    messages, known = warned(lambda: list(ENGINES))
    assert not {*names, "ncnn"} & {*known[len(ENGINES.own) :]}
    assert ENGINES["ncnn"] is before
    whys = ("one of that name", "no element-wise rule", "no column", "addition", "is a int")
    assert len(messages) == len(names)
    for words, why in zip(messages, whys, strict=True):
        assert why in words


def test_failing_rule_is_a_refusal_that_names_its_package(installed):
    text = """
    from zerostride.core.alignment import Rule
    def align(asker, shapes, attributes): return 1 // 0
    RULE = Rule("fails", align, "Fails.", "nowhere")
    """
    installed("faulty", {"rules": {"fails": "faulty_rule:RULE"}}, {"faulty_rule": text})
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan((3,), (3,), rule="fails")
    assert caught.value.reason == "plugin"
    assert "align of faulty 1.0 failed: ZeroDivisionError" in str(caught.value)
    (row,) = (row for row in zs.compare((3,), (3,)).rows if row.name == "fails")
    assert row.verdict == "refused"
    with pytest.raises(zs.BroadcastError):
        zs.plan(("N",), ("M",), rule="fails")


def test_failing_divergence_may_apply(installed):
    text = """
    from dataclasses import replace
    from zerostride.engines import Divergence, ENGINES
    def strikes(plan, asker): return plan.nothing
    row = Divergence("goes wrong", "wrong_result", "nowhere", strikes=strikes)
    shaky = replace(ENGINES["tosa"], name="shaky", reads="onnx", divergences=(row,))
    """
    installed("trembling", {"engines": {"shaky": "shaky:shaky"}}, {"shaky": text})
    messages, answer = warned(lambda: zs.supports("shaky", "Add", "float32", [(3,), (3,)]))
    assert (answer.ok, answer.reason) == (False, "goes wrong")
    assert "strikes of trembling 1.0 failed: AttributeError" in messages[0]


def test_added_formats_need_new_suffixes(installed):
    text = """
    from zerostride.models.formats import Format
    mine = Format("mine", (".mine",), "reader", package="somewhere")
    onnx2 = Format("onnx2", (".onnx",), "reader", package="somewhere")
    nowhere = Format("nowhere", (".no",), "reader")
    dotless = Format("dotless", ("no",), "reader", package="somewhere")
    """
    names = ("mine", "onnx2", "nowhere", "dotless")
    installed("forms", {"formats": {name: f"forms:{name}" for name in names}}, {"forms": text})
    messages, known = warned(lambda: list(FORMATS))
    assert known == [*FORMATS.own, "mine"]
    assert len(messages) == 3
    with pytest.raises(zs.ModelError, match=r"\.mine \(mine\)"):
        zs.audit("model.txt", target="ncnn")


@pytest.mark.parametrize(
    ("reader", "words"),
    [
        (
            "import nothing_of_this_name",
            "does not load: ModuleNotFoundError: No module named 'noth",
        ),
        ("def find_site(node): pass", "has no function 'read' in somewhere.reader"),
        ("def read(path): return path.missing", "failed in 'read': AttributeError: "),
        ("def read(path):\n    open(path / 'no')", "Not a directory"),
    ],
)
def test_failing_format_names_its_package(installed, tmp_path, reader, words):
    row = """
    from zerostride.models.formats import Format
    mine = Format("mine", (".mine",), "reader", package="somewhere")
    """
    installed("forms", {"formats": {"mine": "forms:mine"}}, {"forms": row})
    (tmp_path / "somewhere").mkdir()
    (tmp_path / "somewhere" / "reader.py").write_text(reader)
    model = tmp_path / "model.mine"
    model.write_text("")
    with pytest.raises((zs.ModelError, OSError)) as failed:
        zs.audit(model, target="ncnn")
    assert words in str(failed.value)
    if "directory" not in words:
        assert str(failed.value).startswith("format 'mine' of forms 1.0 ")


def test_interrupted_load_is_repeated(installed):
    module = """
    import sys
    sys.tries = getattr(sys, "tries", 0) + 1
    if sys.tries == 1:
        raise KeyboardInterrupt
    """
    installed("slow", {"rules": {"slow": "slow_rule:RULE"}}, {"slow_rule": module})
    path = Path(sys.path[0]) / "slow_rule.py"
    path.write_text(dedent(module) + GOOD.format(name="slow"))
    try:
        with pytest.raises(KeyboardInterrupt):
            RULES["slow"]
        assert RULES["slow"].name == "slow"
    finally:
        del sys.tries


def test_warning_as_error_is_raised_each_time(installed):
    points = {"broken": "nowhere_at_all:RULE", "numpy": "nowhere_at_all:RULE"}
    installed("broken", {"rules": points}, {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(zs.PluginWarning, match="does not load"):
                RULES["broken"]
            with pytest.raises(zs.PluginWarning):
                list(RULES)
    messages, names = warned(lambda: list(RULES))
    assert len(messages) == 2
    assert "broken" not in names


def test_array_library_can_be_added(installed):
    row = """
    from zerostride.arrays.table import Row
    ROW = Row("marsarrays", ("marsarrays",), ("Array",), "mars_adapter", made="marsarrays.Array(x)")
    """
    library = """
    import numpy as np
    class Array:
        def __init__(self, data): self.data = np.asarray(data)
    """
    adapter = """
    import marsarrays
    class Adapter:
        def elementwise(self, op, operands, options):
            import zerostride as zs
            given = [getattr(one, "data", one) for one in operands]
            return marsarrays.Array(getattr(zs, op.name)(*given, rule=options.rule))
    ADAPTER = Adapter()
    """
    modules = {"mars_row": row, "marsarrays": library, "mars_adapter": adapter}
    installed("mars", {"arrays": {"marsarrays": "mars_row:ROW"}}, modules)
    import marsarrays

    answer = zs.add(marsarrays.Array([1, 2]), 3)
    assert type(answer) is marsarrays.Array
    assert answer.data.tolist() == [4, 5]
    with pytest.raises(TypeError, match="marsarrays"):
        zs.add(marsarrays.Array([1, 2]), np.ones(2))


def test_invalid_names_are_refused():
    for table in (ENGINES, RULES, FORMATS):
        for name in ("", 3, None, ("ncnn",), ["ncnn"]):
            assert name not in table
            assert table.get(name) is None


# The example


def points_of(package):
    groups = tomllib.loads((package / "pyproject.toml").read_text())["project"]["entry-points"]
    return {group.removeprefix("zerostride."): dict(rows) for group, rows in groups.items()}


def test_example_packages_tests_pass(installed, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    installed("zerostride-toyinfer", points_of(EXAMPLE), {})
    scope = {}
    path = EXAMPLE / "tests" / "test_toyinfer.py"
    exec(compile(path.read_text(), str(path), "exec"), scope)
    scope["test_the_rule"]()
    scope["test_the_engine_and_its_limits"]()
    scope["test_the_format"](tmp_path)
    for module in [name for name in sys.modules if name.partition(".")[0] == "toyinfer"]:
        del sys.modules[module]


def test_command_line_lists_added_rows(installed, monkeypatch):
    from click.testing import CliRunner

    from zerostride.cli.main import cli

    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    installed("zerostride-toyinfer", points_of(EXAMPLE), {})

    def run(*words):
        result = CliRunner().invoke(cli, words, standalone_mode=False)
        assert result.exception is None, result.exception
        return result.output

    listed = run("engines")
    assert "added by" in listed
    assert "zerostride-toyinfer 1.0" in listed
    assert "rule toyleft: added by zerostride-toyinfer 1.0" in listed
    assert "format toy: added by zerostride-toyinfer 1.0" in listed
    assert "added by zerostride-toyinfer 1.0" in run("engines", "toyinfer")
    assert "y       5 ." in run("explain", "5,5", "5", "--engine", "toyinfer")
    assert "y       5 ." in run("explain", "5,5", "5", "--rule", "toyleft")
    for module in [name for name in sys.modules if name.partition(".")[0] == "toyinfer"]:
        del sys.modules[module]


def test_pip_installs_the_example_package(tmp_path):
    pytest.importorskip("setuptools", reason="builds the example")
    pytest.importorskip("pip", reason="installs the example")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    source = tmp_path / "source"
    import shutil

    shutil.copytree(EXAMPLE, source)  # a build leaves files beside the sources
    target = tmp_path / "target"
    more = ["--no-build-isolation", "--disable-pip-version-check", "--target", target, source]
    subprocess.run([*command, *more], check=True, capture_output=True, timeout=120)
    code = """
    import zerostride as zs
    from zerostride.engines import ENGINES
    print(zs.plan((5, 5), (5,), engine="toyinfer").aligned[1], ENGINES.source("toyinfer"))
    """
    assert in_a_process(code, target) == "(5, 1) zerostride-toyinfer 1.0"
