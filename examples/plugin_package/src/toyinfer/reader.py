"""The functions of the format; imported when a file of it is read."""

from zerostride.errors import ModelError
from zerostride.models.ir.graph import Graph, Node, Value
from zerostride.models.ir.site import Kind, Operand, Site

from .rule import RULE


def read(path):
    """The graph of a file; a ModelError says what is wrong with it."""
    values, inputs, nodes = {}, [], []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        words = line.split()
        if "=" in words:
            made, _, op, *names = words
            missing = [name for name in names if name not in values]
            if missing:
                raise ModelError(f"{path}, line {number}: there is no tensor {missing[0]!r}")
            values[made] = Value(made, None)
            operands = tuple(values[name] for name in names)
            place = (len(nodes),)
            nodes.append(Node(made, op, "toyinfer", 1, operands, (values[made],), place=place))
        elif words:
            values[words[0]] = Value(words[0], tuple(map(int, words[1:])))
            inputs.append(values[words[0]])
    return Graph(str(path), "toy", 1, tuple(inputs), tuple(nodes), outputs=nodes[-1].outputs)


def find_site(node):
    """The operands that a node broadcasts, and the rule."""
    operands = tuple(Operand(value.name, value.shape) for value in node.inputs)
    return Site(node, Kind.ELEMENTWISE, operands, RULE, {})


def lower(node):
    """The node as ONNX ops of the same meaning. ONNX aligns to the right, so no node has any."""
    return None  # noqa: RET501 - None means that there are no such ops


def edit(path):
    """The file, open for changes."""
    raise ModelError(f"{path}: files of toyinfer are not written")


__all__ = ["edit", "find_site", "lower", "read"]
