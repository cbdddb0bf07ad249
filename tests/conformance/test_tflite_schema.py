"""The schema's numbers against those of the package ai-edge-litert."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from zerostride.models.formats.schema_fields import Field
from zerostride.models.formats.tflite import schema

package = pytest.importorskip("ai_edge_litert.schema_py_generated", reason="it has the schema")
SOURCE = inspect.getsource(package)


def enumerated(name: str) -> dict[int, str]:
    """The numbers of an enumeration of the package, and their names."""
    members = vars(getattr(package, name)).items()
    return {value: key for key, value in members if not key.startswith("_")}


def own_fields(name: str) -> dict[str, tuple[int, str, Any]]:
    """The fields of a table of the package: number, kind and default, by name in lower case."""
    body = re.search(rf"\nclass {name}\(object\):\n(.*?)(?=\nclass |\ndef )", SOURCE, re.DOTALL)
    assert body is not None, name
    pattern = (
        r"    def (\w+)\(self(, j)?\):\n"
        r"        o = flatbuffers\.number_types\.UOffsetTFlags\.py_type"
        r"\(self\._tab\.Offset\((\d+)\)\)\n"
        r"        if o != 0:\n(.*?)\n        return ([^\n]*)"
    )
    found = {}
    for method, listed, offset, code, default in re.findall(pattern, body[1], re.DOTALL):
        if method.endswith(("Length", "AsNumpy", "IsNone")):
            continue
        scalar = re.search(r"Get\(flatbuffers\.number_types\.(\w+)Flags", code)
        kind = scalar[1].lower() if scalar else "string" if "String(" in code else "offset"
        kind += "s" if listed and scalar else ""
        number = 0.0 if default in ("None", "False") else float(default == "True" or default)
        found[method.lower()] = ((int(offset) - 4) // 2, kind, number)
    return found


def same(row: Field, known: dict[str, tuple[int, str, Any]]) -> bool:
    number, kind, default = known[row.name.replace("_", "").lower()]
    whole = row.kind == "offset"  # a list, a string or a table
    lists = kind in ("offset", "string") or kind.endswith("s")
    return row.number == number and (lists if whole else (row.kind, row.default) == (kind, default))


def test_the_ops() -> None:
    assert dict(schema.BUILTINS) == enumerated("BuiltinOperator")


def test_the_element_types() -> None:
    names = {number: name.lower() for number, name in enumerated("TensorType").items()}
    numberless = {name for name in names.values() if name in ("string", "resource", "variant")}
    assert dict(schema.DTYPES) == {k: name for k, name in names.items() if name not in numberless}


@pytest.mark.parametrize(
    ("table", "name"),
    [(schema.UNION, "BuiltinOptions"), (schema.UNION2, "BuiltinOptions2")],
)
def test_the_unions(table: Any, name: str) -> None:
    members = enumerated(name)
    assert members.pop(0) == "NONE"
    assert dict(table) == members


@pytest.mark.parametrize(
    ("table", "name"),
    [(schema.ACTIVATIONS, "ActivationFunctionType"), (schema.PADDINGS, "Padding")],
)
def test_words(table: Any, name: str) -> None:
    assert dict(table) == enumerated(name)


@pytest.mark.parametrize("name", sorted(schema.OPTIONS))
def test_the_fields_of_options(name: str) -> None:
    known = own_fields(name)
    assert all(same(row, known) for row in schema.OPTIONS[name])


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        (schema.MODEL, "Model"),
        (schema.SUBGRAPH, "SubGraph"),
        (schema.OPERATOR, "Operator"),
        (schema.TENSOR, "Tensor"),
        (schema.QUANTIZATION, "QuantizationParameters"),
        (schema.OPERATOR_CODE, "OperatorCode"),
        (schema.BUFFER, "Buffer"),
    ],
)
def test_tables_that_an_edit_writes_have_every_field(rows: Any, name: str) -> None:
    known = own_fields(name)
    assert len(rows) == len(known)
    assert all(same(row, known) for row in rows)


def test_a_wrong_number_is_seen() -> None:
    (row, *_) = schema.OPTIONS["GatherOptions"]
    assert same(row, own_fields("GatherOptions"))
    assert not same(row._replace(number=1), own_fields("GatherOptions"))


def test_every_op_has_the_options_of_its_name() -> None:
    """Options are not shared by accident: each union member has an op that reads it."""
    read = {schema.options_of(op) for op in schema.NUMBERS}
    unread = {*schema.UNION.values(), *schema.UNION2.values()} - read
    assert unread == {"SequenceRNNOptions", "RandomOptions"}
