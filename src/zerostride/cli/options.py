"""Options that several commands share, and the output of results."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import click

from ..core.plugins import Table
from ..core.rules import MODES, RULES
from ..engines.table import ENGINES, find_engine
from ..errors import BroadcastError, Reason, ZerostrideError
from ..models.report_json import plain
from ..system import spelling
from .shapes import parse_shape

FOUND, BAD_INPUT = 1, 2

#: Reasons that mean a wrong question, not shapes that do not combine.
MALFORMED = frozenset(
    {
        Reason.BAD_EXTENT,
        Reason.ATTRIBUTE,
        Reason.OPERAND_COUNT,
        Reason.UNKNOWN_RULE,
        Reason.UNKNOWN_ENGINE,
        Reason.UNKNOWN_OP,
        Reason.NO_RULE,
        Reason.NO_OP,
        Reason.DTYPE,
    }
)

F = TypeVar("F", bound=Callable[..., Any])


class NameOf(click.ParamType):  # type: ignore[type-arg] # generic in click's newer releases
    """The name of a row of a table, as a `click.Choice` of them all.

    Rows of other packages are loaded when a name is not known, or all names are shown.
    """

    name = "choice"

    def __init__(
        self,
        table: Table[Any],
        wanted: Callable[[Any], bool] = lambda row: True,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        """Takes the table, a test of its rows, and other names of some."""
        self._table = table
        self._wanted = wanted
        self._aliases = aliases or {}

    @property
    def choices(self) -> tuple[str, ...]:
        """All names."""
        return tuple(name for name, row in self._table.items() if self._wanted(row))

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """The name of the row, if there is one."""
        value = self._aliases.get(value, value)
        if value not in self._table or not self._wanted(self._table[value]):
            names = ", ".join(map(repr, self.choices))
            close = spelling.near(value, self.choices, others=spelling.ENGINES)
            words = f" Did you mean {close[0]!r}?" if close else ""
            self.fail(f"{value!r} is not one of {names}.{words}", param, ctx)
        return str(value)

    def get_missing_message(self, param: Any, ctx: Any = None) -> str:
        """The message for a missing name."""
        return "Choose from:\n\t" + ",\n\t".join(self.choices)

    def get_metavar(self, param: Any, ctx: Any = None) -> str:
        """All names, as help shows them."""
        return f"[{'|'.join(self.choices)}]"

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        """The names that begin so."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in self.choices if name.startswith(incomplete)]


class Parsed(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A word of the command line, read by a function whose refusal is a usage error."""

    def __init__(
        self,
        name: str,
        parse: Callable[[str], Any],
        complete: Callable[[str], Iterable[str]] | None = None,
    ) -> None:
        """Takes the name for help, the reader, and words for a half-written one; None: files."""
        self.name = name
        self._parse = parse
        self._complete = complete

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The function's value for the word; a default is returned as it is."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ZerostrideError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        """The words that begin so, or file names, which the shell itself completes."""
        from click.shell_completion import CompletionItem

        if self._complete is None:
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(word) for word in dict.fromkeys(self._complete(incomplete))]


def no_words(begun: str) -> Iterable[str]:
    """The completion of words that no table has."""
    return ()


def word_of(words: Callable[[], Iterable[str]]) -> Parsed:
    """A word that the command looks up, and that a shell completes."""
    return Parsed("text", str, lambda begun: (w for w in words() if w.startswith(begun)))


#: The names of engines that are files' names: LiteRT was TensorFlow Lite.
_ALIASES = {"tflite": "litert"}
engine_name = NameOf(ENGINES, aliases=_ALIASES)


class ReleaseName(NameOf):
    """An engine's name, or that of its release: ncnn@20230517."""

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """The name itself, if its release was measured."""
        if "@" not in str(value):
            return super().convert(value, param, ctx)
        name, _, release = str(value).partition("@")
        known = f"{super().convert(name, param, ctx)}@{release}"
        find_engine(known)  # raises the error that lists the measured releases
        return known


release_name = ReleaseName(ENGINES, aliases=_ALIASES)


class PinnedName(NameOf):
    """An engine's name, with the release for pip if there is one: onnxruntime==1.29.0."""

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """The words themselves, if the name is an engine's."""
        name, pinned, release = str(value).partition("==")
        return super().convert(name, param, ctx) + pinned + release


engine_pinned = PinnedName(ENGINES, aliases=_ALIASES)


class TargetOption(click.Option):
    """The option of the engine. Other spellings mean the same; help and errors show the first."""

    def __init__(self, *words: Any, spellings: Sequence[str], **keywords: Any) -> None:
        """Takes the other spellings, and the arguments of an option."""
        super().__init__(*words, **keywords)
        self._spellings = spellings

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Adds the option under all of its spellings."""
        shown, self.opts = self.opts, [*self.opts, *self._spellings]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = shown


#: The engine for which a model is judged, ported, converted or run: --target, --to or --engine.
target = functools.partial(
    click.option, "--target", cls=TargetOption, spellings=("--to", "--engine")
)
#: The engine whose rule is asked; there --to may be a shape.
engine = click.option(
    "--engine",
    cls=TargetOption,
    spellings=("--target",),
    type=release_name,
    help="Ask what this engine does; ncnn@20230517: a release.",
)
rule = click.option(
    "--rule",
    type=NameOf(RULES, lambda rule: not rule.to_target),
    help="The rule; numpy if not given.",
)
axis = click.option(
    "--axis", type=int, help="Where the smaller operand starts (pdpd, paddle, onnx6)."
)
broadcast = click.option("--broadcast", type=int, help="onnx6's attribute: 1 allows broadcasting.")
mode = click.option("--mode", type=click.Choice(list(MODES)), help="Mode of the Broadcast op.")


facts = click.option(
    "--given",
    "facts",
    multiple=True,
    metavar="CONDITION",
    help="What is known of sizes: 'N >= 1', 'N % 8 == 0'. May be given again.",
)


#: A shape; a shell completes the names of files that have one.
SHAPE = Parsed("shape", parse_shape)
#: The most digits of a number; Python refuses to read thousands.
_LONGEST_NUMBER = 40


def _size(text: str) -> tuple[str, int | str]:
    """NAME=VALUE: a name with any characters, and a number or another size."""
    name, equals, number = text.rpartition("=")
    name, number = name.strip(), number.strip()
    if not equals or not name or not number:
        raise ZerostrideError(f"{text[:80]!r} is not NAME=VALUE, such as N=4")
    if not (number.isascii() and number.isdigit()):
        return name, number
    if len(number) > _LONGEST_NUMBER or int(number) >= 2**63:
        raise ZerostrideError(f"{number[:20]}... is more than a size can be")
    return name, int(number)


#: A value for a size that is not known.
SIZE = Parsed("name=value", _size, no_words)


def numbers(sizes: Sequence[tuple[str, int | str]]) -> dict[str, int]:
    """The values of --set where only numbers are allowed."""
    values: dict[str, int] = {}
    for name, value in sizes:
        if not isinstance(value, int):
            raise ZerostrideError(f"--set {name}={value}: a model's size is set to a number")
        if values.setdefault(name, value) != value:
            raise ZerostrideError(f"--set gives {name} two values: {values[name]} and {value}")
    return values


_SIZE = re.compile(r"[0-9]{1,19}", re.ASCII)


def _input_shape(text: str) -> tuple[str | None, tuple[int | str | None, ...]]:
    """[NAME=]SIZES: the input's name, or None for an input by position; and its sizes."""
    name, equals, sizes = text.rpartition("=")
    sizes = sizes.strip()
    if (equals and not name) or not sizes:
        raise ZerostrideError(f"{text[:80]!r} is not NAME=SIZES, such as x=1,3,224,224 or x=scalar")
    if sizes == "scalar":
        return name or None, ()
    if sizes[0] + sizes[-1] in ("()", "[]"):
        sizes = sizes[1:-1].strip().removesuffix(",")
    separator = "x" if re.fullmatch(r"\s*(\d+\s*x\s*)+\d+\s*", sizes) else ","
    words = [word.strip() for word in sizes.split(separator)] if sizes else []
    for word in words:
        if not (_SIZE.fullmatch(word) or word == "?" or re.fullmatch(r"[^\W\d][\w.]*", word)):
            raise ZerostrideError(f"{text[:80]!r}: {word[:40]!r} is no size: a number, ?, a name")
    return name or None, tuple(
        int(word) if _SIZE.fullmatch(word) else None if word == "?" else word for word in words
    )


def _by_input(
    shapes: Sequence[tuple[str | None, tuple[int | str | None, ...]]],
) -> dict[int | str, tuple[int | str | None, ...]]:
    """The shapes of --input-shape by the input's name or position."""
    by_input: dict[int | str, tuple[int | str | None, ...]] = {}
    for name, shape in shapes:
        # A shape without a name belongs to the first input that has no shape by position yet.
        key = name if name is not None else sum(isinstance(key, int) for key in by_input)
        if key in by_input:
            raise ZerostrideError(f"--input-shape gives {key} two shapes")
        by_input[key] = shape
    return by_input


def _axes(text: str) -> list[int]:
    """A list of axes: 1,2."""
    try:
        return [int(word) for word in text.strip("[]()").split(",") if word.strip()]
    except ValueError:
        raise ZerostrideError(f"{text[:80]!r} is not a list of axes such as 1,2") from None


AXES = Parsed("axes", _axes, no_words)


def as_json(function: F) -> F:
    """The option --json. With it a refusal is JSON too, on the output, under the same status."""

    @functools.wraps(function)
    def answer(*args: Any, as_json: bool, **keywords: Any) -> Any:
        try:
            return function(*args, as_json=as_json, **keywords)
        except (BroadcastError, ZerostrideError) as error:
            if not as_json:
                raise
            put_json(error_dict(error))
            return exit_status(error)

    flag = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
    return cast(F, flag(answer))


def combine(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order given."""

    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def colored() -> bool:
    """Whether the terminal wants colours (NO_COLOR says no, FORCE_COLOR says yes)."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def put_json(value: Any) -> None:
    """Prints a value as JSON; numbers that JSON lacks as "NaN", "Infinity" and "-Infinity"."""
    click.echo(json.dumps(plain(value), indent=2, default=str, allow_nan=False))


def error_dict(error: BroadcastError | ZerostrideError) -> dict[str, Any]:
    """An error for JSON."""
    if isinstance(error, ZerostrideError):
        return {"ok": False, "reason": "bad_input", "detail": str(error)}
    return {
        "ok": False,
        "reason": error.reason,
        "detail": error.detail,
        "rule": str(error.rule),
        "shapes": error.shapes,
        "axis": error.axis,
        "silent": error.silent,
        "hint": error.hint,
    }


def exit_status(error: BroadcastError | ZerostrideError) -> int:
    """The exit status: 1 if shapes do not combine, 2 if the question was wrong."""
    if isinstance(error, ZerostrideError) or error.reason in MALFORMED:
        return BAD_INPUT
    return FOUND


def _axis_of_batch(text: str) -> int:
    """The number of --batch-axis; −1 for "none"."""
    if text != "none" and not re.fullmatch("[0-9]{1,3}", text):
        raise ZerostrideError(f"{text[:80]!r} is not an axis (0, 1, ...) or none")
    return -1 if text == "none" else int(text)


def _converters() -> list[str]:
    """The names that `via` takes."""
    from ..models.transport.converters import CONVERTERS, NONE

    return [*CONVERTERS, NONE]


#: The command-line options of each field of a ModelOptions.
_OF_MODEL: Mapping[str, Callable[[Any], Any]] = {
    "via": click.option(
        "--via",
        type=word_of(_converters),
        metavar="CONVERTER",
        help="Judge what this converter makes of each node: pnnx (ncnn), mnnconvert (mnn), "
        "onnx-frontend (openvino), onnx-parser (tensorrt), litert-torch (litert, of modules). "
        "'none': op for op. Not given: the one of the engine, for ONNX files and modules.",
    ),
    "batch_axis": click.option(
        "--batch-axis",
        type=Parsed("text", _axis_of_batch, no_words),
        help="Batch axis of the model's inputs, for engines that drop it; 'none' for none.",
    ),
    "input_shapes": click.option(
        "--input-shape",
        "input_shapes",
        multiple=True,
        type=Parsed("[name=]sizes", _input_shape, no_words),
        metavar="[NAME=]SIZES",
        help="Sizes of an input, by its name or in the inputs' order: x=1,3,224,224; "
        "? for an axis that stays open. May be given again.",
    ),
    "sizes": click.option(
        "--set",
        "sizes",
        multiple=True,
        type=SIZE,
        metavar="NAME=NUMBER",
        help="A number for a size that the model names, N=4, or for an axis of an input, "
        "'x[0]=4'. May be given again.",
    ),
    "facts": facts,
    "strict": click.option(
        "--strict",
        is_flag=True,
        help="Say also which broadcasts look accidental, whatever the target: (N, 1) with (N,).",
    ),
    "layout": click.option(
        "--layout",
        type=click.Choice(["nhwc"]),
        help="Say also what every operand must become where images are channels-last.",
    ),
}


def of_model(*names: str) -> Callable[[F], F]:
    """Options about a model; the command gets them as `given`, a ModelOptions.

    Args:
        names: fields of ModelOptions that the command has, besides `input_shapes` and `sizes`.
    """
    fields = [name for name in _OF_MODEL if name in (*names, "input_shapes", "sizes")]

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def command(*args: Any, **keywords: Any) -> Any:
            from ..models.options import ModelOptions

            values = {name: keywords.pop(name) for name in fields}
            values["sizes"] = numbers(values["sizes"])
            values["input_shapes"] = _by_input(values["input_shapes"])
            values["facts"] = values.get("facts") or None
            return function(*args, given=ModelOptions(**values), **keywords)

        with_options: F = combine(*(_OF_MODEL[name] for name in fields))(command)
        return with_options

    return decorate
