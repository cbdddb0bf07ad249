"""Whether two models mean the same for every size: their tensors as terms in one normal form.

`places` has the indices of views, `terms` the terms, `builder` makes them in normal form, `moving`
and `computing` have a row for each op, `reading` walks a graph, `matching` compares.
In: two graphs. Out: which outputs are equal, and the terms in which others differ.
"""
