"""Where operands land: layouts become steps on the six axes, by a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import Misfit, Reason
from ..sizes import Answer, Shape, equal
from .plan import Asked, Operand, Space, contiguous
from .rules import AttentionRule, Mask

if TYPE_CHECKING:
    from ..sizes.dim import Number


class Sizes:
    """Compares sizes; what is not known of open ones becomes a condition."""

    def __init__(self, facts: Any) -> None:
        self._facts = facts
        self._conditions: list[Any] = []

    def same(self, a: Number, b: Number, what: str) -> Number:
        """The common size; raises a Misfit if the two differ."""
        answer = equal(a, b)
        if answer is Answer.NO:
            raise Misfit(Reason.EXTENT_MISMATCH, f"{what}: {a} against {b}")
        if answer is Answer.UNKNOWN:
            from ..sizes.condition import eq

            self._conditions.append(eq(a, b))
        return b if isinstance(b, int) else a

    def stretched(self, a: Number, b: Number, what: str) -> Number:
        """The common size where one of the two may be 1 and repeat."""
        if a == 1:
            return b
        return a if b == 1 else self.same(a, b, what)

    def conditions(self) -> Any:
        """The conditions on open sizes, simplified by the facts."""
        if not self._conditions:
            return ()
        from ..engines.planning import as_facts
        from ..sizes.condition import all_of
        from ..sizes.simplify import simplified
        from ..sizes.solve import satisfiable

        facts = as_facts(() if self._facts is None else self._facts)
        every = all_of(self._conditions)
        if satisfiable(all_of([facts, every])) is Answer.NO:
            raise Misfit(Reason.EXTENT_MISMATCH, f"no sizes fulfil {every}")
        return simplified(every, facts)


@dataclass(frozen=True, slots=True)
class _Laid:
    """An operand by its layout: the size and the step of each letter that it has."""

    name: str
    shape: Shape
    layout: str
    sizes: Mapping[str, Number]
    steps: Mapping[str, Number]

    def size(self, letter: str) -> Number:
        return self.sizes.get(letter, 1)

    def placed(self, **axes: tuple[Number, Number]) -> Operand:
        """On the six axes: those of `axes` as they say, the others by their letter."""
        rows = [axes.get(x, (self.size(x), self.steps.get(x, 0))) for x in _LETTERS]
        steps = tuple(0 if size == 1 else step for size, step in rows)
        return Operand(self.name, self.shape, steps, tuple(size for size, _ in rows))


#: A letter for each of `AXES`: a query has no keys, keys have no queries.
_LETTERS = "bkgstd"


def places(
    rule: AttentionRule, asked: Asked, sizes: Sizes
) -> tuple[Space, tuple[Operand, ...], Shape, str]:
    """The space, the places of query, key and value, the result's shape, the query's layout."""
    q = _laid(rule, "query", asked.shapes[0], asked.heads, None)
    k = _laid(rule, "key", asked.shapes[1], asked.heads, q.size("d"))
    v = _laid(rule, "value", asked.shapes[2], asked.heads, None, k.size("h"))
    batch_of = sizes.stretched if "b" in rule.stretches else sizes.same
    batch = batch_of(k.size("b"), v.size("b"), "the batches of key and value differ")
    batch = batch_of(q.size("b"), batch, "the batches of query and key differ")
    mask = _mask_sizes(rule, asked, q.layout)
    if "m" in rule.stretches:
        batch = sizes.stretched(batch, mask.get("b", 1), "the batches of query and mask differ")
    sizes.same(q.size("d"), k.size("d"), "the features of query and key differ")
    length = sizes.same(k.size("t"), v.size("t"), "key and value have different lengths")
    heads_of = sizes.stretched if set("hv") & set(rule.stretches) else sizes.same
    heads = heads_of(k.size("h"), v.size("h"), "key and value have different numbers of heads")
    if "m" in rule.stretches and q.size("h") == 1:
        heads = sizes.stretched(heads, mask.get("h", 1), "the heads of key and mask differ")
    if asked.past != 0 and not rule.past:
        raise Misfit(Reason.ATTRIBUTE, f"{rule.name} takes no past keys; put them before the keys")
    group, (kv_axis, group_axis) = _groups(rule, q, heads, sizes)
    every = heads if q.size("h") == 1 else q.size("h")
    space = Space(batch, heads, group, q.size("s"), asked.past + length, q.size("d"), v.size("d"))
    places = (
        q.placed(k=kv_axis, g=group_axis),
        *(x.placed(k=(x.size("h"), x.steps.get("h", 0)), g=(1, 0)) for x in (k, v)),
    )
    result = {"b": batch, "h": every, "s": q.size("s"), "d": v.size("d"), "x": every * v.size("d")}
    shape = tuple(result[x] for x in _letters(rule.result or q.layout))
    return space, places, shape, q.layout


def _letters(layout: str) -> str:
    return layout.replace("(hd)", "x")


def _laid(
    rule: AttentionRule,
    name: str,
    shape: Shape,
    heads: tuple[int, int | None] | None,
    feature: Number | None,
    count: Number | None = None,
) -> _Laid:
    """The operand in the layout that the row has for its rank; `count` and `feature` of its heads
    where they are known from another operand.
    """
    layouts = rule.layouts.get(len(shape), ())
    packed = heads is not None and any("(hd)" in layout for layout in layouts)
    chosen = [layout for layout in layouts if ("(hd)" in layout) is packed]
    if not chosen:
        raise Misfit(Reason.RANK, _wanted(rule, name, shape))
    layout = chosen[0] if name == "query" else chosen[0].replace("s", "t")
    letters = _letters(layout)
    sizes = dict(zip(letters, shape, strict=True))
    steps = dict(zip(letters, contiguous(shape), strict=True))
    if "x" in sizes:
        assert heads is not None
        size = sizes["x"]
        number = count or (heads[0] if name == "query" else heads[1])
        if number is None:
            number = _divided(size, feature, f"features of a head do not divide the {name}'s")
        sizes["h"], sizes["d"] = number, _divided(size, number, f"heads do not divide the {name}'s")
        steps["h"], steps["d"] = sizes["d"], 1
    return _Laid(name, shape, layout, sizes, steps)


def _divided(size: Number, number: Any, what: str) -> Number:
    if isinstance(size, int) and isinstance(number, int) and (number == 0 or size % number):
        raise Misfit(Reason.EXTENT_MISMATCH, f"{number} {what} {size}")
    parts: Number = size // number
    return parts


def _wanted(rule: AttentionRule, name: str, shape: Shape) -> str:
    layouts = rule.layouts.get(len(shape), ())
    if any("(hd)" in row for row in layouts):
        return f"a {name} of {len(shape)} axes has its heads side by side: say how many, heads=N"
    ranks = " or ".join(map(str, sorted(rule.layouts)))
    return f"{rule.name} takes a {name} of {ranks} axes, not {len(shape)}"


def _groups(
    rule: AttentionRule, q: _Laid, heads: Number, sizes: Sizes
) -> tuple[Number, tuple[tuple[Number, Number], tuple[Number, Number]]]:
    """Query heads for each key head; the query's size and step along kv heads and groups."""
    count, step = q.size("h"), q.steps.get("h", 0)
    alone = (1, 0)
    if equal(count, heads) is Answer.YES:
        return 1, ((count, step), alone)
    if heads == 1 and (rule.grouping or "h" in rule.stretches):
        return count, (alone, (count, step))
    if count == 1 and "h" in rule.stretches:
        return 1, (alone, alone)
    if not rule.grouping or not isinstance(heads, int):
        sizes.same(count, heads, "query and key have different numbers of heads")
        return 1, ((count, step), alone)
    group = _divided(count, heads, "key heads do not divide the query's")
    if rule.grouping == "tiled":
        return group, ((heads, step), (group, heads * step))
    return group, ((heads, group * step), (group, step))


#: The axes of the scores by the query's layout.
_SCORES = {
    **dict.fromkeys(("bhsd", "bshd", "bs(hd)"), "bhst"),
    "s(hd)": "hst",
    "bsd": "bst",
    "hsd": "hst",
    "sd": "st",
}


def _mask_layout(rule: AttentionRule, asked: Asked, layout: str) -> tuple[Mask, str]:
    """The row of the mask, and its axes."""
    rank = len(asked.shapes[3])
    row = rule.masks.get((asked.mask_type, rank))
    if row is None:
        # What checks nothing reads the mask as if it had the axes that it takes.
        reason = Reason.EXTENT_MISMATCH if rule.unchecked else Reason.RANK
        raise Misfit(reason, _masks_taken(rule, asked))
    scores = _SCORES[layout]
    if row.layout:
        return row, row.layout
    if rank > len(scores) and "m" not in rule.stretches:
        words = f"a mask of {rank} axes for scores of {len(scores)}"
        raise Misfit(Reason.RANK, words)
    return row, scores[-rank:] if rank <= len(scores) else "+" + scores


def _mask_sizes(rule: AttentionRule, asked: Asked, layout: str) -> Mapping[str, Number]:
    """The mask's sizes by their letter; none if there is no mask, or none that the row takes."""
    unread = rule.causal_alone and asked.causal is not False
    if len(asked.shapes) < 4 or unread or (asked.mask_type, len(asked.shapes[3])) not in rule.masks:
        return {}
    _, letters = _mask_layout(rule, asked, layout)
    return dict(zip(letters, asked.shapes[3], strict=True))


def mask_place(
    rule: AttentionRule, asked: Asked, space: Space, layout: str, sizes: Sizes
) -> tuple[Operand, Number]:
    """The mask's place, and how many keys it covers."""
    shape = asked.shapes[3]
    row, letters = _mask_layout(rule, asked, layout)
    full = {
        "b": space.batch,
        "h": space.kv_head * space.group,
        "s": space.query,
        "t": space.key,
    }
    own = dict(zip(letters, shape, strict=True))
    steps = dict(zip(letters, contiguous(shape), strict=True))
    keys = space.key
    own.pop("+", None)  # an axis beyond the scores: the row's faults refuse it
    for letter, size in own.items():
        axis = _AXIS_NAMES[letter]
        if letter == "t" and rule.short_keys and isinstance(size, int):
            keys = size
            if isinstance(space.key, int) and size > space.key:
                raise Misfit(
                    Reason.EXTENT_MISMATCH, f"the mask has {size} keys, and there are {space.key}"
                )
        elif not (letter in row.stretch and size == 1):
            sizes.same(size, full[letter], f"the mask's {axis} axis does not fit")
    heads = own.get("h", 1)
    kv: tuple[Number, Number] = (1, 0)
    group: tuple[Number, Number] = (1, 0)
    if heads != 1:
        step = steps["h"]
        kv, group = (space.kv_head, space.group * step), (space.group, step)
        if rule.grouping == "tiled":
            kv, group = (space.kv_head, step), (space.group, space.kv_head * step)
    laid = _Laid("mask", shape, letters, own, steps)
    return laid.placed(k=kv, g=group, d=(1, 0)), keys


_AXIS_NAMES = {"b": "batch", "h": "head", "s": "query", "t": "key"}


def _masks_taken(rule: AttentionRule, asked: Asked) -> str:
    ranks = sorted(rank for kind, rank in rule.masks if kind == asked.mask_type)
    rank = len(asked.shapes[3])
    if not ranks:
        kinds = sorted({kind for kind, _ in rule.masks})
        other = f"; it takes one of {kinds[0]}" if kinds else ""
        return f"{rule.name} takes no mask of {asked.mask_type}{other}"
    words = " or ".join(map(str, ranks))
    return f"{rule.name} takes a mask of {words} axes, not {rank}"
