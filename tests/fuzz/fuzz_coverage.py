"""Coverage-guided fuzzing of the readers and of the parser of sizes, with atheris.

    pip install atheris
    python tests/fuzz/fuzz_coverage.py ncnn build/corpus/ncnn -max_total_time=600

The first word names what is fuzzed, the second a folder: it gets the first files of the other
fuzzers, and keeps the inputs that reach new code. Whatever else is given is libFuzzer's. A case
fails, and is written to the current folder, if it raises anything but the errors that the package
promises, or takes longer than 10 s.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["zerostride"]):
    import zerostride as zs
    import zerostride.models.formats.mnn.shapes
    import zerostride.models.formats.ncnn.engine
    import zerostride.models.formats.onnx.format
    import zerostride.models.formats.onnx.reader
    import zerostride.models.formats.openvino
    import zerostride.models.shapes
    import zerostride.sizes.parse
    import zerostride.sizes.solve
    from zerostride.cli.shapes import parse_shape

import fuzz_ncnn
import fuzz_onnx
import harness
from hostile_files import audited, ended, scratch

# Nobody else is asked: starting a process takes the time of 300 cases.
zerostride.models.formats.onnx.reader.infer_apart = fuzz_onnx.not_apart
zerostride.models.formats.mnn.shapes.installed = lambda: False
zerostride.models.formats.ncnn.engine.ask = fuzz_ncnn.ask_nobody


def _file(suffix: str) -> Callable[[bytes], None]:
    """Reads and audits a file whose first byte chooses the engine."""

    def use(data: bytes) -> None:
        path = scratch() / f"case{suffix}"
        path.write_bytes(data[1:])
        said = ended(path.parent, lambda: audited(path, data[0] if data else 0)[1:])
        if said.startswith(harness.BAD):
            raise AssertionError(said)

    return use


def _size(data: bytes) -> None:
    """Text as a size, as a condition and as a shape; what reads as a size is written and read."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        size = zs.Dim(text)
    except zs.BroadcastError as error:
        str(error)
    else:
        written = str(size)
        again = zs.Dim(written) if len(written) <= zerostride.sizes.parse.MAX_TEXT else size
        assert again == size or not all(symbol.named for symbol in size.symbols), text
        zerostride.sizes.dim.bounds(size + 1)
    for read in (zs.Condition.parse, parse_shape):
        try:
            str(read(text))
        except (zs.BroadcastError, zs.ZerostrideError, zerostride.errors.Misfit) as error:
            str(error)


def _ir() -> Iterable[bytes]:
    import fuzz_ir

    return (text.encode() if isinstance(text, str) else text for text, _ in fuzz_ir.corpus())


def _onnx() -> Iterable[bytes]:
    return (fuzz_onnx.mutator().case(0, number) for number in range(60))


def _mnn() -> Iterable[bytes]:
    import fuzz_mnn

    return (*fuzz_mnn.corpus(), *(fuzz_mnn.case(0, number) for number in range(60)))


def _ncnn() -> Iterable[bytes]:
    return (fuzz_ncnn.case(0, number)[0] for number in range(60))


#: What is fuzzed: what uses an input, and the first inputs.
TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], Iterable[bytes]]]] = {
    "onnx": (_file(".onnx"), _onnx),
    "ir": (_file(".xml"), _ir),
    "ncnn": (_file(".param"), _ncnn),
    "mnn": (_file(".mnn"), _mnn),
    "dim": (_size, lambda: [b"N", b"2*N+1", b"max(N//2, 1) % 3", b"1..8", b"N >= 1 and M == 2*N"]),
}


def main(name: str, folder: Path, options: list[str]) -> None:
    """Fuzzes until libFuzzer's options say stop."""
    use, first = TARGETS[name]
    folder.mkdir(parents=True, exist_ok=True)
    head = b"" if name == "dim" else b"\x05"
    for data in first():
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(head + data)
    atheris.Setup(
        ["fuzz_coverage", str(folder), "-timeout=10", "-rss_limit_mb=3000", *options], use
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
