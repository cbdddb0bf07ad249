"""Whole nets on the real ncnn, in a process of its own that may die.

As a script it is that process; :class:`Net` asks it.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from compound_worker import receive, send

SECONDS = 30.0


class Net:
    """Answers of the real ncnn. Use as a context manager."""

    def __init__(self) -> None:
        self.missing = ""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Net:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def ask(
        self,
        text: str,
        inputs: Mapping[str, Any],
        blobs: Sequence[str],
        weights: bytes | None = None,
        *,
        packing: bool = True,
        light: bool = True,
    ) -> tuple[str, Any]:
        """("result", {blob: array or status}), ("refused", words) or ("crashed", exit status)."""
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdout is not None
        question = (text, dict(inputs), list(blobs), weights, packing, light)
        try:
            send(process.stdin, question)
            if not select.select([process.stdout], [], [], SECONDS)[0]:
                process.kill()
                return "crashed", self._stop()
            answer: tuple[str, Any] = receive(process.stdout)
        except (EOFError, BrokenPipeError):
            return "crashed", self._stop()
        return answer

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"OMP_NUM_THREADS": "1", **os.environ},
        )
        word, said = receive(self._process.stdout)
        self.missing = str(said) if word == "missing" else ""

    def _stop(self) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):  # it died with a question half read
                stream.close()
        try:
            return process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def run(question: Any) -> tuple[str, Any]:
    """One net, and the blobs that are asked for."""
    import ncnn

    text, inputs, blobs, weights, packing, light = question
    net = ncnn.Net()
    net.opt.num_threads = 1
    net.opt.use_fp16_storage = net.opt.use_fp16_packed = net.opt.use_fp16_arithmetic = False
    net.opt.use_packing_layout = packing
    net.opt.lightmode = light
    if net.load_param_mem(text) != 0:
        return "refused", "the text was not taken"
    if weights is None:
        status = net.load_model(ncnn.DataReaderFromEmpty())
    else:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "weights.bin")
            file.write_bytes(weights)
            status = net.load_model(str(file))
    if status != 0:
        return "refused", "the weights were not taken"
    found: dict[str, Any] = {}
    for name in blobs:
        extractor = net.create_extractor()
        for blob, array in inputs.items():
            extractor.input(blob, ncnn.Mat(np.ascontiguousarray(array)).clone())
        status, made = extractor.extract(name)
        found[name] = np.array(made) if status == 0 else status
    return "result", found


def main() -> None:
    """Question after question, until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        import ncnn  # noqa: F401
    except ImportError as error:
        send(answers, ("missing", str(error)))
        return
    send(answers, ("ready", ""))
    while True:
        try:
            question = receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            send(answers, run(question))
        except Exception as error:  # noqa: BLE001 - whatever it raises is how it refuses
            send(answers, ("refused", f"{type(error).__name__}: {error}"[:300]))


if __name__ == "__main__":
    main()
