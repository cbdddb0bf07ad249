"""The real engines, each run in a process of its own.

`probe` asks an engine generated cases of single ops and compares the values with predictions
(`zerostride engines --measure`). `verify` asks it the nodes of a model, or the model as a whole.
Engines are imported in child processes alone, so a crash is an answer.
In: cases, models. Out: what the engine did.
"""
