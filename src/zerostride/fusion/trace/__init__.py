"""From a Python function to a graph.

`tracing` calls the function with `value`s, which know shape and dtype but no numbers; `tracer`
writes a node for each op. `functions`, `composed`, `methods`, `reducing` and `views` implement the
ops on values; `captured`, `constants`, `integers` and `structure` handle the other objects.
In: a function, its operands' signature. Out: `graph.Graph`.
"""
