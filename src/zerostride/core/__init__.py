"""Rules and plans. Start reading at `plan`, then `alignment` and `rules`.

A rule chooses the result axis of each operand axis. `alignment` turns that choice into a Plan.
`leaves` and `symbolic` do so for open sizes, over all ways that `branching` explores. `strict_mode`
refuses likely accidents, whose shapes `accidental` knows; `plugins` adds rows of other
packages, and `hooks` holds calls of higher rooms.
In: shapes and a rule. Out: Plan, or BroadcastError.
"""
