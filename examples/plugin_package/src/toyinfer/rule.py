"""A rule: first axes stand under one another, and either operand may stretch."""

from zerostride.core.alignment import Alignment, Rule


def align_left(asker, shapes, attributes):
    """The result axes. It may test only whether two sizes are equal and whether a size is 1."""
    rank = max(map(len, shapes))
    mapping = tuple(tuple(range(len(shape))) for shape in shapes)
    return Alignment(rank, mapping, (range(rank),) * len(shapes))


RULE = Rule(
    name="toyleft",
    align=align_left,
    summary="Left-aligned; along each axis sizes are equal or one of them is 1.",
    source="toyinfer's manual, 'Shapes'",
)
