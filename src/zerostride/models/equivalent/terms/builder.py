"""Builds terms in normal form: views at the leaves, sums and products of many, constants folded.

Views are pushed through element-wise ops, sums over axes and concatenations to the tensors that
they read. What holds in floating point, is always done. What holds up to rounding (a sum in another
order, a scale in the weights of a product) is done unless the builder is `exact`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from ....core.plan import Plan
from ....sizes.atoms import Symbol
from ....sizes.condition import ALWAYS, Condition, all_of, ge
from ....sizes.dim import Dim, Number, dim, plain
from .axes import MOST_PARTS, axes_of, continues, kept_axis, places_of, spreads
from .constants import Compute, cancels, folded, is_number, number_in
from .folds import fold_operand
from .joining import joined
from .places import Places, Space, axes_in, index, lone_axis, own_places
from .scales import constants_apart, led_by_one, scaled, taken_out
from .term import (
    COMMUTATIVE,
    CONCAT,
    CONSTANT,
    DOT,
    PRODUCT,
    REDUCE,
    SUM,
    VIEW,
    Shape,
    Term,
    Terms,
    numbers_of,
)

#: Of these an operand may be left out that is there twice.
_IDEMPOTENT = frozenset(["Max", "Min", "And", "Or", "BitwiseAnd", "BitwiseOr"])
#: What joins reductions of parts to that of the whole.
_JOINING = {"Sum": SUM, "Prod": PRODUCT, "Max": "Max", "Min": "Min"}
#: Ops along an axis of their operand, whose result has its shape. Their first attribute is it.
ALONG = frozenset(["Softmax", "LogSoftmax", "Hardmax", "CumSum", "CumProd", "LpNormalization"])
#: Views are pushed through so many terms.
_DEEPEST = 200
#: Views of a comparison: models of 800 nodes have 20,000.
_MOST_VIEWS = 300_000


class TooLarge(Exception):  # noqa: N818 - an answer, not a fault
    """Two models have more terms than are compared."""


class Builder:
    """Builds terms.

    Attributes:
        terms: all terms.
        exact: nothing is done that rounding may show.
        facts: conditions on sizes that both models need.
    """

    def __init__(self, facts: Condition = ALWAYS, *, exact: bool = False) -> None:
        self.terms = Terms()
        self.exact = exact
        self.facts = facts
        self._spaces: dict[Shape, Space] = {}
        self._views: dict[tuple[int, Shape, Places], Term] = {}
        #: The ops that are computed element by element.
        self.element_wise: set[str] = {SUM, PRODUCT}
        self._depth = 0
        #: Fingerprints of terms, by their number.
        self.fingerprints: dict[int, int] = {}
        #: Plans of broadcasts, by what they are planned of.
        self.plans: dict[Hashable, Plan] = {}

    def learn(self, condition: Condition) -> None:
        """Adds what is known of sizes."""
        self.facts = all_of([self.facts, condition])
        self._spaces.clear()
        self.plans.clear()

    def space(self, shape: Sequence[Number]) -> Space:
        """The indices of a shape."""
        key = tuple(map(plain, shape))
        if key not in self._spaces:
            self._spaces[key] = Space(key, self.facts)
        return self._spaces[key]

    # Views.

    def view(self, term: Term, shape: Sequence[Number], places: Sequence[Dim]) -> Term:
        """A view of a term."""
        space = self.space(shape)
        ones: dict[Symbol, Number] = {
            index(axis).symbols[0]: 0 for axis, size in enumerate(space.extents) if size == 1
        }
        if ones:
            places = [dim(place.substitute(ones)) for place in places]
        refined = tuple(map(space.refined, places))
        key = (term.number, space.extents, refined)
        known = self._views.get(key)
        if known is None:
            if len(self._views) > _MOST_VIEWS:
                raise TooLarge
            self._depth += 1
            known = self._views[key] = self._view(term, space, refined)
            self._depth -= 1
        return known

    def _view(self, term: Term, space: Space, places: Places) -> Term:
        shape = space.extents
        if term.shape == shape and places == own_places(shape):
            return term
        if term.op == VIEW:
            return self.view(term.base, shape, space.read(places, term.places))
        if spreads(term.shape, shape, places):
            # Nothing is computed again because its result is repeated.
            return self.terms.get(VIEW, (term,), shape, places=places, dtype=term.dtype)
        if self._depth < _DEEPEST and term.args:
            used = sorted(axes_in(places))
            if len(used) < len(shape):
                return self._view_in_few_axes(term, shape, places, used)
            if term.op in self.element_wise:
                return self.again(term, [self.view(arg, shape, places) for arg in term.args], shape)
            if term.op in (DOT, REDUCE):
                return self._view_of_fold(term, shape, places)
            if term.op in ALONG:
                along = kept_axis(term.shape, term.attributes[0], shape, places)
                if along is not None:
                    inner = self.view(term.args[0], shape, places)
                    return self.along(term.op, inner, along, term.attributes[1:])
            if term.op == CONCAT:
                part = self._part(term, space, places)
                if part is not None:
                    return self.view(part[0], shape, part[1])
                turned = self._view_of_parts(term, shape, places)
                if turned is not None:
                    return turned
        if term.op == CONSTANT:
            known = self._turned(term, shape, places)
            if known is not None:
                return known
        return self.terms.get(VIEW, (term,), shape, places=places, dtype=term.dtype)

    def _view_in_few_axes(
        self, term: Term, shape: Shape, places: Places, used: Sequence[int]
    ) -> Term:
        """A view along the axes along which it moves, spread to the others: fewer are pushed."""
        moved: dict[Symbol, Number] = {
            index(axis).symbols[0]: index(k) for k, axis in enumerate(used)
        }
        few = [dim(place.substitute(moved)) for place in places]
        inner = self.view(term, [shape[axis] for axis in used], few)
        return self.view(inner, shape, [index(axis) for axis in used])

    def _turned(self, term: Term, shape: Shape, places: Places) -> Term | None:
        """A view of a constant that has its axes in another order, as one in which they lie so."""
        axes = [lone_axis(place) for place in places]
        known = [axis for axis in axes if axis is not None]
        if len(known) < len(axes) or len(set(known)) < len(known) or known == sorted(known):
            return None
        if term.data is None or any(shape[a] != n for a, n in zip(known, term.shape, strict=True)):
            return None
        order = sorted(range(len(known)), key=lambda k: known[k])
        turned = self.terms.constant(term.data.transpose(order))
        return self.view(turned, shape, [index(axis) for axis in sorted(known)])

    def _view_of_fold(self, term: Term, shape: Shape, places: Places) -> Term:
        """The same fold of views: the axes that are folded are the last of its operands."""
        rank = len(term.shape)
        folded = term.args[0].shape[rank:]
        inner = [*places, *(index(len(shape) + k) for k in range(len(folded)))]
        args = [self.view(arg, (*shape, *folded), inner) for arg in term.args]
        if term.op == DOT:
            return self.dot(args[0], args[1], shape)
        return self.reduce(term.attributes[0], args[0], shape, term.dtype)

    def _part(self, term: Term, space: Space, places: Places) -> tuple[Term, Places] | None:
        """The operand of a concatenation that a view reads alone, and where."""
        (axis,) = term.attributes
        place = places[axis]
        low, high = space.end(place, upper=False), space.end(place, upper=True)
        if low is None or high is None:
            return None
        before: Number = 0
        for arg in term.args:
            after = before + arg.shape[axis]
            if space.holds(ge(low, before)) and space.holds(ge(dim(after) - 1, high)):
                inner = (*places[:axis], place - before, *places[axis + 1 :])
                return arg, inner
            before = after
        return None

    def _view_of_parts(self, term: Term, shape: Shape, places: Places) -> Term | None:
        """A view that keeps the axis of a concatenation whole, as one of views of its parts."""
        (axis,) = term.attributes
        along = kept_axis(term.shape, axis, shape, places)
        if along is None:
            return None
        parts = [
            self.view(arg, (*shape[:along], arg.shape[axis], *shape[along + 1 :]), places)
            for arg in term.args
        ]
        return self.concat(parts, along, shape)

    def again(self, term: Term, args: Sequence[Term], shape: Shape) -> Term:
        """A sum, a product or an element-wise op of other operands."""
        if term.op == SUM:
            return self.total(args, shape)
        if term.op == PRODUCT:
            return self.product(args, shape)
        return self.pointwise(term.op, args, shape, term.attributes, term.dtype)

    def _narrowed(
        self,
        args: Sequence[Term],
        shape: Sequence[Number],
        build: Callable[[list[Term], Shape], Term],
    ) -> Term | None:
        """Builds a term in the axes along which an operand moves, and spreads it to the others.

        None if they move along all axes of the shape. Axes after these, which are folded, stay.
        """
        rank = len(shape)
        used = set().union(*map(axes_of, args)) if args else set()
        kept = [axis for axis in range(rank) if axis in used]
        if len(kept) == rank:
            return None
        small = tuple(plain(shape[axis]) for axis in kept)
        narrow = []
        for arg in args:
            folded = arg.shape[rank:]
            moved: dict[Symbol, Number] = {
                index(axis).symbols[0]: index(k) for k, axis in enumerate(kept)
            }
            for k in range(len(folded)):
                moved[index(rank + k).symbols[0]] = index(len(kept) + k)
            places = [dim(place.substitute(moved)) for place in places_of(arg)]
            narrow.append(self.view(arg.base, (*small, *folded), places))
        return self.view(build(narrow, small), shape, [index(axis) for axis in kept])

    def parts_of(self, term: Term, op: str) -> Sequence[Term]:
        """The operands of a sum, say, also of one that is spread; the term alone if it is none."""
        base = term.base
        if len(base.args) > MOST_PARTS:
            return (term,)
        if term.op == op:
            return term.args
        if base.op == op and spreads(base.shape, term.shape, term.places):
            return [self.view(arg, term.shape, term.places) for arg in base.args]
        return (term,)

    def number(self, value: float, like: Term, shape: Sequence[Number]) -> Term:
        """A constant that is one number everywhere."""
        array = np.array(value, like.dtype or "float32")
        return self.view(self.terms.constant(array), shape, ())

    # Element-wise.

    def pointwise(
        self,
        op: str,
        args: Sequence[Term],
        shape: Sequence[Number],
        attributes: tuple[object, ...] = (),
        dtype: str | None = None,
        compute: Compute | None = None,
    ) -> Term:
        """An element-wise op of operands that have its shape."""
        if compute is not None and all(arg.constant for arg in args):
            known = folded(self, compute, args, shape)
            if known is not None:
                return known
        self.element_wise.add(op)
        narrow = self._narrowed(
            args, shape, lambda few, small: self.pointwise(op, few, small, attributes, dtype)
        )
        if narrow is not None:
            return narrow
        if op in COMMUTATIVE:
            args = self._ordered(op, args, shape)
            if len(args) == 1:
                return args[0]
        return self.terms.get(op, args, shape, attributes, dtype=dtype)

    def _ordered(self, op: str, args: Sequence[Term], shape: Sequence[Number]) -> list[Term]:
        """The operands in order; those of an op of the same kind instead of it."""
        # Whether two are equal is no chain: it gives truth values of numbers.
        flat = list(args)
        if op != "Equal":
            flat = [arg for one in args for arg in self.parts_of(one, op)]
        flat.sort(key=lambda term: term.number)
        if op not in _IDEMPOTENT:
            return flat
        flat = list(dict.fromkeys(flat))
        constants = [arg for arg in flat if arg.constant]
        if len(constants) > 1 and op in ("Max", "Min"):
            function = np.maximum if op == "Max" else np.minimum
            known = folded(self, lambda arrays: function(*arrays), constants[:2], shape)
            if known is not None:
                rest = [arg for arg in flat if arg not in constants[:2]]
                return self._ordered(op, [*rest, known], shape)
        return flat

    # Sums and products of many.

    def total(self, args: Sequence[Term], shape: Sequence[Number]) -> Term:
        """A sum."""
        return self._many(SUM, args, shape)

    def product(self, args: Sequence[Term], shape: Sequence[Number]) -> Term:
        """A product."""
        return self._many(PRODUCT, args, shape)

    def _many(self, op: str, args: Sequence[Term], shape: Sequence[Number]) -> Term:
        function = np.add if op == SUM else np.multiply
        neutral = 0 if op == SUM else 1
        dtype = next((arg.dtype for arg in args if arg.dtype is not None), None)
        narrow = self._narrowed(args, shape, lambda few, small: self._many(op, few, small))
        if narrow is not None:
            return narrow
        flat = list(args)
        if not self.exact:
            flat = [arg for one in args for arg in self.parts_of(one, op)]
        if not self.exact and op == PRODUCT and sum(not arg.constant for arg in flat) > 1:
            flat, more = led_by_one(self, flat, shape)
            flat += more
        constants = [arg for arg in flat if arg.constant]
        rest = [arg for arg in flat if not arg.constant]
        if constants and (not rest or (len(constants) > 1 and not self.exact)):
            known: Term | None = constants[0]
            for other in constants[1:]:
                known = known and folded(self, lambda two: function(*two), [known, other], shape)
            if known is not None and not (rest and op == SUM and cancels(constants, known)):
                constants = [known]
        if rest:
            near = op == PRODUCT and not self.exact
            constants = [arg for arg in constants if not is_number(arg, neutral, near=near)]
        if not self.exact and op == PRODUCT and len(constants) == 1 and len(rest) == 1:
            known = scaled(self, constants[0], rest[0], shape)
            if known is not None:
                return known
        if not self.exact:
            rest = self._grouped(op, rest, shape)
        every = [*constants, *rest]
        if self.exact and len(every) > 2:
            every = [arg for arg in flat if arg in every]
        else:  # of three, the order changes rounding
            every.sort(key=lambda term: term.number)
        if len(every) == 1:
            return every[0]
        return self.terms.get(op, every, shape, dtype=dtype)

    def _grouped(self, op: str, args: Sequence[Term], shape: Sequence[Number]) -> list[Term]:
        """Operands that move along the same few axes as one operand."""
        groups: dict[frozenset[int], list[Term]] = {}
        for arg in args:
            groups.setdefault(frozenset(axes_of(arg)), []).append(arg)
        if len(groups) < 2:
            return list(args)
        whole = frozenset().union(*groups)
        grouped = []
        for axes, some in groups.items():
            joins = len(some) > 1 and axes != whole
            grouped += [self._many(op, some, shape)] if joins else some
        return grouped

    def without_number(self, term: Term) -> tuple[Term, float]:
        """A product without the number that is in it, and that number; else the term, and 1."""
        factors = self.parts_of(term, PRODUCT)
        number = next((n for n in map(number_in, factors) if n), None)
        if self.exact or number is None or len(factors) < 2:
            return term, 1.0
        rest = [factor for factor in factors if number_in(factor) is None]
        return self.product(rest, term.shape), number

    # Folds along axes.

    def dot(self, a: Term, b: Term, shape: Sequence[Number]) -> Term:
        """The sum of products over the last axis of two views of the same shape."""
        dtype = a.dtype or b.dtype
        narrow = self._narrowed((a, b), shape, lambda two, small: self.dot(two[0], two[1], small))
        if narrow is not None:
            return narrow
        if not self.exact:
            apart = constants_apart(self, a, b, shape)
            if apart is not None:
                return apart
            scales: list[Term] = []
            args = []
            for arg in (a, b):
                inner, outer = taken_out(self, arg, len(shape))
                args.append(inner)
                scales += outer
            if scales:
                plain_dot = self.dot(args[0], args[1], shape)
                taken = [self.view(s.base, shape, places_of(s)) for s in scales]
                return self.product([*taken, plain_dot], shape)
        two = sorted((a, b), key=lambda term: term.number)
        return self.terms.get(DOT, two, shape, dtype=dtype)

    def reduce(
        self, kind: str, arg: Term, shape: Sequence[Number], dtype: str | None = None
    ) -> Term:
        """A reduction over the last axes of a view, those beyond the result's rank."""
        if len(arg.shape) == len(shape):
            return arg
        arg = fold_operand(self, kind, arg, len(shape))
        narrow = self._narrowed(
            (arg,), shape, lambda one, small: self.reduce(kind, one[0], small, dtype)
        )
        if narrow is not None:
            return narrow
        if not self.exact and kind in ("Sum", "Mean"):
            inner, numbers = taken_out(self, arg, len(shape))
            if numbers:
                taken = [self.view(one.base, shape, places_of(one)) for one in numbers]
                return self.product([*taken, self.reduce(kind, inner, shape, dtype)], shape)
        join = _JOINING.get(kind)
        rank = len(shape)
        in_order = not (self.exact and join in (SUM, PRODUCT))
        if join and in_order and len(arg.shape) == rank + 1 and continues(arg, rank):
            parts = [self._reduced_part(kind, part, shape, dtype) for part in arg.args]
            whole = self.terms.get(join, parts, shape, dtype=arg.dtype)
            return self.again(whole, parts, whole.shape)
        return self.terms.get(REDUCE, (arg,), shape, (kind,), dtype=dtype or arg.dtype)

    def _reduced_part(
        self, kind: str, part: Term, shape: Sequence[Number], dtype: str | None
    ) -> Term:
        """A reduction over the last axis, which may have one element."""
        if part.shape[-1] != 1:
            return self.reduce(kind, part, shape, dtype)
        return self.view(part, shape, own_places((*shape, 1)))

    def along(self, op: str, arg: Term, axis: int, attributes: tuple[object, ...]) -> Term:
        """An op along an axis of its operand, whose result has its shape."""
        if op == "Softmax" and arg.shape[axis] == 1 and not self.exact:
            return self.number(1, arg, arg.shape)
        kept = sorted({*axes_of(arg), axis})
        if len(kept) < len(arg.shape):
            small = tuple(arg.shape[k] for k in kept)
            inner = self.along(op, self._few_axes(arg, kept), kept.index(axis), attributes)
            assert inner.shape == small
            return self.view(inner, arg.shape, [index(k) for k in kept])
        return self.terms.get(op, (arg,), arg.shape, (axis, *attributes), dtype=arg.dtype)

    def _few_axes(self, term: Term, kept: Sequence[int]) -> Term:
        """A term without the axes along which it does not move."""
        moved: dict[Symbol, Number] = {
            index(axis).symbols[0]: index(k) for k, axis in enumerate(kept)
        }
        places = [dim(place.substitute(moved)) for place in places_of(term)]
        return self.view(term.base, [term.shape[axis] for axis in kept], places)

    def concat(self, args: Sequence[Term], axis: int, shape: Sequence[Number]) -> Term:
        """Tensors one behind the other."""
        flat = [
            arg
            for one in args
            for arg in (one.args if continues(one, axis) else (one,))
            if arg.shape[axis] != 0
        ]
        if not flat:
            flat = list(args[:1])
        if len(flat) == 1:
            return flat[0]
        if all(arg.constant for arg in flat):
            arrays = [numbers_of(arg) for arg in flat]
            known = [array for array in arrays if array is not None]
            if len(known) == len(arrays):
                return self.terms.constant(np.concatenate(known, axis))
        whole = joined(self, flat, axis, shape)
        if whole is not None:
            return whole
        kept = sorted({axis}.union(*map(axes_of, flat)))
        if len(kept) < len(shape):
            few = [self._few_axes(arg, kept) for arg in flat]
            inner = self.concat(few, kept.index(axis), [shape[k] for k in kept])
            return self.view(inner, shape, [index(k) for k in kept])
        return self.terms.get(CONCAT, flat, shape, (axis,), dtype=flat[0].dtype)


__all__ = ["ALONG", "Builder", "TooLarge"]
