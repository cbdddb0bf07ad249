"""The cost of strict mode's watch of PyTorch: training steps in `zs.strict()` and outside.

    python -m benchmarks.strict_torch

Both run in one process, step by step in turn, with one thread; the medians of 300 steps are
compared. An operation costs about a microsecond more, because PyTorch calls the mode.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import nn

import zerostride as zs

#: Steps of each kind; the first ones are not counted.
STEPS, FIRST = 300, 20
Step = Callable[[], None]


def mlp(width: int, batch: int) -> Step:
    """Three layers and Adam."""
    layers = [nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, 1))
    x, y = torch.rand(batch, 64), torch.rand(batch, 1)
    return _training(model, x, y, torch.optim.Adam(model.parameters()))


def transformer() -> Step:
    """Two layers of an encoder, and AdamW."""
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x = torch.rand(8, 64, 128)
    return _training(model, x, x, torch.optim.AdamW(model.parameters()))


def convolutions() -> Step:
    """Convolutions, batch normalisation and SGD."""
    layers = [nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3)]
    model = nn.Sequential(*layers, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    x, y = torch.rand(8, 3, 32, 32), torch.rand(8, 32)
    return _training(model, x, y, torch.optim.SGD(model.parameters(), momentum=0.9))


def _training(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, optimizer: torch.optim.Optimizer
) -> Step:
    def step() -> None:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()

    return step


CASES: dict[str, Callable[[], Step]] = {
    "MLP, 128 wide, batch 256": lambda: mlp(128, 256),
    "MLP, 192 wide, batch 256": lambda: mlp(192, 256),
    "convolutions, 8 images of 32 x 32": convolutions,
    "transformer, 2 layers, 8 x 64 tokens": transformer,
}


def measure(step: Step) -> tuple[float, float]:
    """Medians of seconds: outside of strict mode, and in it."""

    def timed() -> float:
        start = time.perf_counter()
        step()
        return time.perf_counter() - start

    plain, watched = [], []
    for k in range(FIRST + STEPS):
        outside = timed()
        with zs.strict():
            inside = timed()
        if k >= FIRST:
            plain.append(outside)
            watched.append(inside)
    return statistics.median(plain), statistics.median(watched)


def main(_arguments: list[str]) -> int:
    """Prints a table: milliseconds of a step, and their ratio."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"{'training step':<38} {'plain':>8} {'watched':>8} {'ratio':>6}  (ms)")
    for name, make in CASES.items():
        plain, watched = measure(make())
        print(f"{name:<38} {plain * 1e3:8.3f} {watched * 1e3:8.3f} {watched / plain:6.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
