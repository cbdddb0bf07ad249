"""Every broadcast of a model on an engine, one task each. Equal tasks run once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...engines.table import find_engine
from ...models.findings import Check, Finding, Outcome
from ...models.ir.graph import FileShape, Graph
from ...models.ir.site import Operand, Site
from ...models.reasons import Cause
from ...models.transport.batch import BATCHLESS, BatchAxes
from ...models.transport.converters import OP_FOR_OP, Converter
from ..process import Process
from ..task import key_of
from .cache import Cache
from .compare import Agreement, compare, tolerance, without_result
from .sites import Plain, Skip, fill, prepare

Progress = Callable[[int, int], None]
#: The limit of one call, in elements of operands and results; each question counts as so many more,
#: for the cost of a call.
MOST_WORK = 1 << 35
ASKING = 1 << 22
_USED_UP = "the work that one call may take is used up; check this node alone (node=, --node)"


@dataclass(slots=True)
class SiteChecks:
    """The checks of one model's broadcasts.

    Attributes:
        graph: the model, its sizes resolved.
        batch: the batch axes of its tensors, for an engine without one.
        process: the engine.
        cache: earlier answers.
        seed: of the random operands.
        cases: how many random operands each broadcast gets.
        way: the converter that carries ONNX nodes to the engine.
        left: the work that is left of the limit.
    """

    graph: Graph
    batch: BatchAxes
    process: Process
    cache: Cache
    seed: int
    cases: int
    way: Converter = OP_FOR_OP
    left: int = field(default_factory=lambda: MOST_WORK)
    _answers: dict[str, tuple[Agreement, bool]] = field(default_factory=dict)

    def run(
        self, sites: Sequence[Site], findings: Sequence[Finding], progress: Progress | None
    ) -> Iterator[Check]:
        """A check for each site, in order; `findings` are the audit's of the same sites."""
        for done, (site, finding) in enumerate(zip(sites, findings, strict=True)):
            try:
                yield self._check(site, finding)
            except Skip as reason:
                yield _check_of(site, Agreement(Outcome.NOT_RUN, str(reason)))
            except MemoryError as error:
                detail = f"its operands do not fit into memory: {error}"
                yield _check_of(site, Agreement(Outcome.NOT_RUN, detail))
            if progress is not None:
                progress(done + 1, len(sites))

    def _check(self, site: Site, finding: Finding) -> Check:
        if finding.reason == Cause.FOLDED:
            raise Skip(finding.message)
        plain = prepare(site, find_engine(self.process.engine), self.batch, self.graph, self.way)
        key = self._key(plain)
        if key not in self._answers:
            # Cached answers count too, so the limit does not depend on earlier calls.
            self._spend(plain)
            earlier = self.cache.get(key)
            if earlier is None:
                self._answers[key] = self._ask(plain), False
                self.cache.put(key, self._answers[key][0])
            else:
                self._answers[key] = earlier, True
        answer, cached = self._answers[key]
        if plain.note:
            answer = replace(answer, detail="; ".join(filter(None, (answer.detail, plain.note))))
        return _check_of(plain.site, answer, self.process.version, cached=cached)

    def _spend(self, plain: Plain) -> None:
        """Counts a question; Skip if it exceeds the limit."""
        results = (value.shape for value in plain.site.node.outputs)
        shapes = [*plain.shapes, *(shape for shape in results if shape is not None)]
        elements = [math.prod(n for n in shape if isinstance(n, int)) for shape in shapes]
        work = self.cases * (ASKING + sum(elements))
        if work > self.left:
            raise Skip(_USED_UP)
        self.left -= work

    def _key(self, plain: Plain) -> str:
        """Everything that the operands, the task and the meaning depend on."""
        site, node = plain.site, plain.site.node
        rule = (site.rule.name, _words(site.attributes))
        shapes = (plain.shapes, plain.dtypes, plain.engine_shapes, plain.result)
        meaning = (rule, site.stands_for, *shapes, _words(node.attributes), node.version)
        return repr((key_of(plain.task), meaning, self.seed, self.cases))

    def _ask(self, plain: Plain) -> Agreement:
        """The first case that does not agree; if all agree, the sum of their elements."""
        elements, error = 0, 0.0
        for case in range(self.cases):
            answer = self._ask_once(plain, self.seed + case)
            if answer.outcome is not Outcome.AGREES:
                return answer
            elements, error = elements + answer.elements, max(error, answer.error)
        return replace(answer, elements=elements, error=error)

    def _ask_once(self, plain: Plain, seed: int) -> Agreement:
        arrays, expected = fill(plain, seed)
        reply = self.process.ask(plain.task, arrays)
        engine, source = self.process.engine, plain.site.node.domain
        most = tolerance(engine, plain.op, expected.dtype, compound=plain.compound, source=source)
        steps = int(any(value.quantised is not None for value in plain.site.node.outputs))
        return without_result(reply) or compare(
            expected, reply.arrays[0], most, any_rank=engine in BATCHLESS, steps=steps
        )


def _words(attributes: Mapping[str, object]) -> list[tuple[str, str]]:
    return sorted((key, repr(value)) for key, value in attributes.items())


def _tensor(part: Operand) -> tuple[str, FileShape]:
    """An operand, or the tensor whose outer axes it is."""
    tensor = part.tensor
    return (part.name, part.shape) if tensor is None else (tensor.name, tensor.shape)


def _check_of(site: Site, answer: Agreement, release: str = "", *, cached: bool = False) -> Check:
    return Check(
        site.node.path,
        site.node.op,
        tuple(_tensor(part) for part in site.operands),
        answer.outcome,
        answer.detail,
        answer.elements,
        answer.error,
        release,
        cached,
    )
