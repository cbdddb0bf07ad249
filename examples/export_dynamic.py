"""Write the example models of dynamic sizes, exported from PyTorch by both of its exporters.

    python examples/export_dynamic.py           write every file
    python examples/export_dynamic.py --check   run each on other sizes, with ONNX Runtime

An encoder-decoder transformer (batch, source and target length are free) and a U-Net (batch, height
and width). Needs torch, onnx and onnxscript (and onnxruntime to check). The bytes depend on the
release of torch: the files were made with torch 2.13 and onnxscript 0.7.2. Weights are made up.

Of what the exporters write, only the graph is kept: no shapes between inputs and outputs, which are
for a reader to find, no traces of the exporting machine.
"""

from __future__ import annotations

import argparse
import io
import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.checker
import torch
from torch import Tensor, nn
from torch.nn import functional

HERE = Path(__file__).parent

#: Sizes of the transformer: small, and different from one another.
WIDTH, HEADS, HIDDEN, LONGEST, SOURCE_WORDS, TARGET_WORDS = 12, 3, 20, 64, 11, 13
#: Channels of the U-Net's levels.
CHANNELS = (4, 6, 8)


# A transformer.


class Attention(nn.Module):
    """Attention of several heads; a mask is True where nothing may be seen."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key_value = nn.Linear(WIDTH, 2 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        query = self.heads(self.query(x))
        key, value = self.key_value(memory).chunk(2, dim=-1)
        scores = query @ self.heads(key).transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
        scores = scores.masked_fill(mask, -1e4)
        mixed = torch.softmax(scores, dim=-1) @ self.heads(value)
        batch, _, length, _ = mixed.shape
        return self.output(mixed.transpose(1, 2).reshape(batch, length, WIDTH))

    def heads(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        return x.reshape(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)


class Feed(nn.Module):
    """The two layers after attention, normalised and added to what came in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.wide = nn.Linear(WIDTH, HIDDEN)
        self.narrow = nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.narrow(functional.gelu(self.wide(self.norm(x))))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.feed = Feed()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        normal = self.norm(x)
        return self.feed(x + self.attention(normal, normal, mask))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.itself = Attention()
        self.cross_norm = nn.LayerNorm(WIDTH)
        self.cross = Attention()
        self.feed = Feed()

    def forward(self, x: Tensor, memory: Tensor, future: Tensor, padding: Tensor) -> Tensor:
        normal = self.norm(x)
        x = x + self.itself(normal, normal, future)
        x = x + self.cross(self.cross_norm(x), memory, padding)
        return self.feed(x)


class Transformer(nn.Module):
    """Encoder and decoder of two layers each; positions are cut from a table."""

    def __init__(self) -> None:
        super().__init__()
        self.source_words = nn.Embedding(SOURCE_WORDS, WIDTH)
        self.target_words = nn.Embedding(TARGET_WORDS, WIDTH)
        self.positions = nn.Parameter(torch.zeros(LONGEST, WIDTH))
        self.encoders = nn.ModuleList(Encoder() for _ in range(2))
        self.decoders = nn.ModuleList(Decoder() for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, source: Tensor, padding: Tensor, target: Tensor) -> Tensor:
        unseen = padding[:, None, None, :]
        memory = self.source_words(source) + self.positions[: source.shape[1]]
        for encoder in self.encoders:
            memory = encoder(memory, unseen)
        steps = torch.arange(target.shape[1], device=target.device)
        future = steps[None, :] > steps[:, None]
        x = self.target_words(target) * math.sqrt(WIDTH) + self.positions[: target.shape[1]]
        for decoder in self.decoders:
            x = decoder(x, memory, future, unseen)
        return self.norm(x) @ self.target_words.weight.T


# A U-Net.


class Level(nn.Module):
    """Two convolutions, with a normalisation and a gate by channel."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, padding=1)
        self.norm = nn.GroupNorm(2, after)
        self.second = nn.Conv2d(after, after, 3, padding=1)
        self.gate = nn.Conv2d(after, after, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.silu(self.norm(self.first(x)))
        x = functional.silu(self.second(x))
        return x * torch.sigmoid(self.gate(x.mean(dim=(2, 3), keepdim=True)))


class UNet(nn.Module):
    """Down by strides and pooling, up by interpolation to the size of what is concatenated.

    Any height and width will do: what is odd is rounded on the way down, and found again on the
    way up.
    """

    def __init__(self) -> None:
        super().__init__()
        a, b, c = CHANNELS
        self.top = Level(3, a)
        self.down = nn.Conv2d(a, a, 3, stride=2, padding=1)
        self.middle = Level(a, b)
        self.bottom = Level(b, c)
        self.up_middle = Level(b + c, b)
        self.up_top = Level(a + b, a)
        self.head = nn.Conv2d(a, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        top = self.top(image)
        middle = self.middle(self.down(top))
        x = self.bottom(functional.max_pool2d(middle, 2, ceil_mode=True))
        x = functional.interpolate(x, size=middle.shape[-2:], mode="bilinear", align_corners=False)
        x = self.up_middle(torch.cat([x, middle], dim=1))
        x = functional.interpolate(x, size=top.shape[-2:], mode="nearest")
        return self.head(self.up_top(torch.cat([x, top], dim=1)))


# Exporting.


@dataclass(frozen=True)
class Example:
    """A network, and how it is exported.

    `sizes` gives each input's name and its axes, free ones by name. Numbers for those are in `one`
    and, to check, `other`.
    """

    network: nn.Module
    sizes: dict[str, tuple[str | int, ...]]
    one: dict[str, int]
    other: dict[str, int]

    def inputs(self, numbers: dict[str, int]) -> dict[str, Tensor]:
        """Inputs of these sizes."""
        found = {}
        for name, sizes in self.sizes.items():
            shape = [size if isinstance(size, int) else numbers[size] for size in sizes]
            steps = torch.arange(math.prod(shape)).reshape(shape) % 7
            found[name] = steps == 6 if name == "padding" else steps
            if name == "image":
                found[name] = steps.float() / 7
        return found


def examples() -> dict[str, Example]:
    return {
        "transformer": Example(
            Transformer(),
            {
                "source": ("batch", "source_length"),
                "padding": ("batch", "source_length"),
                "target": ("batch", "target_length"),
            },
            {"batch": 2, "source_length": 5, "target_length": 9},
            {"batch": 3, "source_length": 6, "target_length": 4},
        ),
        "unet": Example(
            UNet(),
            {"image": ("batch", 3, "height", "width")},
            {"batch": 2, "height": 20, "width": 28},
            {"batch": 1, "height": 13, "width": 18},
        ),
    }


def models() -> Iterator[tuple[str, Example, onnx.ModelProto]]:
    """Each file's name, what it was made from, and its content."""
    for name, example in examples().items():
        steady(example.network)
        yield f"{name}_dynamic.onnx", example, stripped(exported(example))
        yield f"{name}_dynamic_script.onnx", example, stripped(scripted(example))


def steady(network: nn.Module) -> None:
    """Gives weights that are the same everywhere, without a random generator."""
    network.eval()
    with torch.no_grad():
        for k, parameter in enumerate(network.parameters()):
            steps = (torch.arange(parameter.numel()) * 37 + k * 11) % 64
            parameter.copy_(((steps - 32) / 128).reshape(parameter.shape))


def exported(example: Example) -> onnx.ModelProto:
    """By the exporter that traces with torch.export."""
    dimensions = {
        name: torch.export.Dim(name, min=2, max=LONGEST if "length" in name else None)
        for name in example.one
    }
    dynamic = {
        name: {axis: dimensions[s] for axis, s in enumerate(sizes) if isinstance(s, str)}
        for name, sizes in example.sizes.items()
    }
    program = torch.onnx.export(
        example.network,
        kwargs=example.inputs(example.one),
        dynamo=True,
        dynamic_shapes=dynamic,
        output_names=["output"],
        verbose=False,
    )
    assert program is not None
    return program.model_proto


def scripted(example: Example) -> onnx.ModelProto:
    """By the older exporter, through TorchScript."""
    buffer = io.BytesIO()
    axes = {
        name: {axis: size for axis, size in enumerate(sizes) if isinstance(size, str)}
        for name, sizes in example.sizes.items()
    }
    torch.onnx.export(
        example.network,
        tuple(example.inputs(example.one).values()),
        buffer,
        dynamo=False,
        input_names=list(example.sizes),
        output_names=["output"],
        dynamic_axes=axes,
        opset_version=18,
    )
    return onnx.load_from_string(buffer.getvalue())


def stripped(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without shapes in between, and without what the exporters add for people."""
    del model.graph.value_info[:]
    parts: list[Any] = [model, model.graph, *model.functions]
    graphs = [model.graph]
    while graphs:
        graph = graphs.pop()
        parts += [graph, *graph.input, *graph.output, *graph.node, *graph.initializer]
        for node in graph.node:
            graphs += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    for part in parts:
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    onnx.checker.check_model(model)
    return model


def check(model: onnx.ModelProto, example: Example) -> None:
    """Compares ONNX Runtime with PyTorch on other sizes."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString())
    for numbers in (example.one, example.other):
        inputs = example.inputs(numbers)
        with torch.no_grad():
            expected = example.network(**inputs).numpy()
        found = session.run(None, {name: value.numpy() for name, value in inputs.items()})[0]
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the example models of dynamic sizes.")
    parser.add_argument("--check", action="store_true", help="run the files, do not write them")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    for name, example, model in models():
        path = HERE / name
        if options.check:
            check(onnx.load(path), example)
            print(f"{name}: as PyTorch at two sizes")
        else:
            path.write_bytes(model.SerializeToString(deterministic=True))
            print(f"{name}: {path.stat().st_size} bytes, {len(model.graph.node)} nodes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
