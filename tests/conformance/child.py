"""One engine in a separate process that may crash."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asked import Asked

from zerostride.runtimes.files import tensors
from zerostride.runtimes.process import Missing, Process, interpreter_for
from zerostride.runtimes.runners import RUNNERS
from zerostride.runtimes.task import Form, Reply, ReplyKind, Task

if TYPE_CHECKING:
    from typing import Self

WORKER = Path(__file__).with_name("compound_worker.py")
SECONDS = 60.0
#: Ops that these engines have, and zerostride's runners do not call.
QUANTISED = ("QuantizeLinear", "DequantizeLinear")
QUANTISING = ("torch", "tensorflow")


class Child:
    """One engine in a process of its own, given up after SECONDS. Use as a context manager.

    ZEROSTRIDE_PYTHON_PADDLE (and so on) names the interpreter of an engine that needs its own.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.missing = ""
        self._process = Process(engine, interpreter_for(engine), SECONDS)
        self._worker = Asked([self._process.python, str(WORKER), engine], SECONDS)

    def __enter__(self) -> Self:
        try:
            self._process.start()
        except Missing as error:
            self.missing = str(error)
        return self

    def __exit__(self, *ended: object) -> None:
        self._process.stop()
        self._worker.__exit__(*ended)

    def ask(self, question: dict[str, Any]) -> tuple[str, Any]:
        """("result", array), ("refused", line), ("absent", line) or ("crashed", line).

        A question is an op of ONNX; {"op": "net"} is a whole net of ncnn, and {"op": "file"} a
        model for MNN's converter.
        """
        op = question["op"]
        if op == "file" or (op in QUANTISED and self.engine in QUANTISING):
            return self._worker.answer(question)
        reply = self._net(question) if op == "net" else self._op(question)
        if reply.kind is ReplyKind.RESULT:
            return "result", reply.arrays[0]
        return str(reply.kind), reply.message

    def _op(self, question: dict[str, Any]) -> Reply:
        form = Form.NODE if RUNNERS[self.engine].onnx_nodes else Form.COMPOUND
        constant, opset = tuple(question["constant"]), question["opset"]
        task = Task(form, question["op"], question["attributes"], (), constant, opset)
        return self._process.ask(task, question["arrays"], again=False)

    def _net(self, question: dict[str, Any]) -> Reply:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "net.param")
            file.write_text(question["param"])
            file.with_suffix(".bin").write_bytes(question["bin"])
            return tensors(self._process, file, question["inputs"], ["out0"])
