"""Whether two models mean the same for every size: their tensors as terms in one normal form.

`places` has the indices of views, `terms` the terms. `builder` makes them in normal form, with
`axes`, `constants` and `scales`. `moving`, `forms` and `computing` have a row for each op. `pair`
gives two models one set of sizes, `reading` walks a graph, `matching` compares, `proof` says where
they part.
In: two graphs. Out: which outputs are equal, and the terms in which others differ.
"""
