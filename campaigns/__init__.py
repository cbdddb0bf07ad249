"""Long measurements of zerostride: generators, judges and the tables that they print.

Nothing here is shipped in the wheel. Each campaign is a command: ``python -m campaigns NAME``.
Models, engines and releases come in; a table, and a generated page of `docs/`, go out.
"""
