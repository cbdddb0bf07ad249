"""A graph executed with NumPy: broadcasts by their sites' plans, other ops by a table."""

from .run import execute, not_executed

__all__ = ["execute", "not_executed"]
