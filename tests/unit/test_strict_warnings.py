"""Strict mode that warns, and strict mode of a whole process."""

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import zerostride as zs


def test_a_warning_has_the_refusals_text_and_the_users_line():
    x, y = np.ones((7, 1)), np.ones(7)
    with pytest.raises(zs.BroadcastError) as refused:
        zs.add(x, y, rule=zs.strict())
    with pytest.warns(zs.AccidentalBroadcastWarning) as caught:
        result = zs.add(x, y, rule=zs.strict(level="warn"))
    assert result.shape == (7, 7)
    (warning,) = caught
    assert warning.filename == __file__
    allowance = "zs.strict(two_sided=True, new_axes=True"
    words = str(refused.value).replace(allowance, f"{allowance}, level='warn'")
    assert str(warning.message) == words


def test_a_warning_adds_no_condition_and_hides_no_error():
    with pytest.warns(zs.AccidentalBroadcastWarning):
        plan = zs.plan(("P", 1), (5,), rule=zs.strict(level="warn"))
    assert str(plan.conditions) == str(zs.plan(("P", 1), (5,)).conditions)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(zs.BroadcastError, match="neither is 1"):
            zs.add(np.ones(2), np.ones(3), rule=zs.strict(level="warn"))
        zs.add(np.ones((2, 3)), np.ones((1, 3)), rule=zs.strict(level="warn"))


def test_a_block_warns():
    with zs.strict(level="warn", two_sided=True), pytest.warns(zs.AccidentalBroadcastWarning):
        assert zs.subtract(np.ones((11, 2)), np.ones(2)).shape == (11, 2)


def test_a_record_begins_with_the_users_line(caplog):
    x, y = np.ones((9, 1)), np.ones(9)
    limits = zs.strict(level="log")
    with caplog.at_level("WARNING", "zerostride.strict"):
        assert zs.add(x, y, rule=limits).shape == (9, 9)
        with zs.strict(level="log"):
            assert zs.subtract(x[:8], y[:8]).shape == (8, 8)
    first, second = caplog.records
    assert first.pathname == second.pathname == __file__
    assert first.getMessage().startswith(f"{__file__}:{first.lineno}: strict mode refuses")
    assert "level='log'" in first.getMessage()


def test_exempt_names_modules():
    limits = zs.strict(exempt=["kornia"])
    assert repr(limits) == "zs.strict(exempt=('kornia',))"
    assert pickle.loads(pickle.dumps(limits)).exempt == ("kornia",)
    assert limits != zs.strict()
    for wrong in ("kornia", (1,)):
        with pytest.raises(TypeError, match="exempt is a tuple of names of modules"):
            zs.strict(exempt=wrong)


def test_levels_are_checked():
    with pytest.raises(ValueError, match="level is 'error', 'warn' or 'log', not 'loud'"):
        zs.strict(level="loud")
    limits = zs.strict(level="warn", max_growth=2)
    assert repr(limits) == "zs.strict(max_growth=2, level='warn')"
    assert pickle.loads(pickle.dumps(limits)).level == "warn"
    assert limits != zs.strict(max_growth=2)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("error", "refused refused"),
        ("warn", "warned warned"),
        ("1", "refused refused"),
        ("off", "(2, 2) (2, 2)"),
        ("0", "(2, 2) (2, 2)"),
        ("", "(2, 2) (2, 2)"),
        ("eror", "refused refused"),
    ],
)
def test_strict_mode_of_a_process(level, expected):
    code = (
        "import threading, warnings, numpy as np\n"
        "warnings.simplefilter('error')\n"
        "warnings.filterwarnings('ignore', category=RuntimeWarning)\n"
        "import zerostride as zs\n"
        "def step(n):\n"
        "    try:\n"
        "        print(str(zs.add(np.ones((n, 1)), np.ones(n)).shape).replace('3', '2'), end=' ')\n"
        "    except zs.BroadcastError:\n"
        "        print('refused', end=' ')\n"
        "    except zs.AccidentalBroadcastWarning:\n"
        "        print('warned', end=' ')\n"
        "step(2)\n"
        "thread = threading.Thread(target=step, args=(3,))\n"
        "thread.start(); thread.join()\n"
    )
    environment = {**os.environ, "ZEROSTRIDE_STRICT": level}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


def test_an_unknown_word_of_the_environment_is_named():
    environment = {**os.environ, "ZEROSTRIDE_STRICT": "eror"}
    command = [sys.executable, "-c", "import zerostride"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "ZEROSTRIDE_STRICT is 'eror'; it is error, 1, warn, log, off, 0 or unset" in done.stderr
