"""Two models compared for every size: random models, what optimisers make of them, mutants.

`draw` makes models, `mutate` changes one thing in a model, `optimisers` has the passes of the
optimisers that are installed, `judge` compares verdicts with runs on ONNX Runtime.
"""
