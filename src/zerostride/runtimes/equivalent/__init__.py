"""Two models compared for every size: the proof, runs that confirm it, and a witness.

`run` is the command, `runs` runs both models at small and unequal sizes, `region_files` writes
regions as model files, and `converted` has the proof in a sentence for other commands.
In: two models. Out: a report with an `equivalence`.
"""
