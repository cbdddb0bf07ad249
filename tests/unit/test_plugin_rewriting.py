"""The pytest plugin: rewritten code computes the same; compiled code is not rewritten."""

import ast
import copy
import importlib.util
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerostride.lint import checks, rewrite

pytest_plugins = ["pytester"]


def test_compiled_functions_are_not_rewritten():
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


def test_compiled_code_is_not_rewritten():
    head = "import numba as n\nfrom numba import njit, njit as j\n"
    for body in (*COMPILED, *TRACED):
        source = (head if body in COMPILED else "") + body
        tree = rewrite.rewritten(ast.parse(source), source.encode())
        assert (rewrite.MODULE in ast.unparse(tree)) == (body in TRACED), body


def test_numba_compiles_functions_of_rewritten_modules(run_watched):
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
    run_watched({"test_a.py": text}).assert_outcomes(passed=1)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="there is no PyTorch")
def test_pytorch_compiles_rewritten_functions(pytester):
    """A process of its own: what PyTorch's compiler knows of this package is told it once, and what
    is imported beside `pytester` is forgotten, which PyTorch does not survive."""
    text = """import torch, zerostride
@torch.compile(backend="eager", fullgraph=True)
def f(a, b): return torch.add(a * b.sin() - b, b) + (a.cos() * b.cos())
def test_it(): assert f(torch.ones(3), torch.ones(3)).shape == (3,)
"""
    pytester.makeini("[pytest]\n")  # else pytest takes one of a folder above
    pytester.makepyfile(test_a=text)
    options = ("-p", "zerostride.pytest_plugin", "--strict-broadcast", "-p", "no:cacheprovider")
    pytester.runpytest_subprocess(*options).assert_outcomes(passed=1)


def run_both(source, **names):
    """What plain code leaves behind, and rewritten code."""
    entries = []
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
        entries.append(
            {k: v for k, v in scope.items() if k not in (rewrite.MODULE, "__builtins__")}
        )
    return entries


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


def test_operands_are_evaluated_once_and_in_order():
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
    __array_ufunc__ = None  # or NumPy 2.5 looks whether it knows the class, and raises
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


def test_checking_operands_raises_nothing(monkeypatch):
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


def test_nested_tensors_and_objects_with_a_shape_are_no_arrays(monkeypatch):
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


@pytest.mark.parametrize("line", ["x + (x := {0})", "x == (x := {0})", "x += (x := {0})"])
@pytest.mark.parametrize("right", ["c", "c.ravel()", "f(c)"])
def test_names_bound_by_the_right_side_are_kept(monkeypatch, line, right):
    told = []
    monkeypatch.setattr(checks.WATCH, "enabled", True)
    monkeypatch.setattr(checks.WATCH, "report", told.append)
    plain, watched = run_both(
        f"x = v\n{line.format(right)}\n", v=np.ones(3), c=np.ones((3, 1)), f=lambda c: c * 2
    )
    # The left operand is what the name stood for before.
    listed = [(one.line, one.shapes) for one in told]
    assert listed == ([] if "ravel" in right else [(2, ((3,), (3, 1)))])
    assert plain.get("error") == watched.get("error")
    np.testing.assert_array_equal(plain["x"], watched["x"])


def test_names_bound_by_a_function_of_the_right_side_are_kept(monkeypatch):
    told = []
    monkeypatch.setattr(checks.WATCH, "enabled", True)
    monkeypatch.setattr(checks.WATCH, "report", told.append)
    source = """
def bound():
    global x, y
    x, _ = c, globals().pop("y", None)
    return v
x = y = v
x = x + bound()
x, y = v, v
z = y - bound()
x = v
x += bound()
"""
    plain, watched = run_both(source, v=np.ones(3), c=np.ones((3, 1)))
    assert "error" not in watched
    assert not told
    np.testing.assert_array_equal(plain["x"], watched["x"])


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
