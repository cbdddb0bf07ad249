"""Write the example models. Run again, it writes the same bytes.

python examples/make_models.py            write every file
python examples/make_models.py --check    write nothing; exit status 1 if a file is not as made
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import onnx.checker
from builders import bugs, clean, dynamic, legacy, optimisers, structure, vision

HERE = Path(__file__).parent

NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "tiny_vision.onnx": vision.build,
    "legacy_opset6.onnx": legacy.build,
    "clean.onnx": clean.build,
    "dynamic.onnx": dynamic.build,
    "functions_and_subgraphs.onnx": structure.build,
}


def models() -> Iterator[tuple[str, bytes]]:
    """Every example as (path below this folder, content), checked by onnx's own checker.

    Models with ops that are not ONNX's are not checked.
    """
    for name, build in NETWORKS.items():
        yield name, _serialise(build())
    for bug in bugs.table():
        yield f"bugs/{bug['id']}.onnx", _serialise(bugs.build(bug))
    for name, model in optimisers.models():
        yield name, _serialise(model)


def _serialise(model: onnx.ModelProto) -> bytes:
    if optimisers.valid(model):
        onnx.checker.check_model(model)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the example models.")
    parser.add_argument("--check", action="store_true", help="compare with the files, do not write")
    options = parser.parse_args(arguments)
    stale = []
    for name, content in models():
        path = HERE / name
        if path.is_file() and path.read_bytes() == content:
            continue
        stale.append(name)
        if not options.check:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
    verb = "is not as made" if options.check else "written"
    for name in stale:
        print(f"{name}: {verb}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
