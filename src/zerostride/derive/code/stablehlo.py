"""A plan as a StableHLO module: `broadcast_in_dim` takes the mapping of axes.

Source: StableHLO specification, `broadcast_in_dim`: `broadcast_dimensions` names the result axis of
each operand axis, and an operand axis of size 1 stretches.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.plan import Plan
from ...sizes import Shape


def stablehlo_source(plan: Plan, names: Sequence[str]) -> str:
    """A module whose function `main` gives each operand broadcast.

    >>> import zerostride as zs
    >>> print(stablehlo_source(zs.plan((2, 3), (2,), rule="pdpd", axis=0), ["x", "y"]))
    // x: (2, 3), y: (2,) -> (2, 3)
    func.func public @main(%x: tensor<2x3xf32>, %y: tensor<2xf32>)
        -> (tensor<2x3xf32>, tensor<2x3xf32>) {
      %y.broadcast = stablehlo.broadcast_in_dim %y, dims = [0]
          : (tensor<2xf32>) -> tensor<2x3xf32>
      return %x, %y.broadcast : tensor<2x3xf32>, tensor<2x3xf32>
    }
    """
    result = _type(plan.shape)
    shapes = ", ".join(f"{n}: {shape}" for n, shape in zip(names, plan.operands, strict=True))
    arguments = ", ".join(
        f"%{n}: {_type(shape)}" for n, shape in zip(names, plan.operands, strict=True)
    )
    results = ", ".join([result] * len(names))
    lines = [
        f"// {shapes} -> {plan.shape}",
        f"func.func public @main({arguments})",
        f"    -> ({results}) {{",
    ]
    values = []
    rows = zip(names, plan.operands, plan.axes_mapping, strict=True)
    for name, shape, mapping in rows:
        extents = tuple(size for size, axis in zip(shape, mapping, strict=True) if axis is not None)
        places = [axis for axis in mapping if axis is not None]
        value = f"%{name}"
        if extents != shape:  # an axis of size 1 is dropped
            types = f"({_type(shape)}) -> {_type(extents)}"
            lines.append(f"  %{name}.reshaped = stablehlo.reshape {value} : {types}")
            value = f"%{name}.reshaped"
        if extents != plan.shape:
            lines += [
                f"  %{name}.broadcast = stablehlo.broadcast_in_dim {value}, dims = {places}",
                f"      : ({_type(extents)}) -> {result}",
            ]
            value = f"%{name}.broadcast"
        values.append(value)
    return "\n".join([*lines, f"  return {', '.join(values)} : {results}", "}"])


def _type(shape: Shape) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}f32>"
