# /// script
# dependencies = ["opencv-python-headless", "onnx"]
# ///
"""OpenCV's DNN module (PyPI: opencv-python-headless, onnx): a model of one ONNX node."""

import cv2
import numpy as np

from zerostride.runtimes.learn.onnx_model import onnx_model

NAME = "opencv"
DISTRIBUTION = "opencv-python-headless"
NAMES = "onnx"


def run(op, arrays, target=None):
    """One node; a PRelu's slope is a weight, because OpenCV takes no other."""
    weights = (1,) if op == "PRelu" else ()
    model = onnx_model(op, arrays, target, weights=weights)
    net = cv2.dnn.readNetFromONNX(np.frombuffer(model, np.uint8))
    for k, array in enumerate(arrays):
        if k not in weights:
            net.setInput(array, f"x{k}")
    return net.forward()
