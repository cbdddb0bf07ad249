"""Runs a model by the specification and by a front door, for comparison."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import zerostride as zs
from zerostride.core.rules import NCNN_RANK
from zerostride.errors import ZerostrideError
from zerostride.models.execute import execute
from zerostride.models.findings import Outcome, Report
from zerostride.models.formats import read_model
from zerostride.runtimes.convert.converters import converter_to, run_converter
from zerostride.runtimes.files import tensors
from zerostride.runtimes.process import Process
from zerostride.runtimes.runners import RUNNERS
from zerostride.runtimes.task import Reply, ReplyKind
from zerostride.runtimes.verify.compare import compare, tolerance
from zerostride.runtimes.verify.rounding import like
from zerostride.runtimes.verify.whole_model import feed_of

from ..models.random_nodes import Array
from .draw import Model, Numbers
from .in_torch import LitertTorch, module_of, writes

#: Ops that add many numbers, in any order.
_COMPOUND = frozenset({"MatMul", "Gemm", "Conv", "Sum", "Mean", "DequantizeLinear"})


#: The first op set whose broadcasts the reference computes: before, it knows no `axis`.
_REFERENCE = 7


@dataclass(frozen=True, slots=True)
class Meant:
    """The results of a model by ONNX Runtime and by the specification's reference.

    Attributes:
        results: by their names.
        refused: why one does not compute it.
    """

    results: Mapping[str, Array]
    refused: Mapping[str, str]


def meant(path: Path, inputs: Mapping[str, Array]) -> Meant:
    """The results of ONNX Runtime, unoptimised, and of the specification's reference."""
    import onnx
    import onnxruntime as ort
    from onnx.reference import ReferenceEvaluator

    ort.set_default_logger_severity(4)
    results: dict[str, Array] = {}
    refused: dict[str, str] = {}
    try:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        results["ONNX Runtime"] = np.asarray(session.run(None, dict(inputs))[0])
    except Exception as error:  # noqa: BLE001 - whatever it raises is an answer
        refused["ONNX Runtime"] = str(error).splitlines()[0][:160]
    graph = read_model(path)
    if min(node.version for node in graph.nodes) < _REFERENCE and not results:
        try:
            results["zerostride, by the document"] = next(iter(execute(graph, inputs).values()))
        except ZerostrideError as error:
            refused["zerostride"] = str(error)[:160]
        return Meant(results, refused)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            every: Any = ReferenceEvaluator(onnx.load(path)).run(None, dict(inputs))
            results["the reference"] = np.asarray(every[0])
    except Exception as error:  # noqa: BLE001
        refused["the reference"] = f"{type(error).__name__}: {error}"[:160]
    return Meant(results, refused)


@dataclass(frozen=True, slots=True)
class Answer:
    """An outcome, and its details in words."""

    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A model with numbers: what it means, and the answers of both sides, made when asked for."""

    meant: Meant
    report: Callable[[], Report]
    answer: Callable[[], Answer]


class Door:
    """An engine, and the way by which users bring a model to it."""

    def __init__(self, engine: str, process: Process, folder: Path) -> None:
        self.engine = engine
        self.process = process
        self.path = folder / "m.onnx"

    def writes(self, model: Model) -> bool:
        """Whether the door takes such a model."""
        return True

    def ask(self, model: Model, kind: Numbers, seed: int) -> Asked:
        """The model with numbers of a kind."""
        raise NotImplementedError

    def answer(self, reply: Reply, compared: Callable[[], Answer]) -> Answer:
        """The outcome of a reply; of a result, that of a comparison."""
        if reply.kind is ReplyKind.RESULT:
            return compared()
        outcome = {
            ReplyKind.CRASHED: Outcome.CRASHED,
            ReplyKind.REFUSED: Outcome.REFUSED,
        }.get(reply.kind, Outcome.NOT_RUN)
        return Answer(outcome, reply.message)


class TorchDoor(Door):
    """The way of a PyTorch module to LiteRT."""

    def __init__(self, engine: str, process: Process, folder: Path) -> None:
        super().__init__(engine, process, folder)
        self._convert = LitertTorch()

    def writes(self, model: Model) -> bool:
        """Whether there is a module of it."""
        return writes(model)

    def ask(self, model: Model, kind: Numbers, seed: int) -> Asked:
        """The model as a module, with numbers of a kind."""
        import torch

        arrays = model.numbers(kind, seed)
        results, refused, program = {}, {}, None
        try:
            module, args = module_of(model, arrays)
            results["PyTorch"] = np.asarray(module(*args))
            program = torch.export.export(module, args)
        except Exception as error:  # noqa: BLE001 - whatever it raises is an answer
            results.clear()
            refused["PyTorch"] = str(error).splitlines()[0][:160]
        say = Meant(results, refused)
        inputs = {part.name: arrays[part.name] for part in model.operands if not part.constant}
        return Asked(
            say,
            lambda: zs.audit(program, self.engine),
            lambda: self._answer(model, program, arrays, inputs, results["PyTorch"]),
        )

    def _answer(
        self,
        model: Model,
        program: Any,
        arrays: Mapping[str, Array],
        inputs: Mapping[str, Array],
        meant: Array,
    ) -> Answer:
        goal = self.path.with_suffix(".tflite")
        failed = self._convert(program, goal)
        if failed is not None:
            return Answer(*failed)
        reply = tensors(self.process, goal, inputs, ["y"], outputs=True)
        return self.answer(
            reply, lambda: _compared(self, model, arrays, reply.arrays[0], [meant], kept=True)
        )


class OnnxDoor(Door):
    """The way of a file of ONNX."""

    def __init__(self, engine: str, process: Process, folder: Path) -> None:
        super().__init__(engine, process, folder)
        self._converter = None if "onnx" in RUNNERS[engine].files else converter_to(engine)

    def ask(self, model: Model, kind: Numbers, seed: int) -> Asked:
        """The model as a file with constants of a kind, and numbers for its inputs."""
        arrays = model.numbers(kind, seed)
        inputs = model.save(self.path, arrays)
        say = meant(self.path, inputs)
        return Asked(
            say,
            lambda: zs.audit(self.path, self.engine),
            lambda: self._answer(model, arrays, inputs, say),
        )

    def _answer(
        self, model: Model, arrays: Mapping[str, Array], inputs: Mapping[str, Array], say: Meant
    ) -> Answer:
        """The outcome, compared with whoever computes the model."""
        expected = next(iter(say.results.values()))
        with tempfile.TemporaryDirectory() as folder:
            try:
                reply, kept = self._reply(self.path, Path(folder), inputs, expected)
            except _NotConverted as answer:
                return answer.answer
            except ZerostrideError as error:
                return Answer(Outcome.NOT_RUN, str(error))
        every = list(say.results.values())
        return self.answer(
            reply, lambda: _compared(self, model, arrays, reply.arrays[0], every, kept)
        )

    def _reply(
        self, path: Path, folder: Path, inputs: Mapping[str, Array], expected: Array
    ) -> tuple[Reply, bool]:
        if self._converter is None:
            return tensors(self.process, path, inputs, ["y"], outputs=True), True
        goal = folder / f"m{self._converter.suffix}"
        failed = run_converter(self._converter, path, goal, inputs, 60.0)
        if failed is not None:
            raise _NotConverted(Answer(*failed))
        if self.engine != "ncnn":
            return tensors(self.process, goal, inputs, ["y"], outputs=True), True
        graph, results = read_model(path), {"y": expected}
        feed, reply = feed_of(graph, goal, self.process, inputs, None, results, by_sample=True)
        return reply, feed is inputs


def _compared(
    door: Door,
    model: Model,
    arrays: Mapping[str, Array],
    actual: Array,
    expected: Sequence[Array],
    kept: bool,
) -> Answer:
    op = model.steps[-1].op
    compound = len(model.steps) > 1 or op in _COMPOUND or "Normal" in op
    answers = []
    for array in expected:
        # The door to ncnn may drop ones in front, of tensors that it can hold.
        any_rank = door.engine == "ncnn" and array.ndim <= NCNN_RANK
        one = array if kept and not any_rank else like(array, actual.shape)
        # Doubles are single on most engines.
        kind = np.dtype(np.float32) if one.dtype == np.float64 else one.dtype
        most = tolerance(door.engine, op, kind, compound=compound)
        if kind.kind == "f" and op in _CANCELLING:
            most = max(most, 8 * float(np.finfo(kind).eps) * _largest(model, arrays))
        other = actual.astype(bool) if one.dtype.kind == "b" else actual
        if one.dtype.kind == "f" and one.shape == actual.shape:
            # Infinities are apart: an engine may keep halves in a wider type.
            finite = np.isfinite(one)
            one, other = np.where(finite, one, 0), np.where(finite, actual, 0)
        whole = all("int" in part.dtype for part in model.operands[:2])
        steps = int(op == "QuantizeLinear" and not whole)
        answer = compare(one, other, most, any_rank=any_rank, steps=steps)
        if answer.outcome is Outcome.AGREES:
            return Answer(Outcome.AGREES)
        answers.append(answer)
    return Answer(Outcome.DIFFERS, answers[0].detail)


#: Ops whose result may be far smaller than what was rounded on the way.
_CANCELLING = frozenset({"Add", "DequantizeLinear", "Mod", "Sub", "Sum"})


def _largest(model: Model, arrays: Mapping[str, Array]) -> float:
    """The largest number that the operands of a model have, or two of them as a product."""
    sizes = [float(np.abs(array.astype(np.float64)).max(initial=0.0)) for array in arrays.values()]
    product = model.steps[-1].op == "DequantizeLinear"
    return sizes[0] * sizes[1] if product else max(sizes)


class _NotConverted(Exception):  # noqa: N818 - an answer
    def __init__(self, answer: Answer) -> None:
        self.answer = answer


#: The doors that are not of files of ONNX.
_OTHERS: Mapping[str, type[Door]] = {"litert": TorchDoor}


def door_to(engine: str, process: Process, folder: Path) -> Door:
    """The door of an engine's users, which writes into a folder."""
    return _OTHERS.get(engine, OnnxDoor)(engine, process, folder)
