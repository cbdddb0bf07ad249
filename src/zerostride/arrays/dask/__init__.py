"""Dask's arrays: lazy in, lazy out.

`adapter` is the entry point, `stages` cuts a program into stages that run on chunks, `lazy` builds
Dask's graph, `tasks` holds the code of a task, `folds` merges the chunks of reductions, `labels`
finds equal chunks, `vjp` has gradients, `mapped_files` names files instead of their contents.
In: Dask arrays. Out: Dask arrays.
"""
