"""Tensors of two models as terms in one normal form.

`term` has the terms, `places` the indices of views, and `axes` the axes along which terms move.
`builder` makes terms in normal form: it computes with `constants`, joins views with `joining`,
moves factors with `scales`, and orders axes with `folds` and terms with `fingerprints`. `matching`
compares two terms.
In: ops, operands and sizes. Out: terms; equal terms are one object.
"""
