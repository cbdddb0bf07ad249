"""From a Python function to a graph.

`tracing` calls the function with `value`s, which know shape and dtype and no numbers; `tracer`
writes a node for each op. `functions`, `composed`, `methods`, `reducing` and `views` are what such
a value takes part in; `captured`, `constants`, `integers` and `structure` are about the rest.
In: a function, its operands' signature. Out: `graph.Graph`.
"""
