"""Strict mode watches PyTorch in its context, thread, task and process, and nowhere else."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import subprocess
import sys
import threading

import pytest
from torch_operands import COLUMN, MARKS, VECTOR, subtract, torch
from torch_watched import modes, refused

import zerostride as zs
from zerostride.core.strict_mode import in_force

pytestmark = MARKS


# Contexts.


def test_the_mode_is_on_the_stack_only_inside():
    before = modes()
    with zs.strict():
        assert modes() == before + 1
        with zs.strict(level="warn"), zs.strict():
            assert modes() == before + 1
        assert refused(subtract)
    assert modes() == before


def test_a_context_can_be_entered_again():
    limits = zs.strict()
    with limits, limits:
        assert refused(subtract)
        with limits:
            pass
        assert refused(subtract)
    assert refused(subtract) is None


def test_functions_are_decorated():
    @zs.strict
    def step():
        return COLUMN - VECTOR

    @zs.strict(two_sided=True)
    def allowed():
        return COLUMN - VECTOR

    assert refused(step)
    assert refused(subtract) is None
    assert allowed().shape == (6, 6)


def test_an_error_closes_the_context():
    with pytest.raises(KeyError), zs.strict():
        raise KeyError
    assert refused(subtract) is None


def test_contexts_close_out_of_order():
    def steps():
        with zs.strict():
            yield
            yield

    first, second = steps(), steps()
    next(first)
    next(second)
    first.close()
    assert refused(subtract)
    second.close()
    assert refused(subtract) is None


def test_a_mode_of_the_user_stays_on_the_stack():
    outer = zs.strict()
    outer.__enter__()
    with torch.device("meta"):
        outer.__exit__(None, None, None)
        assert torch.rand(2).device.type == "meta"
        assert refused(subtract) is None
    with zs.strict(), torch.device("meta"):
        assert torch.rand(2).device.type == "meta"
        assert refused(subtract)


def test_each_task_has_its_own_context():
    async def watched(entered, left):
        with zs.strict():
            entered.set()
            await left.wait()
            return refused(subtract)

    async def unwatched(entered, left):
        await entered.wait()
        error = refused(subtract)
        left.set()
        return error

    async def both():
        entered, left = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(watched(entered, left), unwatched(entered, left))

    inside, outside = asyncio.run(both())
    assert inside is not None
    assert outside is None


def test_a_task_keeps_the_context_it_was_started_in():
    async def main():
        done = asyncio.Event()

        async def later():
            await done.wait()
            return refused(subtract)

        with zs.strict():
            task = asyncio.create_task(later())
        assert refused(subtract) is None
        done.set()
        return await task

    assert asyncio.run(main()) is not None


def test_each_thread_has_its_own_context():
    answers = {}

    def plain():
        answers["plain"] = refused(subtract)

    def strict():
        with zs.strict():
            answers["strict"] = refused(subtract)
        answers["after"] = refused(subtract)

    with zs.strict():
        for run in (plain, strict):
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
    assert answers["plain"] is None
    assert answers["strict"] is not None
    assert answers["after"] is None


def test_a_context_that_ends_in_another_thread_has_no_effect():
    before = modes()
    context = contextvars.copy_context()
    context.run(zs.strict().__enter__)
    assert modes() == before + 1
    entries = [context]
    del context
    thread = threading.Thread(target=entries.clear)
    thread.start()
    thread.join()
    assert refused(subtract) is None
    with zs.strict():
        assert refused(subtract)
    assert modes() == before


def test_zerostrides_own_code_is_checked_once():
    x = torch.rand(6, 1, device="meta")  # computed by PyTorch
    allowed = zs.strict(two_sided=True, new_axes=True)
    with zs.strict(max_growth=2):
        assert zs.subtract(x, x[:, 0], rule=allowed).shape == (6, 6)
        assert refused(lambda: zs.subtract(x, x[:, 0])).reason == "two_sided"


# Processes.

SCRIPT = """
import {first}, logging, warnings
warnings.simplefilter("error")
import zerostride as zs
import torch, threading
def step():
    try:
        (torch.rand(6, 1) - torch.rand(6)).mean()
        print("passed", end=" ")
    except zs.BroadcastError as error:
        print("refused", end=" ")
    except zs.AccidentalBroadcastWarning:
        print("warned", end=" ")
step()
thread = threading.Thread(target=step)
thread.start(); thread.join()
"""


@pytest.mark.parametrize("first", ["torch", "zerostride"])
@pytest.mark.parametrize(
    ("level", "answer"),
    [
        ("error", "refused passed"),
        ("warn", "warned passed"),
        ("log", "passed passed"),
        ("off", "passed passed"),
    ],
)
def test_the_environment_watches_the_main_thread(tmp_path, first, level, answer):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(first=first))
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "ZEROSTRIDE_STRICT": level},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == answer
    assert ("train.py:8: accidental broadcast" in done.stderr) == (level == "log")


def test_pytorch_may_be_imported_inside_of_the_context():
    code = (
        "import sys, zerostride as zs\n"
        "with zs.strict():\n"
        "    assert 'torch' not in sys.modules\n"
        "    import torch\n"
        "    assert torch._C._len_torch_function_stack() == 1\n"
        "    try:\n"
        "        torch.rand(3, 1) - torch.rand(3)\n"
        "    except zs.BroadcastError:\n"
        "        print('refused')\n"
        "assert torch._C._len_torch_function_stack() == 0\n"
        "assert torch.__spec__.loader.name == 'torch'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "refused"
    assert done.stderr == ""


def test_strict_mode_does_not_import_pytorch():
    code = (
        "import sys, zerostride as zs\n"
        "with zs.strict():\n"
        "    zs.plan((3,), (3,))\n"
        "assert not {'torch', 'numpy', 'zerostride.lint.torch_mode'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_is_in_force_at_the_end():
    assert in_force() is None
    assert logging.getLogger("zerostride.strict").level == logging.NOTSET
