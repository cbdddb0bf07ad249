"""ONNX files that ask for much work; a kind is a function of its size: its nodes or names."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

Kind = Callable[[int], ModelProto]
Shape = Sequence[int | str | None]
_X: Mapping[str, Shape] = {"x": ("N", "M")}
_IMAGES: Mapping[str, Shape] = {"x": ("B", 3, "H", "W")}


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """A node; names of tensors in one string, "-" for an input that is left out."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), name=f"{op}_{outputs}", **attributes)


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, Shape],
    weights: Mapping[str, Any] | None = None,
    outputs: Sequence[str] = ("t0",),
) -> ModelProto:
    """A model of float inputs; weights are arrays or lists."""
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    constants = [numpy_helper.from_array(np.asarray(w), n) for n, w in (weights or {}).items()]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "g", values, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def _pairs(op: str, per: int, *shapes: Callable[[int], Shape]) -> Kind:
    """An op on neighbours among inputs that all have shapes of their own.

    Args:
        op: the op type.
        per: the parts of the size that one node takes.
        shapes: the shapes of an op's operands by the node's number; one: neighbours share inputs.
    """

    def kind(size: int) -> ModelProto:
        count = max(size // per, 2)
        if len(shapes) == 1:
            inputs = {f"x{k}": shapes[0](k) for k in range(count)}
            nodes = [node(op, f"x{k} x{(k + 1) % count}", f"t{k}") for k in range(count)]
        else:
            rows = [(f"x{k}_{j}", s(k)) for k in range(count) for j, s in enumerate(shapes)]
            inputs = dict(rows)
            names = [" ".join(f"x{k}_{j}" for j in range(len(shapes))) for k in range(count)]
            nodes = [node(op, names[k], f"t{k}") for k in range(count)]
        return model(nodes, inputs)

    return kind


def _chain(
    op: str,
    operands: str,
    inputs: Mapping[str, Shape],
    weights: Mapping[str, Any] | None = None,
    per: int = 2,
    adds: bool = True,
    **attributes: Any,
) -> Kind:
    """An op on its own result again and again, and an Add of each result."""

    def kind(size: int) -> ModelProto:
        nodes = []
        for k in range(max(size // per, 1)):
            nodes.append(
                node(op, operands.format(f"t{k - 1}" if k else "x"), f"t{k}", **attributes)
            )
            if adds:
                nodes.append(node("Add", f"t{k} x", f"a{k}"))
        return model(nodes, inputs, weights)

    return kind


def _numbers(*steps: tuple[str, str], reals: bool = False, **weights: Any) -> Kind:
    """Sizes computed from sizes again and again; each result is the shape of an Expand.

    Args:
        steps: an op and its operands: "s" is the result so far, "first" the first, "q" another.
        reals: the vectors are floats.
        weights: constants.
    """
    inputs: Mapping[str, Shape] = {"x": ("N", "M"), "y": ("K", "L"), "z": (1, 1)}

    def kind(size: int) -> ModelProto:
        start = "f" if reals else "s"
        nodes = [node("Shape", "x", f"{start}0"), node("Shape", "y", "q")]
        if reals:
            nodes.append(node("Cast", "f0", "s0", to=TensorProto.FLOAT))
        for k in range(max(size // (len(steps) + 2), 1)):
            last = f"s{k}"
            for j, (op, operands) in enumerate(steps):
                result = f"s{k + 1}" if j == len(steps) - 1 else f"u{k}_{j}"
                names = [{"s": last, "first": f"s{k}"}.get(one, one) for one in operands.split()]
                nodes.append(node(op, " ".join(names), result))
                last = result
            target = f"i{k}" if reals else last
            if reals:
                nodes.append(node("Cast", last, target, to=TensorProto.INT64))
            nodes.append(node("Expand", f"z {target}", f"t{k}"))
        return model(nodes, inputs, weights)

    return kind


def _one_node(op: str, shape: Callable[[int], Shape], add: bool = False, **more: Any) -> Kind:
    """One node of very many operands."""

    def kind(size: int) -> ModelProto:
        inputs = {f"x{k}": shape(k) for k in range(size)}
        nodes = [node(op, " ".join(inputs), "t0", **more)]
        nodes += [node("Add", "t0 x0", "a")] if add else []
        return model(nodes, inputs)

    return kind


def _repeated_operand(size: int) -> ModelProto:
    return model([node("Sum", " ".join(["x"] * size), "t0")], _X)


def _own_constants(size: int) -> ModelProto:
    nodes = [node("Add", f"{f't{k - 1}' if k else 'x'} c{k}", f"t{k}") for k in range(size)]
    weights = {f"c{k}": np.ones(2, np.float32) for k in range(size)}
    return model(nodes, {"x": ("N", 2)}, weights)


def _long_sums(size: int) -> ModelProto:
    text = "+".join(f"a{k}" for k in range(200))
    inputs = {
        f"x{k}": (text.replace("a", f"b{k % 10}_")[:900] + "1", 3)
        for k in range(max(size // 50, 2))
    }
    nodes = [node("Add", f"x{k} x{(k + 1) % len(inputs)}", f"t{k}") for k in range(len(inputs))]
    return model(nodes, inputs)


def _nested(k: int) -> Shape:
    def text(depth: int) -> str:
        return f"max({text(depth - 1)}//2,(M{k}+{depth})%7)" if depth else f"N{k}"

    return text(20), text(10)


def _products(k: int) -> Shape:
    return "*".join(f"(A{k}_{j}+B{k}_{j})" for j in range(12)), 3


def _declared_otherwise(size: int) -> ModelProto:
    count = size // 2
    nodes = [node("Add", f"{f't{k - 1}' if k else 'x'} y", f"t{k}") for k in range(count)]
    network = model(nodes, {"x": ("N", 3), "y": (3,)})
    for k in range(count):
        sizes = (f"P{k}", f"Q{k}*2+R{k}")
        network.graph.value_info.append(helper.make_tensor_value_info(f"t{k}", 1, sizes))
    return network


def _einsums(size: int) -> ModelProto:
    letters = string.ascii_letters
    words = f"...{letters[:20]},...{letters[10:30]}->...{letters[:30]}"
    inputs: dict[str, Shape] = {
        "x": ("B", *(f"N{k}" for k in range(20))),
        "y": ("C", *(f"N{k}" for k in range(10, 30))),
    }
    nodes = [node("Einsum", "x y", f"t{k}", equation=words) for k in range(max(size // 20, 1))]
    return model(nodes, inputs)


def _doubled_vectors(size: int) -> ModelProto:
    count = min(size, 30)
    nodes = [node("Shape", "x", "s0")]
    nodes += [node("Concat", f"s{k} s{k}", f"s{k + 1}", axis=0) for k in range(count)]
    nodes += [node("Expand", f"z s{k}", f"t{k}") for k in range(count)]
    return model(nodes, {**_X, "z": (1,)})


# Bodies.

_INT, _BOOL, _FLOAT = TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT


def _body(nodes: Sequence[Any], state: str, result: str, names: str = "i c d") -> Any:
    """A loop's body: its turn, its condition and one state."""
    turn, go, on = names.split()
    value = helper.make_tensor_value_info
    return helper.make_graph(
        [*nodes, node("Identity", go, on)],
        "body",
        [value(turn, _INT, []), value(go, _BOOL, []), value(state, _FLOAT, None)],
        [value(on, _BOOL, []), value(result, _FLOAT, None)],
    )


def _loops(size: int) -> ModelProto:
    inner = [node("Add", "s x", "u"), node("Concat", "u u", "v", axis=0)]
    nodes = [
        node("Loop", f"n - {f't{k - 1}' if k else 'x'}", f"t{k}", body=_body(inner, "s", "v"))
        for k in range(max(size // 10, 1))
    ]
    return model(nodes, _X, {"n": np.array(5)})


def _nested_loops(size: int) -> ModelProto:
    nodes = [node("Add", "s0 x", "u0")]
    for k in range(min(size // 10, 28)):
        body = _body(nodes, f"s{k}", f"u{k}", f"i{k} c{k} d{k}")
        nodes = [node("Loop", f"n - s{k + 1}", f"u{k + 1}", body=body)]
    nodes[0].input[2] = "x"
    return model(nodes, _X, {"n": np.array(5)}, outputs=(nodes[0].output[0],))


def _endless_loop(size: int) -> ModelProto:
    body = _body([node("Identity", "s", "u")], "s", "u")
    nodes = [node("Loop", "n - x", "t0", body=body)]
    return model(nodes, {"x": (1,)}, {"n": np.array(2**62)})


def _branches(size: int) -> ModelProto:
    def branch(op: str, k: int, side: str) -> Any:
        result = helper.make_tensor_value_info(f"{side}{k}", _FLOAT, None)
        return helper.make_graph([node(op, f"t{k} y", f"{side}{k}")], "b", [], [result])

    nodes = [node("Identity", "x", "t0")]
    nodes += [
        node(
            "If", "c", f"t{k + 1}",
            then_branch=branch("Add", k, "p"), else_branch=branch("Mul", k, "q"),
        )
        for k in range(max(size // 10, 1))
    ]  # fmt: skip
    inputs: Mapping[str, Shape] = {"x": ("N", 3), "y": ("M", 3), "c": ()}
    return model(nodes, inputs)


def _names(rank: int) -> Callable[[int], Shape]:
    return lambda k: tuple(f"N{k}_{axis}" for axis in range(rank))


_SLICE = {"from": [1], "to": [-1], "axis": [0]}
KINDS: Mapping[str, Kind] = {
    "names of rank 60": _pairs("Add", 60, _names(60)),
    "names of rank 4": _pairs("Add", 4, _names(4)),
    "unnamed sizes": _pairs("Add", 4, lambda k: (None,) * 4),
    "products of matrices": _pairs("MatMul", 4, _names(4)),
    "choices": _pairs("Where", 6, _names(2), _names(2), lambda k: (f"K{k}", f"L{k}")),
    "nested sizes": _pairs("Add", 50, _nested),
    "products of sums": _pairs("Add", 50, _products),
    "long sums": _long_sums,
    "maximum of many": _one_node("Max", lambda k: (f"N{k}", 3)),
    "maximum of many numbers": _one_node("Max", lambda k: (5, 3)),
    "maximum of unnamed": _one_node("Max", lambda k: (None, 3)),
    "join of many": _one_node("Concat", lambda k: (f"N{k}", 3), add=True, axis=0),
    "one operand many times": _repeated_operand,
    "constants": _own_constants,
    "declared otherwise": _declared_otherwise,
    "Einstein sums": _einsums,
    "broadcast again": _chain("Add", "{} y", {"x": ("N", "M"), "y": ("K", "L")}, adds=False),
    "joined again": _chain("Concat", "{} x", _X, axis=0),
    "sliced again": _chain("Slice", "{} from to axis", _X, _SLICE),
    "reshaped again": _chain("Reshape", "{} s", _X, {"s": [-1, 2]}),
    "moved again": _chain("Transpose", "{}", {"x": tuple("ABCD")}, perm=[1, 2, 3, 0]),
    "padded again": _chain("Pad", "{} p", _X, {"p": [1, 0, 2, 0]}),
    "tiled again": _chain("Tile", "{} p", _X, {"p": [2, 1]}),
    "gathered again": _chain("Gather", "{} i", {"x": ("N", 3), "i": ("K",)}, axis=0),
    "split again": _chain("Split", "{}", _X, axis=0, num_outputs=1),
    "resized again": _chain(
        "Resize", "{} - scales", _IMAGES, {"scales": np.array([1, 1, 1.5, 1.25], np.float32)}
    ),
    "convolved again": _chain(
        "Conv", "{} w", _IMAGES, {"w": np.ones((3, 3, 2, 2), np.float32)}, strides=[2, 2]
    ),
    "squared sizes": _numbers(("Mul", "s s")),
    "doubled sizes": _numbers(("Add", "s s")),
    "powers of sizes": _numbers(("Pow", "s p"), p=[3, 2]),
    "quotients of sizes": _numbers(("Div", "s p"), ("Add", "s first"), p=[2, 3]),
    "remainders of sizes": _numbers(("Mod", "s q"), ("Add", "s first")),
    "greatest of sizes": _numbers(("Max", "s q"), ("Min", "s first"), ("Add", "s q")),
    "squared reals": _numbers(("Mul", "s s"), reals=True),
    "quotients of reals": _numbers(
        ("Div", "s f"), reals=True, f=np.array([3e-30, 1e30], np.float32)
    ),
    "doubled vectors": _doubled_vectors,
    "loops": _loops,
    "nested loops": _nested_loops,
    "endless loop": _endless_loop,
    "branches": _branches,
}
