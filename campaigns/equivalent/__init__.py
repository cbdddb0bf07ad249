"""Two models compared for every size: drawn and real models, what optimisers make of them, mutants.

`draw` and `networks` make models, `mutate` changes one thing in a model. `optimisers` and `passes`
make second models, `steps` compares them. `judge` holds verdicts on drawn models against runs on
ONNX Runtime; `real` compares real models in a child process and keeps a record, `page` shows it.
"""
