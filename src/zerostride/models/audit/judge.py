"""The judge of sites: whether one can be judged, its meaning in the model and on the target."""

from __future__ import annotations

import copy
from collections import ChainMap
from collections.abc import Callable, Hashable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ...core.plan import Plan
from ...derive.size_traps import Side
from ...engines.model import Engine
from ...errors import BroadcastError, Reason
from ...sizes import Shape
from ...sizes.condition import Condition
from ..findings import Finding, Verdict
from ..ir.graph import MALFORMED, Node, Value
from ..ir.site import Kind, Operand, Site
from ..reasons import Cause
from ..transport.batch import BATCHLESS, BatchAxes, follow
from ..transport.converters import Converter
from ..transport.element_types import mixed_types, narrowed_types
from ..transport.mnn_packing import Packing
from ..transport.node_limits import has_offset, tied
from ..transport.sample import Sample, contracted_batch, whole, without_batch
from ..transport.ways import NotJudged, canonical, transport
from .attended import attended, lacked
from .judged_site import Carried, JudgedSite, Judgement, Message, sizes_of
from .symbolic import carried_as_is, compare_open, is_open, related
from .verdict import (
    COMPARED_BY_BITS,
    beside_a_positive,
    compare_case,
    mixed_layouts,
    narrowed,
    other_values,
    struck,
)
from .witness import find_batch_witness

_RANK = frozenset({Reason.RANK_LIMIT})


class Judge:
    """Judges sites. Sites that differ in names alone are judged once: models repeat blocks."""

    def __init__(
        self,
        engine: Engine,
        way: Converter,
        batch: BatchAxes,
        needs: Condition,
        packing: Packing | None = None,
        inputs: Iterable[Value] = (),
    ) -> None:
        self.engine = engine = way.met(engine)
        self.way = way
        self.batch = batch
        self.needs = needs
        self.packing = packing
        self._sample_needs = batch.needs_of_one(needs)
        self._narrowed = narrowed_types(engine)
        self._bare = False
        self._overfull = any(map(self._too_deep, inputs))
        self._judgements: MutableMapping[Hashable, Judgement] = {}
        self._aside: dict[Hashable, Judgement] = {}
        self._sources: dict[Hashable, Plan | BroadcastError] = {}

    def __call__(self, site: Site) -> Finding:
        """The finding of a site."""
        if any(part.missing for part in site.operands):
            return self._judgement(site).of(site)
        key = self.key(site)
        judgement = self._judgements.get(key)
        if judgement is None:
            judgement = self._judgements[key] = self._judgement(site)
        return judgement.of(site)

    def aside(self) -> Judge:
        """A copy of the judge for temporary values. Their axes and layouts are stored in the copy.

        It decides whether rewrites mean the same; for those that differ it gives no details.
        """
        judge = copy.copy(self)
        judge.batch = BatchAxes(self.batch)
        judge.packing = self.packing and Packing(under=self.packing)
        judge._bare = True
        judge._judgements = ChainMap(self._aside, self._judgements)
        return judge

    def follow(self, node: Node) -> None:
        """Notes the batch axes and the layouts of a node's results."""
        follow(node, self.batch)
        if self.packing is not None:
            self.packing.follow(node)

    def source(self, site: Site, shapes: tuple[Shape, ...]) -> Plan:
        """The site's plan in the model, under the model's needs; raises BroadcastError."""
        key = site.rule.name, _frozen(site.attributes), shapes
        answer = self._sources.get(key)
        if answer is None:
            try:
                answer = _planned(site, shapes, related(self.needs, shapes))
            except BroadcastError as error:
                answer = error
            self._sources[key] = answer
        if isinstance(answer, BroadcastError):
            raise answer.with_traceback(None)
        return answer

    def stretches(self, site: Site) -> bool:
        """Whether the target may stretch an operand of the site's op; true where it is unknown."""
        try:
            return self.way.carry(site, self.engine).rule.name != "none"
        except (NotJudged, BroadcastError):
            return True

    def key(self, site: Site) -> Hashable:
        """All parts of a site that can change its verdict. Names are left out."""
        node, batch = site.node, self.batch
        return (
            site.kind,
            site.op,
            site.rule.name,
            _frozen(site.attributes),
            tuple([(part.shape, part.constant, batch.of_operand(part)) for part in site.operands]),
            node.op,
            node.domain,
            node.version,
            _frozen(node.attributes),
            tuple(
                [
                    None
                    if value is None
                    else (value.shape, value.constant, value.types, batch.of(value))
                    for value in node.inputs
                ]
            ),
            self._numbers(site),
            site.call and (site.call.rule.name, site.call.asked, site.call.where),
            self.way.asks(site),
            self._moved(site),
            self._mixed(site),
        )

    def _mixed(self, site: Site) -> int | None:
        """The operand that gives the result another layout than its numbers have, or None."""
        return None if self.packing is None else self.packing.mixed(site.node)

    def _numbers(self, site: Site) -> Hashable:
        """The numbers that a verdict depends on.

        If the engine computes in a narrower dtype, these are the known numbers. Of a quantisation
        they say whether its zero point is 0, which engines require, and whether ties matter.
        """
        if site.kind is Kind.PER_AXIS:
            return has_offset(site.node), tied(site.node)
        if self.engine.name == "mnn" and canonical(site) in COMPARED_BY_BITS:
            return beside_a_positive(site)
        values = [part.tensor for part in site.operands]
        if not any(value is not None and value.dtype in self._narrowed for value in values):
            return None
        return tuple(
            [None if value is None else value.content for value in (*values, *site.node.outputs)]
        )

    # One site.

    def _judgement(self, site: Site) -> Judgement:
        """Plans a site in the model, carries it to the target, and compares the two."""
        if site.call is not None and all(part.shape is not None for part in site.operands):
            return attended(site, site.call, self.engine, self.way)
        absent = lacked(site.node, self.way)
        if absent is not None:
            return absent
        source = self._planned_or_judged(site)
        if isinstance(source, Judgement):
            return source
        lost = contracted_batch(site, self.batch)
        if lost is not None:
            return self._across(site, source, lambda like: _input_name(like, lost), ())
        try:
            axes, side = self._carried(site)
        except BroadcastError as error:
            silent = error.silent and not self._counted(site)
            verdict = Verdict.DIFFERENT if silent else Verdict.REFUSED
            return Judgement(source, error, verdict, error.reason, error.detail)
        sample, premises = self._sampled(site, source, axes)
        if sample.across is not None:
            across = sample.across
            return self._across(site, source, lambda like: like.operands[across].name, axes)
        if isinstance(side, NotJudged):
            return Judgement(source, None, Verdict.UNKNOWN, Cause.NOT_MEASURED, str(side))
        return self._compared(
            JudgedSite(site, self.engine, side, source, sample, self._bare), premises
        )

    def _planned_or_judged(self, site: Site) -> Plan | Judgement:
        """A site's plan in the model; where it has none, the judgement."""
        unknown = _not_judged(site)
        if unknown is not None:
            return self._of_any_shape(site, unknown)
        mixed = mixed_types(site)
        if mixed is not None:
            message = f"the model itself is not valid here: {mixed}"
            return Judgement(None, None, Verdict.REFUSED, Cause.MIXED_TYPES, message)
        shapes = _shapes(site)
        try:
            return _planned(site, shapes, related(self.needs, shapes))
        except BroadcastError as error:
            if error.reason is Reason.UNKNOWN_SIZE:
                message = f"its sizes are beyond what is worked with: {error.detail}"
                return self._of_any_shape(site, _unknown(Cause.UNKNOWN_SHAPE, message))
            message = f"the model itself does not broadcast here: {error.detail}"
            return Judgement(error, None, Verdict.REFUSED, Cause.INVALID, message)

    def _carried(self, site: Site) -> tuple[Sequence[int | None], Side | NotJudged]:
        """The operands' batch axes, and the engine's rule for the site or why it is not known.

        Raises:
            BroadcastError: the engine refuses the site.
        """
        axes: Sequence[int | None] = [self.batch.of_operand(part) for part in site.operands]
        try:
            axes = self.way.batches(site, axes)
            side = self.way.carry(site, self.engine)
        except NotJudged as unknown:
            return axes, unknown
        if self._counted(site):
            side = replace(side, rule=replace(side.rule, silent=side.rule.silent - _RANK))
        return axes, side

    def _sampled(
        self, site: Site, source: Plan, axes: Sequence[int | None]
    ) -> tuple[Sample, Condition]:
        """The plan as the engine sees it, without the batch if it has none, and what it needs."""
        shapes = _shapes(site)
        premises = related(self.needs, shapes)
        if self.engine.name not in BATCHLESS:
            return whole(source), premises
        single = tuple(map(self.batch.of_one, shapes))
        if single != shapes:
            premises = related(self._sample_needs, single)
        return _sample(site, source, single, axes, premises), premises

    def _compared(self, case: JudgedSite, premises: Condition) -> Judgement:
        """Compares the model's plan with the engine's, then their element types and values."""
        if (limit := case.unfit) is not None:
            return struck(case, case.plan(case.shapes), limit)
        if (mixed := self._mixed(case.site)) is not None:
            return mixed_layouts(case, mixed)
        judgement = compare_open(case, premises) if is_open(case) else compare_case(case)
        return other_values(case, narrowed(case, judgement))

    def _counted(self, site: Site) -> bool:
        """Whether too many axes are refused: of an input, or where the batch axis has moved."""
        return self._overfull or self._moved(site)

    def _moved(self, site: Site) -> bool:
        """Whether an operand's batch axis is not where the engine drops it."""
        places = [self.batch.place(part.tensor) for part in site.operands]
        return any(place not in (None, self.batch.home) for place in places)

    def _too_deep(self, value: Value) -> bool:
        """Whether an input has more axes than the engine's tensors, so that it is refused."""
        most = self.engine.tensor_rank
        if most is None or self.engine.name not in BATCHLESS:
            return False
        return len(value.shape or ()) - (self.batch.of(value) is not None) > most

    def _of_any_shape(self, site: Site, unknown: Judgement) -> Judgement:
        """The judgement of unknown shapes: `same` if both sides use one rule, else `unknown`."""
        name = self.engine.name
        if unknown.reason != Cause.UNKNOWN_SHAPE or name in BATCHLESS:
            return unknown
        if any(part.shape is None and not _is_tensor(part) for part in site.operands):
            return unknown
        try:
            case = Carried(site, self.engine, self.way.carry(site, self.engine))
        except (NotJudged, BroadcastError):
            return unknown
        as_is = carried_as_is(site, case.target, case.divergences)
        if case.unfit or not as_is:
            return unknown
        message = f"means the same on {name}, by the same rule, whatever the shapes"
        same = Judgement(None, None, Verdict.SAME, Cause.SAME_PLAN, message)
        return other_values(case, narrowed(case, same))

    def _across(
        self,
        site: Site,
        source: Plan,
        name: Callable[[Site], str],
        axes: Sequence[int | None],
    ) -> Judgement:
        """The judgement of a broadcast along the axis that the target drops, with a witness."""
        engine = self.engine
        witness = None
        if site.kind is Kind.ELEMENTWISE and len(axes) == 2:
            try:
                side = transport(site, engine)
            except (NotJudged, BroadcastError):
                side = None  # the engine has no such op, so no witness is computed
            if side is not None:
                model = Side(site.rule, site.attributes).plan
                op = canonical(site) or "add"
                witness = find_batch_witness(source.operands, model, side.plan, axes, op)

        def message(like: Site) -> str:
            return (
                f"{name(like)!r} broadcasts across the batch axis, which {engine.name} "
                "does not have; if the batch is another axis, name it (batch_axis)"
            )

        return Judgement(source, None, Verdict.DIFFERENT, Cause.BATCH, message, witness=witness)


def _shapes(site: Site) -> tuple[Shape, ...]:
    return tuple(sizes_of(part) for part in site.operands)


def _planned(site: Site, shapes: tuple[Shape, ...], premises: Condition) -> Plan:
    return site.plan(shapes, None if premises.always else premises)


def _sample(
    site: Site,
    source: Plan,
    shapes: tuple[Shape, ...],
    axes: Sequence[int | None],
    premises: Condition,
) -> Sample:
    """The site as an engine of single samples sees it, in these shapes."""
    if shapes[: len(source.operands)] != source.operands:
        with suppress(BroadcastError):  # a site that works for no single sample is judged unchanged
            source = _planned(site, shapes, premises)
    return without_batch(source, axes[: len(source.operands)])


def _unknown(cause: Cause, message: Message) -> Judgement:
    return Judgement(None, None, Verdict.UNKNOWN, cause, message)


def _not_judged(site: Site) -> Judgement | None:
    """The judgement of a site that cannot be planned: custom, not modelled, of unknown shape."""
    node = site.node
    if site.kind is Kind.CUSTOM:
        message = f"nothing is known about {node.op} of domain {node.domain!r}"
        if node.domain == MALFORMED:
            message = (
                f"the node is malformed, and a note says how: nothing is known about {node.op}"
            )
        return _unknown(Cause.CUSTOM_OP, message)
    if site.call is not None:
        return _of_unknown_shape(site)
    if site.kind is Kind.NOT_MODELLED:
        part = f": {site.lacks}" if site.lacks else ""
        message = f"{node.op} may broadcast in a way that is not modelled{part}"
        return _unknown(Cause.NOT_MODELLED, message)
    return _of_unknown_shape(site)


def _of_unknown_shape(site: Site) -> Judgement | None:
    absent = [k for k, part in enumerate(site.operands) if part.shape is None]
    missing = [k for k in absent if site.operands[k].missing is not None]
    if missing:
        first = missing[0]
        needed = f"is needed, and its data is missing: {site.operands[first].missing}"
        return _unknown(Cause.MISSING_DATA, lambda like: f"{like.operands[first].name!r} {needed}")
    if absent:
        first = absent[0]
        return _unknown(
            Cause.UNKNOWN_SHAPE,
            lambda like: f"the shape of {like.operands[first].name!r} is not known",
        )
    return None


def _input_name(site: Site, position: int) -> str:
    value = site.node.inputs[position]
    return "" if value is None else value.name


def _is_tensor(part: Operand) -> bool:
    """Whether an operand is known to be a tensor: a sequence has no element type."""
    return part.tensor is not None and part.tensor.dtype is not None


def _frozen(attributes: Mapping[str, Any]) -> Hashable:
    if not attributes:
        return ()
    return tuple(sorted((name, repr(value)) for name, value in attributes.items()))
