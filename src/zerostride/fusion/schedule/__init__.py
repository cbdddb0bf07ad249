"""From a graph to a program.

`phases` cuts the graph into passes over memory, `materialize` decides what a pass stores, `lower`
writes the steps, `batch` joins passes that run piece by piece, `blocks` runs files in blocks.
`bytes_moved` counts traffic and registers; `engine` hands the program to C++.
In: `trace.graph.Graph`. Out: `program.Program`.
"""
