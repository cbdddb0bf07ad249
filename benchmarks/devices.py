"""python -m benchmarks devices: fused functions of PyTorch's tensors on an NVIDIA GPU.

Each row is an expression of `fused.rows`, with its first axis longer, so that memory sets the
limit. zerostride's fused function, PyTorch's eager functions, and both under torch.compile are
timed in turns in one process. The limit is the time that a copy on the device takes for the bytes
of the operands and the result.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .archive import HERE, RESULTS
from .fused.rows import FusedRow, choose
from .printing import NONE, markdown, new_console, new_table
from .rows import VIEWS, Operand, make_operands
from .timing import Rounds, in_turns

#: The elements of a result at least: far more bytes than a GPU's caches hold.
_ELEMENTS = 1 << 26
_COPIED = 1 << 30
_SAMPLE_SECONDS = 2e-3
_ROUNDS = Rounds(most=30, seconds=3.0, least=8)
#: Of elements in units of the result's root mean square.
_TOLERANCE = {"float32": 4e-5, "bfloat16": 8e-3}
_ROWS = (
    "small_chain,affine,scale_shift_relu,gelu_bias,gate,squared_distance,softmax,layer_norm,masked,"
    "residual_rms_norm,alternating,model_silu,model_batch_norm_hard_swish"
)
#: The row whose calls are all overhead: it stays small.
_SMALL = "small_chain"
WAYS = ("zerostride", "zerostride compiled", "torch", "torch compiled")


@dataclass(frozen=True)
class DeviceResult:
    """A row's microseconds by way, and the limit's; `failed` has what a way raised."""

    row: str
    microseconds: Mapping[str, float]
    limit: float | None
    failed: Mapping[str, str]


def longer(row: FusedRow) -> FusedRow:
    """The row with a first axis so long that the result has _ELEMENTS elements."""
    times = -(-_ELEMENTS // math.prod(row.shape))
    rank = max(len(operand.shape) for operand in row.operands)

    def grown(operand: Operand) -> Operand:
        first, *rest = operand.shape or (1,)
        if len(operand.shape) < rank or (first == 1 and row.shape[0] > 1):
            return operand
        if operand.view:  # transposed: its last axis is the result's first
            *rest, last = operand.shape
            return replace(operand, shape=(*rest, last * times))
        return replace(operand, shape=(first * times, *rest))

    shape = (row.shape[0] * times, *row.shape[1:])
    return replace(row, operands=tuple(map(grown, row.operands)), shape=shape)


def _tensors(row: FusedRow) -> tuple[Any, ...]:
    from .peers.torch_ import to_tensor

    bases, _ = make_operands(row)
    pairs = zip(row.operands, bases, strict=True)
    return tuple(VIEWS[operand.view](to_tensor(base).to("cuda")) for operand, base in pairs)


def _ways(row: FusedRow) -> dict[str, Callable[..., Any]]:
    import torch

    from .fused.peers import torch_, zerostride_

    def expression(*tensors: Any) -> Any:
        return row.function(torch_.FUNCTIONS, *tensors)

    fused = zerostride_.fused_function(row)
    return {
        "zerostride": fused,
        "zerostride compiled": torch.compile(lambda *tensors: fused(*tensors)),
        "torch": expression,
        "torch compiled": torch.compile(expression),
    }


def _difference(row: FusedRow, result: Any, tensors: Sequence[Any]) -> float:
    """The largest error, in units of the row's tolerance."""
    import torch

    from .fused.peers import torch_

    wide = replace(torch_.FUNCTIONS, real=torch.float64, bfloat16=torch.float64)
    wide_tensors = [x.double() if x.is_floating_point() else x for x in tensors]
    expected = row.function(wide, *wide_tensors)
    assert tuple(result.shape) == row.shape, (tuple(result.shape), row.shape)
    scale = expected.abs() + expected.square().mean().sqrt()
    worst = ((result.double() - expected).abs() / scale).max()
    return float(worst) / _TOLERANCE[row.dtype]


def _sampler(function: Callable[[], Any]) -> Callable[[], float]:
    import torch

    def seconds(count: int) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for _ in range(count):
            function()
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3

    seconds(3)
    count = max(3, int(_SAMPLE_SECONDS / max(seconds(5) / 5, 1e-7)))
    return lambda: seconds(count) / count


def copied_seconds_of_a_byte() -> float:
    """Seconds of a copy on the device for each byte that it reads or writes."""
    import torch

    source = torch.ones(_COPIED // 4, device="cuda")
    target = torch.empty_like(source)
    sample = _sampler(lambda: target.copy_(source))
    return float(np.median([sample() for _ in range(9)])) / (2 * _COPIED)


def measure(row: FusedRow, seconds_of_a_byte: float) -> DeviceResult:
    """The row's times; a way that fails or is wrong is in `failed`."""
    import torch

    if row.name != _SMALL:
        row = longer(row)
    torch._dynamo.reset()  # else later rows are compiled for open sizes, or not at all
    tensors, samplers, failed = _tensors(row), {}, {}
    moved = 0
    for way, function in _ways(row).items():
        try:
            result = function(*tensors)
            error = _difference(row, result, tensors)
        except Exception as caught:  # noqa: BLE001 - of any library, and shown
            failed[way] = f"{type(caught).__name__}: {str(caught).strip().splitlines()[0][:200]}"
            continue
        if error > 1:
            failed[way] = f"wrong by {error:.1f} tolerances"
            continue
        moved = sum(t.numel() * t.element_size() for t in (*tensors, result))
        samplers[way] = _sampler(lambda function=function: function(*tensors))
        del result
    times = in_turns(samplers, _ROUNDS)
    torch.cuda.empty_cache()
    medians = {way: float(np.median(seconds)) * 1e6 for way, seconds in times.items()}
    limit = None if row.name == _SMALL else moved * seconds_of_a_byte * 1e6
    return DeviceResult(row.name, medians, limit, failed)


def _table(results: Sequence[DeviceResult]) -> list[list[str]]:
    head = ["µs a call", *WAYS, "limit", "torch / zerostride", "compiled: torch / zerostride"]
    rows = [head]
    for one in results:
        times = [one.microseconds.get(way) for way in WAYS]
        cells = [NONE if value is None else f"{value:.0f}" for value in (*times, one.limit)]
        ratios = [_ratio(times[2], times[0]), _ratio(times[3], times[1])]
        rows.append([one.row, *cells, *ratios])
    return rows


def _ratio(above: float | None, below: float | None) -> str:
    return NONE if above is None or below is None else f"{above / below:.2f}"


def _page(results: Sequence[DeviceResult], device: str, speed: float, command: str) -> str:
    import torch

    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    failed = [f"- {one.row}, {way}: {why}" for one in results for way, why in one.failed.items()]
    return "\n".join(
        [
            f"# Fused functions on {device}",
            "",
            f"Made by `{command}` on {date} (PyTorch {torch.__version__}); not edited by hand.",
            "",
            "Microseconds of one call with tensors on the device, the median of the rounds."
            " *limit*: the bytes of the operands and the result at the speed of a copy,"
            f" {speed:.2f} TB/s."
            " *compiled*: under `torch.compile`. The first axis of a row is longer than in the"
            f" tables of processors, for a result of {_ELEMENTS >> 20} million elements; not of"
            f" `{_SMALL}`.",
            "",
            *markdown(_table(results)),
            *(["", "Left out:", "", *failed] if failed else []),
            "",
        ]
    )


def main(arguments: Sequence[str]) -> int:
    """The command; exit status 2 without a GPU."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks devices",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default=_ROWS, help="patterns of rows, parted by commas")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--write", action="store_true", help="write results/DEVICE/DEVICE.md")
    options = parser.parse_args(arguments)
    import torch

    if not torch.cuda.is_available():
        print("PyTorch finds no CUDA device here")
        return 2
    torch.set_grad_enabled(False)
    device = torch.cuda.get_device_name()
    per_byte = copied_seconds_of_a_byte()
    results = []
    for row in choose(options.only):
        results.append(measure(row, per_byte))
        print(results[-1], flush=True)
    if options.json:
        print(json.dumps([asdict(one) for one in results], indent=1))
    else:
        head, *body = _table(results)
        new_console().print(new_table(head, body))
    if options.write:
        slug = "-".join(re.findall(r"[a-z0-9]+", device.lower()))
        path = HERE / RESULTS / slug / "DEVICE.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        command = shlex.join(["python", "-m", "benchmarks", "devices", *arguments])
        path.write_text(_page(results, device, 1e-12 / per_byte, command), "utf-8")
        print(f"wrote {path}")
    return 0
