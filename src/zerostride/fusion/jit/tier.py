"""The compiled tier: programs that are hot become machine code, where llvmlite is installed.

The interpreter (native/fused/body.h) runs a program from its first call on. Once the program has
done so much work that compiling costs little beside it, its phases' bodies are written as LLVM's
intermediate representation (`phases`), compiled in a separate thread, and replace the interpreter
from the next call on. Results are the same, bit for bit. Machine code is kept on disk (`kept`): in
the next process it replaces the interpreter after the first call, without LLVM.

`ZEROSTRIDE_JIT=0` disables the tier; `eager` compiles what a program's first call needs before that
call returns (for tests and benchmarks); `1` is the default. After any failure the interpreter goes
on, and `explain` reports it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import itertools
import os
import queue
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ...system.fork_gate import first_call
from ..schedule.program import Program
from . import image, kept
from .instruction_sets import TARGETS, InstructionSet

#: Steps times elements after which a program is hot: about the time of a compilation (10 to 40 ms
#: of a thread; a step of the interpreter takes 0.05 to 0.1 ns an element). So compiling a program
#: never takes longer than it has run before.
HOT = 3e8
_MODES = ("0", "1", "eager")
#: A body as `_native.Program.machines` returns it: instruction set, phase, splats, results, whether
#: its result is so large that it is stored past the caches, the elements of every row (0: any
#: number), and whether it is compiled.
Wanted = tuple[str, int, int, tuple[int, ...], bool, int, bool]


class Native(Protocol):
    """The part of `_native.Program` that the tier uses."""

    def watch(self, work: float, hot: Any, /) -> None:
        """Calls `hot(program)` each time calls have done this work and created bodies."""

    def watcher(self) -> Any:
        """The `hot` function that was set, or None."""

    def machines(self) -> list[Wanted]:
        """The bodies that were created."""

    def install(
        self,
        isa: str,
        phase: int,
        splats: int,
        results: tuple[int, ...],
        streamed: bool,
        row: int,
        address: int,
        scratch: int,
        past: bool,
        owner: Any,
        /,
    ) -> bool:
        """Installs machine code for a body, and keeps its owner alive."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Code:
    """Machine code, which lives as long as this object.

    Attributes:
        address: of the function.
        seconds: the time that compiling took; 0 of code from disk.
        owner: of the memory: LLVM's tracker, or the memory itself.
        file: the object file that LLVM wrote; empty of code from disk.
    """

    address: int
    seconds: float
    owner: Any
    file: bytes = b""


@functools.cache
def mode() -> str:
    """Whether programs are compiled: ZEROSTRIDE_JIT, or "0" without llvmlite."""
    wanted = os.environ.get("ZEROSTRIDE_JIT", "").strip().lower() or "1"
    if wanted not in _MODES:
        warnings.warn(
            f"ZEROSTRIDE_JIT is {wanted!r}; it is {', '.join(_MODES)} or unset",
            RuntimeWarning,
            stacklevel=2,
        )
        wanted = "1"
    if wanted != "0" and importlib.util.find_spec("llvmlite") is None:
        if wanted == "eager":
            warnings.warn(
                "ZEROSTRIDE_JIT=eager needs llvmlite: pip install 'zerostride[jit]'",
                RuntimeWarning,
                stacklevel=2,
            )
        return "0"
    return wanted


# LLVM

_known: weakref.WeakValueDictionary[tuple[str, InstructionSet], Code] = (
    weakref.WeakValueDictionary()
)
#: Held while LLVM works, inside the gate: a forked child would otherwise inherit LLVM mid-work.
_working = threading.RLock()
_numbers = itertools.count()


@functools.cache
def _divides(_isa: str) -> bool:
    """As in `values.Code`, of the instruction set in use; measured in 10 to 90 microseconds."""
    return bool(_engine().divides_quickly())


def _writer() -> Any:
    """The module that writes bodies: imported when it is needed, because that takes longer than a
    first call with code from disk; and not while the process forks."""
    with first_call, _working:
        return importlib.import_module(".phases", __package__)


@functools.cache
def _llvm() -> tuple[Any, Any]:
    """llvmlite's binding, and the linker for this process. It keeps 50 KB a function; an execution
    engine for each function, the older way, takes 800 KB."""
    llvm: Any = importlib.import_module("llvmlite.binding")
    # Newer releases initialise LLVM themselves and raise an error here.
    with contextlib.suppress(RuntimeError):
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.check_jit_execution()  # an OSError, not a crash, on systems that forbid generated code
    return llvm, llvm.create_lljit_compiler()


def _dispose(tracker: Any) -> None:
    with first_call:
        tracker.close()


def assemble(text: str, target: InstructionSet) -> Code:
    """Compiles a function's text, or returns the live code of the same text.

    Raises:
        ImportError: llvmlite cannot be imported.
        OSError: the system forbids code that is generated at run time.
        RuntimeError: LLVM refuses the text.
    """
    with first_call, _working:
        cached = _known.get((text, target))
        if cached is not None:
            return cached
        llvm, lljit = _llvm()  # once, 100 ms and more
        begun = time.perf_counter()
        with llvm.parse_assembly(text) as module:
            machine_code = _machine(target).emit_object(module)
        library = llvm.JITLibraryBuilder().add_object_img(machine_code).export_symbol("body")
        tracker = library.link(lljit, f"zerostride.{next(_numbers)}")
        code = Code(tracker["body"], time.perf_counter() - begun, tracker, bytes(machine_code))
        # LLVM's own finalizer would run wherever the last reference is dropped, under LLVM's lock.
        weakref.finalize(code, _dispose, tracker).atexit = False
        _known[text, target] = code
        return code


@functools.cache
def _machine(target: InstructionSet) -> Any:
    """LLVM's code generator for a target."""
    llvm, _ = _llvm()
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=target.processor, features=target.features, opt=2, jit=True, codemodel="jitdefault"
    )


# Programs


class Tier:
    """The state of the compiled tier for one program.

    >>> from zerostride.fusion.schedule.program import Program
    >>> Tier(Program((), ())).describe()
    'interpreted'
    """

    def __init__(self, program: Program) -> None:
        self._phases = program.phases
        self._made: list[Code] = []
        self._left: set[tuple[Any, ...]] = set()
        self._error = ""
        self._asked = False  # whether something was not on disk

    def __call__(self, native: Native) -> None:
        """Called when the program is hot."""
        if self._asked:
            WORKER.add(functools.partial(self.compile, native))
        elif mode() == "eager":
            self.compile(native)
        elif not self._load(native):
            self._asked = True
            native.watch(HOT, self)

    def _load(self, native: Native) -> bool:
        """Installs the bodies that are kept on disk; whether all of them are."""
        try:
            left = [one for one in self._missing(native) if not self._install_kept(native, one)]
            return not left
        except OSError:  # memory that was written may not be executed here
            return False

    def _missing(self, native: Native) -> list[Wanted]:
        """The bodies that the interpreter runs and that could be compiled."""
        return [one for one in native.machines() if not one[-1] and one not in self._left]

    def _install_kept(self, native: Native, wanted: Wanted) -> bool:
        body = kept.read(self._key(wanted)) if wanted[0] == _engine().isa() else None
        if body is None:
            return False
        loaded = image.load(body.image)
        code = Code(loaded.address, 0.0, loaded.memory)
        self._install(native, wanted, code, body.scratch, body.past)
        return True

    def _key(self, wanted: Wanted) -> str:
        isa, phase, *body, _ = wanted
        return kept.key_of(self._phases[phase], isa, *body, _divides(isa))

    def compile(self, native: Native) -> None:
        """Compiles the bodies that the program has created, and installs them."""
        try:
            for wanted in self._missing(native):
                self._compile(native, wanted)
        except Exception as error:  # noqa: BLE001 the interpreter goes on; `describe` reports it
            self._error = f"{type(error).__name__}: {error}"

    def _compile(self, native: Native, wanted: Wanted) -> None:
        isa, phase, splats, results, streamed, row, _ = wanted
        target = TARGETS.get(isa)
        if target is None or isa != _engine().isa():
            return
        forms = functools.partial(_engine().kernel_forms, isa)
        steps, divides = self._phases[phase], _divides(isa)
        function = _writer().write(steps, results, splats, target, forms, streamed, row, divides)
        if function is None:
            self._left.add(wanted)
            return
        code = assemble(function.text, target)
        self._install(native, wanted, code, function.scratch, function.past)
        drawn = None if function.calls else image.image_of(code.file)
        if drawn is not None:
            kept.write(self._key(wanted), kept.Kept(drawn, function.scratch, function.past))

    def _install(
        self, native: Native, wanted: Wanted, code: Code, scratch: int, past: bool
    ) -> None:
        if native.install(*wanted[:-1], code.address, scratch, past, code):
            self._made.append(code)

    def describe(self) -> str:
        """One line for `explain`."""
        if self._error:
            return f"interpreted; compiling it failed: {self._error}"
        if not self._made:
            return "interpreted, by kernels alone" if self._left else "interpreted"
        took = 1e3 * sum(code.seconds for code in self._made)
        total = len(self._made) + len(self._left)
        how = f"in {took:.0f} ms" if any(code.seconds for code in self._made) else "from disk"
        return f"compiled: {len(self._made)} of {total} bodies, {how}"


def _engine() -> Any:
    from ...compute import _native

    return _native


def attach(program: Program, native: Native) -> None:
    """Watches a program, so that it is compiled when it is hot."""
    if mode() != "0":
        native.watch(0.0, Tier(program))


def describe(native: Native) -> str:
    """How a program runs now: one line for `explain`."""
    tier = native.watcher()
    return tier.describe() if isinstance(tier, Tier) else "interpreted"


class _Worker:
    """The thread that compiles; the first hot program starts it."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._start = threading.Lock()
        self._guarded = False
        self._closing = False

    def add(self, job: Callable[[], None]) -> None:
        """Adds a job to the queue."""
        with self._start:
            if self._closing:
                return
            self._guard()
            self._jobs.put(job)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="zerostride-jit", daemon=True
                )
                self._thread.start()

    def wait(self) -> None:
        """Waits until the jobs added before are done."""
        done = threading.Event()
        self.add(done.set)
        while not self._closing and not done.wait(0.05):
            pass

    def _run(self) -> None:
        jobs = self._jobs
        while (job := jobs.get()) is not None and not self._closing:
            job()
            del job  # so that the job does not keep its program alive

    def _guard(self) -> None:
        """Makes forks, and the end of the process, wait for the current compilation."""
        if self._guarded:
            return
        self._guarded = True
        atexit.register(self._close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before_fork,
                after_in_parent=self._after_fork,
                after_in_child=self._child,
            )

    def _before_fork(self) -> None:
        first_call.shut()  # before the locks of a first call
        self._start.acquire()
        _working.acquire()

    def _after_fork(self) -> None:
        self._release()
        first_call.open()

    def _release(self) -> None:
        _working.release()
        self._start.release()

    def _child(self) -> None:
        """Resets the worker in a child, which lacks the thread: waiting jobs are dropped."""
        self._jobs = queue.SimpleQueue()
        self._thread = None
        self._release()  # the child has a new gate

    def _close(self) -> None:
        with self._start:
            self._closing = True
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()


WORKER = _Worker()
