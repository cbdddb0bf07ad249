"""Floor 4: arrays of other libraries. One adapter a library, found by the array's type.

Arrays in this processor's memory go to the native engine as they lie (DLPack), and answers are
arrays of the same library. Arrays elsewhere are computed by their own library over the shapes that
a Plan aligned, so that every rule holds there, too. `table` has the rows, `model` what an adapter
is, `dispatch` the way in.
"""
