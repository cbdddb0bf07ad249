"""The extension's state between calls."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from native_scripts import needs_native

import zerostride as zs
from zerostride.compute import native
from zerostride.ops import OPS

pytestmark = needs_native

ADD = OPS["add"]


def add_of_its_own():
    """As zs.add, which other tests call, too."""
    return native.bind(ADD, zs.add.__wrapped__)


def test_attributes_are_not_mixed_up_by_calls_during_their_lookup():
    """Looking them up is Python: a thread, or this one, may call the function meanwhile."""
    matrix, row, column = np.zeros((2, 3)), np.arange(3.0), np.arange(2.0)

    def configure(rule, axis, engine, broadcast):
        if axis == 0:
            function(matrix, row, rule="pdpd", axis=1)
        return native._configure(ADD, True, rule, axis, engine, broadcast)

    function = native._native.Function("add", 2, zs.add.__wrapped__, configure)
    for _ in range(2):
        np.testing.assert_array_equal(
            function(matrix, column, rule="pdpd", axis=0), matrix + column[:, None]
        )
        np.testing.assert_array_equal(function(matrix, row, rule="pdpd", axis=1), matrix + row)


def test_unbounded_numbers_of_attributes_take_bounded_memory():
    function = add_of_its_own()
    for axis in range(2, 2000):
        with pytest.raises(zs.BroadcastError, match=f"axis={axis}"):
            function(np.zeros(2), np.zeros(2), rule="pdpd", axis=axis)
    assert len(gc.get_referents(function)) < 1000
    result = function(np.zeros((2, 3)), np.arange(2.0), rule="pdpd", axis=0)
    assert result.tolist() == [[0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64, 2**1023], ids=lambda n: f"{n:.0e}")
@pytest.mark.parametrize("name", ["exp", "swish", "sqrt", "sigmoid"])
def test_integers_beyond_64_bits_match_the_reference(name, number, monkeypatch):
    def outcome():
        try:
            return getattr(zs, name).__wrapped__(number)
        except TypeError as error:
            return str(error)

    actual = outcome()
    try:
        direct = getattr(zs, name)(number)
    except TypeError as error:
        direct = str(error)
    monkeypatch.setattr(native, "_IN_USE", False)
    assert actual == direct == outcome()


def test_integers_beyond_64_bits_combine_with_floats():
    x = np.ones(2, np.float32)
    np.testing.assert_array_equal(zs.add(x, 2**70), x + np.float32(2.0**70))


@pytest.mark.parametrize("engine", ["numpy", "onnxruntime"])
def test_parameters_are_numbers_under_every_engine(engine):
    x = np.array([-1.0, 2.0], np.float32)
    with pytest.raises(zs.BroadcastError, match=f"{engine} takes alpha as a number"):
        zs.leaky_relu(x, x, engine=engine)
    assert zs.leaky_relu(x, 0.5, engine=engine).tolist() == [-0.5, 2]


@pytest.mark.parametrize("call", [((0.3,), {}), ((), {"alpha": 0.3}), ((), {}), ((), {"out": ...})])
def test_parameters_by_name_or_left_out_stay_in_the_engine(call):
    """The way through Python takes fifty times as long."""

    def leaves(*_args, **_named):
        raise AssertionError("computed by Python")

    function = native.bind(OPS["leaky_relu"], leaves, rules=False)
    values, named = call
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    named = {name: np.empty_like(x) if value is ... else value for name, value in named.items()}
    slope = np.float32([*values, *(v for v in named.values() if isinstance(v, float)), 0.01][0])
    np.testing.assert_array_equal(function(x, *values, **named), np.where(x < 0, x * slope, x))


def test_a_parameter_that_is_given_twice_or_unknown_is_an_error():
    with pytest.raises(TypeError, match="alpha was given twice"):
        zs.leaky_relu(np.ones(3), 0.1, alpha=0.2)
    with pytest.raises(TypeError, match="beta is no parameter"):
        zs.leaky_relu(np.ones(3), beta=0.2)
