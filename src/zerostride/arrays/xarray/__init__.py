"""xarray's arrays: dimensions have names, and align by name.

`adapter` is the entry point, `names` follows the names through a fused function.
In: DataArrays and Datasets. Out: the same.
"""
