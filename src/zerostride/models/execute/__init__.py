"""A graph executed with NumPy: broadcasts by their sites' plans, other ops by a table."""

from .run import Program, execute, not_executed, prepare, run_program

__all__ = ["Program", "execute", "not_executed", "prepare", "run_program"]
