"""The native engine's extension module (native/binding)."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

Planner = Callable[..., tuple[tuple[int, ...], tuple[int, ...]]]
Resolver = Callable[[tuple[str, ...], str | None], tuple[str, ...] | None]
Configure = Callable[
    [str | None, int | None, str | None, int | None], tuple[Planner | None, Resolver] | None
]

class Function:
    """An op's public function: a call that stays in C++ when its plan and dtypes are known."""

    def __init__(
        self,
        name: str,
        inputs: int,
        python: Callable[..., Any],
        configure: Configure,
        parameters: dict[str, Any] = ...,
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def evaluate(self, operands: tuple[Any, ...], out: Any, dtype: Any, /) -> Any:
        """Computes what NumPy's rule combines; NotImplemented where the reference has to."""

class Program:
    """A fused program (fusion/schedule/engine.py says what the spec is)."""

    def __init__(self, spec: tuple[Any, ...]) -> None: ...
    def run(
        self, operands: tuple[Any, ...], outs: tuple[Any, ...] | None = None, /
    ) -> tuple[Any, ...]:
        """The results, one for each output."""

    def watch(self, work: float, hot: Callable[[Program], object], /) -> None:
        """Calls hot(program) after calls of so much work (steps times elements) that needed bodies
        which it does not know; and so on."""

    def watcher(self) -> Callable[[Program], object] | None:
        """The `hot` that it was given."""

    def machines(self) -> list[tuple[str, int, int, tuple[int, ...], bool]]:
        """The bodies that calls needed: instruction set, phase, splats, results, compiled."""

    def install(
        self,
        isa: str,
        phase: int,
        splats: int,
        results: tuple[int, ...],
        address: int,
        scratch: int,
        owner: object,
        /,
    ) -> bool:
        """Takes machine code for a body (native/fused/program.h) and keeps its owner alive; whether
        a call needed that body."""

class Fused:
    """What fused functions inherit: calls that it knows stay in C++, others go to `_call`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def learn(
        self, operands: tuple[Any, ...], program: Any, captured: tuple[Any, ...], packed: bool, /
    ) -> bool:
        """From now on calls with such operands run that Program; False where they cannot."""

    def forget(self) -> None:
        """All calls go to `_call` again."""

def convert(array: Any, dtype: Any, out: Any, /) -> Any:
    """An array in another dtype; NotImplemented where the reference has to."""

def isa() -> str:
    """The instruction set in use."""

def available_isas() -> list[str]:
    """Those that this processor and this build have, best first."""

def choose_isa(name: str, /) -> bool:
    """Takes one; False if it is not available."""

def kernels() -> list[tuple[str, str]]:
    """Every kernel: its op and its dtype."""

def divides_quickly() -> bool:
    """Whether dividing is no slower than multiplying by an inverse and correcting: measured."""

def kernel_forms(isa: str, op: str, dtype: str, /) -> tuple[int, ...]:
    """Addresses of a kernel's forms (native/kernels.h), 0 where there is none."""

def num_threads() -> int:
    """How many threads a call may use."""

def set_num_threads(count: int, /) -> None:
    """Sets that; 1 to 4096."""

def register_bfloat16(number: int, /) -> None:
    """Makes NumPy's type of this number bfloat16."""

def watch_context(variable: ContextVar[Any], /) -> None:
    """Calls in contexts where this variable has a value but None go by Python (strict.py)."""

def hold_context(count: int, /) -> None:
    """Adds to the number of contexts in which it may have one."""
