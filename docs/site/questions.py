"""The playground's answers: a question as JSON in, the library's answer as JSON out.

The browser runs this file in Pyodide, without NumPy. A question has `ask` (one of `ASKED`). One of
shapes has `shapes` as they are typed, and `rule`, `engine`, `op`, `axis` and `facts`, which may be
empty.
One of a model has `file`, a name in the current folder, and `engine`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import zerostride as zs
from zerostride.core.rules import RULES
from zerostride.engines import ENGINES
from zerostride.engines.supports import rules_of
from zerostride.errors import Misfit, Reason, default_names
from zerostride.sizes.written import as_numbers, as_sizes

if TYPE_CHECKING:
    from zerostride.derive.comparison import Compared, Comparison
    from zerostride.models.findings import Report

Question = Mapping[str, Any]
#: A dropped file has at most so many bytes: some 50,000 layers, which take a minute.
MOST_BYTES = 4 << 20
_AT_HOME = """On your machine:
  pip install zerostride
  zerostride audit {file} --target openvino"""
#: Refusals that no other shapes mend.
_ABSENT = (Reason.NO_OP, Reason.NOT_UNDERSTOOD)
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)


def answer(text: str) -> str:
    """The answer to a question; where the library refuses it, `ok` is false, with an `error`."""
    question = json.loads(text)
    try:
        fields = {"ok": True, **ASKED[question["ask"]](question)}
    except (zs.BroadcastError, zs.ZerostrideError, *_needs_numpy()) as error:
        fields = {"ok": False, "error": str(error), "silent": getattr(error, "silent", False)}
    return json.dumps(fields)


def _needs_numpy() -> tuple[type[Exception], ...]:
    """The error of the page's stand-in for NumPy, where it is loaded."""
    return getattr(sys.modules.get("numpy"), "ERRORS", ())


def planned(question: Question) -> dict[str, Any]:
    """The drawing, the explanation and the fields of the plan, as `explain --json` has them."""
    from zerostride.derive.explain import as_dict

    plan = _plan(question)
    return {"svg": _drawing(plan), "text": plan.explain(), "plan": as_dict(plan)}


def compared(question: Question) -> dict[str, Any]:
    """Every engine and rule, as `compare --json` has them."""
    return _comparison(_key(question)).as_dict()


def row(question: Question) -> dict[str, Any]:
    """One row of the comparison: the drawing, a counter-example and the fix.

    `question["row"]` is the row's place.
    """
    comparison = _comparison(_key(question))
    one = comparison.rows[int(question["row"])]
    meant = comparison.reference.answer
    words = [*map(str, one.traps), *map(str, one.parts), *one.notes]
    fields: dict[str, Any] = {"words": words, "svg": "", "text": "", "shown": "", "fix": ""}
    if isinstance(one.answer, zs.Plan):
        fields |= {"svg": _drawing(one.answer), "text": one.answer.explain()}
    else:
        fields["text"] = str(one.answer)
    absent = isinstance(one.answer, zs.BroadcastError) and one.answer.reason in _ABSENT
    if one.verdict == "same" or absent or not isinstance(meant, zs.Plan):
        return fields
    shown = _shown(comparison, one, question.get("op") or None)
    return {**fields, "shown": shown, "fix": _fix(meant, one)}


def code(question: Question) -> dict[str, Any]:
    """The plan as source for `question["target"]`."""
    return {"code": _plan(question).code(question["target"])}


def taken(question: Question) -> dict[str, Any]:
    """Whether the page reads a file of this name and of `question["size"]` bytes."""
    from zerostride.models.format_table import FORMATS

    name, size = PurePath(question["file"]).name, int(question["size"])
    home = _AT_HOME.format(file=name)
    end = PurePath(name).suffix.lower()
    if end == ".bin":
        raise zs.ZerostrideError(
            f"{name}: weights. An audit reads shapes: drop the .param beside it. To read weights "
            "takes NumPy, which this page does not have"
        )
    if end != ".param":
        read = any(end in row.suffixes for row in FORMATS.values())
        also = f". {home}" if read else ""
        raise zs.ZerostrideError(f"{name}: this page reads ncnn's .param text only{also}")
    if size > MOST_BYTES:
        raise zs.ZerostrideError(
            f"{name}: {size:,} bytes; this page reads up to {MOST_BYTES:,}. {home}"
        )
    _report.cache_clear()  # of another file of this name
    return {"name": name}


def audited(question: Question) -> dict[str, Any]:
    """The audit of a model for one engine, in short: the counts of its verdicts."""
    from zerostride.report.words import WORST, mark_of

    report = _report(question["file"], question["engine"])
    counts = [(verdict, report.counts[verdict]) for verdict in WORST if report.counts[verdict]]
    words = [f"{count:,} {mark_of(verdict)}" for verdict, count in counts]
    words += [f"the converter refuses {', '.join(report.lacks)}"] if report.lacks else []
    return {
        "worst": counts[0][0] if counts else "same",
        "words": ", ".join(words) or "no broadcasts",
        "release": report.release,
        "run": ENGINES[question["engine"]].run,
    }


def reported(question: Question) -> dict[str, Any]:
    """The page of the audit, as `audit -o report.html` writes it."""
    from zerostride.report import html

    return {"html": html(_report(question["file"], question["engine"]))}


Answers = Mapping[str, Callable[[Question], dict[str, Any]]]
ABOUT_SHAPES: Answers = {"plan": planned, "compare": compared, "row": row, "code": code}
#: These need :func:`open_audit` first.
ABOUT_MODELS: Answers = {"take": taken, "audit": audited, "report": reported}
ASKED: Answers = {**ABOUT_SHAPES, **ABOUT_MODELS}


@lru_cache(maxsize=len(ENGINES))
def _report(file: str, engine: str) -> Report:
    return zs.audit(file, engine)


def open_audit(path: str) -> None:
    """Takes the modules of an audit from a second zip file, which most visitors do not need."""
    sys.path.append(path)
    zs.__path__.append(f"{path}/zerostride")


def _shapes(question: Question) -> tuple[Any, ...]:
    texts = [text.strip() for text in question["shapes"]]
    return tuple(map(_shape, texts, default_names(len(texts))))


def _shape(text: str, name: str) -> tuple[Any, ...]:
    sizes = as_numbers(text)
    if sizes is not None:
        return sizes
    try:
        return as_sizes(text)
    except Misfit as misfit:
        why = f" ({misfit.detail})" if misfit.detail else ""
        raise zs.ZerostrideError(
            f"{name}: {text!r} is not a shape{why}: write 2,3,4 or N,?,1..8, or () for a number"
        ) from None


def _axis(question: Question) -> int | None:
    text = str(question.get("axis") or "").strip()
    try:
        return int(text) if text else None
    except ValueError:
        raise zs.ZerostrideError(f"axis: {text!r} is not a whole number") from None


def _plan(question: Question) -> zs.Plan:
    rule, engine = question.get("rule") or None, question.get("engine") or None
    # A rule that broadcasts on request is asked to.
    broadcast = 1 if rule in RULES and "broadcast" in RULES[rule].attributes else None
    return zs.plan(
        *_shapes(question),
        rule=rule,
        engine=engine,
        op=question.get("op") or None,
        axis=_axis(question),
        broadcast=broadcast,
        facts=question.get("facts") or None,
    )


def _key(question: Question) -> str:
    """What a comparison depends on."""
    names = ("shapes", "rule", "engine", "op", "axis", "facts")
    return json.dumps({name: question.get(name) for name in names})


@lru_cache(maxsize=8)
def _comparison(key: str) -> Comparison:
    question = json.loads(key)
    rule, engine, op = (question.get(name) or None for name in ("rule", "engine", "op"))
    if engine and engine in ENGINES:
        engine = f"{engine} {rule or rules_of(ENGINES[engine], op).rules[0].name}"
    return zs.compare(
        *_shapes(question),
        reference=engine or rule or "numpy",
        axis=_axis(question),
        facts=question.get("facts") or None,
        op=op,
    )


def _side(
    one: Compared, op: str | None
) -> Callable[[tuple[Any, ...]], zs.Plan | zs.BroadcastError]:
    """Plans other shapes as a row does."""
    engine = one.name if one.kind == "engine" else None

    def plan(shapes: tuple[Any, ...]) -> zs.Plan | zs.BroadcastError:
        try:
            return zs.plan(*shapes, rule=one.rule, engine=engine, op=op, **one.attributes)
        except zs.BroadcastError as error:
            return error

    return plan


def _shown(comparison: Comparison, one: Compared, op: str | None) -> str:
    """A counter-example in one sentence, or ""."""
    from zerostride.derive.counterexample import find_witness

    meant, shapes = comparison.reference, comparison.shapes
    if one.parts:
        values = one.parts[0].values
        shapes = meant.answer.bind(values).operands  # type: ignore[union-attr]
    elif one.traps:
        shapes = one.traps[0].shapes
    witness = find_witness(shapes, _side(meant, op), _side(one, op))
    if witness is None or isinstance(witness.target, str):
        return ""  # the row says why it is refused
    numbers = f"{witness.source} by {meant.name}, {witness.target} by {one.name}"
    return f"{witness.inputs}: {witness.where} is {numbers}"


def _fix(meant: zs.Plan, one: Compared) -> str:
    """The change after which a row means what the reference means, or why there is none."""
    try:
        return meant.express(one.rule, engine=one.name if one.kind == "engine" else None).describe()
    except zs.BroadcastError as error:
        return f"none: {error.detail}"
    except zs.ZerostrideError as error:
        return f"none: {error}"


def _drawing(plan: zs.Plan) -> str:
    """The drawing without its own style; the site's stylesheet has the style."""
    return _STYLE.sub("", plan.svg())
