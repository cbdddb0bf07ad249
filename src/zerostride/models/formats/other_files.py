"""Files that hold models, or parts of them, and are not read: what to convert each of them to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class OtherFile:
    """A row of the table.

    Attributes:
        suffixes: the ends of its name.
        kind: what it is.
        way: what to do instead.
    """

    suffixes: tuple[str, ...]
    kind: str
    way: str


_SAVED_MODEL = OtherFile(
    ("saved_model.pb", ".pb"),
    "a SavedModel or graph of TensorFlow",
    "convert its folder: python -m tf2onnx.convert --saved-model FOLDER --output model.onnx, or "
    "tf.lite.TFLiteConverter.from_saved_model(FOLDER) for model.tflite",
)
OTHER_FILES = (
    OtherFile(
        (".pt", ".pth", ".torchscript", ".ptl"),
        "TorchScript or pickled weights, which run code when they are loaded",
        "audit the module (zs.audit(module, args=(x,), target=...)), or save it with "
        "torch.export.save(torch.export.export(module, (x,)), 'model.pt2'); TorchScript without "
        "its module: torch.onnx.export(torch.jit.load(FILE), (x,), 'model.onnx', dynamo=False)",
    ),
    _SAVED_MODEL,
    OtherFile(
        (".keras", ".h5", ".hdf5"),
        "a model of Keras",
        "write ONNX: keras.models.load_model(FILE).export('model.onnx', format='onnx')",
    ),
    OtherFile(
        (".mlmodel", ".mlpackage", ".mlmodelc"),
        "a model of Core ML, which has no exporter",
        "audit the model that it was converted from, with the target coreml",
    ),
    OtherFile(
        (".pte",),
        "a program of ExecuTorch, which runs and is not read",
        "audit the module or the .pt2 file that it was lowered from, with the target executorch, "
        "and compare the two: zerostride verify MODEL --engine executorch --against FILE",
    ),
    OtherFile(
        (".pdiparams",),
        "the weights of a Paddle model",
        "name the .json or .pdmodel file beside it",
    ),
    OtherFile(
        (".pdparams", ".pdopt"),
        "weights of a Paddle network in training",
        "save the network for inference, paddle.jit.save(layer, 'model', input_spec=[...]), and "
        "name model.json",
    ),
    OtherFile(
        (".gguf", ".ggml", ".safetensors", ".npz", ".ckpt"),
        "weights without operations",
        "name the model that they belong to, or audit its PyTorch module: "
        "zs.audit(module, args=(x,), target=...)",
    ),
    OtherFile(
        (".mlir", ".stablehlo", ".mlirbc"),
        "MLIR, such as StableHLO, whose broadcasts are written out (broadcast_in_dim)",
        "audit the model that it was lowered from, with the target stablehlo or tosa",
    ),
    OtherFile(
        (".engine", ".plan", ".trt", ".rknn", ".om", ".hef", ".dlc", ".blob"),
        "a model compiled for a device",
        "audit the model that it was built from",
    ),
)


def advice_for(path: Path) -> str | None:
    """The kind of a file and the way to a model, by its name. None if no row has the name.

    >>> advice_for(Path("llama.gguf")).split(":")[0]
    'weights without operations'
    """
    name = path.name.lower()
    for row in OTHER_FILES:
        if name.endswith(row.suffixes):
            return f"{row.kind}: {row.way}"
    if (path / "saved_model.pb").is_file():
        return f"{_SAVED_MODEL.kind}: {_SAVED_MODEL.way}"
    return None
