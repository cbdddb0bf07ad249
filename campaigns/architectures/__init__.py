"""Real files and architectures with random weights, converted with no option at all and proven.

`zoo` lists the architectures, `export` writes their ONNX files, `convert` runs the command that a
user types, `page` makes docs/conversions.md of the results.
"""
