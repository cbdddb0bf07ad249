"""Models of ncnn, MNN, OpenVINO, ONNX and Paddle in Model Explorer."""
