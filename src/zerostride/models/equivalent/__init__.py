"""Whether two models mean the same for every size: their tensors as terms in one normal form.

`places` has the indices of views, `terms` the terms. `builder` makes them in normal form, with
`axes`, `constants`, `joining`, `scales` and `prints`. `moving`, `forms` and `computing` have a row
for each op, `written` ops that stand for several. `pair` gives two models one set of sizes,
`reading` walks a graph, `matching` compares, `proof` gives verdicts, `cases` by cases of sizes,
`regions` says where two models part. `local` compares a node with those in its place.
In: two graphs. Out: which outputs are equal, and the nodes in which others differ.
"""
