"""python -m benchmarks dask: fused functions of Dask arrays compared with dask.array's expressions.

On one machine the two take turns, on the same chunks and the same threads; on worker processes (a
cluster on this machine) each computes the same sum of chunks that lie in the workers' memory. A
separate process reduces 20 GB that are never held at once. Results are compared first. The times of
more machines are calculated from these figures and the stated assumptions.
"""

from __future__ import annotations

import argparse
import datetime
import json
import logging
import re
import shlex
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import zerostride as zs

from . import machine
from .children import in_fresh_process
from .printing import markdown, new_console, new_table

#: What a fused chain is to be ahead by.
GOAL = 1.5
GB = 10**9
_STATUS = Path("/proc/self/status")
_COLUMNS = 4096
#: What the calculation takes of machines that are not here.
CORES, MEMORY, LINK = 32, 200e9, 25e9 / 8
#: Bytes of a chunk there, and of the array.
CHUNK, ARRAY = 128 << 20, 10**12


def chain(x: Any, mean: Any, scale: Any, gamma: Any, beta: Any) -> Any:
    """Normalisation by what is known already."""
    return (x - mean) * scale * gamma + beta


def gelu(x: Any) -> Any:
    """The tanh approximation."""
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * (x * x * x))))


def softmax(x: Any) -> Any:
    """Along rows."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    """Along rows."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * gamma + beta


#: The functions, with the names of their operands.
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "chain": (chain, ("x", "mean", "scale", "gamma", "beta")),
    "gelu": (gelu, ("x",)),
    "softmax": (softmax, ("x",)),
    "layer norm": (layer_norm, ("x", "gamma", "beta")),
}


@dataclass(frozen=True)
class Pair:
    """Seconds of one function."""

    function: str
    #: "stored" in an array, or "summed".
    to: str
    workers: int
    megabytes: int
    dask: float
    zerostride: float

    @property
    def ratio(self) -> float:
        """By how much zerostride is ahead."""
        return self.dask / self.zerostride

    @property
    def rate(self) -> float:
        """Gigabytes of the operand a second."""
        return self.megabytes / 1e3 / self.zerostride


@dataclass(frozen=True)
class Reduced:
    """The result of reducing an array that is never held at once."""

    gigabytes: float
    right: bool
    seconds: float
    #: Bytes that the process had resident at most.
    peak: int


@dataclass
class Figures:
    """Everything that was measured."""

    threads: list[Pair] = field(default_factory=list)
    workers: list[Pair] = field(default_factory=list)
    reduced: Reduced | None = None
    #: Seconds that the scheduler takes for a task.
    task: float = 0.0


def _operands(rows: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    x = rng.random((rows, _COLUMNS), np.float32)
    return {
        "x": x,
        "mean": x.mean(1, keepdims=True),
        "scale": 1 / x.std(1, keepdims=True),
        "gamma": rng.random(_COLUMNS, np.float32),
        "beta": rng.random(_COLUMNS, np.float32),
    }


def _lazy(arrays: dict[str, np.ndarray[Any, Any]], chunk: int) -> dict[str, Any]:
    import dask.array as da

    return {
        name: da.from_array(one, chunks=(chunk, -1) if one.ndim == 2 else -1)
        for name, one in arrays.items()
    }


def _total(array: Any) -> Any:
    """The sum, by whoever made the array."""
    return zs.sum(array) if "zerostride" in array.name else array.sum()


def _both(run: Callable[[Callable[..., Any]], Any], function: Any, rounds: int) -> list[float]:
    """Seconds of dask.array's own and of ours, in turns: the medians."""
    fused = zs.fuse(function)
    np.testing.assert_allclose(run(function), run(fused), rtol=1e-3, atol=1e-3)
    times: dict[Any, list[float]] = {function: [], fused: []}
    for _ in range(rounds):
        for one, found in times.items():
            begin = time.perf_counter()
            run(one)
            found.append(time.perf_counter() - begin)
    return [statistics.median(found) for found in times.values()]


def on_threads(names: Sequence[str], megabytes: int, rounds: int) -> list[Pair]:
    """Each function on one machine's threads."""
    import dask
    import dask.array as da

    rows = max(64, megabytes * 10**6 // (4 * _COLUMNS))
    arrays = _operands(rows)
    lazy = _lazy(arrays, max(1, min(512, rows // 8)))
    out = np.empty_like(arrays["x"])
    workers = machine.processors()
    found = []
    with dask.config.set(scheduler="threads", num_workers=workers):
        for name in names:
            function, operands = FUNCTIONS[name]
            given = [lazy[one] for one in operands]

            def store(one: Any, given: Any = given) -> Any:
                da.store(one(*given), out, lock=False)
                return out[::97].copy()

            def total(one: Any, given: Any = given) -> Any:
                return _total(one(*given)).compute()

            for to, run in (("stored", store), ("summed", total)):
                size = arrays["x"].nbytes // 10**6
                found.append(Pair(name, to, workers, size, *_both(run, function, rounds)))
    return found


def on_workers(counts: Sequence[int], megabytes: int, rounds: int) -> tuple[list[Pair], float]:
    """The sum of a chain on worker processes of one thread each; seconds of an empty task."""
    import dask.array as da
    import distributed

    rows = max(64, megabytes * 10**6 // (4 * _COLUMNS))
    chunk = max(1, min(512, rows // 8))
    found, per_task = [], 0.0
    for count in counts:
        with (
            distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            client.wait_for_workers(count)
            x = da.random.default_rng(0).random((rows, _COLUMNS), np.float32, chunks=(chunk, -1))
            lazy = {"x": client.persist(x)}
            distributed.wait(lazy["x"])
            for name, shape in (("mean", (rows, 1)), ("scale", (rows, 1))):
                lazy[name] = client.persist(da.full(shape, 0.5, np.float32, chunks=(chunk, 1)))
            lazy |= {"gamma": np.float32(2), "beta": np.float32(1)}
            for name in ("chain", "gelu"):
                function, operands = FUNCTIONS[name]
                given = [lazy[one] for one in operands]

                def total(one: Any, given: Any = given) -> Any:
                    return _total(one(*given)).compute()

                size = x.nbytes // 10**6
                found.append(Pair(name, "summed", count, size, *_both(total, function, rounds)))
            begin = time.perf_counter()
            client.gather(client.map(abs, range(1000)))
            per_task = (time.perf_counter() - begin) / 1000
    return found, per_task


def reduced(gigabytes: float) -> Reduced:
    """Sums the first odd numbers, which is a square, of an array that is made chunk by chunk."""
    import dask
    import dask.array as da

    elements = int(gigabytes * GB) // 8
    numbers = da.arange(elements, chunks=8 << 20, dtype="int64")
    begin = time.perf_counter()
    with dask.config.set(scheduler="threads", num_workers=machine.processors()):
        total = int(zs.fuse(lambda x: (x * 2 + 1).sum())(numbers).compute())
    seconds = time.perf_counter() - begin
    peak = re.search(r"VmHWM:\s*(\d+) kB", _STATUS.read_text())
    assert peak is not None
    return Reduced(gigabytes, total == elements**2, seconds, int(peak[1]) << 10)


# Beyond


@dataclass(frozen=True)
class Beyond:
    """Seconds of one pass over ARRAY bytes on some machines."""

    machines: int
    from_memory: float
    over_network: float
    scheduler: float
    rechunked: float


def beyond(figures: Figures, machines: int) -> Beyond:
    """The calculation: what a task reads and writes, at the rate of whatever is the bottleneck."""
    one = max(pair.rate / pair.workers for pair in figures.threads if pair.function == "chain")
    rate = min(CORES * one * GB, MEMORY) * machines
    return Beyond(
        machines,
        ARRAY / rate,
        ARRAY / min(rate, LINK * machines),
        # A task a chunk, and an eighth of one for each level of the tree.
        ARRAY / CHUNK * 8 / 7 * figures.task,
        # Of a chunk on W machines, W - 1 parts go to others.
        ARRAY * (machines - 1) / machines / (LINK * machines) + ARRAY / rate,
    )


# The command


def main(arguments: Sequence[str]) -> int:
    """The command: 1 if a result is wrong, or what a goal is for falls short of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks dask", description=__doc__)
    parser.add_argument("--only", choices=("threads", "workers", "memory"), default=None)
    parser.add_argument("--megabytes", type=int, default=268, help="size of the operand")
    parser.add_argument(
        "--gigabytes", type=float, default=20 * 1.073741824, help="size of the reduced array"
    )
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="write DASK.md beside this file")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.write and options.only:
        parser.error("--write is for all of it; leave --only out")
    if options.child:
        print(json.dumps(asdict(reduced(options.gigabytes))))
        return 0
    figures = Figures()
    if options.only in (None, "threads"):
        figures.threads = on_threads(tuple(FUNCTIONS), options.megabytes, options.rounds)
    if options.only in (None, "memory"):
        child = ["dask", "--child", "--gigabytes", str(options.gigabytes)]
        figures.reduced = Reduced(**in_fresh_process(child))
    if options.only in (None, "workers"):
        figures.workers, figures.task = on_workers(
            options.workers, options.megabytes, options.rounds
        )
    if options.json:
        print(json.dumps(asdict(figures), indent=1))
    else:
        _print(figures)
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks", "dask", *arguments])
        text = _page(figures, machine.describe(), command)
        (Path(__file__).parent / "DASK.md").write_text(text, "utf-8")
    return 0 if _reached(figures) else 1


def _reached(figures: Figures) -> bool:
    whole = figures.reduced
    held = whole is None or (whole.right and whole.peak < 2 * GB)
    return held and all(pair.ratio >= GOAL for pair in figures.threads)


_HEAD = ("function", "result", "workers", "MB", "dask.array", "zerostride", "ratio", "GB/s")
_BEYOND = (
    "machines",
    "from memory",
    "over the network",
    "of that, at least, the scheduler",
    "with a rechunk before",
)


def _cells(pair: Pair) -> list[str]:
    return [
        pair.function,
        pair.to,
        str(pair.workers),
        str(pair.megabytes),
        f"{pair.dask * 1e3:.0f} ms",
        f"{pair.zerostride * 1e3:.0f} ms",
        f"{pair.ratio:.1f}",
        f"{pair.rate:.1f}",
    ]


def _print(figures: Figures) -> None:
    console = new_console()
    console.print(new_table(_HEAD, map(_cells, (*figures.threads, *figures.workers))))
    if figures.reduced is not None:
        console.print(_said(figures.reduced))


def _said(whole: Reduced) -> str:
    return (
        f"The sum of {whole.gigabytes:.1f} GB of int64, never held in memory at once: "
        f"{'right' if whole.right else 'WRONG'}, in {whole.seconds:.0f} s and "
        f"{whole.peak / 1e6:.0f} MB at most (limit 2000 MB)."
    )


def _page(figures: Figures, here: machine.Machine, command: str) -> str:
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    assert figures.reduced is not None
    lines = [
        "# Dask arrays",
        "",
        f"Made by `{command}` on {date} ({here.processor}, {here.cores} cores, load {here.load};"
        f" {here.system}); not edited by hand. Medians; both in turns, on the same chunks. With a"
        " load above the cores, others had a share of the machine: then times say little, ratios"
        " more.",
        "",
        "## Threads of one machine, beside dask.array's own expression",
        "",
        *markdown([_HEAD, *map(_cells, figures.threads)]),
        "",
        f"Goal: at least {GOAL} on fused chains.",
        "",
        "## More than memory",
        "",
        _said(figures.reduced),
        "",
        "## Worker processes",
        "",
        f"A cluster on this machine, one thread a worker. There are {here.cores} processors, shared"
        " by workers, scheduler and client: more workers than that cannot be faster.",
        "",
        *markdown([_HEAD, *map(_cells, figures.workers)]),
        "",
        f"An empty task takes the scheduler {figures.task * 1e6:.0f} µs.",
        "",
        "## Beyond this machine, by calculation",
        "",
        f"One pass of the chain over {ARRAY / 1e12:.0f} TB of float32 in chunks of"
        f" {CHUNK >> 20} MiB, summed: seconds. Not measured. Each machine is taken to have {CORES}"
        f" cores at the best rate that a thread had above, {MEMORY / 1e9:.0f} GB/s of memory"
        f" bandwidth and {LINK * 8 / 1e9:.0f} Gb/s of network. Chunks that lie in workers' memory"
        " move nothing between machines but shares, 8 bytes a chunk; chunks of a store on the"
        " network all come over it; a rechunk across workers sends all but 1/machines of them.",
        "",
        *markdown(
            [_BEYOND, *(_beyond_cells(beyond(figures, n)) for n in (1, 2, 4, 8, 16, 32, 64))]
        ),
        "",
        "The scheduler is one process: where its time is above the others', larger chunks are what"
        " helps.",
    ]
    return "\n".join(lines) + "\n"


def _beyond_cells(row: Beyond) -> list[str]:
    times = (row.from_memory, row.over_network, row.scheduler, row.rechunked)
    return [str(row.machines), *(f"{seconds:.2f}" for seconds in times)]
