"""One site with its source plan and its rule on the target, ready to be judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...attention.plan import AttentionPlan
from ...core.alignment import apply
from ...core.plan import Plan
from ...derive.counterexample import Witness
from ...derive.express import Expression
from ...derive.release_rows import history
from ...derive.size_traps import Side
from ...engines.model import Divergence, Engine, always
from ...engines.releases import past_notes
from ...engines.supports import dtype_limit
from ...errors import BroadcastError, Reason
from ...sizes import Shape
from ...sizes.condition import Condition
from ..findings import Finding, Verdict
from ..ir.site import Kind, Operand, Site
from ..transport.element_types import KERNELS, OWN_KERNELS, QUANTISED, UNFIT, narrowing
from ..transport.pnnx import RULE as PNNX
from ..transport.pnnx import reshaped
from ..transport.sample import Sample
from ..transport.ways import canonical, element_type

#: Kinds that compute element by element, where engines differ by dtype.
_BY_ELEMENT = frozenset({Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU})


def sizes_of(part: Operand) -> Shape:
    """The sizes of an operand: numbers, or symbols."""
    return tuple(size for size in part.shape or () if size is not None)


#: A message: a string, or a function of the site if the message contains operand names.
Message: TypeAlias = "str | Callable[[Site], str]"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A finding without names: sites that differ in names alone share it.

    The fields are those of :class:`~zerostride.models.findings.Finding`; the names come last.
    """

    source: Plan | AttentionPlan | BroadcastError | None
    target: Plan | AttentionPlan | BroadcastError | None
    verdict: Verdict
    reason: str
    message: Message
    fix: Expression | None = None
    witness: Witness | None = None
    notes: tuple[str, ...] = ()
    when: Condition | None = None
    values: Mapping[str, int] | None = None
    divergences: tuple[Divergence, ...] = ()

    def of(self, site: Site) -> Finding:
        """The finding of a site that this judges."""
        return Finding(
            site.node.path,
            site.node.op,
            tuple([(part.name, part.shape) for part in site.operands]),
            self.source,
            self.target,
            self.verdict,
            str(self.reason),
            self.message if isinstance(self.message, str) else self.message(site),
            self.fix,
            self.witness,
            self.notes,
            self.when,
            self.values,
            self.divergences,
        )


@dataclass(frozen=True, slots=True)
class Carried:
    """A site and the rule by which an engine carries it."""

    site: Site
    engine: Engine
    target: Side

    @property
    def dtype(self) -> str | None:
        """The element type of the operands of an op that depends on it, where the model says it."""
        kind, rows = self.site.kind, self.engine.divergences
        depends = kind in _BY_ELEMENT or any(str(kind) in row.ops for row in rows)
        return self._element if depends else None

    @property
    def _element(self) -> str | None:
        """The element type that decides how the engine computes it."""
        return element_type(self.site)

    @property
    def divergences(self) -> tuple[Divergence, ...]:
        """The engine's divergences for this op on this dtype, without those of a narrower dtype."""
        every = self.engine.divergences_of(self.target.op or str(self.site.kind), self.dtype)
        kept = (row for row in every if row.narrows is None and not (row.dtypes and self._kernel))
        return (*kept, *(row for row in self._quantised if row.strikes is not always))

    @property
    def _quantised(self) -> tuple[Divergence, ...]:
        """The rows about quantised tensors of the types that the operands are stored in."""
        tensors = [part.tensor for part in self.site.operands if part.tensor is not None]
        stored = {value.dtype for value in tensors if value.quantised is not None}
        rows = QUANTISED.get((self.engine.name, self.op), ()) if stored else ()
        return tuple(row for row in rows if stored & row.dtypes)

    @property
    def _kernel(self) -> bool | None:
        """Whether the node's op or op set has a kernel; None where the engine's row decides."""
        own = OWN_KERNELS.get((self.engine.name, self.site.node.op))
        if own is not None and self._element is not None:
            return self._element in own
        row = KERNELS.get((self.engine.name, self.site.node.op))
        hit = row is not None and self.site.node.version in row[0] and self._element in row[1]
        return row[2] if row is not None and hit else None

    @property
    def narrowed(self) -> tuple[Divergence, ...]:
        """The rows of narrower dtypes in which the engine computes, where a number may not fit."""
        every = (
            *self.engine.divergences_of(self.target.op or str(self.site.kind), self._element),
            *narrowing(self.site, self.engine.name, self._element),
        )
        rows = [row for row in every if row.narrows is not None and not self._fits(row)]
        return tuple(sorted(rows, key=lambda row: row.held[1]))  # the narrowest first

    def _fits(self, row: Divergence) -> bool:
        """Whether the numbers of operands and results are known, and fit."""
        least, most = row.held
        numbers = [
            None if value is None else value.content
            for value in (
                *(part.tensor for part in self.site.operands if part.constant or not row.constants),
                *(() if row.constants else self.site.node.outputs),
            )
        ]
        return all(
            content is not None
            and all(isinstance(number, int) and least <= number <= most for number in content)
            for content in numbers
        )

    @property
    def unfit(self) -> Divergence | None:
        """Why the engine does not carry the op on this dtype, whatever the shapes."""
        for row in self._quantised:
            if row.strikes is always:
                return row
        unfit = UNFIT.get((self.engine.name, self.site.stands_for))
        if unfit is not None and self._element in unfit.dtypes:
            return unfit
        kernel = self._kernel
        if kernel is False:
            return self._no_kernel
        if self.dtype is None or kernel:
            return None
        kinds = [self.dtype]
        if self.op == "pow" and self.engine.name == "onnxruntime":
            exponent = self.site.operands[-1].tensor  # it takes another type, if it is one of these
            if exponent is not None and exponent.computed_type is not None:
                kinds.append(exponent.computed_type)
        limits = (
            dtype_limit(self.engine, self.target.op or str(self.site.kind), kind) for kind in kinds
        )
        limit = next((limit for limit in limits if limit is not None), None)
        return None if limit is not None and limit.narrows is not None else limit

    @property
    def _no_kernel(self) -> Divergence:
        """The divergence of a node whose op or op set lacks a kernel."""
        node, effect = self.site.node, Reason.DTYPE
        own = OWN_KERNELS.get((self.engine.name, node.op))
        where = f"in op set {node.version}" if own is None else f"in {node.op}"
        text = f"no kernel for {self._element} {where}"
        if own is not None and not own:
            text, effect = f"the runtime does not register {node.op}", Reason.NO_OP
        return Divergence(text, effect, self.engine.source, strikes=always)

    @property
    def op(self) -> str:
        """The op that a counter-example computes; "add" where none has its name."""
        return canonical(self.site) or "add"


@dataclass(frozen=True, slots=True)
class JudgedSite(Carried):
    """A carried site whose source is planned.

    Attributes:
        bare: only the verdict is needed: no fix and no witness.
    """

    source: Plan
    sample: Sample
    bare: bool = False

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes that the target's rule takes; a Broadcast op's target shape comes last."""
        if not self.target.rule.to_target:
            return self.sample.shapes
        target, axis = sizes_of(self.site.operands[-1]), self.sample.axis
        if axis is not None and len(target) == len(self.source.shape) and target[axis] == 1:
            target = (*target[:axis], *target[axis + 1 :])
        return (*self.sample.shapes, target)

    @property
    def meaning(self) -> Side | None:
        """The source's rule for the shapes that the target sees; None where no attributes fit."""
        if self.site.rule.to_target != self.target.rule.to_target:
            return None
        axis = self.site.attributes.get("axis")
        # Without the batch axis, an `axis` attribute counts one axis fewer.
        tries = [self.site.attributes]
        if axis is not None and self.sample.axis is not None:
            tries.append({**self.site.attributes, "axis": axis - 1})
        facts = self.sample.plan.open.given if self.sample.plan.open is not None else None
        for attributes in tries:
            try:
                plan = apply(self.site.rule, self.shapes, attributes, facts=facts)
            except BroadcastError:
                continue
            if plan == self.sample.plan:
                return Side(self.site.rule, attributes)
        return None

    def plan(self, shapes: tuple[Shape, ...]) -> Plan | BroadcastError:
        """The target's plan; a rule of two operands combines more of them two by two."""
        if len(shapes) <= self.target.rule.operands[1]:
            return self.target.plan(shapes)
        steps: list[Plan] = []
        so_far = shapes[0]
        for shape in shapes[1:]:
            step = self.target.plan((so_far, shape))
            if isinstance(step, BroadcastError):
                return step
            steps.append(step)
            so_far = step.shape
        return in_a_row(steps)

    def judged(
        self,
        target: Plan | BroadcastError,
        verdict: Verdict,
        reason: str,
        message: Message,
        **more: Any,
    ) -> Judgement:
        """The judgement of this case."""
        more["notes"] = (*more.get("notes", ()), *self._history(target))
        return Judgement(self.source, target, verdict, reason, message, **more)

    def _history(self, target: Plan | BroadcastError) -> tuple[str, ...]:
        """The differences of other releases of the engine, if all sizes are numbers."""
        meant = self.sample.plan
        if self.site.kind not in _BY_ELEMENT or meant.open is not None:
            return ()
        # After pnnx, operands have one rank; older releases were measured with those.
        converted = self.target.rule.source == PNNX.source
        shapes = meant.aligned if converted else meant.operands
        notes = history(self.engine, shapes, self.target.op, target, meant)
        if isinstance(target, Plan) and target.open is None:
            told = "".join(notes)
            past = past_notes(self.engine, reshaped(target) if converted else target)
            notes += tuple(note for note in past if note not in told)
        return notes


def in_a_row(steps: Sequence[Plan]) -> Plan:
    """Plans of two operands as one: the result of each is the first operand of the next."""
    onwards: Sequence[int | None] = range(steps[-1].rank)
    mappings = []
    for step in reversed(steps):
        through, own = step.axes_mapping
        mappings.append(_through(own, onwards))
        onwards = _through(through, onwards)
    operands = (steps[0].operands[0], *(step.operands[1] for step in steps))
    return Plan(steps[-1].shape, operands, (tuple(onwards), *reversed(mappings)), steps[-1].rule)


def _through(places: Sequence[int | None], onwards: Sequence[int | None]) -> tuple[int | None, ...]:
    """The places of axes after a further step."""
    return tuple(None if axis is None else onwards[axis] for axis in places)
