"""Small ONNX models through the readers and converters that users call."""
