"""A plan as text, as a picture and as data.

Operands stand in columns over the result: a dot where nothing lands, `1→5` where an extent of 1
stretches to 5. `facts` collects the sentences about a plan, `open` those about open sizes, and
`text` and `picture` draw them. Nothing here raises for a valid plan.
In: a Plan. Out: text, SVG, HTML, data.
"""

from .facts import Fact, Growth, as_dict, facts, growth, headline
from .picture import html, svg
from .text import explain

__all__ = ["Fact", "Growth", "as_dict", "explain", "facts", "growth", "headline", "html", "svg"]
