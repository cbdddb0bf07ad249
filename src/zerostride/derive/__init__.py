"""Results computed from plans: explanations, comparisons, other rules, source code.

`explain` draws a plan, `express` finds the change after which another rule means the same, `code`
writes source, `compare` asks all rules and engines, `size_traps` finds sizes at which two rules
differ, `regions` finds the sizes for which two plans agree, `counterexample` finds numbers on
which two plans differ, `shape_guard` checks real shapes.
In: Plans. Out: text, pictures, reshapes, source.
"""
