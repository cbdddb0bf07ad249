"""The neutral graph that every format becomes, and changes of it.

`graph` has values and nodes, `rewrite` a change as data, `files` reads bounded bytes, `memory`
keeps the garbage collector away from large graphs. Nothing here knows a format.
In: what a reader found in a file. Out: Graph.
"""
