"""The meaning audit: every broadcast of a model, here and on another engine.

`run` is `zs.audit`; `judged_site` prepares a node, `verdict` compares source and target (by
`symbolic` for open sizes), `witness` finds numbers that show a difference, `fixes` what to change.
`many` audits many files, `baseline` knows accepted findings.
In: Graph, target. Out: Report.
"""
