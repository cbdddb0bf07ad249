// Results: new arrays, scalars, and outputs.
#pragma once

#include "shape.h"

#include "../run.h"
#include "evaluate.h"

namespace zs {

// Whether `out` is given, and if so the array. False if it is wrong; the reference then raises the error.
bool read_out(PyObject* given_out, PyArrayObject** out);
// The kind of a `dtype` argument. False where it is none of the engine's.
bool read_dtype(PyObject* given_dtype, Kind* kind);
// An array without values, with these strides (null: in C order); null with an error set.
PyObject* new_array(int rank, const npy_intp* extent, Kind kind, const npy_intp* strides);
// Computes into a new array, or a scalar at rank 0.
PyObject* into_new(const Program& program, Kind kind, Shape& shape, Place* places);
// Computes into `out`. Null without an error where the reference is to.
PyObject* into_out(const Program& program, Kind result, Shape& shape, Place* places,
                   PyArrayObject* out);
// Elements of one dtype to another: convert(array, dtype, out or None), or NotImplemented.
PyObject* convert(PyObject* module, PyObject* const* args, Py_ssize_t count);

}  // namespace zs
