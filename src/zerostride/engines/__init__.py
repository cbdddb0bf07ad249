"""The engine table: the behaviour of each engine's release, as data with a source.

A *rule* follows a document; an *engine* row records a release. `rows_*` hold the rows, `limits` and
`aligns` the checks and alignments that they use, `changes` what older releases did otherwise, and
`releases` makes their rows of it. `planning` has
`zs.plan`: it finds the rule that an engine uses, and plans.
In: an engine, an op, shapes. Out: the Plan of the release, or its refusal.
"""

from .model import Divergence, Engine, Support
from .table import ENGINES, find_engine

__all__ = ["ENGINES", "Divergence", "Engine", "Support", "find_engine"]
