"""Every tensor of two runs of a model, and the first that differs.

`collect` spills tensors of an engine to disk. `run` is :func:`zerostride.bisect`.
In: a model, another file or engine, inputs. Out: Report with a bisection.
"""
