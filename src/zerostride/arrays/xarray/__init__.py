"""xarray's arrays: dimensions have names, and names are the rule.

`adapter` is the way in, `names` follows the names through a fused function.
In: DataArrays and Datasets. Out: the same.
"""
