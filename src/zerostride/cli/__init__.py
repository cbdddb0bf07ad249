"""The command line. Exit status 0: fine; 1: something was found; 2: bad input.

`main` has the group and turns errors into lines; one module a command or a family of commands;
`options`, `reporting`, `tables`, `files`, `shapes` and `progress` are shared.
In: words and files. Out: text, JSON, an exit status.
"""

from .main import main

__all__ = ["main"]
