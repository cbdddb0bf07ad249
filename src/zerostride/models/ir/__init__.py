"""The neutral graph that readers of every format build, and changes of it.

`graph` holds values and nodes, and `site` a node that may broadcast. `rewrite` holds a change as
data. `files` reads bounded bytes. `memory` pauses the garbage collector for large graphs. These
modules import no format.
In: a reader's values and nodes. Out: Graph, Site.
"""
