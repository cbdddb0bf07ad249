"""Names in files that are written: each belongs to one tensor or node."""

from __future__ import annotations


def take(stem: str, taken: set[str]) -> str:
    """Takes a name: the stem, or the stem with the first free number from 2.

    >>> names = {"x", "x_2"}
    >>> take("x", names), take("", names), sorted(names)
    ('x_3', '_2', ['_2', 'x', 'x_2', 'x_3'])
    """
    name, count = stem, 1
    while not name or name in taken:
        count += 1
        name = f"{stem}_{count}"
    taken.add(name)
    return name
