"""Floor 4: fused expressions. A function is traced to a graph, the graph made a program."""
