"""Files of OpenVINO, ncnn, LiteRT and Paddle that ask for much work, as those of ONNX do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ..models.ir_writer import Ir
from ..models.paddle_writer import Model as PaddleModel
from ..models.paddle_writer import Pir, Program
from ..models.tflite_writer import Model

Kind = Callable[[Path, int], Path]

# OpenVINO.

_Build = Callable[[Ir, int], int]
_OPEN, _SQUARE = ["?"] * 4, ["?", "?"]


def _ir(build: _Build) -> Kind:
    """A kind of an IR; the function adds layers and returns the last."""

    def kind(folder: Path, size: int) -> Path:
        ir = Ir()
        ir.result(build(ir, size))
        return ir.save(folder / "model.xml")

    return kind


def _ir_pairs(rank: int) -> _Build:
    def build(ir: Ir, size: int) -> int:
        shape = ["?"] * rank
        inputs = [ir.parameter(f"x{k}", shape) for k in range(max(size // rank, 2))]
        pairs = zip(inputs, [*inputs[1:], inputs[0]], strict=True)
        return [ir.layer(f"t{k}", "Add", pair, shape) for k, pair in enumerate(pairs)][-1]

    return build


def _ir_again(op: str, other: Sequence[int] | None = None, data: str = "") -> _Build:
    """An op on its own result and an input or a constant, and an Add of each result."""

    def build(ir: Ir, size: int) -> int:
        last = first = ir.parameter("x", _SQUARE)
        second = ir.constant("y", np.array(other)) if other else ir.parameter("y", _SQUARE)
        for k in range(max(size // 2, 1)):
            last = ir.layer(f"t{k}", op, [last, second], _SQUARE, data)
            ir.layer(f"a{k}", "Add", [last, first], _SQUARE)
        return last

    return build


def _ir_join(ir: Ir, size: int) -> int:
    inputs = [ir.parameter(f"x{k}", ["?", 3]) for k in range(size)]
    joined = ir.layer("joined", "Concat", inputs, ["?", 3], 'axis="0"')
    return ir.layer("sum", "Add", [joined, inputs[0]], ["?", 3])


def _ir_squares(ir: Ir, size: int) -> int:
    image, one = ir.parameter("x", _SQUARE), ir.parameter("z", [1, 1])
    data = 'output_type="i64"'
    sizes = ir.layer("s", "ShapeOf", [image], [2], data, "opset3", "i64")
    last = one
    for k in range(max(size // 2, 1)):
        sizes = ir.layer(f"s{k}", "Multiply", [sizes, sizes], [2], kind="i64")
        mode = 'mode="numpy"'
        last = ir.layer(f"t{k}", "Broadcast", [one, sizes], _SQUARE, mode, "opset3", "f32")
    return last


def _ir_loop(ir: Ir, size: int) -> int:
    """A loop of 2^62 turns."""
    inner = Ir()
    state = inner.parameter("state", [1])
    true = inner.constant("true", np.array(True))
    result = inner.result(inner.layer("same", "Relu", [state], [1]))
    condition = inner.result(true)
    body = inner.text.split("</net>")[0].split("\n", 2)[2].replace("<rt_info />", "")
    inside = (
        f'<port_map><input external_port_id="2" internal_layer_id="{state}" />'
        f'<output external_port_id="3" internal_layer_id="{result}" />'
        f'<output external_port_id="-1" internal_layer_id="{condition}" '
        'purpose="execution_condition" /></port_map>'
        f'<back_edges><edge from-layer="{result}" to-layer="{state}" /></back_edges>'
        f"<body>{body}</body>"
    )
    turns, go = ir.constant("turns", np.array(2**62)), ir.constant("go", np.array(True))
    first = ir.parameter("x", [1])
    ir.weights += inner.weights  # at the offset of the outer ones: any byte but 0 is true
    return ir.layer("loop", "Loop", [turns, go, first], [1], "", "opset5", "f32", inside)


# ncnn.


def _ncnn(lines: Callable[[int], list[str]]) -> Kind:
    """A kind of a .param; the function returns its layers."""

    def kind(folder: Path, size: int) -> Path:
        layers = lines(size)
        blobs = sum(int(line.split()[3]) for line in layers)
        path = folder / "model.param"
        path.write_text("\n".join(["7767517", f"{len(layers)} {blobs}", *layers, ""]))
        path.with_suffix(".bin").write_bytes(b"")
        return path

    return kind


def _inputs(count: int) -> list[str]:
    return [f"Input x{k} 0 1 x{k}" for k in range(count)]


def _of_many(layer: str, parameters: str) -> Kind:
    def lines(size: int) -> list[str]:
        names = " ".join(f"x{k}" for k in range(size))
        return [*_inputs(size), f"{layer} y {size} 1 {names} y {parameters}"]

    return _ncnn(lines)


def _ncnn_again(size: int) -> list[str]:
    lines = [*_inputs(2), f"Split s 1 {size} x1 " + " ".join(f"y{k}" for k in range(size))]
    names = ["x0", *(f"t{k}" for k in range(size))]
    return lines + [
        f"BinaryOp b{k} 2 1 {names[k]} y{k} t{k} 0={k % 3}" for k in range(size)
    ]  # fmt: skip


def _ncnn_pairs(size: int) -> list[str]:
    count = max(size // 2, 1)
    pairs = [f"BinaryOp b{k} 2 1 x{2 * k} x{2 * k + 1} t{k} 0=0" for k in range(count)]
    return [*_inputs(2 * count), *pairs]


def _ncnn_expressions(size: int) -> list[str]:
    lines, last = _inputs(1), "x0"
    for k in range(max(size // 20, 1)):
        words = "*(0w," * 20 + "0h" + ")" * 20
        lines.append(f'Reshape r{k} 1 1 {last} t{k} 6="{words},-1"')
        last = f"t{k}"
    return lines


# LiteRT.


def _tflite(build: Callable[[Model, int], None]) -> Kind:
    def kind(folder: Path, size: int) -> Path:
        model = Model()
        build(model, size)
        return model.write(folder / "model.tflite")

    return kind


def _tflite_pairs(rank: int) -> Callable[[Model, int], None]:
    def build(model: Model, size: int) -> None:
        graph, count = model.main, max(size // rank, 2)
        for k in range(count):
            graph.input(f"x{k}", *(1,) * rank, signature=(-1,) * rank)
        for k in range(count):
            graph.add(f"t{k}", (1,) * rank, signature=(-1,) * rank)
            graph.op("ADD", f"x{k} x{(k + 1) % count}", f"t{k}")
        graph.output("t0")

    return build


def _tflite_again(model: Model, size: int) -> None:
    graph, last = model.main, "x"
    for name in "xy":
        graph.input(name, 1, 1, signature=(-1, -1))
    for k in range(size):
        graph.add(f"t{k}", (1, 1), signature=(-1, -1))
        graph.op("MUL" if k % 2 else "ADD", f"{last} y", f"t{k}")
        last = f"t{k}"
    graph.output(last)


def _tflite_of_many(op: str) -> Callable[[Model, int], None]:
    def build(model: Model, size: int) -> None:
        names = [model.main.input(f"x{k}", 1, 3, signature=(-1, 3)) for k in range(size)]
        model.main.add("y", (1, 3), signature=(-1, 3))
        model.main.op(op, " ".join(names), "y")
        model.main.output("y")

    return build


def _tflite_squares(model: Model, size: int) -> None:
    graph = model.main
    graph.input("x", 1, 1, signature=(-1, -1))
    graph.input("z", 1, 1)
    graph.add("s", (2,), "int32")
    graph.op("SHAPE", "x", "s", out_type=2)
    last = "s"
    for k in range(max(size // 2, 1)):
        graph.add(f"s{k}", (2,), "int32")
        graph.op("MUL", f"{last} {last}", f"s{k}")
        graph.op("BROADCAST_TO", f"z s{k}", f"t{k}")
        last = f"s{k}"
    graph.output("t0")


def _tflite_loop(model: Model, size: int) -> None:
    """A WHILE whose condition stays true."""
    graph = model.main
    graph.input("n", dtype="int32")
    numbers = []
    for op, dtype, result in (("LESS_EQUAL", "bool", "go"), ("ADD", "int32", "m")):
        number, inner = model.graph()
        inner.input("n", dtype="int32")
        inner.constant("zero", np.array(0, np.int32))
        inner.add(result, (), dtype)
        inner.op(op, "n n" if result == "go" else "n zero", result)
        inner.output(result)
        numbers.append(number)
    graph.add("k", (), "int32")
    graph.op("WHILE", "n", "k", cond_subgraph_index=numbers[0], body_subgraph_index=numbers[1])
    graph.output("k")


# Paddle.


def _paddle(build: Callable[[int], PaddleModel]) -> Kind:
    return lambda folder, size: build(size).save(folder)


def _open(rank: int) -> list[tuple[Sequence[int], str]]:
    return [((-1,) * rank, "float32")]


def _pir_pairs(rank: int) -> Callable[[int], PaddleModel]:
    def build(size: int) -> PaddleModel:
        model, count = Pir(), max(size // rank, 2)
        names = [model.input(f"x{k}", *(-1,) * rank) for k in range(count)]
        sums = [
            model.op("add", [one, two], _open(rank))[0]
            for one, two in zip(names, [*names[1:], names[0]], strict=True)
        ]
        model.outputs.append(f"%{sums[-1]}")
        return model

    return build


def _pir_of_many(op: str, axis: bool) -> Callable[[int], PaddleModel]:
    def build(size: int) -> PaddleModel:
        model = Pir()
        names = [model.input(f"x{k}", -1, 3) for k in range(size)]
        (joined,) = model.op("combine", names, dialect=0)
        more = [model.full(0, 1, dtype="int32")] if axis else []
        (sums,) = model.op(op, [joined, *more], [((-1, 3), "float32")])
        model.outputs.append(f"%{sums}")
        return model

    return build


def _pir_squares(size: int) -> PaddleModel:
    model = Pir()
    model.input("x", -1, -1)
    model.input("z", 1, 1)
    (sizes,) = model.op("shape64", ["x"], [((2,), "int64")])
    expanded = 0
    for _ in range(max(size // 2, 1)):
        (sizes,) = model.op("multiply", [sizes, sizes], [((2,), "int64")])
        (expanded,) = model.op("expand", ["z", sizes], _open(2))
    model.outputs.append(f"%{expanded}")
    return model


def _program_again(size: int) -> PaddleModel:
    """Broadcasts at axis 0, of the format before release 3.0."""
    model, last = Program(), "x"
    for name in "xy":
        model.input(name, -1, -1)
    for k in range(size):
        result = {"Out": f"t{k}"}
        model.op("elementwise_add", {"X": last, "Y": "y"}, result, (-1, -1), axis=0)
        last = f"t{k}"
    model.outputs.append(last)
    return model


KINDS: Mapping[str, Kind] = {
    "openvino: sizes of rank 60": _ir(_ir_pairs(60)),
    "openvino: sizes of rank 4": _ir(_ir_pairs(4)),
    "openvino: join of many": _ir(_ir_join),
    "openvino: broadcast again": _ir(_ir_again("Add")),
    "openvino: reshaped again": _ir(_ir_again("Reshape", [-1, 2], 'special_zero="false"')),
    "openvino: tiled again": _ir(_ir_again("Tile", [2, 1])),
    "openvino: squared sizes": _ir(_ir_squares),
    "openvino: endless loop": _ir(_ir_loop),
    "ncnn: sums of pairs": _ncnn(_ncnn_pairs),
    "ncnn: sum of many": _of_many("Eltwise", "0=1"),
    "ncnn: join of many": _of_many("Concat", "0=0"),
    "ncnn: broadcast again": _ncnn(_ncnn_again),
    "ncnn: expressions": _ncnn(_ncnn_expressions),
    "litert: sizes of rank 60": _tflite(_tflite_pairs(60)),
    "litert: sizes of rank 4": _tflite(_tflite_pairs(4)),
    "litert: sum of many": _tflite(_tflite_of_many("ADD_N")),
    "litert: join of many": _tflite(_tflite_of_many("CONCATENATION")),
    "litert: broadcast again": _tflite(_tflite_again),
    "litert: squared sizes": _tflite(_tflite_squares),
    "litert: endless loop": _tflite(_tflite_loop),
    "paddle: sizes of rank 60": _paddle(_pir_pairs(60)),
    "paddle: sizes of rank 4": _paddle(_pir_pairs(4)),
    "paddle: sum of many": _paddle(_pir_of_many("add_n", axis=False)),
    "paddle: join of many": _paddle(_pir_of_many("concat", axis=True)),
    "paddle: squared sizes": _paddle(_pir_squares),
    "paddle: broadcast again": _paddle(_program_again),
}
