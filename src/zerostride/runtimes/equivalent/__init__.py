"""Two models compared for every size: the proof, runs that confirm it, and a witness.

`run` is the command, `tries` runs both models at small and unequal sizes, `cuts` writes regions as
model files.
In: two models. Out: a report with an `equivalence`.
"""
