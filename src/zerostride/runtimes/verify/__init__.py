"""Floor 5: models on the real engines, node by node or whole, beside zerostride's own answer.

`sites` makes of a broadcast a task for an engine, `child` (another process, which may die) runs it
by `runners`, `compare` holds the answer against zerostride's own, `cache` keeps what was found out,
and `checks` is the whole of it.
"""
