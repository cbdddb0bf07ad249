"""An invented package that adds rows to zerostride."""
