// Operands of the engine: their memory and their kind.
#pragma once

#include "python.h"

#include "../kernels.h"

namespace zs {

// A dtype of an array (0..kDTypes-1), or a Python number, which takes the other operands' dtype.
using Kind = int;
constexpr Kind kWeakInt = kDTypes;
constexpr Kind kWeakFloat = kDTypes + 1;
constexpr Kind kKinds = kDTypes + 2;
constexpr Kind kNoKind = -1;  // the reference backend's

struct Operand {
  char* data;
  int rank;
  const npy_intp* shape;
  const npy_intp* strides;
  Kind kind;
  bool aligned;
  PyObject* number;              // a Python number, whose value is not taken yet, or null
  alignas(8) char value[8];      // of a scalar
};

// Reads an array, a NumPy scalar or a Python number. False where the reference backend is to.
bool read_operand(Operand& operand, PyObject* object);
// Puts a Python number's value into the operand as a dtype. False where it does not fit.
bool take_number(Operand& operand, DType dtype);

// The kind of a NumPy dtype, or kNoKind.
Kind kind_of(const PyArray_Descr* descr);
// A new reference to NumPy's descriptor, or null with an error set.
PyArray_Descr* descr_of(DType dtype);
// By the array API's name; kNoKind if there is none.
Kind kind_named(const char* name);
// The dtype that ml_dtypes registered as bfloat16.
void register_bfloat16(int type_number);
const char* name_of(Kind kind);

}  // namespace zs
