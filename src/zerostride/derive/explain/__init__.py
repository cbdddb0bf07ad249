"""A plan as text, as a picture and as data.

Operands stand in columns over the result: a dot where nothing lands, `1→5` where an extent of 1
stretches to 5. `facts` collects what there is to say, `open` does so for open sizes, `text` and
`picture` draw it. Nothing here raises for a valid plan.
In: a Plan. Out: text, SVG, HTML, data.
"""

from .facts import Fact, Growth, as_dict, facts, growth, headline
from .picture import html, svg
from .text import explain

__all__ = ["Fact", "Growth", "as_dict", "explain", "facts", "growth", "headline", "html", "svg"]
