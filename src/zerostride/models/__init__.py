"""Model files: read into a neutral graph, judged, rewritten, executed.

`ir` is the graph, `formats` reads and edits files, `flow` follows sizes, `transport` says how an
engine carries a node, `audit` compares, `layout` and `port` rewrite, `execute` computes.
`findings` holds the answers.
In: a model file. Out: Report, or another file.
"""
