"""The pages of the API, one per subject. Every public name of the package is on exactly one page.

The text is that of the docstrings. A name without a page is an error of the build.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module

import zerostride as zs
import zerostride.compute.native
from zerostride.ops.table import OPS


@dataclass(frozen=True, slots=True)
class Subject:
    """A page of the reference."""

    page: str
    title: str
    text: str
    names: tuple[str, ...]
    module: str = ""
    rows: tuple[str, ...] = ()  # classes by their full names

    @property
    def is_empty(self) -> bool:
        """Whether the page has no entries."""
        return not (self.names or self.module or self.rows)


REDUCTIONS = (
    *("sum", "prod", "mean", "min", "max", "any", "all", "argmin", "argmax"),
    *("sum_of_squares", "logsumexp"),
)
SUBJECTS = (
    Subject(
        "plans",
        "Plans",
        "A rule chooses the result axis of each operand axis. The choice is a `Plan`; everything "
        "else is derived from it.",
        ("plan", "plan_to", "Plan", "compare", "Comparison", "supports", "whdc"),
    ),
    Subject(
        "sizes",
        "Sizes that are not known",
        "The types of a plan's sizes and conditions.",
        ("Dim", "Condition"),
    ),
    Subject("reductions", "Reductions", "On arrays, and in fused functions.", REDUCTIONS),
    Subject(
        "fuse",
        "Fused functions",
        "Functions of arrays in one pass over memory.",
        ("fuse", "vjp", "grad", "value_and_grad"),
    ),
    Subject(
        "quantisation",
        "Quantisation",
        "A scale for each tensor, axis or block, and what engines compute of it.",
        ("plan_quantization", "QuantizationPlan", "quantize", "dequantize", "fake_quantize"),
    ),
    Subject(
        "models",
        "Models",
        "Compare, rewrite and check a model's broadcasts for another engine.",
        ("audit", "port", "convert", "verify", "shapes", "Report", "Finding", "Verdict"),
    ),
    Subject(
        "strict",
        "Strict mode",
        "Refuses broadcasts that are seldom intended.",
        ("strict",),
    ),
    Subject(
        "settings",
        "Backend and threads",
        "The compute backend and its number of threads.",
        ("backend", "get_num_threads", "set_num_threads"),
    ),
    Subject(
        "errors",
        "Errors",
        "The exceptions, and the reason codes that programs compare.",
        (
            *("BroadcastError", "Reason", "NotExpressible", "TraceError", "ModelError"),
            *(
                "ZerostrideError",
                "AccidentalBroadcastWarning",
                "EngineVersionWarning",
                "PluginWarning",
            ),
        ),
    ),
)
#: Pages of other modules and classes.
MODULES = (
    Subject(
        "backend",
        "ONNX's backend interface",
        "The module `zerostride.backend` implements ONNX's Backend interface.",
        (),
        "zerostride.backend",
    ),
    Subject(
        "extending",
        "Rows of other packages",
        "The classes of the rows that other packages add for rules, engines, formats and arrays.",
        (),
        rows=(
            *("zerostride.core.alignment.Rule", "zerostride.core.alignment.Alignment"),
            *("zerostride.engines.Engine", "zerostride.engines.Divergence"),
            *("zerostride.models.formats.Format", "zerostride.models.formats.FormatModule"),
            *(f"zerostride.models.ir.graph.{name}" for name in ("Graph", "Node", "Value")),
            *("zerostride.models.ir.site.Site", "zerostride.models.ir.site.Operand"),
            *("zerostride.arrays.table.Row", "zerostride.arrays.model.Adapter"),
        ),
    ),
)
#: Names that are both a module and a function: the function.
FUNCTIONS = {"backend": zerostride.compute.native.backend}
#: The public names without another page.
MORE = Subject("more", "More", "The other public names.", ())
ELEMENTWISE = Subject(
    "elementwise",
    "Element-wise functions",
    "Each function takes arrays, lists and numbers, and broadcasts them by any rule or engine.",
    (),
)


def pages() -> dict[str, str]:
    """Every page of the reference by its place in the site."""
    listed = {name for subject in SUBJECTS for name in subject.names}
    missing = listed - set(zs.__all__)
    if missing:
        raise SystemExit(f"docs/site/reference.py names private names: {sorted(missing)}")
    others = [name for name in zs.__all__ if name not in listed]
    elementwise = [name for name in others if _is_elementwise(name)]
    rest = [name for name in others if name not in elementwise]
    subjects = [*SUBJECTS, Subject(MORE.page, MORE.title, MORE.text, tuple(rest))]
    subjects += MODULES
    texts = {f"api/{s.page}.rst": _page(s) for s in subjects if not s.is_empty}
    texts["api/elementwise.rst"] = _elementwise_page(elementwise)
    return {"api/index.rst": _index(subjects, elementwise), **texts}


def _is_elementwise(name: str) -> bool:
    return name in OPS or name in (
        "broadcast",
        "cast",
        *(a for op in OPS.values() for a in op.aliases),
    )


def _index(subjects: Sequence[Subject], elementwise: Sequence[str]) -> str:
    lines = [*_title("API"), "Generated from the docstrings. The tests run their examples.", ""]
    lines += [".. toctree::", "   :hidden:", ""]
    shown = [subjects[0], ELEMENTWISE, *subjects[1:]]
    shown = [s for s in shown if not s.is_empty or s is ELEMENTWISE]
    lines += [f"   {subject.page}" for subject in shown]
    for subject in shown:
        names = elementwise if subject is ELEMENTWISE else subject.names
        links = ", ".join(_role(name) for name in names)
        lines += ["", f":doc:`{subject.title} <{subject.page}>`", f"   {subject.text} {links}"]
    return "\n".join(lines) + "\n"


def _page(subject: Subject) -> str:
    lines = [*_title(subject.title), subject.text.replace("`", "``"), ""]
    lines += [".. currentmodule:: zerostride", ""]
    for name in subject.names:
        lines += _entry(name)
    if subject.module:
        module = import_module(subject.module)
        lines += [inspect.getdoc(module) or "", "", f".. currentmodule:: {subject.module}", ""]
        for name in module.__all__:
            kind = "class" if inspect.isclass(getattr(module, name)) else "function"
            lines += [f".. auto{kind}:: {name}", *(["   :members:"] * (kind == "class")), ""]
    for row in subject.rows:
        lines += [f".. autoclass:: {row}", "   :members:", ""]
    return "\n".join(lines)


def _elementwise_page(names: Iterable[str]) -> str:
    """The functions of the op table: an overview, then an entry for each."""
    names = list(names)
    lines = [*_title(ELEMENTWISE.title), ELEMENTWISE.text, "", ".. currentmodule:: zerostride", ""]
    lines += [".. list-table::", "   :header-rows: 1", "   :widths: auto", ""]
    lines += ["   * - function", "     - result"]
    for name in names:
        first = (inspect.getdoc(getattr(zs, name)) or "").partition("\n")[0]
        lines += [f"   * - {_role(name)}", f"     - {first}"]
    lines.append("")
    for name in names:
        lines += _entry(name)
    return "\n".join(lines)


def _entry(name: str) -> list[str]:
    if name in FUNCTIONS:
        text = (inspect.getdoc(FUNCTIONS[name]) or "").splitlines()
        taken = ", ".join(inspect.signature(FUNCTIONS[name]).parameters)
        return [f".. function:: {name}({taken})", "", *(f"   {line}" for line in text), ""]
    value = getattr(zs, name)
    if inspect.isclass(value):
        return [
            f".. autoclass:: {name}",
            "   :members:",
            *(["   :undoc-members:"] if name in ("Reason", "Verdict") else []),
            "",
        ]
    return [f".. autofunction:: {name}", ""]


def _role(name: str) -> str:
    kind = "class" if inspect.isclass(getattr(zs, name)) else "func"
    return f":{kind}:`{name} <zerostride.{name}>`"


def _title(text: str) -> list[str]:
    return [text, "=" * len(text), ""]
