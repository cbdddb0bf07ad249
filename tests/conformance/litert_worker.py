"""Runs ops of LiteRT, each in a separate process: a list of questions in, of answers out.

A question is [op, shapes, dtype, attributes]; an answer is "right", "wrong", "refused" or "died".
"""

import json
import os
import signal
import sys

import numpy as np

from zerostride.runtimes.runners import load_runner

FUNCTIONS = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": lambda a, b: a / b if a.dtype.kind == "f" else np.trunc(a / b),
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "POW": np.power,
    "FLOOR_DIV": np.floor_divide,
    "FLOOR_MOD": np.mod,
    "SQUARED_DIFFERENCE": lambda a, b: (a - b) ** 2,
    "ATAN2": np.arctan2,
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
    "LOGICAL_AND": np.logical_and,
    "LOGICAL_OR": np.logical_or,
    "BITWISE_XOR": np.bitwise_xor,
    "RIGHT_SHIFT": np.right_shift,
    "SELECT_V2": np.where,
    "PRELU": lambda x, slope: np.where(x < 0, x * slope, x),
    "BATCH_MATMUL": np.matmul,
}
ANSWERS = {0: "right", 1: "wrong", 2: "refused"}
#: A case takes milliseconds.
SECONDS = 30


def operand(op, k, shape, dtype):
    """Small numbers, so that no result leaves an int8."""
    rng = np.random.default_rng(k)
    if dtype == "bool" or (op == "SELECT_V2" and k == 0):
        return rng.integers(0, 2, shape).astype(bool)
    few = op == "POW" or "EQUAL" in op  # of which some are equal and some are not
    values = rng.integers(1, 4 if few else 8, shape)
    return (-values if op == "PRELU" and k == 0 else values).astype(dtype)


def ask(runner, op, shapes, dtype, attributes):
    """What the engine does, as a key of ANSWERS."""
    operands = [operand(op, k, tuple(shape), dtype) for k, shape in enumerate(shapes)]
    try:
        got = runner.call(op, attributes, operands, ())
    except runner.refusals:
        return 2
    try:
        wanted = FUNCTIONS[op](*operands)
    except (ValueError, TypeError):
        return 1  # nothing that it could have answered is right
    return 0 if got.shape == wanted.shape and np.allclose(got, wanted, rtol=1e-3) else 1


def main():
    questions = json.load(sys.stdin)
    try:
        runner = load_runner("litert")
    except ImportError as missing:
        json.dump({"missing": str(missing)}, sys.stdout)
        return
    answers = []
    for question in questions:
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            status = 9
            try:
                status = ask(runner, *question)
            finally:
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        died = os.WIFSIGNALED(ended)
        answers.append("died" if died else ANSWERS.get(os.WEXITSTATUS(ended), "broken"))
    json.dump({"version": runner.version, "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()
