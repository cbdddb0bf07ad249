"""Floor 5: rewriting a model so that another engine means the same by it, with proof."""

from .run import port

__all__ = ["port"]
