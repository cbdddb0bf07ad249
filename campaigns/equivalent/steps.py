"""The one loop of the campaign: a model, what each optimiser and each pass makes, and verdicts."""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import onnx

import zerostride as zs
from zerostride.errors import ZerostrideError

from .optimisers import Optimiser
from .passes import Optimise
from .result import (
    DIFFERENT,
    NOT_MADE,
    NOTHING,
    REFUSED,
    UNCHANGED,
    UNDECIDED,
    Result,
)

#: Characters of a reason that are kept.
_LONGEST = 300


Compare = Callable[[onnx.ModelProto, onnx.ModelProto], Result]
#: Called before each step and before each comparison, with the step's number and what begins.
Tell = Callable[[int, str, str], None]
#: What begins, in the words of `Tell`.
MAKES, COMPARES = "makes", "compares"


def results(
    model: onnx.ModelProto,
    optimiser: Optimiser,
    compare: Compare,
    *,
    passes: bool,
    begin: int = 0,
    differs: bool = False,
    without: Collection[str] = (),
    tell: Tell = lambda number, what, step: None,
) -> Iterator[tuple[Result, onnx.ModelProto | None]]:
    """Yield the result of each step of an optimiser, and the model that was compared.

    The whole optimiser comes first. The passes follow where `passes` asks for them, and where the
    whole made a model of another meaning: these name the pass.

    Args:
        model: the first model.
        optimiser: makes the second ones.
        compare: gives the verdict of a pair, with any step.
        passes: whether every pass of a listed optimiser is a step.
        begin: the number of the first step, to go on after an interruption.
        differs: whether the whole is known to make a model of another meaning.
        without: steps that are left out: they ended a process.
        tell: told what begins.
    """
    own = {fingerprint(model)}
    steps: Iterable[tuple[str, Optimise]] = _steps(optimiser)
    for number, (step, optimise) in enumerate(steps):
        if number and not (differs or (passes and optimiser.listed)):
            return
        if step in without or (number < begin and step != NOTHING):
            continue
        tell(number, MAKES, step)
        result, other = _made(model, optimise, step, own)
        if other is not None and step == NOTHING:
            own = {*own, fingerprint(other)}
        if number < begin:
            continue
        if other is not None and result is None:
            tell(number, COMPARES, step)
            result = _named(compare(model, other), step)
        assert result is not None
        differs = differs or result.names_passes
        yield result, other


def _steps(optimiser: Optimiser) -> Iterator[tuple[str, Optimise]]:
    yield "", optimiser.whole
    yield from optimiser.steps()


def _named(result: Result, step: str) -> Result:
    return Result(**{**asdict(result), "step": step})


def _made(
    model: onnx.ModelProto, optimise: Optimise, step: str, own: set[bytes]
) -> tuple[Result | None, onnx.ModelProto | None]:
    """What a step makes; with the result where there is nothing to compare."""
    try:
        other = optimise(model)
    except Exception as error:  # noqa: BLE001 - whatever an optimiser raises
        return Result(step, NOT_MADE, plain_words(f"{type(error).__name__}: {error}")), None
    same = fingerprint(other) in own
    return (Result(step, UNCHANGED) if same else None), other


def fingerprint(model: onnx.ModelProto) -> bytes:
    """A digest of a model's inputs, nodes, constants and outputs.

    Sizes that are noted inside, texts and metadata are left out: they have no meaning.
    """
    digest = hashlib.sha256()
    graph = model.graph
    for kind, items in (("input", graph.input), ("node", graph.node), ("output", graph.output)):
        for item in items:
            bare = type(item)()
            bare.CopyFrom(item)
            for name in ("doc_string", "metadata_props"):
                bare.ClearField(name)
            digest.update(kind.encode() + bare.SerializeToString(deterministic=True))
    texts = (t.SerializeToString(deterministic=True) for t in graph.initializer)
    for text in sorted(hashlib.sha256(text).digest() for text in texts):
        digest.update(text)
    for function in model.functions:
        digest.update(function.SerializeToString(deterministic=True))
    return digest.digest()


def compared(model: onnx.ModelProto, other: onnx.ModelProto) -> Result:
    """The verdict of a pair of models."""
    begun = time.monotonic()
    try:
        report = zs.equivalent(model, other)
    except ZerostrideError as error:
        return Result("", REFUSED, plain_words(str(error)), seconds=_since(begun))
    outcome = report.equivalence
    assert outcome is not None
    end = str(outcome.verdict)
    open_ones = [
        output.region
        for output in outcome.outputs
        if output.verdict == UNDECIDED and output.region is not None
    ]
    region = max(open_ones, key=lambda one: one.count, default=None)
    shown = [one.difference for one in outcome.outputs if one.difference is not None]
    shown += [outcome.narrower] if outcome.narrower is not None else []
    why = region.why if region is not None else ""
    if end == DIFFERENT:
        sizes = ", ".join(f"{name}={size}" for name, size in shown[0].sizes.items())
        why = f"{shown[0].detail} with {sizes}" if sizes else shown[0].detail
    return Result(
        "",
        end,
        plain_words(why),
        len(outcome.outputs),
        len(open_ones),
        0 if region is None else region.count,
        0 if region is None else region.other_count,
        "" if region is None else ", ".join(region.first[:3]),
        len(model.graph.node),
        _since(begun),
    )


def _since(begun: float) -> float:
    return round(time.monotonic() - begun, 2)


def plain_words(text: str) -> str:
    """A text in one line, without the places of files on this machine."""
    here = {tempfile.gettempdir(), str(Path.home()), sys.prefix, str(Path.cwd())} - {"/"}
    for place in sorted(here, key=len, reverse=True):
        text = re.sub(rf"{re.escape(place)}[^\s:'\",;)]*", "FILE", text)
    return " ".join(text.split())[:_LONGEST]
