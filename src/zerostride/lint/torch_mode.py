"""The mode that sees PyTorch's operations; imported after PyTorch. See `torch_watch`."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import torch
from torch import overrides
from torch.compiler import is_dynamo_compiling
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from ..core.strict_mode import Strict, in_force
from ..errors import AccidentalBroadcastError, AccidentalBroadcastWarning
from ..system.imports import when_imported
from .accident import ALLOWED, WATCH, Shape
from .torch_accident import Fault, TorchAccident, accident_at, fault_of
from .torch_frames import Site, site_of
from .torch_table import LOSSES, NAMED, OPERANDS
from .torch_watch import GROWING, THREAD

#: Types whose operations are PyTorch's own.
_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
_NUMBERS = frozenset({int, float, bool, complex})
_LOG = logging.getLogger("zerostride.strict")


class Mode(overrides.TorchFunctionMode):  # type: ignore[misc]
    """Checks the operands of functions that broadcast, and calls the function."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Calls a function of PyTorch. While the compiler traces it, this is only the call."""
        __tracebackhide__ = True
        if not is_dynamo_compiling():
            count = OPERANDS.get(func)
            if count is not None and not (
                # The fast path: two tensors, one with the result's shape; or a number.
                count == 2
                and len(args) == 2
                and (
                    type(args[1]) in _NUMBERS
                    or (
                        type(args[0]) in _TENSORS
                        and type(args[1]) in _TENSORS
                        and (args[0].ndim == args[1].ndim or _lies_on(*args))
                        and not GROWING
                        and func not in LOSSES
                    )
                )
            ):
                _check(func, count, args, kwargs or {})
        return func(*args, **kwargs) if kwargs else func(*args)


_MODE = Mode()


def put(watching: bool) -> None:
    """Puts the mode on this thread's stack, or takes it off, wherever it lies there.

    In the mode itself, PyTorch has taken it off for the time of the call: a context that is opened
    inside (in a hook of autograd, say) puts another one.
    """
    depth = torch._C._len_torch_function_stack()
    if depth == 0:  # the two usual cases, without a list
        if watching:
            overrides._push_mode(_MODE)
        return
    if depth == 1 and torch._C._get_function_stack_at(0) is _MODE:
        if not watching:
            overrides._pop_mode()
        return
    stack = overrides._get_current_function_mode_stack()
    present = any(type(mode) is Mode for mode in stack)
    if watching and not present:
        overrides._push_mode(_MODE)
    elif present and not watching:
        for _ in stack:
            overrides._pop_mode()
        for mode in stack:
            if type(mode) is not Mode:
                overrides._push_mode(mode)


# Checks.


def _check(func: Any, count: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Reports a call if its operands broadcast by accident and a watch is in force here."""
    __tracebackhide__ = True
    operands = _operands(count, args, kwargs)
    shapes = _shapes(operands)
    if shapes is None or len(set(shapes)) < 2:
        return
    # The frame of a context must not stay in a traceback: it would keep the mode on the stack.
    limits = in_force()
    tested = WATCH.enabled and not ALLOWED.get()
    if limits is None and not tested:
        return
    is_loss = func in LOSSES
    fault = fault_of(shapes, limits or Strict(), is_loss)
    if fault is None:
        return
    site = site_of(sys._getframe(2), func)
    if site is None or site.is_allowed():
        return
    if fault.reason == "two_sided" and not is_loss and site.is_deliberate(len(shapes)):
        return
    if tested:
        _report_to_test(site, fault, operands, shapes, is_loss)
    if limits is not None and not site.is_exempt(limits.exempt):
        _report(site, fault, operands, shapes, is_loss, limits)


def _lies_on(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether one shape is the end of the other: a bias."""
    longer, end = left.shape, right.shape
    if len(longer) < len(end):
        longer, end = end, longer
    if not end or type(end[0]) is not int:  # torch.jit.trace writes sizes as tensors
        return not end
    return bool(longer[len(longer) - len(end) :] == end)


def _operands(count: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    operands = list(args[:count])
    operands += [kwargs[name] for name in NAMED if name in kwargs]
    return [operand for operand in operands[:count] if operand is not None]  # clamp(max=x)


def _shapes(operands: Sequence[Any]) -> tuple[Shape, ...] | None:
    """The operands' shapes; None if one is unknown, open, or no tensor."""
    shapes = []
    for operand in operands:
        if type(operand) in _NUMBERS:
            shapes.append(())
        elif not isinstance(operand, torch.Tensor) or not _is_plain(operand):
            return None
        else:
            shape = tuple(operand.shape)
            if not all(type(size) is int for size in shape):
                # Comparing an open size of torch.export or torch.jit.trace would fix it.
                return None
            shapes.append(shape)
    return tuple(shapes) if len(shapes) > 1 else None


def _is_plain(tensor: Any) -> bool:
    """Whether a tensor broadcasts as PyTorch's own do: it is no nested tensor, and its class does
    not define operations.
    """
    own = type(tensor).__torch_function__
    plain = getattr(own, "__func__", own) in _PLAIN
    return plain and not tensor.is_nested


_PLAIN = (
    torch.Tensor.__torch_function__.__func__,
    torch._C._disabled_torch_function_impl,
)


# Reports.

#: Lines and shapes that were reported by a warning or a record.
_REPORTED: dict[tuple[Any, ...], TorchAccident] = {}
#: Most entries of it. Sequences of ever new lengths have ever new shapes.
_MOST_REPORTED = 4096


def _report_to_test(
    site: Site, fault: Fault, operands: Sequence[Any], shapes: tuple[Shape, ...], is_loss: bool
) -> None:
    __tracebackhide__ = True
    path = site.frame.f_code.co_filename
    if WATCH.report and fault.reason != "growth" and WATCH.covers and WATCH.covers(path):
        # The plugin names files from its own folder.
        WATCH.report(replace(accident_at(site, fault, operands, shapes, is_loss), path=path))


def _report(
    site: Site,
    fault: Fault,
    operands: Sequence[Any],
    shapes: tuple[Shape, ...],
    is_loss: bool,
    limits: Strict,
) -> None:
    """Raises, warns or logs an accident."""
    __tracebackhide__ = True
    if limits.level == "error":
        accident = accident_at(site, fault, operands, shapes, is_loss)
        raise AccidentalBroadcastError(
            str(accident), reason=fault.reason, rule="numpy", shapes=shapes, hint=accident.fix()
        )
    key = site.frame.f_code, site.frame.f_lasti, shapes, fault.reason, limits.level
    before = _REPORTED.get(key)
    if before is not None and limits.level == "log":
        return
    accident = before or accident_at(site, fault, operands, shapes, is_loss)
    if len(_REPORTED) >= _MOST_REPORTED:
        _REPORTED.clear()
    _REPORTED[key] = accident
    if limits.level == "log":
        _LOG.warning("%s", accident)
    else:
        _warn(site.frame, accident)


def _warn(frame: FrameType, accident: TorchAccident) -> None:
    names = frame.f_globals
    warnings.warn_explicit(
        str(accident),
        AccidentalBroadcastWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=names.get("__name__"),
        registry=names.setdefault("__warningregistry__", {}),
    )


# Operations that are not watched.


def _before_step(_optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Takes the mode off: an optimiser runs many operations, all of tensors of one shape. A closure
    runs the user's code.
    """
    if is_dynamo_compiling() or not THREAD.watches:
        return
    if len(args) < 2 and kwargs.get("closure") is None:
        THREAD.suspended = True
        put(False)


def _after_step(_optimizer: Any, _args: Any, _kwargs: Any) -> None:
    if not is_dynamo_compiling() and THREAD.suspended:
        THREAD.suspended = False
        THREAD.follow()


class _Compiler:
    """Says once that compiled code is not watched."""

    logged = False
    handler: Any = None

    def listen(self) -> None:
        """Waits for the first compilation while a context is in force. `torch._dynamo.reset()`
        forgets who waits, so each context says it again.
        """
        if self.logged or "torch._dynamo" not in sys.modules:
            return
        if self.handler is None:
            from torch._dynamo.callback import callback_handler

            self.handler = callback_handler
        if self.say not in self.handler.start_callbacks:
            self.handler.register_start_callback(self.say)

    def say(self, _arguments: Any) -> None:
        """Logs the message, if a context is in force."""
        if not self.logged and in_force() is not None:
            self.logged = True
            _LOG.warning(
                "torch.compile: zs.strict() does not watch compiled code; run it once without "
                "torch.compile, or with TORCH_COMPILE_DISABLE=1, to check it"
            )


register_optimizer_step_pre_hook(_before_step)
register_optimizer_step_post_hook(_after_step)
COMPILER = _Compiler()
when_imported("torch._dynamo", COMPILER.listen)

__all__ = ["COMPILER", "Mode", "put"]
