"""Floor 3: what each engine's release does, as data with a source.

A *rule* is what a document says; an *engine* is what a release does. `table` has one row an engine,
`versions` compares the installed release with the measured one.
"""

from .model import Divergence, Engine, Support
from .table import ENGINES, find_engine

__all__ = ["ENGINES", "Divergence", "Engine", "Support", "find_engine"]
