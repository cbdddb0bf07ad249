"""The file of a learnt engine, as a row of the engine table.

A file is JSON: the engine, its release, the runner, rows by a letter, and for each op the row of
each element type. `LearntFile` reads it; `folder` has the user's files.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ModelError, PluginWarning, Reason
from ...ops import OPS
from ..model import BROADCAST, Divergence, Engine, Rules, always
from .forms import FORMS
from .row import Deviation, LearntRow

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

#: The version of the form of a file.
FORM = 1
#: The op that broadcasts to a target, in files.
TO_TARGET = "broadcast_to"
#: Names the folder of a user's learnt engines.
VARIABLE = "ZEROSTRIDE_ENGINES"
#: The largest file that is read; one with every op and type has 100 kB.
_MOST_BYTES = 4_000_000
#: The columns of the op table that have a runner's names.
_COLUMNS: Mapping[str, str] = {"onnx": "onnx", "": "torch"}


def folder() -> Path:
    """The folder of a user's learnt engines."""
    own = os.environ.get(VARIABLE)
    return Path(own) if own else Path.home() / ".local" / "share" / "zerostride" / "engines"


def file_name(name: str, release: str) -> str:
    """The name of a file: "opencv@5.0.0.json"."""
    return f"{name}@{release}.json"


@dataclass(frozen=True, slots=True)
class LearntFile:
    """A file of a learnt engine; the table of engines reads it as it reads an entry point.

    Attributes:
        path: the file; of this package, maybe in a zip file.
        own: whether it is part of this package.
        others: the files of the engine's other releases.
    """

    path: Path | Traversable
    own: bool = False
    others: tuple[LearntFile, ...] = ()

    @property
    def name(self) -> str:
        """The engine's name."""
        return self.path.name.partition("@")[0]

    @property
    def value(self) -> str:
        """This package, or the user's file, for messages."""
        return "zerostride" if self.own else str(self.path)

    @property
    def dist(self) -> None:
        """No package has it."""
        return

    def load(self) -> Engine:
        """The row, with those of other releases, and a warning for each that cannot be read.

        Raises:
            ModelError: the file cannot be read, or is malformed.
        """
        older = []
        for file in self.others:
            try:
                older.append(file.load())
            except ModelError as error:
                warnings.warn(f"it is left out: {error}", PluginWarning, stacklevel=2)
        return replace(read_engine(self.path), older=tuple(older))


def learnt_files() -> Iterator[LearntFile]:
    """The files of this package and of the user, one for each engine, which has the others.

    The newest of the user's files answers, else the newest of this package. The user's file goes
    before one of the same release.
    """
    releases: dict[str, dict[str, LearntFile]] = {}
    for file in (*_files(_own_paths(), own=True), *_files(folder().glob("*"), own=False)):
        files = releases.setdefault(file.name, {})
        files.pop(file.path.name, None)
        files[file.path.name] = file
    for files in releases.values():
        *others, newest = files.values()
        yield replace(newest, others=tuple(others))


def _own_paths() -> Iterable[Traversable]:
    from importlib import resources  # slow to import, and most callers never ask

    return resources.files(__package__).joinpath("rows").iterdir()


def _files(paths: Iterable[Path | Traversable], *, own: bool) -> Iterator[LearntFile]:
    """The files among the paths of a folder, by name, those of newer releases last."""
    try:
        named = [path for path in paths if fnmatch(path.name, "*@*.json")]
    except OSError:
        return
    yield from (LearntFile(path, own) for path in sorted(named, key=_order))


def _order(path: Path | Traversable) -> tuple[str, tuple[int, ...]]:
    """The engine of a file's name, and the numbers of the release."""
    name, _, release = path.name.removesuffix(".json").partition("@")
    return name, tuple(int(part) for part in release.split(".") if part.isdigit())


def read_engine(path: str | Path | Traversable) -> Engine:
    """The row of a file.

    Raises:
        ModelError: the file cannot be read, or is malformed.
    """
    path = Path(path) if isinstance(path, str) else path
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ModelError(f"{path}: over {_MOST_BYTES} bytes are too many for a learnt engine")
        data = json.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not the file of a learnt engine: {error}") from None
    try:
        return engine_of(data)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        words = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        hint = "learn it again: zerostride engines learn RUNNER.py"
        raise ModelError(f"{path} is not the file of a learnt engine: {words}; {hint}") from None


def engine_of(data: Mapping[str, Any]) -> Engine:
    """The row of a file's data.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: the data are malformed.
    """
    if data["form"] != FORM:
        raise ValueError(f"its form is {data['form']!r}, and this release reads {FORM}")
    rows = {str(key): LearntRow.read(row) for key, row in data["rows"].items()}
    name, release = str(data["name"]), str(data["release"])
    source = f"{name} {release}, learnt by {int(data['questions'])} questions to {data['runner']}"
    ops = {str(op): _OpFacts(str(op), entry, rows, source) for op, entry in data["ops"].items()}
    elementwise = next((op for op in ops.values() if op.plain), None)
    if elementwise is None:
        raise ValueError("it has no op of two operands")
    usual = elementwise.rules
    target = ops.get(TO_TARGET)
    present = [op for op in ops.values() if op.name != TO_TARGET and op.exists]
    column = _COLUMNS[str(data["names"])]
    named = (op for op in OPS.values() if column in op.names)
    unasked = frozenset(op.name for op in named if op.tensors > 1) - set(ops)
    return Engine(
        name,
        release,
        str(data["distribution"]),
        name,
        source,
        usual,
        {} if target is None else target.rules,
        ops={op.name: op.rules for op in present if not op.like(elementwise)},
        typed={key: rules for op in ops.values() for key, rules in op.typed()},
        divergences=(
            *(row for op in ops.values() for row in op.divergences()),
            *_never_asked(unasked, source),
        ),
        reads=column,
        has=frozenset(op.name for op in present) | unasked,
    )


def _never_asked(names: frozenset[str], source: str) -> Iterator[Divergence]:
    """One divergence for the ops that need attributes, which a runner does not get."""
    if names:
        yield Divergence(
            f"{', '.join(sorted(names))}: not asked; a runner gets no attributes",
            *(Reason.NOT_UNDERSTOOD, source),
            strikes=always,
            ops=names,
        )


#: Lists of an op's element types without a row: words, and the reason of a refusal.
_LISTS: Mapping[str, tuple[str, Reason]] = {
    "refused": ("does not take {}", Reason.DTYPE),
    "crashed": ("of {} ends the process", Reason.CRASH),
    "strange": ("of {} computes no function that is known", Reason.NOT_UNDERSTOOD),
    "unasked": (
        "of {} was not asked; learn it again with more --seconds",
        Reason.NOT_UNDERSTOOD,
    ),
}
#: The row of an op that was understood on no element type.
_NOTHING = LearntRow(FORMS[0], (Deviation((), "unknown"),))


@dataclass(frozen=True, slots=True)
class _OpFacts:
    """An op of a file."""

    name: str
    entry: Mapping[str, Any]
    rows: Mapping[str, LearntRow]
    source: str

    @property
    def first(self) -> str | None:
        """The letter of the row of its first element type."""
        return next(iter(self.entry["types"].values()), None)

    @property
    def exists(self) -> bool:
        """Whether the engine has it, or may have it: an op that was not asked is not absent."""
        lists = (key for key in _LISTS if key != "refused")
        return self.first is not None or any(map(self._listed, lists))

    def _listed(self, key: str) -> list[str]:
        """The element types of a list."""
        return list(map(str, self.entry[key]))

    @property
    def plain(self) -> bool:
        """Whether it has two operands, and a row."""
        op = OPS.get(self.name)
        return self.first is not None and op is not None and op.tensors == 2

    @property
    def rules(self) -> Rules:
        """The rule of its first element type, by the rule's name or the mode."""
        if not self.exists:
            return {}
        return self._rules(_NOTHING if self.first is None else self.rows[self.first])

    def _rules(self, row: LearntRow) -> Rules:
        op = OPS.get(self.name)
        count = 2 if op is None else op.tensors
        rule = row.rule(self.source, to_target=self.name == TO_TARGET, count=count)
        if self.name == TO_TARGET:
            return {"numpy" if row.form.stretch == "first" else "bidirectional": rule}
        return {rule.name: rule}

    def like(self, other: _OpFacts) -> bool:
        """Whether it has the same row and the same number of operands."""
        return self.plain and self.first == other.first

    @property
    def _key(self) -> str:
        """Its name in the engine's row."""
        return BROADCAST if self.name == TO_TARGET else self.name

    def typed(self) -> Iterator[tuple[tuple[str, str], Rules]]:
        """The rules of the element types whose row is another than that of the first."""
        for dtype, letter in self.entry["types"].items():
            if letter != self.first:
                yield (self._key, str(dtype)), self._rules(self.rows[letter])

    def divergences(self) -> Iterator[Divergence]:
        """The element types that it does not take, and numbers that are not NumPy's."""
        if not self.exists:
            return
        for key, (words, effect) in _LISTS.items():
            types = self._listed(key)
            if types:
                yield Divergence(
                    *(f"{self.name} {words.format(', '.join(types))}", effect, self.source),
                    strikes=always,
                    ops=frozenset({self._key}),
                    dtypes=frozenset(types),
                )
        yield from self._numbers()

    def _numbers(self) -> Iterator[Divergence]:
        """Numbers that are not NumPy's: a row for all types and aspects with one behaviour."""
        aspects: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
        for dtype, aspect, does, *example in self.entry["numbers"]:
            row = aspects.setdefault((str(does), str(dtype)), {})
            row[str(aspect)] = tuple(map(str, example))
        alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (does, dtype), row in aspects.items():
            alike.setdefault((does, tuple(row)), []).append(dtype)
        for (does, names), dtypes in alike.items():
            examples = aspects[does, dtypes[0]].values()
            yield self._of_numbers(dtypes, names, does, next(filter(None, examples), ()))

    def _of_numbers(
        self, dtypes: Sequence[str], aspects: Sequence[str], does: str, example: Sequence[str]
    ) -> Divergence:
        whole = not any(dtype.startswith("float") for dtype in dtypes)
        narrows = does.removeprefix("in ") if does.startswith("in ") and whole else None
        text = f"{self.name} of {', '.join(dtypes)}: {', '.join(aspects)}: "
        text += does.replace("_", " ") or "other numbers than NumPy's"
        if len(example) > 2:
            operands = ", ".join(example[:-2])
            other = f"NumPy's is {example[-1]}" if example[-1] else "NumPy refuses"
            text += f"; {self.name}({operands}) is {example[-2]}, and {other}"
        return Divergence(
            *(text, Reason.CRASH if does == "crashes" else Reason.WRONG_RESULT, self.source),
            strikes=always if narrows else None,
            ops=frozenset({self._key}),
            dtypes=frozenset(dtypes),
            narrows=narrows,
        )


__all__ = ["FORM", "LearntFile", "engine_of", "file_name", "folder", "learnt_files", "read_engine"]
