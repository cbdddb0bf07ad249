#include "result.h"

#include <algorithm>

#include "settings.h"

namespace zs {

PyObject* new_array(int rank, const npy_intp* extent, Kind kind, const npy_intp* strides) {
  PyArray_Descr* descr = descr_of(static_cast<DType>(kind));
  if (descr == nullptr) return nullptr;
  return PyArray_NewFromDescr(&PyArray_Type, descr, rank, extent, strides, nullptr, 0, nullptr);
}

namespace {

// Whether NumPy lets a result be written to an array of another dtype.
bool converts(Kind from, Kind to) {
  if (from == to) return true;
  // A 16-bit result is rounded to 16 bits before it is anything else: the reference's.
  if (from == static_cast<Kind>(DType::F16) || from == static_cast<Kind>(DType::BF16)) return false;
  PyArray_Descr* source = descr_of(static_cast<DType>(from));
  PyArray_Descr* target = descr_of(static_cast<DType>(to));
  const bool can = source && target && PyArray_CanCastTypeTo(source, target, NPY_SAME_KIND_CASTING);
  Py_XDECREF(source);
  Py_XDECREF(target);
  return can;
}

}  // namespace

PyObject* into_new(const Program& program, Kind kind, Shape& shape, Place* places) {
  const int inputs = program.inputs;
  const npy_intp size = kSize[static_cast<int>(program.memory[inputs])];
  alignas(8) char value[8];
  if (shape.rank == 0) {
    shape.elements = 1;
    places[inputs] = {value, shape.strides[inputs], true};
    if (!evaluate(program, shape, places)) return nullptr;
    PyArray_Descr* descr = descr_of(static_cast<DType>(kind));
    PyObject* scalar = descr ? PyArray_Scalar(value, descr, nullptr) : nullptr;
    Py_XDECREF(descr);
    return scalar;
  }
  if (shape.elements == 0) return new_array(shape.rank, shape.extent, kind, nullptr);
  lay_out(shape, inputs, size);
  PyObject* result = new_array(shape.rank, shape.extent, kind, shape.strides[inputs]);
  if (result == nullptr) return nullptr;
  char* data = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(result));
  places[inputs] = {data, shape.strides[inputs], true};
  if (!evaluate(program, shape, places)) Py_CLEAR(result);
  return result;
}

PyObject* into_out(const Program& from, Kind result, Shape& shape, Place* places,
                   PyArrayObject* out) {
  const int inputs = from.inputs;
  const Kind kind = kind_of(PyArray_DESCR(out));
  if (kind == kNoKind || !PyArray_ISWRITEABLE(out) || !converts(result, kind)) return nullptr;
  if (!widen_to(shape, inputs, PyArray_NDIM(out), PyArray_DIMS(out))) return nullptr;
  if (shape.elements == 0) return Py_NewRef(reinterpret_cast<PyObject*>(out));
  const npy_intp* strides = PyArray_STRIDES(out);
  const npy_intp size = kSize[kind];
  if (overlaps_itself(shape.rank, shape.extent, strides, size)) return nullptr;
  bool partial = false;
  for (int k = 0; k < inputs; ++k)
    partial |= overlap(shape, PyArray_BYTES(out), size, strides, places[k].data,
                       kSize[static_cast<int>(from.memory[k])],
                       shape.strides[k]) == Overlap::Partial;
  Program program = from;
  program.memory[inputs] = static_cast<DType>(kind);
  std::copy_n(strides, shape.rank, shape.strides[inputs]);
  if (!partial) {
    places[inputs] = {PyArray_BYTES(out), shape.strides[inputs],
                      static_cast<bool>(PyArray_ISALIGNED(out))};
    if (!evaluate(program, shape, places)) return nullptr;
    return Py_NewRef(reinterpret_cast<PyObject*>(out));
  }
  // The output overlaps operands that are read later, so the result is made in a separate array.
  PyObject* whole = nullptr;
  if (shape.rank > 0) {
    lay_out(shape, inputs, size);
    whole = new_array(shape.rank, shape.extent, kind, shape.strides[inputs]);
  } else {
    whole = new_array(shape.rank, shape.extent, kind, nullptr);
  }
  if (whole == nullptr) return nullptr;
  auto* array = reinterpret_cast<PyArrayObject*>(whole);
  places[inputs] = {PyArray_BYTES(array), shape.strides[inputs], true};
  const bool copied = evaluate(program, shape, places) && PyArray_CopyInto(out, array) == 0;
  Py_DECREF(whole);
  return copied ? Py_NewRef(reinterpret_cast<PyObject*>(out)) : nullptr;
}

bool read_out(PyObject* given_out, PyArrayObject** out) {
  *out = nullptr;
  if (!given(given_out)) return true;
  if (PyTuple_CheckExact(given_out) && PyTuple_GET_SIZE(given_out) == 1)
    given_out = PyTuple_GET_ITEM(given_out, 0);
  if (given_out == Py_None) return true;
  if (!PyArray_CheckExact(given_out)) return false;
  *out = reinterpret_cast<PyArrayObject*>(given_out);
  return true;
}

bool read_dtype(PyObject* given_dtype, Kind* kind) {
  *kind = kNoKind;
  if (!given(given_dtype)) return true;
  PyArray_Descr* descr = nullptr;
  if (!PyArray_DescrConverter(given_dtype, &descr)) {
    PyErr_Clear();
    return false;
  }
  *kind = kind_of(descr);
  Py_DECREF(descr);
  return *kind != kNoKind;
}

PyObject* convert(PyObject*, PyObject* const* args, Py_ssize_t count) {
  Kind kind;
  Operand operand;
  PyArrayObject* out;
  if (count != 3) {
    PyErr_SetString(PyExc_TypeError, "convert(array, dtype, out) takes three arguments");
    return nullptr;
  }
  if (!read_dtype(args[1], &kind) || kind == kNoKind || !read_operand(operand, args[0]) ||
      operand.number || !read_out(args[2], &out))
    Py_RETURN_NOTIMPLEMENTED;
  Kernel kernel{"convert", 1, {static_cast<DType>(operand.kind)}, static_cast<DType>(kind), {}};
  kernel.form[0] = isa().convert[operand.kind][kind];
  const DType memory[] = {kernel.in[0], kernel.out};
  Program program;
  program_of(program, kernel, memory);
  Shape shape;
  if (!align_numpy(shape, &operand, 1)) Py_RETURN_NOTIMPLEMENTED;
  Place places[2] = {{operand.data, shape.strides[0], operand.aligned}, {}};
  PyObject* result = out ? into_out(program, kind, shape, places, out)
                         : into_new(program, kind, shape, places);
  if (result == nullptr && !PyErr_Occurred()) Py_RETURN_NOTIMPLEMENTED;
  return result;
}

}  // namespace zs
