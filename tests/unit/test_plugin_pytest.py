"""The pytest plugin: failing tests, passing tests, and messages."""

import ast
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from plugin_projects import LOSS, module_of

from zerostride.lint import checks

pytest_plugins = ["pytester"]
SHAPES = st.sampled_from(((), (1,), (2,), (1, 2), (2, 1), (2, 2), (3,)))


def test_failure_names_file_line_and_shapes(run_watched):
    test = "import numpy as np\nfrom loss import squared\n" + (
        "def test_loss():\n    squared(np.ones((3, 1)), np.ones(3))\n"
    )
    result = run_watched({"loss.py": LOSS, "test_loss.py": test})
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*AccidentalBroadcast: loss.py:5: accidental broadcast of (3, 1) and (3,) to (3, 3)",
            "E * pred - target",
            "E * pred    3 1",
            "E * target  . 3",
            "E * result  3 3",
            "E * fix: reshape target to (3, 1); where it is meant*",
        ]
    )
    # The traceback ends at the user's line.
    assert "checks.py" not in str(result.stdout)


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


def test_accidental_broadcasts_are_found(run_watched):
    result = run_watched({"test_a.py": module_of(*ACCIDENTS)})
    result.assert_outcomes(failed=len(ACCIDENTS))
    assert str(result.stdout).count(": accidental broadcast of") >= len(ACCIDENTS)


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


def test_harmless_code_passes(run_watched):
    run_watched({"test_a.py": module_of(*HARMLESS)}).assert_outcomes(passed=len(HARMLESS))


def test_whole_functions_can_be_allowed(run_watched):
    text = "def outer(a, b):  # broadcast: ok\n    return a * b\n"
    run_watched({"test_a.py": text + module_of("outer(column, vector)")}).assert_outcomes(passed=1)


def test_caught_accident_still_fails_the_test(run_watched):
    bodies = (
        "try:\n    column - vector\nexcept Exception:\n    pass",
        "try:\n    column - vector\nexcept BaseException:\n    pass",
        "thread = threading.Thread(target=lambda: column - vector)\nthread.start()\nthread.join()",
        "with pytest.raises(ValueError):\n    column - vector",
    )
    options = ("-W", "ignore::pytest.PytestUnhandledThreadExceptionWarning")
    result = run_watched({"test_a.py": module_of(*bodies, "pass")}, *options)
    result.assert_outcomes(failed=len(bodies), passed=1)


def test_assertion_messages_stay_the_same(run_watched):
    result = run_watched({"test_a.py": module_of("assert sum(vector) - 1 == len(vector)")})
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r".*assert \(.*3\.0\)? - 1\) == 3", r".*where .* = sum\(array"])


@given(SHAPES, SHAPES)
def test_accidents_are_two_sided_plans_of_unequal_rank(a, b):
    import zerostride as zs

    try:
        plan = zs.plan(a, b)
    except zs.BroadcastError:
        assert not checks.is_accident([a, b])
        return
    unequal = len(a) != len(b) and len(a) > 0 and len(b) > 0
    assert checks.is_accident([a, b]) == (plan.two_sided and unequal)


def test_proposed_reshape_is_no_accident():
    for shapes in (((3, 1), (3,)), ((4, 4, 1), (4, 4)), ((3, 1), (3,), (3,)), ((3, 1), (4,))):
        accident = checks.Accident("f.py", 1, "a - b", tuple("abc"[: len(shapes)]), shapes)
        match = re.search(r"reshape (\w) to (\([\d, ]+\))", str(accident))
        if shapes == ((3, 1), (4,)):
            assert match is None
            continue
        changed = list(shapes)
        changed["abc".index(match[1])] = ast.literal_eval(match[2])
        assert not checks.is_accident(changed)
        assert np.broadcast_shapes(*changed)


def test_example_project_fails_at_its_line(run_watched, request):
    folder = request.config.rootpath / "examples" / "strict_project"
    files = {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*.py")
        if "__pycache__" not in path.parts
    }
    result = run_watched(files)
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(["*loss.py:11: accidental broadcast of*", "E * predicted - target"])
    run_watched(files, ini="").assert_outcomes(failed=1, passed=2)
