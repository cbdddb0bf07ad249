"""Hostile OpenVINO IR files: an audit gives a Report or one clear error for any file.

    python tests/fuzz/fuzz_ir.py --cases 100000 --seed 0
    python tests/fuzz/fuzz_ir.py --seed 0 --case 4711     # one case again, with its traceback

Files are small IRs of many ops, with bodies, ranges, constants and fragments, mutated: bytes,
attributes, elements moved, doubled, dropped and nested, numbers that no file should hold. A case
fails if it raises anything but the errors that the package promises, lets a control character
through to a terminal, takes longer than 10 s, needs more than a GiB, or kills the process.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import harness
import numpy as np
from hostile_files import audited, ended, scratch
from ir_models import Ir, binary, broadcast, port

from zerostride import ZerostrideError
from zerostride.models.formats import read_model
from zerostride.models.formats.openvino import edit, find_site
from zerostride.models.formats.openvino.opsets import OPS
from zerostride.models.ir.rewrite import SELF, Earlier, Input, Rewrite, RewriteStep

NUMBERS = (
    *("0", "1", "-1", "2", "3", "5", "7", "16", "255", "2147483648", "9223372036854775807"),
    *(
        "9223372036854775808",
        "-9223372036854775808",
        "1e9",
        "0x10",
        "",
        " ",
        "?",
        "1..10",
        "..",
        "10..1",
    ),
    *("4" * 30, "9" * 5000, "1,2", "1, 2, 3", "-0", "+1", "٣", "NaN", "inf"),
)
TEXTS = (
    *("", "x", "a" * 300, "&#10;", "&#27;[31m", "../../etc/passwd", "ünïcödé", "none", "numpy"),
    *(
        "pdpd",
        "explicit",
        "bidirectional",
        "opset1",
        "opset3",
        "opset99",
        "extension",
        "f32",
        "i64",
    ),
    *("u4", "string", "boolean", "body", "FP32", "&lt;", "&entity;", "...", "true", "false"),
)
#: What a well-formed file may hold, if not there.
SMALL = (
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "8",
    "16",
    "-1",
    "?",
    "1..10",
    "numpy",
    "pdpd",
    "none",
    "true",
)
#: Larger texts are slower to mutate and hold nothing that smaller ones do not.
LARGEST = 15_000
NAMES = (
    *("id", "name", "type", "version", "shape", "offset", "size", "element_type", "mode", "axis"),
    *("auto_broadcast", "auto_broadcast.auto_broadcast_axis", "from-layer", "to-port", "precision"),
    *("external_port_id", "internal_layer_id", "special_zero", "transpose_a", "begin_mask"),
)
ATTRIBUTE = re.compile(r'(?<![\w.-])([\w.-]{1,60})="([^"]*)"')
TAG = re.compile(r"<(/?)(\w+)[^<>]*?(/?)>")
DOCTYPE = '<!DOCTYPE net [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


def body_of(kind: str, number: int, place: str) -> str:
    """A layer with one body that adds a constant-free pair."""
    inner = (
        f'<{place}><layers><layer id="0" name="p" type="Parameter" version="opset1">'
        f'<data shape="2,3" element_type="f32"/><output>{port(0, (2, 3))}</output></layer>'
        f'<layer id="1" name="inner" type="Add" version="opset1"><data auto_broadcast="numpy"/>'
        f"<input>{port(0, (2, 3))}{port(1, (2, 3))}</input><output>{port(2, (2, 3))}</output>"
        f'</layer><layer id="2" name="r" type="Result" version="opset1"><input>{port(0, (2, 3))}'
        f'</input></layer></layers><edges><edge from-layer="0" from-port="0" to-layer="1" '
        f'to-port="0"/><edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>'
        f'<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/></edges></{place}>'
    )
    maps = place.replace("body", "port_map")
    return (
        f'<{maps}><input external_port_id="{number}" internal_layer_id="0"/>'
        f'<output external_port_id="{number + 1}" internal_layer_id="2"/></{maps}>{inner}'
    )


def corpus() -> list[tuple[str, bytes]]:
    """Text and weights of the files that are mutated."""
    made: list[Ir] = []
    data = 'auto_broadcast="pdpd" auto_broadcast.auto_broadcast_axis="1"'
    made.append(binary("Add", (2, 3, 4, 5), (3, 4), data, result=(2, 3, 4, 5)))
    made.append(binary("Multiply", ("?", 3, "1..10"), (3, 1), "", 10, ("?", 3, "?")))
    made.append(broadcast((16,), (1, 16, 5, 5), "explicit", (1,), result=(1, 16, 5, 5)))
    made.append(broadcast((16, 1, 1), (1, 1, 5, 5), "bidirectional", result=(1, 16, 5, 5)))
    big = Ir()
    x = big.parameter("x", ("?", 3, 8, 8))
    scale = big.constant("scale", np.ones((3, 1, 1), np.float32))
    a = big.layer("mul", "Multiply", (x, scale), ("?", 3, 8, 8), 'auto_broadcast="numpy"')
    s = big.layer("shape", "ShapeOf", (a,), (4,), 'output_type="i64"', "opset3", "i64")
    zero, one = (big.constant(n, np.array(v, np.int64)) for n, v in (("zero", 0), ("one", [1])))
    g = big.layer("gather", "Gather", (s, one, zero), (1,), 'batch_dims="0"', "opset8", "i64")
    tail = big.constant("tail", np.array([64], np.int64))
    t = big.layer("cat", "Concat", (g, tail), (2,), 'axis="0"', "opset1", "i64")
    minus = big.constant("minus", np.array([-1, 3, 64], np.int64))
    r = big.layer("re", "Reshape", (a, minus), ("?", 3, 64), 'special_zero="true"')
    b = big.layer("bc", "Broadcast", (r, t), ("?", 3, 64), 'mode="bidirectional"', "opset3")
    big.result(big.layer("sum", "ReduceMean", (b, one), ("?", 1, 64), 'keep_dims="true"'))
    w = big.constant("w", np.ones((4, 3, 3, 3), np.float32))
    said = 'strides="1, 1" pads_begin="1, 1" pads_end="1, 1" dilations="1, 1" auto_pad="explicit"'
    conv = big.layer("conv", "Convolution", (a, w), ("?", 4, 8, 8), said)
    slope = big.constant("slope", np.ones(4, np.float32))
    big.result(big.layer("prelu", "PReLU", (conv, slope), ("?", 4, 8, 8)))
    bounds = [
        big.constant(f"b{k}", np.array(v, np.int64)) for k, v in enumerate(([0, 1], [0, 2], [1, 1]))
    ]
    said = 'begin_mask="1,0" end_mask="1,0" shrink_axis_mask="0,1" ellipsis_mask="0,0"'
    big.result(big.layer("cut", "StridedSlice", (a, *bounds), ("?", 8, 8), said))
    made.append(big)
    nested = Ir()
    cond, y = nested.parameter("cond", (), "boolean"), nested.parameter("y", (2, 3))
    both = body_of("If", 1, "then_body") + body_of("If", 1, "else_body")
    i = nested.layer("if", "If", (cond, y), (2, 3), "", "opset8", "f32", both)
    trips, go = nested.constant("n", np.array(3, np.int64)), nested.constant("go", np.array(True))
    inside = (
        body_of("Loop", 2, "body") + '<back_edges><edge from-layer="2" to-layer="0"/></back_edges>'
    )
    nested.result(nested.layer("loop", "Loop", (trips, go, i), (2, 3), "", "opset5", "f32", inside))
    made.append(nested)
    select = Ir()
    given = [select.parameter("c", (3, 1), "boolean"), *(select.parameter(n, (3, 4)) for n in "ab")]
    select.result(
        select.layer("sel", "Select", given, (3, 4), 'auto_broadcast="numpy"', kind="f32")
    )
    made.append(select)
    files = [(one.text, bytes(one.weights)) for one in made]
    says = "<!--The tensor contains 2 elements: [16, 5] -->"
    third = '<port id="1"><dim>1</dim><!-- contains 1 elements: [0] --></port>'
    fragment = "".join(
        f'<layer ... type="Broadcast" ...>\n<data mode="{mode}"/>\n<input>\n'
        f'<port id="0"><dim>16</dim></port>\n<port id="1"><dim>2</dim> {says}</port>{more}\n'
        f'</input>\n<output><port id="2"><dim>16</dim><dim>5</dim></port></output>\n</layer>\n'
        for mode, more in (("numpy", ""), ("explicit", third))
    )
    return [*files, (fragment, b"")]


FILES = corpus()
OPSLIST = tuple(sorted(OPS))


def elements(text: str) -> list[tuple[int, int]]:
    """Where the elements of a text are, found in one pass."""
    found, opened = [], []
    for tag in TAG.finditer(text):
        if tag[1]:
            while opened:
                name, start = opened.pop()
                if name == tag[2]:
                    found.append((start, tag.end()))
                    break
        elif tag[3]:
            found.append((tag.start(), tag.end()))
        else:
            opened.append((tag[2], tag.start()))
    return [piece for piece in found if piece[1] - piece[0] < 3000]


def mutated(rng: random.Random, text: str) -> bytes:
    """The text with attributes, elements or bytes changed."""
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        if len(text) > LARGEST:
            break
        action = rng.randrange(10)
        found = list(ATTRIBUTE.finditer(text))
        if action < 4 and found:
            one = rng.choice(found)
            values = OPSLIST if one[1] == "type" else rng.choice((SMALL, SMALL, NUMBERS, TEXTS))
            name = rng.choice(NAMES) if rng.random() < 0.1 else one[1]
            text = f'{text[: one.start()]}{name}="{rng.choice(values)}"{text[one.end() :]}'
        elif action == 4:
            sizes = list(re.finditer(r"<dim>([^<]*)</dim>", text))
            if sizes:
                one = rng.choice(sizes)
                size = rng.choice(rng.choice((SMALL, NUMBERS)))
                text = text[: one.start(1)] + size + text[one.end(1) :]
        elif action < 8:
            pieces = elements(text)
            if not pieces:
                continue
            (start, stop), (at, _) = rng.choice(pieces), rng.choice(pieces)
            piece = text[start:stop]
            if action == 5:
                text = text[:start] + text[stop:]
            elif action == 6:
                text = text[:at] + piece * rng.choice((1, 1, 2, 20)) + text[at:]
            else:
                depth = rng.choice((1, 3, 10, 120))
                tag = rng.choice(("layer", "body", "layers", "input", "port", "rt_info"))
                around = f"<{tag}>" * depth, f"</{tag}>" * depth
                text = text[:start] + piece.join(around) + text[stop:]
        elif action == 8:
            at = rng.randrange(len(text) + 1)
            text = (
                text[:at]
                + rng.choice((DOCTYPE, "&b;", "<!--", "]]>", "<?pi?>", "\x00", "\ufffe"))
                + text[at:]
            )
    data = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.15:
        whole = bytearray(data)
        for _ in range(rng.choice((1, 2, 10))):
            at = rng.randrange(len(whole) + 1)
            kind = rng.randrange(4)
            if kind == 0:
                del whole[at:]
            elif kind == 1:
                whole[at : at + 1] = bytes([rng.randrange(256)])
            elif kind == 2:
                del whole[at : at + rng.randrange(40)]
            else:
                whole[at:at] = rng.randbytes(rng.choice((1, 4, 16)))
        data = bytes(whole)
    if rng.random() < 0.02:
        data = data.decode("utf-8", "replace").encode(
            rng.choice(("utf-16", "utf-32", "latin-1")), "replace"
        )
    return data


def case(seed: int, number: int) -> tuple[bytes, bytes | None]:
    """The .xml and the .bin of a case; None for no .bin."""
    rng = random.Random(f"{seed}/{number}")
    text, weights = rng.choice(FILES)
    data = mutated(rng, text)
    kind = rng.randrange(8)
    if kind == 0:
        return data, None
    if kind == 1:
        return data, weights[: rng.randrange(len(weights) + 1)]
    return data, weights + bytes(rng.choice((0, 0, 64)))


def edited(path: Path) -> None:
    """Every site's operands get an axis more, and the file is read again."""
    graph = read_model(path)
    rewrites = []
    for node in graph.nodes:
        site = find_site(node)
        if site is None or len(node.inputs) != 2:
            continue
        lift = tuple(RewriteStep("unsqueeze", (Input(k),), axes=(0,)) for k in (0, 1))
        rewrites.append(Rewrite(node.place or (), (*lift, SELF(Earlier(0), Earlier(1)))))
    editor = edit(path)
    editor.apply(rewrites)
    path.with_name("out.bin").unlink(missing_ok=True)
    read_model(editor.save(path.with_name("out.xml"))[0])


def run_case(seed: int, number: int) -> str:
    """How a case ended."""
    path = scratch() / "case.xml"
    data, weights = case(seed, number)
    path.write_bytes(data)
    path.with_suffix(".bin").unlink(missing_ok=True)
    if weights is not None:
        path.with_suffix(".bin").write_bytes(weights)
    return ended(path, lambda: use(path, number))


def use(path: Path, number: int) -> tuple[str, str]:
    """Audits the file, reads its data, and sometimes rewrites it; the outcome, and what it said."""
    graph, outcome, said = audited(path, number)
    for value in graph.values():
        if value.source is not None:
            try:
                value.data()
            except ZerostrideError as error:
                said += str(error)
    if number % 4 == 0:
        edited(path)
    return outcome, said


if __name__ == "__main__":
    sys.exit(harness.main(__file__, run_case, __doc__.splitlines()[0]))
