"""Makes models with Paddle, in both formats, and runs them: every variable's value.

    python paddle_worker.py FOLDER

For each model, FOLDER gets NAME.json or NAME.pdmodel, NAME.pdiparams, and NAME.npz with the
inputs ("in:NAME") and the values of all variables by their names in the file.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

warnings.simplefilter("ignore")
import paddle  # noqa: E402
import paddle.nn.functional as F  # noqa: E402, N812
from paddle import nn  # noqa: E402

X = {"x": (2, 4, 6, 8)}
PAIR = {"x": (2, 4, 6, 8), "y": (4, 1, 8)}
M = {"x": (3, 4), "y": (4, 5)}


def network(kind):
    """A model of layers; its call in a static program."""

    def call(x):
        layer = kind()
        layer.eval()
        return layer(x)

    return call


class SqueezeExcite(nn.Layer):
    """Convolutions, a normalisation and a gate of channels."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2D(4, 8, 3, padding=1, stride=2)
        self.norm = nn.BatchNorm2D(8)
        self.down, self.up = nn.Linear(8, 4), nn.Linear(4, 8)
        self.deep = nn.Conv2D(8, 8, 3, padding=1, groups=8, bias_attr=False)
        self.bias = self.create_parameter([1, 8, 1, 1])

    def forward(self, x):
        y = F.relu(self.norm(self.first(x)))
        gate = paddle.flatten(F.adaptive_avg_pool2d(y, 1), 1)
        gate = F.sigmoid(self.up(F.relu(self.down(gate))))
        y = y * gate.unsqueeze([2, 3]) + self.bias
        return F.softmax(paddle.mean(F.hardswish(self.deep(y)), axis=[2, 3]))


class Attention(nn.Layer):
    """Heads of attention over rows, with a mask and normalisations."""

    def __init__(self):
        super().__init__()
        self.norm, self.wide = nn.LayerNorm(8), nn.Linear(8, 24)
        self.narrow = nn.Linear(8, 8)

    def forward(self, x):
        x = paddle.reshape(x, [0, -1, 8])
        rows = paddle.shape(x)[1]
        q, k, v = paddle.split(self.wide(self.norm(x)), 3, axis=-1)
        heads = [paddle.transpose(paddle.reshape(t, [0, 0, 2, 4]), [0, 2, 1, 3]) for t in (q, k, v)]
        score = paddle.matmul(heads[0], heads[1], transpose_y=True) / 2.0
        steps = paddle.arange(rows)
        mask = paddle.where(
            steps.unsqueeze(0) > steps.unsqueeze(1),
            paddle.full([1], -1e4, "float32"),
            paddle.full([1], 0.0, "float32"),
        )
        out = paddle.matmul(F.softmax(score + mask, axis=-1), heads[2])
        out = paddle.reshape(paddle.transpose(out, [0, 2, 1, 3]), [0, 0, 8])
        return x + F.gelu(self.narrow(out))


def truth(x):
    return x > 0.5


#: PIR programs: inputs (float32 shapes; axis 0 of x is open), and a function of them.
PIR = {
    "squeeze_excite": (X, network(SqueezeExcite)),
    "attention": (X, network(Attention)),
    "pairs": (PAIR, lambda x, y: [x + y, x - y, x * y, x / (y + 1), x**y, x % (y + 1)]),
    "extremes": (PAIR, lambda x, y: [paddle.maximum(x, y), paddle.fmin(x, y), x // (y + 1)]),
    "compared": (PAIR, lambda x, y: [x > y, x >= y, x < y, x <= y, x == y, x != y]),
    "logical": (
        PAIR,
        lambda x, y: [
            paddle.logical_and(truth(x), truth(y)),
            paddle.logical_or(truth(x), truth(y)),
            paddle.logical_xor(truth(x), truth(y)),
            paddle.logical_not(truth(x)),
        ],
    ),
    "where": (PAIR, lambda x, y: paddle.where(truth(x), y, paddle.full([1], 2.0))),
    "numbers": (X, lambda x: [x * 2 + 1, (x + 3) * 4, 1 - x, paddle.clip(x, 0.2, 0.8), x**2]),
    "counted": (X, lambda x: [paddle.shape(x) * 2, paddle.numel(x), paddle.cast(x, "int32") + 1]),
    "expand": (
        X,
        lambda x: [paddle.expand(x[:, :1], [-1, 4, 6, 8]), paddle.expand(x, [3, 2, 4, 6, 8])],
    ),
    "expand_open": (X, lambda x: paddle.expand(paddle.full([1, 4], 2.0), [paddle.shape(x)[0], 4])),
    "expand_as": (PAIR, lambda x, y: paddle.expand_as(y, x)),
    "tile": (X, lambda x: [paddle.tile(x, [2]), paddle.tile(x, [2, 1, 1, 1, 3])]),
    "prelu": (X, lambda x: [F.prelu(x, paddle.full([4], 0.1)), F.prelu(x, paddle.full([1], 0.2))]),
    "matmul": (
        {"x": (2, 3, 4, 5), "y": (4, 6)},
        lambda x, y: [
            paddle.matmul(x, y, transpose_x=True, transpose_y=False),
            paddle.matmul(x, x, transpose_y=True),
            paddle.bmm(x[0], paddle.transpose(x[1], [0, 2, 1])),
        ],
    ),
    "addmm": (M, lambda x, y: paddle.addmm(paddle.full([5], 0.5), x, y)),
    "reduced": (
        X,
        lambda x: [
            paddle.sum(x, [1, 2]), paddle.mean(x), paddle.max(x, -1, keepdim=True),
            paddle.min(x, 1), paddle.prod(x, [0]), paddle.any(truth(x), 1),
            paddle.all(truth(x)), paddle.logsumexp(x, [2, 3]), paddle.amax(x, [1]),
            paddle.argmax(x, 1), paddle.argmin(x), paddle.norm(x, 2, 1),
        ],
    ),
    "ordered": (X, lambda x: [*paddle.topk(x, 3), paddle.argsort(x, 1), paddle.cumsum(x, 2)]),
    "moved": (
        X,
        lambda x: [
            paddle.transpose(x, [0, 2, 3, 1]), paddle.reshape(x, [0, -1]),
            paddle.reshape(x, [-1, 0, 2, 3, 8]), paddle.flatten(x, 1, 2), paddle.flatten(x),
            paddle.squeeze(x[:, :1], 1), paddle.unsqueeze(x, [0, -1]), paddle.unsqueeze(x, [2, 1]),
            paddle.flip(x, [1, 3]), paddle.roll(x, 1, 2),
        ],
    ),
    "cut": (
        X,
        lambda x: [
            x[:, 1:3], x[:, -1], x[:, ::2, None], x[0, :, 2:, 1], x[..., -3:-1],
            paddle.gather(x, paddle.to_tensor([2, 0]), 1), x[:, :, ::-1],
            paddle.index_select(x, paddle.to_tensor([1]), 2),
        ],
    ),
    "joined": (
        X,
        lambda x: [
            paddle.concat([x, x * 2], 1), paddle.stack([x, x], -1), *paddle.split(x, [1, -1], 1),
            *paddle.unbind(x, 1)[:2], *paddle.chunk(x, 3, 2),
        ],
    ),
    "embedding": (
        X,
        lambda x: F.embedding(paddle.cast(x * 4, "int64"), paddle.full([6, 3], 0.5)),
    ),
    "grid": ({"x": (3,), "y": (5,)}, lambda x, y: paddle.meshgrid(x, y)),
    "windows": (
        X,
        lambda x: [
            F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, exclusive=False),
            F.max_pool2d(x, 3, 2, ceil_mode=True), F.adaptive_avg_pool2d(x, [3, 4]),
            F.adaptive_max_pool2d(x, 1), F.adaptive_avg_pool2d(x, [4, 3]),
        ],
    ),
    "convolved": (
        X,
        lambda x: [
            F.conv2d(x, paddle.full([6, 4, 3, 3], 0.1), padding=[1, 0, 2, 1], dilation=2),
            F.conv2d(x, paddle.full([6, 4, 3, 2], 0.1), padding="SAME", stride=2),
            F.conv2d(x, paddle.full([8, 1, 3, 3], 0.1), padding="VALID", groups=4),
            F.conv2d_transpose(x, paddle.full([4, 6, 3, 3], 0.1), stride=2, padding=1),
            F.conv2d_transpose(
                x, paddle.full([4, 6, 3, 3], 0.1), stride=2, padding=1, output_padding=1
            ),
            F.conv1d(x[:, :, 0], paddle.full([2, 4, 3], 0.3)),
        ],
    ),
    "normal": (
        X,
        lambda x: [
            F.layer_norm(x, [8], paddle.full([8], 2.0), paddle.full([8], 1.0)),
            F.layer_norm(x, [6, 8]),
            F.instance_norm(x, weight=paddle.full([4], 2.0), bias=paddle.full([4], 1.0)),
            F.group_norm(x, 2, weight=paddle.full([4], 2.0), bias=paddle.full([4], 1.0)),
            F.softmax(x, 1), F.log_softmax(x), F.normalize(x, axis=1),
        ],
    ),
    "activated": (
        X,
        lambda x: [
            F.relu6(x * 9), F.leaky_relu(x - 0.5), F.elu(x - 0.5), F.hardswish(x * 9 - 4),
            F.hardsigmoid(x * 9 - 4), F.gelu(x), F.gelu(x, approximate=True), F.silu(x),
            F.swish(x), F.mish(x), F.softplus(x), F.softsign(x), F.selu(x), F.celu(x - 0.5),
            F.hardtanh(x * 3 - 1.5), F.log_sigmoid(x), F.tanhshrink(x), F.hardshrink(x),
        ],
    ),
    "functions": (
        X,
        lambda x: [
            f(x)
            for f in (
                paddle.abs, paddle.exp, paddle.log, paddle.sqrt, paddle.rsqrt, paddle.sin,
                paddle.cos, paddle.tan, paddle.asin, paddle.acos, paddle.atan, paddle.sinh,
                paddle.cosh, paddle.tanh, paddle.erf, paddle.floor, paddle.ceil, paddle.round,
                paddle.trunc, paddle.sign, paddle.square, paddle.reciprocal, paddle.expm1,
                paddle.log1p, paddle.log10, paddle.log2, paddle.isnan, paddle.isinf,
                paddle.isfinite,
            )
        ],
    ),
    "padded": (
        X,
        lambda x: [
            F.pad(x, [1, 2, 3, 0]), F.pad(x, [1, 1, 2, 2], mode="reflect"),
            F.pad(x, [0, 0, 1, 0, 0, 1, 2, 0], value=0.5), F.pixel_shuffle(x, 2),
        ],
    ),
    "resized": (
        X,
        lambda x: [
            F.interpolate(x, scale_factor=2), F.interpolate(x, [5, 9], mode="bilinear"),
            F.interpolate(x, [5, 9], mode="bilinear", align_corners=True),
            F.interpolate(x, scale_factor=[2, 3], mode="bilinear", align_mode=1),
        ],
    ),
    "triangles": (X, lambda x: [paddle.tril(x), paddle.triu(x, 1)]),
    "branches": (
        X,
        lambda x: paddle.static.nn.cond(paddle.mean(x) > 0, lambda: x + 1, lambda: x - 1),
    ),
    "loop": (
        X,
        lambda x: paddle.static.nn.while_loop(
            lambda i, s: i < 3,
            lambda i, s: [i + 1, s + s],
            [paddle.full([], 0, "int64"), x],
        ),
    ),
    "literals": (
        X,
        lambda x: [
            paddle.assign(np.array([1.5, 2.0], "float32")) + x[:, :, :, :2],
            paddle.assign(np.array([[True], [False]])),
            paddle.full_like(x, 3.0), paddle.zeros([2, 2]), paddle.arange(0, 10, 2),
            F.one_hot(paddle.cast(x[0, 0] * 3, "int64"), 4),
        ],
    ),
}  # fmt: skip


#: The results of an operator that keeps its operand's shape for training.
SHAPED = ("Out", "XShape")


def old(kind, attrs=None, outs=("Out",), **slots):
    """One operator of an old program: its slots name inputs."""
    return kind, slots, outs, attrs or {}


#: Old programs of one operator: the inputs' shapes by name, and the operator.
OLD = {
    "channel": ({"x": (2, 3, 4, 5), "y": (3,)}, old("elementwise_add", {"axis": 1}, X="x", Y="y")),
    "inner": ({"x": (2, 3, 4, 5), "y": (3, 4)}, old("elementwise_mul", {"axis": 1}, X="x", Y="y")),
    "both_stretch": (
        {"x": (8, 1, 6, 1), "y": (7, 1, 5)},
        old("elementwise_sub", {"axis": 1}, X="x", Y="y"),
    ),
    "smaller_first": (
        {"x": (3,), "y": (2, 3, 4)},
        old("elementwise_max", {"axis": 1}, X="x", Y="y"),
    ),
    "trailing": ({"x": (2, 3, 4), "y": (4,)}, old("elementwise_div", {"axis": -1}, X="x", Y="y")),
    "pow_axis": ({"x": (2, 3), "y": (2,)}, old("elementwise_pow", {"axis": 0}, X="x", Y="y")),
    "less_old": ({"x": (2, 3), "y": (3,)}, old("less_than", {"axis": -1}, X="x", Y="y")),
    "fmax_old": ({"x": (2, 3), "y": (3,)}, old("elementwise_fmax", {"axis": -1}, X="x", Y="y")),
    "old_matmul": (
        {"x": (2, 3, 4), "y": (2, 5, 4)},
        old("matmul_v2", {"trans_x": False, "trans_y": True}, X="x", Y="y"),
    ),
    "old_alpha": (
        {"x": (2, 3, 4), "y": (2, 4, 5)},
        old("matmul", {"transpose_X": False, "transpose_Y": False, "alpha": 0.5}, X="x", Y="y"),
    ),
    "mul": (
        {"x": (2, 3, 4), "y": (12, 5)},
        old("mul", {"x_num_col_dims": 1, "y_num_col_dims": 1}, X="x", Y="y"),
    ),
    "reshape2": (X, old("reshape2", {"shape": [0, -1, 8]}, SHAPED, X="x")),
    "transpose2": (X, old("transpose2", {"axis": [0, 2, 3, 1]}, SHAPED, X="x")),
    "squeeze2": ({"x": (2, 1, 3)}, old("squeeze2", {"axes": [1]}, SHAPED, X="x")),
    "unsqueeze2": (X, old("unsqueeze2", {"axes": [1, 3]}, SHAPED, X="x")),
    "flatten_old": (
        X,
        old("flatten_contiguous_range", {"start_axis": 1, "stop_axis": 2}, SHAPED, X="x"),
    ),
    "slice_old": (
        X,
        old("slice", {"axes": [1], "starts": [1], "ends": [2], "decrease_axis": [1]}, Input="x"),
    ),
    "expand_v2": ({"x": (1, 3)}, old("expand_v2", {"shape": [2, 4, 3]}, X="x")),
    "tile_old": ({"x": (2, 3)}, old("tile", {"repeat_times": [2, 1, 2]}, X="x")),
    "scale_old": (X, old("scale", {"scale": 2.0, "bias": 1.0, "bias_after_scale": False}, X="x")),
    "reduce_mean": (
        X,
        old("reduce_mean", {"dim": [2, 3], "keep_dim": True, "reduce_all": False}, X="x"),
    ),
    "reduce_all": (
        X,
        old("reduce_sum", {"dim": [0], "keep_dim": False, "reduce_all": True}, X="x"),
    ),
    "softmax_old": (X, old("softmax", {"axis": 1}, X="x")),
    "pool_old": (
        X,
        old(
            "pool2d",
            {"ksize": [2, 2], "strides": [2, 2], "paddings": [0, 0], "pooling_type": "avg"},
            X="x",
        ),
    ),
    "conv_old": (
        {"x": (2, 4, 6, 8), "y": (6, 4, 3, 3)},
        old("conv2d", {"strides": [2, 2], "paddings": [1, 1]}, ("Output",), Input="x", Filter="y"),
    ),
    "cast_old": (X, old("cast", {"in_dtype": 5, "out_dtype": 3}, X="x")),
    "clip_old": (X, old("clip", {"min": 0.25, "max": 0.5}, X="x")),
    "concat_old": (
        {"x": (2, 3), "y": (2, 4)},
        old("concat", {"axis": 1}, X=["x", "y"]),
    ),
    "stack_old": ({"x": (2, 3), "y": (2, 3)}, old("stack", {"axis": 1}, ("Y",), X=["x", "y"])),
    "sum_old": ({"x": (2, 3), "y": (2, 3)}, old("sum", {}, X=["x", "y"])),
    "leaky_old": (X, old("leaky_relu", {"alpha": 0.1}, X="x")),
    "hard_swish": (X, old("hard_swish", {}, X="x")),
    "prelu_old": (
        {"x": (2, 4, 6), "y": (1, 4, 1)},
        old("prelu", {"mode": "channel", "data_format": "NCHW"}, X="x", Alpha="y"),
    ),
    "layer_norm_old": (
        {"x": (2, 3, 8), "y": (8,)},
        old(
            "layer_norm", {"begin_norm_axis": 2, "epsilon": 1e-5}, ("Y", "Mean", "Variance"),
            X="x", Scale="y",
        ),
    ),
    "where_old": ({"x": (2, 3), "y": (2, 3)}, old("where", {}, Condition="x>", X="x", Y="y")),
    "shape_old": (X, old("shape", {}, Input="x")),
    "top_old": (
        X,
        old(
            "top_k_v2", {"k": 2, "axis": -1, "largest": True, "sorted": True}, ("Out", "Indices"),
            X="x",
        ),
    ),
    "arg_old": (X, old("arg_max", {"axis": 1, "keepdims": True, "dtype": 3}, X="x")),
}  # fmt: skip


#: Ops whose results cannot be fetched, or are in the file.
_LISTS = ("split", "split_with_num", "unbind", "meshgrid")
UNHELD = {f"pd_op.{name}" for name in ("fetch", "data", "full", "full_int_array", *_LISTS)}
UNHELD |= {"builtin.combine", "builtin.parameter"}
#: Ops whose results after the first are statistics for training.
NORMS = frozenset({"pd_op.layer_norm", "pd_op.instance_norm", "pd_op.group_norm"}) | {
    "pd_op.batch_norm_"
}


def arrays(shapes):
    rng = np.random.default_rng(7)
    return {name: rng.random(shape, np.float32) for name, shape in shapes.items()}


def pir(folder, name, shapes, function):
    main, start = paddle.static.Program(), paddle.static.Program()
    feeds = arrays(shapes)
    with paddle.static.program_guard(main, start):
        inputs = [
            paddle.static.data(
                key, [-1, *shape[1:]] if key == "x" and len(shape) > 1 else shape, "float32"
            )
            for key, shape in shapes.items()
        ]
        results = function(*inputs)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        executor = paddle.static.Executor(paddle.CPUPlace())
        executor.run(start)
        paddle.static.save_inference_model(
            str(folder / name), inputs, results, executor, program=main
        )
    program, names, _ = paddle.static.load_inference_model(str(folder / name), executor)
    text = json.loads((folder / f"{name}.json").read_text())
    numbers = [
        entry["%"]
        for op in text["program"]["regions"][0]["blocks"][0]["ops"]
        for entry in (op["O"] if isinstance(op["O"], list) else [op["O"]])
    ]
    values = [value for op in program.global_block().ops for value in op.results()]
    assert len(numbers) == len(values), (name, len(numbers), len(values))
    wanted = {}
    for number, value in zip(numbers, values, strict=True):
        op = value.get_defining_op()
        held = op.name() not in UNHELD and (op.name() not in NORMS or value.index() == 0)
        if held and value.initialized() and value.is_dense_tensor_type():
            wanted[f"%{number}"] = value
    for op in program.global_block().ops:
        if op.name() == "pd_op.fetch":  # those of the file would be columns beside the wanted ones
            program.global_block().remove_op(op)
    computed = executor.run(
        program, feed={key: feeds[key] for key in names}, fetch_list=[*wanted.values()]
    )
    np.savez(
        folder / f"{name}.npz",
        **{f"in:{key}": array for key, array in feeds.items()},
        **dict(zip(wanted, map(np.asarray, computed), strict=True)),
    )


def program(folder, name, shapes, operator):
    kind, slots, outs, attrs = operator
    feeds = arrays(shapes)
    with paddle.pir_utils.OldIrGuard():
        main, start = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, start):
            block = main.global_block()
            inputs = {
                key: paddle.static.data(key, [-1, *shape[1:]], "float32")
                if key == "x" and name not in ("smaller_first",)
                else paddle.static.data(key, shape, "float32")
                for key, shape in shapes.items()
            }

            def variable(word):
                if not word.endswith(">"):
                    return inputs[word]
                truths = block.create_var(name=f"{word}truth", dtype="bool")
                block.append_op(
                    type="cast",
                    inputs={"X": [inputs[word[:-1]]]},
                    outputs={"Out": [truths]},
                    attrs={"in_dtype": 5, "out_dtype": 0},
                )
                return truths

            given = {
                slot: [variable(word) for word in (words if isinstance(words, list) else [words])]
                for slot, words in slots.items()
            }
            results = [block.create_var(name=f"result_{slot}", dtype="float32") for slot in outs]
            block.append_op(
                type=kind,
                inputs=given,
                outputs={s: [r] for s, r in zip(outs, results, strict=True)},
                attrs=attrs,
            )
            # A weight, so that there is a file of weights.
            weight = paddle.static.create_parameter([3], "float32", name="weight")
            twice = block.create_var(name="twice", dtype="float32")
            block.append_op(
                type="elementwise_add",
                inputs={"X": [weight], "Y": [weight]},
                outputs={"Out": [twice]},
                attrs={"axis": -1},
            )
            fetched = [results[0], twice]
            executor = paddle.static.Executor(paddle.CPUPlace())
            executor.run(start)
            paddle.static.save_inference_model(
                str(folder / name), [*inputs.values()], fetched, executor, program=main
            )
            computed = executor.run(main, feed=feeds, fetch_list=[one.name for one in fetched])
    np.savez(
        folder / f"{name}.npz",
        **{f"in:{key}": array for key, array in feeds.items()},
        **{one.name: np.asarray(value) for one, value in zip(fetched, computed, strict=True)},
    )


if __name__ == "__main__":
    paddle.enable_static()
    paddle.seed(3)
    target = Path(sys.argv[1])
    only = sys.argv[2:]
    for name, (shapes, function) in PIR.items():
        if not only or name in only:
            pir(target, name, shapes, function)
    for name, (shapes, operator) in OLD.items():
        if not only or name in only:
            program(target, name, shapes, operator)
