"""Rewriting a model so that another engine means the same by it, with proof.

`run` is `zs.port`; `written` writes compound ops out first. `passes` propose rewrites, cheapest
first, `search` finds one for each node, `program` and `numbers` prove it by plans and by values,
`replay` reads the written file again.
In: a file, a target. Out: Report, a new file.
"""

from .run import port

__all__ = ["port"]
