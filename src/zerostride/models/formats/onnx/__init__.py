"""ONNX files: reader, sites, editor.

`reader` builds a graph, with `tensors`, `functions` and `isolated_inference`. `onnx_validation`
protects the onnx package from hostile files. `sites` finds the nodes that broadcast and their
rules, `quantised_sites` those of quantised ops. `editor` changes a file, with `messages` and
`scope`.
In: a file. Out: Graph, Site, a changed file.
"""
