"""Floor 6: the command line. Exit status 0: fine; 1: something was found; 2: bad input."""

from .main import main

__all__ = ["main"]
