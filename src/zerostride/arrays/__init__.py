"""Arrays of other libraries: one adapter a library, found by the array's type.

`table` has the rows, `model` says what an adapter is, `dispatch` is the way in. Arrays in this
processor's memory go to the native engine as they lie (`dlpack`); arrays elsewhere are computed
by their own library over the shapes that a Plan aligned, so every rule holds there, too.
In: any library's arrays. Out: arrays of the same library.
"""
