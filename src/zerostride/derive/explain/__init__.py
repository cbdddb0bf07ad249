"""Floor 3: what a working plan looks like, as text, as a picture, and as data.

Drawn as the errors are: operands in columns over the result, a dot where nothing lands, `1→5` where
an extent of 1 stretches to 5. Nothing here raises for a valid plan.
"""

from .facts import Fact, Growth, as_dict, facts, growth, headline
from .picture import html, svg
from .text import explain

__all__ = ["Fact", "Growth", "as_dict", "explain", "facts", "growth", "headline", "html", "svg"]
