# /// script
# dependencies = ["numexpr"]
# ///
"""NumExpr (PyPI: numexpr): an expression of one operator."""

import numexpr

NAME = "numexpr"
DISTRIBUTION = "numexpr"

OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "pow": "**",
    "remainder": "%",
    "greater": ">",
    "less": "<",
    "equal": "==",
    "logical_and": "&",
    "bitwise_xor": "^",
}
FUNCTIONS = {
    "atan2": "arctan2",
    "where": "where",
    "maximum": "maximum",
    "minimum": "minimum",
}


def run(op, arrays, target=None):
    """An expression; NumExpr has no op that broadcasts to a target."""
    operands = dict(zip("xyz", arrays, strict=False))
    if op in OPERATORS:
        return numexpr.evaluate(f"x {OPERATORS[op]} y", operands)
    return numexpr.evaluate(f"{FUNCTIONS[op]}({', '.join(operands)})", operands)
