"""The meaning audit: every broadcast of a model, compared with its meaning on a target engine.

`run` is `zs.audit`, `audited` a graph with its findings; `judge` judges one site: `judged_site`
prepares it, `verdict` compares source and target (`symbolic` for open sizes), `witness` finds
numbers where a target drops the batch axis, `fixes` finds a change, `relaid` one to channels-last.
`many` audits many files, `baseline` holds accepted findings.
In: Graph, target. Out: Report.
"""
