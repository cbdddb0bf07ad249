"""Carries a node of a model to an engine.

`ways` finds the plan that the engine makes of a node, `compound_engines` those of ops that
broadcast inside (by `compound_rules`; `compound_quantised` has the quantised ops), `converters` and
`pnnx` what a converter writes, `batch` the axis that ncnn does not store, `node_limits`,
`element_types` and `absent_ops` what is refused.
In: a node, an engine. Out: the plan there, or the reason why it has no plan.
"""
