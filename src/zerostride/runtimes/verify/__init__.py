"""Models on the real engines, node by node or whole, compared with zerostride's own answer.

`checks` is `zs.verify`; `sites` makes a task of a broadcast, `child` runs it by `runners` in
another process, `compare` judges the answer, `cache` stores answers, `whole_model` runs files.
In: a model, an engine. Out: Report.
"""
