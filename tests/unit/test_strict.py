"""Strict mode: its refusals, its scope, and that it costs nothing elsewhere."""

import asyncio
import contextvars
import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import refusal

import zerostride as zs
from zerostride.core.strict_mode import FAULTS, HOLDERS, in_force
from zerostride.errors import STRICT

#: Contexts hold where the engine can be told of them; one built from older sources cannot.
contexts = pytest.mark.skipif(bool(FAULTS), reason="".join(FAULTS))
COLUMN, VECTOR = np.arange(3.0)[:, None], np.arange(3.0)


def reason_of(call, *args, **named):
    """Why a call is refused; None where it is not."""
    error = refusal(call, *args, **named)
    return None if error is None else str(error.reason)


@pytest.mark.parametrize(
    ("shapes", "limits", "reason"),
    [
        (((3, 1), (3,)), {}, "two_sided"),
        (((3, 1), (1, 4)), {}, "two_sided"),
        (((3, 1), (1, 4)), {"two_sided": True}, None),
        (((3, 1), (4,)), {"two_sided": True}, "new_axes"),
        (((3, 1), (4,)), {"two_sided": True, "new_axes": True}, None),
        (((3, 1), (1, 4)), {"two_sided": True, "max_growth": 2}, "growth"),
        (((3, 1), (1, 4)), {"two_sided": True, "max_growth": 2.99}, "growth"),
        (((3, 1), (1, 4)), {"two_sided": True, "max_growth": 3}, None),
        (((2, 3, 4), (4,)), {}, "new_axes"),
        (((2, 3, 4), (4,)), {"new_axes": True}, None),
        (((2, 3, 4), (1, 1, 4)), {}, None),
        (((2, 3), ()), {}, None),  # a number
        (((), ()), {}, None),
        (((3,), (1,)), {}, None),
        (((0, 3), (1, 3)), {}, None),
        (((0, 1), (1, 3)), {}, "two_sided"),
        (((1, 1), (1,)), {}, "new_axes"),
        (((3, 1), (1, 4), (3, 4)), {}, None),  # one operand has the result's shape
        (((3, 1), (3,), (3,)), {}, "two_sided"),
        (((3,), (4,)), {}, "extent_mismatch"),  # what the rule itself refuses
    ],
)
def test_broadcast_is_refused_by_its_limit(shapes, limits, reason):
    assert reason_of(zs.plan, *shapes, rule=zs.strict(**limits)) == reason
    if reason is None:
        assert zs.plan(*shapes, rule=zs.strict(**limits)) == zs.plan(*shapes)


SIZES = st.lists(st.sampled_from((0, 1, 2, 3)), max_size=3).map(tuple)


@given(SIZES, SIZES, st.sampled_from((1, 2, 3, 8)))
def test_refusals_match_the_definition(a, b, growth):
    try:
        plan = zs.plan(a, b)
    except zs.BroadcastError:
        return
    sizes = [int(np.prod(shape)) for shape in (plan.shape, a, b)]
    assert (reason_of(zs.plan, a, b, rule=zs.strict(new_axes=True)) is not None) == plan.two_sided
    short = any(0 < len(shape) < plan.rank for shape in (a, b))
    assert (reason_of(zs.plan, a, b, rule=zs.strict(two_sided=True)) is not None) == short
    loose = zs.strict(two_sided=True, new_axes=True, max_growth=growth)
    assert (reason_of(zs.plan, a, b, rule=loose) is not None) == (
        sizes[0] > growth * max(sizes[1:])
    )


@given(SIZES, SIZES, st.sampled_from(("numpy", "ncnn", "paddle", "pdpd")))
def test_hint_allows_exactly_the_refused_broadcast(a, b, rule):
    limits = zs.strict(rule)
    error = refusal(zs.plan, a, b, rule=limits)
    if error is None or error.reason not in STRICT:
        return
    allowed = eval(error.hint.rpartition("allow it: ")[2], {"zs": zs})
    assert zs.plan(a, b, rule=allowed) == zs.plan(a, b, rule=rule)
    reshape = error.hint.partition("; or")[0]
    if reshape.startswith("reshape y to ") and " and " not in reshape:
        placed = eval(reshape.removeprefix("reshape y to "))
        assert reason_of(zs.plan, a, placed, rule=limits) is None


def test_error_is_drawn():
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan((3, 1), (3,), rule=zs.strict())
    assert str(caught.value) == (
        "strict mode refuses what rule 'numpy' makes of x and y\n"
        "  x  3 1\n"
        "  y  . 3\n"
        "       ^ result axis 1: x stretches here and y along axis 0, so the result has 9 "
        "elements, 3 times the largest operand's\n"
        "  fix: reshape y to (3, 1); or allow it: zs.strict(two_sided=True, new_axes=True)"
    )
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_hint_omits_an_attribute_of_the_rule():
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan((2, 3, 4, 5), (3, 4), axis=1, rule=zs.strict("pdpd"))
    assert caught.value.hint.startswith("reshape y to (1, 3, 4, 1) and leave out axis; or allow it")
    assert zs.plan((2, 3, 4, 5), (1, 3, 4, 1), rule=zs.strict("pdpd")) == zs.plan(
        (2, 3, 4, 5), (3, 4), axis=1, rule="pdpd"
    )


# As an option


def test_strict_works_wherever_a_rule_is_accepted():
    limits = zs.strict("numpy")
    assert reason_of(zs.subtract, COLUMN, VECTOR, rule=limits) == "two_sided"
    assert reason_of(zs.where, COLUMN > 0, VECTOR, VECTOR, rule=limits) == "two_sided"
    assert reason_of(zs.clip, COLUMN, VECTOR, None, rule=limits) == "two_sided"
    assert reason_of(zs.prelu, np.ones((2, 3)), VECTOR, rule=limits) == "new_axes"
    assert zs.subtract(COLUMN, VECTOR[:, None], rule=limits).tolist() == [[0.0]] * 3
    fused = zs.fuse(lambda a, b: zs.subtract(a, b, rule=zs.strict("numpy")) * 2)
    assert reason_of(fused, COLUMN, VECTOR) == "two_sided"
    assert fused(VECTOR, VECTOR).tolist() == [0.0] * 3
    rows = zs.compare((3, 1), (3,), reference=limits).rows
    assert {row.verdict for row in rows} <= {"only_here", "refused"}
    assert reason_of(zs.plan_to, (3,), (4, 3), mode=zs.strict(max_growth=3)) == "growth"
    assert reason_of(zs.plan_to, (3, 1), (3,), mode=zs.strict("bidirectional")) == "two_sided"
    assert zs.plan_to((3,), (4, 3), mode=zs.strict("numpy", max_growth=4)).shape == (4, 3)


def test_strict_works_under_engines_and_their_rules():
    assert reason_of(zs.plan, (5, 5), (5,), engine="ncnn", rule=zs.strict()) == "new_axes"
    assert zs.plan((5, 5), (5,), engine="ncnn", rule=zs.strict(new_axes=True)).aligned[1] == (5, 1)
    assert reason_of(zs.plan, (5, 5), (5,), engine="ncnn", rule=zs.strict("pdpd")) == "no_rule"
    assert reason_of(zs.plan, (3,), (3,), rule=zs.strict("nampy")) == "unknown_rule"


def test_open_sizes_get_a_condition():
    open_plan = zs.plan(("N", 1), ("M",), rule=zs.strict(new_axes=True))
    assert str(open_plan.conditions) == "M == 1 or N == 1"
    assert reason_of(open_plan.bind, N=3, M=4) == "two_sided"
    assert open_plan.bind(N=3, M=1).shape == (3, 1)
    grown = zs.plan(("N", 1), (1, "M"), rule=zs.strict(two_sided=True, max_growth=2))
    for n in range(5):
        for m in range(5):
            fits = reason_of(grown.bind, N=n, M=m) is None
            assert fits == (n * m <= 2 * max(n, m))
    assert reason_of(zs.plan, ("N", 3), (3,), rule=zs.strict()) == "new_axes"
    assert reason_of(zs.plan, ("N", 1), (1, 4), rule=zs.strict(), facts="N >= 2") == "two_sided"


def test_strict_is_a_value():
    limits = zs.strict("numpy", max_growth=4, two_sided=True)
    assert repr(limits) == "zs.strict('numpy', max_growth=4, two_sided=True)"
    assert pickle.loads(pickle.dumps(limits)) == limits
    assert limits == eval(repr(limits))
    assert limits != zs.strict("numpy", max_growth=4)
    assert len({limits, zs.strict("numpy", two_sided=True, max_growth=4)}) == 1
    assert bool(zs.strict())
    assert zs.plan((3,), (3,), rule=limits).rule == "numpy"


@pytest.mark.parametrize(
    ("named", "kind"),
    [
        ({"max_growth": 0.5}, ValueError),
        ({"max_growth": float("nan")}, ValueError),
        ({"max_growth": float("inf")}, ValueError),
        ({"max_growth": "4"}, TypeError),
        ({"max_growth": True}, TypeError),
        ({"two_sided": 1}, TypeError),
        ({"new_axes": None}, TypeError),
        ({"rule": 4}, TypeError),
        ({"rule": zs.strict()}, TypeError),
    ],
)
def test_malformed_limits_are_refused(named, kind):
    with pytest.raises(kind):
        zs.strict(**named)


# As a context


@contexts
def test_block_applies_to_cached_calls():
    wide = zs.fuse(lambda a, b: (a - b) ** 2)
    for _ in range(3):
        zs.subtract(COLUMN, VECTOR), wide(COLUMN, VECTOR), zs.plan((3, 1), (3,))
    with zs.strict():
        for _ in range(2):
            assert reason_of(zs.subtract, COLUMN, VECTOR) == "two_sided"
            assert reason_of(zs.subtract, COLUMN, VECTOR, rule="numpy") == "two_sided"
            assert reason_of(wide, COLUMN, VECTOR) == "two_sided"
            assert reason_of(zs.plan, (3, 1), (3,)) == "two_sided"
            assert zs.subtract(VECTOR, 1).tolist() == [-1.0, 0.0, 1.0]
            assert wide(VECTOR, VECTOR).tolist() == [0.0] * 3
    assert zs.subtract(COLUMN, VECTOR).shape == wide(COLUMN, VECTOR).shape == (3, 3)


@contexts
def test_fused_function_names_the_line():
    def distance(a, b):
        return (a - b) ** 2

    with zs.strict(), pytest.raises(zs.BroadcastError) as caught:
        zs.fuse(distance)(COLUMN, VECTOR)
    message = str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert "test_strict.py" in message
    assert "return (a - b) ** 2" in message


@contexts
def test_broadcast_ops_have_no_new_axes():
    with zs.strict(max_growth=2):
        assert reason_of(zs.broadcast, VECTOR, (3, 3)) == "growth"
        assert zs.broadcast(VECTOR, (2, 3)).shape == (2, 3)  # its new axis is written down
        assert reason_of(zs.broadcast, COLUMN, (3,), mode="bidirectional") == "two_sided"


@contexts
def test_innermost_block_decides():
    with zs.strict():
        with zs.strict(two_sided=True, new_axes=True):
            assert zs.subtract(COLUMN, VECTOR).shape == (3, 3)
            allowed = zs.strict(two_sided=True)
            assert reason_of(zs.subtract, COLUMN, VECTOR, rule=allowed) == "new_axes"
        assert reason_of(zs.subtract, COLUMN, VECTOR) == "two_sided"
        allowed = zs.strict(two_sided=True, new_axes=True)
        assert zs.subtract(COLUMN, VECTOR, rule=allowed).shape == (3, 3)
    assert in_force() is None


@contexts
def test_block_ends_with_an_exception_and_with_interleaved_generators():
    with pytest.raises(KeyError), zs.strict():
        raise KeyError
    assert in_force() is None
    one, two = zs.strict(max_growth=2), zs.strict(max_growth=3)

    def held(limits):
        with limits:
            yield

    first, second = held(one), held(two)
    next(first), next(second)
    first.close()
    assert in_force() is two
    second.close()
    assert in_force() is None


@contexts
def test_one_object_works_nested_and_in_many_threads():
    limits = zs.strict()

    def body(k):
        with limits:
            with limits:
                inner = reason_of(zs.subtract, COLUMN, VECTOR)
            return inner, reason_of(zs.subtract, COLUMN, VECTOR), in_force() is limits

    def outside(k):
        return reason_of(zs.subtract, COLUMN, VECTOR), in_force()

    with ThreadPoolExecutor(4) as pool:
        listed = [pool.submit(body if k % 2 else outside, k) for k in range(200)]
    for k, one in enumerate(listed):
        assert one.result() == (("two_sided", "two_sided", True) if k % 2 else (None, None))


@contexts
def test_new_thread_is_outside_the_block():
    entries = []
    with zs.strict():
        thread = threading.Thread(target=lambda: entries.append(in_force()))
        thread.start()
        thread.join()
    assert entries == [None]


@contexts
def test_task_started_in_the_block_keeps_it():
    async def later():
        await asyncio.sleep(0.01)
        return reason_of(zs.subtract, COLUMN, VECTOR)

    async def main():
        with zs.strict():
            within = asyncio.create_task(later())
        after = asyncio.create_task(later())
        return await within, await after

    assert asyncio.run(main()) == ("two_sided", None)
    with zs.strict():
        kept = contextvars.copy_context()
    assert kept.run(reason_of, zs.subtract, COLUMN, VECTOR) == "two_sided"


def test_entered_blocks_are_counted_until_released():
    counted = []
    HOLDERS.append(counted.append)
    try:
        if FAULTS:
            pytest.skip("".join(FAULTS))
        gc.freeze()  # what other tests left takes long to look at
        with zs.strict():
            kept = contextvars.copy_context()
            assert sum(counted) == 1
        assert sum(counted) == 1  # `kept` may still be run
        del kept
        gc.collect()
        assert sum(counted) == 0
    finally:
        gc.unfreeze()
        HOLDERS.remove(counted.append)


@contexts
def test_decorators_apply_to_functions():
    @zs.strict()
    def plain(a, b, *, scale=1):
        """Says so."""
        return zs.subtract(a, b) * scale

    assert plain.__doc__ == "Says so."
    assert reason_of(plain, COLUMN, VECTOR) == "two_sided"
    assert plain(VECTOR, VECTOR, scale=2).tolist() == [0.0] * 3

    @zs.strict()
    async def waiting(a, b):
        await asyncio.sleep(0)
        return zs.subtract(a, b)

    with pytest.raises(zs.BroadcastError):
        asyncio.run(waiting(COLUMN, VECTOR))

    @zs.fuse
    @zs.strict()
    def traced(a, b):
        return a - b

    assert reason_of(traced, COLUMN, VECTOR) == "two_sided"
    assert traced(VECTOR, VECTOR).tolist() == [0.0] * 3
    with pytest.raises(TypeError, match="generator"):
        zs.strict()(lambda: (yield))
    with pytest.raises(TypeError, match="decorates functions"):
        zs.strict()(4)


@contexts
def test_decorator_works_without_parentheses():
    @zs.strict
    def plain(a, b):
        """Says so."""
        return zs.subtract(a, b)

    assert plain.__doc__ == "Says so."
    assert reason_of(plain, COLUMN, VECTOR) == "two_sided"
    assert plain(VECTOR, VECTOR).tolist() == [0.0] * 3
    allowed = zs.strict(plain, two_sided=True, new_axes=True)
    assert reason_of(allowed, COLUMN, VECTOR) == "two_sided"  # the inner one decides
    with pytest.raises(TypeError, match="generator"):
        zs.strict(lambda: (yield))


@pytest.mark.parametrize(
    "call",
    [
        lambda: zs.plan((3,), (3,), rule=zs.strict),
        lambda: zs.plan((3,), (3,), rule=zs.strict, engine="ncnn"),
        lambda: zs.plan_to((3,), (3,), mode=zs.strict),
        lambda: zs.add(VECTOR, VECTOR, rule=zs.strict),
    ],
)
def test_option_works_without_parentheses(call):
    with pytest.raises(zs.BroadcastError, match=r"write zs\.strict\(\)") as caught:
        call()
    assert caught.value.reason == "unknown_rule"


@contexts
def test_generator_in_a_copy_of_the_context_does_not_affect_the_caller():
    def steps():
        with zs.strict():
            yield reason_of(zs.subtract, COLUMN, VECTOR)
            yield reason_of(zs.subtract, COLUMN, VECTOR)

    here = steps()
    assert next(here) == "two_sided"
    assert reason_of(zs.subtract, COLUMN, VECTOR) == "two_sided"  # a ContextVar's property
    here.close()
    own, there = contextvars.copy_context(), steps()
    assert own.run(next, there) == "two_sided"
    assert reason_of(zs.subtract, COLUMN, VECTOR) is None
    assert own.run(next, there) == "two_sided"


def test_block_applies_to_all_rules():
    with pytest.raises(TypeError, match="names a rule"), zs.strict("numpy"):
        pass


@contexts
def test_gradient_programs_are_not_checked():
    x = np.arange(20.0).reshape(4, 5)
    weighted = zs.fuse(lambda x, w: (x * w).sum(axis=-1) - x.mean(axis=-1))
    want = weighted.vjp(x, np.ones((1, 5)))[1](np.ones(4))
    again = zs.fuse(lambda x, w: (x * w).sum(axis=-1) - x.mean(axis=-1))
    with zs.strict():
        got = again.vjp(x, np.ones((1, 5)))[1](np.ones(4))
    assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))


@contexts
def test_questions_about_engines_are_not_affected():
    shapes = [(5, 5), (5,)]
    before = zs.compare(*shapes).to_json(), zs.supports("ncnn", "Add", "float32", shapes)
    with zs.strict():
        assert (zs.compare(*shapes).to_json(), zs.supports("ncnn", "Add", "float32", shapes)) == (
            before
        )


@contexts
def test_results_in_a_block_are_the_same():
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(4, 5)).astype("f4"), rng.normal(size=(4, 1)).astype("f4")
    fused = zs.fuse(lambda a, b: zs.tanh(a * b) - b)
    outside = zs.multiply(a, b), zs.add(a, 2), fused(a, b), zs.leaky_relu(a, 0.1)
    with zs.strict():
        within = zs.multiply(a, b), zs.add(a, 2), fused(a, b), zs.leaky_relu(a, 0.1)
        out = np.empty((4, 5), "f4")
        assert zs.multiply(a, b, out=out) is out
    for one, other in zip(outside, within, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


@contexts
@pytest.mark.parametrize("name", ["examples/tiny_vision.onnx", "examples/clean.onnx"])
def test_audit_is_not_affected(name, request):
    pytest.importorskip("onnx", reason="reads ONNX models")
    path = request.config.rootpath / name
    before = zs.audit(path, target="ncnn")
    with zs.strict():
        after = zs.audit(path, target="ncnn")
    assert [f.verdict for f in after.findings] == [f.verdict for f in before.findings]
