"""ONNX files: reader, what broadcasts, editor.

`reader` makes a graph, with `tensors`, `functions` and `isolated_inference`; `onnx_validation`
keeps hostile files from the onnx package. `sites` says which nodes broadcast, and by which rule,
`quantised_sites` does so for quantised ops. `editor` changes a file, with `messages` and `scope`.
In: a file. Out: Graph, Site, a changed file.
"""
