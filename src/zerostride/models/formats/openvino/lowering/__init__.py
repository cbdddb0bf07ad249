"""Layers of OpenVINO's IR as ONNX nodes of the same meaning.

`elements` has the table and the ops that compute element by element, `layout` those that move
elements, and `windows` those that slide. `writer` writes the nodes.
In: a layer's node. Out: ONNX nodes, or no equivalent.
"""
