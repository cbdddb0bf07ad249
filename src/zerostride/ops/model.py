"""The type of a row of the op table, and the notation in which rows are written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .targets import FEW

Name = str | int
Names = Mapping[str, tuple[Name, ...]]
Formula = Callable[..., Any]
#: Facts about ops.
FACTS = MappingProxyType(
    {
        "comparison": "compares its operands: the result is a truth value",
        "logical": "takes its operands as truth values: numbers other than 0 are true",
        "truths": "takes truth values as they are, beside numbers",
        "square": "its result is a square: the gradient of its root is 0 where it is 0",
        "width": "depends on the bit pattern: a float16 result is not the float32 result rounded",
        "modular": "gives the same low bits for operands with the same low bits",
        "ordered": "depends on its operands' order alone",
    }
)
#: Kinds of dtype (`numpy.dtype.kind`) by NumPy's name without its width.
_KINDS = MappingProxyType({"bool": "b", "int": "i", "uint": "u", "float": "f", "complex": "c"})

#: Engines that use the array API's names unless a row says otherwise.
API_NAMED = ("torch", "tensorflow", "jax")


@dataclass(frozen=True, slots=True)
class Op:
    """A row of the op table.

    Attributes:
        name: the array API's name; if it has none, the best known name.
        summary: what it computes, in a line.
        operands: how many operands it takes, parameters included.
        parameters: its last operands that are attributes in models: their names (ONNX's) and the
            values they have where they are not given.
        numpy: the NumPy function that defines its values; "" if NumPy has none.
        names: column (`COLUMNS`) to that engine's names or numbers for the op. An engine without
            the op is absent. ncnn's numbers are BinaryOp's; UnaryOp's are written "UnaryOp.7", and
            other words are layers. MNN's are values of BinaryOpOperation and UnaryOpOperation, and
            types of Op.
        reversed_names: the same, for ops that take the operands in reverse order.
        swap: the op that gives the same with operands exchanged, or None.
        variants: engine to dtype, or kind of dtype (`numpy.dtype.kind`), to the name of a function
            of `compute.kernels` with the engine's values, where they differ from those of `numpy`.
            "refused": the engine does not take the dtype. "unknown": its values differ in an
            unidentified way. "numpy": its values are those of `numpy`. "openvino/avx2" holds the
            differences of x86 processors whose best instruction set is AVX2 from those with
            AVX-512.
        fixed: engines whose op supports only the default values of its parameters.
        first_decides: engines that take operands of different dtypes and return the first one's.
        aliases: further names that the op goes by.
        example: arguments, and the result as a list; shown and run in the docstring.
        formula: computes it of a namespace's common functions (`formulas`), for libraries that lack
            it or give other values; None where all have it by its name.
        facts: words of `FACTS` that hold for it.
        conditions: how many of its first operands are truth values that choose among the others.
        cost: its time relative to an addition, on rows in the caches.
    """

    name: str
    summary: str
    operands: int
    parameters: Mapping[str, float]
    numpy: str
    names: Names
    reversed_names: Names
    swap: str | None
    variants: Mapping[str, Mapping[str, str]]
    fixed: frozenset[str]
    first_decides: frozenset[str]
    aliases: tuple[str, ...]
    example: tuple[str, str]
    formula: Formula | None
    facts: frozenset[str]
    conditions: int
    cost: int

    def variants_on(self, engine: str, processor: str = "") -> Mapping[str, str]:
        """The engine's row of `variants` on a processor: "avx2", or any other."""
        row, there = self.variants.get(engine, {}), self.variants.get(f"{engine}/{processor}", {})
        return {**row, **there}

    def refuses(self, engine: str, dtype: str) -> bool:
        """Whether an engine does not take the op on a dtype, by NumPy's name; False if unknown."""
        row = self.variants.get(engine, {})
        kind = _KINDS.get(dtype.rstrip("0123456789"), "")
        return row.get(dtype, row.get(kind)) == "refused"

    @property
    def commutes(self) -> bool:
        """Whether the result does not depend on the order of the operands."""
        return self.swap == self.name

    @property
    def tensors(self) -> int:
        """The number of operands that are not parameters."""
        return self.operands - len(self.parameters)


#: Engines that read the column of another engine.
_COLUMNS = MappingProxyType({"onnx": "onnxruntime"})
#: Engines that compute as another one does, where their own words say nothing else.
_LOWERED = MappingProxyType({"executorch": "torch"})
#: The operands of most examples.
PAIR = "[[6, 5], [2, 3]], [1, 2]"


def row(
    name: str,
    summary: str,
    example: str,
    names: str,
    *,
    args: str = PAIR,
    numpy: str | None = None,
    tensors: int = 2,
    parameters: Mapping[str, float] | None = None,
    swap: str | None = None,
    aliases: str = "",
    reversed_names: str = "",
    variants: Mapping[str, str] | None = None,
    fixed: str = "",
    first_decides: str = "",
    formula: Formula | None = None,
    facts: str = "",
    conditions: int = 0,
    cost: int = 1,
) -> Op:
    """A row from words: "onnx:Mul mnn:MUL torch:mul,multiply"; "jax:-" if JAX lacks the op."""
    columns = {**dict.fromkeys(API_NAMED, (name,)), **_names(names)}
    columns = {key: words for key, words in columns.items() if words != ("-",)}
    columns |= {key: words[name] for key, words in _few().items() if name in words}
    defaults = MappingProxyType(dict(parameters or {}))
    return Op(
        name=name,
        summary=summary,
        operands=tensors + len(defaults),
        parameters=defaults,
        numpy=name if numpy is None else numpy,
        names=MappingProxyType(columns),
        reversed_names=MappingProxyType(_names(reversed_names)),
        swap=swap,
        variants=_variants(variants or {}, _engines_of(columns)),
        fixed=frozenset(fixed.split()),
        first_decides=frozenset(first_decides.split()),
        aliases=tuple(aliases.split()),
        example=(args, example),
        formula=formula,
        facts=frozenset(facts.split()),
        conditions=conditions,
        cost=cost,
    )


@functools.cache
def _few() -> Mapping[str, Names]:
    """The columns of engines with few ops, parsed once."""
    return {column: _names(words) for column, words in FEW.items()}


def _names(words: str) -> dict[str, tuple[Name, ...]]:
    """{"ncnn": (7, "rsub")} from "ncnn:7,rsub"."""
    pairs = (word.split(":") for word in words.split())
    return {
        column: tuple(int(name) if name.isdigit() else name for name in names.split(","))
        for column, names in pairs
    }


def _engines_of(columns: Iterable[str]) -> set[str]:
    """The engines that read these columns."""
    names = {_COLUMNS.get(column, column) for column in columns}
    return names | {name for name, other in _LOWERED.items() if other in names}


def _variants(rows: Mapping[str, str], engines: set[str]) -> Mapping[str, Mapping[str, str]]:
    """{"larger": "mnn:if jax:int8"} as {"mnn": {"i": "larger", "f": ...}, "jax": {"int8": ...}}.

    Several rows may share the words; engines that a row lacks are left out.
    """
    table: dict[str, dict[str, str]] = {}
    for function, places in rows.items():
        for place in places.split():
            engine, _, codes = place.partition(":")
            if engine.partition("/")[0] not in engines:
                continue
            dtypes = codes if set(codes) <= set("biufc") else (codes,)
            table.setdefault(engine, {}).update(dict.fromkeys(dtypes, function))
    for engine, other in _LOWERED.items():
        if engine in engines and other in table:
            table[engine] = {**table[other], **table.get(engine, {})}
    return MappingProxyType({key: MappingProxyType(value) for key, value in table.items()})


#: Engines that refuse arithmetic on truth values.
NO_BOOL = "onnxruntime:b openvino:b tensorflow:b"
