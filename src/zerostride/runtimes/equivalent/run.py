"""The command: whether two models mean the same for every value of their open sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...errors import ZerostrideError
from ...models.arguments import checked
from ...models.equivalence import Difference, Equivalence, Output, Sameness
from ...models.equivalent.cases import Proof, proven
from ...models.equivalent.pair import Pair, outside, paired
from ...models.findings import Report
from ...models.flow.input_sizes import InputShapes, Sizes
from ...models.formats.model_file import model_file
from ...models.formats.torch_export import Example
from ...models.options import ModelOptions
from ...sizes.budget import FLOW_STEPS, allowance
from ..process import MODEL_SECONDS
from .region_files import region_files
from .runs import FAR, FARTHER, Run, Tries, difference, errors_of

#: Runs with other numbers, where no run shows a difference of an output that is not proven.
_MORE_SEEDS = 3


@checked
def equivalent(
    model: Any,
    other: Any,
    *,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    seed: int = 0,
    timeout: float | None = None,
    facts: Any = None,
    sizes: Sizes | None = None,
    input_shapes: InputShapes | None = None,
) -> Report:
    """Whether two models mean the same for every value of their open sizes.

    Both are brought into one normal form: views by the places that they read, sums and products of
    many, constants folded. Equal forms are a proof for all sizes for which both models work. Each
    proof is confirmed by runs at small and unequal sizes; a difference is reported only with a run
    that shows it.

    Args:
        model: a model file, a model in memory, or a module or program of PyTorch, as for
            :func:`~zerostride.audit`.
        other: another, such as what an optimiser made of it.
        args, kwargs, dynamic_shapes: a module's inputs, as for :func:`~zerostride.audit`.
        seed: of the random inputs of the runs.
        timeout: seconds for one answer of an engine; 300 by default.
        facts, sizes, input_shapes: of the first model, as for :func:`~zerostride.audit`.

    Returns:
        A report whose `equivalence` has a verdict for each output: equal, rounded (equal but for
        rounding), different (with the run that shows it), or undecided (with the nodes where it
        begins).

    Raises:
        ModelError: a file cannot be read, or the models have other inputs or outputs.
    """
    example = Example(args, kwargs, dynamic_shapes)
    files = model_file(model, example), model_file(other)
    with allowance(FLOW_STEPS), files[0] as source, files[1] as second:
        options = ModelOptions(None, None, facts, sizes, input_shapes, form=source.form)
        graphs = options.read(source.path), ModelOptions().read(second.path)
        pair = paired(*graphs, options.premises())
        proof = proven(pair)
        paths = str(source.path), str(second.path)
        cases = tuple(case.facts for case in proof.pairs if not case.fails)
        with Tries(pair, paths, seed, timeout or MODEL_SECONDS, cases) as tries:
            result = _confirmed(proof, tries)
        notes = (*pair.ours.notes, *pair.theirs.notes)
        report = Report(
            paths[0], paths[1], None, "", (), notes, command="equivalent", equivalence=result
        )
        return source.named(second.hidden(report))


def _confirmed(proof: Proof, tries: Tries) -> Equivalence:
    """The verdicts after runs."""
    pair = tries.pair
    shown: dict[int, tuple[Difference, Run]] = {}
    tried: list[dict[str, int]] = []
    engines: dict[str, None] = {}
    worst = 0.0
    furthest: Run | None = None
    lost: tuple[str, Difference, Run] | None = None

    def look(run: Run) -> None:
        nonlocal worst, furthest, lost
        if run.ours is not None and run.theirs is None and lost is None:
            lost = _lost(tries, run)
        if run.ours is None or run.theirs is None:
            return
        tried.append(run.sizes)
        engines[run.engine] = None
        for k, output in enumerate(proof.outputs):
            most = FARTHER if output.verdict is Sameness.ROUNDED else FAR
            found = difference(run, k, most)
            if found is None and run.ours[k].shape == run.theirs[k].shape:
                error = float(errors_of(run, k).max(initial=0.0))
                if error >= worst:
                    worst, furthest = error, run
            if found is not None and k not in shown:
                confirmed = _again(tries, run, k, most)
                if confirmed is not None:
                    shown[k] = confirmed

    with np.errstate(all="ignore"):
        for run in tries.runs():
            look(run)
        verdicts = [output.verdict for output in proof.outputs]
        open_ones = [k for k, verdict in enumerate(verdicts) if verdict is Sameness.UNDECIDED]
        for extra in range(_MORE_SEEDS):
            if all(k in shown for k in open_ones) or not tried:
                break
            # At first zeros: what is added to keep a logarithm finite shows in them.
            look(tries.run(tried[0], tries.seed + 100 + extra, zeros=not extra))
        rounds = Sameness.ROUNDED in verdicts
        rounding = tries.rounding(furthest) if furthest is not None and rounds else None
    outputs = []
    for k, output in enumerate(proof.outputs):
        found, _ = shown.get(k, (None, None))
        verdict = output.verdict if found is None else Sameness.DIFFERENT
        outputs.append(Output(output.name, output.other, verdict, output.region, found))
    lost = lost or _narrower({id(one): one for one in (pair, *proof.pairs)}.values(), tries)
    runs = [run for _, run in shown.values()] + ([lost[2]] if lost is not None else [])
    arrays = _arrays(pair, runs[0]) if runs else {}
    return Equivalence(
        tuple(outputs),
        pair.words,
        "" if pair.narrowed.always or not pair.resized else str(pair.narrowed),
        "" if lost is None else lost[0],
        pair.only_theirs(),
        None if lost is None else lost[1],
        tuple(tried),
        ", ".join(engines),
        worst,
        rounding,
        arrays,
        region_files(proof.outputs, outputs) if pair.formats == {"onnx"} else {},
    )


def _narrower(pairs: Iterable[Pair], tries: Tries) -> tuple[str, Difference, Run] | None:
    """Sizes for which the first model alone works, and the run that shows it."""
    for clause, values in (row for pair in pairs for row in pair.only_ours()):
        sizes = {symbol.name: number for symbol, number in values.items()}
        try:
            found = _lost(tries, tries.run(sizes, tries.seed, whole=True))
        except ZerostrideError:
            continue
        if found is not None:
            return outside(clause), *found[1:]
    return None


def _lost(tries: Tries, run: Run) -> tuple[str, Difference, Run] | None:
    """Sizes for which the first model works and the second does not, on the real engine."""
    if run.engine == "zerostride":
        # What zerostride refuses may be its own limit.
        run = tries.again(run) or run
    if run.ours is None or run.theirs is not None:
        return None
    shapes = {name: array.shape for name, array in run.inputs.items()}
    words = f"the second refuses: {run.refusals[1]}"
    found = Difference(run.sizes, shapes, (), "", "", np.inf, run.engine, words)
    sizes = ", ".join(f"{name}={number}" for name, number in run.sizes.items())
    return f"sizes such as {sizes}" if sizes else "the file's sizes", found, run


def _again(tries: Tries, run: Run, position: int, most: float) -> tuple[Difference, Run] | None:
    """The difference on the real engine, where it is installed and runs both; else as it is.

    None where the engine gives the same for both.
    """
    found = difference(run, position, most)
    assert found is not None
    if run.engine != "zerostride":
        return found, run
    real = tries.again(run)
    if real is None or real.ours is None or real.theirs is None:
        return found, run
    confirmed = difference(real, position, most)
    return None if confirmed is None else (confirmed, real)


def _arrays(pair: Pair, run: Run) -> dict[str, Any]:
    arrays = {f"input {name}": array for name, array in run.inputs.items()}
    for k, (name, other) in enumerate(pair.outputs):
        if run.ours is not None:
            arrays[f"output {name}"] = run.ours[k]
        if run.theirs is not None:
            arrays[f"other {other}"] = run.theirs[k]
    return arrays
