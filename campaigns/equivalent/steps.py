"""The one loop of the campaign: a model, what each optimiser and each pass makes, and verdicts."""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

import onnx

import zerostride as zs
from zerostride.errors import ZerostrideError

from .optimisers import Optimiser
from .passes import Optimise
from .result import (
    DIFFERENT,
    NOT_MADE,
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
    known = {fingerprint(model): Result("", UNCHANGED)}
    for number, (step, optimise) in enumerate(_steps(optimiser)):
        if number and not (differs or (passes and optimiser.listed)):
            return
        if step in without or (number < begin and step not in optimiser.begins):
            continue
        tell(number, MAKES, step)
        other, why = _made(model, optimise)
        result = Result(step, NOT_MADE, why)
        if other is not None:
            mark = fingerprint(other)
            if mark in known:  # many passes make the same model
                result = replace(known[mark], step=step, seconds=0.0)
            elif number >= begin:
                tell(number, COMPARES, step)
                result = replace(compare(model, other), step=step)
            # What every pass begins with is, to the others, the model as it was.
            known[mark] = Result("", UNCHANGED) if step in optimiser.begins else result
        if number < begin:
            continue
        differs = differs or result.names_passes
        yield result, other


def _steps(optimiser: Optimiser) -> Iterator[tuple[str, Optimise]]:
    yield "", optimiser.whole
    yield from optimiser.steps()


def _made(model: onnx.ModelProto, optimise: Optimise) -> tuple[onnx.ModelProto | None, str]:
    """The model that a step writes; None, and the reason, if it writes none."""
    try:
        return optimise(model), ""
    except Exception as error:  # noqa: BLE001 - whatever an optimiser raises
        return None, plain_words(f"{type(error).__name__}: {error}")


def fingerprint(model: onnx.ModelProto) -> bytes:
    """A digest of a model's inputs, nodes, constants, outputs, and types noted inside.

    Texts, metadata and the names of open sizes inside are left out: they have no meaning. Numbers
    that are noted inside have one: ONNX Runtime takes them for true.
    """
    digest = hashlib.sha256()
    graph = model.graph
    for noted in sorted(set(map(_noted, graph.value_info))):
        digest.update(noted.encode())
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


def _noted(value: onnx.ValueInfoProto) -> str:
    """The type of a tensor inside, its open sizes without names."""
    tensor = value.type.tensor_type
    sizes = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
    return f"{value.name} {tensor.elem_type} {sizes if tensor.HasField('shape') else None};"


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
