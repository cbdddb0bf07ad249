#include "operand.h"

#include <cstring>

namespace zs {
namespace {

constexpr npy_intp kOne = 1;
int bfloat16_number = -1;

// By NumPy's type number; long and long long are one.
Kind kind_of_number(int number) {
  switch (number) {
    case NPY_BOOL: return static_cast<Kind>(DType::Bool);
    case NPY_BYTE: return static_cast<Kind>(DType::I8);
    case NPY_UBYTE: return static_cast<Kind>(DType::U8);
    case NPY_SHORT: return static_cast<Kind>(DType::I16);
    case NPY_USHORT: return static_cast<Kind>(DType::U16);
    case NPY_INT: return static_cast<Kind>(DType::I32);
    case NPY_UINT: return static_cast<Kind>(DType::U32);
    case NPY_LONG: return static_cast<Kind>(sizeof(long) == 8 ? DType::I64 : DType::I32);
    case NPY_ULONG: return static_cast<Kind>(sizeof(long) == 8 ? DType::U64 : DType::U32);
    case NPY_LONGLONG: return static_cast<Kind>(DType::I64);
    case NPY_ULONGLONG: return static_cast<Kind>(DType::U64);
    case NPY_HALF: return static_cast<Kind>(DType::F16);
    case NPY_FLOAT: return static_cast<Kind>(DType::F32);
    case NPY_DOUBLE: return static_cast<Kind>(DType::F64);
    default:
      return number == bfloat16_number && number >= 0 ? static_cast<Kind>(DType::BF16) : kNoKind;
  }
}

constexpr int kNumbers[kDTypes] = {NPY_BOOL,  NPY_INT8,   NPY_UINT8, NPY_INT16,  NPY_UINT16,
                                   NPY_INT32, NPY_UINT32, NPY_INT64, NPY_UINT64, NPY_HALF,
                                   -1,        NPY_FLOAT,  NPY_DOUBLE};

// The kind of an exact type of NumPy scalar.
Kind kind_of_scalar(PyTypeObject* type) {
  static PyTypeObject* const types[] = {
      &PyFloatArrType_Type, &PyDoubleArrType_Type, &PyLongArrType_Type,   &PyIntArrType_Type,
      &PyBoolArrType_Type,  &PyHalfArrType_Type,   &PyByteArrType_Type,   &PyUByteArrType_Type,
      &PyShortArrType_Type, &PyUShortArrType_Type, &PyUIntArrType_Type,   &PyULongArrType_Type,
      &PyLongLongArrType_Type, &PyULongLongArrType_Type};
  static const int numbers[] = {NPY_FLOAT, NPY_DOUBLE, NPY_LONG,   NPY_INT,  NPY_BOOL,
                                NPY_HALF,  NPY_BYTE,   NPY_UBYTE,  NPY_SHORT, NPY_USHORT,
                                NPY_UINT,  NPY_ULONG,  NPY_LONGLONG, NPY_ULONGLONG};
  for (std::size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); ++i)
    if (type == types[i]) return kind_of_number(numbers[i]);
  return kNoKind;
}

void make_scalar(Operand& operand, Kind kind, PyObject* number) {
  operand.data = operand.value;
  operand.rank = 0;
  operand.shape = &kOne;
  operand.strides = &kOne;
  operand.kind = kind;
  operand.aligned = true;
  operand.number = number;
}

template <class T>
bool put(Operand& operand, long long value) {
  const T given = static_cast<T>(value);
  if (static_cast<long long>(given) != value || (value < 0) != (given < T{0})) return false;
  std::memcpy(operand.value, &given, sizeof given);
  return true;
}

bool put_integer(Operand& operand, DType dtype, long long value) {
  switch (dtype) {
    case DType::I8: return put<std::int8_t>(operand, value);
    case DType::U8: return put<std::uint8_t>(operand, value);
    case DType::I16: return put<std::int16_t>(operand, value);
    case DType::U16: return put<std::uint16_t>(operand, value);
    case DType::I32: return put<std::int32_t>(operand, value);
    case DType::U32: return put<std::uint32_t>(operand, value);
    case DType::I64: return put<std::int64_t>(operand, value);
    case DType::U64: return put<std::uint64_t>(operand, value);
    default: return false;
  }
}

}  // namespace

Kind kind_of(const PyArray_Descr* descr) {
  return PyDataType_ISNOTSWAPPED(descr) ? kind_of_number(descr->type_num) : kNoKind;
}

PyArray_Descr* descr_of(DType dtype) {
  const bool brain = dtype == DType::BF16;
  return PyArray_DescrFromType(brain ? bfloat16_number : kNumbers[static_cast<int>(dtype)]);
}

Kind kind_named(const char* name) {
  for (Kind kind = 0; kind < kDTypes; ++kind)
    if (std::strcmp(name, kName[kind]) == 0) return kind;
  return kNoKind;
}

const char* name_of(Kind kind) {
  return kind == kWeakInt ? "int" : kind == kWeakFloat ? "float" : kName[kind];
}

void register_bfloat16(int type_number) { bfloat16_number = type_number; }

bool read_operand(Operand& operand, PyObject* object) {
  if (PyArray_CheckExact(object)) {
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    operand.data = PyArray_BYTES(array);
    operand.rank = PyArray_NDIM(array);
    operand.shape = PyArray_DIMS(array);
    operand.strides = PyArray_STRIDES(array);
    operand.kind = kind_of(PyArray_DESCR(array));
    operand.aligned = PyArray_ISALIGNED(array);
    operand.number = nullptr;
  } else if (PyFloat_CheckExact(object)) {
    make_scalar(operand, kWeakFloat, object);
  } else if (PyLong_CheckExact(object)) {
    make_scalar(operand, kWeakInt, object);
  } else if (PyBool_Check(object)) {
    make_scalar(operand, static_cast<Kind>(DType::Bool), nullptr);
    operand.value[0] = object == Py_True;
  } else {
    make_scalar(operand, kind_of_scalar(Py_TYPE(object)), nullptr);
    if (operand.kind != kNoKind) PyArray_ScalarAsCtype(object, operand.value);
  }
  return operand.kind != kNoKind;
}

bool take_number(Operand& operand, DType dtype) {
  const bool real = dtype >= DType::F16;
  double value;
  if (operand.kind == kWeakInt) {
    int overflow = 0;
    const long long integer = PyLong_AsLongLongAndOverflow(operand.number, &overflow);
    // The dtype of a number beyond 64 bits depends on the other operands; the reference decides.
    if (overflow != 0) return false;
    if (!real) return put_integer(operand, dtype, integer);
    value = static_cast<double>(integer);
  } else {
    if (!real) return false;
    value = PyFloat_AS_DOUBLE(operand.number);
  }
  const void* const from[] = {&value};
  isa().convert[static_cast<int>(DType::F64)][static_cast<int>(dtype)](from, operand.value, 1);
  return true;
}

}  // namespace zs
