"""``python -m campaigns models``: a row for each model file and engine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from zerostride.errors import BadInput
from zerostride.models.findings import Outcome, Verdict
from zerostride.system import children

from .measure import AGAINST, Pair, files_in, light_models, measure, targets

#: Columns of text where there is no terminal to ask.
_WIDE = 180
#: A file against one engine takes seconds; what takes this long does not end.
SECONDS = 300.0
_SHORT: Mapping[str, str] = {
    Verdict.SAME: "same",
    Verdict.SAME_HERE: "here",
    Verdict.DIFFERENT: "diff",
    Verdict.REFUSED: "refu",
    Verdict.UNKNOWN: "unkn",
}


def run(
    places: Sequence[str],
    engines: Sequence[str],
    pythons: Mapping[str, str],
    batch_axis: int | None,
    as_json: bool,
    apart: bool = True,
) -> int:
    """Measures and prints.

    Args:
        places: files and folders; none: the models that come with the onnx package.
        engines: targets; none: all that are run.
        pythons: interpreters by engine.
        batch_axis: for engines without a batch axis.
        as_json: print JSON.
        apart: each file in a process of its own, with a time limit.

    Returns:
        0 where nothing is wrong; 1 where something is; 2 where there is nothing to measure; 130
        where it was interrupted, what had been measured printed all the same.
    """
    try:
        files = files_in(places) if places else light_models()
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not files:
        print("error: no model files there", file=sys.stderr)
        return 2
    chosen = tuple(engines) or targets()
    pairs: list[Pair] = []
    errors = Console(stderr=True)
    hidden = as_json or not errors.is_terminal
    stopped = False
    try:
        with Progress(console=errors, disable=hidden) as progress:
            task = progress.add_task("models", total=len(files) * len(chosen))
            for file in files:
                measured = (
                    _apart(file, chosen, pythons, batch_axis)
                    if apart
                    else iter(measure(file, chosen, pythons=pythons, batch_axis=batch_axis))
                )
                for pair in measured:
                    pairs.append(pair)
                    progress.advance(task)
    except KeyboardInterrupt:
        stopped = True  # what is there after an hour is worth seeing
    if as_json:
        print(json.dumps({"ok": all(p.ok for p in pairs), "pairs": [p.as_dict() for p in pairs]}))
    else:
        console = Console()
        print_pairs(console if console.is_terminal else Console(width=_WIDE), pairs)
    if stopped:
        return 130
    return 0 if all(pair.ok for pair in pairs) else 1


def _apart(
    file: Path, engines: Sequence[str], pythons: Mapping[str, str], batch_axis: int | None
) -> Iterator[Pair]:
    """The pairs of a file, each measured by a process of its own."""
    options = [f"--python={name}={path}" for name, path in pythons.items()]
    if batch_axis is not None:
        options.append(f"--batch-axis={batch_axis}")
    for engine in engines:
        words = ["models", "--json", "--here", str(file), "--target", engine, *options]
        command = children.module("campaigns", *words)
        pair = Pair(str(file), "", engine)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
            document = json.loads(done.stdout)["pairs"][0]
            for computed in ("broadcasts", "ok"):
                del document[computed]
            pair = Pair(**document)
        except subprocess.TimeoutExpired:
            pair.faults["all"] = f"no answer within {SECONDS:.0f} s"
        except (ValueError, LookupError):
            last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
            pair.faults["all"] = f"status {done.returncode}: {last}"
        yield pair


def print_pairs(console: Console, pairs: Sequence[Pair]) -> None:
    """The table, its sums, and everything that is wrong."""
    table = Table(box=box.SIMPLE_HEAD)
    left = ("model", "target")
    numbers = ("nodes", "broadc.", "findings", "agree", "differ", "rewrites", "left", "after port")
    for heading in (*left, *numbers, "whole", "wrong same", "wrong rewr.", "s"):
        table.add_column(heading, justify="left" if heading in left else "right")
    for pair in pairs:
        table.add_row(*_cells(pair))
    console.print(table)
    total = _sum(pairs)
    lines = [
        f"{len(pairs)} pairs: {total['nodes']} nodes, {total['broadcasts']} broadcasts, "
        f"{total['agreed']} agreements, {total['against']} disagreements, "
        f"{total['rewrites']} rewrites, {total['left']} left over; "
        f"{total['wrong_same']} wrong same, {total['wrong_rewrites']} wrong rewrites, "
        f"{total['faults']} faults"
    ]
    for pair in pairs:
        name = f"{Path(pair.file).name} on {pair.target}"
        lines += [f"WRONG SAME {name}: {message}" for message in pair.wrong_same]
        lines += [f"WRONG REWRITE {name}: {message}" for message in pair.wrong_rewrites]
        lines += [f"FAULT {name}: {step}: {message}" for step, message in pair.faults.items()]
    reasons: dict[str, list[str]] = {}
    for pair in pairs:
        for step, message in pair.missing.items():
            # Of one reason once, with what it holds of.
            words = f"{step}: {message.replace(pair.file, 'the file')}"
            reasons.setdefault(words, []).append(f"{Path(pair.file).name} on {pair.target}")
    for words, where in reasons.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        lines.append(f"not done: {where[0]}{more}: {words}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _cells(pair: Pair) -> Iterator[str]:
    yield Path(pair.file).name
    yield pair.target
    yield str(pair.nodes) if "read" not in pair.missing else "not read"
    yield str(pair.broadcasts)
    yield " ".join(f"{_SHORT[Verdict(v)]} {n}" for v, n in pair.verdicts.items()) or "."
    agree, against = counts(pair.outcomes)
    done = "verify" not in pair.missing
    yield str(agree) if done else "not run"
    yield str(against) if done else "."
    yield str(pair.rewrites) if "port" not in pair.missing else "not ported"
    yield str(pair.left)
    yield "{}/{}".format(*counts(pair.after)) if pair.after else "."
    yield pair.whole or "."
    yield str(len(pair.wrong_same))
    yield str(len(pair.wrong_rewrites))
    yield f"{pair.seconds:.1f}"


def counts(outcomes: Mapping[str, int]) -> tuple[int, int]:
    """The numbers of checks that agree and that do not."""
    against = sum(n for outcome, n in outcomes.items() if Outcome(outcome) in AGAINST)
    return outcomes.get(Outcome.AGREES, 0), against


def _sum(pairs: Sequence[Pair]) -> Mapping[str, int]:
    both = [(counts(pair.outcomes), counts(pair.after)) for pair in pairs]
    return {
        "nodes": sum(pair.nodes for pair in pairs),
        "broadcasts": sum(pair.broadcasts for pair in pairs),
        "agreed": sum(before[0] + after[0] for before, after in both),
        "against": sum(before[1] + after[1] for before, after in both),
        "rewrites": sum(pair.rewrites for pair in pairs),
        "left": sum(pair.left for pair in pairs),
        "wrong_same": sum(len(pair.wrong_same) for pair in pairs),
        "wrong_rewrites": sum(len(pair.wrong_rewrites) for pair in pairs),
        "faults": sum(len(pair.faults) for pair in pairs),
    }
