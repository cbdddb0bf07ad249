"""The real engines, each run in its own process.

`probe` runs generated cases of single ops on an engine and compares the values with predictions
(`zerostride engines --measure`). `verify` runs the nodes of a model, or the whole model. Engines
are imported only in child processes, so a crash is a result.
In: cases, models. Out: the engine's results.
"""
