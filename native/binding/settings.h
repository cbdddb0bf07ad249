// Known rules, plans and dtypes of a function, kept for later calls.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "shape.h"

#include "../run.h"

namespace zs {

// The kernel for one combination of dtypes.
struct Resolution {
  enum { Unknown, Native, Reference } state = Unknown;
  Program program;  // `memory` of arrays is theirs; of numbers what they become
  Kind result;      // of a new output
};

// The result axes on which a plan puts the operands' axes.
struct Landing {
  int rank = 0;
  npy_intp extent[kMaxAxes];
  std::vector<int> axes;  // of all operands in turn; -1: dropped
};

// One rule with its attributes, as asked of one op.
struct Setting {
  PyObject* planner = nullptr;  // null: NumPy's rule
  PyObject* resolver = nullptr;
  std::vector<std::unique_ptr<Resolution>> plain;  // by kinds
  std::unordered_map<int, std::unique_ptr<Resolution>> asked;  // by kinds and `dtype`
  std::unordered_map<std::string, Landing> plans;              // by shapes

  ~Setting();
};

// A call's arguments beyond the operands; borrowed, null where not given.
struct Options {
  PyObject* rule;
  PyObject* axis;
  PyObject* engine;
  PyObject* out;
  PyObject* dtype;
  PyObject* broadcast;
};

// The settings of one function.
struct Settings {
  PyObject* name = nullptr;       // of the native kernel
  PyObject* configure = nullptr;  // (rule, axis, engine, broadcast) -> (planner, resolver)
  PyObject* index = nullptr;      // (rule, axis, engine, broadcast) -> place in `made`
  int inputs = 0;
  int parameters = 0;                      // the last inputs, which may be left out
  PyObject* parameter_name[kMaxInputs]{};  // interned
  PyObject* parameter_value[kMaxInputs]{};  // where it is left out
  std::vector<std::unique_ptr<Setting>> made;  // the first is the default
};

bool given(const PyObject* option);
// Makes the default setting. False with an error set if `configure` raises.
bool start(Settings& settings);
// The setting of the options, or null: with an error set, or where the reference is to look at them.
Setting* find_setting(Settings& settings, const Options& options);
// The resolution of the operands' kinds (and `dtype`, or kNoKind), or null with an error set.
const Resolution* find_resolution(const Settings& settings, Setting& setting,
                                  const Operand* operands, Kind dtype);
// Lays the operands over the result's axes. False with an error set if the planner raised, without
// one where the reference is to raise the error.
bool align(Setting& setting, Shape& shape, const Operand* operands, int count);

}  // namespace zs
