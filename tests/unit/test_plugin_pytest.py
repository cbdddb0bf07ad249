"""The pytest plugin: what fails, what does not, and that the code under test computes as ever."""

import ast
import copy
import importlib.util
import re
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerostride.accidents import checks, loading, rewrite

pytest_plugins = ["pytester"]

LOSS = """
import numpy as np

def squared(pred, target):
    error = pred - target
    return error ** 2
"""
ARRAYS = "column, vector = np.ones((3, 1)), np.ones(3)"


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs pytest with the plugin on files of a project, in this process."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def runner(files, *options, ini="strict_broadcast = on"):
        pytester.makeini(f"[pytest]\npythonpath = .\n{ini}\n")
        for name, text in files.items():
            path = pytester.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return pytester.runpytest_inprocess(
            "-p", "zerostride.pytest_plugin", "-p", "no:cacheprovider", "--no-header", *options
        )

    return runner


def module_of(*bodies):
    """A module of tests, one a body; `column` is (3, 1) and `vector` (3,)."""
    lines = ["import numpy as np, pytest", "import threading", "import zerostride as zs", ARRAYS]
    lines += ["from zerostride.pytest_plugin import allowed"]
    for k, body in enumerate(bodies):
        lines += [f"def test_{k}():", *("    " + line for line in body.splitlines())]
    return "\n".join(lines) + "\n"


def test_the_accident_names_file_line_and_shapes(run):
    test = "import numpy as np\nfrom loss import squared\n" + (
        "def test_loss():\n    squared(np.ones((3, 1)), np.ones(3))\n"
    )
    result = run({"loss.py": LOSS, "test_loss.py": test})
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*AccidentalBroadcast: accidental broadcast of (3, 1) and (3,) to (3, 3)",
            "*loss.py:5: pred - target",
            "E * pred    3 1",
            "E * target  . 3",
            "E * result  3 3",
            "E * fix: reshape target to (3, 1); where it is meant*",
        ]
    )
    # The traceback ends at the user's line.
    assert "checks.py" not in str(result.stdout)


def test_it_is_off_by_default(run):
    files = {"test_a.py": module_of("assert (column - vector).shape == (3, 3)")}
    run(files, ini="").assert_outcomes(passed=1)
    run(files, "--strict-broadcast", ini="").assert_outcomes(failed=1)
    run(files, ini="strict_broadcast = off").assert_outcomes(passed=1)
    result = run(files, ini="strict_broadcast = perhaps")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


ACCIDENTS = (
    "column - vector",
    "(column * 2) / (vector + 1)",
    "column < vector",
    "assert (column == vector).all()",
    "np.add(column, vector)",
    "np.hypot(\n    column,\n    vector)",
    "np.where(column > 0, vector, vector)",
    "np.where(column > 0, vector, 0.0)",
    "np.maximum(*(column, vector))",
    "np.allclose(column, vector)",
    "x = column.copy()\nx -= vector",
    "[a ** column for a in [vector]]",
    "f'{column + vector}'",
    "(lambda a, b: a | b)(column > 0, vector > 0)",
    "column - [1.0, 2.0, 3.0]",
    "column - np.ma.array(vector)",
    "if (diff := column - vector) is None: pass",
    "np.ones((4, 3, 1)) - np.ones((3, 3))",
)


def test_what_is_found(run):
    result = run({"test_a.py": module_of(*ACCIDENTS)})
    result.assert_outcomes(failed=len(ACCIDENTS))
    assert str(result.stdout).count("AccidentalBroadcast: accidental broadcast of") >= len(
        ACCIDENTS
    )


HARMLESS = (
    "column - vector[None, :]",
    "vector[:, None] - vector",
    "vector[:, np.newaxis] * vector",
    "column - vector.reshape(1, 3)",
    "column - vector[0]",
    "np.ones((4, 3)) - vector",
    "column - vector  # broadcast: ok",
    "with allowed():\n    column - vector",
    "column + 1, 2 * column, column % 2",
    "'%s' % column",
    "np.asmatrix(column) * np.asmatrix(vector)",
    "with pytest.raises(ValueError): np.ones((3, 2)) - np.ones(3)",
    "with pytest.raises(ZeroDivisionError): 1 / (column.size - 3)",
    "def f(a: int | None = None) -> int | float: return a or 1\nassert f() == 1",
    "x = 'a'\nx += 'b'\nassert x == 'ab'",
    "x = y = [1]\nx += [2]\nassert y == [1, 2]",
    "assert {1, 2} | {3} == {1, 2, 3} and 1 < 2 < 3",
    "match 3:\n    case 3 | 4: pass\n    case _: assert False",
    "with pytest.raises(TypeError, match='unsupported operand'): column.shape - vector.shape",
)


def test_what_is_not(run):
    run({"test_a.py": module_of(*HARMLESS)}).assert_outcomes(passed=len(HARMLESS))


def test_whole_functions_are_allowed(run):
    text = "def outer(a, b):  # broadcast: ok\n    return a * b\n"
    run({"test_a.py": text + module_of("outer(column, vector)")}).assert_outcomes(passed=1)


def test_functions_that_are_compiled_are_left_alone():
    source = (
        b"@numba.njit\ndef f(a, b):\n    return a - b\n@jax.jit\ndef g(a, b):\n    return a - b\n"
    )
    tree = rewrite.rewritten(ast.parse(source), source)
    compiled, traced = map(ast.unparse, tree.body)
    assert rewrite.MODULE not in compiled
    assert rewrite.MODULE in traced


COMPILED = (
    "@numba.njit\ndef f(a, b): return a - b",
    "@j\ndef f(a, b): return a - b",
    "@n.njit(cache=True)\ndef f(a, b): return a - b",
    "@jitclass(spec)\nclass F:\n    def f(self, a): return a - self.b",
    "@partial(njit, cache=True)\ndef f(a, b): return a - b",
    "@functools.partial(numba.njit, cache=True)\ndef f(a, b): return a - b",
    "fast = njit(cache=True)\n@fast\ndef f(a, b): return a - b",
    "def f(a, b): return a - b\ng = njit(f)",
    "def f(a, b): return a - b\ng = njit(cache=True)(f)",
    "def f(a, b): return a - b\ng = vectorize([float64], nopython=True)(f)",
    "f = njit(lambda a, b: a - b)",
    "f = lambda a, b: a - b\ng = njit(f)",
)
TRACED = (
    "@jax.jit\ndef f(a, b): return a - b",
    "@partial(jax.jit, static_argnums=0)\ndef f(a, b): return a - b",
    "from jax import jit\n@jit\ndef f(a, b): return a - b",
    "@np.vectorize\ndef f(a, b): return a - b",
    "@dataclass\nclass F:\n    def f(self, a): return a - self.b",
    "f = sorted(c, key=lambda a: a - b)",
)


def test_code_that_is_compiled_is_left_alone():
    head = "import numba as n\nfrom numba import njit, njit as j\n"
    for body in (*COMPILED, *TRACED):
        source = (head if body in COMPILED else "") + body
        tree = rewrite.rewritten(ast.parse(source), source.encode())
        assert (rewrite.MODULE in ast.unparse(tree)) == (body in TRACED), body


def test_numba_compiles_what_it_is_given(run):
    pytest.importorskip("numba", reason="the compiler")
    text = """import numpy as np
from functools import partial
from numba import float64, njit
from numba.experimental import jitclass
@jitclass([("b", float64)])
class Held:
    def __init__(self, b): self.b = b
    def taken(self, a): return a - self.b
@partial(njit, inline="never")
def first(a, b): return a - b
def plain(a, b): return a - b
second, third = njit(plain), njit(lambda a, b: a - b)
def test_all():
    assert first(3.0, 2.0) == second(3.0, 2.0) == third(3.0, 2.0) == Held(2.0).taken(3.0) == 1.0
"""
    run({"test_a.py": text}).assert_outcomes(passed=1)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="there is no PyTorch")
def test_pytorch_compiles_what_is_watched(pytester):
    """A process of its own: what PyTorch's compiler knows of this package is told it once, and what
    is imported beside `pytester` is forgotten, which PyTorch does not survive."""
    text = """import torch, zerostride
@torch.compile(backend="eager", fullgraph=True)
def f(a, b): return torch.add(a * b.sin() - b, b) + (a.cos() * b.cos())
def test_it(): assert f(torch.ones(3), torch.ones(3)).shape == (3,)
"""
    pytester.makepyfile(test_a=text)
    options = ("-p", "zerostride.pytest_plugin", "--strict-broadcast", "-p", "no:cacheprovider")
    pytester.runpytest_subprocess(*options).assert_outcomes(passed=1)


def test_what_the_code_under_test_catches_still_fails(run):
    bodies = (
        "try:\n    column - vector\nexcept Exception:\n    pass",
        "try:\n    column - vector\nexcept BaseException:\n    pass",
        "thread = threading.Thread(target=lambda: column - vector)\nthread.start()\nthread.join()",
        "with pytest.raises(ValueError):\n    column - vector",
    )
    options = ("-W", "ignore::pytest.PytestUnhandledThreadExceptionWarning")
    result = run({"test_a.py": module_of(*bodies, "pass")}, *options)
    result.assert_outcomes(failed=len(bodies), passed=1)


def test_assertions_read_as_ever(run):
    result = run({"test_a.py": module_of("assert sum(vector) - 1 == len(vector)")})
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r".*assert \(.*3\.0\)? - 1\) == 3", r".*where .* = sum\(array"])


def test_without_rewritten_assertions(pytester):
    """A process of its own, because this one's pytest would rewrite them."""
    pytester.makepyfile(test_a=module_of("column - vector", "column - column"))
    options = ("-p", "zerostride.pytest_plugin", "--assert=plain", "--strict-broadcast")
    result = pytester.runpytest_subprocess(*options)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["accidental broadcasts: on, below *"])


def test_what_others_load_is_listed(run):
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
    result = run({"conftest.py": conftest, "loss.py": LOSS, "test_a.py": test})
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*not checked for accidental broadcasts*: loss"])


def test_long_expressions_are_listed(run):
    long = f"\ndef long(a):\n    return {' + '.join(['a'] * 600)}\n"
    test = module_of("from loss import squared, long\nassert long(1) == 600", "column - vector")
    result = run({"loss.py": LOSS + long, "test_a.py": test, "test_b.py": test + long})
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*not checked for accidental broadcasts*: loss, test_b"])


@pytest.mark.parametrize("ini", ["", "strict_broadcast = on"])
def test_a_conftest_may_name_the_plugin(pytester, ini):
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


def test_markers_and_the_fixture(run):
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
    run(files, ini="strict_broadcast = marked").assert_outcomes(failed=3, passed=2, xfailed=1)
    run(files).assert_outcomes(failed=4, passed=1, xfailed=1)
    run(files, "-k", "not expected", ini="strict_broadcast = off").assert_outcomes(passed=5)
    # Nobody said anything: the code was imported unwatched, and a marker is no silence.
    result = run(files, "-k", "not expected", ini="")
    result.assert_outcomes(errors=3, passed=2)
    result.stdout.fnmatch_lines(["*set `strict_broadcast = marked`*"])


def test_fixtures_conftests_and_imports_are_watched(run):
    conftest = f"""import numpy as np, pytest
@pytest.fixture
def made():
    {ARRAYS}
    return column - vector
"""
    result = run({"conftest.py": conftest, "test_a.py": "def test_a(made): pass\n"})
    result.assert_outcomes(errors=1)
    result = run(
        {"conftest.py": "", "test_b.py": f"import numpy as np\n{ARRAYS}\ntable = column - vector\n"}
    )
    result.stdout.fnmatch_lines(["*AccidentalBroadcastError: accidental broadcast of*"])
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_the_scope(run, pytester):
    files = {
        "site-packages/there.py": LOSS,
        "src/here.py": LOSS,
        "test_a.py": "import sys\nsys.path[:0] = ['site-packages', 'src']\nimport there, here\n"
        + module_of("there.squared(column, vector)", "here.squared(column, vector)"),
    }
    run(files).assert_outcomes(passed=1, failed=1)
    only = "strict_broadcast = on\nstrict_broadcast_paths = other"
    for name in ("there", "here"):
        sys.modules.pop(name, None)
    run(files, ini=only).assert_outcomes(passed=2)


def test_packages_relative_imports_and_reloading(run):
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
    run(files).assert_outcomes(failed=2, passed=4)


def test_import_modes_and_unittest(run):
    text = "import numpy as np, unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
    text += f"        {ARRAYS}\n        self.assertTrue((column == vector).all())\n"
    files = {"test_a.py": text}
    run(files, "--import-mode=importlib").assert_outcomes(failed=1)
    run(files, "--import-mode=append").assert_outcomes(failed=1)


def test_what_is_off_imports_nothing_of_it(pytester):
    test = "import sys\ndef test_a(): assert not [m for m in sys.modules if 'accidents' in m]\n"
    pytester.makepyfile(test_a=test)
    pytester.makeini("[pytest]\n")
    options = ("-p", "zerostride.pytest_plugin")
    pytester.runpytest_subprocess(*options).assert_outcomes(passed=1)
    pytester.runpytest_subprocess(*options, "--strict-broadcast").assert_outcomes(failed=1)


def test_the_watch_ends_with_the_session(run):
    before = list(sys.meta_path), checks.WATCH.enabled, checks.WATCH.report
    run({"test_a.py": module_of("column - vector")})
    assert (list(sys.meta_path), checks.WATCH.enabled, checks.WATCH.report) == before


@pytest.mark.parametrize(
    "head",
    ['"""A docstring."""\n\n', "# A comment.\n", "\n", "from __future__ import annotations\n\n"],
    ids=("docstring", "comment", "blank", "future"),
)
def test_modules_whose_first_statement_is_further_down(run, head):
    fixture = "import pytest\n@pytest.fixture\ndef made():\n    assert True\n    return 3\n"
    test = head + module_of("assert column.size == 3\ncolumn - vector", "assert column is not None")
    test += "def test_made(made): assert made - 1 == 2\n"
    result = run({"conftest.py": head + fixture, "test_a.py": test})
    result.assert_outcomes(failed=1, passed=2)


# Rewritten code


def run_both(source, **names):
    """What plain code leaves behind, and rewritten code."""
    found = []
    for watched in (False, True):
        tree = ast.parse(source)
        if watched:
            tree = rewrite.rewritten(tree, source.encode())
        scope = {rewrite.MODULE: checks, "np": np, **copy.deepcopy(names)}
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                exec(compile(tree, "code.py", "exec"), scope)
            except (TypeError, ValueError, LookupError) as error:
                place = error.__traceback__.tb_next.tb_lineno
                scope["error"] = type(error), str(error), place
        scope["warned"] = [(str(w.message), w.filename, w.lineno) for w in seen]
        found.append({k: v for k, v in scope.items() if k not in (rewrite.MODULE, "__builtins__")})
    return found


NAMES = st.sampled_from(("a", "b", "c", "(a + b)", "-c", "f(a)", "3", "a.T", "b[0]"))
OPS = st.sampled_from((*"+-*/%&|^<>", "//", "**", "<<", ">>", "<=", ">=", "==", "!="))
SHAPES = st.sampled_from(((), (1,), (2,), (1, 2), (2, 1), (2, 2), (3,)))


@given(NAMES, OPS, NAMES, OPS, NAMES, st.lists(SHAPES, min_size=3, max_size=3), st.booleans())
def test_rewritten_code_computes_the_same(x, op, y, other, z, shapes, floats):
    dtype = "f8" if floats else "i4"
    arrays = [np.arange(np.prod(s), dtype=dtype).reshape(s) for s in shapes]
    names = dict(zip("abc", arrays, strict=True), f=lambda x: x * 2)
    source = f"\nd = ({x} {op} {y}) {other} {z}\ne = a\ne += {z}\ng = np.add({x}, {y})\n"
    plain, watched = run_both(source, **names)
    assert plain.keys() == watched.keys()
    for name, value in plain.items():
        if isinstance(value, np.ndarray | np.generic):
            assert type(value) is type(watched[name])
            np.testing.assert_array_equal(value, watched[name])
        elif name in ("error", "warned"):
            assert value == watched[name]


def test_operands_are_evaluated_once_and_in_turn():
    source = (
        "def f(x):\n    seen.append(x)\n    return x\n"
        "r = f(1) - f(2)\ns = f(3) < f(4)\nt = np.add(f(5), f(6))\nf(7) + f(8) * f(9)\n"
        "u = 10\nu -= f(11)\nv = u + f(12)\n"
    )
    for seen in (both := [[], []]):
        tree = ast.parse(source)
        if seen is both[1]:
            tree = rewrite.rewritten(tree, source.encode())
        exec(compile(tree, "code.py", "exec"), {rewrite.MODULE: checks, "np": np, "seen": seen})
    assert both[0] == both[1] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12]


STRANGE = """
class Meta(type):
    def __eq__(cls, other): return True
class Unhashable(metaclass=Meta):
    def __add__(self, other): return 1
    __radd__ = __add__
class Nowhere:
    __module__ = None
    def __add__(self, other): return 2
    __radd__ = __add__
class Shaped(np.ndarray):
    @property
    def shape(self): raise RuntimeError
def called(x, y): return x
class Callable:
    __hash__ = None
    @property
    def __name__(self): raise RuntimeError
    def __call__(self, x, y): return 3
add = Callable()
u, n, s, t = Unhashable(), Nowhere(), np.ones((3, 1)).view(Shaped), {}
a = u + t.get(0), u + u, n + u, u + n, n + v, u + v, v + u, add(v, u)
b = isinstance(s + v, Shaped)
c = np.dtype((int, (3, 1))) == np.dtype((int, (3,)))
"""


def test_looking_at_operands_raises_nothing(monkeypatch):
    told = []
    monkeypatch.setattr(checks.WATCH, "enabled", True)
    monkeypatch.setattr(checks.WATCH, "report", told.append)
    plain, watched = run_both(STRANGE, v=np.ones(3))
    assert "error" not in plain
    assert "error" not in watched
    for name in ("b", "c"):
        assert plain[name] == watched[name]
    assert list(map(str, plain["a"])) == list(map(str, watched["a"]))
    assert not told


def test_nested_tensors_and_structures_of_shapes_are_no_arrays(monkeypatch):
    told = []
    monkeypatch.setattr(checks.WATCH, "enabled", True)
    monkeypatch.setattr(checks.WATCH, "report", told.append)
    torch = pytest.importorskip("torch", reason="its tensors")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    checks.against(nested, torch.ones(3, 1))
    assert not told
    checks.against(torch.ones(3), torch.ones(3, 1))
    assert len(told) == 1
    jax = pytest.importorskip("jax", reason="its arrays")
    shape = jax.ShapeDtypeStruct((3, 1), "f4")
    checks.against(shape, jax.ShapeDtypeStruct((3,), "f4"))
    assert len(told) == 1
    jax.eval_shape(lambda x, y: checks.against(x, y) * y, shape, jax.numpy.ones(3))
    assert len(told) == 2


def test_names_that_the_right_side_binds(monkeypatch):
    told = []
    monkeypatch.setattr(checks.WATCH, "enabled", True)
    monkeypatch.setattr(checks.WATCH, "report", lambda accident: told.append(accident.line))
    source = (
        "x = v\nx + (x := c).ravel()\nx = v\nx == (x := c).ravel()\nx = v\nx += (x := c).ravel()\n"
    )
    run_both(source, v=np.ones(3), c=np.ones((3, 1)))
    assert not told
    run_both("x = v\nx + (x := c)\n", v=np.ones(3), c=np.ones((3, 1)))
    assert told == [2]


def test_attributes_are_evaluated_once(monkeypatch):
    told = []
    monkeypatch.setattr(checks.WATCH, "enabled", True)
    monkeypatch.setattr(checks.WATCH, "report", lambda accident: told.append(accident.line))
    source = """
seen = []
class Held:
    @property
    def xp(self):
        seen.append("xp")
        return np
held = Held()
a = held.xp.add(c, v)
xp = np
b = xp.add(c, v)
d = xp.ma.add(c, v), np.linalg.norm(c, None)
add = held.xp.add
e = add(c, v)
"""
    plain, watched = run_both(source, v=np.ones(3), c=np.ones((3, 1)))
    assert "error" not in watched
    assert plain["seen"] == watched["seen"] == ["xp", "xp"]
    assert told == [11, 14]


def test_warnings_and_tracebacks_name_the_users_line():
    plain, watched = run_both("\n\nx = (np.ones(2) * 1) / (np.zeros(2) * 1)\n")
    assert plain["warned"] == watched["warned"]
    assert watched["warned"][0][1:] == ("code.py", 3)


@given(SHAPES, SHAPES)
def test_accidents_are_two_sided_plans_of_unequal_rank(a, b):
    import zerostride as zs

    try:
        made = zs.plan(a, b)
    except zs.BroadcastError:
        assert not checks.is_accident([a, b])
        return
    unequal = len(a) != len(b) and len(a) > 0 and len(b) > 0
    assert checks.is_accident([a, b]) == (made.two_sided and unequal)


def test_the_proposed_reshape_is_no_accident():
    for shapes in (((3, 1), (3,)), ((4, 4, 1), (4, 4)), ((3, 1), (3,), (3,)), ((3, 1), (4,))):
        accident = checks.Accident("f.py", 1, "a - b", tuple("abc"[: len(shapes)]), shapes)
        found = re.search(r"reshape (\w) to (\([\d, ]+\))", str(accident))
        if shapes == ((3, 1), (4,)):
            assert found is None
            continue
        changed = list(shapes)
        changed["abc".index(found[1])] = ast.literal_eval(found[2])
        assert not checks.is_accident(changed)
        assert np.broadcast_shapes(*changed)


def test_what_is_installed_is_out_of_scope(tmp_path):
    scope = loading.Scope([tmp_path])
    assert scope.has(str(tmp_path / "a.py"))
    assert not scope.has(str(tmp_path / "a.so"))
    assert not scope.has(str(tmp_path / "lib" / "site-packages" / "a.py"))
    assert not scope.has(np.__file__)
    assert not scope.has(None)


def test_the_example_project(run, request):
    folder = request.config.rootpath / "examples" / "strict_project"
    files = {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*.py")
        if "__pycache__" not in path.parts
    }
    result = run(files)
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(["*loss.py:11: predicted - target"])
    run(files, ini="").assert_outcomes(failed=1, passed=2)
