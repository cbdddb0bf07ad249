"""ONNX files: reader and editor.

`reader` builds a graph, with `tensors`, `functions` and `isolated_inference`. `editor` changes a
file, with `messages` and `scope`. `..onnx_ops.sites` finds the nodes that broadcast.
In: a file. Out: Graph, a changed file.
"""
