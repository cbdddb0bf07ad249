"""Model files: read into a neutral graph, judged, rewritten, executed.

`ir` is the graph, `formats` reads and edits files, `onnx_ops` has a row for each ONNX op, `flow`
follows sizes, `transport` finds the plan of a node on an engine, `audit` compares, `layout` and
`port` rewrite, `execute` computes, `bisect` finds where two runs first differ. `findings` and
`bisection` hold the results, `options` what a caller says about a model, `format_table` a row for
each format.
In: a model file. Out: Report, or another file.
"""
