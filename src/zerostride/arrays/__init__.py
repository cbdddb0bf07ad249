"""Arrays of other libraries: one adapter a library, found by the array's type.

`table` has the rows, `model` defines adapters, `dispatch` is the entry point. The native engine
reads arrays in this processor's memory without a copy (`dlpack`). Other arrays are computed by
their own library over the shapes that a Plan aligned, so every rule holds there too.
In: any library's arrays. Out: arrays of the same library.
"""
