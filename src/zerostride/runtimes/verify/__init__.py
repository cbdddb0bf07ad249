"""Models on the real engines, node by node or whole, compared with zerostride's own answer.

`checks` is `zs.verify`. `sites` makes a task of a broadcast, `site_checks` asks each task once,
`compare` judges the reply, `cache` stores answers. `whole_model` runs files, `rounding` judges
their outputs, and `inside` their other tensors.
In: a model, an engine. Out: Report.
"""
