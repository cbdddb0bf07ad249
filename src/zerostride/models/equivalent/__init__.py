"""Whether two models mean the same for every size: their tensors as terms in one normal form.

`pair` gives two models one set of sizes, with `batch` for files without a batch axis. `reading`
reads graphs as terms, and `terms` has these in normal form. `proof` gives verdicts, `cases` by
cases of sizes, and `regions` says where two models part. `node_proofs` compares a node with those
in its place.
In: two graphs. Out: which outputs are equal, and the nodes in which others differ.
"""
