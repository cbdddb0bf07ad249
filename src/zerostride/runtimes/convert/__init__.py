"""A model brought to an engine: ported, converted by the engine's converter, and run beside itself.

In: an ONNX model, the engine, sizes. Out: the ported model, the converted files, and a report.
"""
