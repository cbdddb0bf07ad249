"""Whether two models mean the same for every size: their tensors as terms in one normal form.

`places` has the indices of views, `terms` the terms. `builder` makes them in normal form, with
`axes`, `constants`, `joining`, `scales`, `folds` and `fingerprints`. `moving`, `forms` and
`computing` have a row for each op, and `fused_ops` writes ops that stand for several. `pair` gives
two models one set of sizes, `reading` walks a graph, `matching` compares, `proof` gives verdicts,
`cases` by cases of sizes, and `regions` says where two models part. `node_proofs` compares a node
with those in its place.
In: two graphs. Out: which outputs are equal, and the nodes in which others differ.
"""
