"""The engine table: what each engine's release does, as data with a source.

A *rule* is what a document says; an *engine* is what a release does. `rows_*` hold the rows,
`limits` and `aligns` the checks and alignments that they use, `history` older releases.
`planning` has `zs.plan`: it finds the rule that an engine uses, and plans.
In: an engine, an op, shapes. Out: the Plan that the release makes, or what it refuses.
"""

from .model import Divergence, Engine, Support
from .table import ENGINES, find_engine

__all__ = ["ENGINES", "Divergence", "Engine", "Support", "find_engine"]
