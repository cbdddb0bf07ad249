"""Steps of an optimiser in a child process, each with a bound in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from zerostride.system import children, frames
from zerostride.system.child import Child

from .result import NOT_MADE, REFUSED, UNDECIDED, Result

#: Seconds until the first step begins: the child starts, and reads the model.
STARTING = 60.0


class Worker:
    """A child process that may hang or die. A context manager.

    Args:
        seconds: for making one model, and for one comparison.
        module: what the child runs.
    """

    def __init__(self, seconds: float, module: str = "campaigns.equivalent.child") -> None:
        self.seconds = seconds
        self.module = module
        self._child: Child | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop(kill=kind is not None)

    def results(
        self, model: Path, optimiser: str, *, passes: bool, begin: int, differs: bool
    ) -> Iterator[tuple[int, Result]]:
        """Yield the number and the result of each step; see :func:`~.steps.results`."""
        without: list[str] = []
        while True:
            task = {"model": str(model), "optimiser": optimiser, "passes": passes, "begin": begin}
            at: dict[str, Any] = {}
            try:
                self._ask({**task, "differs": differs, "without": without})
                while True:
                    answer = self._answer(self.seconds if at else max(STARTING, self.seconds))
                    if "what" in answer:
                        at = answer
                    elif "result" in answer:
                        result = Result(**answer["result"])
                        differs = differs or result.names_passes
                        begin = at["number"] + 1
                        yield at["number"], result
                    else:
                        if answer["end"]:
                            yield 0, Result("", REFUSED, answer["end"])
                        return
            except (frames.Closed, frames.TooLate) as error:
                self._stop(kill=True)
                if not at:
                    raise
                late = isinstance(error, frames.TooLate)
                yield at["number"], _lost(at, f"{self.seconds:g}" if late else "")
                without.append(at["step"])
                begin = at["number"] + 1

    def _ask(self, task: dict[str, Any]) -> None:
        if self._child is None:
            self._child = Child(children.module(self.module))
        self._child.send(task, seconds=self.seconds)

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._child is not None
        return self._child.receive(seconds)[0]

    def _stop(self, *, kill: bool) -> None:
        child, self._child = self._child, None
        if child is not None:
            if kill:
                child.kill()
            child.end()


def _lost(at: dict[str, Any], seconds: str) -> Result:
    """The result of a step whose child gave no answer."""
    makes = at["what"] == "makes"
    who = "the pass" if makes else "the comparison"
    why = f"{who} took more than {seconds} s" if seconds else f"{who} ended the process"
    return Result(at["step"], NOT_MADE if makes else UNDECIDED, why)
