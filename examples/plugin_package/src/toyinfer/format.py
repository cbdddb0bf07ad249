"""A model format: `c = Add a b` a line, after `a 5 5` for each input."""

from zerostride.models.formats import Format

FORMAT = Format(
    name="toy",
    suffixes=(".toy",),
    module="reader",
    package="toyinfer",
    engine="toyinfer",
    writable=False,
)
