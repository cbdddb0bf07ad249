"""`python -m zerostride` is the command `zerostride`."""

from .cli import main

main()
