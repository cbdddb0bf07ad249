"""zerostride as a pass of onnx_ir: for its pipelines, such as those of onnxscript.

>>> import onnx_ir
>>> from zerostride.passes import Port
>>> model = onnx_ir.load("examples/bugs/ncnn-4930.onnx")
>>> result = onnx_ir.passes.Sequential(Port("ncnn", via="none"))(model)
>>> result.modified, [node.op_type for node in result.model.graph]
(True, ['Unsqueeze', 'Add'])
"""

from __future__ import annotations

from typing import Any

try:
    import onnx_ir
    from onnx_ir.passes import (
        FunctionalPass,
        PassResult,
        PostconditionError,
        PreconditionError,
    )
except ImportError as _error:
    raise ImportError(
        "zerostride.passes needs onnx_ir: pip install onnx-ir (it comes with onnxscript and "
        f"zerostride[torch]) ({_error})"
    ) from None

from .engines.table import find_engine
from .models.findings import Report, Verdict
from .models.flow.input_sizes import InputShapes, Sizes
from .models.port import port
from .models.transport.converters import named


class Port(FunctionalPass):  # type: ignore[misc]
    """Rewrites a model so that every broadcast means on `target` what it means in the model.

    The pass is :func:`zerostride.port`: each rewrite is proven before the pass returns, and the
    model that it is called with does not change. What cannot be rewritten stays, and is among the
    findings of the report.

    Args:
        target: an engine's name.
        via, batch_axis, facts, sizes, input_shapes: as for :func:`zerostride.audit`.

    Attributes:
        report: the :class:`~zerostride.Report` of the last call; None before the first one.

    Raises:
        BroadcastError: there is no such engine.
        ZerostrideError: `via` is no converter to it.
    """

    def __init__(
        self,
        target: str,
        *,
        via: str | None = None,
        batch_axis: int | None = None,
        facts: Any = None,
        sizes: Sizes | None = None,
        input_shapes: InputShapes | None = None,
    ) -> None:
        super().__init__()
        named(via, find_engine(target).name)
        self.target = target
        self.report: Report | None = None
        self._options: dict[str, Any] = {
            "via": via,
            "batch_axis": batch_axis,
            "facts": facts,
            "sizes": sizes,
            "input_shapes": input_shapes,
        }

    def __repr__(self) -> str:
        return f"Port({self.target!r})"

    def requires(self, model: onnx_ir.Model) -> None:
        """Checks that the model says which version of ONNX's op set it uses.

        Raises:
            PreconditionError: it does not.
        """
        if not {"", "ai.onnx"} & {*model.opset_imports}:
            raise PreconditionError("the model does not import ONNX's op set: model.opset_imports")

    def call(self, model: onnx_ir.Model) -> PassResult:
        """The ported model, and whether it differs from the one that was given.

        Raises:
            ModelError: the model is not valid, or a check of a rewrite failed.
        """
        report = port(model, self.target, **self._options)
        self.report = report
        return PassResult(report.result, bool(report.changes))

    def ensures(self, model: onnx_ir.Model) -> None:
        """Checks that every node that was rewritten means the same on the target.

        Raises:
            PostconditionError: one does not.
        """
        if self.report is None:
            return
        changed = {change.node for change in self.report.changes}
        for finding in self.report.findings:
            if finding.node in changed and finding.verdict is not Verdict.SAME:
                raise PostconditionError(
                    f"{finding.node!r} was rewritten and is {finding.verdict} on {self.target}: "
                    f"{finding.message}"
                )


__all__ = ["Port"]
