"""Layers as ONNX nodes of exactly the same meaning.

`elements` moves and computes elements, `products` multiplies and normalises, and `windows` slides.
`writer` writes the nodes.
In: a layer's node. Out: ONNX nodes, or no equivalent.
"""
