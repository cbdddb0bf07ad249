"""Learns an engine from a runner's file, and writes what was learnt."""

from __future__ import annotations

import ast
import json
import re
import string
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...engines.learnt import LearntRow
from ...engines.learnt.file import FORM, engine_of, file_name
from ...errors import BadInput
from ...ops import OPS
from ...system.whole_files import write_whole
from ..process import Missing, Process
from .engine import SECONDS, TO_TARGET, EngineLearner, LearntEngine, LearntOp

#: Ops whose ONNX node needs an attribute, which `run` does not get.
_WITH_ATTRIBUTES = frozenset({"fmod", "bitwise_left_shift", "bitwise_right_shift"})


@dataclass(frozen=True, slots=True)
class RunnerFile:
    """The head of a runner's file, read without running it.

    Attributes:
        path: the file.
        name: the engine's name.
        distribution: the package whose version is the release.
        names: whose names `run` gets: "onnx", or "" for the array API's.
        dependencies: the requirements for pip in its inline metadata (PEP 723).
    """

    path: Path
    name: str
    distribution: str
    names: str
    dependencies: tuple[str, ...] = ()

    @staticmethod
    def read(path: str | Path, name: str | None = None) -> RunnerFile:
        """Reads the constants of a file.

        Args:
            path: the file.
            name: the engine's name in place of NAME, for one of several settings of a runner.

        Raises:
            BadInput: it is no Python file, or has no NAME.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (OSError, ValueError, SyntaxError, RecursionError) as error:
            raise BadInput(f"{path} is not a Python file that can be read: {error}") from None
        words = {key: text for key, text in _constants(tree) if isinstance(text, str)}
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if "NAME" not in words or "run" not in functions:
            raise BadInput(
                f"{path} is no runner: it needs NAME and a function run(op, arrays, target); "
                "see docs/learn.md"
            )
        names = words.get("NAMES", "")
        if names not in ("", "onnx"):
            raise BadInput(f'{path}: NAMES is {names!r}; it is "onnx", or "" for the array API')
        name = words["NAME"] if name is None else name
        if not re.fullmatch(r"(?=.*[^\W_])[\w-]+", name):
            raise BadInput(f"{path}: NAME is {name!r}; write letters, digits, - and _")
        distribution, needs = words.get("DISTRIBUTION", ""), _dependencies(path, text)
        return RunnerFile(path, name, distribution, names, needs)

    def requirements(self, release: str) -> list[str]:
        """What pip has to install for a release of the engine; "newest" is the newest one.

        Raises:
            BadInput: the file does not say which package has the engine.
        """
        pinned = [f"{need}=={release}" if self._is(need) else need for need in self.dependencies]
        if not any(map(self._is, self.dependencies)):
            if not self.distribution:
                raise BadInput(
                    f"{self.path} has no DISTRIBUTION, so pip cannot install {release}; "
                    "name the folder of an environment instead"
                )
            pinned.append(f"{self.distribution}=={release}")
        pinned = [need.removesuffix("==newest") for need in pinned]
        return [*pinned, "numpy"]  # the operands are its arrays

    def _is(self, requirement: str) -> bool:
        """Whether a requirement is the engine's package."""
        name = re.match(r"[\w.-]+", requirement)
        return bool(self.distribution) and name is not None and name[0] == self.distribution

    def ops(self) -> dict[str, str]:
        """Canonical name of each op to the name that `run` gets."""
        rows = [op for op in OPS.values() if op.tensors > 1 and not op.parameters]
        if not self.names:
            return {**{op.name: op.name for op in rows}, TO_TARGET: TO_TARGET}
        named = {
            op.name: str(op.names["onnx"][0])
            for op in rows
            if "onnx" in op.names and op.name not in _WITH_ATTRIBUTES
        }
        return {**named, TO_TARGET: "Expand"}


def _dependencies(path: Path, text: str) -> tuple[str, ...]:
    """The requirements in a file's inline metadata (PEP 723).

    Raises:
        BadInput: the metadata are malformed.
    """
    block = re.search(r"(?m)^# /// script\n((?:#(?: .*)?\n)+?)# ///$", text)
    if block is None:
        return ()
    lines = "".join(line[2:] for line in block[1].splitlines(keepends=True))
    try:
        needs = tomllib.loads(lines).get("dependencies", [])
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: its inline metadata are no TOML: {error}") from None
    if not isinstance(needs, list) or not all(isinstance(need, str) for need in needs):
        raise BadInput(f"{path}: `dependencies` of its inline metadata is a list of strings")
    return tuple(needs)


def _constants(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """The constants that a module assigns to names, also several in one line."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            yield from _named(node.target, node.value)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _named(target, node.value)


def _named(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, Any]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for inner, part in zip(target.elts, value.elts, strict=False):
            yield from _named(inner, part)
    elif isinstance(target, ast.Name) and isinstance(value, ast.Constant):
        yield target.id, value.value


def learn_engine(
    runner: RunnerFile,
    python: str,
    *,
    seed: int = 0,
    timeout: float = 20.0,
    seconds: float = SECONDS,
    cases: int = 0,
    advance: Callable[[str], None] = lambda name: None,
) -> dict[str, Any]:
    """Learns an engine; the data of its file.

    Args:
        runner: its file.
        python: the interpreter that has the engine.
        seed: of random questions.
        timeout: seconds for one answer.
        seconds: the time for all questions.
        cases: fresh random questions with which the row is compared.
        advance: is called with the name of each op that begins.

    Raises:
        BadInput: the engine is not installed, or refuses everything.
    """
    try:
        with Process(str(runner.path), python, timeout) as process:
            learner = EngineLearner(process, runner.ops(), seed, seconds)
            data = as_data(runner, learner.learn(advance))
            if cases:
                data["checked"] = learner.check(cases, seed + 1).as_dict()
    except Missing as error:
        raise BadInput(f"{error}; --python PATH names an interpreter that has it") from None
    return data


def as_data(runner: RunnerFile, learnt: LearntEngine) -> dict[str, Any]:
    """The data of the file of a learnt engine."""
    letters: dict[str, str] = {}
    rows: dict[str, Any] = {}

    def letter(row: LearntRow) -> str:
        data = row.as_dict()
        key = json.dumps(data, sort_keys=True)
        if key not in letters:
            letters[key] = _letter(len(letters))
            rows[letters[key]] = data
        return letters[key]

    ops = {op.name: _op_data(op, letter) for op in learnt.ops}
    data = {
        "form": FORM,
        "name": runner.name,
        "release": learnt.version,
        "distribution": runner.distribution,
        "names": runner.names,
        "runner": runner.path.name,
        "questions": learnt.questions,
        "seconds": round(learnt.seconds, 1),
        "rows": rows,
        "ops": ops,
    }
    engine_of(data)  # a file that cannot be read back is not written
    return data


def _op_data(op: LearntOp, letter: Callable[[LearntRow], str]) -> dict[str, Any]:
    return {
        "types": {dtype: letter(row) for dtype, row in op.rows.items()},
        "refused": op.refused,
        "crashed": op.crashed,
        "strange": op.strange,
        "unasked": op.unasked,
        "numbers": [numbers.as_list() for numbers in op.numbers],
        "questions": op.questions,
    }


def _letter(number: int) -> str:
    """A, B, ..., Z, A1, B1, ..."""
    turn, place = divmod(number, len(string.ascii_uppercase))
    return string.ascii_uppercase[place] + (str(turn) if turn else "")


def write(data: Mapping[str, Any], place: Path) -> Path:
    """Writes the file of a learnt engine into a folder; returns its path."""
    place.mkdir(parents=True, exist_ok=True)
    path = place / file_name(str(data["name"]), str(data["release"]))
    text = json.dumps(data, indent=1) + "\n"
    write_whole((path, lambda file: file.write(text.encode())))
    return path


__all__ = ["RunnerFile", "as_data", "learn_engine", "write"]
