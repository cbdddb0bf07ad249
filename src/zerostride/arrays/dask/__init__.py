"""Dask's arrays: lazy in, lazy out.

`adapter` is the way in, `stages` cuts a program into stages that chunks can be computed in,
`lazy` makes Dask's graph, `tasks` is what a task runs, `folds` merges the chunks of reductions,
`labels` finds equal chunks, `vjp` has gradients, `mapped_files` names files instead of contents.
In: Dask arrays. Out: Dask arrays.
"""
