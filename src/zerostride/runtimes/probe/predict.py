"""zerostride's prediction for a case, and the values that follow from its plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ...core.plan import Plan
from ...engines.model import Divergence
from ...engines.planning import plan, plan_to
from ...engines.table import find_engine
from ...errors import BroadcastError, Reason
from ...sizes import Asker
from ..task import Array
from .case import Case, Shape
from .catalogue import CatalogueRow, ShapeRoles, row_of
from .kinds import KINDS


def shapes_of(case: Case, row: CatalogueRow) -> list[Shape]:
    """The shapes of the case's operands, without a target shape."""
    if row.roles is ShapeRoles.TO:
        return [case.a]
    return [case.a, case.b, *(() if case.c is None else (case.c,))]


def predict(case: Case, engine: str = "") -> Plan | BroadcastError:
    """The plan that zerostride gives for the case, or its refusal.

    Args:
        case: the case.
        engine: the engine's name with a release; without it the case's engine is asked.
    """
    row, attrs = row_of(case), case.attrs
    name = engine or case.engine
    try:
        if row.roles is not ShapeRoles.TO:
            return plan(
                *shapes_of(case, row),
                engine=name,
                op=row.ask,
                rule=attrs.get("auto_broadcast"),
                axis=attrs.get("axis"),
            )
        # JAX's lax.broadcast_in_dim has no mode; it behaves as mode explicit.
        in_dim = "broadcast_dimensions" in attrs
        return plan_to(
            case.a,
            case.b,
            engine=name,
            op=row.ask,
            mode="explicit" if in_dim else attrs.get("mode"),
            axes_mapping=attrs["broadcast_dimensions"] if in_dim else attrs.get("axes_mapping"),
        )
    except BroadcastError as error:
        return error


def expected_values(case: Case, plan: Plan) -> list[Array]:
    """The result of every pass by NumPy over the plan's views."""
    return _results(case, lambda operands: plan.views(*operands))


def numpy_result(case: Case) -> list[Array] | None:
    """The results that NumPy's own rule would give; None where it refuses."""
    row = row_of(case)
    target = (case.b,) if row.roles is ShapeRoles.TO else ()
    try:
        result = np.broadcast_shapes(*shapes_of(case, row), *target)
    except ValueError:
        return None
    return _results(case, lambda operands: [np.broadcast_to(x, result) for x in operands])


def _results(case: Case, views: Callable[[Sequence[Array]], Iterable[Array]]) -> list[Array]:
    row = row_of(case)
    kind = KINDS[row.kind]
    # The case's own type where results are exact, else a wider one.
    dtype = case.dtype if kind.tolerance == 0.0 else "float64"
    passes = kind.operands(shapes_of(case, row), dtype)
    return [np.asarray(kind.function(*views(operands))) for operands in passes]


def striking(case: Case, plan: Plan, effects: frozenset[Reason]) -> Divergence | None:
    """A divergence of the case's engine that strikes the plan with one of these effects."""
    row = find_engine(plan.rule.engine or case.engine)
    for divergence in row.divergences_of(plan.rule.op, case.dtype):
        if (
            divergence.effect in effects
            and divergence.strikes
            and divergence.strikes(plan, Asker())
        ):
            return divergence
    return None
